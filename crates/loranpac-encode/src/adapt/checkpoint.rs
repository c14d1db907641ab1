//! A checkpoint: everything that training needs to continue, in a file beside the one that it will write.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use loranpac_data::atomic;
use loranpac_data::safetensors::{TensorInfo, header};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::adapter::text;
use crate::error::Error;
use crate::hex::hex;
use crate::transformer::Weights;

/// The version of the format.
const VERSION: &str = "1";

/// What an epoch came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// The mean loss of its steps.
    pub loss: f64,
    /// Accuracy of held-out samples by the nearest class mean, in percent.
    pub accuracy: Option<f64>,
}

/// What changes from epoch to epoch.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    /// All trained numbers.
    pub values: Vec<f32>,
    /// Those of the optimiser.
    pub memory: Vec<f32>,
    /// The trained numbers of the best epoch so far.
    pub best: Vec<f32>,
    pub progress: Position,
}

/// How far training is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Position {
    /// Steps so far.
    pub steps: u64,
    /// How often the rate was halved.
    pub halved: u32,
    /// Epochs so far.
    pub epochs: Vec<Epoch>,
}

/// Where the checkpoint of a file is.
pub(super) fn place(out: &Path) -> Option<PathBuf> {
    atomic::hidden(out, "checkpoint")
}

/// Writes a state. `task` identifies what is trained.
pub(super) fn write(path: &Path, state: &State, task: &str) -> Result<(), Error> {
    let parts = [("values", &state.values), ("memory", &state.memory), ("best", &state.best)];
    let shapes = parts.map(|(_, numbers)| [numbers.len()]);
    let infos = parts.iter().zip(&shapes).map(|((name, numbers), shape)| TensorInfo {
        name,
        dtype: "F32",
        shape,
        bytes: 4 * numbers.len(),
    });
    let data: Vec<u8> = parts.iter().flat_map(|(_, numbers)| numbers.iter().flat_map(|x| x.to_le_bytes())).collect();
    let progress = text(&state.progress);
    let digest = hex(&Sha256::new().chain_update(&progress).chain_update(&data).finalize().into());
    let metadata = json!({ "version": VERSION, "task": task, "progress": progress, "digest": digest });
    let bytes = [header(infos, Some(metadata)), data].concat();
    atomic::write(path, &bytes).map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// What a checkpoint must agree with.
pub(super) struct Expected<'a> {
    /// What is trained. None: anything, whatever its digest; a fuzzer cannot compute them.
    pub task: Option<&'a str>,
    /// Trained numbers, and those of the optimiser.
    pub sizes: [usize; 2],
    /// Most epochs, and steps of each.
    pub epochs: [usize; 2],
    /// Most halvings of the rate.
    pub halvings: u32,
    /// Whether accuracy is measured.
    pub measured: bool,
}

/// Reads a state. None if there is no checkpoint, it is that of another task, or it is damaged: training then begins anew.
pub(super) fn read(path: &Path, expected: &Expected<'_>) -> Option<State> {
    let weights = Weights::open(path).ok()?;
    let metadata = weights.metadata()?;
    let other = |task: &str| metadata.get("task").is_none_or(|found| found != task);
    if metadata.get("version")? != VERSION || expected.task.is_some_and(other) {
        return None;
    }
    let read = |name: &str, size: usize| weights.tensor(name, &[size]).ok();
    let [size, kept] = expected.sizes;
    let [values, memory, best] = [read("values", size)?, read("memory", kept)?, read("best", size)?];
    let text = metadata.get("progress")?;
    let mut hash = Sha256::new().chain_update(text);
    [&values, &memory, &best].into_iter().flatten().for_each(|x| hash.update(x.to_le_bytes()));
    let sealed = metadata.get("digest")? == &hex(&hash.finalize().into());
    let progress: Position = serde_json::from_str(text).ok()?;
    let possible = progress.epochs.len() <= expected.epochs[0]
        && progress.steps == progress.epochs.len() as u64 * expected.epochs[1] as u64
        && progress.halved <= expected.halvings
        && progress.epochs.iter().all(|epoch| epoch.accuracy.is_some() == expected.measured);
    ((sealed || expected.task.is_none()) && possible).then_some(State { values, memory, best, progress })
}

/// Removes a checkpoint.
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::Write { path: path.to_owned(), source }),
        _ => Ok(()),
    }
}
