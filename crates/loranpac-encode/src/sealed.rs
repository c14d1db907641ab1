//! Files of training that can be continued: named vectors with a text, sealed by a digest of both.

use std::path::Path;

use loranpac_data::atomic;
use loranpac_data::safetensors::{TensorInfo, header};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::hex::hex;
use crate::transformer::Weights;

/// The version of the format.
const VERSION: &str = "1";

/// What was read.
pub(crate) struct Sealed {
    /// Vectors, in the order in which they were asked for.
    pub vectors: Vec<Vec<f32>>,
    pub text: String,
    /// Whether the digest agrees.
    pub is_whole: bool,
}

/// Writes vectors and a text, all or nothing. `task` identifies what is trained.
pub(crate) fn write(path: &Path, vectors: &[(&str, &[f32])], task: &str, text: &str) -> Result<(), Error> {
    let shapes: Vec<[usize; 1]> = vectors.iter().map(|(_, numbers)| [numbers.len()]).collect();
    let infos = vectors.iter().zip(&shapes).map(|((name, numbers), shape)| TensorInfo {
        name,
        dtype: "F32",
        shape,
        bytes: 4 * numbers.len(),
    });
    let data: Vec<u8> = vectors.iter().flat_map(|(_, numbers)| numbers.iter().flat_map(|x| x.to_le_bytes())).collect();
    let digest = hex(&Sha256::new().chain_update(text).chain_update(&data).finalize().into());
    let metadata = json!({ "version": VERSION, "task": task, "progress": text, "digest": digest });
    let bytes = [header(infos, Some(metadata)), data].concat();
    atomic::write(path, &bytes).map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Reads vectors. None if the file is missing, damaged, or not of this task; without a task, the file of any is read.
pub(crate) fn read(path: &Path, names: &[&str], task: Option<&str>) -> Option<Sealed> {
    let weights = Weights::open(path).ok()?;
    let metadata = weights.metadata()?;
    let is_other = |task: &str| metadata.get("task").is_none_or(|found| found != task);
    if metadata.get("version")? != VERSION || task.is_some_and(is_other) {
        return None;
    }
    let vectors = names.iter().map(|name| weights.read(name).ok()).collect::<Option<Vec<_>>>()?;
    let text = metadata.get("progress")?.clone();
    let mut hash = Sha256::new().chain_update(&text);
    vectors.iter().flatten().for_each(|x| hash.update(x.to_le_bytes()));
    let is_whole = metadata.get("digest")? == &hex(&hash.finalize().into());
    Some(Sealed { vectors, text, is_whole })
}
