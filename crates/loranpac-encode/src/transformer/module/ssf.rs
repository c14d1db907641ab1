//! SSF: a scale and a shift after each operation of a block.
//!
//! ```text
//! y = scale ∘ u + shift        u: the output of a normalisation or a linear layer
//! ```
//!
//! Both are part of the weights when a block is used: prediction costs what it costs without. Gradients follow from y, because
//! `sum(dy ∘ u) = (sum(dy ∘ y) - shift ∘ sum(dy)) / scale`.

use std::ops::Range;

use super::parameters::{Parameters, Random, Start};
use crate::transformer::block::{Block, Shape};
use crate::transformer::gradient::sum_of_rows;
use crate::transformer::linear::{Layout, Linear};
use crate::transformer::norm::Norm;
use crate::transformer::strips::Strips;

/// Where the scales and shifts of a block are.
#[derive(Debug, Clone)]
pub(crate) struct Ssf {
    pub norm1: Affine,
    pub qkv: Affine,
    pub project: Affine,
    pub norm2: Affine,
    pub expand: Affine,
    pub contract: Affine,
}

/// Where a scale and a shift are.
#[derive(Debug, Clone)]
pub(crate) struct Affine {
    scale: Range<usize>,
    shift: Range<usize>,
}

impl Ssf {
    /// Adds the tensors of a block.
    pub fn add(to: &mut Parameters, block: &str, d: usize, inner: usize, random: &mut Random) -> Ssf {
        let mut affine = |name: &str, size| Affine::add(to, &format!("{block}.ssf.{name}"), size, random);
        Ssf {
            norm1: affine("norm1", d),
            qkv: affine("qkv", 3 * d),
            project: affine("project", d),
            norm2: affine("norm2", d),
            expand: affine("expand", inner),
            contract: affine("contract", d),
        }
    }

    /// The block with scales and shifts in its weights.
    pub fn apply(&self, values: &[f32], block: &Block, shape: Shape) -> Block {
        let plain = Layout::plain(shape.d);
        let mut queries = vec![1.0; 3 * shape.d];
        queries[..shape.d].fill(shape.query_scale());
        let linear = |affine: &Affine, layer: &Linear, layout: Layout| {
            let (scale, shift) = affine.get(values);
            layer.scaled(&layout.spread(scale), &layout.spread(shift))
        };
        let (scale, shift) = self.qkv.get(values);
        let shift: Vec<f32> = shift.iter().zip(&queries).map(|(shift, scale)| shift * scale).collect();
        let heads = shape.qkv_layout();
        Block {
            norm1: self.norm1.norm(values, &block.norm1),
            qkv: block.qkv.scaled(&heads.spread(scale), &heads.spread(&shift)),
            project: linear(&self.project, &block.project, plain),
            norm2: self.norm2.norm(values, &block.norm2),
            expand: linear(&self.expand, &block.expand, Layout::plain(shape.inner)),
            contract: linear(&self.contract, &block.contract, plain),
            ..block.clone()
        }
    }
}

impl Affine {
    /// Adds a scale and a shift.
    pub fn add(to: &mut Parameters, name: &str, size: usize, random: &mut Random) -> Affine {
        let scale = to.add(format!("{name}.scale"), &[size], Start::Normal(1.0, 0.02), random);
        let shift = to.add(format!("{name}.shift"), &[size], Start::Normal(0.0, 0.02), random);
        Affine { scale, shift }
    }

    /// Scale and shift.
    pub fn get<'a>(&self, values: &'a [f32]) -> (&'a [f32], &'a [f32]) {
        (&values[self.scale.clone()], &values[self.shift.clone()])
    }

    /// A normalisation with both.
    pub fn norm(&self, values: &[f32], norm: &Norm) -> Norm {
        let (scale, shift) = self.get(values);
        norm.scaled(scale, shift)
    }

    /// Adds the gradients, given the outputs y and their gradients.
    pub fn gradients(&self, values: &[f32], y: &Strips, dy: &Strips, out: &mut [f32]) {
        let features = self.scale.len();
        self.gradients_of(values, (0, Layout::plain(features), 1.0), y, dy, out);
    }

    /// The same for some of the outputs: those from `first` on, as many as the layout has. y is `factor` times the output.
    pub fn gradients_of(
        &self,
        values: &[f32],
        (first, layout, factor): (usize, Layout, f32),
        y: &Strips,
        dy: &Strips,
        out: &mut [f32],
    ) {
        let (scale, shift) = self.get(values);
        let (products, sums) = (sum_of_rows(dy, Some(y)), sum_of_rows(dy, None));
        for i in 0..layout.features() {
            let (place, at, factor) = (layout.place(i), first + i, f64::from(factor));
            let (scale, shift) = (f64::from(scale[at]), f64::from(shift[at]) * factor);
            let slope = if scale == 0.0 { 0.0 } else { (products[place] - shift * sums[place]) / scale };
            out[self.scale.start + at] += slope as f32;
            out[self.shift.start + at] += (factor * sums[place]) as f32;
        }
    }
}
