//! One run: a stream, a learner, and the results as one plain value.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Instant;

use loranpac::auto;
use loranpac::registry::{Method, MethodOptions};
use loranpac::{Certificate, Classifier, Features, Label, Learner, LiftedSamples, Prior, Scores, Summary, Verdict};
use serde::{Deserialize, Serialize};

use crate::by_class::{Balance, ByClass};
use crate::choice::Choice;
use crate::error::Error;
use crate::metrics::{AccuracyMatrix, mean};
use crate::spec::Spec;
use crate::stream::{self, Task};
use loranpac_data::system;
use loranpac_data::{Dataset, EncodedBy};

/// Version of the JSON.
pub const SCHEMA: u32 = 1;

/// The configuration and the results of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// Method name.
    pub method: String,
    /// Whether it learns task by task; otherwise it is a reference that sees everything at once.
    pub continual: bool,
    /// Whether it keeps no samples.
    pub exemplar_free: bool,
    /// Seed of the class order, unless the order was given.
    pub seed: Option<u32>,
    /// Everything that was chosen.
    pub config: RunConfig,
    /// The data.
    pub dataset: DatasetFacts,
    /// Accuracies in percent.
    pub accuracy_matrix: AccuracyMatrix,
    /// Mean over tasks after the last one.
    pub final_accuracy: Option<f64>,
    /// Mean over the upper triangle.
    pub total_accuracy: Option<f64>,
    /// Accuracy over all test samples after the last task.
    pub final_accuracy_samples: Option<f64>,
    /// Accuracies after the last task that give every class the same weight, whatever its size.
    #[serde(flatten, default)]
    pub balance: Option<Balance>,
    /// Mean over tasks t of the accuracy over all test samples seen by then.
    pub average_incremental_accuracy: Option<f64>,
    /// Mean drop of a task's accuracy from its best earlier value to its last.
    pub forgetting: Option<f64>,
    /// Task by task.
    pub tasks: Vec<TaskRecord>,
    /// Guarantees of the final model in words, for methods that have them.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// Seconds of adaptation and of encoding with the adapted encoder, for runs that adapt it. Runs that share an adaptation have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapt_seconds: Option<f64>,
    /// Which features the run learned from, if it was to choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapt_choice: Option<Choice>,
    /// Bytes that the model keeps.
    pub state_bytes: usize,
    /// Peak memory of the process so far.
    pub peak_rss_bytes: Option<u64>,
}

/// Everything that was chosen for a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunConfig {
    /// What was chosen.
    pub spec: Spec,
    /// Lift, for methods that have one.
    pub lift: Option<LiftFacts>,
    /// Why it has its width, if that was chosen automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width_choice: Option<auto::Choice>,
    /// The method's own settings.
    pub method: serde_json::Value,
    /// Threads.
    pub threads: usize,
    /// Version of the program.
    pub version: String,
}

/// The lift of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LiftFacts {
    /// Its name.
    pub name: String,
    /// E; None if it is infinite.
    pub width: Option<usize>,
    /// Seed of the projection, unless it came from a file.
    pub seed: Option<u64>,
}

/// Sizes of the data.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DatasetFacts {
    /// Name of the file.
    pub name: String,
    /// Features per sample.
    pub dim: usize,
    /// Training samples.
    pub train: usize,
    /// Test samples.
    pub test: usize,
    /// Classes.
    pub classes: usize,
    /// The encoder that computed the features, if it is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<EncoderFacts>,
}

/// The encoder of the data.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EncoderFacts {
    /// Its name.
    pub name: String,
    /// SHA-256 of everything that determines its features, in hexadecimal digits.
    pub digest: String,
}

impl DatasetFacts {
    /// The facts about a data set.
    pub fn of(dataset: &Dataset) -> DatasetFacts {
        let encoder = |by: &EncodedBy| EncoderFacts { name: by.name.clone(), digest: by.digest.clone() };
        DatasetFacts {
            name: dataset.name.clone(),
            dim: dataset.dim,
            train: dataset.train.len(),
            test: dataset.test.len(),
            classes: dataset.classes.len(),
            encoder: dataset.encoder.as_ref().map(encoder),
        }
    }
}

/// Measurements after one task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TaskRecord {
    /// Classes known after it.
    pub classes_seen: usize,
    /// Samples learned after it.
    pub samples_seen: usize,
    /// Directions in the basis.
    pub basis_rank: Option<usize>,
    /// Directions that the classifier uses.
    pub kept_rank: Option<usize>,
    /// lambda.
    pub ridge: Option<f64>,
    /// Lifting and absorbing.
    pub learn_seconds: f64,
    /// Forming W.
    pub weights_seconds: Option<f64>,
    /// Lifting and scoring test samples.
    pub eval_seconds: Option<f64>,
    /// Accuracy over all test samples of the tasks so far, in percent.
    pub accuracy_samples: Option<f64>,
    /// Training MSE, from the state alone.
    pub train_mse: Option<f64>,
    /// Upper end of its interval after losses.
    pub train_mse_upper: Option<f64>,
    /// `|W H - Y|^2 / M` measured on all training samples so far, if that was chosen.
    pub train_loss: Option<f64>,
    /// Eigenvalues of the Gram matrix in descending order, if they are recorded.
    pub spectrum: Option<Vec<f64>>,
    /// The paper's quantities.
    pub certificate: Option<Certificate>,
    /// How far a recursively updated inverse has drifted.
    pub drift: Option<f64>,
    /// Accuracy on training samples that were left out one by one, in percent, for models that keep samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leave_one_out: Option<f64>,
}

/// Where a run stands, for progress displays.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Tasks done.
    pub done: usize,
    /// Tasks in all.
    pub tasks: usize,
    /// Share of the work done, by an estimate of its cost.
    pub share: f64,
    /// The record of the task just done.
    pub record: &'a TaskRecord,
}

/// Everything that a run needs besides the data; [`crate::plan::Plan`] makes it.
pub(crate) struct Experiment<'a> {
    /// What was chosen.
    pub spec: &'a Spec,
    /// The method.
    pub method: &'a Method,
    /// Its options.
    pub options: MethodOptions,
    /// What is recorded about the lift.
    pub lift: Option<LiftFacts>,
    /// Why it has its width, if the plan has chosen it.
    pub choice: Option<auto::Choice>,
    /// The tasks.
    pub tasks: &'a [Task],
    /// Seconds of adaptation.
    pub adapt_seconds: Option<f64>,
    /// Which features were chosen.
    pub adapt_choice: Option<Choice>,
    /// Threads in use.
    pub threads: usize,
    /// Whether there is memory to keep lifted test samples from one evaluation to the next.
    pub keep_lifted: bool,
}

/// Called after every task; breaks to stop the run.
pub type Watch<'a> = &'a mut dyn FnMut(Progress<'_>) -> ControlFlow<()>;

/// What learns in a run: a method on features, or one on images and texts.
pub(crate) trait Subject {
    /// Learns a task. Returns the seconds that it took, without copying samples.
    fn learn(&mut self, task: &Task) -> Result<f64, Error>;
    /// Forms the classifier of what was learned.
    fn form(&mut self) -> Result<(), Error>;
    /// The labels that the classifier gives to test samples.
    fn predict(&mut self, rows: &[usize]) -> Result<Vec<Label>, Error>;
    /// The error on the training samples of tasks, for methods whose scores approximate one-hot vectors.
    fn train_loss(&mut self, tasks: &[Task]) -> Result<Option<f64>, Error>;
    /// Eigenvalues of the Gram matrix, for methods that have one.
    fn spectrum(&mut self) -> Result<Option<Vec<f64>>, Error>;
    /// Facts about the state.
    fn summary(&self) -> Summary;
    /// The method's own settings.
    fn settings(&self) -> serde_json::Value;
    /// Bytes that it keeps.
    fn state_bytes(&self) -> usize;
    /// What an interrupted run had measured of the tasks that the subject has already learned.
    fn resume(&mut self) -> Result<Option<PartialRun>, Error> {
        Ok(None)
    }
    /// Keeps what is learned and measured so far, if it is expensive.
    fn keep(&mut self, _: &PartialRun) -> Result<(), Error> {
        Ok(())
    }
}

/// What was measured after each of the tasks so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PartialRun {
    /// The accuracy matrix, for all tasks of the run.
    pub matrix: AccuracyMatrix,
    /// A record of each task.
    pub records: Vec<TaskRecord>,
    /// What is known of the classes after the last task, if it is done.
    #[serde(default)]
    pub balance: Option<Balance>,
}

/// A learner on the features of a data set.
struct OnFeatures<'a> {
    learner: Box<dyn Learner>,
    dataset: &'a Dataset,
    classifier: Option<Classifier>,
    prior: &'a Prior,
    /// Training samples of each class so far.
    counts: HashMap<Label, f64>,
    /// Test samples of evaluations so far, and their rows; None if they are not kept.
    lifted: Option<(Vec<usize>, LiftedSamples)>,
    keep_lifted: bool,
}

impl OnFeatures<'_> {
    /// The classifier of what was learned, with the prior.
    fn decided(&mut self) -> Result<Classifier, Error> {
        let classifier = self.learner.classifier()?;
        let count = |label: &Label| self.counts.get(label).copied().unwrap_or(0.0);
        let counts: Vec<f64> = classifier.labels().iter().map(count).collect();
        Ok(classifier.with_prior(self.prior, &counts)?)
    }

    /// The scores of test samples. Those that were evaluated before need not be lifted again; the scores are the same.
    fn scores(&mut self, classifier: &Classifier, rows: &[usize]) -> Result<Scores, Error> {
        let dim = self.dataset.dim;
        if self.keep_lifted && self.lifted.is_none() {
            self.lifted = LiftedSamples::of(classifier).map(|samples| (Vec::new(), samples));
        }
        if let Some((known, samples)) = self.lifted.as_mut().filter(|(known, _)| rows.starts_with(known)) {
            let new = &rows[known.len()..];
            let (x, _) = self.dataset.test.gather(new, dim);
            if new.is_empty() || samples.push(Features::new(&x, dim)?).is_ok() {
                known.extend(new);
                return Ok(classifier.scores_of(samples)?);
            }
        }
        // There is no memory for them, or they are others.
        (self.lifted, self.keep_lifted) = (None, false);
        let (x, _) = self.dataset.test.gather(rows, dim);
        Ok(classifier.scores(Features::new(&x, dim)?)?)
    }
}

impl Subject for OnFeatures<'_> {
    fn learn(&mut self, task: &Task) -> Result<f64, Error> {
        let (x, y) = self.dataset.train.gather(&task.train, self.dataset.dim);
        let labels = self.dataset.labels(&y);
        self.classifier = None;
        labels.iter().for_each(|label| *self.counts.entry(label.clone()).or_default() += 1.0);
        let clock = Instant::now();
        self.learner.learn(Features::new(&x, self.dataset.dim)?, &labels)?;
        Ok(clock.elapsed().as_secs_f64())
    }

    fn form(&mut self) -> Result<(), Error> {
        self.classifier = Some(self.decided()?);
        Ok(())
    }

    fn predict(&mut self, rows: &[usize]) -> Result<Vec<Label>, Error> {
        let classifier = match self.classifier.take() {
            Some(classifier) => classifier,
            None => self.decided()?,
        };
        let winners = self.scores(&classifier, rows)?.argmax();
        Ok(winners.into_iter().map(|column| classifier.labels()[column].clone()).collect())
    }

    fn train_loss(&mut self, tasks: &[Task]) -> Result<Option<f64>, Error> {
        train_loss(&self.learner.classifier()?, self.dataset, tasks).map(Some)
    }

    fn spectrum(&mut self) -> Result<Option<Vec<f64>>, Error> {
        Ok(self.learner.spectrum()?)
    }

    fn summary(&self) -> Summary {
        self.learner.summary()
    }

    fn settings(&self) -> serde_json::Value {
        self.learner.settings()
    }

    fn state_bytes(&self) -> usize {
        self.learner.state_bytes()
    }
}

impl Experiment<'_> {
    /// Makes the run on features. Returns [`Error::Interrupted`] if `watch` breaks before the last task.
    pub fn run(&self, dataset: &Dataset, watch: Watch<'_>) -> Result<Run, Error> {
        let mut learner = self.method.build(&self.options)?;
        learner.expect(&stream::sizes(dataset, self.tasks));
        let (keep_lifted, prior, counts) = (self.keep_lifted, &self.spec.prior, HashMap::new());
        self.run_subject(
            &mut OnFeatures { learner, dataset, classifier: None, prior, counts, lifted: None, keep_lifted },
            dataset,
            watch,
        )
    }

    /// Makes the run of a subject.
    pub fn run_subject(&self, subject: &mut dyn Subject, dataset: &Dataset, watch: Watch<'_>) -> Result<Run, Error> {
        let nothing =
            || PartialRun { matrix: AccuracyMatrix::new(self.tasks.len()), records: Vec::new(), balance: None };
        let mut measured = subject.resume()?.unwrap_or_else(nothing);
        let costs: Vec<f64> = cumulative_costs(self.tasks);
        for (t, task) in self.tasks.iter().enumerate().skip(measured.records.len()) {
            let last = t + 1 == self.tasks.len();
            let learn_seconds = subject.learn(task)?;
            let mut times = None;
            if self.spec.eval.due(last) {
                let clock = Instant::now();
                subject.form()?;
                let weights_seconds = clock.elapsed().as_secs_f64();
                let clock = Instant::now();
                let accuracy = evaluate(subject, dataset, &self.tasks[..=t], &mut measured)?;
                times = Some((weights_seconds, clock.elapsed().as_secs_f64(), accuracy));
            }
            let loss = self.spec.train_loss.due(last).then(|| subject.train_loss(&self.tasks[..=t]));
            // JSON has no infinity: what has overflowed is not recorded.
            let train_loss = loss.transpose()?.flatten().filter(|loss| loss.is_finite());
            let spectrum = self.spec.spectrum.due(last).then(|| subject.spectrum());
            let spectrum = spectrum.transpose()?.flatten();
            let summary = subject.summary();
            measured.records.push(TaskRecord {
                classes_seen: summary.classes,
                samples_seen: summary.samples,
                basis_rank: summary.basis_rank,
                kept_rank: summary.kept_rank,
                ridge: summary.ridge,
                learn_seconds,
                weights_seconds: times.map(|t| t.0),
                eval_seconds: times.map(|t| t.1),
                accuracy_samples: times.and_then(|t| t.2),
                train_mse: summary.train_mse,
                train_mse_upper: summary.train_mse_upper,
                train_loss,
                spectrum,
                certificate: summary.certificate,
                drift: summary.drift,
                leave_one_out: summary.leave_one_out.map(|share| 100.0 * share),
            });
            subject.keep(&measured)?;
            let share = costs[t] / costs.last().copied().unwrap_or(1.0);
            let record = &measured.records[t];
            if watch(Progress { done: t + 1, tasks: self.tasks.len(), share, record }).is_break() && !last {
                return Err(Error::Interrupted);
            }
        }
        let PartialRun { matrix, records, balance } = measured;
        let incremental: Vec<f64> = records.iter().filter_map(|r| r.accuracy_samples).collect();
        Ok(Run {
            method: self.method.name.to_owned(),
            continual: self.method.continual,
            exemplar_free: self.method.exemplar_free && !self.options.space.width().is_infinite(),
            seed: self.spec.order.is_none().then_some(self.spec.seed),
            config: RunConfig {
                spec: self.spec.clone(),
                lift: self.lift.clone(),
                width_choice: self.choice,
                method: subject.settings(),
                threads: self.threads,
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            dataset: DatasetFacts::of(dataset),
            final_accuracy: matrix.final_accuracy(),
            total_accuracy: matrix.total_accuracy(),
            final_accuracy_samples: records.last().and_then(|r| r.accuracy_samples),
            balance,
            average_incremental_accuracy: mean(&incremental).filter(|_| incremental.len() == records.len()),
            forgetting: matrix.forgetting(),
            accuracy_matrix: matrix,
            tasks: records,
            verdict: subject.summary().verdict(),
            adapt_seconds: self.adapt_seconds,
            adapt_choice: self.adapt_choice.clone(),
            state_bytes: subject.state_bytes(),
            peak_rss_bytes: system::peak_memory(),
        })
    }
}

/// Fills the column of the matrix after these tasks, and counts decisions by class; returns the accuracy over all samples.
fn evaluate(
    subject: &mut dyn Subject,
    dataset: &Dataset,
    tasks: &[Task],
    measured: &mut PartialRun,
) -> Result<Option<f64>, Error> {
    // All tasks in one batch: the lift and the scores are matrix products, and larger ones are faster.
    let rows: Vec<usize> = tasks.iter().flat_map(|task| task.test.iter().copied()).collect();
    if rows.is_empty() {
        return Ok(None);
    }
    let place: HashMap<&Label, usize> = dataset.classes.iter().enumerate().map(|(i, label)| (label, i)).collect();
    let (mut hits, mut counts) = (Vec::with_capacity(rows.len()), ByClass::new(dataset.classes.len()));
    for (winner, row) in subject.predict(&rows)?.iter().zip(&rows) {
        let (truth, answer) = (dataset.test.y[*row], place[winner]);
        counts.add(truth, answer);
        hits.push(truth == answer);
    }
    let percent = |hits: &[bool]| 100.0 * hits.iter().filter(|&&hit| hit).count() as f64 / hits.len() as f64;
    let mut rest = &hits[..];
    for (row, task) in tasks.iter().enumerate().filter(|(_, task)| !task.test.is_empty()) {
        let (of_task, others) = rest.split_at(task.test.len());
        measured.matrix.set(row, tasks.len() - 1, percent(of_task));
        rest = others;
    }
    if tasks.len() == measured.matrix.tasks() {
        let sizes: Vec<f64> = dataset.class_sizes().into_iter().map(|size| size as f64).collect();
        measured.balance = counts.balance(&sizes);
    }
    Ok(Some(percent(&hits)))
}

/// `|W H - Y|^2 / M` over the training samples of the tasks, from the scores; Y has a one for the class of each sample.
fn train_loss(classifier: &Classifier, dataset: &Dataset, tasks: &[Task]) -> Result<f64, Error> {
    let rows: Vec<usize> = tasks.iter().flat_map(|task| task.train.iter().copied()).collect();
    let place: HashMap<&Label, usize> = dataset.classes.iter().enumerate().map(|(i, label)| (label, i)).collect();
    let class_of: Vec<usize> = classifier.labels().iter().map(|label| place[label]).collect();
    let mut sum = 0.0;
    for rows in rows.chunks(4096) {
        let (x, y) = dataset.train.gather(rows, dataset.dim);
        let scores = classifier.scores(Features::new(&x, dataset.dim)?)?;
        for (row, &y) in scores.rows().zip(&y) {
            let error = |(score, class): (&f32, &usize)| (f64::from(*score) - f64::from(u8::from(*class == y))).powi(2);
            sum += row.iter().zip(&class_of).map(error).sum::<f64>();
        }
    }
    Ok(sum / rows.len() as f64)
}

/// A rough cost of each task, summed: m samples against a basis of r, plus a constant part.
fn cumulative_costs(tasks: &[Task]) -> Vec<f64> {
    let (mut seen, mut sum) = (0.0, 0.0);
    let cost = |task: &Task| {
        let m = task.train.len() as f64;
        seen += m;
        sum += m * (seen + 500.0);
        sum
    };
    tasks.iter().map(cost).collect()
}
