//! DualPrompt (Wang et al., ECCV 2022):
//!
//! ```text
//! blocks 0, 1:     [K; G_K], [V; G_V]         one G for all tasks
//! blocks 2, 3, 4:  [K; E_K], [V; E_V]         E of the task in training; elsewhere of the task with the largest cos(q, k_t)
//! loss = cross-entropy - pull * mean over inputs of cos(q, k_t)
//! ```

use std::ops::Range;

use super::choice::Matching;
use super::compose::{Composed, Sizes, Stage};
use super::settings::PromptSettings;
use crate::transformer::{Inserts, Parameters, Prefix, Random, Start};

/// Blocks with prompts of all tasks.
const GENERAL: Range<usize> = 0..2;
/// Blocks with prompts of one task.
const EXPERT: Range<usize> = 2..5;

/// Prompts of all tasks, and of each task.
#[derive(Debug, Clone)]
pub(super) struct Dual {
    /// Numbers of the keys and values of a block.
    size: usize,
    sizes: Sizes,
    /// Rows of keys, and of values.
    length: usize,
    matching: Matching,
    /// Of each block from the first: one prompt, or one of each task.
    prompts: Vec<Range<usize>>,
}

impl Dual {
    /// Adds keys and prompts. Blocks that the encoder does not have are left out.
    pub fn add(to: &mut Parameters, settings: &PromptSettings, sizes: Sizes, random: &mut Random) -> Dual {
        let &PromptSettings { length, pull, batchwise, .. } = settings;
        let keys = to.add("keys".to_owned(), &[sizes.tasks, sizes.dim], Start::Uniform(1.0), random);
        let block = |block: usize| {
            let prompts = if GENERAL.contains(&block) { 1 } else { sizes.tasks };
            to.add(format!("blocks.{block}.prompts"), &[prompts, 2, length, sizes.d], Start::Uniform(1.0), random)
        };
        let prompts = (0..EXPERT.end.min(sizes.blocks)).map(block).collect();
        let matching = Matching { keys, dim: sizes.dim, pull, batchwise };
        Dual { size: 2 * length * sizes.d, sizes, length, matching, prompts }
    }

    /// The prefixes of each input.
    pub fn compose(&self, values: &[f32], queries: &[f32], stage: Stage) -> Composed {
        let Matching { keys, dim, .. } = &self.matching;
        let inputs = queries.len() / dim;
        let known = &values[keys.start..keys.start + (stage.task + 1) * dim];
        let chosen = match stage.training {
            true => vec![vec![stage.task]; inputs],
            false => self.matching.select(queries, known, 1),
        };
        let mut rows = Vec::with_capacity(self.prompts.len() * inputs * self.size);
        let mut prefixes = vec![None; self.sizes.blocks];
        for (block, range) in self.prompts.iter().enumerate() {
            prefixes[block] = Some(Prefix { start: rows.len(), length: self.length });
            let prompts = &values[range.clone()];
            for chosen in chosen.iter().flatten() {
                rows.extend_from_slice(&prompts[self.place(block, *chosen)]);
            }
        }
        Composed { inserts: Inserts { tokens: None, prefixes }, rows, chosen }
    }

    /// Adds the gradients of prompts and keys. Returns the similarity's part of the loss.
    pub fn gradients(&self, given: (&[f32], &[f32]), composed: &Composed, slopes: &[f32], out: &mut [f32]) -> f64 {
        let chosen = || composed.chosen.iter().flatten();
        let of_block = slopes.chunks(self.size * composed.chosen.len());
        for ((block, range), slopes) in self.prompts.iter().enumerate().zip(of_block) {
            let prompts = &mut out[range.clone()];
            for (chosen, slopes) in chosen().zip(slopes.chunks(self.size)) {
                let prompt = &mut prompts[self.place(block, *chosen)];
                prompt.iter_mut().zip(slopes).for_each(|(out, slope)| *out += slope);
            }
        }
        self.matching.gradients(given, &composed.chosen, out)
    }

    /// Where the prompt of a task is among those of a block.
    fn place(&self, block: usize, task: usize) -> Range<usize> {
        let task = if GENERAL.contains(&block) { 0 } else { task };
        task * self.size..(task + 1) * self.size
    }
}
