//! Q2 of a reduction in two stages: the reflections of the second stage, and how they are applied to other matrices.

use std::ops::Range;

use pulp::Simd;

/// b: wide enough for fast products, narrow enough for a band in cache.
pub(crate) const BAND: usize = 32;

/// Rows of a matrix that are transformed together, column by column: enough lanes to fill the widest vectors.
pub(crate) const LANES: usize = 16;

/// Reflections `I - v v' / tau`: each reduced column has those that chase its bulge down the band, BAND rows apart.
///
/// They are applied in another order than they were made: the reflections at the same distance down the band, of BAND
/// columns in turn, belong together. They meet the same 2 BAND rows, which stay in the first cache meanwhile, and those
/// further down come first, because no earlier column's reflection there overlaps with a later one's further up.
pub(crate) struct Reflections {
    n: usize,
    /// `1 / tau` and then v, of STORED numbers each, in the order in which they were made.
    values: Vec<f64>,
}

/// Numbers that are stored for a reflection.
const STORED: usize = BAND + 1;

impl Reflections {
    /// Creates room for all reflections of a matrix of size n.
    pub fn new(n: usize) -> Self {
        let mut reflections = Reflections { n, values: Vec::new() };
        reflections.values.reserve_exact(reflections.first(n.saturating_sub(2)) * STORED);
        reflections
    }

    /// Computes `B <- B Q2` for some groups of rows, each stored column by column.
    #[inline(always)]
    pub fn apply<S: Simd>(&self, simd: S, groups: &mut [Vec<[f64; LANES]>]) {
        for batch in 0..self.batches() {
            for hop in (0..self.hops(batch * BAND)).rev() {
                for group in groups.iter_mut() {
                    for column in self.columns(batch, hop) {
                        self.reflect(simd, group, column, hop);
                    }
                }
            }
        }
    }

    /// Computes `B <- B Q2'`.
    #[inline(always)]
    pub fn undo<S: Simd>(&self, simd: S, groups: &mut [Vec<[f64; LANES]>]) {
        for batch in (0..self.batches()).rev() {
            for hop in 0..self.hops(batch * BAND) {
                for group in groups.iter_mut() {
                    for column in self.columns(batch, hop).rev() {
                        self.reflect(simd, group, column, hop);
                    }
                }
            }
        }
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

    /// Appends the next reflection; the order is column by column, down the band.
    #[inline(always)]
    pub fn push(&mut self, inverse: f64, v: &[f64]) {
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
