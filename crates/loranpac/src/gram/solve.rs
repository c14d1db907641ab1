//! Cholesky factorisations of `S + ridge I`, in the lower triangle of the square that holds S.

use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::prelude::Solve;
use faer::{Mat, MatRef};
use rayon::prelude::*;

use super::Gram;
use crate::error::Error;
use crate::linalg::{cholesky_lower, cholesky_of_independent, par};

impl Gram {
    /// Computes `log det(S + floor I)` by a Cholesky factorisation.
    pub fn log_det(&mut self, floor: f64) -> Result<f64, Error> {
        self.factorise(floor)?;
        let l = self.view();
        Ok((0..self.rank()).map(|i| 2.0 * l[(i, i)].ln()).sum())
    }

    /// Returns the diagonal of `(S + ridge I)^-1`, for the ridge of the latest solve, whose factor is still stored.
    pub(crate) fn inverse_diagonal(&mut self) -> Vec<f64> {
        const BLOCK: usize = 128;
        let (l, n) = (self.view(), self.rank());
        let mut diagonal = Vec::with_capacity(n);
        for first in (0..n).step_by(BLOCK) {
            // Columns of L^-1: zero above the diagonal.
            let rest = n - first;
            let mut columns = Mat::<f64>::identity(rest, BLOCK.min(rest));
            let l = l.submatrix(first, first, rest, rest);
            solve_lower_triangular_in_place(l, columns.as_mut(), par());
            diagonal.extend(columns.col_iter().map(|column| column.squared_norm_l2()));
        }
        diagonal
    }

    /// Computes `B <- B (S + ridge I)^-1` by a Cholesky factorisation.
    pub fn solve(&mut self, b: &mut Mat<f64>, ridge: f64) -> Result<(), Error> {
        self.factorise(ridge)?;
        self.solve_factored(b);
        Ok(())
    }

    /// Returns a copy that holds the Cholesky factor of `S + ridge I`.
    pub(crate) fn factored(&self, ridge: f64) -> Result<Gram, Error> {
        let mut copy = self.clone();
        copy.factorise(ridge)?;
        Ok(copy)
    }

    /// Computes `B <- B (S + ridge I)^-1` for the ridge of [`Gram::factored`].
    pub(crate) fn solve_factored(&self, b: &mut Mat<f64>) {
        let l = self.view();
        solve_lower_triangular_in_place(l, b.as_mut().transpose_mut(), par());
        solve_upper_triangular_in_place(l.transpose(), b.as_mut().transpose_mut(), par());
    }

    /// Computes `B <- B (S + ridge I)^-1`, even if S + ridge I is not definite to rounding: by Cholesky, or else by LU,
    /// which needs three more squares. The result for a matrix that is singular to rounding is mostly noise, as from
    /// any solver. Returns whether Cholesky succeeded.
    pub fn solve_regardless(&mut self, b: &mut Mat<f64>, ridge: f64) -> Result<bool, Error> {
        match self.solve(b, ridge) {
            Err(Error::NotPositiveDefinite { .. }) => {}
            outcome => return outcome.map(|()| true),
        }
        let mut a = self.to_matrix();
        (0..self.rank()).for_each(|i| a[(i, i)] += ridge);
        let solved = a.partial_piv_lu().solve(b.transpose()).transpose().to_owned();
        if !solved.is_all_finite() {
            return Err(Error::NotPositiveDefinite { rank: self.rank(), ridge });
        }
        *b = solved;
        Ok(false)
    }

    /// Computes the Cholesky factor of S divided by the lengths of its rows, restricted to independent rows: returns
    /// which rows are independent, and the factor, whose other columns are those of I. A row counts as dependent by the
    /// component that it adds to the span of the others, relative to its own length.
    pub(crate) fn correlation_factor(&mut self, lengths: &[f64]) -> (Vec<bool>, MatRef<'_, f64>) {
        self.load_correlations(lengths);
        let n = self.rank();
        let independent = cholesky_of_independent(self.view_mut(), n as f64 * f64::EPSILON, par());
        (independent, self.view())
    }

    /// Returns the lengths of the samples whose Gram matrix is S: the roots of its diagonal.
    pub(crate) fn lengths(&self) -> Vec<f64> {
        self.diagonal.iter().map(|v| v.max(0.0).sqrt()).collect()
    }

    /// Writes S, divided by the lengths of its rows, into the lower triangle. Rows of length 0 become 0.
    fn load_correlations(&mut self, lengths: &[f64]) {
        self.load_lower(1.0, 0.0);
        let inverse: Vec<f64> = lengths.iter().map(|length| if *length > 0.0 { 1.0 / length } else { 0.0 }).collect();
        let n = self.rank();
        self.view_mut().par_col_iter_mut().enumerate().for_each(|(j, column)| {
            let below = column.subrows_mut(j, n - j);
            below.iter_mut().zip(&inverse[j..]).for_each(|(value, scale)| *value *= scale * inverse[j]);
        });
    }

    fn factorise(&mut self, ridge: f64) -> Result<(), Error> {
        self.load_lower(1.0, ridge);
        if cholesky_lower(self.view_mut(), par()) {
            Ok(())
        } else {
            Err(Error::NotPositiveDefinite { rank: self.rank(), ridge })
        }
    }
}
