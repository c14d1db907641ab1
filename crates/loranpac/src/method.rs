//! What an entry of the list of methods consists of, and what a method may be asked for.

use std::sync::Arc;

use crate::config::{Config, Schedule};
use crate::error::Error;
use crate::learner::Learner;
use crate::lift::{FeatureMap, FeatureSpace};
use crate::truncation::Truncation;

/// One entry of the list of methods.
pub struct Method {
    /// What users call it.
    pub name: &'static str,
    /// One line for `--help`.
    pub summary: &'static str,
    /// What it is fed.
    pub input: Input,
    /// Whether it learns a task from that task alone; otherwise it is a reference that sees everything at once.
    pub continual: bool,
    /// Whether the samples are gone once they are learned.
    pub exemplar_free: bool,
    /// Whether a truncation (share, threshold or rank) means anything to it.
    pub truncates: bool,
    /// Whether it cuts the spectrum, so that there is a schedule to choose.
    pub cuts: bool,
    /// Settings it knows: (name, meaning).
    pub settings: &'static [(&'static str, &'static str)],
    /// Whether it has a form of infinite width, which keeps samples.
    pub infinite: bool,
    /// What it cannot promise, and why. The conformance tests check everything else.
    pub exempt: &'static [(Promise, &'static str)],
    /// Makes a learner. It holds nothing of size E until it has learned something.
    pub(crate) build: Build,
    /// The settings of a [`crate::Model`], for methods that are one: these can be stored, merged and edited.
    pub(crate) config: Option<Configure>,
}

/// Makes the settings of a model from options.
pub(crate) type Configure = fn(&MethodOptions, &Settings<'_>) -> Result<Config, Error>;

/// Makes a learner from options and settings.
pub(crate) type Build = fn(&MethodOptions, &Settings<'_>) -> Result<Box<dyn Learner>, Error>;

/// Which features a method works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The features as they are.
    Plain,
    /// Features lifted by the map that the user chooses.
    Lifted,
    /// Features lifted by this map.
    LiftedBy(&'static str),
    /// The features of several layers, one after the other.
    Layers,
}

impl Input {
    /// The name of the feature map, given the user's choice.
    pub fn lift<'a>(&self, chosen: &'a str) -> &'a str {
        match self {
            Input::Plain | Input::Layers => "identity",
            Input::Lifted => chosen,
            Input::LiftedBy(name) => name,
        }
    }

    /// Whether there is a lift at all.
    pub fn lifted(&self) -> bool {
        matches!(self, Input::Lifted | Input::LiftedBy(_))
    }
}

/// What mathematics may forbid a method to promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// The order of samples inside a task does not matter.
    SampleOrder,
    /// Learning a task in two halves is the same as learning it at once.
    Halves,
    /// Rounding errors stay rounding errors, on degenerate data too.
    Stability,
}

/// What a method may be told. Methods refuse settings that they do not know.
#[derive(Clone)]
pub struct MethodOptions {
    /// The feature space; the identity for methods on plain features.
    pub space: FeatureSpace,
    /// How many directions to keep, if the user said so.
    pub truncation: Option<Truncation>,
    /// r_max.
    pub max_rank: usize,
    /// When the spectrum is cut.
    pub schedule: Schedule,
    /// Seed of whatever a method draws at random (hold-out sets, batches).
    pub seed: u64,
    /// `--set name=value`.
    pub settings: Vec<(String, String)>,
}

impl MethodOptions {
    /// The defaults for a feature space.
    pub fn new(space: impl Into<FeatureSpace>) -> Self {
        let Config { max_rank, schedule, .. } = Config::default();
        MethodOptions { space: space.into(), truncation: None, max_rank, schedule, seed: 0, settings: Vec::new() }
    }

    /// The map of lifted features, for methods that compute them.
    pub(crate) fn map(&self) -> Result<Arc<dyn FeatureMap>, Error> {
        let infinite = || Error::setting("width", "infinite", "this method computes lifted features");
        self.space.map().cloned().ok_or_else(infinite)
    }
}

impl Method {
    /// Whether it has a setting of this name.
    pub fn knows(&self, setting: &str) -> bool {
        self.settings.iter().any(|(name, _)| *name == setting)
    }

    /// The names of its settings, for messages.
    pub fn known_settings(&self) -> String {
        match self.settings {
            [] => "none".to_owned(),
            settings => settings.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
        }
    }

    /// Why it does not make a promise, if it does not.
    pub fn exemption(&self, promise: Promise) -> Option<&'static str> {
        self.exempt.iter().find(|(other, _)| *other == promise).map(|(_, reason)| *reason)
    }

    /// The settings of the [`crate::Model`] that this method is; None for methods that are not one.
    pub fn config(&self, options: &MethodOptions) -> Result<Option<Config>, Error> {
        let settings = Settings { method: self, given: &options.settings };
        settings.check()?;
        self.config.map(|config| config(options, &settings)?.validate_for(options.space.width())).transpose()
    }

    /// Makes a learner.
    pub fn build(&self, options: &MethodOptions) -> Result<Box<dyn Learner>, Error> {
        let settings = Settings { method: self, given: &options.settings };
        settings.check()?;
        if options.space.width().is_infinite() && !self.infinite {
            let reason = format!("{} computes lifted features; give it a finite width", self.name);
            return Err(Error::setting("width", "infinite", reason));
        }
        (self.build)(options, &settings)
    }
}

/// The settings that were given, read by name.
pub(crate) struct Settings<'a> {
    method: &'a Method,
    given: &'a [(String, String)],
}

impl<'a> Settings<'a> {
    /// The method that they are for.
    pub(crate) fn method(&self) -> &'a Method {
        self.method
    }

    fn check(&self) -> Result<(), Error> {
        match self.given.iter().find(|(name, _)| !self.method.knows(name)) {
            None => Ok(()),
            Some((name, _)) => Err(Error::UnknownSetting {
                method: self.method.name,
                name: name.clone(),
                known: self.method.known_settings(),
            }),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.given.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn number<N: std::str::FromStr>(&self, name: &'static str, default: N) -> Result<N, Error> {
        Ok(self.optional(name)?.unwrap_or(default))
    }

    pub(crate) fn optional<N: std::str::FromStr>(&self, name: &'static str) -> Result<Option<N>, Error> {
        let parse = |text: &str| text.parse().map_err(|_| Error::setting(name, text, "a number is expected"));
        self.get(name).map(parse).transpose()
    }

    /// A whole number of at least one.
    pub(crate) fn count(&self, name: &'static str, default: usize) -> Result<usize, Error> {
        match self.number(name, default)? {
            0 => Err(Error::setting(name, 0, "it must be at least 1")),
            count => Ok(count),
        }
    }

    /// A finite number of at least zero, if it was given.
    pub(crate) fn ridge(&self) -> Result<Option<f64>, Error> {
        match self.optional("ridge")? {
            Some(ridge) if !(ridge >= 0.0 && f64::is_finite(ridge)) => {
                Err(Error::setting("ridge", ridge, "it must be a number >= 0"))
            }
            ridge => Ok(ridge),
        }
    }
}
