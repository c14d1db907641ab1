//! What prompt methods are given, and the rows that they make of it.

use crate::transformer::Inserts;

/// Sizes of the encoder, and the number of tasks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Features of a token.
    pub d: usize,
    /// Features of a query.
    pub dim: usize,
    pub blocks: usize,
    /// Tasks that there is room for.
    pub tasks: usize,
}

/// Where training stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stage {
    /// The last task that was begun, counted from 0.
    pub task: usize,
    /// Whether the inputs are its training samples.
    pub training: bool,
}

/// The inserted rows of a batch.
#[derive(Debug, Default)]
pub(super) struct Composed {
    pub inserts: Inserts,
    pub rows: Vec<f32>,
    /// The prompts of each input.
    pub chosen: Vec<Vec<usize>>,
}
