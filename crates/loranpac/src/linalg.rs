//! The dense kernels that the basis and the Gram matrix share, on top of faer.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{BlockStructure, matmul as matmul_triangular};
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

use crate::scalar::Scalar;

/// Rows of an E-sized matrix that one thread works on at a time: small enough to stay in a core's cache.
pub(crate) const PANEL: usize = 256;

/// Returns parallelism with as many threads as the current rayon pool has.
pub(crate) fn par() -> Par {
    Par::rayon(0)
}

/// Computes `A' A` of a tall matrix in f64 (lower triangle only), for any element type.
///
/// Each thread sums a fixed range of rows and the parts are added in order, so that the result is reproducible for a
/// given number of threads.
pub(crate) fn gram_f64<T: Scalar>(a: MatRef<'_, T>) -> Mat<f64> {
    let (rows, m) = (a.nrows(), a.ncols());
    let share = rows.div_ceil(rayon::current_num_threads()).max(1);
    let parts: Vec<Mat<f64>> = a
        .par_row_chunks(share)
        .map(|part| {
            let mut sum = Mat::<f64>::zeros(m, m);
            let mut wide = Mat::<f64>::zeros(PANEL.min(part.nrows()), m);
            for start in (0..part.nrows()).step_by(PANEL) {
                let panel = part.subrows(start, PANEL.min(part.nrows() - start));
                let mut wide = wide.as_mut().subrows_mut(0, panel.nrows());
                for j in 0..m {
                    wide.rb_mut().col_mut(j).iter_mut().zip(panel.col(j).iter()).for_each(|(w, v)| *w = v.to_f64());
                }
                add_product_lower(sum.as_mut(), wide.rb().transpose(), 1.0, Par::Seq);
            }
            sum
        })
        .collect();
    parts.into_iter().reduce(|a, b| a + b).unwrap_or_else(|| Mat::zeros(m, m))
}

/// Computes `A' A` of a tall matrix (lower triangle only) by products in its own precision, of which parts are added in
/// f64. Reproducible as [`gram_f64`], and twice as fast for f32.
pub(crate) fn gram<T: Scalar>(a: MatRef<'_, T>) -> Mat<f64> {
    const ROWS: usize = 4096;
    let (rows, m) = (a.nrows(), a.ncols());
    let share = rows.div_ceil(rayon::current_num_threads()).max(1);
    let parts: Vec<Mat<f64>> = a
        .par_row_chunks(share)
        .map(|part| {
            let mut sum = Mat::<f64>::zeros(m, m);
            let mut product = Mat::<T>::zeros(m, m);
            let (lower, whole, one) = (BlockStructure::TriangularLower, BlockStructure::Rectangular, T::from_f64(1.0));
            for start in (0..part.nrows()).step_by(ROWS) {
                let part = part.subrows(start, ROWS.min(part.nrows() - start));
                let (a, target) = (part.transpose(), product.as_mut());
                matmul_triangular(target, lower, Accum::Replace, a, whole, part, whole, one, Par::Seq);
                for j in 0..m {
                    let (sum, product) = (sum.col_mut(j).subrows_mut(j, m - j), product.col(j).subrows(j, m - j));
                    sum.iter_mut().zip(product.iter()).for_each(|(sum, v)| *sum += v.to_f64());
                }
            }
            sum
        })
        .collect();
    parts.into_iter().reduce(|a, b| a + b).unwrap_or_else(|| Mat::zeros(m, m))
}

/// Computes the inner product in f64, of parts that need not wait for each other.
pub(crate) fn dot<T: Scalar, U: Scalar>(a: &[T], b: &[U]) -> f64 {
    const LANES: usize = 16;
    let mut sums = [0.0; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a.to_f64() * b.to_f64()).sum::<f64>();
    for (a, b) in a.zip(b) {
        for i in 0..LANES {
            sums[i] += a[i].to_f64() * b[i].to_f64();
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// Computes `C <- C + alpha A A'`, lower triangle of C only.
pub(crate) fn add_product_lower<T: Scalar>(c: MatMut<'_, T>, a: MatRef<'_, T>, alpha: f64, par: Par) {
    matmul_triangular(
        c,
        BlockStructure::TriangularLower,
        Accum::Add,
        a,
        BlockStructure::Rectangular,
        a.transpose(),
        BlockStructure::Rectangular,
        T::from_f64(alpha),
        par,
    );
}

/// Computes `A = L L'` in place, reading and writing the lower triangle only. Returns false if A is not positive
/// definite.
///
/// Right-looking in blocks. faer's own factorisation uses the upper triangle as scratch, which holds S here.
pub(crate) fn cholesky_lower(a: MatMut<'_, f64>, par: Par) -> bool {
    cholesky_by_blocks(a, par, |block| llt_in_place(block).map(|_| Vec::new()))
}

/// Computes the same for a semidefinite matrix with a diagonal of ones. Rows that add no more than `tolerance` to the
/// span of the previous rows get a column of zeros in L, except for a one on the diagonal. Returns which rows are
/// independent.
pub(crate) fn cholesky_of_independent(a: MatMut<'_, f64>, tolerance: f64, par: Par) -> Vec<bool> {
    let mut independent = vec![true; a.nrows()];
    let mut first = 0;
    cholesky_by_blocks(a, par, |mut block| {
        let dependent = factorise_independent(block.rb_mut(), tolerance);
        dependent.iter().for_each(|j| independent[first + j] = false);
        first += block.nrows();
        Some(dependent)
    });
    independent
}

/// Computes `A = L L'` of a block of a semidefinite matrix in place. Returns the dependent columns, whose pivots are no
/// larger than `tolerance`: they become those of I.
pub(crate) fn factorise_independent<T: Scalar>(mut block: MatMut<'_, T>, tolerance: f64) -> Vec<usize> {
    let before = block.to_owned();
    if llt_in_place(block.rb_mut()).is_some_and(|smallest| smallest > tolerance) {
        return Vec::new();
    }
    block.copy_from(&before);
    cholesky_column_by_column(block, tolerance)
}

/// Computes the textbook Cholesky factorisation of a small block; returns the dependent columns.
fn cholesky_column_by_column<T: Scalar>(mut a: MatMut<'_, T>, tolerance: f64) -> Vec<usize> {
    let n = a.nrows();
    let mut dependent = Vec::new();
    for j in 0..n {
        let pivot = a[(j, j)].to_f64();
        if pivot > tolerance {
            let root = T::from_f64(pivot.sqrt());
            (j + 1..n).for_each(|i| a[(i, j)] /= root);
            a[(j, j)] = root;
        } else {
            dependent.push(j);
            (j + 1..n).for_each(|i| a[(i, j)] = T::from_f64(0.0));
            a[(j, j)] = T::from_f64(1.0);
        }
        for k in j + 1..n {
            let factor = a[(k, j)];
            (k..n).for_each(|i| a[(i, k)] = a[(i, k)] - factor * a[(i, j)]);
        }
    }
    dependent
}

/// Computes `A = L L'` of a small block in place; returns the smallest squared pivot, or None if A is not positive
/// definite.
pub(crate) fn llt_in_place<T: Scalar>(mut a: MatMut<'_, T>) -> Option<f64> {
    let needed = llt::factor::cholesky_in_place_scratch::<T>(a.nrows(), Par::Seq, Default::default());
    let mut scratch = MemBuffer::new(needed);
    let stack = MemStack::new(&mut scratch);
    llt::factor::cholesky_in_place(a.rb_mut(), Default::default(), Par::Seq, stack, Default::default()).ok()?;
    Some((0..a.nrows()).map(|i| a[(i, i)].to_f64().powi(2)).fold(f64::INFINITY, f64::min))
}

/// Computes a blocked Cholesky factorisation. Diagonal blocks are factorised by a callback, which returns their
/// dependent columns; returns false if it fails.
fn cholesky_by_blocks(
    a: MatMut<'_, f64>,
    par: Par,
    mut factorise: impl FnMut(MatMut<'_, f64>) -> Option<Vec<usize>>,
) -> bool {
    const BLOCK: usize = 192;
    let mut rest = a;
    while rest.nrows() > 0 {
        let b = BLOCK.min(rest.nrows());
        let (mut a11, _, mut a21, mut a22) = rest.split_at_mut(b, b);
        let mut l11 = a11.rb().to_owned();
        let Some(dependent) = factorise(l11.as_mut()) else { return false };
        a11.copy_from_triangular_lower(&l11);
        // A21 <- A21 L11^-T, then A22 <- A22 - A21 A21'
        solve_lower_triangular_in_place(l11.as_ref(), a21.rb_mut().transpose_mut(), par);
        dependent.into_iter().for_each(|j| a21.rb_mut().col_mut(j).fill(0.0));
        add_product_lower(a22.rb_mut(), a21.rb(), -1.0, par);
        rest = a22;
    }
    true
}

/// Copies the strict upper triangle, transposed and scaled, into the strict lower one.
pub(crate) fn mirror_upper(a: MatMut<'_, f64>, scale: f64) {
    let n = a.nrows();
    if n <= 64 {
        let mut a = a;
        for j in 0..n {
            for i in j + 1..n {
                a[(i, j)] = scale * a[(j, i)];
            }
        }
        return;
    }
    let half = n / 2;
    let (a11, a12, a21, a22) = a.split_at_mut(half, half);
    rayon::join(
        || copy_transposed(a12.rb(), a21, scale),
        || rayon::join(|| mirror_upper(a11, scale), || mirror_upper(a22, scale)),
    );
}

/// Computes `B <- scale A'` in cache-sized tiles.
fn copy_transposed(a: MatRef<'_, f64>, b: MatMut<'_, f64>, scale: f64) {
    b.par_col_chunks_mut(64).enumerate().for_each(|(strip, mut b)| {
        let a = a.subrows(64 * strip, b.ncols());
        for first in (0..a.ncols()).step_by(64) {
            for j in 0..b.ncols() {
                for i in first..(first + 64).min(a.ncols()) {
                    b[(i, j)] = scale * a[(j, i)];
                }
            }
        }
    });
}

/// A sample of this length or less counts as zero: f32 cannot normalise it.
const NEGLIGIBLE: f64 = 1e-30;

/// Returns the lengths of the columns.
pub(crate) fn column_norms<T: Scalar>(h: MatRef<'_, T>) -> Vec<f64> {
    h.par_col_iter()
        .map(|column| column.iter().map(|v| v.to_f64() * v.to_f64()).sum::<f64>().sqrt())
        .map(|norm| if norm < NEGLIGIBLE { 0.0 } else { norm })
        .collect()
}

/// Sets columns of negligible length to zero and returns the lengths. A sample that counts as zero is zero everywhere, so
/// that it can be unlearned.
pub(crate) fn cleared_norms<T: Scalar>(mut h: MatMut<'_, T>) -> Vec<f64> {
    let norms = column_norms(h.rb());
    for (j, _) in norms.iter().enumerate().filter(|(_, norm)| **norm == 0.0) {
        h.rb_mut().col_mut(j).fill(T::from_f64(0.0));
    }
    norms
}

/// Converts and transposes a matrix.
pub(crate) fn transposed<T: Scalar, U: Scalar>(a: MatRef<'_, T>) -> Mat<U> {
    let mut b = Mat::zeros(a.ncols(), a.nrows());
    b.par_col_chunks_mut(64).enumerate().for_each(|(strip, mut b)| {
        for first in (0..a.ncols()).step_by(64) {
            for j in 0..b.ncols() {
                for i in first..(first + 64).min(a.ncols()) {
                    b[(i, j)] = U::from_f64(a[(64 * strip + j, i)].to_f64());
                }
            }
        }
    });
    b
}

/// Converts a matrix.
pub(crate) fn cast<T: Scalar, U: Scalar>(a: MatRef<'_, T>) -> Mat<U> {
    let mut b = Mat::zeros(a.nrows(), a.ncols());
    b.par_col_chunks_mut(64).zip(a.par_col_chunks(64)).for_each(|(b, a)| {
        for (b, a) in b.col_iter_mut().zip(a.col_iter()) {
            b.iter_mut().zip(a.iter()).for_each(|(b, a)| *b = U::from_f64(a.to_f64()));
        }
    });
    b
}

/// Computes `A B`, on all threads.
pub(crate) fn product<T: Scalar>(a: MatRef<'_, T>, b: MatRef<'_, T>) -> Mat<T> {
    let mut c = Mat::zeros(a.nrows(), b.ncols());
    matmul(&mut c, Accum::Replace, a, b, T::from_f64(1.0), par());
    c
}

/// Computes `C <- C + A' A`, upper triangle of C only.
pub(crate) fn add_gram_upper(c: MatMut<'_, f64>, a: MatRef<'_, f64>) {
    use BlockStructure::{Rectangular, TriangularUpper};
    matmul_triangular(c, TriangularUpper, Accum::Add, a.transpose(), Rectangular, a, Rectangular, 1.0, par());
}

/// Computes `C <- C + A' B + B' A`, upper triangle of C only.
pub(crate) fn add_symmetric_upper(mut c: MatMut<'_, f64>, a: MatRef<'_, f64>, b: MatRef<'_, f64>) {
    use BlockStructure::{Rectangular, TriangularUpper};
    for (a, b) in [(a, b), (b, a)] {
        let c = c.rb_mut();
        matmul_triangular(c, TriangularUpper, Accum::Add, a.transpose(), Rectangular, b, Rectangular, 1.0, par());
    }
}

/// Computes `G' K G` for a lower triangular G, upper triangle only.
pub(crate) fn turned_by_lower(k: MatRef<'_, f64>, g: MatRef<'_, f64>) -> Mat<f64> {
    use BlockStructure::{Rectangular, TriangularLower, TriangularUpper};
    let (mut right, mut turned) = (Mat::zeros(k.nrows(), g.ncols()), Mat::zeros(g.ncols(), g.ncols()));
    matmul_triangular(&mut right, Rectangular, Accum::Replace, k, Rectangular, g, TriangularLower, 1.0, par());
    let left = g.transpose();
    matmul_triangular(
        &mut turned,
        TriangularUpper,
        Accum::Replace,
        left,
        TriangularUpper,
        &right,
        Rectangular,
        1.0,
        par(),
    );
    turned
}

/// Returns the entries in these rows and columns.
pub(crate) fn gather(a: MatRef<'_, f64>, rows: &[usize], columns: &[usize]) -> Mat<f64> {
    let mut part = Mat::zeros(rows.len(), columns.len());
    part.par_col_iter_mut().zip(columns).for_each(|(column, &j)| {
        column.iter_mut().zip(rows).for_each(|(value, &i)| *value = a[(i, j)]);
    });
    part
}

/// Returns the sum of the products of all entries, in a fixed order.
pub(crate) fn inner_product(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> f64 {
    let columns: Vec<f64> = a.par_col_iter().zip(b.par_col_iter()).map(|(a, b)| a.transpose() * b).collect();
    columns.into_iter().sum()
}

/// Returns the squared Frobenius norm.
pub(crate) fn squared_norm(a: MatRef<'_, f64>) -> f64 {
    a.squared_norm_l2()
}

/// Returns a symmetric matrix with the given spectrum, for tests.
#[cfg(test)]
pub(crate) fn with_spectrum(values: &[f64]) -> Mat<f64> {
    let n = values.len();
    let noise = Mat::from_fn(n, n, |i, j| (((i * 37 + j * 101) ^ (i * j + 13)) % 1009) as f64 / 504.5 - 1.0);
    let q = noise.qr().compute_thin_Q();
    let d = Mat::from_fn(n, n, |i, j| if i == j { values[i] } else { 0.0 });
    &q * d * q.transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(n: usize, m: usize) -> Mat<f64> {
        Mat::from_fn(n, m, |i, j| (((i * 37 + j * 101) ^ (i * j + 13)) % 1009) as f64 / 504.5 - 1.0)
    }

    #[test]
    fn cholesky_reproduces_the_matrix_and_leaves_the_upper_triangle() {
        for n in [1, 5, 191, 192, 193, 500] {
            let b = sample(n, n);
            let mut a = &b * b.transpose();
            (0..n).for_each(|i| a[(i, i)] += 1.0);
            let mut l = a.clone();
            assert!(cholesky_lower(l.as_mut(), par()));
            for j in 0..n {
                (0..j).for_each(|i| assert_eq!(l[(i, j)], a[(i, j)]));
            }
            let lower = Mat::from_fn(n, n, |i, j| if i >= j { l[(i, j)] } else { 0.0 });
            assert!((&lower * lower.transpose() - &a).norm_max() < 1e-10 * a.norm_max());
        }
        let mut indefinite = Mat::<f64>::identity(300, 300);
        indefinite[(250, 250)] = -1.0;
        assert!(!cholesky_lower(indefinite.as_mut(), par()));
    }

    #[test]
    fn mirroring_and_transposing_move_every_entry() {
        for n in [1, 64, 65, 200, 333] {
            let a = sample(n, n);
            let mut b = a.clone();
            mirror_upper(b.as_mut(), 2.0);
            for j in 0..n {
                for i in 0..n {
                    assert_eq!(b[(i, j)], if i > j { 2.0 * a[(j, i)] } else { a[(i, j)] });
                }
            }
            let wide = sample(n, 77);
            let narrow: Mat<f32> = transposed(wide.as_ref());
            assert!((0..n).all(|i| (0..77).all(|j| narrow[(j, i)] == wide[(i, j)] as f32)));
        }
    }

    #[test]
    fn the_gram_matrix_is_summed_in_double_precision() {
        let a = Mat::<f32>::from_fn(1000, 9, |i, j| 1.0 + ((i * 7 + j) % 13) as f32 * 1e-6);
        let g = gram_f64(a.as_ref());
        for j in 0..9 {
            for i in j..9 {
                let exact: f64 = (0..1000).map(|k| a[(k, i)] as f64 * a[(k, j)] as f64).sum();
                assert!((g[(i, j)] - exact).abs() < 1e-11 * exact);
            }
        }
    }
}
