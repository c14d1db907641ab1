//! Every method there is. The command line, reports and conformance tests read this list.

use std::sync::Arc;

use serde::Serialize;

use crate::error::Error;
use crate::filter::{Filter, Ridge};
use crate::learner::{Config, Learner, LoRanPac, Schedule, SimpleCil};
use crate::lift::FeatureMap;
use crate::statistics::DEFAULT_DROP;
use crate::truncation::Truncation;

/// What a method may be told. Methods refuse settings that they do not know.
#[derive(Clone)]
pub struct MethodOptions {
    /// The feature map; methods on plain features use only its dimension.
    pub lift: Arc<dyn FeatureMap>,
    /// How many directions to keep, if the user said so.
    pub truncation: Option<Truncation>,
    /// r_max.
    pub max_rank: usize,
    /// When the spectrum is cut.
    pub schedule: Schedule,
    /// `--set name=value`.
    pub settings: Vec<(String, String)>,
}

impl MethodOptions {
    /// The defaults for a feature map.
    pub fn new(lift: Arc<dyn FeatureMap>) -> Self {
        let Config { max_rank, schedule, .. } = Config::default();
        MethodOptions { lift, truncation: None, max_rank, schedule, settings: Vec::new() }
    }
}

/// Makes a configuration of the LoRanPAC family.
type Configure = fn(&MethodOptions, &Settings<'_>) -> Result<Config, Error>;

/// One entry of the list of methods.
pub struct Method {
    /// What users call it.
    pub name: &'static str,
    /// One line for `--help`.
    pub summary: &'static str,
    /// Whether it works on lifted features.
    pub lifted: bool,
    /// Whether a truncation (share, threshold or rank) means anything to it.
    pub truncates: bool,
    /// Whether it cuts the spectrum, so that there is a schedule to choose.
    pub cuts: bool,
    /// Settings it knows: (name, meaning).
    pub settings: &'static [(&'static str, &'static str)],
    /// Makes its configuration, for methods of the LoRanPAC family.
    config: Option<Configure>,
}

const RIDGE: (&str, &str) = ("ridge", "lambda, added to the eigenvalues");
const DROP: (&str, &str) = ("drop", "rounding units below which a residual adds no direction; 0 keeps all");
const CHUNK: (&str, &str) = ("chunk", "samples absorbed at a time");

/// Every method; the first is the paper's.
pub const METHODS: &[Method] = &[
    Method {
        name: "loranpac",
        summary: "the paper: truncated least squares on lifted features",
        lifted: true,
        truncates: true,
        cuts: true,
        settings: &[RIDGE, DROP, CHUNK],
        config: Some(|options, settings| {
            let ridge = settings.number("ridge", 0.0)?;
            base(
                options,
                settings,
                Filter::Hard { truncation: options.truncation.unwrap_or_default(), ridge },
                DEFAULT_DROP,
            )
        }),
    },
    Method {
        name: "loranpac-soft",
        summary: "a ridge read off the spectrum (its geometric mean) instead of a cut",
        lifted: true,
        truncates: true,
        cuts: false,
        settings: &[RIDGE, DROP, CHUNK],
        config: Some(|options, settings| {
            let ridge = match (settings.get("ridge"), options.truncation) {
                (Some(_), _) => Ridge::Fixed(settings.number("ridge", 0.0)?),
                (None, Some(truncation)) => Ridge::Eigenvalue(truncation),
                (None, None) => Ridge::GeometricMean,
            };
            base(options, settings, Filter::Soft(ridge), DEFAULT_DROP)
        }),
    },
    Method {
        name: "min-norm",
        summary: "no truncation (zeta = 0), null directions kept: what the paper shows to be unstable",
        lifted: true,
        truncates: false,
        cuts: true,
        settings: &[DROP, CHUNK],
        config: Some(|options, settings| {
            base(options, settings, Filter::Hard { truncation: Truncation::Fraction(0.0), ridge: 0.0 }, 0.0)
        }),
    },
    Method {
        name: "simplecil",
        summary: "nearest class mean by cosine similarity, on plain features",
        lifted: false,
        truncates: false,
        cuts: false,
        settings: &[],
        config: None,
    },
];

/// The entry of a method.
pub fn find(name: &str) -> Result<&'static Method, Error> {
    METHODS.iter().find(|method| method.name == name).ok_or_else(|| Error::UnknownMethod {
        name: name.to_owned(),
        known: METHODS.iter().map(|method| method.name).collect::<Vec<_>>().join(", "),
    })
}

/// What a built method was told, for records.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum MethodConfig {
    /// The LoRanPAC family.
    LoRanPac(Config),
    /// Nothing to choose.
    Plain {},
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

    /// The configuration that these options give, checked.
    pub fn configure(&self, options: &MethodOptions) -> Result<MethodConfig, Error> {
        let settings = Settings { method: self, given: &options.settings };
        settings.check()?;
        match self.config {
            Some(config) => Ok(MethodConfig::LoRanPac(config(options, &settings)?.validate()?)),
            None => Ok(MethodConfig::Plain {}),
        }
    }

    /// Makes a learner.
    pub fn build(&self, options: &MethodOptions) -> Result<Box<dyn Learner>, Error> {
        Ok(match self.configure(options)? {
            MethodConfig::LoRanPac(config) => Box::new(LoRanPac::new(options.lift.clone(), config)?),
            MethodConfig::Plain {} => Box::new(SimpleCil::new(options.lift.dim())),
        })
    }
}

/// The configuration that all of the family share.
fn base(options: &MethodOptions, settings: &Settings<'_>, filter: Filter, drop: f64) -> Result<Config, Error> {
    let defaults = Config::default();
    Ok(Config {
        filter,
        max_rank: options.max_rank,
        schedule: options.schedule,
        drop: settings.number("drop", drop)?,
        chunk: settings.number("chunk", defaults.chunk)?,
    })
}

/// The settings that were given, read by name.
struct Settings<'a> {
    method: &'a Method,
    given: &'a [(String, String)],
}

impl Settings<'_> {
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

    fn get(&self, name: &str) -> Option<&str> {
        self.given.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    fn number<N: std::str::FromStr>(&self, name: &'static str, default: N) -> Result<N, Error> {
        match self.get(name) {
            None => Ok(default),
            Some(text) => text.parse().map_err(|_| Error::setting(name, text, "a number is expected")),
        }
    }
}
