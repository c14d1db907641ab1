//! The entries of the list of methods, and the options of methods.

use std::sync::Arc;

use crate::config::{Config, Schedule};
use crate::error::Error;
use crate::learner::Learner;
use crate::lift::{FeatureMap, FeatureSpace};
use crate::truncation::Truncation;

/// One entry of the list of methods.
pub struct Method {
    /// Its name for users.
    pub name: &'static str,
    /// One line for `--help`.
    pub summary: &'static str,
    /// The features that it works on.
    pub input: Input,
    /// Whether it learns a task from that task alone; otherwise it is a reference that is trained on everything at
    /// once.
    pub continual: bool,
    /// Whether it keeps no samples after learning.
    pub exemplar_free: bool,
    /// Whether a truncation (share, threshold or rank) applies to it.
    pub truncates: bool,
    /// Whether it cuts the spectrum, so that there is a schedule to choose.
    pub cuts: bool,
    /// Its settings: (name, meaning).
    pub settings: &'static [(&'static str, &'static str)],
    /// Whether it has a form of infinite width, which keeps samples.
    pub infinite: bool,
    /// The promises that it cannot make, and why. The conformance tests check all others.
    pub exempt: &'static [(Promise, &'static str)],
    /// The constructor. A learner holds nothing of size E until it has learned something.
    pub(crate) build: Build,
    /// The settings of a [`crate::Model`], for methods that are one: these can be stored, merged and edited.
    pub(crate) config: Option<Configure>,
}

/// A constructor of a model's settings from options.
pub(crate) type Configure = fn(&MethodOptions, &Settings<'_>) -> Result<Config, Error>;

/// A constructor of a learner from options and settings.
pub(crate) type Build = fn(&MethodOptions, &Settings<'_>) -> Result<Box<dyn Learner>, Error>;

/// Which features a method works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The unmodified features.
    Plain,
    /// Features lifted by the map that the user chooses.
    Lifted,
    /// Features lifted by this map.
    LiftedBy(&'static str),
    /// The features of several layers, one after the other.
    Layers,
    /// Features before and after the encoder was adapted to the first task, side by side.
    Adapted,
    /// Features by the encoder as it was adapted to each task, side by side.
    Subspaces,
    /// Images or texts, and an encoder that is trained with them: the learner is not one of this crate.
    Raw,
}

impl Input {
    /// Returns the name of the feature map, given the user's choice.
    pub fn lift<'a>(&self, chosen: &'a str) -> &'a str {
        match self {
            Input::Plain | Input::Layers | Input::Adapted | Input::Subspaces | Input::Raw => "identity",
            Input::Lifted => chosen,
            Input::LiftedBy(name) => name,
        }
    }

    /// Returns whether the encoder is changed, so that images or texts are needed.
    pub fn adapts(&self) -> bool {
        matches!(self, Input::Adapted | Input::Subspaces | Input::Raw)
    }

    /// Returns whether there is a lift.
    pub fn lifted(&self) -> bool {
        matches!(self, Input::Lifted | Input::LiftedBy(_))
    }
}

/// Properties that some methods cannot have for mathematical reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// The order of samples inside a task does not matter.
    SampleOrder,
    /// Learning a task in two halves is the same as learning it at once.
    Halves,
    /// Rounding errors stay rounding errors, on degenerate data too.
    Stability,
}

/// The options of a method. Methods refuse settings that they do not have.
#[derive(Clone)]
pub struct MethodOptions {
    /// The feature space; the identity for methods on plain features.
    pub space: FeatureSpace,
    /// The truncation, if the user chose one.
    pub truncation: Option<Truncation>,
    /// r_max.
    pub max_rank: usize,
    /// When the spectrum is cut.
    pub schedule: Schedule,
    /// Seed of all random choices of a method (hold-out sets, batches).
    pub seed: u64,
    /// Settings of the method as (name, value).
    pub settings: Vec<(String, String)>,
}

impl MethodOptions {
    /// Creates the defaults for a feature space.
    pub fn new(space: impl Into<FeatureSpace>) -> Self {
        let (space, schedule) = (space.into(), Config::default().schedule);
        let max_rank = Config::cap(space.width());
        MethodOptions { space, truncation: None, max_rank, schedule, seed: 0, settings: Vec::new() }
    }

    /// Returns the map of lifted features, for methods that compute them.
    pub(crate) fn map(&self) -> Result<Arc<dyn FeatureMap>, Error> {
        let infinite = || Error::setting("width", "infinite", "this method computes lifted features");
        self.space.map().cloned().ok_or_else(infinite)
    }
}

impl Method {
    /// Creates the entry of a method on images or texts that another crate runs.
    pub const fn raw(
        name: &'static str,
        summary: &'static str,
        settings: &'static [(&'static str, &'static str)],
        exempt: &'static [(Promise, &'static str)],
    ) -> Method {
        Method {
            name,
            summary,
            input: Input::Raw,
            continual: true,
            exemplar_free: true,
            truncates: false,
            cuts: false,
            settings,
            infinite: false,
            exempt,
            build: |_, settings| {
                let name = settings.method().name;
                Err(Error::setting("method", name, "it learns from images or texts, not from features"))
            },
            config: None,
        }
    }

    /// Returns whether it has a setting of this name.
    pub fn knows(&self, setting: &str) -> bool {
        self.settings.iter().any(|(name, _)| *name == setting)
    }

    /// Returns the names of its settings, for messages.
    pub fn known_settings(&self) -> String {
        match self.settings {
            [] => "none".to_owned(),
            settings => settings.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
        }
    }

    /// Returns why it does not make a promise, if it does not.
    pub fn exemption(&self, promise: Promise) -> Option<&'static str> {
        self.exempt.iter().find(|(other, _)| *other == promise).map(|(_, reason)| *reason)
    }

    /// Returns the settings of the [`crate::Model`] that implements this method; None for methods without one.
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
    /// Returns the method that they are for.
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

    /// Parses a whole number of at least one.
    pub(crate) fn count(&self, name: &'static str, default: usize) -> Result<usize, Error> {
        match self.number(name, default)? {
            0 => Err(Error::setting(name, 0, "it must be at least 1")),
            count => Ok(count),
        }
    }

    /// Parses a finite number of at least zero, if it was given.
    pub(crate) fn ridge(&self) -> Result<Option<f64>, Error> {
        match self.optional("ridge")? {
            Some(ridge) if !(ridge >= 0.0 && f64::is_finite(ridge)) => {
                Err(Error::setting("ridge", ridge, "it must be a number >= 0"))
            }
            ridge => Ok(ridge),
        }
    }
}
