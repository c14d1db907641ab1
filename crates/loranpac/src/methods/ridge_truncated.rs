//! RanPAC with truncation (the paper's Figure ranpac-unstable b): `W = J U (Sigma^2 + lambda I)^-1 U'`.
//!
//! The engine of [`ExplicitModel`] with the hard filter, and RanPAC's choice of lambda on top.

use std::sync::Arc;

use faer::prelude::Reborrow;

use super::ExplicitModel;
use super::family::{CHUNK_SIZE, DROP, configure};
use super::holdout;
use super::lifted::{Lifted, indices};
use crate::classifier::Classifier;
use crate::config::Config;
use crate::error::Error;
use crate::features::Features;
use crate::filter::Filter;
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary, check_task};
use crate::lift::FeatureMap;
use crate::method::{Input, Method};
use crate::statistics::DEFAULT_DROP;

/// Truncated ridge regression with lambda chosen by hold-out at every task.
pub struct RidgeTruncated {
    inner: ExplicitModel,
    lifted: Lifted,
    config: Config,
    seed: u64,
    tasks: u64,
    ridge: Option<f64>,
}

impl RidgeTruncated {
    /// Creates a model; the ridge in `config` is replaced at every task.
    pub fn new(lift: Arc<dyn FeatureMap>, config: Config, seed: u64) -> Result<Self, Error> {
        let inner = ExplicitModel::new(lift.clone(), config)?;
        Ok(RidgeTruncated { inner, lifted: Lifted::new(lift), config, seed, tasks: 0, ridge: None })
    }
}

impl Learner for RidgeTruncated {
    /// Learns a task. It is lifted twice: once as a whole for lambda, and once in chunks by the engine.
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        check_task(x, labels, self.lifted.lift.dim())?;
        let classes = indices(&mut LabelTable::default(), labels);
        let ridge = holdout::choose(self.lifted.lift(x).rb(), &classes, self.seed, self.tasks, self.ridge);
        self.lifted.wipe(0);
        let outcome = self.inner.learn(x, labels);
        self.inner.set_ridge(ridge);
        self.ridge = Some(ridge);
        self.tasks += 1;
        outcome
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        self.inner.classifier()
    }

    fn spectrum(&mut self) -> Result<Option<Vec<f64>>, Error> {
        self.inner.spectrum()
    }

    fn classes(&self) -> &LabelTable {
        self.inner.classes()
    }

    fn summary(&self) -> Summary {
        self.inner.summary()
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!({ "engine": self.config, "ridge": "by hold-out", "seed": self.seed })
    }

    fn state_bytes(&self) -> usize {
        self.inner.state_bytes() + self.lifted.bytes()
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        self.inner.peak_bytes(stream).saturating_add(holdout::peak_bytes(self.lifted.width(), stream))
    }
}

/// The registry entry. With a fixed ridge it is the engine itself.
pub(crate) const RIDGE_TRUNCATED: Method = Method {
    name: "ridge-truncated",
    summary: "RanPAC with truncation: a cut and a ridge, lambda by hold-out at every task",
    input: Input::Lifted,
    continual: true,
    exemplar_free: true,
    truncates: true,
    cuts: true,
    settings: &[("ridge", "lambda, instead of a choice by hold-out at every task"), DROP, CHUNK_SIZE],
    exempt: holdout::EXEMPT,
    infinite: false,
    config: None,
    build: |options, settings| {
        let fixed = settings.ridge()?;
        let truncation = options.truncation.unwrap_or_default();
        let filter = Filter::Hard { truncation, ridge: fixed.unwrap_or(0.0) };
        let config = configure(options, settings, filter, DEFAULT_DROP)?;
        Ok(match fixed {
            Some(_) => Box::new(ExplicitModel::new(options.map()?, config)?),
            None => Box::new(RidgeTruncated::new(options.map()?, config, options.seed)?),
        })
    },
};
