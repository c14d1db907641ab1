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

use std::ops::Range;

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{BlockStructure, matmul as matmul_triangular};
use faer::linalg::qr::no_pivoting::factor::{qr_in_place, qr_in_place_scratch};
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut, MatRef, Par};
use pulp::Simd;
use rayon::prelude::*;

use crate::linalg::par;

/// b: wide enough for fast products, narrow enough for a band in cache.
pub(crate) const BAND: usize = 32;

/// Rows of a product that one thread computes at a time.
const STRIP: usize = 128;

/// Panels whose transformations are applied to other matrices at once: these are read and written a quarter as often.
const TOGETHER: usize = 4;

/// Rows of a matrix that are transformed together, column by column: enough lanes to fill the widest vectors.
pub(crate) const LANES: usize = 16;

/// Q1; its vectors are in the matrix that was reduced.
pub(crate) struct First {
    /// The triangular factors of the block transformations.
    factors: Vec<Mat<f64>>,
}

/// Q1 and Q2.
pub(crate) struct Reduction {
    pub first: First,
    reflections: Reflections,
}

/// The diagonal and the subdiagonal (with a zero at its end) of T.
#[derive(Clone)]
pub(crate) struct Tridiagonal {
    pub diagonal: Vec<f64>,
    pub subdiagonal: Vec<f64>,
}

/// Reduces the symmetric matrix in the lower triangle of `a`; the strict upper triangle is not touched.
pub(crate) fn reduce(mut a: MatMut<'_, f64>) -> (Tridiagonal, Reduction) {
    let factors = to_band(a.rb_mut());
    let mut chase = Chase::new(a.rb());
    pulp::Arch::new().dispatch(Run(&mut chase));
    let Chase { band, n, reflections } = chase;
    let entry = |i: usize, j: usize| if i < n { band[j * STRIDE + (i - j)] } else { 0.0 };
    let tridiagonal = Tridiagonal {
        diagonal: (0..n).map(|j| entry(j, j)).collect(),
        subdiagonal: (0..n).map(|j| entry(j + 1, j)).collect(),
    };
    (tridiagonal, Reduction { first: First { factors }, reflections })
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

impl Reduction {
    /// Computes `B <- B Q2` for some groups of rows, each stored column by column.
    #[inline(always)]
    pub fn apply_second<S: Simd>(&self, simd: S, groups: &mut [Vec<[f64; LANES]>]) {
        let all = &self.reflections;
        for batch in 0..all.batches() {
            for hop in (0..all.hops(batch * BAND)).rev() {
                for group in groups.iter_mut() {
                    for column in all.columns(batch, hop) {
                        all.reflect(simd, group, column, hop);
                    }
                }
            }
        }
    }

    /// Computes `B <- B Q2'`.
    #[inline(always)]
    pub fn undo_second<S: Simd>(&self, simd: S, groups: &mut [Vec<[f64; LANES]>]) {
        let all = &self.reflections;
        for batch in (0..all.batches()).rev() {
            for hop in 0..all.hops(batch * BAND) {
                for group in groups.iter_mut() {
                    for column in all.columns(batch, hop).rev() {
                        all.reflect(simd, group, column, hop);
                    }
                }
            }
        }
    }
}

/// Reflections `I - v v' / tau`: for every column that is reduced, those that chase its bulge down the band, BAND rows apart.
///
/// They are applied in another order than they were made: the reflections at the same distance down the band, of BAND
/// columns in turn, belong together. They meet the same 2 BAND rows, which stay in the first cache meanwhile, and those
/// further down come first, because no earlier column's reflection there overlaps with a later one's further up.
struct Reflections {
    n: usize,
    /// `1 / tau` and then v, of STORED numbers each, in the order in which they were made.
    values: Vec<f64>,
}

/// Numbers that are stored for a reflection.
const STORED: usize = BAND + 1;

impl Reflections {
    fn new(n: usize) -> Self {
        let mut reflections = Reflections { n, values: Vec::new() };
        reflections.values.reserve_exact(reflections.first(n.saturating_sub(2)) * STORED);
        reflections
    }

    fn batches(&self) -> usize {
        self.n.saturating_sub(2).div_ceil(BAND)
    }

    /// Returns the number of reflections of a column.
    #[inline(always)]
    fn hops(&self, column: usize) -> usize {
        (self.n - 1 - column).div_ceil(BAND)
    }

    /// Returns the columns of a batch that have a reflection at this distance down the band.
    #[inline(always)]
    fn columns(&self, batch: usize, hop: usize) -> Range<usize> {
        let first = batch * BAND;
        first..(first + BAND).min(self.n - 2).min(self.n - 1 - hop * BAND)
    }

    /// Returns the number of reflections of the columns before one.
    #[inline(always)]
    fn first(&self, column: usize) -> usize {
        // The sum of ceil(m / BAND) for m from 1 to x.
        let sum = |x: usize| {
            let (full, rest) = (x / BAND, x % BAND);
            BAND * full * (full + 1) / 2 + rest * (full + 1)
        };
        if column == 0 { 0 } else { sum(self.n - 1) - sum(self.n - 1 - column) }
    }

    /// Computes `B <- B (I - v v' / tau)`.
    #[inline(always)]
    fn reflect<S: Simd>(&self, simd: S, group: &mut [[f64; LANES]], column: usize, hop: usize) {
        let start = column + 1 + hop * BAND;
        let from = (self.first(column) + hop) * STORED;
        reflect(simd, group, start, &self.values[from..from + 1 + BAND.min(self.n - start)]);
    }

    /// Appends a reflection.
    #[inline(always)]
    fn push(&mut self, inverse: f64, v: &[f64]) {
        self.values.push(inverse);
        self.values.extend_from_slice(v);
        self.values.resize(self.values.len() + BAND - v.len(), 0.0);
    }
}

/// Computes `B <- B (I - v v' / tau)`; `values` are `1 / tau` and v.
///
/// Plain loops: the compiler does not inline iterators into functions for other instruction sets than its default.
#[inline(always)]
fn reflect<S: Simd>(simd: S, group: &mut [[f64; LANES]], start: usize, values: &[f64]) {
    let (inverse, v) = (values[0], &values[1..]);
    let (columns, _) = S::as_mut_simd_f64s(group[start..start + v.len()].as_flattened_mut());
    // Registers of a column, of which two are worked on at a time.
    let each = LANES / S::F64_LANES;
    let columns = &mut columns[..v.len() * each];
    let zero = simd.splat_f64s(0.0);
    let mut pair = 0;
    while pair < each {
        // Sums over even and odd places need not wait for each other.
        let (mut first, mut second, mut odd_first, mut odd_second) = (zero, zero, zero, zero);
        let mut i = 0;
        while i + 1 < v.len() {
            let at = i * each + pair;
            let (even, odd) = (simd.splat_f64s(v[i]), simd.splat_f64s(v[i + 1]));
            first = simd.mul_add_e_f64s(even, columns[at], first);
            second = simd.mul_add_e_f64s(even, columns[at + 1], second);
            odd_first = simd.mul_add_e_f64s(odd, columns[at + each], odd_first);
            odd_second = simd.mul_add_e_f64s(odd, columns[at + each + 1], odd_second);
            i += 2;
        }
        if i < v.len() {
            let factor = simd.splat_f64s(v[i]);
            first = simd.mul_add_e_f64s(factor, columns[i * each + pair], first);
            second = simd.mul_add_e_f64s(factor, columns[i * each + pair + 1], second);
        }
        let scale = simd.splat_f64s(-inverse);
        let first = simd.mul_f64s(scale, simd.add_f64s(first, odd_first));
        let second = simd.mul_f64s(scale, simd.add_f64s(second, odd_second));
        let mut i = 0;
        while i < v.len() {
            let at = i * each + pair;
            let factor = simd.splat_f64s(v[i]);
            columns[at] = simd.mul_add_e_f64s(factor, first, columns[at]);
            columns[at + 1] = simd.mul_add_e_f64s(factor, second, columns[at + 1]);
            i += 1;
        }
        pair += 2;
    }
}

/// Rows of the band and of its bulges that are stored for each column.
const STRIDE: usize = 2 * BAND + 1;

/// The second stage: the lower band, column by column, and the reflections made so far.
struct Chase {
    n: usize,
    band: Vec<f64>,
    reflections: Reflections,
}

/// The chase as a value, so that it is compiled once per instruction set.
struct Run<'a>(&'a mut Chase);

impl pulp::NullaryFnOnce for Run<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        (0..self.0.n.saturating_sub(2)).for_each(|column| self.0.sweep(column));
    }
}

impl Chase {
    fn new(a: MatRef<'_, f64>) -> Self {
        let n = a.nrows();
        let mut band = vec![0.0; n * STRIDE];
        for j in 0..n {
            (0..=BAND.min(n - 1 - j)).for_each(|i| band[j * STRIDE + i] = a[(j + i, j)]);
        }
        Chase { n, band, reflections: Reflections::new(n) }
    }

    /// Makes column `s` tridiagonal, and chases the resulting bulge to the end of the band.
    #[inline(always)]
    fn sweep(&mut self, s: usize) {
        let (mut start, mut column) = (s + 1, s);
        let mut v = [0.0f64; BAND];
        let mut length = BAND.min(self.n - start);
        let mut inverse = self.reflection(start, column, length, &mut v);
        loop {
            self.two_sided(start, &v[..length], inverse);
            let next = start + length;
            let rows = BAND.min(self.n - next);
            if rows == 0 {
                break;
            }
            self.reflect_right(next, rows, start, &v[..length], inverse);
            // Only the first column of the bulge must be eliminated now: the next sweep starts there.
            column = start;
            let width = length;
            (start, length) = (next, rows);
            inverse = self.reflection(start, column, length, &mut v);
            self.reflect_left(start, column + 1, width - 1, &v[..length], inverse);
        }
    }

    /// Computes the reflection that maps `A[start .., column]` to a multiple of its first axis, and applies it to that
    /// column. Returns `1 / tau` and writes v; returns 0 if the column is already reduced.
    #[inline(always)]
    fn reflection(&mut self, start: usize, column: usize, length: usize, v: &mut [f64; BAND]) -> f64 {
        let at = column * STRIDE + (start - column);
        let x = &mut self.band[at..at + length];
        let tail: f64 = x[1..].iter().map(|x| x * x).sum();
        if tail == 0.0 {
            v.fill(0.0);
            self.reflections.push(0.0, &v[..length]);
            return 0.0;
        }
        let norm = (x[0] * x[0] + tail).sqrt();
        let image = if x[0] > 0.0 { -norm } else { norm };
        let pivot = x[0] - image;
        v[0] = 1.0;
        v[1..length].iter_mut().zip(&x[1..]).for_each(|(v, x)| *v = x / pivot);
        let inverse = 2.0 / (1.0 + tail / (pivot * pivot));
        x.fill(0.0);
        x[0] = image;
        self.reflections.push(inverse, &v[..length]);
        inverse
    }

    /// Computes `D <- H D H` for the diagonal block at `start`: `D - v w' - w v'` with
    /// `w = D v / tau - (v' D v) / (2 tau^2) v`.
    #[inline(always)]
    fn two_sided(&mut self, start: usize, v: &[f64], inverse: f64) {
        if inverse == 0.0 {
            return;
        }
        let length = v.len();
        let mut w = [0.0f64; BAND];
        for j in 0..length {
            let at = (start + j) * STRIDE;
            let d = &self.band[at..at + length - j];
            w[j] += d[0] * v[j];
            let mut dot = 0.0;
            for ((w, v_below), d) in w[j + 1..length].iter_mut().zip(&v[j + 1..]).zip(&d[1..]) {
                *w += d * v[j];
                dot += d * v_below;
            }
            w[j] += dot;
        }
        let product: f64 = w[..length].iter().zip(v).map(|(w, v)| w * v).sum();
        let half = 0.5 * inverse * inverse * product;
        w[..length].iter_mut().zip(v).for_each(|(w, v)| *w = inverse * *w - half * v);
        for j in 0..length {
            let at = (start + j) * STRIDE;
            let d = &mut self.band[at..at + length - j];
            for ((d, v_below), w_below) in d.iter_mut().zip(&v[j..]).zip(&w[j..length]) {
                *d -= v_below * w[j] + w_below * v[j];
            }
        }
    }

    /// Computes `E <- E H` for `E = A[row .. row + rows, start .. start + |v|]`.
    #[inline(always)]
    fn reflect_right(&mut self, row: usize, rows: usize, start: usize, v: &[f64], inverse: f64) {
        if inverse == 0.0 {
            return;
        }
        let mut sums = [0.0f64; BAND];
        for (j, v) in v.iter().enumerate() {
            let at = (start + j) * STRIDE + (row - start - j);
            sums[..rows].iter_mut().zip(&self.band[at..at + rows]).for_each(|(sum, e)| *sum += v * e);
        }
        for (j, v) in v.iter().enumerate() {
            let at = (start + j) * STRIDE + (row - start - j);
            let factor = v * inverse;
            self.band[at..at + rows].iter_mut().zip(&sums[..rows]).for_each(|(e, sum)| *e -= factor * sum);
        }
    }

    /// Computes `E <- H E` for `E = A[row .. row + |v|, first .. first + columns]`.
    #[inline(always)]
    fn reflect_left(&mut self, row: usize, first: usize, columns: usize, v: &[f64], inverse: f64) {
        if inverse == 0.0 {
            return;
        }
        for j in first..first + columns {
            let at = j * STRIDE + (row - j);
            let e = &mut self.band[at..at + v.len()];
            let factor = inverse * dot(e, v);
            e.iter_mut().zip(v).for_each(|(e, v)| *e -= factor * v);
        }
    }
}

/// Returns the dot product in eight partial sums, which the compiler vectorises.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0f64; 8];
    let (whole_a, rest_a) = a.as_chunks::<8>();
    let (whole_b, rest_b) = b.as_chunks::<8>();
    for (a, b) in whole_a.iter().zip(whole_b) {
        (0..8).for_each(|lane| sums[lane] += a[lane] * b[lane]);
    }
    sums.iter().sum::<f64>() + rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Turn<'a>(&'a Reduction, &'a mut [Vec<[f64; LANES]>], bool);

    impl pulp::WithSimd for Turn<'_> {
        type Output = ();

        fn with_simd<S: Simd>(self, simd: S) {
            if self.2 { self.0.undo_second(simd, self.1) } else { self.0.apply_second(simd, self.1) }
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
