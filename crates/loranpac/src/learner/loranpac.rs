//! LoRanPAC (Algorithms 1 and 4), on sufficient statistics instead of an incremental SVD.

use std::sync::Arc;

use faer::prelude::Reborrow;
use faer::{Mat, MatRef};
use serde::{Deserialize, Serialize};

use super::lifted::{CHUNK, Lifted, bytes_of, indices};
use super::{Editable, Form, Learner, Scores, StreamSizes, Summary, check_lifts, check_task};
use crate::certificate::Certificate;
use crate::error::Error;
use crate::features::Features;
use crate::filter::{self, Facts, Filter, Ridge};
use crate::label::{Label, LabelTable};
use crate::lift::FeatureMap;
use crate::linalg::cast;
use crate::memory::{self, Plan, with_slack};
use crate::registry::{Input, Method, MethodOptions, Promise, Settings};
use crate::statistics::{DEFAULT_DROP, Statistics};
use crate::truncation::Truncation;

/// When the spectrum is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Only when the classifier is formed: the paper's offline solution, reached continually.
    #[default]
    Late,
    /// After every task: the paper's Algorithm 4.
    Paper,
}

/// Everything that can be chosen about the learner, apart from its lift.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Hard (the paper) or soft.
    pub filter: Filter,
    /// r_max: the most directions that a classifier uses. Between compressions the basis itself may be larger by a
    /// quarter or by a chunk, whichever is more (see [`crate::memory::with_slack`]).
    pub max_rank: usize,
    /// When the spectrum is cut.
    pub schedule: Schedule,
    /// Residuals below this many rounding units of a sample's length add no direction; 0 keeps all of them.
    pub drop: f64,
    /// The most samples that are lifted and absorbed at a time; larger tasks are divided evenly.
    pub chunk: usize,
    /// Whether samples are kept in half precision, where they are kept: at infinite width.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub half: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            filter: Filter::default(),
            max_rank: 10_000,
            schedule: Schedule::default(),
            drop: DEFAULT_DROP,
            chunk: CHUNK,
            half: false,
        }
    }
}

impl Config {
    /// Checks that the settings are possible.
    pub fn validate(self) -> Result<Self, Error> {
        self.filter.validate()?;
        if self.max_rank == 0 {
            return Err(Error::setting("max-rank", 0, "at least one direction must be kept"));
        }
        if self.chunk == 0 {
            return Err(Error::setting("chunk", 0, "at least one sample must be absorbed at a time"));
        }
        if !(self.drop >= 0.0 && self.drop.is_finite()) {
            return Err(Error::setting("drop", self.drop, "it must be a number >= 0 (rounding units)"));
        }
        if self.schedule == Schedule::Paper && matches!(self.filter, Filter::Soft(_)) {
            let reason = "the soft filter never cuts the spectrum; use the late schedule, or method loranpac";
            return Err(Error::setting("schedule", "paper", reason));
        }
        Ok(self)
    }
}

impl Config {
    /// Checks that samples can be kept as the settings say: half precision holds numbers up to 65,504.
    pub fn accepts(&self, x: Features<'_>) -> Result<(), Error> {
        let limit = half::f16::MAX.to_f32();
        for row in 0..if self.half { x.len() } else { 0 } {
            if let Some(value) = x.row(row).iter().copied().find(|value| value.abs() > limit) {
                return Err(Error::TooLarge { row, value, limit });
            }
        }
        Ok(())
    }
}

/// The learner.
pub struct LoRanPac {
    lifted: Lifted,
    config: Config,
    table: LabelTable,
    stats: Statistics<f32>,
    classifier: Option<Classifier>,
}

/// W, transposed (E x c), and what forming it showed.
struct Classifier {
    weights: Mat<f32>,
    facts: Facts,
}

impl LoRanPac {
    /// A model that knows nothing yet.
    pub fn new(lift: Arc<dyn FeatureMap>, config: Config) -> Result<Self, Error> {
        let config = config.validate()?;
        if lift.is_infinite() {
            let reason = "lifted features are needed here; Editable::new makes the form that goes without";
            return Err(Error::setting("width", "infinite", reason));
        }
        if config.half {
            return Err(Error::setting("samples", "f16", "only --width infinite keeps samples"));
        }
        if config.filter == Filter::Soft(Ridge::LeaveOneOut) {
            return Err(Error::setting(
                "ridge",
                "loo",
                "leaving samples out needs samples: only --width infinite keeps them",
            ));
        }
        let stats = Statistics::new(lift.width(), config.drop);
        Ok(LoRanPac { lifted: Lifted::new(lift), config, table: LabelTable::default(), stats, classifier: None })
    }

    /// The sufficient statistics.
    pub fn statistics(&self) -> &Statistics<f32> {
        &self.stats
    }

    /// W of the current classifier, transposed (E x c).
    pub fn weights(&mut self) -> Result<MatRef<'_, f32>, Error> {
        Ok(self.classifier()?.weights.as_ref())
    }

    fn classifier(&mut self) -> Result<&Classifier, Error> {
        if self.classifier.is_none() {
            let solution = filter::solve(&mut self.stats, self.config.filter, self.config.max_rank)?;
            let weights = self.stats.expand(solution.coefficients.as_ref());
            if !weights.is_all_finite() {
                return Err(Error::Overflow);
            }
            self.classifier = Some(Classifier { weights, facts: solution.facts });
        }
        self.classifier.as_ref().ok_or(Error::NothingLearned)
    }

    /// A model from what it consisted of; None if the parts do not fit together.
    pub fn from_parts(
        lift: Arc<dyn FeatureMap>,
        config: Config,
        table: LabelTable,
        stats: Statistics<f32>,
    ) -> Result<Option<Self>, Error> {
        let model = LoRanPac::new(lift, config)?;
        let fits = stats.basis().width() == model.lifted.width() && stats.counts().len() == table.len();
        Ok(fits.then_some(LoRanPac { table, stats, ..model }))
    }

    /// The sufficient statistics, to be put together or to note their changes.
    pub fn statistics_mut(&mut self) -> &mut Statistics<f32> {
        &mut self.stats
    }

    /// Takes a classifier that was formed before and written down (W transposed, E x c); false if it does not fit.
    pub fn set_classifier(&mut self, weights: Mat<f32>, facts: Facts) -> bool {
        let fits = (weights.nrows(), weights.ncols()) == (self.lifted.width(), self.table.len());
        if fits {
            self.classifier = Some(Classifier { weights, facts });
        }
        fits
    }

    /// Takes in everything that other models with the same lift have learned, as if it had been learned here. The basis is
    /// cut once, at the end, if it has outgrown its cap. Models with other lifts are refused, and nothing changes then.
    pub fn merge<'a>(&mut self, others: impl IntoIterator<Item = &'a mut LoRanPac>) -> Result<(), Error> {
        let others: Vec<&mut LoRanPac> = others.into_iter().collect();
        others.iter().try_for_each(|other| check_lifts(&self.lifted.lift, &other.lifted.lift))?;
        self.classifier = None;
        for other in others {
            let classes = indices(&mut self.table, other.table.labels());
            self.stats.merge(&mut other.stats, &classes);
        }
        match self.config.schedule {
            Schedule::Late => self.compress(),
            Schedule::Paper => self.cut(),
        }
    }

    fn remove_empty_classes(&mut self) {
        while let Some(class) = self.stats.counts().iter().position(|count| *count == 0) {
            self.stats.forget(class);
            self.table.remove(class);
        }
    }

    /// The paper schedule's cut.
    fn cut(&mut self) -> Result<(), Error> {
        let Config { max_rank, schedule, filter, .. } = self.config;
        if let (Schedule::Paper, Filter::Hard { truncation, .. }) = (schedule, filter) {
            let (width, samples) = (self.lifted.width(), self.stats.samples());
            self.stats.cut(|values| truncation.kept(values, width, samples, max_rank))?;
            // After the cut S has at most r_max directions, so that this loses nothing.
            self.compress()?;
        }
        Ok(())
    }

    /// Changes lambda of the hard filter; the classifier is formed anew.
    pub(super) fn set_ridge(&mut self, lambda: f64) {
        if let Filter::Hard { ridge, .. } = &mut self.config.filter {
            *ridge = lambda;
            self.classifier = None;
        }
    }

    /// Shrinks a basis that has outgrown its cap and slack.
    fn compress(&mut self) -> Result<(), Error> {
        let Config { chunk, max_rank, .. } = self.config;
        if self.stats.basis().rank() > with_slack(max_rank, chunk) {
            self.stats.compress(max_rank)?;
        }
        Ok(())
    }
}

impl Learner for LoRanPac {
    /// Cost: `2 E d m` flops for the lift and `8 E r m` for the basis, in chunks, whatever the size of the task.
    ///
    /// The only error after the input has been accepted is [`Error::Eigen`]: the whole task has then been learned, but
    /// not truncated.
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        check_task(x, labels, self.lifted.lift.dim())?;
        self.classifier = None;
        let Config { chunk: most, schedule, .. } = self.config;
        let mut outcome = Ok(());
        let chunk = x.len().div_ceil(x.len().div_ceil(most));
        for (part, labels) in x.chunks(chunk).zip(labels.chunks(chunk)) {
            let classes = indices(&mut self.table, labels);
            self.stats.absorb(self.lifted.lift(part), &classes);
            if schedule == Schedule::Late {
                outcome = outcome.and(self.compress());
            }
        }
        self.lifted.wipe(chunk);
        outcome?;
        self.cut()
    }

    fn prepare(&mut self) -> Result<(), Error> {
        self.classifier().map(|_| ())
    }

    fn scores(&mut self, x: Features<'_>) -> Result<Scores, Error> {
        x.validate(self.lifted.lift.dim())?;
        self.prepare()?;
        let weights = &self.classifier.as_ref().ok_or(Error::NothingLearned)?.weights;
        Ok(self.lifted.scores(x, self.config.chunk, weights, &[]))
    }

    fn novelty(&mut self, x: Features<'_>) -> Result<Option<Vec<f64>>, Error> {
        x.validate(self.lifted.lift.dim())?;
        if self.stats.samples() == 0 {
            return Err(Error::NothingLearned);
        }
        let mut projected = Mat::<f64>::zeros(x.len(), self.stats.basis().rank());
        let mut squared = Vec::with_capacity(x.len());
        for part in x.chunks(self.config.chunk) {
            let h = self.lifted.lift(part);
            let mut rows = projected.as_mut().subrows_mut(squared.len(), part.len());
            rows.copy_from(cast::<f32, f64>(self.stats.basis().project(h.rb()).as_ref()));
            squared.extend(h.rb().col_iter().map(|c| c.iter().map(|&v| v as f64 * v as f64).sum::<f64>()));
        }
        filter::novelty(&mut self.stats, self.config.filter, self.config.max_rank, projected, &squared).map(Some)
    }

    fn spectrum(&mut self) -> Result<Option<Vec<f64>>, Error> {
        let mut values = self.stats.gram().eigenvalues()?;
        if let (Schedule::Paper, Filter::Hard { truncation, .. }) = (self.config.schedule, self.config.filter) {
            // What was cut is still there as rounding noise.
            let kept = truncation.kept(&values, self.lifted.width(), self.stats.samples(), self.config.max_rank);
            values.truncate(kept);
        }
        Ok(Some(values))
    }

    fn classes(&self) -> &LabelTable {
        &self.table
    }

    fn as_editable(&mut self) -> Option<&mut dyn Editable> {
        Some(self)
    }

    fn summary(&self) -> Summary {
        let facts = self.classifier.as_ref().map(|c| c.facts);
        Summary {
            samples: self.stats.samples(),
            classes: self.table.len(),
            basis_rank: Some(self.stats.basis().rank()),
            kept_rank: facts.map(|f| f.kept),
            ridge: facts.map(|f| f.ridge),
            train_mse: facts.map(|f| f.train_mse),
            train_mse_upper: facts.map(|f| f.train_mse_upper),
            certificate: facts.map(|f| Certificate::new(&self.stats, f)),
            ..Summary::default()
        }
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!(self.config)
    }

    fn state_bytes(&self) -> usize {
        self.stats.bytes() + self.classifier.as_ref().map_or(0, |c| bytes_of(&c.weights)) + self.lifted.bytes()
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        let Config { filter, max_rank, schedule, chunk, drop, .. } = self.config;
        let paper = schedule == Schedule::Paper;
        let width = self.lifted.width();
        let most = stream.samples.min(width);
        let step = if paper { stream.largest_task } else { chunk.min(stream.largest_task) };
        let compresses = most > with_slack(max_rank, chunk);
        let plan = Plan {
            width,
            rank: most.min(Plan::peak_rank(max_rank, chunk, step)),
            classes: stream.classes,
            chunk: chunk.min(stream.largest_task),
            keep_null: drop == 0.0,
            full_eigen: memory::needs_full_eigen(filter, paper, compresses),
        };
        plan.peak()
    }
}

impl Editable for LoRanPac {
    fn config(&self) -> &Config {
        &self.config
    }

    fn feature_map(&self) -> Arc<dyn FeatureMap> {
        self.lifted.lift.clone()
    }

    fn counts(&self) -> &[usize] {
        self.stats.counts()
    }

    fn facts(&mut self) -> Result<Facts, Error> {
        Ok(self.classifier()?.facts)
    }

    fn is_prepared(&self) -> bool {
        self.classifier.is_some()
    }

    fn forget(&mut self, label: &Label) -> Result<(), Error> {
        let class = self.table.removable(label)?;
        self.classifier = None;
        self.stats.forget(class);
        self.table.remove(class);
        Ok(())
    }

    fn rename(&mut self, from: &Label, to: Label) -> Result<(), Error> {
        let class = self.table.renamed(from, to)?;
        self.stats.note_class(class);
        Ok(())
    }

    fn relabel(&mut self, x: Features<'_>, from: &[Label], to: &[Label]) -> Result<usize, Error> {
        check_task(x, from, self.lifted.lift.dim())?;
        check_task(x, to, self.lifted.lift.dim())?;
        let old = from.iter().map(|label| self.table.find(label)).collect::<Result<Vec<_>, _>>()?;
        let mut table = self.table.clone();
        let new = indices(&mut table, to);
        let outcome = self.stats.relabel(self.lifted.lift(x), &old, &new);
        self.lifted.wipe(0);
        let unchecked = outcome?;
        self.table = table;
        self.classifier = None;
        self.remove_empty_classes();
        Ok(unchecked)
    }

    fn unlearn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<usize, Error> {
        check_task(x, labels, self.lifted.lift.dim())?;
        let classes = labels.iter().map(|label| self.table.find(label)).collect::<Result<Vec<_>, _>>()?;
        if x.len() >= self.stats.counts().iter().sum() {
            let reason = "nothing would be left; start a new model instead";
            return Err(Error::setting("samples", x.len(), reason));
        }
        let outcome = self.stats.unlearn(self.lifted.lift(x), &classes);
        self.lifted.wipe(0);
        let unchecked = outcome?;
        self.classifier = None;
        self.remove_empty_classes();
        Ok(unchecked)
    }

    fn vouch(&mut self, samples: usize) {
        self.stats.vouch(samples);
    }

    fn form(&mut self) -> Form<'_> {
        Form::Explicit(self)
    }
}

const RIDGE: (&str, &str) = ("ridge", "lambda, added to the eigenvalues");
const RIDGE_OR_LOO: (&str, &str) = (
    "ridge",
    "lambda, added to the eigenvalues; loo (infinite width): the best of six decades by leave-one-out accuracy",
);
const SAMPLES: (&str, &str) = ("samples", "f16 or f32, how samples are kept at infinite width");
pub(super) const DROP: (&str, &str) = ("drop", "rounding units below which a residual adds no direction; 0 keeps all");
pub(super) const CHUNK_SIZE: (&str, &str) = ("chunk", "samples absorbed at a time");

/// The paper's method.
pub(crate) const LORANPAC: Method = Method {
    name: "loranpac",
    summary: "the paper: truncated least squares on lifted features",
    input: Input::Lifted,
    continual: true,
    exemplar_free: true,
    truncates: true,
    cuts: true,
    settings: &[RIDGE, DROP, CHUNK_SIZE, SAMPLES],
    exempt: &[],
    infinite: true,
    build: |options, settings| {
        let ridge = settings.ridge()?.unwrap_or(0.0);
        let filter = Filter::Hard { truncation: options.truncation.unwrap_or_default(), ridge };
        build(options, settings, filter, DEFAULT_DROP)
    },
};

/// Ours: nothing is cut.
pub(crate) const LORANPAC_SOFT: Method = Method {
    name: "loranpac-soft",
    summary: "a ridge read off the spectrum (its geometric mean) instead of a cut",
    input: Input::Lifted,
    continual: true,
    exemplar_free: true,
    truncates: true,
    cuts: false,
    settings: &[RIDGE_OR_LOO, DROP, CHUNK_SIZE, SAMPLES],
    exempt: &[],
    infinite: true,
    build: |options, settings| {
        let ridge = match (settings.get("ridge"), options.truncation) {
            (Some("loo"), _) => Ridge::LeaveOneOut,
            (Some(_), _) => Ridge::Fixed(settings.ridge()?.unwrap_or(0.0)),
            (None, Some(truncation)) => Ridge::Eigenvalue(truncation),
            (None, None) => Ridge::GeometricMean,
        };
        build(options, settings, Filter::Soft(ridge), DEFAULT_DROP)
    },
};

/// ICL, in the form of the paper's Figure 1.
pub(crate) const MIN_NORM: Method = Method {
    name: "min-norm",
    summary: "no truncation (zeta = 0), null directions kept: what the paper shows to be unstable",
    input: Input::Lifted,
    continual: true,
    exemplar_free: true,
    truncates: false,
    cuts: true,
    settings: &[DROP, CHUNK_SIZE],
    exempt: UNSTABLE,
    infinite: false,
    build: |options, settings| {
        let filter = Filter::Hard { truncation: Truncation::Fraction(0.0), ridge: 0.0 };
        build(options, settings, filter, 0.0)
    },
};

/// What no method can promise that divides by eigenvalues of rounding size.
pub(super) const UNSTABLE: &[(Promise, &str)] = &[
    (Promise::SampleOrder, "it divides by eigenvalues of rounding size, and rounding depends on the order"),
    (Promise::Halves, "it divides by eigenvalues of rounding size, and rounding depends on the division"),
    (Promise::Stability, "it divides by eigenvalues of rounding size: this is what the paper shows"),
];

/// The configuration that all of the family share.
fn build(
    options: &MethodOptions,
    settings: &Settings<'_>,
    filter: Filter,
    drop: f64,
) -> Result<Box<dyn Learner>, Error> {
    let config = configure(options, settings, filter, drop)?;
    Ok(<dyn Editable>::new(options.lift.clone(), config)?)
}

/// The same without the learner, for methods that wrap one.
pub(super) fn configure(
    options: &MethodOptions,
    settings: &Settings<'_>,
    filter: Filter,
    drop: f64,
) -> Result<Config, Error> {
    Ok(Config {
        filter,
        max_rank: options.max_rank,
        schedule: options.schedule,
        drop: settings.number("drop", drop)?,
        chunk: settings.number("chunk", CHUNK)?,
        half: match settings.get("samples") {
            None | Some("f32") => false,
            Some("f16") => true,
            Some(other) => return Err(Error::setting("samples", other, "f16 or f32 is expected")),
        },
    })
}
