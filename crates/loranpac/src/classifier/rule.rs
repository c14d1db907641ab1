//! Rules that are neither linear nor cosines: each belongs to one method, and stands in that method's file.

use faer::prelude::Reborrow;
use faer::{Mat, MatRef};

use super::CHUNK;
use super::linear::lift_batch;
use crate::features::Features;
use crate::lift::FeatureMap;

/// How one method scores lifted samples.
pub(crate) trait Rule: Send + Sync {
    /// Returns the scores (c x n) of lifted samples (E x n). Those of a sample may not depend on the others. There are
    /// never fewer samples than products of matrices need for that.
    fn scores(&self, h: MatRef<'_, f32>) -> Mat<f32>;

    /// Returns the bytes that it holds and shares with no learner.
    fn bytes(&self) -> usize;
}

/// Appends the scores of samples, a chunk at a time.
pub(super) fn scores(rule: &dyn Rule, map: &dyn FeatureMap, x: Features<'_>, values: &mut Vec<f32>) {
    let mut work = Vec::new();
    for part in x.chunks(CHUNK) {
        let h = lift_batch(map, part, &mut work);
        rule.scores(h.rb()).col_iter().take(part.len()).for_each(|column| values.extend(column.iter()));
    }
}
