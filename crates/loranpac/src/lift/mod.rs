//! Feature maps: from embeddings X (`d x n`) to lifted features H (`E x n`).
//!
//! A new map is one file with a type that implements [`FeatureMap`], and one line in [`LIFTS`].

mod absolute;
mod arc_cosine;
#[cfg(test)]
mod dummy;
mod fourier;
mod identity;
mod operation;
mod projection;
mod random;
mod shapes;
mod space;
mod stacked;

use std::sync::Arc;

use faer::{MatMut, MatRef};

pub use absolute::Absolute;
pub use arc_cosine::ArcCosine;
pub(crate) use arc_cosine::Polar;
pub use fourier::Fourier;
pub use identity::Identity;
pub use operation::{Activation, Operation};
pub use projection::Projection;
pub use random::Random;
pub use space::FeatureSpace;
pub use stacked::Stacked;

use crate::error::Error;
use crate::features::Features;

/// A fixed map of features, the same for every task.
pub trait FeatureMap: Send + Sync {
    /// Returns the name in [`LIFTS`].
    fn name(&self) -> &'static str;
    /// Returns the number of input features, d.
    fn dim(&self) -> usize;
    /// Returns the number of lifted features, E.
    fn width(&self) -> usize;
    /// Writes the lifted columns of `x` (`d x n`) into `h` (`E x n`), in parallel. Needs no memory of size E.
    fn lift(&self, x: MatRef<'_, f32>, h: MatMut<'_, f32>);
    /// Returns the operations that lead from a sample to its lifted features.
    fn operations(&self) -> Vec<Operation>;
    /// Returns the bytes that the map itself holds.
    fn bytes(&self) -> usize;
    /// Returns numbers that distinguish maps of the same name and size: by default, a lifted sample.
    fn fingerprint(&self) -> Vec<f32> {
        let probe: Vec<f32> = (0..self.dim()).map(|i| 1.0 - 2.0 * (i % 2) as f32 + i as f32 / 64.0).collect();
        Features::new(&probe, self.dim()).map_or(Vec::new(), |x| lifted(self, x))
    }
}

/// Returns lifted samples, one after the other.
pub fn lifted<M: FeatureMap + ?Sized>(map: &M, x: Features<'_>) -> Vec<f32> {
    let mut h = vec![0.0; map.width() * x.len()];
    map.lift(x.as_matrix(), MatMut::from_column_major_slice_mut(&mut h, map.width(), x.len()));
    h
}

/// The parameters of any of the maps.
#[derive(Debug, Clone)]
pub struct LiftSpec {
    /// Number of input features, d.
    pub dim: usize,
    /// Number of lifted features, E, for maps with a choice of width.
    pub width: usize,
    /// Seed of the projection.
    pub seed: u64,
    /// Keep P in memory (fast), or regenerate its rows for every batch (small).
    pub keep: bool,
    /// An external projection, in C order, instead of the seeded one; see [`Rows`].
    pub projection: Option<Vec<f32>>,
    /// Fourier features approximate the kernel `exp(-gamma |x - z|^2)` of unit vectors.
    pub gamma: f64,
}

impl LiftSpec {
    /// Creates a spec with the defaults: seed 0, P in memory, [`DEFAULT_GAMMA`].
    pub fn new(dim: usize, width: usize) -> Self {
        LiftSpec { dim, width, seed: 0, keep: true, projection: None, gamma: DEFAULT_GAMMA }
    }
}

/// Inverse width of the kernel behind Fourier features: the best of 0.03 to 10, within noise, on real features of two kinds.
pub const DEFAULT_GAMMA: f64 = 0.1;

/// One entry of the list of maps.
pub struct LiftEntry {
    /// Its name for users.
    pub name: &'static str,
    /// One line for `--help`.
    pub summary: &'static str,
    /// How its projection relates to its width.
    pub projection: Rows,
    /// Its limit as E grows, if it is known.
    pub limit: Option<fn(usize) -> ArcCosine>,
    /// The constructor.
    pub build: fn(LiftSpec) -> Result<Arc<dyn FeatureMap>, Error>,
}

/// The rows of a map's projection P.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// There is no projection, and no width to choose: E = d.
    None,
    /// One for every lifted feature.
    Width,
    /// One for every lifted feature except the d features themselves, which are part of the width.
    WidthMinusDim,
    /// One for every two lifted features.
    Half,
}

impl Rows {
    /// Returns the number of rows of P for d features and a width E.
    pub fn count(self, dim: usize, width: usize) -> usize {
        match self {
            Rows::None => 0,
            Rows::Width => width,
            Rows::WidthMinusDim => width.saturating_sub(dim),
            Rows::Half => width.div_ceil(2),
        }
    }

    /// Returns the width E for a projection of `rows` rows.
    pub fn width(self, dim: usize, rows: usize) -> usize {
        match self {
            Rows::None => dim,
            Rows::Width => rows,
            Rows::WidthMinusDim => rows + dim,
            Rows::Half => 2 * rows,
        }
    }

    /// Returns whether there is a projection, with a width and a seed to choose.
    pub fn is_drawn(self) -> bool {
        self != Rows::None
    }
}

/// All feature maps; the first is the default. The entry of a map is in its own file.
pub const LIFTS: &[LiftEntry] = &[
    random::RELU_RANDOM,
    absolute::ABS_RANDOM,
    random::RANDOM,
    random::SIGMOID_RANDOM,
    stacked::RVFL,
    fourier::FOURIER,
    identity::RELU,
    identity::IDENTITY,
    #[cfg(test)]
    dummy::DUMMY,
];

/// Returns the entry of a map.
pub fn find(name: &str) -> Result<&'static LiftEntry, Error> {
    LIFTS.iter().find(|lift| lift.name == name).ok_or_else(|| {
        let known = LIFTS.iter().map(|lift| lift.name).collect::<Vec<_>>().join(", ");
        Error::setting("lift", name, format!("the lifts are {known}"))
    })
}

/// Returns whether a map is in the list and has a choice of width.
pub fn has_width(name: &str) -> bool {
    find(name).is_ok_and(|lift| lift.projection.is_drawn())
}

/// Returns the names of the maps whose limit is known.
pub fn with_limit() -> String {
    LIFTS.iter().filter(|lift| lift.limit.is_some()).map(|lift| lift.name).collect::<Vec<_>>().join(" and ")
}

/// Makes a map by name.
pub fn build(name: &str, spec: LiftSpec) -> Result<Arc<dyn FeatureMap>, Error> {
    if spec.dim == 0 {
        return Err(Error::no_features());
    }
    (find(name)?.build)(spec)
}
