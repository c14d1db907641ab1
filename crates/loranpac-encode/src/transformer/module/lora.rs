//! LoRA: low-rank changes of the weights of queries and values.
//!
//! ```text
//! W + scale B A        A: rank x d, B: d x rank, which starts at zero
//! ```
//!
//! The product is added to the weights: prediction costs what it costs without.

use std::ops::Range;

use super::parameters::{Parameters, Random, Start};
use crate::transformer::block::{Block, Shape};
use crate::transformer::gradient::{Transposed, flatten, product_over_rows};
use crate::transformer::linear::{Layout, Linear, Then};
use crate::transformer::strips::Strips;

/// Where the numbers of the changes are.
#[derive(Debug, Clone)]
pub(crate) struct Lora {
    rank: usize,
    scale: f32,
    queries: Pair,
    values: Pair,
}

#[derive(Debug, Clone)]
struct Pair {
    a: Range<usize>,
    b: Range<usize>,
}

impl Lora {
    /// Adds the tensors of the changes of a block.
    pub fn add(to: &mut Parameters, block: &str, d: usize, rank: usize, scale: f32, random: &mut Random) -> Lora {
        let mut pair = |name: &str| {
            let bound = 1.0 / (d as f32).sqrt();
            let a = to.add(format!("{block}.lora.{name}.a"), &[rank, d], Start::Uniform(bound), random);
            let b = to.add(format!("{block}.lora.{name}.b"), &[d, rank], Start::Constant(0.0), random);
            Pair { a, b }
        };
        Lora { rank, scale, queries: pair("queries"), values: pair("values") }
    }

    /// The block with the changes in its weights.
    pub fn apply(&self, values: &[f32], block: &Block, shape: Shape) -> Block {
        let strips = shape.strips();
        let mut qkv = block.qkv.clone();
        for (pair, first, factor) in
            [(&self.queries, 0, shape.query_scale() * self.scale), (&self.values, 2 * strips, self.scale)]
        {
            let b = Linear::new(&values[pair.b.clone()], None, shape.heads_layout(), Layout::plain(self.rank));
            let a = &values[pair.a.clone()];
            qkv.add_product(first, &b, a, self.rank, factor);
        }
        Block { qkv, ..block.clone() }
    }

    /// Adds the gradients of its numbers, given the input x of queries, keys and values, and the gradients of queries and values. `rows` has the
    /// inputs of the queries, where they are not those of all tokens.
    pub fn gradients(
        &self,
        values: &[f32],
        shape: Shape,
        (x, rows): (&Strips, &Strips),
        (dq, dv): (&Strips, &Strips),
        out: &mut [f32],
    ) {
        let (inner, plain) = (Layout::plain(self.rank), Layout::plain(shape.d));
        for (pair, x, dy, factor) in
            [(&self.queries, rows, dq, shape.query_scale() * self.scale), (&self.values, x, dv, self.scale)]
        {
            let (mut z, mut dz) = (Strips::default(), Strips::default());
            Linear::new(&values[pair.a.clone()], None, inner, plain).forward(x, &mut z, Then::Store);
            let b = Linear::new(&values[pair.b.clone()], None, shape.heads_layout(), inner);
            Transposed::default().backward(&b, dy, &mut dz, Then::Store);
            flatten(&product_over_rows(&dz, x), shape.d, factor, &mut out[pair.a.clone()]);
            let db = product_over_rows(dy, &z);
            let db: Vec<_> = (0..shape.d).map(|i| db[shape.heads_layout().place(i)].clone()).collect();
            flatten(&db, self.rank, factor, &mut out[pair.b.clone()]);
        }
    }
}
