//! What every method can do, and one file per method.

mod holdout;
pub(crate) mod incremental_svd;
pub(crate) mod infinite;
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

use std::sync::Arc;

use serde::Serialize;

pub use holdout::{GRID, validation_errors};
pub use incremental_svd::IncrementalSvd;
pub use infinite::{Gone, Infinite, Kept};
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
use crate::filter::Facts;
use crate::label::{Label, LabelTable};
use crate::lift::{self, FeatureMap};

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

    /// The learner itself if it is one that can be written down, merged and edited.
    fn as_editable(&mut self) -> Option<&mut dyn Editable> {
        None
    }

    /// The winning class index of each sample.
    fn predict(&mut self, x: Features<'_>) -> Result<Vec<usize>, Error> {
        Ok(self.scores(x)?.argmax())
    }
}

/// LoRanPAC in either form: a learner that can be written down, merged and edited.
pub trait Editable: Learner {
    /// The settings.
    fn config(&self) -> &Config;

    /// The feature map.
    fn feature_map(&self) -> Arc<dyn FeatureMap>;

    /// Samples of each class.
    fn counts(&self) -> &[usize];

    /// What forming the current classifier showed.
    fn facts(&mut self) -> Result<Facts, Error>;

    /// Whether the classifier has been formed since the model last changed.
    fn is_prepared(&self) -> bool;

    /// Removes a class from prediction. What its samples added to the Gram matrix of explicit features stays.
    fn forget(&mut self, label: &Label) -> Result<(), Error>;

    /// Gives a class another name.
    fn rename(&mut self, from: &Label, to: Label) -> Result<(), Error>;

    /// Moves samples that were learned under `from` to other labels; the spectrum does not change. Returns the number of
    /// samples of which it could not be checked that they were; the certificate counts them.
    fn relabel(&mut self, x: Features<'_>, from: &[Label], to: &[Label]) -> Result<usize, Error>;

    /// Takes samples back that were learned under these labels, as if they had never been seen, to rounding. Returns the
    /// number of samples of which it could not be checked that they were; the certificate counts them.
    fn unlearn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<usize, Error>;

    /// The caller has a record that so many of the samples that could not be checked were learned under their labels.
    fn vouch(&mut self, samples: usize);

    /// Which of the two forms it is.
    fn form(&mut self) -> Form<'_>;
}

impl dyn Editable + '_ {
    /// A model that knows nothing yet, in the form that the feature map asks for.
    pub fn new(lift: Arc<dyn FeatureMap>, config: Config) -> Result<Box<dyn Editable>, Error> {
        match lift.is_infinite() {
            true => Ok(Box::new(Infinite::new(lift, config)?)),
            false => Ok(Box::new(LoRanPac::new(lift, config)?)),
        }
    }

    /// Takes in everything that other models with the same lift have learned, as if it had been learned here. The basis is
    /// cut once, at the end, if it has outgrown its cap. Models with other lifts are refused, and nothing changes then.
    pub fn merge<'a>(&mut self, others: impl IntoIterator<Item = &'a mut dyn Editable>) -> Result<(), Error> {
        let others: Vec<&mut dyn Editable> = others.into_iter().collect();
        others.iter().try_for_each(|other| check_lifts(&self.feature_map(), &other.feature_map()))?;
        let others = others.into_iter().map(|other| other.form());
        // Models with the same lift are of the same form.
        match self.form() {
            Form::Explicit(model) => model.merge(others.filter_map(Form::explicit)),
            Form::Infinite(model) => model.merge(others.filter_map(Form::infinite)),
        }
    }
}

/// The two forms of LoRanPAC.
pub enum Form<'a> {
    /// On features that are written down.
    Explicit(&'a mut LoRanPac),
    /// Of infinite width.
    Infinite(&'a mut Infinite),
}

impl<'a> Form<'a> {
    /// The explicit form, if it is that.
    pub fn explicit(self) -> Option<&'a mut LoRanPac> {
        match self {
            Form::Explicit(model) => Some(model),
            Form::Infinite(_) => None,
        }
    }

    /// The infinite form, if it is that.
    pub fn infinite(self) -> Option<&'a mut Infinite> {
        match self {
            Form::Explicit(_) => None,
            Form::Infinite(model) => Some(model),
        }
    }
}

/// Refuses to merge models whose features differ.
fn check_lifts(ours: &Arc<dyn FeatureMap>, theirs: &Arc<dyn FeatureMap>) -> Result<(), Error> {
    match Arc::ptr_eq(ours, theirs) || lift::is_same(&**ours, &**theirs) {
        true => Ok(()),
        false => Err(Error::DifferentLifts { ours: lift::describe(&**ours), theirs: lift::describe(&**theirs) }),
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
    /// The share of samples that the model would get right without having seen them, where it keeps samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leave_one_out: Option<f64>,
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
