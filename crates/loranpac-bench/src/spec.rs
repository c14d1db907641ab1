//! What decides a run, apart from the data: one plain value that is recorded, compared, and written as a command line.
//! Its fields are read and shown by the list in [`crate::settings`].

use std::collections::BTreeMap;

use loranpac::lift::{self, DEFAULT_GAMMA, LiftSpec};
use loranpac::registry::{self, Method, MethodOptions};
use loranpac::{Config, FeatureSpace, Prior, Schedule, Truncation, Width};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The default seed of the class order, the paper's.
pub const DEFAULT_SEED: u32 = 1993;

/// The width of a spec that leaves it to the plan.
pub const OPEN: Width = Width::Finite(0);

/// Everything that decides a run, apart from the data. A record without one of the fields has its default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spec {
    /// Name of the method.
    pub method: String,
    /// Its settings, by name.
    pub settings: BTreeMap<String, String>,
    /// How many directions to keep, if it is chosen.
    pub truncation: Option<Truncation>,
    /// When the spectrum is cut.
    pub schedule: Schedule,
    /// r_max, if it is chosen; see [`Spec::cap`].
    pub max_rank: Option<usize>,
    /// Feature map.
    pub lift: String,
    /// E; 0 for maps without a choice, and until [`crate::plan::Plan`] has chosen it ([`Spec::is_open`]).
    pub width: Width,
    /// Whether samples may be kept, while the width is open: the plan may then choose an infinite one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_samples: bool,
    /// Seed of the projection.
    pub lift_seed: u64,
    /// Inverse kernel width of Fourier features.
    pub gamma: f64,
    /// What is trained inside the encoder before the first task is learned, if anything: the name of a module.
    pub adapt: Option<String>,
    /// Which features are learned after adaptation.
    pub adapt_features: AdaptFeatures,
    /// Rate of the first epoch of adaptation.
    pub adapt_rate: f64,
    /// Epochs of adaptation.
    pub adapt_epochs: usize,
    /// Samples per step of adaptation.
    pub adapt_batch: usize,
    /// Scale of the cosine classifier with which modules are trained, before training.
    pub adapt_scale: f64,
    /// How samples become tasks.
    pub scenario: Scenario,
    /// Class order, as NumPy's legacy generator shuffles for this seed.
    pub seed: u32,
    /// Class order, instead of the seed's.
    pub order: Option<Order>,
    /// Training samples per class, if limited.
    pub per_class: Option<usize>,
    /// Samples of the first class over samples of the last, if classes become smaller along the order.
    pub long_tail: Option<f64>,
    /// How the scores of least-squares classifiers become decisions.
    pub prior: Prior,
    /// When the classifier is formed and evaluated.
    pub eval: When,
    /// When the error on all training samples so far is measured, with the samples.
    pub train_loss: When,
    /// When the spectrum of the Gram matrix is recorded.
    pub spectrum: When,
}

/// Which features of an adapted encoder are learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdaptFeatures {
    /// Those after adaptation.
    #[default]
    Adapted,
    /// Those before and after it, side by side.
    Both,
    /// Those before it, those after it, or both: the best for classes that adaptation has not seen ([`crate::choice`]).
    Chosen,
}

/// How the samples are divided into tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// B-q1 Inc-q2: new classes in every task.
    Class {
        /// Classes in the first task; 0 for as many as in the others.
        base: usize,
        /// Classes in each further task.
        increment: usize,
    },
    /// One task per domain; classes come back.
    Domain,
    /// Everything at once.
    Joint,
}

impl Default for Scenario {
    fn default() -> Self {
        Scenario::Class { base: 0, increment: 10 }
    }
}

/// A class order without a seed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// By label.
    Sorted,
    /// As listed.
    Labels(Vec<String>),
}

/// How often something is done in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Not at all.
    #[default]
    Never,
    /// After the last task.
    Final,
    /// After every task.
    Every,
}

impl When {
    /// Whether it is due after this task.
    pub fn due(self, last: bool) -> bool {
        self == When::Every || (self == When::Final && last)
    }
}

impl Default for Spec {
    fn default() -> Self {
        Spec::new(registry::METHODS[0].name)
    }
}

impl Spec {
    /// The defaults for a method.
    pub fn new(method: &str) -> Self {
        Spec {
            method: method.to_owned(),
            settings: BTreeMap::new(),
            truncation: None,
            schedule: Schedule::Late,
            max_rank: None,
            lift: lift::LIFTS[0].name.to_owned(),
            width: OPEN,
            keep_samples: false,
            lift_seed: 0,
            gamma: DEFAULT_GAMMA,
            adapt: None,
            adapt_features: AdaptFeatures::Adapted,
            adapt_rate: 0.01,
            adapt_epochs: 20,
            adapt_batch: 48,
            adapt_scale: 1.0,
            scenario: Scenario::default(),
            seed: DEFAULT_SEED,
            order: None,
            per_class: None,
            long_tail: None,
            prior: Prior::None,
            eval: When::Every,
            train_loss: When::Never,
            spectrum: When::Never,
        }
    }

    /// The method's entry.
    pub fn method(&self) -> Result<&'static Method, Error> {
        Ok(registry::find(&self.method)?)
    }

    /// Whether the lifted features are infinitely many.
    pub fn is_infinite(&self) -> bool {
        self.width.is_infinite()
    }

    /// Whether its width is yet to be chosen.
    pub fn is_open(&self) -> bool {
        self.width == OPEN && self.method().is_ok_and(|method| lift::has_width(method.input.lift(&self.lift)))
    }

    /// r_max: as chosen, or the default at this width.
    pub fn cap(&self) -> usize {
        self.max_rank.unwrap_or(Config::cap(self.width))
    }

    /// Features that are computed: E, or 0 at infinite width and for maps without a choice.
    pub fn computed_width(&self) -> usize {
        self.width.finite().unwrap_or(0)
    }

    /// Sets the width. Lifts whose limit is not known have no infinite width.
    pub fn widen(&mut self, width: Width) -> Result<(), String> {
        let limit = lift::find(&self.lift).map_err(|e| e.to_string())?.limit;
        if width.is_infinite() && limit.is_none() {
            return Err(format!("it is the limit of `lift` {}, and {} has none", lift::with_limit(), self.lift));
        }
        self.width = width;
        Ok(())
    }

    /// What is needed to make its feature map for d features.
    pub fn lift_spec(&self, dim: usize, keep: bool) -> LiftSpec {
        LiftSpec { seed: self.lift_seed, keep, gamma: self.gamma, ..LiftSpec::new(dim, self.computed_width()) }
    }

    /// The feature space for d features; `keep` holds P in memory.
    pub fn space(&self, dim: usize, keep: bool) -> Result<FeatureSpace, Error> {
        Ok(FeatureSpace::build(&self.lift, self.width, self.lift_spec(dim, keep))?)
    }

    /// The options of the method.
    pub fn options(&self, space: FeatureSpace) -> MethodOptions {
        MethodOptions {
            space,
            truncation: self.truncation,
            max_rank: self.cap(),
            schedule: self.schedule,
            seed: self.seed.into(),
            settings: self.settings.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }
}
