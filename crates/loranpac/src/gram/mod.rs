//! S, the Gram matrix of all features seen so far in the coordinates of the basis: `S = Q' (H H') Q`, r x r, f64.
//!
//! Other methods use the same type for their matrices: `H H'` itself (E x E), a scatter, or the Gram matrix of a task.
//!
//! One square holds both S (upper triangle) and the scratch of every factorisation (lower triangle), so that Cholesky
//! factors and Householder vectors need no second r x r matrix. Only this module calls an eigensolver.

mod eigen;
mod grid;
mod solve;

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{BlockStructure, matmul as matmul_triangular};
use faer::prelude::ReborrowMut;
use faer::{Accum, Mat, MatMut, MatRef};
use rayon::prelude::*;

pub(crate) use crate::tridiagonal::Reduced;
pub use eigen::Eigen;
pub use grid::Grid;

use crate::linalg::{mirror_upper, par};

/// Columns by which the storage grows at a time.
const STEP: usize = 256;

/// The symmetric positive semidefinite matrix S.
#[derive(Debug, Clone, Default)]
pub struct Gram {
    /// Column-major with leading dimension `stride`; the upper triangle is S, the lower one scratch.
    store: Vec<f64>,
    stride: usize,
    /// The diagonal of S; the diagonal of `store` belongs to the scratch.
    diagonal: Vec<f64>,
    /// Whether S is in fixed point; see [`Grid`].
    on_grid: bool,
}

impl Gram {
    /// Returns the number of directions, r.
    pub fn rank(&self) -> usize {
        self.diagonal.len()
    }

    /// Returns the bytes held in memory.
    pub fn bytes(&self) -> usize {
        (self.store.len() + self.diagonal.len()) * size_of::<f64>()
    }

    /// Prepares an empty matrix for this many directions, so that it grows without moving. The system provides the memory as
    /// it is used.
    pub fn expect(&mut self, rank: usize) {
        if self.rank() == 0 {
            self.stride = rank.div_ceil(STEP) * STEP;
            self.store = vec![0.0; self.stride * self.stride];
        }
    }

    /// Returns the trace of S: the energy of all features seen.
    pub fn trace(&self) -> f64 {
        self.diagonal.iter().sum()
    }

    /// Returns how many directions have no energy at all.
    pub(crate) fn zeros_on_diagonal(&self) -> usize {
        self.diagonal.iter().filter(|value| **value == 0.0).count()
    }

    /// Returns a copy of S, both triangles.
    pub fn to_matrix(&self) -> Mat<f64> {
        let s = self.view();
        let mut copy = Mat::zeros(self.rank(), self.rank());
        copy.par_col_iter_mut().enumerate().for_each(|(j, mut column)| {
            column.rb_mut().subrows_mut(0, j).copy_from(s.col(j).subrows(0, j));
            column[j] = self.diagonal[j];
        });
        mirror_upper(copy.as_mut(), 1.0);
        copy
    }

    /// Returns the entries in these rows and columns.
    pub(crate) fn part(&self, rows: &[usize], columns: &[usize]) -> Mat<f64> {
        let s = self.view();
        let mut part = Mat::zeros(rows.len(), columns.len());
        part.par_col_iter_mut().zip(columns).for_each(|(column, &j)| {
            for (value, &i) in column.iter_mut().zip(rows) {
                *value = if i == j { self.diagonal[i] } else { s[(i.min(j), i.max(j))] };
            }
        });
        part
    }

    /// Adds a task whose features are `Q C + Qn Rn`:
    ///
    /// ```text
    /// S <- [ S + C C'   C Rn' ;  Rn C'   Rn Rn' ]
    /// ```
    ///
    /// `c` is r x m, `rn` p x m. Cost: `r^2 m` flops in f64. A matrix on its grid to which no directions are added stays there.
    pub fn grow(&mut self, c: MatRef<'_, f64>, rn: MatRef<'_, f64>) {
        let (r, p) = (self.rank(), rn.nrows());
        assert_eq!(c.nrows(), r);
        if self.on_grid && p == 0 {
            return self.add_and_round(c);
        }
        self.reserve(r + p);
        self.diagonal.resize(r + p, 0.0);
        self.restore_diagonal();
        let (s11, mut s12, _, mut s22) = self.view_mut().split_at_mut(r, r);
        add_product_upper(s11, c, c, 1.0);
        matmul(s12.rb_mut(), Accum::Replace, c, rn.transpose(), 1.0, par());
        s22.fill(0.0);
        add_product_upper(s22, rn, rn, 1.0);
        self.save_diagonal();
    }

    /// Appends `p` rows and columns: `fill` writes the new columns, (r + p) x p, of which only the upper triangle is
    /// used.
    pub(crate) fn append(&mut self, p: usize, fill: impl FnOnce(MatMut<'_, f64>)) {
        let r = self.rank();
        self.reserve(r + p);
        self.diagonal.resize(r + p, 0.0);
        fill(self.view_mut().subcols_mut(r, p));
        let stride = self.stride;
        self.on_grid = false;
        (r..r + p).for_each(|i| self.diagonal[i] = self.store[i * stride + i]);
    }

    /// Extends S by `p` zero rows and columns.
    pub fn extend(&mut self, p: usize) {
        self.grow(Mat::zeros(self.rank(), 0).as_ref(), Mat::zeros(p, 0).as_ref());
    }

    /// Computes `S <- S + F G F'` for F of r rows and a Gram matrix G in other coordinates.
    pub fn add_turned(&mut self, f: MatRef<'_, f64>, g: &Gram) {
        let mut turned = Mat::<f64>::zeros(f.nrows(), f.ncols());
        matmul(&mut turned, Accum::Replace, f, g.to_matrix(), 1.0, par());
        self.restore_diagonal();
        add_product_upper(self.view_mut(), turned.as_ref(), f, 1.0);
        self.save_diagonal();
    }

    /// Computes `S <- S - A A'` for A of r rows.
    pub fn subtract(&mut self, a: MatRef<'_, f64>) {
        self.restore_diagonal();
        add_product_upper(self.view_mut(), a, a, -1.0);
        self.save_diagonal();
    }

    /// Returns the upper triangle, column after column: `r (r + 1) / 2` numbers.
    pub fn to_packed(&self) -> Vec<f64> {
        let s = self.view();
        let mut packed = Vec::with_capacity(self.rank() * (self.rank() + 1) / 2);
        for j in 0..self.rank() {
            packed.extend((0..j).map(|i| s[(i, j)]));
            packed.push(self.diagonal[j]);
        }
        packed
    }

    /// Creates S from its upper triangle; returns None if the number of values does not match the rank.
    pub fn from_packed(packed: &[f64], rank: usize) -> Option<Self> {
        if rank.checked_add(1).and_then(|next| next.checked_mul(rank)) != packed.len().checked_mul(2) {
            return None;
        }
        let mut gram = Gram::zeros(rank);
        let mut rest = packed;
        for j in 0..rank {
            let (column, after) = rest.split_at(j + 1);
            gram.store[j * gram.stride..j * gram.stride + j].copy_from_slice(&column[..j]);
            gram.diagonal[j] = column[j];
            rest = after;
        }
        Some(gram)
    }

    /// Returns the submatrix of the rows and columns in `places`.
    pub(crate) fn select(&self, places: &[usize]) -> Gram {
        let s = self.view();
        let mut gram = Gram::zeros(places.len());
        gram.view_mut().par_col_iter_mut().enumerate().for_each(|(j, mut column)| {
            for i in 0..j {
                let (a, b) = (places[i].min(places[j]), places[i].max(places[j]));
                column[i] = s[(a, b)];
            }
        });
        gram.diagonal = places.iter().map(|place| self.diagonal[*place]).collect();
        gram
    }

    /// Replaces S by a diagonal matrix.
    pub fn set_diagonal(&mut self, values: &[f64]) {
        self.store = Vec::new(); // Frees the old square before the new one is allocated.
        self.stride = values.len().div_ceil(STEP) * STEP;
        self.store = vec![0.0; self.stride * self.stride];
        // Memory that is read before it is written is mapped twice, page by page: 1.5 s for 800 MB.
        self.store.par_chunks_mut(1 << 20).for_each(|chunk| chunk.fill(0.0));
        self.diagonal = values.to_vec();
        self.on_grid = false;
    }

    /// Computes `S <- sum over j of values_j v_j v_j'`.
    pub fn set_eigen(&mut self, values: &[f64], vectors: MatRef<'_, f64>) {
        assert_eq!(vectors.nrows(), self.rank());
        let mut scaled = vectors.to_owned();
        for (j, value) in values.iter().enumerate() {
            scaled.col_mut(j).iter_mut().for_each(|v| *v *= value.max(0.0).sqrt());
        }
        self.view_mut().fill(0.0);
        add_product_upper(self.view_mut(), scaled.as_ref(), scaled.as_ref(), 1.0);
        self.save_diagonal();
    }

    /// Replaces S by another symmetric matrix of the same size.
    pub fn set_matrix(&mut self, s: MatRef<'_, f64>) {
        assert_eq!(s.nrows(), self.rank());
        self.view_mut().copy_from(s);
        self.save_diagonal();
    }

    /// Replaces S by `A' A` for a square A of the same size.
    pub fn set_product(&mut self, a: MatRef<'_, f64>) {
        assert_eq!((a.nrows(), a.ncols()), (self.rank(), self.rank()));
        self.view_mut().fill(0.0);
        add_product_upper(self.view_mut(), a.transpose(), a.transpose(), 1.0);
        self.save_diagonal();
    }

    /// Creates a matrix of fixed size: S = 0 with `rank` directions.
    pub fn zeros(rank: usize) -> Self {
        let mut gram = Gram::default();
        gram.set_diagonal(&vec![0.0; rank]);
        gram
    }

    /// Creates a matrix from its columns, `step` at a time: `fill` writes those of a range down to its end, of which only
    /// the upper triangle is used.
    pub(crate) fn by_columns(rank: usize, step: usize, mut fill: impl FnMut(Range<usize>, MatMut<'_, f64>)) -> Self {
        let mut gram = Gram::zeros(rank);
        for first in (0..rank).step_by(step) {
            let end = rank.min(first + step);
            fill(first..end, gram.view_mut().submatrix_mut(0, first, end, end - first));
        }
        gram.save_diagonal();
        gram
    }

    /// Computes `S <- S + G` for a matrix of the same size.
    pub fn add_gram(&mut self, g: &Gram) {
        let (mut s, g) = (self.view_mut(), (g.view(), &g.diagonal));
        s.rb_mut().par_col_iter_mut().enumerate().for_each(|(j, column)| {
            column.subrows_mut(0, j).iter_mut().zip(g.0.col(j).iter()).for_each(|(s, g)| *s += *g);
        });
        self.diagonal.iter_mut().zip(g.1).for_each(|(s, g)| *s += *g);
        self.on_grid = false;
    }

    /// Computes `S <- S + A A'` for A of r rows.
    pub fn add(&mut self, a: MatRef<'_, f64>) {
        self.grow(a, Mat::zeros(0, a.ncols()).as_ref());
    }

    /// Returns the sum of the squares of all entries.
    pub fn squared_norm(&self) -> f64 {
        let s = self.view();
        let above: f64 = (1..self.rank()).map(|j| s.col(j).subrows(0, j).squared_norm_l2()).sum();
        2.0 * above + self.diagonal.iter().map(|v| v * v).sum::<f64>()
    }

    /// Returns the level below which ridges are lost in the rounding of S: `r eps max(S_ii)`, or that of its grid.
    pub fn rounding_floor(&self) -> f64 {
        let exact = self.rank() as f64 * f64::EPSILON * self.scale();
        if self.on_grid { exact.max(Gram::grid_noise(self.rank(), self.trace())) } else { exact }
    }

    /// Returns the largest diagonal entry: S divided by it has entries of at most 1.
    fn scale(&self) -> f64 {
        self.diagonal.iter().copied().fold(f64::MIN_POSITIVE, f64::max)
    }

    /// Writes `scale (S + ridge I)` into the lower triangle.
    fn load_lower(&mut self, scale: f64, ridge: f64) {
        mirror_upper(self.view_mut(), scale);
        let stride = self.stride;
        for (i, value) in self.diagonal.iter().enumerate() {
            self.store[i * stride + i] = scale * (value + ridge);
        }
    }

    fn restore_diagonal(&mut self) {
        let stride = self.stride;
        self.diagonal.iter().enumerate().for_each(|(i, v)| self.store[i * stride + i] = *v);
    }

    /// Ends a change of S in `store`.
    fn save_diagonal(&mut self) {
        self.on_grid = false;
        let stride = self.stride;
        self.diagonal.iter_mut().enumerate().for_each(|(i, v)| *v = self.store[i * stride + i]);
    }

    fn view(&self) -> MatRef<'_, f64> {
        let r = self.rank();
        MatRef::from_column_major_slice_with_stride(&self.store, r, r, self.stride)
    }

    fn view_mut(&mut self) -> MatMut<'_, f64> {
        let r = self.rank();
        MatMut::from_column_major_slice_with_stride_mut(&mut self.store, r, r, self.stride)
    }

    /// Makes room for `rank` directions. Extends the allocation and moves the columns from the last one on, so that
    /// there is never a second copy.
    fn reserve(&mut self, rank: usize) {
        if rank <= self.stride {
            return;
        }
        let (old, r) = (self.stride, self.rank());
        self.stride = rank.div_ceil(STEP) * STEP;
        let length = self.stride * self.stride;
        self.store.reserve_exact(length - self.store.len());
        self.store.resize(length, 0.0);
        for j in (1..r).rev() {
            self.store.copy_within(j * old..j * old + j + 1, j * self.stride);
        }
    }
}

/// Computes `S <- S + alpha A B'`, upper triangle only.
fn add_product_upper(s: MatMut<'_, f64>, a: MatRef<'_, f64>, b: MatRef<'_, f64>, alpha: f64) {
    let whole = BlockStructure::Rectangular;
    matmul_triangular(s, BlockStructure::TriangularUpper, Accum::Add, a, whole, b.transpose(), whole, alpha, par());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn sample(n: usize, m: usize) -> Mat<f64> {
        Mat::from_fn(n, m, |i, j| (((i * 37 + j * 101) ^ (i * j + 13)) % 1009) as f64 / 504.5 - 1.0)
    }

    /// Returns a Gram matrix grown in steps of `p` directions, and the same matrix computed at once.
    fn grown(steps: &[(usize, usize)]) -> (Gram, Mat<f64>) {
        let total: usize = steps.iter().map(|(p, _)| p).sum();
        let mut gram = Gram::default();
        let mut exact = Mat::<f64>::zeros(total, total);
        for &(p, m) in steps {
            let r = gram.rank();
            let block = sample(r + p, m);
            gram.grow(block.as_ref().subrows(0, r), block.as_ref().subrows(r, p));
            let product = &block * block.transpose();
            for j in 0..r + p {
                (0..r + p).for_each(|i| exact[(i, j)] += product[(i, j)]);
            }
        }
        (gram, exact)
    }

    #[test]
    fn growing_in_tasks_equals_the_whole_product() {
        let (mut gram, exact) = grown(&[(40, 45), (0, 7), (300, 310), (1, 1), (200, 220)]);
        assert!((gram.to_matrix() - &exact).norm_max() < 1e-11 * exact.norm_max());
        assert_eq!(Gram::from_packed(&gram.to_packed(), 541).unwrap().to_matrix(), gram.to_matrix());
        assert!(Gram::from_packed(&gram.to_packed(), 540).is_none());
        // Factorisations in the lower triangle do not change S, and S can grow after them.
        gram.log_det(1.0).unwrap();
        gram.eigenvalues().unwrap();
        assert!((gram.to_matrix() - &exact).norm_max() < 1e-11 * exact.norm_max());
        gram.grow(Mat::zeros(541, 1).as_ref(), Mat::from_fn(1, 1, |_, _| 2.0).as_ref());
        assert_eq!(gram.to_matrix()[(541, 541)], 4.0);
        assert!((gram.to_matrix().submatrix(0, 0, 541, 541) - &exact).norm_max() < 1e-11 * exact.norm_max());
    }

    #[test]
    fn every_route_to_the_spectrum_agrees() {
        let (mut gram, exact) = grown(&[(60, 80), (90, 130)]);
        let eigen = gram.eigen().unwrap();
        let values = Mat::from_fn(150, 150, |i, j| if i == j { eigen.values[i] } else { 0.0 });
        let back = &eigen.vectors * values * eigen.vectors.transpose();
        assert!((back - &exact).norm_max() < 1e-11 * exact.norm_max());
        let alone = gram.eigenvalues().unwrap();
        assert!(alone.iter().zip(&eigen.values).all(|(a, b)| (a - b).abs() < 1e-11 * eigen.values[0]));
        let floor = 1e-3;
        let sum: f64 = eigen.values.iter().map(|v| (v.max(0.0) + floor).ln()).sum();
        assert!((gram.log_det(floor).unwrap() - sum).abs() < 1e-6 * sum.abs());
        let mut solved = sample(3, 150);
        gram.solve(&mut solved, 0.5).unwrap();
        let mut filtered = sample(3, 150);
        gram.apply_function(&mut filtered, |mu, _| mu.iter().map(|m| 1.0 / (m + 0.5)).collect()).unwrap();
        assert!((&solved - &filtered).norm_max() < 1e-10 * filtered.norm_max());
    }

    #[test]
    fn a_matrix_that_is_not_definite_is_a_typed_error() {
        let mut gram = Gram::default();
        gram.set_diagonal(&[1.0, -1.0]);
        assert_eq!(gram.log_det(0.0), Err(Error::NotPositiveDefinite { rank: 2, ridge: 0.0 }));
        gram.set_diagonal(&[1.0, f64::NAN]);
        assert_eq!(gram.eigen().err(), Some(Error::Eigen { rank: 2 }));
    }
}
