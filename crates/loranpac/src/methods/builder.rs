//! A builder for models: settings with defaults, which are checked when the model is built.

use super::Model;
use crate::config::{Config, Schedule};
use crate::error::Error;
use crate::filter::{Filter, Ridge};
use crate::lift::{FeatureSpace, LIFTS, LiftSpec};
use crate::width::Width;

/// The default width of new models.
const DEFAULT_WIDTH: usize = 10_000;

/// Settings of a new model. [`Builder::build`] checks them.
///
/// ```
/// use loranpac::{Model, Width};
///
/// let wide = Model::builder(384).width(2_000).seed(7).build()?;
/// let limit = Model::builder(384).width(Width::Infinite).build()?;
/// # Ok::<(), loranpac::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Builder {
    lift: String,
    width: Width,
    spec: LiftSpec,
    max_rank: Option<usize>,
    config: Config,
}

impl Model {
    /// Creates a builder of a model for samples of `dim` features.
    pub fn builder(dim: usize) -> Builder {
        Builder::new(dim)
    }
}

impl Builder {
    pub(super) fn new(dim: usize) -> Self {
        let config = Config { filter: Filter::Soft(Ridge::GeometricMean), ..Config::default() };
        let (lift, width) = (LIFTS[0].name.to_owned(), Width::Finite(DEFAULT_WIDTH));
        Builder { lift, width, spec: LiftSpec::new(dim, DEFAULT_WIDTH), max_rank: None, config }
    }

    /// Sets the width E, 10,000 by default; a model of [`Width::Infinite`] keeps samples.
    pub fn width(self, width: impl Into<Width>) -> Self {
        Builder { width: width.into(), ..self }
    }

    /// Sets the lift, by its name in [`LIFTS`]; random ReLU features by default.
    pub fn lift(self, name: &str) -> Self {
        Builder { lift: name.to_owned(), ..self }
    }

    /// Sets the seed of the random projection, 0 by default.
    pub fn seed(self, seed: u64) -> Self {
        Builder { spec: LiftSpec { seed, ..self.spec }, ..self }
    }

    /// Sets the filter of the spectrum; by default a ridge that is the geometric mean of the spectrum.
    pub fn filter(self, filter: Filter) -> Self {
        Builder { config: Config { filter, ..self.config }, ..self }
    }

    /// Sets the number of directions to which the model is cut, 10,000 by default; at infinite width the number of
    /// samples, without a limit by default. Between cuts it keeps more ([`crate::plan::basis_with_slack`],
    /// [`crate::plan::with_slack`]).
    pub fn max_rank(self, max_rank: usize) -> Self {
        Builder { max_rank: Some(max_rank), ..self }
    }

    /// Sets the schedule of cuts: when the classifier is formed, or after every task as in the paper's Algorithm 4.
    pub fn schedule(self, schedule: Schedule) -> Self {
        Builder { config: Config { schedule, ..self.config }, ..self }
    }

    /// Creates the model, or returns an error that names the invalid setting.
    pub fn build(self) -> Result<Model, Error> {
        let max_rank = self.max_rank.unwrap_or(Config::cap(self.width));
        Model::new(FeatureSpace::build(&self.lift, self.width, self.spec)?, Config { max_rank, ..self.config })
    }
}
