//! L, the lower triangular factor of the columns of a basis: `B' B = L L'`, r x r, f64.
//!
//! Stored as blocks of rows, so that it grows without moving, and takes half of a square.

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, MatMut, MatRef};
use rayon::prelude::*;

use super::columns::BLOCK;
use crate::buffer::Buffer;
use crate::linalg::par;

/// A lower triangular matrix to which rows are appended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Triangle {
    rows: usize,
    /// Block i holds BLOCK rows of `(i + 1) BLOCK` columns, column after column.
    blocks: Vec<Buffer<f64>>,
}

impl Triangle {
    /// Creates the identity.
    pub fn identity(rows: usize) -> Self {
        let mut triangle = Triangle::default();
        triangle.append(rows, |i, j| if i == j { 1.0 } else { 0.0 });
        triangle
    }

    /// Creates the lower triangle of a square.
    pub fn of(square: MatRef<'_, f64>) -> Self {
        let mut triangle = Triangle::default();
        triangle.append(square.nrows(), |i, j| square[(i, j)]);
        triangle
    }

    /// Returns the bytes held in memory.
    pub fn bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.len() * size_of::<f64>()).sum()
    }

    /// Returns the bytes that a triangle of this size takes.
    pub fn bytes_for(rows: usize) -> usize {
        let blocks = rows.div_ceil(BLOCK);
        crate::memory::product(&[blocks, blocks.saturating_add(1) / 2 + 1, BLOCK, BLOCK, size_of::<f64>()])
    }

    /// Appends rows; `value` returns an entry by its row and column, and is called for the lower triangle only.
    pub fn append(&mut self, count: usize, value: impl Fn(usize, usize) -> f64 + Sync) {
        let end = self.rows + count;
        while self.rows < end {
            let (index, start) = (self.rows / BLOCK, self.rows % BLOCK);
            if start == 0 {
                self.blocks.push(Buffer::from(vec![0.0; BLOCK * (self.rows + BLOCK)]));
            }
            let rows = self.rows..end.min((index + 1) * BLOCK);
            // Column after column, as they are stored.
            self.blocks[index].to_mut().par_chunks_mut(BLOCK).enumerate().for_each(|(j, column)| {
                let below = rows.start.max(j)..rows.end;
                below.for_each(|i| column[i % BLOCK] = value(i, j));
            });
            self.rows = rows.end;
        }
    }

    /// Returns the rows from `first` on, each up to its diagonal.
    pub fn packed(&self, first: usize) -> Vec<f64> {
        let entry = |i: usize, j: usize| self.blocks[i / BLOCK][j * BLOCK + i % BLOCK];
        (first..self.rows).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|(i, j)| entry(i, j)).collect()
    }

    /// Appends rows as [`Triangle::packed`] returns them; returns false if there are not enough numbers for `count`
    /// rows, or if a diagonal entry is not positive.
    pub fn append_packed(&mut self, count: usize, packed: &[f64]) -> bool {
        let first = self.rows;
        let start = |i: usize| i.checked_add(1).and_then(|next| next.checked_mul(i)).map(|twice| twice / 2);
        let (Some(begin), Some(end)) = (start(first), first.checked_add(count).and_then(start)) else { return false };
        if end - begin != packed.len() {
            return false;
        }
        let at = |i: usize, j: usize| packed[i * (i + 1) / 2 - begin + j];
        let regular = |i: usize| at(i, i) > 0.0 && (0..=i).all(|j| at(i, j).is_finite());
        if !(first..first + count).all(regular) {
            return false;
        }
        self.append(count, at);
        true
    }

    /// Computes `X <- L^-1 X`, of which the rows before `first` are computed already.
    pub fn solve(&self, first: usize, mut x: MatMut<'_, f64>) {
        for (index, start, end) in self.pieces(first) {
            let (known, mut rest) = x.rb_mut().split_at_row_mut(start);
            let mut rows = rest.rb_mut().subrows_mut(0, end - start);
            let l = self.block(index).subrows(start - index * BLOCK, end - start);
            matmul(rows.rb_mut(), Accum::Add, l.subcols(0, start), known.rb(), -1.0, par());
            solve_lower_triangular_in_place(l.subcols(start, end - start), rows, par());
        }
    }

    /// Computes `X <- L^-T X`.
    pub fn solve_transposed(&self, mut x: MatMut<'_, f64>) {
        for (index, start, end) in self.pieces(0).collect::<Vec<_>>().into_iter().rev() {
            let (before, mut rest) = x.rb_mut().split_at_row_mut(start);
            let mut rows = rest.rb_mut().subrows_mut(0, end - start);
            let l = self.block(index).subrows(0, end - start);
            solve_upper_triangular_in_place(l.subcols(start, end - start).transpose(), rows.rb_mut(), par());
            matmul(before, Accum::Add, l.subcols(0, start).transpose(), rows.rb(), -1.0, par());
        }
    }

    /// Returns the rows from `first` on, block by block: (block, first row, end).
    fn pieces(&self, first: usize) -> impl Iterator<Item = (usize, usize, usize)> {
        let rows = self.rows;
        let piece = move |index: usize| (index, first.max(index * BLOCK), rows.min((index + 1) * BLOCK));
        (0..self.blocks.len()).map(piece).filter(|(_, start, end)| start < end)
    }

    fn block(&self, index: usize) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice(&self.blocks[index], BLOCK, (index + 1) * BLOCK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;

    fn entry(i: usize, j: usize) -> f64 {
        if i == j { 1.0 + (i % 7) as f64 } else { (((i * 37 + j * 101) % 1009) as f64 / 504.5 - 1.0) / 30.0 }
    }

    #[test]
    fn rows_are_appended_written_down_and_solved_with() {
        for n in [1, 5, 255, 256, 257, 600] {
            let mut l = Triangle::identity(0);
            for count in [n / 3, n - n / 3] {
                l.append(count, entry);
            }
            let full = Mat::from_fn(n, n, |i, j| if i >= j { entry(i, j) } else { 0.0 });
            let x = Mat::from_fn(n, 9, |i, j| ((i * 13 + j * 7) % 31) as f64 - 15.0);
            let (mut solved, mut transposed) = (&full * &x, full.transpose() * &x);
            let mut partly = solved.clone();
            l.solve(0, solved.as_mut());
            l.solve_transposed(transposed.as_mut());
            assert!((&solved - &x).norm_max() < 1e-10 && (&transposed - &x).norm_max() < 1e-10, "{n}");
            partly.as_mut().subrows_mut(0, n / 2).copy_from(x.subrows(0, n / 2));
            l.solve(n / 2, partly.as_mut());
            assert!((&partly - &x).norm_max() < 1e-10);

            let mut read = Triangle::default();
            let packed = l.packed(0);
            let middle = (n / 2) * (n / 2 + 1) / 2;
            assert_eq!(packed[middle..], l.packed(n / 2));
            assert!(!read.append_packed(n, &packed[1..]), "a number is missing");
            assert!(read.append_packed(n / 2, &packed[..middle]) && read.append_packed(n - n / 2, &packed[middle..]));
            assert_eq!(read.packed(0), packed);
            assert!(l.bytes() <= Triangle::bytes_for(n));
        }
        assert!(!Triangle::default().append_packed(1, &[0.0]) && !Triangle::default().append_packed(1, &[f64::NAN]));
        assert!(!Triangle::default().append_packed(usize::MAX, &[]));
    }

    #[test]
    fn the_triangle_of_a_square_is_its_lower_one() {
        let square = Mat::from_fn(300, 300, entry);
        assert_eq!(Triangle::of(square.as_ref()).packed(299)[298], entry(299, 298));
    }
}
