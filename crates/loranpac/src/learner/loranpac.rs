//! LoRanPAC (Algorithms 1 and 4), on sufficient statistics instead of an incremental SVD.

use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut, MatRef};
use serde::{Deserialize, Serialize};

use super::{Learner, Scores, Summary, check_task};
use crate::certificate::Certificate;
use crate::error::Error;
use crate::features::Features;
use crate::filter::{self, Facts, Filter};
use crate::label::{Label, LabelTable};
use crate::lift::FeatureMap;
use crate::linalg::{cast, par};
use crate::memory::with_slack;
use crate::statistics::{DEFAULT_DROP, Statistics};

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
}

impl Default for Config {
    fn default() -> Self {
        Config {
            filter: Filter::default(),
            max_rank: 10_000,
            schedule: Schedule::default(),
            drop: DEFAULT_DROP,
            chunk: 384,
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

/// The learner.
pub struct LoRanPac {
    lift: Arc<dyn FeatureMap>,
    config: Config,
    table: LabelTable,
    stats: Statistics<f32>,
    classifier: Option<Classifier>,
    /// E x chunk lifted samples, allocated once.
    work: Vec<f32>,
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
        let stats = Statistics::new(lift.width(), config.drop);
        Ok(LoRanPac { lift, config, table: LabelTable::default(), stats, classifier: None, work: Vec::new() })
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
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
            self.classifier = Some(Classifier { weights, facts: solution.facts });
        }
        self.classifier.as_ref().ok_or(Error::NothingLearned)
    }

    /// Shrinks a basis that has outgrown its cap and slack.
    fn compress(&mut self) -> Result<(), Error> {
        let Config { chunk, max_rank, .. } = self.config;
        if self.stats.basis().rank() > with_slack(max_rank, chunk) {
            self.stats.compress(max_rank)?;
        }
        Ok(())
    }

    /// Lifts samples into `work` and views them as H.
    fn lifted<'a>(lift: &dyn FeatureMap, x: Features<'_>, chunk: usize, work: &'a mut Vec<f32>) -> MatMut<'a, f32> {
        work.resize(work.len().max(lift.width() * x.len().min(chunk)), 0.0);
        let mut h = MatMut::from_column_major_slice_mut(&mut work[..lift.width() * x.len()], lift.width(), x.len());
        lift.lift(x.as_matrix(), h.rb_mut());
        h
    }
}

impl Learner for LoRanPac {
    /// Cost: `2 E d m` flops for the lift and `8 E r m` for the basis, in chunks, whatever the size of the task.
    ///
    /// The only error after the input has been accepted is [`Error::Eigen`]: the whole task has then been learned, but
    /// not truncated.
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        check_task(x, labels, self.lift.dim())?;
        self.classifier = None;
        let Config { chunk: most, max_rank, schedule, filter, .. } = self.config;
        let mut outcome = Ok(());
        let chunk = x.len().div_ceil(x.len().div_ceil(most));
        for (part, labels) in x.chunks(chunk).zip(labels.chunks(chunk)) {
            let classes: Vec<usize> = labels.iter().map(|label| self.table.get_or_insert(label)).collect();
            let h = Self::lifted(&*self.lift, part, chunk, &mut self.work);
            self.stats.absorb(h, &classes);
            if schedule == Schedule::Late {
                outcome = outcome.and(self.compress());
            }
        }
        // What is left of the samples in the work space goes, too.
        self.work.truncate(self.lift.width() * chunk);
        self.work.fill(0.0);
        outcome?;
        if let (Schedule::Paper, Filter::Hard { truncation, .. }) = (schedule, filter) {
            let (width, samples) = (self.lift.width(), self.stats.samples());
            self.stats.cut(|values| truncation.kept(values, width, samples, max_rank))?;
            // After the cut S has at most r_max directions, so that this loses nothing.
            self.compress()?;
        }
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), Error> {
        self.classifier().map(|_| ())
    }

    fn scores(&mut self, x: Features<'_>) -> Result<Scores, Error> {
        x.validate(self.lift.dim())?;
        self.prepare()?;
        let weights = &self.classifier.as_ref().ok_or(Error::NothingLearned)?.weights;
        let classes = weights.ncols();
        let mut values = Vec::with_capacity(x.len() * classes);
        for part in x.chunks(self.config.chunk) {
            let h = Self::lifted(&*self.lift, part, self.config.chunk, &mut self.work);
            let mut scores = Mat::<f32>::zeros(part.len(), classes);
            matmul(&mut scores, Accum::Replace, h.rb().transpose(), weights, 1.0, par());
            for i in 0..part.len() {
                values.extend((0..classes).map(|j| scores[(i, j)]));
            }
        }
        Ok(Scores::new(values, classes))
    }

    fn novelty(&mut self, x: Features<'_>) -> Result<Option<Vec<f64>>, Error> {
        x.validate(self.lift.dim())?;
        if self.stats.samples() == 0 {
            return Err(Error::NothingLearned);
        }
        let mut projected = Mat::<f64>::zeros(x.len(), self.stats.basis().rank());
        let mut squared = Vec::with_capacity(x.len());
        for part in x.chunks(self.config.chunk) {
            let h = Self::lifted(&*self.lift, part, self.config.chunk, &mut self.work);
            let mut rows = projected.as_mut().subrows_mut(squared.len(), part.len());
            rows.copy_from(cast::<f32, f64>(self.stats.basis().project(h.rb()).as_ref()));
            squared.extend(h.rb().col_iter().map(|c| c.iter().map(|&v| v as f64 * v as f64).sum::<f64>()));
        }
        filter::novelty(&mut self.stats, self.config.filter, self.config.max_rank, projected, &squared).map(Some)
    }

    fn classes(&self) -> &LabelTable {
        &self.table
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
            certificate: facts.map(|f| Certificate::new(self.stats.losses(), self.stats.latest_cut(), f)),
        }
    }

    fn state_bytes(&self) -> usize {
        let weights = self.classifier.as_ref().map_or(0, |c| size_of::<f32>() * c.weights.nrows() * c.weights.ncols());
        self.stats.bytes() + weights
    }
}
