//! What all learners on lifted features share: lifting a batch into memory that is kept, and linear scores.

use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut, MatRef};

use super::Scores;
use crate::features::Features;
use crate::label::{Label, LabelTable};
use crate::lift::FeatureMap;
use crate::linalg::par;
use crate::scalar::Scalar;

/// Samples that are lifted at a time unless a method has a choice.
pub const CHUNK: usize = 384;

/// A lift with its work space.
pub(super) struct Lifted {
    pub lift: Arc<dyn FeatureMap>,
    /// E x n lifted samples, allocated once.
    work: Vec<f32>,
}

impl Lifted {
    pub fn new(lift: Arc<dyn FeatureMap>) -> Self {
        Lifted { lift, work: Vec::new() }
    }

    /// E.
    pub fn width(&self) -> usize {
        self.lift.width()
    }

    /// Lifts samples into the work space and views them as H.
    pub fn lift(&mut self, x: Features<'_>) -> MatMut<'_, f32> {
        let (width, n) = (self.lift.width(), x.len());
        self.work.resize(self.work.len().max(width * n), 0.0);
        let mut h = MatMut::from_column_major_slice_mut(&mut self.work[..width * n], width, n);
        self.lift.lift(x.as_matrix(), h.rb_mut());
        h
    }

    /// Wipes what is left of samples, and keeps room for `samples` of them.
    pub fn wipe(&mut self, samples: usize) {
        self.work.fill(0.0);
        self.work.truncate(self.lift.width() * samples);
        self.work.shrink_to_fit();
    }

    /// `H' W + b`, for weights of E x c, in batches of at most `chunk` samples.
    pub fn scores(&mut self, x: Features<'_>, chunk: usize, weights: &Mat<f32>, bias: &[f32]) -> Scores {
        linear_scores(&*self.lift, x, chunk, weights, bias, &mut self.work)
    }

    /// Bytes of the work space.
    pub fn bytes(&self) -> usize {
        self.work.capacity() * size_of::<f32>()
    }
}

/// Fewer samples than this are multiplied by another kernel, which rounds differently.
pub(super) const LEAST: usize = 8;

/// `H' W + b`, for weights of E x c, in batches of at most `chunk` samples that are lifted into `work`. The scores of a
/// sample are the same to the last bit whatever else is in its batch.
pub fn linear_scores(
    map: &dyn FeatureMap,
    x: Features<'_>,
    chunk: usize,
    weights: &Mat<f32>,
    bias: &[f32],
    work: &mut Vec<f32>,
) -> Scores {
    let (width, classes) = (map.width(), weights.ncols());
    let mut values = Vec::with_capacity(x.len() * classes);
    for part in x.chunks(chunk) {
        let n = part.len().max(LEAST);
        work.resize(work.len().max(width * n), 0.0);
        let mut h = MatMut::from_column_major_slice_mut(&mut work[..width * n], width, n);
        if part.len() == n {
            map.lift(part.as_matrix(), h.rb_mut());
        } else {
            let mut padded: Vec<f32> = (0..part.len()).flat_map(|row| part.row(row)).copied().collect();
            padded.resize(x.dim() * n, 0.0);
            map.lift(MatRef::from_column_major_slice(&padded, x.dim(), n), h.rb_mut());
        }
        let mut scores = Mat::<f32>::zeros(n, classes);
        matmul(&mut scores, Accum::Replace, h.rb().transpose(), weights, 1.0, par());
        for i in 0..part.len() {
            values.extend((0..classes).map(|j| scores[(i, j)] + bias.get(j).unwrap_or(&0.0)));
        }
    }
    Scores::new(values, classes)
}

/// The class indices of a task's labels; new ones are added to the table.
pub(super) fn indices(table: &mut LabelTable, labels: &[Label]) -> Vec<usize> {
    labels.iter().map(|label| table.get_or_insert(label)).collect()
}

/// The classes that occur, in order, and the place of each sample's class among them.
pub(super) fn compact(classes: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut present = classes.to_vec();
    present.sort_unstable();
    present.dedup();
    let place = classes.iter().map(|class| present.partition_point(|other| other < class)).collect();
    (present, place)
}

/// Bytes of a matrix.
pub(super) fn bytes_of<T>(matrix: &Mat<T>) -> usize {
    matrix.as_ref().col_stride().unsigned_abs() * matrix.ncols() * size_of::<T>()
}

/// Adds each column of `h` to the column of its class.
pub(super) fn add_by_class<T: Scalar>(sums: &mut Mat<T>, h: MatRef<'_, T>, classes: &[usize]) {
    for (sample, &class) in classes.iter().enumerate() {
        sums.col_mut(class).iter_mut().zip(h.col(sample).iter()).for_each(|(sum, v)| *sum += *v);
    }
}

/// Room for more classes: zero columns at the end.
pub(super) fn grow_columns<T: Scalar>(matrix: &mut Mat<T>, rows: usize, columns: usize) {
    if matrix.nrows() == rows && matrix.ncols() >= columns {
        return;
    }
    matrix.resize_with(rows, columns.max(matrix.ncols()), |_, _| T::from_f64(0.0));
}
