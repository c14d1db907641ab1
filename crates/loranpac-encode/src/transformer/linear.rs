//! Linear layers: `y = x W' + b`, with what follows them (activation, residual connection) done while a tile is in registers or L1.

use std::ops::Range;
use std::sync::Arc;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::kernel::{ROWS, product};
use super::math::Activation;
use super::strips::{Left, Strip, Strips, WIDTH};

/// Bytes of the left factor that are multiplied with all weights before the next: they share a level-2 cache with the weights of 32 outputs.
const BLOCK: usize = 288 << 10;

/// How features are placed in strips: in groups, each padded to whole strips.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    groups: usize,
    group: usize,
}

impl Layout {
    /// One group.
    pub fn plain(features: usize) -> Layout {
        Layout { groups: 1, group: features }
    }

    /// A group for each of some heads.
    pub fn heads(heads: usize, features: usize) -> Layout {
        Layout { groups: heads, group: features }
    }

    /// Strips per group.
    pub fn strips_per_group(self) -> usize {
        self.group.div_ceil(WIDTH)
    }

    /// Strips in all.
    pub fn strips(self) -> usize {
        self.groups * self.strips_per_group()
    }

    /// Features in all.
    pub fn features(self) -> usize {
        self.groups * self.group
    }

    /// Where a feature is, padding included.
    pub fn place(self, feature: usize) -> usize {
        feature / self.group * self.strips_per_group() * WIDTH + feature % self.group
    }

    /// A number for each feature, in its place. Padding is zero.
    pub fn spread(self, numbers: &[f32]) -> Vec<Strip> {
        let mut strips = vec![Strip::ZERO; self.strips()];
        for (feature, number) in numbers.iter().enumerate() {
            let place = self.place(feature);
            strips[place / WIDTH].0[place % WIDTH] = *number;
        }
        strips
    }
}

/// A linear layer. The weights of 32 outputs are together: a strip for each input. Clones share the weights.
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    inputs: usize,
    weights: Arc<Vec<Strip>>,
    bias: Vec<Strip>,
}

/// What is done with the product.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Then {
    /// `y = x W' + b`.
    Store,
    /// `y = f(x W' + b)`.
    Activate(Activation),
    /// `y += x W' + b`.
    Add,
}

impl Linear {
    /// From a matrix of outputs x inputs, row by row, and a bias.
    pub fn new(weights: &[f32], bias: Option<&[f32]>, outputs: Layout, inputs: Layout) -> Linear {
        assert_eq!(weights.len(), outputs.features() * inputs.features());
        let padded = inputs.strips() * WIDTH;
        let mut packed = vec![Strip::ZERO; outputs.strips() * padded];
        for (output, row) in weights.chunks_exact(inputs.features()).enumerate() {
            let output = outputs.place(output);
            let panel = &mut packed[output / WIDTH * padded..][..padded];
            for (input, weight) in row.iter().enumerate() {
                panel[inputs.place(input)].0[output % WIDTH] = *weight;
            }
        }
        let biases = outputs.spread(bias.unwrap_or_default());
        Linear { inputs: padded, weights: Arc::new(packed), bias: biases }
    }

    /// The layer followed by a scale and a shift of each output, given in the places of the outputs.
    pub fn scaled(&self, scale: &[Strip], shift: &[Strip]) -> Linear {
        let mut layer = self.clone();
        let panels = Arc::make_mut(&mut layer.weights).par_chunks_mut(self.inputs).zip(&mut layer.bias);
        panels.zip(scale.par_iter().zip(shift)).for_each(|((weights, bias), (scale, shift))| {
            for weights in weights {
                weights.0.iter_mut().zip(&scale.0).for_each(|(weight, scale)| *weight *= scale);
            }
            for (bias, (scale, shift)) in bias.0.iter_mut().zip(scale.0.iter().zip(&shift.0)) {
                *bias = *bias * scale + shift;
            }
        });
        layer
    }

    /// Adds `factor * B A` to the weights of the outputs from a strip on. A has `rank` rows of inputs; B is a layer from them to the outputs.
    pub fn add_product(&mut self, strip: usize, b: &Linear, a: &[f32], rank: usize, factor: f32) {
        let columns = a.len() / rank;
        let panels = Arc::make_mut(&mut self.weights).par_chunks_mut(self.inputs).skip(strip);
        panels.zip(b.weights.par_chunks(b.inputs)).for_each(|(weights, b)| {
            for (input, weights) in weights.iter_mut().take(columns).enumerate() {
                for (r, b) in b.iter().take(rank).enumerate() {
                    let a = factor * a[r * columns + input];
                    weights.0.iter_mut().zip(&b.0).for_each(|(weight, b)| *weight += a * b);
                }
            }
        });
    }

    /// Strips of its outputs.
    pub fn strips(&self) -> usize {
        self.bias.len()
    }

    /// The layer with these strips of its outputs alone.
    pub fn outputs(&self, strips: Range<usize>) -> Outputs<'_> {
        let weights = &self.weights[strips.start * self.inputs..strips.end * self.inputs];
        Outputs { inputs: self.inputs, weights, bias: &self.bias[strips] }
    }

    /// Applies the layer to all rows of x. Gives y its shape, unless it is added to.
    pub fn forward(&self, x: &Strips, y: &mut Strips, then: Then) {
        self.outputs(0..self.bias.len()).forward(x, y, then);
    }
}

/// Some outputs of a linear layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outputs<'a> {
    pub inputs: usize,
    pub weights: &'a [Strip],
    pub bias: &'a [Strip],
}

impl Outputs<'_> {
    /// Applies them to all rows of x. Gives y its shape, unless it is added to.
    pub fn forward(self, x: &Strips, y: &mut Strips, then: Then) {
        let strips = self.bias.len();
        assert_eq!(x.strips() * WIDTH, self.inputs, "inputs of a linear layer");
        if matches!(then, Then::Add) {
            assert_eq!((y.rows(), y.strips()), (x.rows(), strips), "shape of a residual connection");
        } else {
            y.reshape(x.rows(), strips);
        }
        // Whole tiles.
        let block = (BLOCK / (self.inputs * size_of::<f32>() * ROWS)).max(4) * ROWS;
        let x = x.from(0);
        let mut pieces = y.cut_evenly(block);
        pieces.par_iter_mut().enumerate().for_each(|(i, y)| {
            let (first, panel) = (i / strips * block, i % strips);
            let weights = &self.weights[panel * self.inputs..][..self.inputs];
            Arch::new().dispatch(Panel { x, first, weights, bias: &self.bias[panel], y, then });
        });
    }
}

/// 32 outputs for some rows.
struct Panel<'a> {
    x: Left<'a>,
    first: usize,
    weights: &'a [Strip],
    bias: &'a Strip,
    y: &'a mut [Strip],
    then: Then,
}

impl WithSimd for Panel<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Panel { x, first, weights, bias, y, then } = self;
        let bias = bias.vectors::<S>();
        product(simd, x, first, y.len(), weights, |row, tile| {
            for (y, strip) in y[row..].iter_mut().zip(tile.iter()) {
                // A closure per number might not be inlined, and would then call a function for each instruction.
                for ((y, x), bias) in y.vectors_mut::<S>().iter_mut().zip(strip.vectors::<S>()).zip(bias) {
                    let x = simd.add_f32s(*x, *bias);
                    *y = match then {
                        Then::Store => x,
                        Then::Activate(activation) => activation.apply(simd, x),
                        Then::Add => simd.add_f32s(*y, x),
                    };
                }
            }
        });
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::transformer::testing::{close, matrix, random, rows};

    /// `x W' + b` in f64.
    pub(crate) fn naive(x: &[f32], w: &[f32], b: &[f32], inputs: usize) -> Vec<f64> {
        let mut y = Vec::new();
        for x in x.chunks(inputs) {
            for (w, b) in w.chunks(inputs).zip(b) {
                let sum: f64 = x.iter().zip(w).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
                y.push(sum + f64::from(*b));
            }
        }
        y
    }

    #[test]
    fn a_layer_is_the_product_in_f64_for_odd_shapes() {
        for (t, n, k) in [(1, 1, 1), (5, 33, 40), (13, 64, 96), (100, 70, 130), (25, 32, 3072)] {
            let (x, w, b) = (random(t * k, 1), random(n * k, 2), random(n, 3));
            let layer = Linear::new(&w, Some(&b), Layout::plain(n), Layout::plain(k));
            let mut y = Strips::default();
            layer.forward(&matrix(&x, k), &mut y, Then::Store);
            let mut expected = naive(&x, &w, &b, k);
            close(&rows(&y, n), &expected, 3e-6);
            layer.forward(&matrix(&x, k), &mut y, Then::Add);
            expected.iter_mut().for_each(|y| *y *= 2.0);
            close(&rows(&y, n), &expected, 3e-6);
        }
    }

    #[test]
    fn heads_are_padded_with_zeros() {
        // 2 heads of 3 features: the second starts with the second strip.
        let w: Vec<f32> = (1..=6).map(|i| i as f32).collect();
        let heads = Layout::heads(2, 3);
        let layer = Linear::new(&w, None, heads, Layout::plain(1));
        let mut y = Strips::default();
        layer.forward(&matrix(&[1.0], 1), &mut y, Then::Store);
        assert_eq!(rows(&y, 35)[..4], [1.0, 2.0, 3.0, 0.0]);
        assert_eq!(rows(&y, 35)[32..], [4.0, 5.0, 6.0]);
        let back = Linear::new(&w, None, Layout::plain(1), heads);
        let mut z = Strips::default();
        back.forward(&y, &mut z, Then::Store);
        assert_eq!(rows(&z, 1), [91.0]);
    }

    #[test]
    fn a_row_does_not_depend_on_the_other_rows() {
        let (n, k) = (96, 200);
        let (x, w) = (random(50 * k, 1), random(n * k, 2));
        let layer = Linear::new(&w, None, Layout::plain(n), Layout::plain(k));
        let mut all = Strips::default();
        layer.forward(&matrix(&x, k), &mut all, Then::Store);
        let mut one = Strips::default();
        layer.forward(&matrix(&x[37 * k..38 * k], k), &mut one, Then::Store);
        assert_eq!(rows(&all, n)[37 * n..38 * n], rows(&one, n));
    }
}
