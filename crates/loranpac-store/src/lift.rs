//! The stored form of a feature map: a few numbers, from which P is generated.

use std::sync::{Arc, OnceLock};

use faer::{MatMut, MatRef};
use loranpac::lift::{self, ArcCosine, FeatureMap, LiftSpec, Operation, Projection};
use loranpac::{FeatureSpace, Width};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::Error;

/// Number of rows of P that enter the digest.
const PROBES: usize = 16;
/// Maximum width and number of features of a lift.
const LARGEST: (usize, usize) = (10_000_000, 1_000_000);

/// The parameters of a feature map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct LiftRecord {
    /// Name in the list of lifts.
    pub name: String,
    /// Number of input features, d.
    pub dim: usize,
    /// Number of lifted features, E.
    pub width: Width,
    /// Seed of the projection.
    pub seed: u64,
    /// Inverse width of the kernel behind Fourier features.
    pub gamma: f64,
}

/// The form in files: the limit of random ReLU features has its own name, and width 0.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    name: String,
    dim: usize,
    width: usize,
    seed: u64,
    gamma: f64,
}

/// The name of the limit of random ReLU features in files.
const LIMIT: &str = "arc-cosine";

impl From<LiftRecord> for Stored {
    fn from(record: LiftRecord) -> Self {
        let LiftRecord { name, dim, width, seed, gamma } = record;
        match width {
            Width::Finite(width) => Stored { name, dim, width, seed, gamma },
            Width::Infinite => Stored { name: LIMIT.to_owned(), dim, width: 0, seed, gamma },
        }
    }
}

impl TryFrom<Stored> for LiftRecord {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        let Stored { name, dim, width, seed, gamma } = stored;
        match (name.as_str(), width) {
            (LIMIT, 0) => {
                Ok(LiftRecord { name: ArcCosine::LIMIT_OF.to_owned(), dim, width: Width::Infinite, seed, gamma })
            }
            (LIMIT, _) => Err(format!("lift {LIMIT} has infinite width, not {width}")),
            _ => Ok(LiftRecord { name, dim, width: Width::Finite(width), seed, gamma }),
        }
    }
}

impl LiftRecord {
    /// Creates the record of a lift by name; some lifts have a fixed width.
    pub fn new(name: &str, dim: usize, width: Width, seed: u64, gamma: f64) -> Result<LiftRecord, Error> {
        if width == Width::Infinite {
            FeatureSpace::build(name, width, LiftSpec::new(dim, 0))?;
            return Ok(LiftRecord::infinite(dim));
        }
        let mut record = LiftRecord { name: name.to_owned(), dim, width, seed, gamma };
        record.check_size()?;
        record.width = record.build(false)?.width();
        Ok(record)
    }

    /// Creates the record of the limit of random ReLU features.
    pub fn infinite(dim: usize) -> LiftRecord {
        let (name, width) = (ArcCosine::LIMIT_OF.to_owned(), Width::Infinite);
        LiftRecord { name, dim, width, seed: 0, gamma: lift::DEFAULT_GAMMA }
    }

    /// Checks the size of the lift.
    pub(crate) fn check_size(&self) -> Result<(), Error> {
        let (most_width, most_features) = LARGEST;
        if self.computed() > most_width || self.dim > most_features {
            return Err(Error::LiftSize { dim: self.dim, width: self.width, most_features, most_width });
        }
        Ok(())
    }

    /// Returns the engine's spec of the lift; `keep` holds P in memory.
    pub fn spec(&self, keep: bool) -> LiftSpec {
        LiftSpec { seed: self.seed, keep, gamma: self.gamma, ..LiftSpec::new(self.dim, self.computed()) }
    }

    /// Returns the number of computed features: E, or 0 at infinite width.
    pub fn computed(&self) -> usize {
        self.width.finite().unwrap_or(0)
    }

    /// Creates the feature space; `keep` holds P in memory.
    pub fn build(&self, keep: bool) -> Result<FeatureSpace, Error> {
        Ok(FeatureSpace::build(&self.name, self.width, self.spec(keep))?)
    }

    /// Creates a feature space whose P is generated on first use: a model opens without it.
    pub(crate) fn build_lazily(&self) -> Result<FeatureSpace, Error> {
        match self.build(false)? {
            FeatureSpace::Explicit(small) => {
                let lazy = Lazy { record: self.clone(), small, kept: OnceLock::new() };
                Ok(FeatureSpace::from(Arc::new(lazy)))
            }
            kernel => Ok(kernel),
        }
    }

    /// Computes a digest of the parameters and of the first rows of P: models with equal digests can be merged.
    pub fn digest(&self) -> String {
        let Stored { name, dim, width, seed, gamma } = self.clone().into();
        let mut hash = Sha256::new();
        hash.update(format!("{name}\n{dim}\n{width}\n{seed}\n{}\n", gamma.to_bits()));
        let rows = PROBES.min(width);
        let mut scratch = Vec::new();
        let projection = Projection::from_seed(rows, dim, seed, false);
        for row in 0..rows {
            projection.rows(row, 1, &mut scratch).iter().for_each(|value| hash.update(value.to_le_bytes()));
        }
        hex(&hash.finalize())
    }
}

/// A map that is created on first use.
struct Lazy {
    record: LiftRecord,
    /// The same map without P in memory.
    small: Arc<dyn FeatureMap>,
    kept: OnceLock<Arc<dyn FeatureMap>>,
}

impl FeatureMap for Lazy {
    fn name(&self) -> &'static str {
        self.small.name()
    }
    fn dim(&self) -> usize {
        self.small.dim()
    }
    fn width(&self) -> usize {
        self.small.width()
    }
    fn lift(&self, x: MatRef<'_, f32>, h: MatMut<'_, f32>) {
        // The map was created without P before, so this cannot fail.
        let make = || self.record.build(true).ok().and_then(|space| space.map().cloned());
        self.kept.get_or_init(|| make().unwrap_or_else(|| self.small.clone())).lift(x, h);
    }
    fn operations(&self) -> Vec<Operation> {
        self.small.operations()
    }
    fn bytes(&self) -> usize {
        self.kept.get().map_or(0, |kept| kept.bytes())
    }
    fn fingerprint(&self) -> Vec<f32> {
        self.small.fingerprint()
    }
}

/// Formats bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
