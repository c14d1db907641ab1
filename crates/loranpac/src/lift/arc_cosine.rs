//! The limit of random ReLU features as their number grows: the arc-cosine kernel.
//!
//! For rows p of P drawn from the standard normal distribution, and t the angle between x and z,
//!
//! ```text
//! H'H / E  ->  k(x, z) = E[relu(p'x) relu(p'z)] = |x| |z| (sin t + (pi - t) cos t) / (2 pi)
//! ```
//!
//! The lifted features cannot be computed, only their inner products.

use std::f64::consts::PI;
use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::perm::swap_cols_idx;
use faer::prelude::ReborrowMut;
use faer::{Accum, ColMut, ColRef, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::shapes::shapes_of_cosines;
use crate::linalg::{column_norms, par};

/// `relu(P x)` with infinitely many rows of P.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArcCosine {
    dim: usize,
}

impl ArcCosine {
    /// The lift whose name stands for this limit. Other lifts may have the same.
    pub const LIMIT_OF: &'static str = "relu-random";

    /// Creates the kernel for samples of `dim` features.
    pub fn new(dim: usize) -> Self {
        ArcCosine { dim }
    }

    /// Returns the number of input features, d.
    pub fn dim(&self) -> usize {
        self.dim
    }
}

/// Samples as directions and lengths, in double precision.
#[derive(Debug, Clone)]
pub(crate) struct Polar {
    /// d x n, columns of length 1 (or 0).
    directions: Mat<f64>,
    lengths: Vec<f64>,
}

impl Polar {
    /// Converts the columns of `x`.
    pub(crate) fn new(x: MatRef<'_, f32>) -> Self {
        let lengths = column_norms(x);
        let mut directions = Mat::zeros(x.nrows(), x.ncols());
        directions.par_col_iter_mut().enumerate().for_each(|(j, direction)| {
            if lengths[j] > 0.0 {
                direction.iter_mut().zip(x.col(j).iter()).for_each(|(u, v)| *u = f64::from(*v) / lengths[j]);
            }
        });
        Polar { directions, lengths }
    }

    /// Multiplies the samples by numbers above 0.
    pub(crate) fn scaled(mut self, factors: &[f64]) -> Self {
        self.lengths.iter_mut().zip(factors).for_each(|(length, factor)| *length *= factor);
        self
    }

    pub(crate) fn len(&self) -> usize {
        self.lengths.len()
    }

    pub(crate) fn lengths(&self) -> &[f64] {
        &self.lengths
    }

    /// Computes `k(x, x) = |x|^2 / 2` of each sample.
    pub(crate) fn energies(&self) -> impl Iterator<Item = f64> {
        self.lengths.iter().map(|length| 0.5 * length * length)
    }

    /// Returns the bytes held in memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<f64>() * (self.directions.nrows() + 1) * self.len()
    }

    /// Computes the kernel between the samples in `rows` and those in `columns` for samples of length 1, into `out`.
    /// The cosines are one product. Small angles are computed again from the difference of the directions.
    pub(crate) fn shapes(&self, rows: Range<usize>, other: &Polar, columns: Range<usize>, mut out: MatMut<'_, f64>) {
        let a = self.directions.as_ref().subcols(rows.start, rows.len());
        let b = other.directions.as_ref().subcols(columns.start, columns.len());
        matmul(out.rb_mut(), Accum::Replace, a.transpose(), b, 1.0, par());
        out.par_col_iter_mut().enumerate().for_each(|(j, mut column)| {
            let known = other.lengths[columns.start + j] > 0.0;
            let close: Vec<usize> = (0..column.nrows()).filter(|i| column[*i].abs() > CLOSE).collect();
            evaluate(column.rb_mut());
            for i in close {
                column[i] = shape_of_angle(angle(a.col(i), b.col(j)));
            }
            for (value, length) in column.iter_mut().zip(&self.lengths[rows.clone()]) {
                if !known || *length == 0.0 {
                    *value = 0.0;
                }
            }
        });
    }

    /// Computes the cosines between the samples in `rows` and those in `columns` of `other`, on one thread.
    pub(crate) fn cosines(&self, rows: Range<usize>, other: &Polar, columns: Range<usize>, out: MatMut<'_, f64>) {
        let a = self.directions.as_ref().subcols(rows.start, rows.len());
        let b = other.directions.as_ref().subcols(columns.start, columns.len());
        matmul(out, Accum::Replace, a.transpose(), b, 1.0, Par::Seq);
    }

    /// Computes the kernel of the same for samples of length 1, on one thread. Entries of samples of length 0 have no
    /// meaning. Small angles are not computed again, as [`Polar::shapes`] does: errors are some rounding units of 1.
    pub(crate) fn tile(&self, rows: Range<usize>, other: &Polar, columns: Range<usize>, mut out: MatMut<'_, f64>) {
        self.cosines(rows, other, columns, out.rb_mut());
        out.col_iter_mut().for_each(evaluate);
    }

    /// Returns some of the samples.
    pub(crate) fn select(&self, places: &[usize]) -> Polar {
        let directions = Mat::from_fn(self.directions.nrows(), places.len(), |i, j| self.directions[(i, places[j])]);
        Polar { directions, lengths: places.iter().map(|place| self.lengths[*place]).collect() }
    }

    /// Exchanges two samples.
    pub(crate) fn swap(&mut self, i: usize, j: usize) {
        swap_cols_idx(self.directions.as_mut(), i, j);
        self.lengths.swap(i, j);
    }

    /// Returns the squared distance between the directions of two samples.
    pub(crate) fn distance(&self, i: usize, j: usize) -> f64 {
        (self.directions.col(i) - self.directions.col(j)).squared_norm_l2()
    }

    /// Computes the kernel between all of these samples and those in `columns` of `other`.
    pub(crate) fn kernel(&self, rows: Range<usize>, columns: Range<usize>, mut out: MatMut<'_, f64>) {
        self.shapes(rows.clone(), self, columns.clone(), out.rb_mut());
        for (j, column) in columns.enumerate() {
            let lengths = self.lengths[rows.clone()].iter();
            out.rb_mut().col_mut(j).iter_mut().zip(lengths).for_each(|(v, length)| *v *= length * self.lengths[column]);
        }
    }
}

/// Above this cosine the angle is computed from the difference of the directions: a product of numbers near 1 has lost
/// it.
const CLOSE: f64 = 1.0 - 1e-6;

/// Returns the angle between two directions, exact to rounding even close to 0 or pi.
fn angle(a: ColRef<'_, f64>, b: ColRef<'_, f64>) -> f64 {
    let (mut apart, mut together) = (0.0, 0.0);
    for (u, v) in a.iter().zip(b.iter()) {
        apart += (u - v) * (u - v);
        together += (u + v) * (u + v);
    }
    2.0 * f64::atan2(f64::sqrt(apart), f64::sqrt(together))
}

/// Replaces the cosines of a column by the kernel of samples of length 1. Well-conditioned: its slope is
/// `(pi - t) / (2 pi)`.
fn evaluate(column: ColMut<'_, f64>) {
    match column.try_as_col_major_mut() {
        Some(column) => shapes_of_cosines(column.as_slice_mut()),
        None => unreachable!("columns of a matrix are contiguous"),
    }
}

/// Computes `(sin t + (pi - t) cos t) / (2 pi)`.
fn shape_of_angle(t: f64) -> f64 {
    if t > 0.5 * PI {
        return shape_near_pi(PI - t);
    }
    (t.sin() + (PI - t) * t.cos()) / (2.0 * PI)
}

/// Below this, the terms of the kernel near pi cancel.
const SERIES: f64 = 0.3;

/// Computes the same as a function of pi - t: `(sin d - d cos d) / (2 pi)`, by its series where the terms would cancel.
fn shape_near_pi(d: f64) -> f64 {
    if d > SERIES {
        return (d.sin() - d * d.cos()) / (2.0 * PI);
    }
    let square = d * d;
    let tail = 1.0 / 840.0 - square * (1.0 / 45_360.0 - square * (1.0 / 3_991_680.0 - square / 518_918_400.0));
    d * square * (1.0 / 3.0 - square * (1.0 / 30.0 - square * tail)) / (2.0 * PI)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lift::{self, LiftSpec};

    fn kernel_of(samples: &[&[f32]]) -> Mat<f64> {
        let numbers = samples.concat();
        let polar = Polar::new(MatRef::from_column_major_slice(&numbers, samples[0].len(), samples.len()));
        let mut out = Mat::zeros(samples.len(), samples.len());
        polar.kernel(0..samples.len(), 0..samples.len(), out.as_mut());
        out
    }

    /// The kernel is the mean of explicit lifts, up to a Monte-Carlo error that falls as 1/sqrt(E).
    #[test]
    fn the_kernel_is_the_limit_of_random_relu_features() {
        let (dim, samples) = (6, 9);
        let x: Vec<f32> = (0..dim * samples).map(|i| ((i * 37 + 11) % 23) as f32 / 7.0 - 1.5).collect();
        let rows: Vec<&[f32]> = x.chunks(dim).collect();
        let exact = kernel_of(&rows);
        let mut scaled_errors = Vec::new();
        for width in [1_000, 4_000, 16_000, 64_000] {
            let seeds = 4;
            let mut squared = 0.0;
            for seed in 0..seeds {
                let map = lift::build("relu-random", LiftSpec { seed, ..LiftSpec::new(dim, width) }).unwrap();
                let mut h = Mat::<f32>::zeros(width, samples);
                map.lift(MatRef::from_column_major_slice(&x, dim, samples), h.as_mut());
                for i in 0..samples {
                    for j in 0..samples {
                        let sum: f64 = h.col(i).iter().zip(h.col(j).iter()).map(|(a, b)| f64::from(a * b)).sum();
                        let relative = (sum / width as f64 - exact[(i, j)]) / (exact[(i, i)] * exact[(j, j)]).sqrt();
                        squared += relative * relative / f64::from(seeds as u32 * (samples * samples) as u32);
                    }
                }
            }
            scaled_errors.push((squared * width as f64).sqrt());
        }
        // The standard deviation of relu(a) relu(b) over its mean is of order one; it must not grow with the width.
        assert!(scaled_errors.iter().all(|error| (0.5..3.0).contains(error)), "{scaled_errors:?}");
    }

    #[test]
    fn known_angles() {
        let k = kernel_of(&[&[2.0, 0.0], &[0.0, 3.0], &[-5.0, 0.0], &[1.0, 1.0]]);
        assert_eq!(k[(0, 0)], 2.0);
        assert!((k[(0, 1)] - 6.0 / (2.0 * PI)).abs() < 1e-15);
        assert_eq!(k[(0, 2)], 0.0);
        let t: f64 = PI / 4.0;
        let expected = 2.0 * 2f64.sqrt() * (t.sin() + (PI - t) * t.cos()) / (2.0 * PI);
        assert!((k[(0, 3)] - expected).abs() < 1e-15);
    }

    /// Angles far below the square root of the rounding unit, at both ends, against the series of the kernel.
    #[test]
    fn angles_do_not_cancel_near_0_and_pi() {
        for t in [1e-3f32, 1e-5, 1e-7, 1e-9] {
            let direction = Polar::new(MatRef::from_column_major_slice(&[1.0, 0.0, 1.0, t, -1.0, t], 2, 3));
            let (u, exact) = (direction.directions.as_ref(), f64::from(t).atan());
            assert!((angle(u.col(0), u.col(1)) - exact).abs() < 1e-15 * exact + 1e-24);
            let opposite = shape_of_angle(angle(u.col(0), u.col(2)));
            let series = exact.powi(3) / 3.0 / (2.0 * PI);
            assert!((opposite - series).abs() < 1e-3 * series + 1e-40, "{t}: {opposite:e} {series:e}");
        }
        // The branches agree where they meet.
        for (low, high) in [(SERIES.next_down(), SERIES.next_up()), (0.5 * PI - 1e-13, 0.5 * PI + 1e-13)] {
            assert!((shape_near_pi(low) / shape_near_pi(high) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn zero_vectors_duplicates_and_extreme_lengths() {
        let k = kernel_of(&[&[0.0, 0.0], &[1e-18, 1e-18], &[1e15, 0.0], &[0.3, 0.7], &[0.3, 0.7], &[0.6, 1.4]]);
        assert!((0..6).all(|i| k[(0, i)] == 0.0) && k.is_all_finite());
        assert_eq!(k[(3, 3)], k[(3, 4)]);
        assert!((k[(3, 5)] - 2.0 * k[(3, 3)]).abs() < 1e-15);
        assert!((k[(2, 2)] / 5e29 - 1.0).abs() < 1e-6);
    }
}
