//! S, the Gram matrix of all features seen so far in the coordinates of the basis: `S = Q' (H H') Q`, r x r, f64.
//!
//! The rivals use the same square for theirs: `H H'` itself (E x E), a scatter, or the Gram matrix of a task.
//!
//! One square holds both S (upper triangle) and the scratch of every factorisation (lower triangle): a Cholesky
//! factor or Householder vectors come and go without a second r x r matrix. Only this module calls an eigensolver.

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{BlockStructure, matmul as matmul_triangular};
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::linalg::triangular_solve::solve_upper_triangular_in_place;
use faer::prelude::{ReborrowMut, Solve};
use faer::{Accum, Mat, MatMut, MatRef, Side};
use rayon::prelude::*;

use crate::error::Error;
use crate::linalg::{cholesky_lower, cholesky_of_independent, mirror_upper, par};
use crate::shifted::Shifted;
use crate::tridiagonal;

/// The storage grows by this many columns at a time.
const STEP: usize = 256;

/// The symmetric positive semidefinite matrix S.
#[derive(Debug, Clone, Default)]
pub struct Gram {
    /// Column-major with leading dimension `stride`; the upper triangle is S, the lower one scratch.
    store: Vec<f64>,
    stride: usize,
    /// The diagonal of S; the one in `store` belongs to the scratch.
    diagonal: Vec<f64>,
}

/// `S = V diag(values) V'` with the values in descending order.
pub struct Eigen {
    /// Eigenvalues, largest first.
    pub values: Vec<f64>,
    /// Eigenvectors, one per column.
    pub vectors: Mat<f64>,
}

impl Gram {
    /// Number of directions, r.
    pub fn rank(&self) -> usize {
        self.diagonal.len()
    }

    /// Bytes held in memory.
    pub fn bytes(&self) -> usize {
        (self.store.len() + self.diagonal.len()) * size_of::<f64>()
    }

    /// Trace of S: the energy of all features seen.
    pub fn trace(&self) -> f64 {
        self.diagonal.iter().sum()
    }

    /// A copy of S, both triangles.
    pub fn to_matrix(&self) -> Mat<f64> {
        let s = self.view();
        Mat::from_fn(self.rank(), self.rank(), |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => s[(i, j)],
            std::cmp::Ordering::Equal => self.diagonal[i],
            std::cmp::Ordering::Greater => s[(j, i)],
        })
    }

    /// Takes in a task whose features are `Q C + Qn Rn`:
    ///
    /// ```text
    /// S <- [ S + C C'   C Rn' ;  Rn C'   Rn Rn' ]
    /// ```
    ///
    /// `c` is r x m, `rn` p x m. Cost: `r^2 m` flops in f64.
    pub fn grow(&mut self, c: MatRef<'_, f64>, rn: MatRef<'_, f64>) {
        let (r, p) = (self.rank(), rn.nrows());
        assert_eq!(c.nrows(), r);
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

    /// Takes in `p` more rows and columns: `fill` writes the new columns, (r + p) x p, of which the upper triangle counts.
    pub(crate) fn append(&mut self, p: usize, fill: impl FnOnce(MatMut<'_, f64>)) {
        let r = self.rank();
        self.reserve(r + p);
        self.diagonal.resize(r + p, 0.0);
        fill(self.view_mut().subcols_mut(r, p));
        let stride = self.stride;
        (r..r + p).for_each(|i| self.diagonal[i] = self.store[i * stride + i]);
    }

    /// Room for `p` more directions, of which nothing is known yet.
    pub fn extend(&mut self, p: usize) {
        self.grow(Mat::zeros(self.rank(), 0).as_ref(), Mat::zeros(p, 0).as_ref());
    }

    /// `S <- S + F G F'` for F of r rows and a Gram matrix G in other coordinates.
    pub fn add_turned(&mut self, f: MatRef<'_, f64>, g: &Gram) {
        let mut turned = Mat::<f64>::zeros(f.nrows(), f.ncols());
        matmul(&mut turned, Accum::Replace, f, g.to_matrix(), 1.0, par());
        self.restore_diagonal();
        add_product_upper(self.view_mut(), turned.as_ref(), f, 1.0);
        self.save_diagonal();
    }

    /// `S <- S - A A'` for A of r rows.
    pub fn subtract(&mut self, a: MatRef<'_, f64>) {
        self.restore_diagonal();
        add_product_upper(self.view_mut(), a, a, -1.0);
        self.save_diagonal();
    }

    /// The upper triangle, column after column: `r (r + 1) / 2` numbers.
    pub fn to_packed(&self) -> Vec<f64> {
        let s = self.view();
        let mut packed = Vec::with_capacity(self.rank() * (self.rank() + 1) / 2);
        for j in 0..self.rank() {
            packed.extend((0..j).map(|i| s[(i, j)]));
            packed.push(self.diagonal[j]);
        }
        packed
    }

    /// S from its upper triangle; None if it has not as many numbers as a triangle of this rank.
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

    /// The rows and columns in `places`.
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
        self.store = Vec::new(); // What was there goes before the new square comes.
        self.stride = values.len().div_ceil(STEP) * STEP;
        self.store = vec![0.0; self.stride * self.stride];
        // Memory that is read before it is written is mapped twice, page by page: 1.5 s for 800 MB.
        self.store.par_chunks_mut(1 << 20).for_each(|chunk| chunk.fill(0.0));
        self.diagonal = values.to_vec();
    }

    /// `S <- sum over j of values_j v_j v_j'`.
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

    /// Full eigendecomposition. Needs about five r x r matrices while it runs.
    ///
    /// Tried in turn: faer's divide and conquer on S scaled to 1, faer's SVD (for a semidefinite matrix the same
    /// thing), and then a typed error.
    pub fn eigen(&mut self) -> Result<Eigen, Error> {
        let rank = self.rank();
        if rank == 0 {
            return Ok(Eigen { values: Vec::new(), vectors: Mat::zeros(0, 0) });
        }
        let scale = self.scale();
        self.load_lower(1.0 / scale, 0.0);
        let s = self.view();
        let trusted = |values: &[f64], vectors: MatRef<'_, f64>| {
            let trace: f64 = values.iter().sum();
            (trace - self.trace() / scale).abs() < 1e-8 * rank as f64 && vectors.norm_max() <= 1.0 + 1e-8
        };
        if let Ok(evd) = s.self_adjoint_eigen(Side::Lower) {
            let values: Vec<f64> = evd.S().column_vector().iter().rev().map(|v| v * scale).collect();
            if trusted(&values.iter().map(|v| v / scale).collect::<Vec<_>>(), evd.U()) {
                return Ok(Eigen { values, vectors: evd.U().reverse_cols().to_owned() });
            }
        }
        if let Ok(svd) = self.to_matrix().svd() {
            let values: Vec<f64> = svd.S().column_vector().iter().copied().collect();
            let relative: Vec<f64> = values.iter().map(|v| v / scale).collect();
            if trusted(&relative, svd.U()) {
                return Ok(Eigen { values, vectors: svd.U().to_owned() });
            }
        }
        Err(Error::Eigen { rank })
    }

    /// Eigenvalues in descending order.
    pub fn eigenvalues(&mut self) -> Result<Vec<f64>, Error> {
        let scale = self.scale();
        self.load_lower(1.0 / scale, 0.0);
        match tridiagonal::eigenvalues(self.view_mut()) {
            Ok(values) => Ok(values.into_iter().map(|v| v * scale).collect()),
            Err(_) => Ok(self.eigen()?.values),
        }
    }

    /// `B <- B f(S)`; `f` sees the eigenvalues in descending order and the energy of B along each eigenvector, and
    /// returns its value at each. Memory: O(r) per row of B.
    pub fn apply_function(
        &mut self,
        b: &mut Mat<f64>,
        f: impl FnOnce(&[f64], &[f64]) -> Vec<f64>,
    ) -> Result<(), Error> {
        let scale = self.scale();
        self.load_lower(1.0 / scale, 0.0);
        let mut f = Some(f);
        let mut attempt = b.clone();
        let done = tridiagonal::apply_function(self.view_mut(), attempt.as_mut(), |values, energies| {
            let values: Vec<f64> = values.iter().map(|v| v * scale).collect();
            f.take().map_or_else(|| vec![0.0; values.len()], |f| f(&values, energies))
        });
        if done.is_ok() {
            *b = attempt;
            return Ok(());
        }
        // The QL iteration gives up before it calls f, so f is still there for the next rung of the ladder.
        let f = f.ok_or(Error::Eigen { rank: self.rank() })?;
        let Eigen { values, vectors } = self.eigen()?;
        let mut rotated = &*b * &vectors;
        let energies: Vec<f64> = (0..values.len()).map(|j| rotated.col(j).squared_norm_l2()).collect();
        for (j, weight) in f(&values, &energies).into_iter().enumerate() {
            rotated.col_mut(j).iter_mut().for_each(|v| *v *= weight);
        }
        *b = rotated * vectors.transpose();
        Ok(())
    }

    /// Prepares `left (S + shift I)^-1 right` for many shifts, by one reduction. `left` is v x r, `right` r x c.
    pub(crate) fn shifted(&mut self, left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Shifted {
        self.load_lower(1.0, 0.0);
        Shifted::new(self.view_mut(), left, right)
    }

    /// `log det(S + floor I)` by a Cholesky factorisation.
    pub fn log_det(&mut self, floor: f64) -> Result<f64, Error> {
        self.factorise(floor)?;
        let l = self.view();
        Ok((0..self.rank()).map(|i| 2.0 * l[(i, i)].ln()).sum())
    }

    /// The diagonal of `(S + ridge I)^-1`, for the ridge that was last solved with, whose factor is still there.
    pub(crate) fn inverse_diagonal(&mut self) -> Vec<f64> {
        const BLOCK: usize = 128;
        let (l, n) = (self.view(), self.rank());
        let mut diagonal = Vec::with_capacity(n);
        for first in (0..n).step_by(BLOCK) {
            // Columns of L^-1: zero above their own rows.
            let rest = n - first;
            let mut columns = Mat::<f64>::identity(rest, BLOCK.min(rest));
            let l = l.submatrix(first, first, rest, rest);
            solve_lower_triangular_in_place(l, columns.as_mut(), par());
            diagonal.extend(columns.col_iter().map(|column| column.squared_norm_l2()));
        }
        diagonal
    }

    /// The geometric mean of the eigenvalues that are more than rounding; None if there are none. Directions count as
    /// rounding by what a row adds to the span of the others, relative to its own length.
    pub(crate) fn geometric_mean(&mut self) -> Result<Option<f64>, Error> {
        let n = self.rank();
        let lengths: Vec<f64> = self.diagonal.iter().map(|v| v.max(0.0).sqrt()).collect();
        self.load_correlations(&lengths);
        let independent = cholesky_of_independent(self.view_mut(), n as f64 * f64::EPSILON, par());
        let (rows, others): (Vec<usize>, Vec<usize>) = (0..n).partition(|i| independent[*i]);
        if rows.is_empty() {
            return Ok(None);
        }
        let l = self.view();
        let mut sum: f64 = rows.iter().map(|&i| 2.0 * (l[(i, i)] * lengths[i]).ln()).sum();
        if !others.is_empty() {
            // With T the rows that are independent and C T the others, the product of the eigenvalues that are not zero is
            // det(T'T + T'C'C T) = det(T)^2 det(I + C C').
            // Columns of L that belong to the others are those of I: what is zero there stays zero.
            let place = |j: usize, i: usize| if independent[j] && j < others[i] { l[(others[i], j)] } else { 0.0 };
            let mut c = Mat::from_fn(n, others.len(), place);
            solve_upper_triangular_in_place(l.transpose(), c.as_mut(), par());
            let c =
                Mat::from_fn(rows.len(), others.len(), |j, i| c[(rows[j], i)] * lengths[others[i]] / lengths[rows[j]]);
            let mut square = if c.nrows() < c.ncols() { &c * c.transpose() } else { c.transpose() * &c };
            (0..square.nrows()).for_each(|i| square[(i, i)] += 1.0);
            if !cholesky_lower(square.as_mut(), par()) {
                return Err(Error::NotPositiveDefinite { rank: n, ridge: 0.0 });
            }
            sum += (0..square.nrows()).map(|i| 2.0 * square[(i, i)].ln()).sum::<f64>();
        }
        Ok(Some((sum / rows.len() as f64).exp()))
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

    /// `B <- B (S + ridge I)^-1` by a Cholesky factorisation.
    pub fn solve(&mut self, b: &mut Mat<f64>, ridge: f64) -> Result<(), Error> {
        self.factorise(ridge)?;
        self.solve_factored(b);
        Ok(())
    }

    /// A copy that holds the Cholesky factor of `S + ridge I`.
    pub(crate) fn factored(&self, ridge: f64) -> Result<Gram, Error> {
        let mut copy = self.clone();
        copy.factorise(ridge)?;
        Ok(copy)
    }

    /// `B <- B (S + ridge I)^-1` for the ridge of [`Gram::factored`].
    pub(crate) fn solve_factored(&self, b: &mut Mat<f64>) {
        let l = self.view();
        solve_lower_triangular_in_place(l, b.as_mut().transpose_mut(), par());
        solve_upper_triangular_in_place(l.transpose(), b.as_mut().transpose_mut(), par());
    }

    /// `B <- B (S + ridge I)^-1`, going on where S + ridge I is not definite to rounding: by Cholesky, or else by LU, which
    /// takes three more squares. What comes out of a matrix that is singular to rounding is mostly noise, as from any
    /// solver. Tells whether Cholesky did it.
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

    /// A fixed size instead of a growing one: S = 0 with `rank` directions.
    pub fn zeros(rank: usize) -> Self {
        let mut gram = Gram::default();
        gram.set_diagonal(&vec![0.0; rank]);
        gram
    }

    /// `S <- S + A A'` for A of r rows.
    pub fn add(&mut self, a: MatRef<'_, f64>) {
        self.grow(a, Mat::zeros(0, a.ncols()).as_ref());
    }

    /// Sum of the squares of all entries.
    pub fn squared_norm(&self) -> f64 {
        let s = self.view();
        let above: f64 = (1..self.rank()).map(|j| s.col(j).subrows(0, j).squared_norm_l2()).sum();
        2.0 * above + self.diagonal.iter().map(|v| v * v).sum::<f64>()
    }

    /// Ridges below this are lost in the rounding of S: `r eps max(S_ii)`.
    pub fn rounding_floor(&self) -> f64 {
        self.rank() as f64 * f64::EPSILON * self.scale()
    }

    fn factorise(&mut self, ridge: f64) -> Result<(), Error> {
        self.load_lower(1.0, ridge);
        if cholesky_lower(self.view_mut(), par()) {
            Ok(())
        } else {
            Err(Error::NotPositiveDefinite { rank: self.rank(), ridge })
        }
    }

    /// The largest diagonal entry: S divided by it has entries of at most 1.
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

    fn save_diagonal(&mut self) {
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

    /// Makes room for `rank` directions: extends the allocation and spreads the columns from the last one on, so
    /// that there is never a second copy.
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

/// `S <- S + alpha A B'`, upper triangle only.
fn add_product_upper(s: MatMut<'_, f64>, a: MatRef<'_, f64>, b: MatRef<'_, f64>, alpha: f64) {
    let whole = BlockStructure::Rectangular;
    matmul_triangular(s, BlockStructure::TriangularUpper, Accum::Add, a, whole, b.transpose(), whole, alpha, par());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(n: usize, m: usize) -> Mat<f64> {
        Mat::from_fn(n, m, |i, j| (((i * 37 + j * 101) ^ (i * j + 13)) % 1009) as f64 / 504.5 - 1.0)
    }

    /// A Gram matrix grown in steps of `p` directions, and the same matrix computed at once.
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
        // Factorisations in the lower triangle leave S alone, and S can grow after them.
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
