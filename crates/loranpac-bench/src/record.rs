//! A run together with the data that it was made on.

use serde::{Deserialize, Serialize};

use crate::adapted::RunFeatures;
use crate::run::Run;
use crate::settings::quote;
use crate::spec::Spec;

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
    /// Options of `loranpac run` that raw data need besides the path, such as `--encoder` and its value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The path of the images or texts of a feature file, and their options: what methods that train inside the encoder read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<(String, Vec<String>)>,
}

impl Data {
    /// Title for tables and figures: the file's name, which has data set and encoder.
    pub fn title(&self) -> &str {
        &self.file
    }

    /// The command that repeats a run on the data.
    pub fn command(&self, spec: &Spec) -> String {
        let (path, options) = match &self.raw {
            Some((path, options)) if RunFeatures::trains(spec) => (path, options),
            _ => (&self.path, &self.options),
        };
        let options: String = options.iter().map(|word| format!(" {}", quote(word))).collect();
        spec.command(path) + &options
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

impl Record {
    /// The command that repeats the run.
    pub fn command(&self) -> String {
        self.data.command(&self.run.config.spec)
    }
}
