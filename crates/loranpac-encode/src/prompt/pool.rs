//! What the prompt methods have in common: from the queries of a batch to its inserted rows, and from the gradients of these to those of the pool.

use super::coda::Coda;
use super::compose::{Composed, Sizes, Stage};
use super::dual::Dual;
use super::l2p::L2p;
use super::settings::{PromptKind, PromptSettings};
use crate::transformer::{Parameters, Pooled, Random};

/// The prompts of a method, whose numbers are in [`Parameters`].
#[derive(Debug, Clone)]
pub(super) enum Pool {
    L2p(L2p),
    Dual(Dual),
    Coda(Coda),
}

impl Pool {
    /// Adds the tensors of a pool.
    pub fn add(to: &mut Parameters, settings: &PromptSettings, sizes: Sizes, random: &mut Random) -> Pool {
        match settings.kind {
            PromptKind::L2p => Pool::L2p(L2p::add(to, settings, sizes, random)),
            PromptKind::DualPrompt => Pool::Dual(Dual::add(to, settings, sizes, random)),
            PromptKind::CodaPrompt => Pool::Coda(Coda::add(to, settings, sizes, random)),
        }
    }

    /// Prepares a task.
    pub fn begin(&self, values: &mut [f32], task: usize, random: &mut Random) {
        if let Pool::Coda(coda) = self {
            coda.begin(values, task, random);
        }
    }

    /// The tokens that the classifier's features are made of.
    pub fn pooled(&self) -> Pooled {
        match self {
            Pool::L2p(_) => Pooled::Inserted,
            Pool::Dual(_) | Pool::Coda(_) => Pooled::Usual,
        }
    }

    /// Rows that a sequence gets in addition to its own.
    pub fn room(&self) -> usize {
        match self {
            Pool::L2p(l2p) => l2p.tokens(),
            Pool::Dual(_) | Pool::Coda(_) => 0,
        }
    }

    /// The rows of inputs with these queries.
    pub fn compose(&self, values: &[f32], queries: &[f32], stage: Stage) -> Composed {
        match self {
            Pool::L2p(l2p) => l2p.compose(values, queries),
            Pool::Dual(dual) => dual.compose(values, queries, stage),
            Pool::Coda(coda) => coda.compose(values, queries, stage.task),
        }
    }

    /// Adds the gradients of the pool, given those of the rows. Returns what the method adds to the loss.
    pub fn gradients(
        &self,
        (values, queries): (&[f32], &[f32]),
        composed: &Composed,
        slopes: &[f32],
        task: usize,
        out: &mut [f32],
    ) -> f64 {
        match self {
            Pool::L2p(l2p) => l2p.gradients((values, queries), composed, slopes, out),
            Pool::Dual(dual) => dual.gradients((values, queries), composed, slopes, out),
            Pool::Coda(coda) => {
                coda.gradients((values, queries), slopes, task, out);
                0.0
            }
        }
    }
}
