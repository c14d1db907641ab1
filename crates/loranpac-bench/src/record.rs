//! A run together with the data that it was made on.

use serde::{Deserialize, Serialize};

use crate::run::Run;

/// The data of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    /// Name of the data set in recipes.
    pub key: String,
    /// Encoder, from the name of the file.
    pub backbone: String,
    /// Stem of the file's name.
    pub file: String,
    /// Path of the file, or `digits`.
    pub path: String,
    /// [`loranpac_data::Dataset::digest`], in hexadecimal digits.
    pub digest: String,
}

impl Data {
    /// Title for tables and figures: the file's name, which has data set and encoder.
    pub fn title(&self) -> &str {
        &self.file
    }
}

/// A run with its data, as a sweep writes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Version of the format.
    pub schema: u32,
    /// The data.
    pub data: Data,
    /// The run.
    pub run: Run,
}
