//! Lifted samples that are scored again and again, by one classifier after the other.

use faer::MatRef;

use super::linear::{lift_batch, scores_of_lifted};
use super::{CHUNK, Classifier, Scorer};
use crate::error::Error;
use crate::features::IntoFeatures;
use crate::lift::FeatureSpace;
use crate::memory;
use crate::scores::Scores;

/// Samples in a feature space of finite width: 4 E bytes each.
pub struct LiftedSamples {
    space: FeatureSpace,
    columns: Vec<f32>,
}

impl LiftedSamples {
    /// Returns no samples yet, in the space of a classifier; None if its scores do not come from lifted features.
    pub fn of(classifier: &Classifier) -> Option<Self> {
        match (&*classifier.scorer, &classifier.space) {
            (Scorer::Linear { .. }, FeatureSpace::Explicit(_)) => {
                Some(LiftedSamples { space: classifier.space.clone(), columns: Vec::new() })
            }
            _ => None,
        }
    }

    /// Lifts samples and appends them. If there is no memory for them, nothing changes.
    pub fn push<'x>(&mut self, x: impl IntoFeatures<'x>) -> Result<(), Error> {
        let FeatureSpace::Explicit(map) = &self.space else { return Err(Error::NothingLearned) };
        let x = x.into_features(map.dim())?;
        x.validate(map.dim())?;
        let width = map.width();
        memory::grow(&mut self.columns, memory::product(&[width, x.len()]))?;
        let mut work = Vec::new();
        for part in x.chunks(CHUNK) {
            lift_batch(&**map, part, &mut work);
            self.columns.extend_from_slice(&work[..width * part.len()]);
        }
        Ok(())
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.as_matrix().ncols()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    fn as_matrix(&self) -> MatRef<'_, f32> {
        let width = self.space.width().finite().unwrap_or(0);
        MatRef::from_column_major_slice(&self.columns, width, self.columns.len() / width.max(1))
    }
}

impl Classifier {
    /// Returns the scores of lifted samples: those that [`Classifier::scores`] returns, to the last bit. Samples in another feature
    /// space are refused.
    pub fn scores_of(&self, samples: &LiftedSamples) -> Result<Scores, Error> {
        self.space.require_same(&samples.space)?;
        let Scorer::Linear { weights, bias } = &*self.scorer else { return Err(Error::NothingLearned) };
        let mut values = Vec::with_capacity(samples.len() * self.labels.len());
        scores_of_lifted(samples.as_matrix(), weights, bias, &mut values);
        Ok(self.weighted(values))
    }
}
