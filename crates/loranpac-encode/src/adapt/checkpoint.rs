//! A checkpoint: everything that training needs to continue, in a file beside the one that it will write.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use loranpac_data::atomic;
use serde::{Deserialize, Serialize};

use super::adapter::text;
use crate::error::Error;
use crate::sealed::{self, Sealed};

/// The names of the vectors of a state.
const VECTORS: [&str; 3] = ["values", "memory", "best"];

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
    let parts: [&[f32]; 3] = [&state.values, &state.memory, &state.best];
    let [values, memory, best] = [0, 1, 2].map(|at| (VECTORS[at], parts[at]));
    sealed::write(path, &[values, memory, best], task, &text(&state.progress))
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
    let Sealed { vectors, text, is_whole } = sealed::read(path, &VECTORS, expected.task)?;
    let [values, memory, best] = <[Vec<f32>; 3]>::try_from(vectors).ok()?;
    let [size, kept] = expected.sizes;
    let progress: Position = serde_json::from_str(&text).ok()?;
    let is_possible = [values.len(), memory.len(), best.len()] == [size, kept, size]
        && progress.epochs.len() <= expected.epochs[0]
        && progress.steps == progress.epochs.len() as u64 * expected.epochs[1] as u64
        && progress.halved <= expected.halvings
        && progress.epochs.iter().all(|epoch| epoch.accuracy.is_some() == expected.measured);
    ((is_whole || expected.task.is_none()) && is_possible).then_some(State { values, memory, best, progress })
}

/// Removes a checkpoint.
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::Write { path: path.to_owned(), source }),
        _ => Ok(()),
    }
}
