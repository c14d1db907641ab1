//! The interface of every method.

use serde::Serialize;

use crate::auto;
use crate::certificate::{Certificate, Verdict};
use crate::classifier::Classifier;
use crate::error::Error;
use crate::features::Features;
use crate::filter::Facts;
use crate::label::{Label, LabelTable};
use crate::width::Width;

/// A method that learns task after task. Unless its entry in the registry states otherwise, it does not keep samples
/// after [`Learner::learn`] returns.
pub trait Learner: Send {
    /// Learns a task. Classes may be new or known, in any mixture. Bad input changes nothing.
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error>;

    /// Returns the classifier of everything learned so far. It is formed on the first call after a task; further
    /// learning does not change it.
    fn classifier(&mut self) -> Result<Classifier, Error>;

    /// Returns the eigenvalues of the model's feature Gram matrix in descending order, for methods that keep it in a
    /// basis: of `H H'` while nothing was lost, of `B_t B_t'` cut to k_t in the paper schedule.
    fn spectrum(&mut self) -> Result<Option<Vec<f64>>, Error> {
        Ok(None)
    }

    /// Returns the classes by index.
    fn classes(&self) -> &LabelTable;

    /// Returns a summary of the model. Certificate and error refer to the classifier if it is up to date.
    fn summary(&self) -> Summary;

    /// Returns the settings of the method, for records.
    fn settings(&self) -> serde_json::Value {
        serde_json::json!({})
    }

    /// Returns the bytes that the model holds between tasks, work space included; its lift, which may be shared, is
    /// excluded.
    fn state_bytes(&self) -> usize;

    /// Announces the sizes of the stream that begins. Results do not depend on it; memory that grows need not be moved.
    fn expect(&mut self, _stream: &StreamSizes) {}

    /// Estimates the peak memory in bytes for a stream of these sizes.
    fn peak_bytes(&self, stream: &StreamSizes) -> usize;
}

/// The sizes of a stream of tasks.
#[derive(Debug, Clone, Copy)]
pub struct StreamSizes {
    /// Samples in all.
    pub samples: usize,
    /// Samples in the largest task.
    pub largest_task: usize,
    /// Number of classes at the end.
    pub classes: usize,
}

/// A summary of a model.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Summary {
    /// Samples learned.
    pub samples: usize,
    /// Classes learned.
    pub classes: usize,
    /// E, for models on computed features whose lift has a choice of width.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
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
    /// Leave-one-out accuracy, for models that keep samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leave_one_out: Option<f64>,
    /// The residual of a recursively updated inverse, for methods that have one.
    pub drift: Option<f64>,
}

impl Summary {
    /// Returns the facts of a classifier, and the certificate that follows from them; an empty summary without a classifier.
    pub(crate) fn of(classifier: Option<&Classifier>, certificate: impl FnOnce(Facts) -> Certificate) -> Summary {
        let Some(&facts) = classifier.and_then(Classifier::facts) else { return Summary::default() };
        Summary {
            kept_rank: Some(facts.kept),
            ridge: Some(facts.ridge),
            train_mse: Some(facts.train_mse),
            train_mse_upper: Some(facts.train_mse_upper),
            certificate: Some(certificate(facts)),
            leave_one_out: facts.leave_one_out,
            ..Summary::default()
        }
    }

    /// Returns the certificate as text, if there is one.
    pub fn verdict(&self) -> Option<Verdict> {
        let mse = self.train_mse?;
        let mut verdict = self.certificate?.verdict(mse, self.train_mse_upper.unwrap_or(mse));
        verdict.warnings.extend(self.width.and_then(|width| auto::warning(Width::Finite(width), self.samples)));
        Some(verdict)
    }
}

/// Checks a task of a method that learns no weights, before anything is changed.
pub(crate) fn check_task(x: Features<'_>, labels: &[Label], dim: usize) -> Result<(), Error> {
    match x.weights().is_some() {
        true => Err(Error::setting("sample-weight", "given", "only loranpac and loranpac-soft learn weighted samples")),
        false => check_weighted_task(x, labels, dim),
    }
}

/// Checks a task before anything is changed.
pub(crate) fn check_weighted_task(x: Features<'_>, labels: &[Label], dim: usize) -> Result<(), Error> {
    if x.len() != labels.len() {
        return Err(Error::LabelCount { samples: x.len(), labels: labels.len() });
    }
    if x.is_empty() {
        return Err(Error::EmptyTask);
    }
    if x.is_weightless() {
        return Err(Error::NoWeight);
    }
    x.validate(dim)
}
