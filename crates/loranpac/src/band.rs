//! Reduction of a symmetric matrix to tridiagonal form in two stages: `A = Z T Z'` with `Z = Q1 Q2`.
//!
//! ```text
//! A = Q1 B Q1'    B of bandwidth b; block Householder transformations, all of it matrix products
//! B = Q2 T Q2'    T tridiagonal; reflections of length b that chase each bulge down the band
//! ```
//!
//! The direct reduction reads the whole trailing matrix for every column and is bound by memory. Here the `4/3 n^3` flops
//! of the first stage are products, and the second takes `6 n^2 b` flops in a band that stays in cache. Q1's vectors stay
//! below the band in A's own lower triangle; Q2's take `n^2 / 2` numbers of their own.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{BlockStructure, matmul as matmul_triangular};
use faer::linalg::qr::no_pivoting::factor::{qr_in_place, qr_in_place_scratch};
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

use crate::chase::{self, Tridiagonal};
use crate::linalg::par;
use crate::reflections::{BAND, Reflections};

/// Rows of a product that one thread computes at a time.
const STRIP: usize = 128;

/// Panels whose transformations are applied to other matrices at once: these are read and written a quarter as often.
const TOGETHER: usize = 4;

/// Q1; its vectors are in the matrix that was reduced.
pub(crate) struct First {
    /// The triangular factors of the block transformations.
    factors: Vec<Mat<f64>>,
}

/// Q1 and Q2.
pub(crate) struct Reduction {
    pub first: First,
    pub second: Reflections,
}

/// Reduces the symmetric matrix in the lower triangle of `a`; the strict upper triangle is not touched.
pub(crate) fn reduce(mut a: MatMut<'_, f64>) -> (Tridiagonal, Reduction) {
    let factors = to_band(a.rb_mut());
    let (tridiagonal, second) = chase::to_tridiagonal(a.rb());
    (tridiagonal, Reduction { first: First { factors }, second })
}

/// Runs the first stage alone; returns the lower band of B, column by column.
pub(crate) fn reduce_to_band(mut a: MatMut<'_, f64>) -> (Vec<[f64; BAND + 1]>, First) {
    let factors = to_band(a.rb_mut());
    let n = a.nrows();
    let entry = |i: usize, j: usize| if i < n { a[(i, j)] } else { 0.0 };
    let band = (0..n).map(|j| std::array::from_fn(|i| entry(j + i, j))).collect();
    (band, First { factors })
}

/// Runs the first stage. For each panel: QR of the part below the band, then with `Q = I - V T^-1 V'`
///
/// ```text
/// W = A V T^-1,   Z = W - V (T^-T V' W) / 2,   A <- Q' A Q = A - Z V' - V Z'
/// ```
fn to_band(mut a: MatMut<'_, f64>) -> Vec<Mat<f64>> {
    let n = a.nrows();
    let mut factors = Vec::new();
    let mut memory = MemBuffer::new(qr_in_place_scratch::<f64>(n, BAND, BAND, par(), Default::default()));
    for first in panels(n) {
        let below = first + BAND;
        let mut panel = a.rb_mut().submatrix_mut(below, first, n - below, BAND);
        let size = BAND.min(panel.nrows());
        let mut t = Mat::<f64>::zeros(size, size);
        let stack = MemStack::new(&mut memory);
        qr_in_place(panel.rb_mut(), t.as_mut(), par(), stack, Default::default());
        let v = vectors(panel.rb());

        let rest = a.rb_mut().submatrix_mut(below, below, n - below, n - below);
        let mut w = Mat::<f64>::zeros(v.nrows(), size);
        symmetric_product(w.as_mut(), rest.rb(), v.as_ref());
        solve_lower_triangular_in_place(t.transpose(), w.as_mut().transpose_mut(), par());
        let mut inner = Mat::<f64>::zeros(size, size);
        matmul(&mut inner, Accum::Replace, v.transpose(), &w, 1.0, par());
        solve_lower_triangular_in_place(t.transpose(), inner.as_mut(), Par::Seq);
        matmul(&mut w, Accum::Add, &v, &inner, -0.5, par());
        // One product reads and writes A once.
        subtract_outer(rest, beside(&[&w, &v]).as_ref(), beside(&[&v, &w]).as_ref());
        factors.push(t);
    }
    factors
}

/// Returns the first columns of the panels that have nonzero entries below the band.
fn panels(n: usize) -> impl DoubleEndedIterator<Item = usize> + Clone {
    (0..n.saturating_sub(BAND + 1).div_ceil(BAND)).map(|panel| panel * BAND)
}

/// Returns V of a panel: its part below the diagonal, with ones on the diagonal.
fn vectors(panel: MatRef<'_, f64>) -> Mat<f64> {
    let size = panel.ncols().min(panel.nrows());
    Mat::from_fn(panel.nrows(), size, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 1.0,
        std::cmp::Ordering::Greater => panel[(i, j)],
    })
}

/// Returns matrices side by side.
fn beside(parts: &[&Mat<f64>]) -> Mat<f64> {
    let mut whole = Mat::zeros(parts[0].nrows(), parts.iter().map(|part| part.ncols()).sum());
    let mut first = 0;
    for part in parts {
        whole.as_mut().subcols_mut(first, part.ncols()).copy_from(part);
        first += part.ncols();
    }
    whole
}

/// Computes `C <- A V` for the symmetric A in a lower triangle, one strip of rows of C at a time: the product with the
/// part left of the diagonal block, with the block itself, and with the transposed part below it.
fn symmetric_product(c: MatMut<'_, f64>, a: MatRef<'_, f64>, v: MatRef<'_, f64>) {
    c.par_row_chunks_mut(STRIP).enumerate().for_each(|(strip, mut c)| {
        let (first, rows) = (strip * STRIP, c.nrows());
        let end = first + rows;
        let block = Mat::from_fn(rows, rows, |i, j| a[(first + i.max(j), first + i.min(j))]);
        matmul(c.rb_mut(), Accum::Replace, &block, v.subrows(first, rows), 1.0, Par::Seq);
        let left = a.submatrix(first, 0, rows, first);
        matmul(c.rb_mut(), Accum::Add, left, v.subrows(0, first), 1.0, Par::Seq);
        let below = a.submatrix(end, first, a.nrows() - end, rows);
        matmul(c, Accum::Add, below.transpose(), v.subrows(end, a.nrows() - end), 1.0, Par::Seq);
    });
}

/// Computes `A <- A - X Y'`, lower triangle only.
fn subtract_outer(a: MatMut<'_, f64>, x: MatRef<'_, f64>, y: MatRef<'_, f64>) {
    use BlockStructure::{Rectangular, TriangularLower};
    matmul_triangular(a, TriangularLower, Accum::Add, x, Rectangular, y.transpose(), Rectangular, -1.0, par());
}

impl First {
    /// Computes `B <- B Q1`, with Q1's vectors in the reduced matrix `a`.
    pub fn apply(&self, a: MatRef<'_, f64>, mut b: MatMut<'_, f64>) {
        for group in self.groups(a.nrows()) {
            self.several(a, b.rb_mut(), &group, |t, x| {
                // X T^-1
                solve_lower_triangular_in_place(t.transpose(), x.transpose_mut(), par());
            });
        }
    }

    /// Computes `B <- B Q1'`.
    pub fn undo(&self, a: MatRef<'_, f64>, mut b: MatMut<'_, f64>) {
        for group in self.groups(a.nrows()).into_iter().rev() {
            self.several(a, b.rb_mut(), &group, |t, x| {
                // X T^-T
                solve_upper_triangular_in_place(t, x.transpose_mut(), par());
            });
        }
    }

    /// Returns the panels, some at a time: their first columns and factors.
    fn groups(&self, n: usize) -> Vec<Vec<(usize, &Mat<f64>)>> {
        let all: Vec<_> = panels(n).zip(&self.factors).collect();
        all.chunks(TOGETHER).map(<[_]>::to_vec).collect()
    }

    /// Computes `B <- B - f(B V) V'` for the product of the transformations of some panels:
    ///
    /// ```text
    /// (I - V1 T1^-1 V1') (I - V2 T2^-1 V2') = I - [V1 V2] [T1 V1'V2; 0 T2]^-1 [V1 V2]'
    /// ```
    fn several(
        &self,
        a: MatRef<'_, f64>,
        b: MatMut<'_, f64>,
        group: &[(usize, &Mat<f64>)],
        f: impl Fn(MatRef<'_, f64>, MatMut<'_, f64>),
    ) {
        let top = group[0].0 + BAND;
        let size = group.iter().map(|(_, t)| t.nrows()).sum();
        let mut v = Mat::<f64>::zeros(a.nrows() - top, size);
        let mut t = Mat::<f64>::zeros(size, size);
        let mut at = 0;
        for (first, factor) in group {
            let below = first + BAND;
            let part = vectors(a.submatrix(below, *first, a.nrows() - below, BAND));
            let (before, mut rest) = v.as_mut().split_at_col_mut(at);
            let overlap = before.rb().subrows(below - top, part.nrows()).transpose();
            matmul(t.as_mut().submatrix_mut(0, at, at, part.ncols()), Accum::Replace, overlap, &part, 1.0, par());
            t.as_mut().submatrix_mut(at, at, part.ncols(), part.ncols()).copy_from(*factor);
            rest.rb_mut().submatrix_mut(below - top, 0, part.nrows(), part.ncols()).copy_from(&part);
            at += part.ncols();
        }
        let mut b = b.subcols_mut(top, v.nrows());
        let mut x = Mat::<f64>::zeros(b.nrows(), size);
        matmul(&mut x, Accum::Replace, b.rb(), &v, 1.0, par());
        f(t.as_ref(), x.as_mut());
        matmul(b.rb_mut(), Accum::Add, &x, v.transpose(), -1.0, par());
    }
}

#[cfg(test)]
mod tests {
    use pulp::Simd;

    use super::*;
    use crate::reflections::LANES;

    struct Turn<'a>(&'a Reduction, &'a mut [Vec<[f64; LANES]>], bool);

    impl pulp::WithSimd for Turn<'_> {
        type Output = ();

        fn with_simd<S: Simd>(self, simd: S) {
            if self.2 { self.0.second.undo(simd, self.1) } else { self.0.second.apply(simd, self.1) }
        }
    }

    /// `Z T Z' = A` and `Z' Z = I`, with Z from transforming the identity; the upper triangle does not change.
    #[test]
    fn both_stages_together_reproduce_the_matrix() {
        for n in [1, 2, 3, 31, 32, 33, 34, 64, 65, 66, 97, 150, 300] {
            let noise = Mat::from_fn(n, n, |i, j| (((i * 37 + j * 101) ^ (i * j + 13)) % 1009) as f64 / 504.5 - 1.0);
            let full = &noise + noise.transpose();
            let mut a = Mat::from_fn(n, n, |i, j| if i >= j { full[(i, j)] } else { 777.0 });
            let (Tridiagonal { diagonal, subdiagonal }, reduction) = reduce(a.as_mut());
            assert!((0..n).all(|j| (0..j).all(|i| a[(i, j)] == 777.0)), "n = {n}");
            let mut z = Mat::<f64>::identity(n, n);
            reduction.first.apply(a.as_ref(), z.as_mut());
            let lane = |first: usize, j: usize| {
                std::array::from_fn(|lane| if first + lane < n { z[(first + lane, j)] } else { 0.0 })
            };
            let before: Vec<Vec<[f64; LANES]>> =
                (0..n).step_by(LANES).map(|first| (0..n).map(|j| lane(first, j)).collect()).collect();
            let mut groups = before.clone();
            pulp::Arch::new().dispatch(Turn(&reduction, &mut groups, false));
            let done = Mat::from_fn(n, n, |i, j| groups[i / LANES][j][i % LANES]);
            pulp::Arch::new().dispatch(Turn(&reduction, &mut groups, true));
            let off = groups.iter().flatten().zip(before.iter().flatten()).flat_map(|(a, b)| a.iter().zip(b));
            assert!(off.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) < 1e-12 * n as f64, "n = {n}");
            let mut back = z.clone();
            reduction.first.undo(a.as_ref(), back.as_mut());
            assert!((back - Mat::<f64>::identity(n, n)).norm_max() < 1e-12 * n as f64, "n = {n}");
            let t = Mat::from_fn(n, n, |i, j| match i.abs_diff(j) {
                0 => diagonal[i],
                1 => subdiagonal[i.min(j)],
                _ => 0.0,
            });
            let off = (&done * t * done.transpose() - &full).norm_max();
            assert!(off < 1e-12 * n as f64, "n = {n}: {off:e}");
            let off = (done.transpose() * &done - Mat::<f64>::identity(n, n)).norm_max();
            assert!(off < 1e-12 * n as f64, "n = {n}: {off:e}");
        }
    }
}
