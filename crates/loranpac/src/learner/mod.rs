//! What every method can do, and one file per method.

mod holdout;
pub(crate) mod incremental_svd;
pub mod lda;
mod lifted;
pub(crate) mod loranpac;
pub mod ogd;
pub(crate) mod ranpac;
pub(crate) mod ridge_truncated;
pub(crate) mod rls;
mod shuffle;
pub(crate) mod simplecil;
pub(crate) mod softmax;

use serde::Serialize;

pub use holdout::{GRID, validation_errors};
pub use incremental_svd::IncrementalSvd;
pub use lda::Lda;
pub use lifted::{CHUNK, linear_scores};
pub use loranpac::{Config, LoRanPac, Schedule};
pub use ogd::Ogd;
pub use ranpac::RanPac;
pub use ridge_truncated::RidgeTruncated;
pub use rls::Rls;
pub use simplecil::SimpleCil;
pub use softmax::Softmax;

use crate::certificate::{Certificate, Verdict};
use crate::error::Error;
use crate::features::Features;
use crate::label::{Label, LabelTable};

/// A classifier that learns task after task. Unless its method says otherwise in the registry, samples are gone when
/// [`Learner::learn`] returns.
pub trait Learner: Send {
    /// Learns a task. Classes may be new or known, in any mixture. Bad input changes nothing.
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error>;

    /// Forms the classifier, if the last task has made it stale. [`Learner::scores`] does so by itself.
    fn prepare(&mut self) -> Result<(), Error>;

    /// One score per sample and class; the highest wins.
    fn scores(&mut self, x: Features<'_>) -> Result<Scores, Error>;

    /// How foreign each sample is, from 0 to 1, for methods that can tell.
    fn novelty(&mut self, x: Features<'_>) -> Result<Option<Vec<f64>>, Error> {
        let _ = x;
        Ok(None)
    }

    /// Eigenvalues of the feature Gram matrix as the model has it, in descending order, for methods that keep it in a
    /// basis: of `H H'` while nothing was lost, of `B_t B_t'` cut to k_t in the paper schedule.
    fn spectrum(&mut self) -> Result<Option<Vec<f64>>, Error> {
        Ok(None)
    }

    /// The classes by index.
    fn classes(&self) -> &LabelTable;

    /// What is known about the model now. Certificate and error refer to the classifier if it is up to date.
    fn summary(&self) -> Summary;

    /// What the method was told, for records.
    fn settings(&self) -> serde_json::Value {
        serde_json::json!({})
    }

    /// Bytes that the model holds between tasks, work space included; its lift, which it may share, is not.
    fn state_bytes(&self) -> usize;

    /// An estimate of the bytes that it will need at its worst moment in a stream of these sizes.
    fn peak_bytes(&self, stream: &StreamSizes) -> usize;

    /// The learner itself if it is LoRanPAC, which can be written down, merged and edited.
    fn as_loranpac(&mut self) -> Option<&mut LoRanPac> {
        None
    }

    /// The winning class index of each sample.
    fn predict(&mut self, x: Features<'_>) -> Result<Vec<usize>, Error> {
        Ok(self.scores(x)?.argmax())
    }
}

/// How much is going to be learned.
#[derive(Debug, Clone, Copy)]
pub struct StreamSizes {
    /// Samples in all.
    pub samples: usize,
    /// Samples in the largest task.
    pub largest_task: usize,
    /// Classes in the end.
    pub classes: usize,
}
/// What is known about a model.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Summary {
    /// Samples learned.
    pub samples: usize,
    /// Classes learned.
    pub classes: usize,
    /// Directions in the basis, for methods that have one.
    pub basis_rank: Option<usize>,
    /// Directions that the classifier uses.
    pub kept_rank: Option<usize>,
    /// lambda.
    pub ridge: Option<f64>,
    /// Training MSE, computed without data; the lower end of its interval after losses.
    pub train_mse: Option<f64>,
    /// The upper end of that interval.
    pub train_mse_upper: Option<f64>,
    /// The paper's quantities.
    pub certificate: Option<Certificate>,
    /// How far a recursively updated inverse is from inverting what it should, for methods that have one.
    pub drift: Option<f64>,
}

impl Summary {
    /// The certificate in words, if there is one.
    pub fn verdict(&self) -> Option<Verdict> {
        let mse = self.train_mse?;
        Some(self.certificate?.verdict(mse, self.train_mse_upper.unwrap_or(mse)))
    }
}

/// Scores of a batch: one row per sample, one column per class index.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    values: Vec<f32>,
    classes: usize,
}

impl Scores {
    /// From a flat row-major array.
    pub fn new(values: Vec<f32>, classes: usize) -> Self {
        assert!(classes > 0 && values.len().is_multiple_of(classes));
        Scores { values, classes }
    }

    /// The scores of one sample.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.classes..(row + 1) * self.classes]
    }

    /// All rows.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.classes)
    }

    /// The index of the highest score in each row; the first of equals.
    pub fn argmax(&self) -> Vec<usize> {
        self.rows()
            .map(|row| row.iter().enumerate().fold(0, |best, (i, score)| if *score > row[best] { i } else { best }))
            .collect()
    }

    /// The k best (index, score) of each row, best first.
    pub fn top_k(&self, k: usize) -> Vec<Vec<(usize, f32)>> {
        let best = |row: &[f32]| {
            let mut pairs: Vec<_> = row.iter().copied().enumerate().collect();
            pairs.sort_by(|a, b| b.1.total_cmp(&a.1));
            pairs.truncate(k);
            pairs
        };
        self.rows().map(best).collect()
    }
}

/// Checks a task before anything is changed.
pub(crate) fn check_task(x: Features<'_>, labels: &[Label], dim: usize) -> Result<(), Error> {
    if x.len() != labels.len() {
        return Err(Error::LabelCount { samples: x.len(), labels: labels.len() });
    }
    if x.is_empty() {
        return Err(Error::EmptyTask);
    }
    x.validate(dim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_scores_wins_and_top_k_is_ordered() {
        let scores = Scores::new(vec![1.0, 3.0, 3.0, -1.0, -2.0, -0.5], 3);
        assert_eq!(scores.argmax(), [1, 2]);
        assert_eq!(scores.top_k(2), [vec![(1, 3.0), (2, 3.0)], vec![(2, -0.5), (0, -1.0)]]);
        assert_eq!(scores.top_k(9)[0].len(), 3);
    }
}
