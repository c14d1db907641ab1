//! CODA-Prompt (Smith et al., CVPR 2023), in each of the first five blocks:
//!
//! ```text
//! a_k = cos(q ∘ A_k, K_k);      P = sum over the components k of the tasks so far of a_k P_k;      [K; first half of P], [V; second half]
//! ```
//!
//! Components are divided over the tasks. Those of earlier tasks are used and not trained. Those of a new task start orthogonal to all of them.

use std::ops::Range;

use rayon::prelude::*;

use super::compose::{Composed, Sizes};
use super::cosine::{add_gradient, cosine, dot};
use super::orthogonal::renew;
use super::settings::PromptSettings;
use crate::transformer::{Inserts, Parameters, Prefix, Random, Start};

/// Blocks with prompts.
const BLOCKS: usize = 5;

/// Components of each block.
#[derive(Debug, Clone)]
pub(super) struct Coda {
    /// Numbers of a component.
    size: usize,
    sizes: Sizes,
    /// Rows of keys, and of values.
    length: usize,
    /// Components of a task.
    share: usize,
    blocks: Vec<Block>,
}

/// Where the numbers of a block are.
#[derive(Debug, Clone)]
struct Block {
    components: Range<usize>,
    keys: Range<usize>,
    attention: Range<usize>,
}

impl Coda {
    /// Adds components with their keys and attention. Blocks that the encoder does not have are left out.
    pub fn add(to: &mut Parameters, settings: &PromptSettings, sizes: Sizes, random: &mut Random) -> Coda {
        let &PromptSettings { pool, length, .. } = settings;
        let mut add = |block: usize, name: &str, shape: &[usize]| {
            to.add(format!("blocks.{block}.{name}"), shape, Start::Constant(0.0), random)
        };
        let block = |block: usize| Block {
            components: add(block, "components", &[pool, length, sizes.d]),
            keys: add(block, "keys", &[pool, sizes.dim]),
            attention: add(block, "attention", &[pool, sizes.dim]),
        };
        let blocks = (0..BLOCKS.min(sizes.blocks)).map(block).collect();
        Coda { size: length * sizes.d, sizes, length: length / 2, share: pool / sizes.tasks, blocks }
    }

    /// Gives new values to everything of a task.
    pub fn begin(&self, values: &mut [f32], task: usize, random: &mut Random) {
        let own = self.own(task);
        for Block { components, keys, attention } in &self.blocks {
            renew(&mut values[components.clone()], self.size, own.clone(), random);
            renew(&mut values[keys.clone()], self.sizes.dim, own.clone(), random);
            renew(&mut values[attention.clone()], self.sizes.dim, own.clone(), random);
        }
    }

    /// The prefixes of each input.
    pub fn compose(&self, values: &[f32], queries: &[f32], task: usize) -> Composed {
        let used = self.own(task).end;
        let inputs = queries.len() / self.sizes.dim;
        let mut rows = vec![0.0; self.blocks.len() * inputs * self.size];
        let mut prefixes = vec![None; self.sizes.blocks];
        for (b, block) in self.blocks.iter().enumerate() {
            let start = b * inputs * self.size;
            prefixes[b] = Some(Prefix { start, length: self.length });
            let components = &values[block.components.clone()];
            let rows = rows[start..][..inputs * self.size].par_chunks_mut(self.size);
            rows.zip(queries.par_chunks(self.sizes.dim)).for_each(|(rows, query)| {
                for (k, component) in components.chunks(self.size).take(used).enumerate() {
                    let weight = self.weight(values, block, query, k) as f32;
                    rows.iter_mut().zip(component).for_each(|(row, x)| *row += weight * x);
                }
            });
        }
        Composed { inserts: Inserts { tokens: None, prefixes }, rows, chosen: Vec::new() }
    }

    /// Adds the gradients of everything of a task, given those of the rows.
    pub fn gradients(&self, (values, queries): (&[f32], &[f32]), slopes: &[f32], task: usize, out: &mut [f32]) {
        let inputs = queries.len() / self.sizes.dim;
        for (block, slopes) in self.blocks.iter().zip(slopes.chunks(inputs * self.size)) {
            let found: Vec<_> =
                self.own(task).into_par_iter().map(|k| self.gradient(values, block, (queries, slopes), k)).collect();
            for (k, [component, key, attention]) in self.own(task).zip(found) {
                let parts = [(&block.components, component), (&block.keys, key), (&block.attention, attention)];
                for (range, part) in parts {
                    let out = &mut out[range.start + k * part.len()..][..part.len()];
                    out.iter_mut().zip(&part).for_each(|(out, x)| *out += x);
                }
            }
        }
    }

    /// The gradients of a component, its key and its attention.
    fn gradient(&self, values: &[f32], block: &Block, (queries, slopes): (&[f32], &[f32]), k: usize) -> [Vec<f32>; 3] {
        let dim = self.sizes.dim;
        let component = &values[block.components.clone()][k * self.size..][..self.size];
        let (key, attention) = (self.vector(values, &block.keys, k), self.vector(values, &block.attention, k));
        let [mut of_component, mut of_key, mut of_attention] = [vec![0.0; self.size], vec![0.0; dim], vec![0.0; dim]];
        for (query, slopes) in queries.chunks(dim).zip(slopes.chunks(self.size)) {
            let asked: Vec<f32> = query.iter().zip(attention).map(|(q, a)| q * a).collect();
            let weight = cosine(&asked, key) as f32;
            of_component.iter_mut().zip(slopes).for_each(|(out, slope)| *out += weight * slope);
            let slope = dot(slopes, component);
            add_gradient(&asked, key, slope, &mut of_key);
            let mut of_asked = vec![0.0; dim];
            add_gradient(key, &asked, slope, &mut of_asked);
            of_attention.iter_mut().zip(of_asked).zip(query).for_each(|((out, x), q)| *out += x * q);
        }
        [of_component, of_key, of_attention]
    }

    /// The weight of a component for a query.
    fn weight(&self, values: &[f32], block: &Block, query: &[f32], k: usize) -> f64 {
        let attention = self.vector(values, &block.attention, k);
        let asked: Vec<f32> = query.iter().zip(attention).map(|(q, a)| q * a).collect();
        cosine(&asked, self.vector(values, &block.keys, k))
    }

    fn vector<'a>(&self, values: &'a [f32], range: &Range<usize>, k: usize) -> &'a [f32] {
        &values[range.start + k * self.sizes.dim..][..self.sizes.dim]
    }

    /// The components of a task.
    fn own(&self, task: usize) -> Range<usize> {
        task * self.share..(task + 1) * self.share
    }
}
