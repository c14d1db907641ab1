//! LoRanPAC on computed features (Algorithms 1 and 4), by sufficient statistics instead of an incremental SVD.

mod distinct;
mod edit;

use std::sync::Arc;

use distinct::Distinct;
use faer::Mat;

use super::lifted::{Lifted, indices};
use crate::certificate::Certificate;
use crate::classifier::{Classifier, Directions, Scorer};
use crate::config::{Config, Schedule};
use crate::delta::{Delta, Receiver};
use crate::error::Error;
use crate::features::Features;
use crate::filter::{self, Facts, Filter, Novelty};
use crate::gram::Grid;
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary, check_weighted_task};
use crate::lift::{self, FeatureMap, FeatureSpace};
use crate::plan::{Plan, basis_with_slack};
use crate::statistics::Statistics;
use crate::width::Width;

/// LoRanPAC on computed features.
pub struct ExplicitModel {
    lifted: Lifted,
    config: Config,
    table: LabelTable,
    stats: Statistics<f32>,
    classifier: Option<Classifier>,
}

impl ExplicitModel {
    /// Creates a model that has learned nothing yet.
    pub fn new(map: Arc<dyn FeatureMap>, config: Config) -> Result<Self, Error> {
        let config = config.validate_for(Width::Finite(map.width()))?;
        let stats = Statistics::new(map.width(), config.drop);
        Ok(ExplicitModel { lifted: Lifted::new(map), config, table: LabelTable::default(), stats, classifier: None })
    }

    /// Creates a model from its parts; returns None if they do not fit together.
    pub fn from_parts(
        map: Arc<dyn FeatureMap>,
        config: Config,
        table: LabelTable,
        stats: Statistics<f32>,
    ) -> Result<Option<Self>, Error> {
        let model = ExplicitModel::new(map, config)?;
        let fits = stats.basis().width() == model.lifted.width() && stats.counts().len() == table.len();
        Ok(fits.then_some(ExplicitModel { table, stats, ..model }))
    }

    /// Returns the sufficient statistics.
    pub fn statistics(&self) -> &Statistics<f32> {
        &self.stats
    }

    /// Returns the upper triangle of S, column after column.
    pub fn packed_gram(&mut self) -> Vec<f64> {
        self.stats.shared_gram().to_packed()
    }

    /// Returns S in fixed point, if it is.
    pub fn fixed_gram(&mut self) -> Option<Grid> {
        self.stats.shared_gram().to_grid()
    }

    /// Restores a classifier that was formed from the same statistics (W transposed, E x c); returns false if the size
    /// differs.
    pub fn set_classifier(&mut self, weights: Mat<f32>, facts: Facts) -> bool {
        let fits = (weights.nrows(), weights.ncols()) == (self.lifted.width(), self.table.len());
        if fits {
            self.classifier = Some(self.classifier_of(weights, facts));
        }
        fits
    }

    /// Returns the classifier with these weights. It shares Q and S with the statistics until they change.
    fn classifier_of(&mut self, weights: Mat<f32>, facts: Facts) -> Classifier {
        let Config { filter, max_rank, .. } = self.config;
        let limits = filter::limits(&self.stats, max_rank);
        let novelty = Novelty::new(self.stats.shared_gram(), false, filter, facts.ridge, limits);
        let space = FeatureSpace::Explicit(self.lifted.lift.clone());
        Classifier::new(space, &self.table, Scorer::Linear { weights, bias: Vec::new() })
            .with_facts(facts)
            .with_directions(Directions::Basis(self.stats.basis().clone(), novelty))
    }

    /// Learns a task, and reports the changes: a delta for every chunk, and one for every cut.
    ///
    /// Cost: `2 E d m` flops for the lift and `2 E r m` for the basis, in chunks, for tasks of any size. The only error
    /// after the input has been accepted is [`Error::Eigen`]: the whole task has then been learned, but not truncated.
    pub fn learn_with(&mut self, x: Features<'_>, labels: &[Label], changed: Receiver<'_>) -> Result<(), Error> {
        check_weighted_task(x, labels, self.lifted.lift.dim())?;
        if let Some(present) = x.present() {
            return self.learn_with(present.features(), &present.of(labels), changed);
        }
        self.classifier = None;
        let Config { chunk: most, schedule, max_rank, .. } = self.config;
        let mut outcome = Ok(());
        let chunk = x.len().div_ceil(x.len().div_ceil(most));
        for (part, labels) in x.chunks(chunk).zip(labels.chunks(chunk)) {
            let classes = indices(&mut self.table, labels);
            let rank = self.stats.basis().rank();
            changed(self.absorb(part, &classes));
            if max_rank >= self.lifted.width() && self.stats.spans_all(self.stats.basis().rank() > rank) {
                changed(self.stats.make_whole());
            }
            if schedule == Schedule::Late {
                outcome = outcome.and_then(|()| self.compress().map(&mut *changed));
            }
        }
        self.lifted.wipe(chunk);
        outcome?;
        self.cut(changed)
    }

    /// Learns a chunk.
    fn absorb(&mut self, x: Features<'_>, classes: &[usize]) -> Delta {
        // Copies are null directions, which the literal minimum-norm solution keeps.
        let distinct =
            Distinct::of(x, classes).filter(|_| !self.stats.keeps_null_directions() || x.weights().is_some());
        match distinct.as_ref().and_then(|distinct| Some((distinct, distinct.features()?))) {
            Some((distinct, x)) => {
                self.stats.absorb_weighted(self.lifted.lift(x), &distinct.classes, Some(distinct.weighted()))
            }
            None => self.stats.absorb(self.lifted.lift(x), classes),
        }
    }

    /// Merges other models with the same lift, as if everything had been learned here. The basis is cut once, at the
    /// end, if it exceeds its cap. Models with other lifts are refused, and then nothing changes.
    pub fn merge<'a>(&mut self, others: impl IntoIterator<Item = &'a mut ExplicitModel>) -> Result<Delta, Error> {
        let others: Vec<&mut ExplicitModel> = others.into_iter().collect();
        others.iter().try_for_each(|other| self.space().require_same(&other.space()))?;
        self.classifier = None;
        let mut delta = Delta::none(self.table.len());
        for other in others {
            let classes = indices(&mut self.table, other.table.labels());
            delta.append(self.stats.merge(&mut other.stats, &classes));
        }
        match self.config.schedule {
            Schedule::Late => delta.append(self.compress()?),
            Schedule::Paper => self.cut(&mut |later| delta.append(later))?,
        }
        Ok(delta)
    }

    /// Applies the paper schedule's cut.
    fn cut(&mut self, changed: Receiver<'_>) -> Result<(), Error> {
        let Config { max_rank, schedule, filter, .. } = self.config;
        if let (Schedule::Paper, Filter::Hard { truncation, .. }) = (schedule, filter) {
            let (width, samples) = (self.lifted.width(), self.stats.samples());
            changed(self.stats.cut(|values| truncation.kept(values, width, samples, max_rank))?);
            // After the cut S has at most r_max directions, so that this loses nothing.
            changed(self.compress()?);
        }
        Ok(())
    }

    /// Sets lambda of the hard filter, and discards the classifier.
    pub(super) fn set_ridge(&mut self, lambda: f64) {
        if let Filter::Hard { ridge, .. } = &mut self.config.filter {
            *ridge = lambda;
            self.classifier = None;
        }
    }

    /// Compresses the basis if it exceeds its cap and slack.
    fn compress(&mut self) -> Result<Delta, Error> {
        let Config { chunk, max_rank, .. } = self.config;
        match self.stats.basis().rank() > basis_with_slack(max_rank, chunk) {
            true => self.stats.compress(max_rank),
            false => Ok(Delta::none(self.table.len())),
        }
    }

    /// Returns the sizes that the model reaches in a stream.
    fn plan(&self, stream: &StreamSizes) -> Plan {
        let Config { filter, max_rank, schedule, chunk, drop, .. } = self.config;
        let paper = schedule == Schedule::Paper;
        let width = self.lifted.width();
        let most = stream.samples.min(width);
        let step = if paper { stream.largest_task } else { chunk.min(stream.largest_task) };
        Plan {
            width,
            rank: most.min(Plan::peak_rank(max_rank, chunk, step)),
            classes: stream.classes,
            chunk: chunk.min(stream.largest_task),
            keep_null: drop == 0.0,
            full_eigen: paper && matches!(filter, Filter::Hard { .. }),
            compressed: (most > basis_with_slack(max_rank, chunk)).then_some(max_rank),
        }
    }
}

impl Learner for ExplicitModel {
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        self.learn_with(x, labels, &mut drop)
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        if let Some(classifier) = &self.classifier {
            return Ok(classifier.clone());
        }
        let solution = filter::solve(&mut self.stats, self.config.filter, self.config.max_rank)?;
        let weights = self.stats.expand(solution.coefficients.as_ref());
        if !weights.is_all_finite() {
            return Err(Error::Overflow);
        }
        let classifier = self.classifier_of(weights, solution.facts);
        Ok(self.classifier.insert(classifier).clone())
    }

    fn spectrum(&mut self) -> Result<Option<Vec<f64>>, Error> {
        let mut values = self.stats.eigenvalues()?;
        if let (Schedule::Paper, Filter::Hard { truncation, .. }) = (self.config.schedule, self.config.filter) {
            // The directions that were cut remain as rounding noise.
            let kept = truncation.kept(&values, self.lifted.width(), self.stats.samples(), self.config.max_rank);
            values.truncate(kept);
        }
        Ok(Some(values))
    }

    fn classes(&self) -> &LabelTable {
        &self.table
    }

    fn summary(&self) -> Summary {
        Summary {
            samples: self.stats.samples(),
            classes: self.table.len(),
            width: Some(self.lifted.width()).filter(|_| lift::has_width(self.lifted.lift.name())),
            basis_rank: Some(self.stats.basis().rank()),
            ..Summary::of(self.classifier.as_ref(), |facts| Certificate::new(&self.stats, facts))
        }
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!(self.config)
    }

    fn state_bytes(&self) -> usize {
        self.stats.bytes() + self.classifier.as_ref().map_or(0, Classifier::bytes) + self.lifted.bytes()
    }

    fn expect(&mut self, stream: &StreamSizes) {
        self.stats.expect(self.plan(stream).rank);
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        self.plan(stream).peak()
    }
}
