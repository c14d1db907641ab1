//! Scores on lifted features and on plain ones.

use faer::linalg::matmul::matmul;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut, MatRef};

use super::CHUNK;
use crate::basis::Basis;
use crate::features::Features;
use crate::lift::FeatureMap;
use crate::linalg::{cast, par};

/// Below this number of samples GEMM uses another kernel, which rounds differently: smaller batches are padded.
const MIN_BATCH: usize = 8;

/// Computes `H' Q` and the squared lengths of the columns of H, a chunk at a time.
pub(super) fn coordinates(basis: &Basis<f32>, map: &dyn FeatureMap, x: Features<'_>) -> (Mat<f64>, Vec<f64>) {
    let mut projected = Mat::<f64>::zeros(x.len(), basis.rank());
    let mut squared = Vec::with_capacity(x.len());
    let mut work = Vec::new();
    for part in x.chunks(CHUNK) {
        let h = lift_into(map, part.as_matrix(), &mut work);
        let mut rows = projected.as_mut().subrows_mut(squared.len(), part.len());
        rows.copy_from(basis.coordinates(h.rb()).transpose());
        squared.extend(h.rb().col_iter().map(|c| c.iter().map(|&v| v as f64 * v as f64).sum::<f64>()));
    }
    (projected, squared)
}

/// Lifts columns of X into `work`, which grows as needed.
fn lift_into<'a>(map: &dyn FeatureMap, x: MatRef<'_, f32>, work: &'a mut Vec<f32>) -> MatMut<'a, f32> {
    let size = map.width() * x.ncols();
    work.resize(work.len().max(size), 0.0);
    let mut h = MatMut::from_column_major_slice_mut(&mut work[..size], map.width(), x.ncols());
    map.lift(x, h.rb_mut());
    h
}

/// Returns the rows of a batch, with rows of zeros up to [`MIN_BATCH`].
pub(super) fn padded(x: Features<'_>) -> (Vec<f32>, usize) {
    let mut padded: Vec<f32> = (0..x.len()).flat_map(|row| x.row(row)).copied().collect();
    let n = x.len().max(MIN_BATCH);
    padded.resize(n * x.dim(), 0.0);
    (padded, n)
}

/// Lifts samples into `work`, with zeros as further samples up to [`MIN_BATCH`].
pub(super) fn lift_batch<'a>(map: &dyn FeatureMap, x: Features<'_>, work: &'a mut Vec<f32>) -> MatMut<'a, f32> {
    if x.len() >= MIN_BATCH {
        return lift_into(map, x.as_matrix(), work);
    }
    let (padded, n) = padded(x);
    lift_into(map, MatRef::from_column_major_slice(&padded, x.dim(), n), work)
}

/// Computes `H' W + b`, a chunk of samples at a time.
pub(super) fn linear_scores(
    map: &dyn FeatureMap,
    x: Features<'_>,
    weights: &Mat<f32>,
    bias: &[f32],
    values: &mut Vec<f32>,
) {
    let mut work = Vec::new();
    for part in x.chunks(CHUNK) {
        let h = lift_batch(map, part, &mut work);
        scores_of_batch(h.rb(), part.len(), weights, bias, values);
    }
}

/// Computes `H' W + b` for lifted samples, a chunk at a time.
pub(super) fn scores_of_lifted(h: MatRef<'_, f32>, weights: &Mat<f32>, bias: &[f32], values: &mut Vec<f32>) {
    for first in (0..h.ncols()).step_by(CHUNK) {
        let count = CHUNK.min(h.ncols() - first);
        let part = h.subcols(first, count);
        if count >= MIN_BATCH {
            scores_of_batch(part, count, weights, bias, values);
        } else {
            let mut padded = part.to_owned();
            padded.resize_with(h.nrows(), MIN_BATCH, |_, _| 0.0);
            scores_of_batch(padded.as_ref(), count, weights, bias, values);
        }
    }
}

/// Computes `H' W + b` for the first `count` columns of H, which has at least [`MIN_BATCH`].
fn scores_of_batch(h: MatRef<'_, f32>, count: usize, weights: &Mat<f32>, bias: &[f32], values: &mut Vec<f32>) {
    let classes = weights.ncols();
    let mut scores = Mat::<f32>::zeros(h.ncols(), classes);
    matmul(&mut scores, Accum::Replace, h.transpose(), weights, 1.0, par());
    for i in 0..count {
        values.extend((0..classes).map(|j| scores[(i, j)] + bias.get(j).unwrap_or(&0.0)));
    }
}

/// Computes the product of each column of `means` with each sample, of which every `size` features are scaled to length 1.
pub(super) fn cosines(means: &Mat<f32>, size: usize, x: Features<'_>, values: &mut Vec<f32>) {
    for part in x.chunks(CHUNK) {
        let whole = cast::<f32, f64>(part.as_matrix());
        let mut samples = Mat::<f32>::zeros(whole.nrows(), whole.ncols());
        for first in (0..whole.nrows()).step_by(size.max(1)) {
            let unit = unit_columns(whole.as_ref().subrows(first, size));
            samples.as_mut().subrows_mut(first, size).copy_from(unit);
        }
        samples.resize_with(means.nrows(), part.len().max(MIN_BATCH), |_, _| 0.0);
        let mut cosines = Mat::<f32>::zeros(means.ncols(), samples.ncols());
        matmul(&mut cosines, Accum::Replace, means.transpose(), &samples, 1.0, par());
        cosines.col_iter().take(part.len()).for_each(|column| values.extend(column.iter()));
    }
}

/// Scales the columns to length 1; columns of length 0 do not change.
pub(crate) fn unit_columns(a: MatRef<'_, f64>) -> Mat<f32> {
    let lengths: Vec<f64> = a.col_iter().map(|column| column.norm_l2()).collect();
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| if lengths[j] > 0.0 { (a[(i, j)] / lengths[j]) as f32 } else { 0.0 })
}
