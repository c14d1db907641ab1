//! AdaptFormer: a bottleneck beside the MLP, on the stream after attention.
//!
//! ```text
//! a = scale * (relu(x D' + c) U' + b)        D: bottleneck x d, U: d x bottleneck;   U, b and c start at zero
//! ```

use std::ops::Range;

use super::parameters::{Parameters, Random, Start};
use crate::transformer::block::Bottleneck;
use crate::transformer::gradient::{flatten, product_over_rows, sum_of_rows};
use crate::transformer::linear::{Layout, Linear};
use crate::transformer::strips::Strips;

/// Where the numbers of an adapter are.
#[derive(Debug, Clone)]
pub(crate) struct Adapter {
    size: usize,
    scale: f32,
    down: Range<usize>,
    down_bias: Range<usize>,
    up: Range<usize>,
    up_bias: Range<usize>,
}

impl Adapter {
    /// Adds the tensors of an adapter of a block.
    pub fn add(to: &mut Parameters, block: &str, d: usize, size: usize, scale: f32, random: &mut Random) -> Adapter {
        let mut add =
            |name: &str, shape: &[usize], start| to.add(format!("{block}.adapter.{name}"), shape, start, random);
        let bound = 1.0 / (d as f32).sqrt();
        Adapter {
            size,
            scale,
            down: add("down.weight", &[size, d], Start::Uniform(bound)),
            down_bias: add("down.bias", &[size], Start::Constant(0.0)),
            up: add("up.weight", &[d, size], Start::Constant(0.0)),
            up_bias: add("up.bias", &[d], Start::Constant(0.0)),
        }
    }

    /// Its layers.
    pub fn pack(&self, values: &[f32], d: usize) -> Bottleneck {
        let scaled = |range: &Range<usize>| values[range.clone()].iter().map(|x| x * self.scale).collect::<Vec<f32>>();
        let (inner, plain) = (Layout::plain(self.size), Layout::plain(d));
        Bottleneck {
            down: Linear::new(&values[self.down.clone()], Some(&values[self.down_bias.clone()]), inner, plain),
            up: Linear::new(&scaled(&self.up), Some(&scaled(&self.up_bias)), plain, inner),
        }
    }

    /// Adds the gradients of its numbers, given its input x and inner features z, and the gradients of its output and of the inner features
    /// before ReLU.
    pub fn gradients(&self, x: &Strips, z: &Strips, dy: &Strips, dz: &Strips, d: usize, out: &mut [f32]) {
        flatten(&product_over_rows(dy, z), self.size, self.scale, &mut out[self.up.clone()]);
        flatten(&product_over_rows(dz, x), d, 1.0, &mut out[self.down.clone()]);
        add(&mut out[self.up_bias.clone()], &sum_of_rows(dy, None), f64::from(self.scale));
        add(&mut out[self.down_bias.clone()], &sum_of_rows(dz, None), 1.0);
    }
}

fn add(out: &mut [f32], sums: &[f64], scale: f64) {
    out.iter_mut().zip(sums).for_each(|(out, sum)| *out += (sum * scale) as f32);
}
