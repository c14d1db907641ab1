//! The settings of LoRanPAC, apart from its feature space.

use serde::{Deserialize, Serialize};

use crate::classifier::CHUNK;
use crate::error::Error;
use crate::features::Features;
use crate::filter::{Filter, Ridge};
use crate::statistics::DEFAULT_DROP;
use crate::width::Width;

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

/// The settings of the learner, apart from its lift.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Hard (the paper) or soft.
    pub filter: Filter,
    /// r_max: the maximum number of directions of a classifier. Between compressions the basis itself may exceed it, by
    /// six tenths or less (see [`crate::plan::basis_with_slack`]). At infinite width, the number of kept samples.
    /// [`Config::cap`] is the default.
    pub max_rank: usize,
    /// When the spectrum is cut.
    pub schedule: Schedule,
    /// Residuals below this many rounding units of a sample's length add no direction; 0 keeps all of them.
    pub drop: f64,
    /// The maximum number of samples that are lifted and absorbed at a time; larger tasks are divided evenly.
    pub chunk: usize,
    /// Whether kept samples are stored in half precision (infinite width).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub half: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            filter: Filter::default(),
            max_rank: Config::cap(Width::Finite(0)),
            schedule: Schedule::default(),
            drop: DEFAULT_DROP,
            chunk: CHUNK,
            half: false,
        }
    }
}

impl Config {
    /// The default of r_max at this width. Samples of infinite width are not limited: what memory does not hold is
    /// refused before it is learned.
    pub const fn cap(width: Width) -> usize {
        match width {
            Width::Finite(_) => 10_000,
            Width::Infinite => 1_000_000_000,
        }
    }

    /// Checks that the settings are valid.
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
    /// Checks that the settings are valid at this width.
    pub(crate) fn validate_for(self, width: Width) -> Result<Self, Error> {
        let config = self.validate()?;
        let infinite = width.is_infinite();
        if config.schedule == Schedule::Paper && infinite {
            let reason = "the paper schedule cuts computed features; use the late schedule at infinite width";
            return Err(Error::setting("schedule", "paper", reason));
        }
        if config.half && !infinite {
            return Err(Error::setting("samples", "f16", "samples are kept only with `width` infinite"));
        }
        if config.filter == Filter::Soft(Ridge::LeaveOneOut) && !infinite {
            let reason = "leaving samples out needs samples, which are kept only with `width` infinite";
            return Err(Error::setting("ridge", "loo", reason));
        }
        Ok(config)
    }

    /// Checks that samples can be stored with these settings: half precision holds numbers up to 65,504.
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
