//! A checkpoint: everything that a learner needs to continue.

use std::path::Path;

use loranpac::Label;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::settings::PromptSettings;
use crate::adapt::Samples;
use crate::encoder::Encoder;
use crate::error::Error;
use crate::hex::hex;
use crate::sealed::{self, Sealed};
use crate::transformer::Transformer;

/// The names of the vectors of a state: the weights, and what Adam remembers of each.
const VECTORS: [&str; 4] = ["pool", "head", "pool.memory", "head.memory"];

/// How far learning is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Position {
    /// The classes so far, with those of the task that is being learned.
    pub labels: Vec<Label>,
    /// Tasks and samples so far.
    pub learned: usize,
    pub seen: usize,
    /// Epochs of the task that is being learned, halvings of its rate, and steps of Adam.
    pub epochs: usize,
    pub halved: u32,
    pub steps: u64,
    /// What the caller adds.
    pub note: String,
}

/// What was read.
pub(super) struct State {
    pub position: Position,
    pub vectors: [Vec<f32>; 4],
}

/// SHA-256 of everything that decides what is learned.
pub(super) fn identity(
    transformer: &Transformer,
    decided: (&PromptSettings, usize),
    samples: &[&Samples],
    more: &str,
) -> String {
    let mut hash = Sha256::new_with_prefix("prompts\n").chain_update(transformer.digest());
    samples.iter().for_each(|samples| hash.update(samples.digest()));
    hex(&hash.chain_update(format!("{decided:?}\n")).chain_update(more).finalize().into())
}

/// Writes a state, all or nothing.
pub(super) fn write(path: &Path, vectors: [&[f32]; 4], identity: &str, position: &Position) -> Result<(), Error> {
    let failed = |source: serde_json::Error| Error::Write { path: path.to_owned(), source: source.into() };
    let text = serde_json::to_string(position).map_err(failed)?;
    let vectors: Vec<(&str, &[f32])> = VECTORS.into_iter().zip(vectors).collect();
    sealed::write(path, &vectors, identity, &text)
}

/// Reads a state. None if there is none, it is damaged, or it has another identity.
pub(super) fn read(path: &Path, identity: &str) -> Option<State> {
    let Sealed { vectors, text, is_whole } = sealed::read(path, &VECTORS, Some(identity))?;
    let (vectors, position) = (vectors.try_into().ok()?, serde_json::from_str(&text).ok()?);
    is_whole.then_some(State { position, vectors })
}
