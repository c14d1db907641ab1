//! `L (A + shift I)^-1 R` for many shifts of a symmetric matrix, from one reduction.
//!
//! ```text
//! A = Q1 B Q1',   L (A + shift I)^-1 R = (L Q1) (B + shift I)^-1 (Q1' R),   B of bandwidth b
//! ```
//!
//! The reduction costs `4/3 n^3` flops, all in products (`band`). A shift preserves the band; it then costs `n b^2`
//! flops to factorise, `4 n b` for each column of R, and one product.

use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Mat, MatMut, MatRef};

use crate::band;
use crate::linalg::product;
use crate::reflections::BAND;

/// A symmetric matrix prepared for many shifts.
pub(crate) struct Shifted {
    /// B's lower band, column by column.
    band: Vec<[f64; BAND + 1]>,
    /// L Q1.
    left: Mat<f64>,
    /// R' Q1.
    right: Mat<f64>,
}

impl Shifted {
    /// Reduces the matrix in the lower triangle of `a` (destroyed). `left` is v x n, `right` n x c.
    pub fn new(mut a: MatMut<'_, f64>, left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Self {
        let (band, first) = band::reduce_to_band(a.rb_mut());
        let (mut left, mut right) = (left.to_owned(), right.transpose().to_owned());
        first.apply(a.rb(), left.as_mut());
        first.apply(a.rb(), right.as_mut());
        Shifted { band, left, right }
    }

    /// Estimates the largest eigenvalue from below, to about a percent (the power method on B, starting from a vector
    /// of mixed signs).
    pub fn largest(&self) -> f64 {
        let n = self.band.len();
        let mut x: Vec<f64> = (0..n).map(|i| if (i * i / 3) % 2 == 0 { 1.0 } else { -0.7 }).collect();
        let mut value = 0.0;
        for _ in 0..100 {
            let mut y = vec![0.0; n];
            for (j, column) in self.band.iter().enumerate() {
                y[j] += column[0] * x[j];
                for (i, b) in (j + 1..n).zip(&column[1..]) {
                    y[i] += b * x[j];
                    y[j] += b * x[i];
                }
            }
            value = y.iter().map(|v| v * v).sum::<f64>().sqrt();
            if value == 0.0 || !value.is_finite() {
                return value;
            }
            x = y.iter().map(|v| v / value).collect();
        }
        value
    }

    /// Computes `L (A + shift I)^-1 R`, v x c. Not finite if a pivot vanishes.
    pub fn solve(&self, shift: f64) -> Mat<f64> {
        let n = self.band.len();
        // B + shift I = L D L' in place: D on the diagonal, L below it.
        let mut band = self.band.clone();
        band.iter_mut().for_each(|column| column[0] += shift);
        for j in 0..n {
            let pivot = band[j][0];
            let factors: [f64; BAND] = std::array::from_fn(|i| band[j][i + 1] / pivot);
            for (i, later) in band[j + 1..].iter_mut().take(BAND).enumerate() {
                let scaled = factors[i] * pivot;
                later.iter_mut().zip(&factors[i..]).for_each(|(b, factor)| *b -= scaled * factor);
            }
            band[j][1..].copy_from_slice(&factors);
        }
        // Rows of X = R' Q1 are systems; a column of X is one unknown of each.
        let mut x = self.right.clone();
        for (j, column) in band.iter().enumerate() {
            for (i, factor) in (j + 1..n).zip(&column[1..]) {
                subtract_column(x.as_mut(), i, j, *factor);
            }
        }
        for (j, column) in band.iter().enumerate().rev() {
            x.col_mut(j).iter_mut().for_each(|v| *v /= column[0]);
            for (i, factor) in (j + 1..n).zip(&column[1..]) {
                subtract_column(x.as_mut(), j, i, *factor);
            }
        }
        product(self.left.as_ref(), x.transpose())
    }
}

/// Computes `x_i <- x_i - factor x_j`.
fn subtract_column(x: MatMut<'_, f64>, i: usize, j: usize, factor: f64) {
    let (first, second) = x.split_at_col_mut(i.max(j));
    let (low, high) = (first.col_mut(i.min(j)), second.col_mut(0));
    let (target, source) = if i < j { (low, high) } else { (high, low) };
    target.iter_mut().zip(source.iter()).for_each(|(t, s)| *t -= factor * s);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::with_spectrum;

    #[test]
    fn one_reduction_serves_every_shift() {
        for n in [1, 2, 33, 34, 40, 150] {
            let values: Vec<f64> = (0..n).map(|i| (i % 7) as f64 + if i + 1 == n { 9.0 } else { 0.0 }).collect();
            let a = with_spectrum(&values);
            let left = Mat::from_fn(5, n, |i, j| ((i * 31 + j * 7) % 17) as f64 - 8.0);
            let right = Mat::from_fn(n, 3, |i, j| ((i * 13 + j * 5) % 11) as f64 - 5.0);
            let shifted = Shifted::new(a.clone().as_mut(), left.as_ref(), right.as_ref());
            let largest = values.iter().copied().fold(0.0, f64::max);
            assert!((0.99 * largest..1.000_001 * largest).contains(&shifted.largest()), "{}", shifted.largest());
            for shift in [0.5, 3.0, 1e6] {
                // (A + shift I) X = R, checked by substitution.
                let x =
                    Shifted::new(a.clone().as_mut(), Mat::<f64>::identity(n, n).as_ref(), right.as_ref()).solve(shift);
                let back = &a * &x + &x * shift;
                assert!((back - &right).norm_max() < 1e-10, "n = {n}, shift {shift}");
                let off = (shifted.solve(shift) - &left * x).norm_max();
                assert!(off < 1e-9, "n = {n}, shift {shift}: {off:e}");
            }
        }
    }
}
