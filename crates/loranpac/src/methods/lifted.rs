//! Shared by all learners on lifted features: lifting a batch into reused memory.

use std::sync::Arc;

use faer::prelude::ReborrowMut;
use faer::{Mat, MatMut, MatRef};

use crate::classifier::{Classifier, Scorer};
use crate::features::Features;
use crate::label::{Label, LabelTable};
use crate::lift::{FeatureMap, FeatureSpace};
use crate::scalar::Scalar;

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

    /// Returns the feature space.
    pub fn space(&self) -> FeatureSpace {
        FeatureSpace::Explicit(self.lift.clone())
    }

    /// Returns a linear classifier on the lifted features.
    pub fn linear(&self, labels: &LabelTable, weights: Mat<f32>, bias: Vec<f32>) -> Classifier {
        Classifier::new(self.space(), labels, Scorer::Linear { weights, bias })
    }

    /// Returns E.
    pub fn width(&self) -> usize {
        self.lift.width()
    }

    /// Lifts samples into the work space and returns them as H.
    pub fn lift(&mut self, x: Features<'_>) -> MatMut<'_, f32> {
        let (width, n) = (self.lift.width(), x.len());
        self.work.resize(self.work.len().max(width * n), 0.0);
        let mut h = MatMut::from_column_major_slice_mut(&mut self.work[..width * n], width, n);
        self.lift.lift(x.as_matrix(), h.rb_mut());
        h
    }

    /// Overwrites samples in the work space, and keeps capacity for `samples` of them.
    pub fn wipe(&mut self, samples: usize) {
        self.work.fill(0.0);
        self.work.truncate(self.lift.width() * samples);
        self.work.shrink_to_fit();
    }

    /// Returns the bytes of the work space.
    pub fn bytes(&self) -> usize {
        self.work.capacity() * size_of::<f32>()
    }
}

/// Returns the class indices of a task's labels; new ones are added to the table.
pub(super) fn indices(table: &mut LabelTable, labels: &[Label]) -> Vec<usize> {
    labels.iter().map(|label| table.get_or_insert(label)).collect()
}

/// Returns the classes that occur, in order, and the place of each sample's class among them.
pub(super) fn compact(classes: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut present = classes.to_vec();
    present.sort_unstable();
    present.dedup();
    let place = classes.iter().map(|class| present.partition_point(|other| other < class)).collect();
    (present, place)
}

/// Adds each column of `h` to the column of its class.
pub(super) fn add_by_class<T: Scalar>(sums: &mut Mat<T>, h: MatRef<'_, T>, classes: &[usize]) {
    for (sample, &class) in classes.iter().enumerate() {
        sums.col_mut(class).iter_mut().zip(h.col(sample).iter()).for_each(|(sum, v)| *sum += *v);
    }
}

/// Extends a matrix by zero columns for new classes.
pub(super) fn grow_columns<T: Scalar>(matrix: &mut Mat<T>, rows: usize, columns: usize) {
    if matrix.nrows() == rows && matrix.ncols() >= columns {
        return;
    }
    matrix.resize_with(rows, columns.max(matrix.ncols()), |_, _| T::from_f64(0.0));
}
