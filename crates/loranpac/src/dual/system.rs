//! Equations with the kernel matrix of many samples: a factor in single precision, and the matrix itself in double
//! precision, tile by tile from the samples and never stored.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::prelude::ReborrowMut;
use faer::{Accum, Mat, MatMut, Par};
use rayon::prelude::*;

use super::packed::{Packed, TILE, tiles};
use crate::error::Error;
use crate::lift::Polar;
use crate::linalg::cast;

/// More products than this do not help: single precision cannot resolve the smallest eigenvalues.
const MOST_STEPS: usize = 40;

/// `A = diag(s) K1 diag(s) + diag(e)`, with K1 the kernel of samples of length 1.
pub(crate) struct System<'a> {
    /// The samples.
    pub samples: &'a Polar,
    /// s; samples of scale 0 take no part.
    pub scale: Vec<f64>,
    /// e.
    pub shift: Vec<f64>,
}

impl System<'_> {
    /// Returns A in single precision.
    pub fn packed(&self) -> Result<Packed, Error> {
        let mut packed = Packed::zeros(self.samples.len())?;
        packed.fill(|rows, columns, out| self.tile(rows, columns, out));
        Ok(packed)
    }

    /// Computes a tile of A.
    fn tile(&self, rows: Range<usize>, columns: Range<usize>, mut out: MatMut<'_, f64>) {
        self.samples.tile(rows.clone(), self.samples, columns.clone(), out.rb_mut());
        for (column, j) in out.rb_mut().col_iter_mut().zip(columns.clone()) {
            let scale = self.scale[j];
            column.iter_mut().zip(&self.scale[rows.clone()]).for_each(|(value, other)| *value *= scale * other);
        }
        for i in rows.start.max(columns.start)..rows.end.min(columns.end) {
            out[(i - rows.start, i - columns.start)] = 0.5 * self.scale[i].powi(2) + self.shift[i];
        }
    }

    /// Computes `P A`, in double precision.
    pub fn apply(&self, p: &Mat<f64>) -> Mat<f64> {
        let (c, n) = (p.nrows(), p.ncols());
        let columns = |range: &Range<usize>| p.as_ref().subcols(range.start, range.len());
        let mut out = Mat::<f64>::zeros(c, n);
        for own in tiles(n) {
            let (before, mut rest) = out.as_mut().subcols_mut(0, own.end).split_at_col_mut(own.start);
            let tile = |other: &Range<usize>| {
                let mut tile = Mat::<f64>::zeros(own.len(), other.len());
                self.tile(own.clone(), other.clone(), tile.as_mut());
                tile
            };
            let strip = || {
                let part = |(j, out): (usize, MatMut<'_, f64>)| {
                    let other = j * TILE..(j + 1) * TILE;
                    let tile = tile(&other);
                    matmul(out, Accum::Add, columns(&own), tile.as_ref(), 1.0, Par::Seq);
                    times(columns(&other), tile.transpose())
                };
                before.par_col_chunks_mut(TILE).enumerate().map(part).collect::<Vec<Mat<f64>>>()
            };
            let (parts, diagonal) = rayon::join(strip, || times(columns(&own), tile(&own).as_ref()));
            // Sums have a fixed order.
            rest += diagonal;
            parts.into_iter().for_each(|part| rest += part);
        }
        out
    }

    /// Solves `X A = B` by conjugate gradients, with a factor of A as the preconditioner, until the error of each row is
    /// at most `tolerance` in the norm of A, the root of `(X - X*) A (X - X*)'`. Takes one step at least. Returns X and the
    /// residual `B - X A`; None if the factor is too far from A.
    pub fn solve(&self, factor: &Packed, b: &Mat<f64>, tolerance: f64) -> Option<(Mat<f64>, Mat<f64>)> {
        let (mut x, mut r) = (Mat::<f64>::zeros(b.nrows(), b.ncols()), b.clone());
        let mut p = approximate(factor, &r);
        let mut energy = dots(&r, &p);
        for _ in 0..MOST_STEPS {
            let q = self.apply(&p);
            let along = dots(&p, &q);
            let step: Vec<f64> = energy.iter().zip(&along).map(|(e, a)| if *a > 0.0 { e / a } else { 0.0 }).collect();
            add_rows(&mut x, &step, &p, 1.0);
            add_rows(&mut r, &step, &q, -1.0);
            let mut z = approximate(factor, &r);
            let next = dots(&r, &z);
            if next.iter().all(|e| e.abs() <= tolerance * tolerance) {
                return Some((x, r));
            }
            if !next.iter().all(|e| e.is_finite()) {
                return None;
            }
            let turn: Vec<f64> = next.iter().zip(&energy).map(|(n, e)| if *e > 0.0 { n / e } else { 0.0 }).collect();
            add_rows(&mut z, &turn, &p, 1.0);
            (p, energy) = (z, next);
        }
        None
    }
}

/// Computes `B (L L')^-1` in single precision.
fn approximate(factor: &Packed, b: &Mat<f64>) -> Mat<f64> {
    let most = b.norm_max();
    if most == 0.0 {
        return b.clone();
    }
    // Residuals become small: their squares need not.
    let mut narrow: Mat<f32> = cast((b * faer::Scale(1.0 / most)).as_ref());
    factor.solve(&mut narrow);
    let wide: Mat<f64> = cast(narrow.as_ref());
    wide * faer::Scale(most)
}

fn times(a: faer::MatRef<'_, f64>, b: faer::MatRef<'_, f64>) -> Mat<f64> {
    let mut c = Mat::zeros(a.nrows(), b.ncols());
    matmul(&mut c, Accum::Replace, a, b, 1.0, Par::Seq);
    c
}

/// Returns the inner products of rows.
fn dots(a: &Mat<f64>, b: &Mat<f64>) -> Vec<f64> {
    let mut sums = vec![0.0; a.nrows()];
    for (a, b) in a.col_iter().zip(b.col_iter()) {
        sums.iter_mut().zip(a.iter().zip(b.iter())).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums
}

/// Computes `A <- A + sign diag(f) B`.
fn add_rows(a: &mut Mat<f64>, factors: &[f64], b: &Mat<f64>, sign: f64) {
    a.par_col_iter_mut().zip(b.par_col_iter()).for_each(|(a, b)| {
        a.iter_mut().zip(b.iter().zip(factors)).for_each(|(a, (b, factor))| *a += sign * factor * b);
    });
}
