//! S in fixed point: four bytes per number, for matrices of many samples whose features were computed in f32.
//!
//! ```text
//! S_ij = q_ij 2^(e_i + e_j - 30),   q_ij an integer,   2^e_i the least power of two above sqrt(S_ii)
//! ```
//!
//! S is semidefinite, so that `|q_ij| <= 2^30`. The diagonal is not rounded. The grid follows from the diagonal, and rounding a
//! matrix that is on its grid changes nothing.

use faer::linalg::matmul::matmul;
use faer::prelude::ReborrowMut;
use faer::{Accum, MatRef, Par};
use rayon::prelude::*;

use super::Gram;

/// Bits of a number of the largest size.
const BITS: i32 = 30;
/// Columns that one thread updates and rounds at a time.
const PANEL: usize = 128;
/// Exponents of row scales: those of all features in f32, and no product of them overflows.
const EXPONENTS: std::ops::RangeInclusive<i32> = -400..=400;

/// A matrix on its grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// The diagonal.
    pub diagonal: Vec<f64>,
    /// The numbers above the diagonal, column after column.
    pub numbers: Vec<i32>,
}

impl Gram {
    /// Returns whether S is on its grid. [`Gram::add`] keeps it there; every other change leaves it.
    pub fn is_on_grid(&self) -> bool {
        self.on_grid
    }

    /// Keeps S in double precision from now on.
    pub(crate) fn leave_grid(&mut self) {
        self.on_grid = false;
    }

    /// Rounds S to its grid.
    pub fn round(&mut self) {
        self.add_and_round(MatRef::from_column_major_slice(&[], self.rank(), 0));
    }

    /// Computes `S <- S + A A'`, rounded to its grid. Cost: `r^2 m` flops in f64, and one pass over S.
    pub(super) fn add_and_round(&mut self, a: MatRef<'_, f64>) {
        assert_eq!(a.nrows(), self.rank());
        a.col_iter().for_each(|a| self.diagonal.iter_mut().zip(a.iter()).for_each(|(d, v)| *d += v * v));
        let scales: Vec<f64> = self.diagonal.iter().map(|d| scale(*d)).collect();
        self.view_mut().par_col_chunks_mut(PANEL).enumerate().for_each(|(panel, columns)| {
            let (first, count) = (panel * PANEL, columns.ncols());
            let mut above = columns.subrows_mut(0, first + count);
            if a.ncols() > 0 {
                let (left, right) = (a.subrows(0, first + count), a.subrows(first, count).transpose());
                matmul(above.rb_mut(), Accum::Add, left, right, 1.0, Par::Seq);
            }
            for (j, column) in above.col_iter_mut().enumerate() {
                // Adding 1.5 * 2^52 steps of the grid leaves no bits below a step.
                let large = 1.5 * power(52 - BITS) * scales[first + j];
                let numbers = column.subrows_mut(0, first + j).iter_mut().zip(&scales);
                numbers.for_each(|(v, scale)| *v = (*v + large * scale) - large * scale);
            }
        });
        self.on_grid = true;
    }

    /// Returns S in fixed point, exactly; None if it is not on its grid.
    pub fn to_grid(&self) -> Option<Grid> {
        if !self.on_grid {
            return None;
        }
        let inverse: Vec<f64> = self.diagonal.iter().map(|d| 1.0 / scale(*d)).collect();
        let mut numbers = vec![0; self.rank() * self.rank().saturating_sub(1) / 2];
        let mut columns = Vec::with_capacity(self.rank());
        let mut rest = &mut numbers[..];
        for j in 0..self.rank() {
            let (column, after) = rest.split_at_mut(j);
            columns.push(column);
            rest = after;
        }
        let s = self.view();
        let exact = columns.into_par_iter().enumerate().all(|(j, column)| {
            let steps = power(BITS) * inverse[j];
            column.iter_mut().zip(s.col(j).iter()).zip(&inverse).all(|((q, v), inverse)| {
                let value = v * (steps * inverse);
                *q = value as i32;
                f64::from(*q) == value
            })
        });
        exact.then(|| Grid { diagonal: self.diagonal.clone(), numbers })
    }

    /// Creates S from fixed point; returns None if the sizes do not fit together.
    pub fn from_grid(diagonal: &[f64], numbers: &[i32]) -> Option<Self> {
        let rank = diagonal.len();
        if rank.checked_mul(rank.saturating_sub(1)) != numbers.len().checked_mul(2) {
            return None;
        }
        let mut gram = Gram::zeros(rank);
        let scales: Vec<f64> = diagonal.iter().map(|d| scale(*d)).collect();
        gram.view_mut().par_col_iter_mut().enumerate().for_each(|(j, column)| {
            let (start, step) = (j * j.saturating_sub(1) / 2, power(-BITS) * scales[j]);
            let column = column.subrows_mut(0, j).iter_mut().zip(&numbers[start..start + j]);
            column.zip(&scales).for_each(|((v, q), scale)| *v = f64::from(*q) * (step * scale));
        });
        gram.diagonal.copy_from_slice(diagonal);
        gram.on_grid = true;
        Some(gram)
    }

    /// Returns a bound on the eigenvalues of what rounding to a grid adds to a matrix of this size and trace, of a few dozen
    /// roundings: each entry of a row of length r is off by a random part of a step.
    pub(crate) fn grid_noise(rank: usize, trace: f64) -> f64 {
        power(2 - BITS) * trace.max(0.0) / (rank as f64).sqrt().max(1.0)
    }
}

/// Returns the least power of two above the root of a number on the diagonal.
fn scale(d: f64) -> f64 {
    // d < 2^exponent.
    let exponent = (d.to_bits() >> 52 & 0x7ff) as i32 - 1022;
    power((exponent + 1).div_euclid(2).clamp(*EXPONENTS.start(), *EXPONENTS.end()))
}

/// Returns `2^exponent`.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::{Mat, Side};

    /// Features of very different sizes, all above zero as after ReLU; the third is never active.
    fn features(rank: usize, samples: usize, seed: usize) -> Mat<f64> {
        Mat::from_fn(rank, samples, |i, j| match i {
            2 => 0.0,
            _ => ((i * 37 + j * 101 + seed * 7) % 1009) as f64 / 1009.0 * 10f64.powi(i as i32 % 9 - 4),
        })
    }

    #[test]
    fn sums_on_the_grid_are_off_by_half_a_step_each() {
        for rank in [1, 5, 127, 128, 129, 300] {
            let (mut gram, mut exact) = (Gram::zeros(rank), Mat::<f64>::zeros(rank, rank));
            gram.round();
            for t in 0..5 {
                let h = features(rank, 40, t);
                gram.add(h.as_ref());
                exact += &h * h.transpose();
                assert!(gram.is_on_grid());
            }
            let s = gram.to_matrix();
            for i in 0..rank {
                for j in 0..rank {
                    let tolerance = 5.0 * 2.0 * 2f64.powi(-BITS) * (exact[(i, i)] * exact[(j, j)]).sqrt();
                    let off = (s[(i, j)] - exact[(i, j)]).abs();
                    assert!(off <= tolerance, "{rank}: {i}, {j}: {off:e} > {tolerance:e}");
                }
            }
        }
    }

    #[test]
    fn a_matrix_on_the_grid_is_its_fixed_point_form_exactly() {
        for rank in [0, 1, 2, 130, 257] {
            let mut gram = Gram::zeros(rank);
            gram.add(features(rank, 30, 1).as_ref());
            assert!(gram.to_grid().is_none(), "it was not rounded");
            gram.round();
            let before = gram.to_matrix();
            gram.round();
            assert_eq!(gram.to_matrix(), before, "rounding twice changes nothing");
            let grid = gram.to_grid().unwrap();
            assert!(grid.numbers.iter().all(|q| q.unsigned_abs() <= 1 << BITS));
            let mut read = Gram::from_grid(&grid.diagonal, &grid.numbers).unwrap();
            assert_eq!(read.to_matrix(), before);
            for g in [&mut gram, &mut read] {
                g.add(features(rank, 3, 2).as_ref());
            }
            assert_eq!(read.to_matrix(), gram.to_matrix());
            assert_eq!(read.to_grid(), gram.to_grid());
        }
        assert!(Gram::from_grid(&[1.0, 1.0], &[0, 0]).is_none() && Gram::from_grid(&[], &[1]).is_none());
    }

    #[test]
    fn what_rounding_adds_is_below_its_bound() {
        let rank = 400;
        let mut gram = Gram::zeros(rank);
        gram.add(Mat::from_fn(rank, 600, |i, j| ((i * 37 + j * 101 + i * j) % 1009) as f64 / 1009.0).as_ref());
        let exact = gram.to_matrix();
        gram.round();
        let noise = (gram.to_matrix() - exact).self_adjoint_eigenvalues(Side::Lower).unwrap();
        let bound = Gram::grid_noise(rank, gram.trace());
        let largest = noise[rank - 1].max(-noise[0]);
        assert!(largest < bound && largest > bound / 50.0, "{largest:e}, {bound:e}");
    }

    #[test]
    fn every_size_has_a_scale() {
        for d in [1.0, 3.999, 4.0, 0.25, 1e-290, 1e30, f64::MIN_POSITIVE] {
            let scale = scale(d);
            assert!(scale * scale > d && scale * scale <= 4.0 * d || scale == power(*EXPONENTS.start()), "{d}");
        }
        assert!([0.0, f64::MAX, f64::INFINITY, f64::NAN, -1.0].iter().all(|d| scale(*d).is_normal()));
    }
}
