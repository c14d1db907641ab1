//! Gradients of linear layers.
//!
//! ```text
//! y = x W' + b:    dx = dy W;    dW = dy' x,  db = the sum of the rows of dy     (only where W and b are trained)
//! ```
//!
//! The weights are transposed for each call: that costs one movement per weight, where the product costs one multiplication per weight and
//! token, and saves a second copy of the model.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::transformer::kernel::outer;
use crate::transformer::linear::{Linear, Outputs, Then};
use crate::transformer::strips::{Strip, Strips, WIDTH};

/// Memory for transposed weights, which calls reuse.
#[derive(Debug, Default)]
pub(crate) struct Transposed {
    weights: Vec<Strip>,
    bias: Vec<Strip>,
}

impl Transposed {
    /// `dx = dy W`, or added to dx.
    pub fn backward(&mut self, layer: &Linear, dy: &Strips, dx: &mut Strips, then: Then) {
        self.backward_of(layer, 0..layer.strips(), dy, dx, then);
    }

    /// The same from the gradients of some strips of the outputs.
    pub fn backward_of(&mut self, layer: &Linear, strips: Range<usize>, dy: &Strips, dx: &mut Strips, then: Then) {
        let from = layer.outputs(strips);
        let (inputs, outputs) = (from.inputs, from.bias.len() * WIDTH);
        let size = inputs / WIDTH * outputs;
        if self.weights.len() < size {
            self.weights.resize(size, Strip::ZERO);
        }
        self.bias.resize(inputs / WIDTH, Strip::ZERO);
        self.weights[..size].par_chunks_mut(outputs).enumerate().for_each(|(s, panel)| {
            for (panel, weights) in panel.chunks_exact_mut(WIDTH).zip(from.weights.chunks_exact(inputs)) {
                transpose(&weights[s * WIDTH..][..WIDTH], panel);
            }
        });
        Outputs { inputs: outputs, weights: &self.weights[..size], bias: &self.bias }.forward(dy, dx, then);
    }
}

/// The transpose of 32 x 32 numbers.
fn transpose(from: &[Strip], to: &mut [Strip]) {
    for (j, to) in to.iter_mut().enumerate() {
        to.0.iter_mut().zip(from).for_each(|(to, from)| *to = from.0[j]);
    }
}

/// `A' B`, summed over rows: a matrix with a row for each feature of A, padding included.
pub(crate) fn product_over_rows(a: &Strips, b: &Strips) -> Vec<Vec<Strip>> {
    assert_eq!(a.rows(), b.rows(), "rows of a product over rows");
    let (rows, columns) = (a.rows(), b.strips());
    let mut tiles = vec![[Strip::ZERO; WIDTH]; a.strips() * columns];
    tiles.par_iter_mut().enumerate().for_each(|(i, tile)| {
        let (a, b) = (a.strip(i / columns), b.strip(i % columns));
        Arch::new().dispatch(Outer { a: &a[..rows], b: &b[..rows], tile });
    });
    let row = |i: usize| (0..columns).map(|c| tiles[i / WIDTH * columns + c][i % WIDTH]).collect();
    (0..a.strips() * WIDTH).map(row).collect()
}

/// Writes the first `columns` numbers of each of the first rows of a matrix, times a factor, behind each other.
pub(crate) fn flatten(matrix: &[Vec<Strip>], columns: usize, scale: f32, out: &mut [f32]) {
    for (row, out) in matrix.iter().zip(out.chunks_exact_mut(columns)) {
        for (strip, out) in row.iter().zip(out.chunks_mut(WIDTH)) {
            out.iter_mut().zip(&strip.0).for_each(|(out, x)| *out += scale * x);
        }
    }
}

/// Rows that are summed in f32 before their sum is added in f64.
const BLOCK: usize = 64;

/// The sum of the rows of x, or of x ∘ y, in f64: one number for each feature, padding included.
pub(crate) fn sum_of_rows(x: &Strips, y: Option<&Strips>) -> Vec<f64> {
    let sum = |s: usize| {
        let mut total = [0.0f64; WIDTH];
        let rows = &x.strip(s)[..x.rows()];
        for (i, block) in rows.chunks(BLOCK).enumerate() {
            let mut part = [0.0f32; WIDTH];
            match y {
                None => block.iter().for_each(|x| part.iter_mut().zip(&x.0).for_each(|(sum, x)| *sum += x)),
                Some(y) => block.iter().zip(&y.strip(s)[i * BLOCK..]).for_each(|(x, y)| {
                    part.iter_mut().zip(x.0.iter().zip(&y.0)).for_each(|(sum, (x, y))| *sum += x * y);
                }),
            }
            total.iter_mut().zip(&part).for_each(|(total, part)| *total += f64::from(*part));
        }
        total
    };
    (0..x.strips()).into_par_iter().flat_map_iter(sum).collect()
}

struct Outer<'a> {
    a: &'a [Strip],
    b: &'a [Strip],
    tile: &'a mut [Strip; WIDTH],
}

impl WithSimd for Outer<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        outer(simd, self.a, self.b, self.tile);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transformer::linear::Layout;
    use crate::transformer::testing::{close, matrix, random, rows};

    #[test]
    fn gradients_of_a_layer_are_those_of_f64() {
        for (t, n, k) in [(1, 1, 1), (5, 33, 40), (70, 64, 96), (100, 70, 130)] {
            let (x, w, dy) = (random(t * k, 1), random(n * k, 2), random(t * n, 3));
            let layer = Linear::new(&w, None, Layout::plain(n), Layout::plain(k));
            let dy_strips = matrix(&dy, n);
            let mut dx = Strips::default();
            Transposed::default().backward(&layer, &dy_strips, &mut dx, Then::Store);
            let wide = |x: f32| f64::from(x);
            let expected: Vec<f64> =
                (0..t * k).map(|i| (0..n).map(|o| wide(dy[i / k * n + o]) * wide(w[o * k + i % k])).sum()).collect();
            close(&rows(&dx, k), &expected, 3e-6);
            let mut dw = vec![1.0; n * k];
            flatten(&product_over_rows(&dy_strips, &matrix(&x, k)), k, 2.0, &mut dw);
            let expected: Vec<f64> = (0..n * k)
                .map(|i| 1.0 + 2.0 * (0..t).map(|t| wide(dy[t * n + i / k]) * wide(x[t * k + i % k])).sum::<f64>())
                .collect();
            close(&dw, &expected, 3e-6);
            let sums: Vec<f32> = sum_of_rows(&dy_strips, Some(&dy_strips))[..n].iter().map(|x| *x as f32).collect();
            let expected: Vec<f64> = (0..n).map(|o| (0..t).map(|t| wide(dy[t * n + o]).powi(2)).sum()).collect();
            close(&sums, &expected, 3e-6);
        }
    }
}
