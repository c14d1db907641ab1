//! The feature map of a model, as it is written down: a few numbers, from which P is made again.

use std::sync::{Arc, OnceLock};

use faer::{MatMut, MatRef};
use loranpac::lift::{self, ArcCosine, FeatureMap, LiftSpec, Projection};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::Error;

/// Rows of P that enter the digest.
const PROBES: usize = 16;
/// Width and features of the largest lift that a model may have.
const LARGEST: (usize, usize) = (10_000_000, 1_000_000);

/// Everything that decides a feature map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiftRecord {
    /// Name in the list of lifts.
    pub name: String,
    /// Features that go in, d.
    pub dim: usize,
    /// Features that come out, E.
    pub width: usize,
    /// Seed of the projection.
    pub seed: u64,
    /// Inverse width of the kernel behind Fourier features.
    pub gamma: f64,
}

impl LiftRecord {
    /// The record of a map by name; some maps choose their own width.
    pub fn new(name: &str, dim: usize, width: usize, seed: u64, gamma: f64) -> Result<LiftRecord, Error> {
        let mut record = LiftRecord { name: name.to_owned(), dim, width, seed, gamma };
        record.check_size().map_err(Error::Refused)?;
        let map = record.build(false)?;
        if map.is_infinite() {
            return Ok(LiftRecord::infinite(dim));
        }
        record.width = map.width();
        Ok(record)
    }

    /// The limit of random ReLU features; its width is written as 0.
    pub fn infinite(dim: usize) -> LiftRecord {
        LiftRecord { name: ArcCosine::NAME.to_owned(), dim, width: 0, seed: 0, gamma: lift::DEFAULT_GAMMA }
    }

    /// Whether a model may have a lift of this size.
    pub(crate) fn check_size(&self) -> Result<(), String> {
        let (width, dim) = LARGEST;
        if self.width > width || self.dim > dim {
            return Err(format!(
                "a lift from {} features to width {} is too large: at most {dim} features and a width of {width} are possible",
                self.dim, self.width
            ));
        }
        Ok(())
    }

    /// What the engine needs to make the map; `keep` holds P in memory.
    pub fn spec(&self, keep: bool) -> LiftSpec {
        LiftSpec { seed: self.seed, keep, gamma: self.gamma, ..LiftSpec::new(self.dim, self.width) }
    }

    /// Whether there are infinitely many lifted features.
    pub fn is_infinite(&self) -> bool {
        self.name == ArcCosine::NAME
    }

    /// Makes the map; `keep` holds P in memory.
    pub fn build(&self, keep: bool) -> Result<Arc<dyn FeatureMap>, Error> {
        Ok(lift::build(&self.name, self.spec(keep))?)
    }

    /// Makes a map whose P is made when it is first used: a model opens without it.
    pub(crate) fn build_lazily(&self) -> Result<Arc<dyn FeatureMap>, Error> {
        Ok(Arc::new(Lazy { record: self.clone(), small: self.build(false)?, kept: OnceLock::new() }))
    }

    /// A digest of the parameters and of the first rows of P: two models whose digests agree may be merged.
    pub fn digest(&self) -> String {
        let LiftRecord { name, dim, width, seed, gamma } = self;
        let mut hash = Sha256::new();
        hash.update(format!("{name}\n{dim}\n{width}\n{seed}\n{}\n", gamma.to_bits()));
        let rows = PROBES.min(*width);
        let mut scratch = Vec::new();
        let projection = Projection::from_seed(rows, *dim, *seed, false);
        for row in 0..rows {
            projection.rows(row, 1, &mut scratch).iter().for_each(|value| hash.update(value.to_le_bytes()));
        }
        hex(&hash.finalize())
    }
}

/// A map that is made when it is first used.
struct Lazy {
    record: LiftRecord,
    /// The same without P in memory.
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
        // What could be made without P can be made with it.
        self.kept.get_or_init(|| self.record.build(true).unwrap_or_else(|_| self.small.clone())).lift(x, h);
    }
    fn bytes(&self) -> usize {
        self.kept.get().map_or(0, |kept| kept.bytes())
    }
    fn is_infinite(&self) -> bool {
        self.small.is_infinite()
    }
    fn fingerprint(&self) -> Vec<f32> {
        self.small.fingerprint()
    }
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
