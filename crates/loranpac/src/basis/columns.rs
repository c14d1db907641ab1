//! The columns of a basis: an `E x r` matrix, stored as blocks of columns, to which columns are appended.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

use crate::buffer::Buffer;
use crate::linalg::{PANEL, add_product_lower, par};
use crate::memory::product;
use crate::scalar::Scalar;

/// Columns per block. Growing the basis never moves existing columns.
pub(crate) const BLOCK: usize = 256;

/// An E x r matrix, stored as blocks of columns.
#[derive(Debug, Clone)]
pub struct Columns<T> {
    width: usize,
    rank: usize,
    /// Each holds BLOCK columns, or has capacity for them.
    blocks: Vec<Buffer<T>>,
}

impl<T: Scalar> Columns<T> {
    /// Creates an empty matrix for lifted features of this width.
    pub fn new(width: usize) -> Self {
        Columns { width, rank: 0, blocks: Vec::new() }
    }

    /// Creates a matrix from its columns, in blocks as [`Columns::blocks_for`] divides them. Returns None if the sizes do
    /// not match.
    pub fn from_blocks(width: usize, rank: usize, mut blocks: Vec<Buffer<T>>) -> Option<Self> {
        let fits = |(block, columns): (&Buffer<T>, usize)| width.checked_mul(columns) == Some(block.len());
        let sizes = Self::blocks_for(rank);
        if rank > width || blocks.len() != sizes.len() || !blocks.iter().zip(sizes.map(|b| b.len())).all(fits) {
            return None;
        }
        if !rank.is_multiple_of(BLOCK)
            && let Some(last) = blocks.last_mut()
        {
            last.to_mut().resize(width * BLOCK, T::from_f64(0.0));
        }
        Some(Columns { width, rank, blocks })
    }

    /// Returns the ranges of columns that are contiguous in memory, for a basis of this rank.
    pub fn blocks_for(rank: usize) -> impl ExactSizeIterator<Item = std::ops::Range<usize>> {
        (0..rank.div_ceil(BLOCK)).map(move |block| block * BLOCK..rank.min((block + 1) * BLOCK))
    }

    /// Returns the columns from `first` on, in order, as runs that are contiguous in memory.
    pub fn runs(&self, first: usize) -> impl Iterator<Item = &[T]> {
        self.blocks().filter_map(move |(at, q)| {
            let skip = first.saturating_sub(at).min(q.ncols());
            let block = &self.blocks[at / BLOCK];
            (skip < q.ncols()).then(|| &block[self.width * skip..self.width * q.ncols()])
        })
    }

    /// Returns the number of directions, r.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the lifted width, E.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the bytes held in memory.
    pub fn bytes(&self) -> usize {
        self.blocks.len() * self.width * BLOCK * size_of::<T>()
    }

    /// Returns the bytes that a basis of this size takes.
    pub fn bytes_for(width: usize, rank: usize) -> usize {
        product(&[width, rank.div_ceil(BLOCK), BLOCK, size_of::<T>()])
    }

    /// Returns the columns, block by block: (first column, columns).
    fn blocks(&self) -> impl Iterator<Item = (usize, MatRef<'_, T>)> {
        self.blocks.iter().enumerate().map(|(index, block)| {
            let first = index * BLOCK;
            let columns = BLOCK.min(self.rank - first);
            (first, MatRef::from_column_major_slice(&block[..self.width * columns], self.width, columns))
        })
    }

    /// Returns some rows in f64.
    fn rows(&self, range: Range<usize>) -> Mat<f64> {
        let mut rows = Mat::zeros(range.len(), self.rank);
        for (first, q) in self.blocks() {
            let (q, mut target) = (q.subrows(range.start, range.len()), rows.as_mut().subcols_mut(first, q.ncols()));
            for j in 0..q.ncols() {
                target.rb_mut().col_mut(j).iter_mut().zip(q.col(j).iter()).for_each(|(t, v)| *t = v.to_f64());
            }
        }
        rows
    }

    /// Computes `Q X` in f64, for as many rows as `target` has.
    pub fn expand(&self, x: MatRef<'_, f64>, target: MatMut<'_, f64>) {
        target.par_row_chunks_mut(PANEL).enumerate().for_each(|(panel, target)| {
            let rows = self.rows(panel * PANEL..panel * PANEL + target.nrows());
            matmul(target, Accum::Replace, &rows, x, 1.0, Par::Seq);
        });
    }

    /// Computes the columns of `Q X Q'` that belong to a range of features, for as many rows as `target` has.
    pub fn sandwich(&self, x: MatRef<'_, f64>, range: Range<usize>, target: MatMut<'_, f64>) {
        let mut right = Mat::zeros(self.rank, range.len());
        matmul(&mut right, Accum::Replace, x, self.rows(range).transpose(), 1.0, par());
        self.expand(right.as_ref(), target);
    }

    /// Returns the number of rows that are zero.
    pub fn zero_rows(&self) -> usize {
        let zero = T::from_f64(0.0);
        let mut zeros = vec![true; self.width];
        for run in self.runs(0) {
            for column in run.chunks(self.width) {
                zeros.iter_mut().zip(column).for_each(|(all, v)| *all &= *v == zero);
            }
        }
        zeros.into_iter().filter(|all| *all).count()
    }

    /// Computes `H' Q` (m x r). This orientation is GEMM's fastest shape.
    pub fn project(&self, h: MatRef<'_, T>) -> Mat<T> {
        self.project_onto(h, 0)
    }

    /// Computes `H' Q` for the columns of Q from `first` on.
    pub fn project_onto(&self, h: MatRef<'_, T>, first: usize) -> Mat<T> {
        let mut c = Mat::zeros(h.ncols(), self.rank - first);
        let mut rest = c.as_mut();
        let mut products = Vec::new();
        for (at, q) in self.blocks() {
            let skip = first.saturating_sub(at).min(q.ncols());
            let (target, others) = rest.split_at_col_mut(q.ncols() - skip);
            products.push((target, q.subcols(skip, q.ncols() - skip)));
            rest = others;
        }
        by_threads(products, |(c, q), par| matmul(c, Accum::Replace, h.transpose(), q, T::from_f64(1.0), par));
        c
    }

    /// Computes `Q' H` (r x m) by products of a few rows each, which are added in f64: their rounding is that of few terms.
    pub fn project_wide(&self, h: MatRef<'_, T>) -> Mat<f64> {
        const ROWS: usize = 1024;
        let mut x = Mat::zeros(self.rank, h.ncols());
        let mut rest = x.as_mut();
        let mut products = Vec::new();
        for (_, q) in self.blocks() {
            let (target, others) = rest.split_at_row_mut(q.ncols());
            products.push((target, q));
            rest = others;
        }
        by_threads(products, |(mut x, q), par| {
            let mut product = Mat::<T>::zeros(h.ncols(), q.ncols());
            let mut sum = Mat::<f64>::zeros(h.ncols(), q.ncols());
            for start in (0..self.width).step_by(ROWS) {
                let rows = ROWS.min(self.width - start);
                let (h, q) = (h.subrows(start, rows).transpose(), q.subrows(start, rows));
                matmul(&mut product, Accum::Replace, h, q, T::from_f64(1.0), par);
                for (sum, product) in sum.col_iter_mut().zip(product.col_iter()) {
                    sum.iter_mut().zip(product.iter()).for_each(|(sum, v)| *sum += v.to_f64());
                }
            }
            x.copy_from(sum.transpose());
        });
        x
    }

    /// Computes `H <- H + alpha Q C` for C of r rows.
    pub fn add_product(&self, h: MatMut<'_, T>, c: MatRef<'_, T>, alpha: f64) {
        h.par_row_chunks_mut(PANEL).enumerate().for_each(|(panel, mut h)| {
            for (first, q) in self.blocks() {
                let q = q.subrows(panel * PANEL, h.nrows());
                matmul(h.rb_mut(), Accum::Add, q, c.subrows(first, q.ncols()), T::from_f64(alpha), Par::Seq);
            }
        });
    }

    /// Appends columns that are orthonormal to each other and to the basis.
    pub fn append(&mut self, columns: MatRef<'_, T>) {
        let mut done = 0;
        while done < columns.ncols() {
            let place = self.rank % BLOCK;
            if place == 0 {
                // The system zeroes the memory lazily: it is used as columns are written.
                self.blocks.push(Buffer::from(vec![T::from_f64(0.0); self.width * BLOCK]));
            }
            let count = (BLOCK - place).min(columns.ncols() - done);
            let last = self.blocks.len() - 1;
            let target = &mut self.blocks[last].to_mut()[place * self.width..(place + count) * self.width];
            let source = columns.subcols(done, count);
            target.par_chunks_mut(self.width).zip(source.par_col_iter()).for_each(|(target, column)| {
                target.iter_mut().zip(column.iter()).for_each(|(t, v)| *t = *v);
            });
            self.rank += count;
            done += count;
        }
    }

    /// Computes `Q <- Q V` for V of r rows and at most r columns, in place, a panel of rows at a time.
    pub fn rotate(&mut self, v: MatRef<'_, T>) {
        assert!(v.nrows() == self.rank && v.ncols() <= self.rank);
        if self.rank == 0 {
            return;
        }
        let (width, rank, kept) = (self.width, self.rank, v.ncols());
        let mut panels: Vec<Vec<MatMut<'_, T>>> = (0..width.div_ceil(PANEL)).map(|_| Vec::new()).collect();
        for block in &mut self.blocks {
            let mut rest = MatMut::from_column_major_slice_mut(block.to_mut(), width, BLOCK);
            for list in &mut panels {
                let height = PANEL.min(rest.nrows());
                let (panel, below) = rest.split_at_row_mut(height);
                list.push(panel);
                rest = below;
            }
        }
        panels.into_par_iter().for_each(|mut panel| {
            let rows = panel[0].nrows();
            let mut old = Mat::<T>::zeros(rows, rank);
            for (index, block) in panel.iter().enumerate() {
                let columns = BLOCK.min(rank - index * BLOCK);
                old.as_mut().subcols_mut(index * BLOCK, columns).copy_from(block.rb().subcols(0, columns));
            }
            for (index, block) in panel.iter_mut().enumerate().take(kept.div_ceil(BLOCK)) {
                let columns = BLOCK.min(kept - index * BLOCK);
                let v = v.subcols(index * BLOCK, columns);
                let target = block.rb_mut().subcols_mut(0, columns);
                matmul(target, Accum::Replace, old.as_ref(), v, T::from_f64(1.0), Par::Seq);
            }
        });
        self.rank = kept;
        self.blocks.truncate(kept.div_ceil(BLOCK));
    }

    /// Computes `Q' Q` in f64, lower triangle. Cost: `E r^2` flops in f64.
    pub fn gram(&self) -> Mat<f64> {
        let mut sum = Mat::<f64>::zeros(self.rank, self.rank);
        let mut wide = Mat::<f64>::zeros(PANEL.min(self.width), self.rank);
        for start in (0..self.width).step_by(PANEL) {
            let rows = PANEL.min(self.width - start);
            let mut wide = wide.as_mut().subrows_mut(0, rows);
            for (first, q) in self.blocks() {
                let target = wide.rb_mut().subcols_mut(first, q.ncols());
                target.par_col_chunks_mut(16).zip(q.subrows(start, rows).par_col_chunks(16)).for_each(|(mut w, q)| {
                    for j in 0..w.ncols() {
                        (0..rows).for_each(|i| w[(i, j)] = q[(i, j)].to_f64());
                    }
                });
            }
            add_product_lower(sum.as_mut(), wide.rb().transpose(), 1.0, par());
        }
        sum
    }

    /// Measures how far the basis is from orthonormal: the largest `| |q_i|^2 - 1 |`, and for the products of different
    /// columns an estimate of their size in each row of `Q' Q`, from one random vector: `(Q' (Q g) - g) / sqrt(r)`.
    /// Cost: `6 E r` flops.
    pub fn drift(&self) -> f64 {
        let lengths = self.blocks().flat_map(|(_, q)| {
            q.par_col_iter().map(|q| q.iter().map(|v| v.to_f64().powi(2)).sum::<f64>()).collect::<Vec<_>>()
        });
        let lengths = lengths.map(|length| (length - 1.0).abs()).fold(0.0, f64::max);
        let g = Mat::<T>::from_fn(self.rank, 1, |i, _| T::from_f64(random_sign(i)));
        let mut x = Mat::<T>::zeros(self.width, 1);
        self.add_product(x.as_mut(), g.as_ref(), 1.0);
        let back = self.project(x.as_ref());
        let products = (0..self.rank).map(|i| (back[(0, i)].to_f64() - random_sign(i)).abs()).fold(0.0, f64::max);
        lengths.max(products / (self.rank as f64).sqrt())
    }
}

/// Computes products with blocks. With several for each thread, a thread computes whole products: tasks of few samples leave too
/// little in one to divide it.
fn by_threads<P: Send>(products: Vec<P>, multiply: impl Fn(P, Par) + Sync) {
    if products.len() >= 4 * rayon::current_num_threads() {
        products.into_par_iter().for_each(|product| multiply(product, Par::Seq));
    } else {
        products.into_iter().for_each(|product| multiply(product, par()));
    }
}

/// Returns +1 or -1, from a fixed hash of the index.
fn random_sign(index: usize) -> f64 {
    let scrambled = (index as u64 ^ 0x5851_f42d_4c95_7f2d).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    if (scrambled ^ (scrambled >> 29)).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 }
}
