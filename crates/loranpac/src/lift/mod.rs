//! Feature maps: from embeddings X (`d x n`) to lifted features H (`E x n`).
//!
//! A new map is one file with a type that implements [`FeatureMap`], and one line in [`LIFTS`].

mod identity;
mod projection;
mod random;

use std::sync::Arc;

use faer::{MatMut, MatRef};

pub use identity::Identity;
pub use projection::Projection;
pub use random::Random;

use crate::error::Error;

/// A fixed map of features, the same for every task.
pub trait FeatureMap: Send + Sync {
    /// Name in [`LIFTS`].
    fn name(&self) -> &'static str;
    /// Features that go in, d.
    fn dim(&self) -> usize;
    /// Features that come out, E.
    fn width(&self) -> usize;
    /// Writes the lifted columns of `x` (`d x n`) into `h` (`E x n`), in parallel. Needs no memory of size E.
    fn lift(&self, x: MatRef<'_, f32>, h: MatMut<'_, f32>);
    /// Bytes that the map itself holds.
    fn bytes(&self) -> usize;
}

/// What is needed to make any of the maps.
#[derive(Debug, Clone)]
pub struct LiftSpec {
    /// Features that go in, d.
    pub dim: usize,
    /// Features that come out, E, where the map has a choice.
    pub width: usize,
    /// Seed of the projection.
    pub seed: u64,
    /// Keep P in memory (fast), or make its rows again for every batch (small).
    pub keep: bool,
    /// A projection from elsewhere, `E x d` in C order, instead of the seeded one.
    pub projection: Option<Vec<f32>>,
}

/// One entry of the list of maps.
pub struct LiftEntry {
    /// What users call it.
    pub name: &'static str,
    /// One line for `--help`.
    pub summary: &'static str,
    /// Whether it has a projection, and with it a width to choose.
    pub projects: bool,
    /// Makes it.
    pub build: fn(LiftSpec) -> Result<Arc<dyn FeatureMap>, Error>,
}

/// Every feature map there is; the first is the default.
pub const LIFTS: &[LiftEntry] = &[
    LiftEntry {
        name: "relu-random",
        summary: "relu(P x), the paper's random ReLU features",
        projects: true,
        build: |s| Random::build(s, true),
    },
    LiftEntry {
        name: "random",
        summary: "P x, a random projection",
        projects: true,
        build: |s| Random::build(s, false),
    },
    LiftEntry { name: "relu", summary: "relu(x)", projects: false, build: |s| Ok(Arc::new(Identity::relu(s.dim))) },
    LiftEntry { name: "identity", summary: "x itself", projects: false, build: |s| Ok(Arc::new(Identity::new(s.dim))) },
];

/// The entry of a map.
pub fn find(name: &str) -> Result<&'static LiftEntry, Error> {
    LIFTS.iter().find(|lift| lift.name == name).ok_or_else(|| {
        let known = LIFTS.iter().map(|lift| lift.name).collect::<Vec<_>>().join(", ");
        Error::setting("lift", name, format!("the lifts are {known}"))
    })
}

/// Makes a map by name.
pub fn build(name: &str, spec: LiftSpec) -> Result<Arc<dyn FeatureMap>, Error> {
    if spec.dim == 0 {
        return Err(Error::setting("dim", 0, "samples need at least one feature"));
    }
    (find(name)?.build)(spec)
}
