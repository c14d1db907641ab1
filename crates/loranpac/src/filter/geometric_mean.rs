//! The geometric mean of a spectrum without its eigenvalues: by a determinant, also for matrices that duplicates make
//! singular.

use faer::Mat;
use faer::linalg::triangular_solve::solve_upper_triangular_in_place;

use crate::error::Error;
use crate::gram::Gram;
use crate::linalg::{cholesky_lower, par};

/// Returns the geometric mean of the eigenvalues above rounding; None if there are none. A direction counts as rounding
/// by the component that a row adds to the span of the others, relative to its own length.
pub(super) fn geometric_mean(gram: &mut Gram) -> Result<Option<f64>, Error> {
    let (n, lengths) = (gram.rank(), gram.lengths());
    let (independent, l) = gram.correlation_factor(&lengths);
    let (rows, others): (Vec<usize>, Vec<usize>) = (0..n).partition(|i| independent[*i]);
    if rows.is_empty() {
        return Ok(None);
    }
    let mut sum: f64 = rows.iter().map(|&i| 2.0 * (l[(i, i)] * lengths[i]).ln()).sum();
    if !others.is_empty() {
        // With T the independent rows and C T the others, the product of the nonzero eigenvalues is
        // det(T'T + T'C'C T) = det(T)^2 det(I + C C').
        // Columns of L that belong to the others are those of I: zeros there remain zeros.
        let place = |j: usize, i: usize| if independent[j] && j < others[i] { l[(others[i], j)] } else { 0.0 };
        let mut c = Mat::from_fn(n, others.len(), place);
        solve_upper_triangular_in_place(l.transpose(), c.as_mut(), par());
        let c = Mat::from_fn(rows.len(), others.len(), |j, i| c[(rows[j], i)] * lengths[others[i]] / lengths[rows[j]]);
        let mut square = if c.nrows() < c.ncols() { &c * c.transpose() } else { c.transpose() * &c };
        (0..square.nrows()).for_each(|i| square[(i, i)] += 1.0);
        if !cholesky_lower(square.as_mut(), par()) {
            return Err(Error::NotPositiveDefinite { rank: n, ridge: 0.0 });
        }
        sum += (0..square.nrows()).map(|i| 2.0 * square[(i, i)].ln()).sum::<f64>();
    }
    Ok(Some((sum / rows.len() as f64).exp()))
}
