//! The basis of everything seen so far, of which only blocks of columns and a small factor exist:
//!
//! ```text
//! B  E x r   columns, orthonormal within the block of their task, only ever appended
//! L  r x r   lower triangular, f64:  B' B = L L'
//! Q = B L^-T is orthonormal, and is never formed
//! ```
//!
//! Everything of size r is expressed in Q: the coordinates of H are `Q' H = L^-1 (B' H)`, and coordinates X become
//! features as `Q X = B (L^-T X)`. Only this module knows B and L.
//!
//! Learning passes over B once (`one_pass`). Without dropping, and in f64, B itself is kept orthonormal by two projections
//! (`two_passes`), and L is the identity.
//!
//! Once Q spans all of the lifted space, the unit vectors do as well: Q is the identity, coordinates are the lifted
//! features themselves, and nothing of size E is stored or multiplied.

mod columns;
mod one_pass;
mod triangle;
mod two_passes;

use std::ops::Range;

use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Mat, MatMut, MatRef};
use rayon::prelude::*;

pub(crate) use columns::BLOCK;
pub use columns::Columns;
use triangle::Triangle;

use crate::buffer::Buffer;
use crate::gram::Gram;
use crate::linalg::{cast, cholesky_lower, par, transposed};
use crate::scalar::Scalar;

/// Directions that are rotated at a time.
pub(crate) const STRIP: usize = 512;
/// Columns of `Q S Q'` that are computed at a time.
pub(crate) const SANDWICH: usize = 1024;

/// The basis.
#[derive(Debug, Clone)]
pub struct Basis<T> {
    columns: Columns<T>,
    /// L; None is the identity.
    lower: Option<Triangle>,
    /// Q is the identity of size E, and there are no columns.
    whole: bool,
}

/// `H = Q C + Qn Rn`, up to the residuals that were dropped.
pub struct Split {
    /// C: coordinates in the old basis, r x m.
    pub known: Mat<f64>,
    /// Rn: coordinates in the new directions, p x m.
    pub new: Mat<f64>,
    /// The length of the dropped residual of each sample; it is of rounding size.
    pub left_out: Vec<f64>,
}

/// Rows of L that belong to columns of B, in order.
#[derive(Debug, Clone)]
pub struct Rows {
    /// How many.
    pub count: usize,
    /// Each up to its diagonal, one after the other; None for rows of the identity.
    pub packed: Option<Buffer<f64>>,
}

impl<T: Scalar> Basis<T> {
    /// Creates an empty basis for lifted features of this width.
    pub fn new(width: usize) -> Self {
        Basis { columns: Columns::new(width), lower: None, whole: false }
    }

    /// Creates the basis of unit vectors: `Q = I`.
    pub fn whole(width: usize) -> Self {
        Basis { whole: true, ..Basis::new(width) }
    }

    /// Returns whether Q is the identity of size E.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Creates a basis from its columns, in blocks as [`Basis::blocks_for`] divides them, and the rows of L; without both,
    /// and with a rank of E, it is whole. Returns None
    /// if the sizes do not match, or if L is singular.
    pub fn from_parts(width: usize, rank: usize, blocks: Vec<Buffer<T>>, rows: &[Rows]) -> Option<Self> {
        if rank == width && blocks.is_empty() && rows.is_empty() && rank > 0 {
            return Some(Basis::whole(width));
        }
        let columns = Columns::from_blocks(width, rank, blocks)?;
        if rows.iter().try_fold(0usize, |sum, rows| sum.checked_add(rows.count)) != Some(rank) {
            return None;
        }
        if rows.iter().all(|rows| rows.packed.is_none()) {
            return Some(Basis { columns, lower: None, whole: false });
        }
        let mut lower = Triangle::default();
        for Rows { count, packed } in rows {
            match packed {
                Some(packed) if !lower.append_packed(*count, packed) => return None,
                Some(_) => {}
                None => lower.append(*count, |i, j| if i == j { 1.0 } else { 0.0 }),
            }
        }
        Some(Basis { columns, lower: Some(lower), whole: false })
    }

    /// Returns the ranges of columns that are contiguous in memory, for a basis of this rank.
    pub fn blocks_for(rank: usize) -> impl ExactSizeIterator<Item = std::ops::Range<usize>> {
        Columns::<T>::blocks_for(rank)
    }

    /// Returns the columns of B from `first` on, in order, as runs that are contiguous in memory.
    pub fn columns(&self, first: usize) -> impl Iterator<Item = &[T]> {
        self.columns.runs(first)
    }

    /// Returns the rows of L from `first` on, each up to its diagonal; None if L is the identity.
    pub fn rows(&self, first: usize) -> Option<Vec<f64>> {
        self.lower.as_ref().map(|lower| lower.packed(first))
    }

    /// Returns the number of directions, r.
    pub fn rank(&self) -> usize {
        if self.whole { self.width() } else { self.columns.rank() }
    }

    /// Returns the lifted width, E.
    pub fn width(&self) -> usize {
        self.columns.width()
    }

    /// Returns the bytes held in memory.
    pub fn bytes(&self) -> usize {
        self.columns.bytes() + self.lower.as_ref().map_or(0, Triangle::bytes)
    }

    /// Returns the bytes that a basis of this size takes.
    pub fn bytes_for(width: usize, rank: usize) -> usize {
        Columns::<T>::bytes_for(width, rank).saturating_add(Triangle::bytes_for(rank))
    }

    /// Computes `Q' H` (r x m). Cost: `2 E r m` flops, and `r^2 m` in f64.
    pub fn coordinates(&self, h: MatRef<'_, T>) -> Mat<f64> {
        if self.whole {
            return cast(h);
        }
        let mut x: Mat<f64> = transposed(self.columns.project(h).as_ref());
        self.solve(0, x.as_mut());
        x
    }

    /// Computes `Q' H` for the columns of Q from `first` on; `known` is `Q' H` for those before. Cost: as of the new
    /// columns alone.
    pub fn coordinates_from(&self, first: usize, known: MatRef<'_, f64>, h: MatRef<'_, T>) -> Mat<f64> {
        if self.whole {
            return cast(h.subrows(first, h.nrows() - first));
        }
        let new: Mat<f64> = transposed(self.columns.project_onto(h, first).as_ref());
        if self.lower.is_none() {
            return new;
        }
        let mut x = Mat::zeros(self.rank(), h.ncols());
        x.as_mut().subrows_mut(0, first).copy_from(known);
        x.as_mut().subrows_mut(first, new.nrows()).copy_from(&new);
        self.solve(first, x.as_mut());
        x.subrows(first, new.nrows()).to_owned()
    }

    /// Computes `H <- H + alpha Q X` for X of r rows. Cost: `2 E r m` flops.
    pub fn add_product(&self, h: MatMut<'_, T>, x: MatRef<'_, f64>, alpha: f64) {
        if self.whole {
            h.par_col_iter_mut().zip(x.par_col_iter()).for_each(|(h, x)| {
                h.iter_mut().zip(x.iter()).for_each(|(h, x)| *h = T::from_f64(h.to_f64() + alpha * x));
            });
            return;
        }
        let mut y = x.to_owned();
        self.solve_transposed(y.as_mut());
        self.columns.add_product(h, cast(y.as_ref()).as_ref(), alpha);
    }

    /// Computes `X <- L^-1 X`, of which the rows before `first` are computed already.
    pub(crate) fn solve(&self, first: usize, x: MatMut<'_, f64>) {
        if let Some(lower) = &self.lower {
            lower.solve(first, x);
        }
    }

    fn solve_transposed(&self, x: MatMut<'_, f64>) {
        if let Some(lower) = &self.lower {
            lower.solve_transposed(x);
        }
    }

    /// Splits `h` (E x m, destroyed) into known and new components, and appends the new directions.
    ///
    /// `norms` are the columns' lengths. A residual of at most `drop` times that is rounding noise and adds no
    /// direction; with `drop = 0` every residual becomes one, as in a plain QR factorisation.
    pub fn absorb(&mut self, mut h: MatMut<'_, T>, norms: &[f64], drop: f64) -> Split {
        if self.whole {
            let known = cast(h.rb());
            return Split { known, new: Mat::zeros(0, h.ncols()), left_out: vec![0.0; h.ncols()] };
        }
        if drop > 0.0 && one_pass::suffices::<T>() {
            return self.absorb_once(h, norms, drop);
        }
        let split = self.columns.split(h.rb_mut(), norms, drop);
        self.columns.append(h.rb().subcols(0, split.new.nrows()));
        split
    }

    /// Computes `L^-T V` (r x k) for [`Basis::rotate`]; `rows` returns some of the k columns of V, one per row.
    pub(crate) fn rotation(&self, kept: usize, mut rows: impl FnMut(Range<usize>) -> Mat<f64>) -> Mat<T> {
        let mut rotation = Mat::zeros(self.rank(), kept);
        for first in (0..kept).step_by(STRIP) {
            let range = first..kept.min(first + STRIP);
            let mut v = rows(range.clone());
            self.solve_transposed(v.as_mut().transpose_mut());
            rotation.as_mut().subcols_mut(first, range.len()).copy_from(transposed::<f64, T>(v.as_ref()));
        }
        rotation
    }

    /// Computes `Q <- Q V` from `L^-T V`, and L = I. B is orthonormal to the rounding of the product and of L only: see
    /// [`Basis::drift`]. Cost: `2 E r k` flops.
    pub(crate) fn rotate(&mut self, rotation: Mat<T>) {
        match std::mem::take(&mut self.whole) {
            true => self.columns.append(rotation.as_ref()),
            false => self.columns.rotate(rotation.as_ref()),
        }
        self.lower = None;
    }

    /// Returns whether Q spans all features that were ever active.
    pub(crate) fn spans_all(&self) -> bool {
        self.rank() == self.width() || self.rank() + self.columns.zero_rows() == self.width()
    }

    /// Replaces Q by the identity. Returns `Q S Q'` and `Q N'`, both computed in f64, for S (destroyed) and N'.
    /// Cost: `3 E^2 r` flops.
    pub(crate) fn make_whole(&mut self, mut s: Mat<f64>, mut n: Mat<f64>) -> (Gram, Mat<f64>) {
        // Q S Q' = B (L^-T S L^-1) B'
        self.solve_transposed(s.as_mut());
        self.solve_transposed(s.as_mut().transpose_mut());
        self.solve_transposed(n.as_mut());
        let (columns, width) = (&self.columns, self.width());
        let gram = Gram::by_columns(width, SANDWICH, |range, target| columns.sandwich(s.as_ref(), range, target));
        let mut wide = Mat::zeros(width, n.ncols());
        columns.expand(n.as_ref(), wide.as_mut());
        *self = Basis::whole(width);
        (gram, wide)
    }

    /// Measures how far the columns are from orthonormal, while L is the identity: see [`Columns::drift`].
    pub fn drift(&self) -> f64 {
        self.columns.drift()
    }

    /// Returns L of `B' B = L L'` as a square, to which the basis is changed; what is expressed in the old Q must follow.
    /// None if B is rank-deficient, and then nothing changes. Cost: `E r^2` flops in f64.
    pub(crate) fn orthonormalise(&mut self) -> Option<Mat<f64>> {
        let mut square = self.columns.gram();
        if !cholesky_lower(square.as_mut(), par()) {
            return None;
        }
        let rank = square.nrows();
        square.par_col_iter_mut().enumerate().for_each(|(j, column)| column.subrows_mut(0, j).fill(0.0));
        let lower = Triangle::of(square.as_ref());
        if one_pass::suffices::<T>() {
            self.lower = Some(lower);
        } else {
            let mut inverse = Mat::identity(rank, rank);
            lower.solve_transposed(inverse.as_mut());
            self.columns.rotate(cast(inverse.as_ref()).as_ref());
        }
        Some(square)
    }

    /// Computes `Q' Q` in f64. Cost: `E r^2` flops in f64.
    pub fn gram(&self) -> Mat<f64> {
        if self.whole {
            return Mat::identity(self.rank(), self.rank());
        }
        let lower = self.columns.gram();
        let mut gram = Mat::from_fn(self.rank(), self.rank(), |i, j| lower[(i.max(j), i.min(j))]);
        self.solve(0, gram.as_mut());
        self.solve(0, gram.as_mut().transpose_mut());
        gram
    }
}
