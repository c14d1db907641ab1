//! A symmetric matrix in single precision, of which only the lower triangle is stored, and its Cholesky factor.
//!
//! ```text
//! A  n x n  f32   panels of 512 rows: panel i has the tiles (i, 0) to (i, i), one after the other, column-major
//! ```
//!
//! Factorisations take no further memory: `2 n (n + 512)` bytes in all, where f64 with both triangles takes `8 n^2`. All
//! work is products of tiles, as many at a time as there are threads.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

use crate::error::Error;
use crate::linalg::{add_product_lower, factorise_independent, llt_in_place, par};
use crate::memory::reserve;

/// Rows of a tile.
pub(super) const TILE: usize = 512;

/// The lower triangle of a symmetric matrix, or its Cholesky factor.
pub(crate) struct Packed {
    panels: Vec<Panel>,
}

/// Some rows of the lower triangle, with zeros above the diagonal of a factor.
struct Panel {
    rows: Range<usize>,
    values: Vec<f32>,
}

/// Returns the bytes of a matrix with n rows.
pub(super) fn packed_bytes(n: usize) -> usize {
    2usize.saturating_mul(n).saturating_mul(n.saturating_add(TILE))
}

/// Returns the ranges of tiles of `n` rows.
pub(super) fn tiles(n: usize) -> impl ExactSizeIterator<Item = Range<usize>> {
    (0..n.div_ceil(TILE)).map(move |i| i * TILE..((i + 1) * TILE).min(n))
}

impl Packed {
    /// Allocates a matrix of zeros.
    pub fn zeros(n: usize) -> Result<Self, Error> {
        let panel = |rows: Range<usize>| {
            let size = rows.len() * rows.end;
            // An allocation that fails ends the process: it is tried first. Zeros that are not touched take no memory.
            reserve::<f32>(size).map(|_| Panel { rows, values: vec![0.0; size] })
        };
        Ok(Packed { panels: tiles(n).map(panel).collect::<Result<_, _>>()? })
    }

    /// Writes every tile: `tile` receives its rows and columns, and memory for it.
    pub fn fill(&mut self, tile: impl Fn(Range<usize>, Range<usize>, MatMut<'_, f64>) + Sync) {
        self.panels.par_iter_mut().for_each(|panel| {
            let rows = panel.rows.clone();
            panel.values.par_chunks_mut(rows.len() * TILE).enumerate().for_each(|(j, values)| {
                let columns = j * TILE..(j * TILE + values.len() / rows.len());
                let mut wide = Mat::<f64>::zeros(rows.len(), columns.len());
                tile(rows.clone(), columns, wide.as_mut());
                let wide = wide.col_iter().flat_map(|column| column.iter());
                values.iter_mut().zip(wide).for_each(|(value, wide)| *value = *wide as f32);
            });
        });
    }

    /// Computes `A = L L'` in place. Returns false if A is not positive definite.
    pub fn factorise(&mut self) -> bool {
        self.by_panels(|block| llt_in_place(block).map(|_| Vec::new())).is_some()
    }

    /// Computes the same for the rows of a semidefinite matrix that add more than `tolerance` to the span of those
    /// before them. The other rows and columns of L are those of I. Returns the other rows.
    pub fn factorise_independent(&mut self, tolerance: f64) -> Vec<usize> {
        let dependent = self.by_panels(|block| Some(factorise_independent(block, tolerance))).unwrap_or_default();
        for &row in &dependent {
            let panel = &mut self.panels[row / TILE];
            let height = panel.rows.len();
            panel.values[row % TILE..].iter_mut().step_by(height).take(row).for_each(|value| *value = 0.0);
        }
        dependent
    }

    /// Computes the factorisation, one column of tiles after the other. Blocks of the diagonal are factorised by a
    /// callback, which returns their dependent columns. Returns all of these, or None if the callback fails.
    fn by_panels(&mut self, factorise: impl Fn(MatMut<'_, f32>) -> Option<Vec<usize>>) -> Option<Vec<usize>> {
        let mut dependent = Vec::new();
        for k in 0..self.panels.len() {
            let (before, after) = self.panels.split_at_mut(k + 1);
            let panel = &mut before[k];
            let own = panel.rows.clone();
            let (left, mut block) = panel.split(k);
            add_product_lower(block.rb_mut(), left, -1.0, par());
            let mut l = block.rb().to_owned();
            let columns = factorise(l.as_mut())?;
            (1..own.len()).for_each(|j| l.col_mut(j).subrows_mut(0, j).fill(0.0));
            block.copy_from(&l);
            after.par_iter_mut().for_each(|panel| {
                let (other, mut tile) = panel.split(k);
                matmul(tile.rb_mut(), Accum::Add, other, left.transpose(), -1.0, Par::Seq);
                solve_lower_triangular_in_place(l.as_ref(), tile.rb_mut().transpose_mut(), Par::Seq);
                columns.iter().for_each(|j| tile.rb_mut().col_mut(*j).fill(0.0));
            });
            dependent.extend(columns.into_iter().map(|j| own.start + j));
        }
        Some(dependent)
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.panels.last().map_or(0, |panel| panel.rows.end)
    }

    /// Returns the squared diagonal of L: what each row adds to the span of those before it.
    pub fn pivots(&self) -> impl Iterator<Item = f64> {
        self.panels.iter().flat_map(|panel| panel.diagonal()).map(|l| f64::from(l).powi(2))
    }

    /// Returns `log det(L L')`.
    pub fn log_det(&self) -> f64 {
        self.pivots().map(f64::ln).sum()
    }

    /// Computes `B <- B (L L')^-1`; B has n columns.
    pub fn solve(&self, b: &mut Mat<f32>) {
        self.solve_lower(b);
        for (k, panel) in self.panels.iter().enumerate().rev() {
            let (before, own) = b.as_mut().subcols_mut(0, panel.rows.end).split_at_col_mut(panel.rows.start);
            let mut own = own;
            solve_upper_triangular_in_place(panel.tile(k).transpose(), own.rb_mut().transpose_mut(), par());
            let own = own.rb();
            before.par_col_chunks_mut(TILE).enumerate().for_each(|(j, other)| {
                matmul(other, Accum::Add, own, panel.tile(j), -1.0, Par::Seq);
            });
        }
    }

    /// Computes `B <- B L^-T`.
    pub fn solve_lower(&self, b: &mut Mat<f32>) {
        self.solve_lower_from(0, b);
    }

    /// Computes the same for B with zeros in the columns of the first panels.
    fn solve_lower_from(&self, first: usize, b: &mut Mat<f32>) {
        for (k, panel) in self.panels.iter().enumerate().skip(first) {
            let (_, rest) = b.as_mut().split_at_col_mut(panel.rows.start);
            let (mut own, after) = rest.split_at_col_mut(panel.rows.len());
            solve_lower_triangular_in_place(panel.tile(k), own.rb_mut().transpose_mut(), par());
            let own = own.rb();
            after.par_col_chunks_mut(TILE).zip(&self.panels[k + 1..]).for_each(|(other, panel)| {
                matmul(other, Accum::Add, own, panel.tile(k).transpose(), -1.0, Par::Seq);
            });
        }
    }

    /// Returns some entries of the diagonal of `(L L')^-1`, in ascending order.
    pub fn inverse_entries(&self, places: &[usize]) -> Vec<f64> {
        let Some(first) = places.first() else { return Vec::new() };
        let mut columns = Mat::<f32>::zeros(places.len(), self.len());
        places.iter().enumerate().for_each(|(row, place)| columns[(row, *place)] = 1.0);
        self.solve_lower_from(first / TILE, &mut columns);
        let mut entries = vec![0.0; places.len()];
        for column in columns.col_iter().skip(*first) {
            entries.iter_mut().zip(column.iter()).for_each(|(sum, v)| *sum += f64::from(*v).powi(2));
        }
        entries
    }

    /// Replaces L by its inverse, and returns the diagonal of `(L L')^-1`: the squared lengths of its columns.
    pub fn into_inverse_diagonal(mut self) -> Vec<f64> {
        let mut diagonal = Vec::new();
        for i in 0..self.panels.len() {
            let (done, rest) = self.panels.split_at_mut(i);
            let panel = &mut rest[0];
            let height = panel.rows.len();
            let mut own = Mat::<f32>::identity(height, height);
            solve_lower_triangular_in_place(panel.tile(i), own.as_mut(), Par::Seq);
            let mut inverse = vec![0.0f32; panel.values.len()];
            let (others, last) = inverse.split_at_mut(height * panel.rows.start);
            // M = L^-1:  M_ij = -L_ii^-1 (sum over k of L_ik M_kj)
            others.par_chunks_mut(height * TILE).enumerate().for_each(|(j, values)| {
                let mut sum = Mat::<f32>::zeros(height, TILE);
                for (k, other) in done.iter().enumerate().skip(j) {
                    matmul(sum.as_mut(), Accum::Add, panel.tile(k), other.tile(j), 1.0, Par::Seq);
                }
                let tile = MatMut::from_column_major_slice_mut(values, height, TILE);
                matmul(tile, Accum::Replace, own.as_ref(), sum.as_ref(), -1.0, Par::Seq);
            });
            MatMut::from_column_major_slice_mut(last, height, height).copy_from(&own);
            panel.values = inverse;
            diagonal.resize(panel.rows.end, 0.0);
            diagonal.iter_mut().zip(panel.values.chunks_exact(height)).for_each(|(sum, column)| {
                *sum += column.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>();
            });
        }
        diagonal
    }
}

impl Panel {
    /// Returns the tile (i, j) of panel i.
    fn tile(&self, j: usize) -> MatRef<'_, f32> {
        let height = self.rows.len();
        let columns = j * TILE..((j + 1) * TILE).min(self.rows.end);
        MatRef::from_column_major_slice(
            &self.values[height * columns.start..height * columns.end],
            height,
            columns.len(),
        )
    }

    /// Returns all tiles before (i, k), and that tile.
    fn split(&mut self, k: usize) -> (MatRef<'_, f32>, MatMut<'_, f32>) {
        let height = self.rows.len();
        let columns = k * TILE..((k + 1) * TILE).min(self.rows.end);
        let (left, rest) = self.values[..height * columns.end].split_at_mut(height * columns.start);
        let left = MatRef::from_column_major_slice(&*left, height, columns.start);
        (left, MatMut::from_column_major_slice_mut(rest, height, columns.len()))
    }

    fn diagonal(&self) -> impl Iterator<Item = f32> {
        let height = self.rows.len();
        (0..height).map(move |i| self.values[(self.rows.start + i) * height + i])
    }
}
