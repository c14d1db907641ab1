//! L2P (Wang et al., CVPR 2022):
//!
//! ```text
//! S = the `top` prompts whose keys have the largest cos(q, k_s);     x = [x; P_s for s in S] in front of the first block
//! loss = cross-entropy - pull * mean over inputs of sum over S of cos(q, k_s)
//! ```
//!
//! The classifier reads the mean of the prompts' outputs after the last normalisation.

use std::ops::Range;

use super::choice::Matching;
use super::compose::{Composed, Sizes};
use super::settings::PromptSettings;
use crate::transformer::{Inserts, Parameters, Random, Start, Tokens};

/// A pool of prompts.
#[derive(Debug, Clone)]
pub(super) struct L2p {
    /// Numbers of a prompt.
    size: usize,
    sizes: Sizes,
    /// Tokens of a prompt.
    length: usize,
    top: usize,
    matching: Matching,
    prompts: Range<usize>,
}

impl L2p {
    /// Adds keys and prompts.
    pub fn add(to: &mut Parameters, settings: &PromptSettings, sizes: Sizes, random: &mut Random) -> L2p {
        let &PromptSettings { pool, length, top, pull, batchwise, .. } = settings;
        let keys = to.add("keys".to_owned(), &[pool, sizes.dim], Start::Uniform(1.0), random);
        let prompts = to.add("prompts".to_owned(), &[pool, length, sizes.d], Start::Uniform(1.0), random);
        let matching = Matching { keys, dim: sizes.dim, pull, batchwise };
        L2p { size: length * sizes.d, sizes, length, top, matching, prompts }
    }

    /// Tokens of an input.
    pub fn tokens(&self) -> usize {
        self.top * self.length
    }

    /// The selected prompts of each input, behind each other.
    pub fn compose(&self, values: &[f32], queries: &[f32]) -> Composed {
        let chosen = self.matching.select(queries, &values[self.matching.keys.clone()], self.top);
        let prompts = &values[self.prompts.clone()];
        let rows = chosen.iter().flatten().flat_map(|prompt| &prompts[prompt * self.size..][..self.size]);
        let rows = rows.copied().collect();
        let tokens = Some(Tokens { start: 0, count: self.tokens() });
        Composed { inserts: Inserts { tokens, prefixes: vec![None; self.sizes.blocks] }, rows, chosen }
    }

    /// Adds the gradients of prompts and keys. Returns the similarity's part of the loss.
    pub fn gradients(&self, given: (&[f32], &[f32]), composed: &Composed, slopes: &[f32], out: &mut [f32]) -> f64 {
        let prompts = &mut out[self.prompts.clone()];
        for (prompt, slopes) in composed.chosen.iter().flatten().zip(slopes.chunks(self.size)) {
            let prompt = &mut prompts[prompt * self.size..][..self.size];
            prompt.iter_mut().zip(slopes).for_each(|(out, slope)| *out += slope);
        }
        self.matching.gradients(given, &composed.chosen, out)
    }
}
