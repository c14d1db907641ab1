//! Rank-revealing factorisation of the new columns: `H = Qn Rn` with orthonormal Qn.
//!
//! Plain QR does not reveal the rank: a row of R can be large although its diagonal entry is zero. Columns are scaled
//! by their own length first, so that "negligible" has the same meaning for long and short samples.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt_pivoting::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut, Par};
use rayon::prelude::*;

use crate::linalg::{PANEL, cast, cholesky_lower, gram, gram_f64, par};
use crate::scalar::Scalar;

/// The Gram matrix in f64 resolves directions down to this share of a column's length.
const GRAM_RESOLUTION: f64 = 1e-7;
/// Columns with at least this share of their length outside the others are factorised without pivots, by products in
/// their own precision.
const CLEARLY_INDEPENDENT: f64 = 0.05;

/// `H = Qn Rn + R`, where R is the dropped residual.
pub(crate) struct Factors {
    /// Rn, p x m.
    pub rn: Mat<f64>,
    /// The lengths of the columns of R.
    pub left_out: Vec<f64>,
}

/// Replaces the first p columns of `h` by an orthonormal basis Qn of its columns.
///
/// Directions with at most `drop` of their column's length (`norms`) are left out, and there are at most `limit`.
pub(crate) fn orthonormalise<T: Scalar>(mut h: MatMut<'_, T>, norms: &[f64], drop: f64, limit: usize) -> Factors {
    let coarse = T::EPSILON > GRAM_RESOLUTION / 10.0;
    if !coarse || drop == 0.0 {
        return by_householder(h, norms, drop, limit);
    }
    if h.ncols() <= limit
        && let Some(factors) = by_products(h.rb_mut(), norms)
    {
        return factors;
    }
    if let Some(factors) = by_gram(h.rb_mut(), norms, drop.max(GRAM_RESOLUTION), limit) {
        return factors;
    }
    by_householder(h, norms, drop, limit)
}

/// Factorises columns that are clearly independent by a Cholesky factorisation of their Gram matrix in their own
/// precision: `Qn = H L^-T`, `Rn = L'`. Returns None if they are not.
///
/// Qn is orthonormal to the rounding of the matrix, divided by the squares of its pivots.
fn by_products<T: Scalar>(h: MatMut<'_, T>, norms: &[f64]) -> Option<Factors> {
    let m = h.ncols();
    let mut l = gram(h.rb());
    scale(&mut l, norms);
    // A pivot is the share of a column that the columns before it do not have.
    if !cholesky_lower(l.as_mut(), par()) || !(0..m).all(|i| l[(i, i)] >= CLEARLY_INDEPENDENT) {
        return None;
    }
    let mut inverse = Mat::<f64>::zeros(m, m);
    invert_lower_triangular(inverse.as_mut(), l.as_ref(), par());
    let b = Mat::from_fn(m, m, |i, j| T::from_f64(if i <= j { inverse[(j, i)] / norms[i] } else { 0.0 }));
    multiply_columns(h, &(0..m).collect::<Vec<_>>(), &b);
    let rn = Mat::from_fn(m, m, |i, j| if i <= j { l[(j, i)] * norms[j] } else { 0.0 });
    Some(Factors { rn, left_out: vec![0.0; m] })
}

/// Computes `D^-1 G D^-1` for the lower triangle of G, D = diag(norms); returns the reciprocals of the norms.
fn scale(g: &mut Mat<f64>, norms: &[f64]) -> Vec<f64> {
    let inverse: Vec<f64> = norms.iter().map(|&n| if n > 0.0 { n.recip() } else { 0.0 }).collect();
    for j in 0..norms.len() {
        for i in j..norms.len() {
            g[(i, j)] *= inverse[i] * inverse[j];
        }
    }
    inverse
}

/// Factorises by a pivoted Cholesky factorisation of `D^-1 H' H D^-1`, D = diag(norms); all E-sized work is matrix
/// products. Returns None if the matrix is too far from definite.
fn by_gram<T: Scalar>(h: MatMut<'_, T>, norms: &[f64], drop: f64, limit: usize) -> Option<Factors> {
    let m = h.ncols();
    let mut g = gram_f64(h.rb());
    let inverse_norm = scale(&mut g, norms);
    let squares: Vec<f64> = (0..m).map(|j| g[(j, j)]).collect();
    if let Some(nothing) = negligible(&squares, norms, drop) {
        return Some(nothing);
    }
    let (mut order, mut inverse) = (vec![0usize; m], vec![0usize; m]);
    let mut memory = MemBuffer::new(cholesky_in_place_scratch::<usize, f64>(m, Par::Seq, Default::default()));
    let stack = MemStack::new(&mut memory);
    let (info, _) =
        cholesky_in_place(g.as_mut(), &mut order, &mut inverse, Par::Seq, stack, Default::default()).ok()?;
    // Pivots never increase, so the directions to keep come first.
    let p = (0..info.rank.min(limit)).take_while(|&i| g[(i, i)] > drop).count();
    let l = g;

    // Qn = H_pivots D^-1 L11^-T
    let mut l11_inverse = Mat::<f64>::zeros(p, p);
    invert_lower_triangular(l11_inverse.as_mut(), l.as_ref().submatrix(0, 0, p, p), Par::Seq);
    let b: Mat<T> =
        Mat::from_fn(p, p, |i, j| T::from_f64(if i <= j { l11_inverse[(j, i)] * inverse_norm[order[i]] } else { 0.0 }));
    multiply_columns(h, &order[..p], &b);

    // Rn = L' D in the original order of the columns
    let (mut rn, mut left_out) = (Mat::zeros(p, m), vec![0.0; m]);
    for (place, &column) in order.iter().enumerate() {
        for i in 0..p.min(place + 1) {
            rn[(i, column)] = l[(place, i)] * norms[column];
        }
        if place >= p {
            let kept: f64 = (0..p).map(|i| l[(place, i)].powi(2)).sum();
            left_out[column] = (squares[column] - kept).max(0.0).sqrt() * norms[column];
        }
    }
    Some(Factors { rn, left_out })
}

/// Returns the factors of columns that are all below the drop level; `squares` are their squared lengths as shares of
/// `norms`. Pivoted factorisations would divide by the largest of them.
fn negligible(squares: &[f64], norms: &[f64], drop: f64) -> Option<Factors> {
    let left_out = squares.iter().zip(norms).map(|(square, norm)| square.sqrt() * norm).collect();
    let largest = squares.iter().copied().fold(0.0, f64::max);
    (largest.sqrt() <= drop).then(|| Factors { rn: Mat::zeros(0, squares.len()), left_out })
}

/// Computes `H <- H[:, columns] B` in its first columns, in place, one panel of rows at a time.
fn multiply_columns<T: Scalar>(h: MatMut<'_, T>, columns: &[usize], b: &Mat<T>) {
    let p = columns.len();
    h.par_row_chunks_mut(PANEL).for_each_init(
        || Mat::<T>::zeros(PANEL, p),
        |old, mut panel| {
            let mut old = old.as_mut().subrows_mut(0, panel.nrows());
            for (j, &column) in columns.iter().enumerate() {
                old.rb_mut().col_mut(j).copy_from(panel.rb().col(column));
            }
            matmul(panel.rb_mut().subcols_mut(0, p), Accum::Replace, old.rb(), b, T::from_f64(1.0), Par::Seq);
        },
    );
}

/// Factorises by Householder QR of the tall matrix, then a column-pivoted QR of the small R. Slower, but exact to the
/// last bit of T; it finds an orthonormal column even for a residual that is zero (`drop = 0`).
fn by_householder<T: Scalar>(mut h: MatMut<'_, T>, norms: &[f64], drop: f64, limit: usize) -> Factors {
    let m = h.ncols();
    let qr = h.rb().qr();
    let q = qr.compute_thin_Q();
    let r: Mat<f64> = cast(qr.thin_R());
    let keep_all = drop == 0.0;
    if keep_all && r.nrows() <= limit {
        let p = r.nrows();
        h.rb_mut().subcols_mut(0, p).copy_from(q.as_ref().subcols(0, p));
        return Factors { rn: r.subrows(0, p).to_owned(), left_out: vec![0.0; m] };
    }
    let scaled = Mat::from_fn(r.nrows(), m, |i, j| if norms[j] > 0.0 { r[(i, j)] / norms[j] } else { 0.0 });
    let squares: Vec<f64> = scaled.col_iter().map(|column| column.squared_norm_l2()).collect();
    if let Some(nothing) = negligible(&squares, norms, drop) {
        return nothing;
    }
    let pivoted = scaled.col_piv_qr();
    let small = pivoted.thin_R();
    let p = (0..small.nrows().min(limit)).take_while(|&i| keep_all || small[(i, i)].abs() > drop).count();
    let turn: Mat<T> = cast(pivoted.compute_thin_Q().subcols(0, p));
    matmul(h.rb_mut().subcols_mut(0, p), Accum::Replace, &q, &turn, T::from_f64(1.0), par());
    let (order, _) = pivoted.P().arrays();
    let (mut rn, mut left_out) = (Mat::zeros(p, m), vec![0.0; m]);
    for (place, &column) in order.iter().enumerate() {
        for i in 0..p.min(place + 1) {
            rn[(i, column)] = small[(i, place)] * norms[column];
        }
        let rest = p..small.nrows().min(place + 1);
        left_out[column] = rest.map(|i| small[(i, place)].powi(2)).sum::<f64>().sqrt() * norms[column];
    }
    Factors { rn, left_out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::MatRef;

    fn sample(n: usize, m: usize) -> Mat<f64> {
        Mat::from_fn(n, m, |i, j| (((i * 37 + j * 101) ^ (i * j + 13)) % 1009) as f64 / 504.5 - 1.0)
    }

    fn norms<T: Scalar>(h: MatRef<'_, T>) -> Vec<f64> {
        h.col_iter().map(|c| c.iter().map(|v| v.to_f64().powi(2)).sum::<f64>().sqrt()).collect()
    }

    /// Checks `Qn Rn = H` and `Qn' Qn = I` for one way of factorising.
    fn check<T: Scalar>(h: &Mat<f64>, rank: usize, tolerance: f64, factorise: fn(MatMut<'_, T>, &[f64]) -> Factors) {
        let mut work: Mat<T> = cast(h.as_ref());
        let Factors { rn, left_out } = factorise(work.as_mut(), &norms(cast::<f64, T>(h.as_ref()).as_ref()));
        assert_eq!(rn.nrows(), rank);
        assert!(left_out.iter().zip(norms(h.as_ref())).all(|(left, norm)| *left <= tolerance * norm));
        let q: Mat<f64> = cast(work.as_ref().subcols(0, rank));
        let back = &q * &rn;
        for j in 0..h.ncols() {
            let error = (back.col(j) - h.col(j)).norm_l2() / h.col(j).norm_l2().max(1e-300);
            assert!(error < tolerance, "column {j} is off by {error:e}");
        }
        assert!((q.transpose() * &q - Mat::<f64>::identity(rank, rank)).norm_max() < tolerance);
    }

    #[test]
    fn both_factorisations_hold_on_easy_columns() {
        let h = sample(400, 30);
        check::<f32>(&h, 30, 1e-5, |h, n| by_gram(h, n, 1e-6, 1000).unwrap());
        check::<f32>(&h, 30, 1e-5, |h, n| by_householder(h, n, 1e-6, 1000));
        check::<f32>(&h, 30, 1e-5, |h, n| by_householder(h, n, 0.0, 1000));
        check::<f64>(&h, 30, 1e-13, |h, n| orthonormalise(h, n, 1e-14, 1000));
    }

    #[test]
    fn duplicates_and_zeros_add_no_direction_and_scale_does_not_matter() {
        let mut h = sample(400, 12);
        for i in 0..400 {
            h[(i, 5)] = h[(i, 2)]; // an exact duplicate
            h[(i, 7)] = 1e-9 * (h[(i, 7)] + h[(i, 1)]); // tiny, but a direction of its own
            h[(i, 9)] = 3.0 * h[(i, 0)] - 2.0 * h[(i, 1)]; // a combination
            h[(i, 11)] = 0.0;
        }
        check::<f32>(&h, 9, 1e-5, |h, n| by_gram(h, n, 2e-6, 1000).unwrap());
        check::<f32>(&h, 9, 1e-5, |h, n| by_householder(h, n, 2e-6, 1000));
        check::<f64>(&h, 9, 1e-13, |h, n| orthonormalise(h, n, 1e-14, 1000));
    }

    #[test]
    fn what_is_left_out_is_told() {
        // The third column has a residual of 1e-3 relative to the first two, and is dropped.
        let basis = sample(400, 3);
        let h = Mat::from_fn(400, 3, |i, j| if j < 2 { basis[(i, j)] } else { basis[(i, 0)] + 1e-3 * basis[(i, 2)] });
        let q = h.subcols(0, 2).to_owned().qr().compute_thin_Q();
        let residual = (h.col(2) - &q * (q.transpose() * h.col(2))).norm_l2();
        let lengths = norms(h.as_ref());
        let (mut single, mut double): (Mat<f32>, Mat<f64>) = (cast(h.as_ref()), h.clone());
        for factors in [
            by_gram(single.as_mut(), &lengths, 1e-2, 1000).unwrap(),
            by_householder(double.as_mut(), &lengths, 1e-2, 1000),
        ] {
            assert_eq!(factors.rn.nrows(), 2);
            // Pivoting may drop the first column instead, whose residual relative to the third is the same.
            let left = factors.left_out.iter().copied().fold(0.0, f64::max);
            assert!((left / residual - 1.0).abs() < 1e-2, "{left} {residual}");
            assert_eq!(factors.left_out.iter().filter(|left| **left > 0.0).count(), 1);
        }
    }

    #[test]
    fn columns_without_a_residual_give_finite_factors() {
        let zero = Mat::<f64>::zeros(40, 3);
        let mut one = zero.clone();
        one[(7, 1)] = 1.0;
        let mut twice = one.clone();
        twice[(7, 2)] = 1.0;
        let tiny = Mat::from_fn(40, 3, |i, j| 1e-38 * (i + j) as f64);
        for (h, rank) in [(zero, 0), (one, 1), (twice, 1), (tiny, 0)] {
            // The samples themselves may be long: only their residuals vanish.
            for norms in [vec![0.0; 3], vec![1.0; 3]] {
                let rank = if norms[0] == 0.0 { 0 } else { rank };
                let (mut single, mut gram, mut double): (Mat<f32>, Mat<f32>, Mat<f64>) =
                    (cast(h.as_ref()), cast(h.as_ref()), h.clone());
                let by_gram = by_gram(gram.as_mut(), &norms, 2e-6, 1000);
                for factors in [
                    by_gram.unwrap(),
                    orthonormalise(single.as_mut(), &norms, 2e-6, 1000),
                    by_householder(double.as_mut(), &norms, 1e-14, 1000),
                ] {
                    assert!(factors.rn.is_all_finite() && factors.left_out.iter().all(|left| left.is_finite()));
                    assert_eq!(factors.rn.nrows(), rank);
                }
            }
        }
    }

    #[test]
    fn without_dropping_every_column_gives_a_direction() {
        let mut h = sample(50, 4);
        h.col_mut(3).fill(0.0);
        let mut work: Mat<f32> = cast(h.as_ref());
        let rn = orthonormalise(work.as_mut(), &norms(h.as_ref()), 0.0, 1000).rn;
        assert_eq!(rn.nrows(), 4);
        let q: Mat<f64> = cast(work.as_ref());
        assert!((q.transpose() * &q - Mat::<f64>::identity(4, 4)).norm_max() < 1e-5);
    }
}
