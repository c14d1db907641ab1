//! The space in which the classifier is linear: lifted features, or their limit at infinite width.

use std::fmt;
use std::sync::Arc;

use super::{ArcCosine, FeatureMap, LiftSpec, build, find, with_limit};
use crate::error::Error;
use crate::width::Width;
use crate::words::count;

/// A feature space: either features that a map computes, or a kernel that gives their inner products.
#[derive(Clone)]
pub enum FeatureSpace {
    /// E features per sample.
    Explicit(Arc<dyn FeatureMap>),
    /// Infinitely many random ReLU features. A model in this space keeps its samples.
    Kernel(ArcCosine),
}

impl FeatureSpace {
    /// Creates a space from the name of its lift, its width and the other parameters in `spec`. Lifts without a known
    /// limit refuse an infinite width.
    pub fn build(name: &str, width: Width, spec: LiftSpec) -> Result<FeatureSpace, Error> {
        match (width, find(name)?.limit) {
            (Width::Finite(width), _) => Ok(FeatureSpace::Explicit(build(name, LiftSpec { width, ..spec })?)),
            (Width::Infinite, _) if spec.dim == 0 => Err(Error::no_features()),
            (Width::Infinite, Some(limit)) => Ok(FeatureSpace::Kernel(limit(spec.dim))),
            (Width::Infinite, None) => {
                let reason = format!("the limit of {name} is not known; that of {} is", with_limit());
                Err(Error::setting("width", "infinite", reason))
            }
        }
    }

    /// Returns the number of input features, d.
    pub fn dim(&self) -> usize {
        match self {
            FeatureSpace::Explicit(map) => map.dim(),
            FeatureSpace::Kernel(kernel) => kernel.dim(),
        }
    }

    /// Returns the number of lifted features, E.
    pub fn width(&self) -> Width {
        match self {
            FeatureSpace::Explicit(map) => Width::Finite(map.width()),
            FeatureSpace::Kernel(_) => Width::Infinite,
        }
    }

    /// Returns the name of the lift in [`super::LIFTS`].
    pub fn name(&self) -> &'static str {
        match self {
            FeatureSpace::Explicit(map) => map.name(),
            FeatureSpace::Kernel(_) => ArcCosine::LIMIT_OF,
        }
    }

    /// Returns the map, if the features can be computed.
    pub fn map(&self) -> Option<&Arc<dyn FeatureMap>> {
        match self {
            FeatureSpace::Explicit(map) => Some(map),
            FeatureSpace::Kernel(_) => None,
        }
    }

    /// Returns the bytes that the space itself holds.
    pub fn bytes(&self) -> usize {
        self.map().map_or(0, |map| map.bytes())
    }

    /// Returns whether two spaces are the same.
    pub fn is_same(&self, other: &FeatureSpace) -> bool {
        match (self, other) {
            (FeatureSpace::Kernel(a), FeatureSpace::Kernel(b)) => a.dim() == b.dim(),
            (FeatureSpace::Explicit(a), FeatureSpace::Explicit(b)) => {
                let outline = |map: &dyn FeatureMap| (map.name(), map.dim(), map.width());
                Arc::ptr_eq(a, b) || (outline(&**a) == outline(&**b) && a.fingerprint() == b.fingerprint())
            }
            _ => false,
        }
    }

    /// Refuses another space.
    pub(crate) fn require_same(&self, other: &FeatureSpace) -> Result<(), Error> {
        match self.is_same(other) {
            true => Ok(()),
            false => Err(Error::DifferentLifts { ours: self.to_string(), theirs: other.to_string() }),
        }
    }
}

impl<M: FeatureMap + 'static> From<Arc<M>> for FeatureSpace {
    fn from(map: Arc<M>) -> Self {
        FeatureSpace::Explicit(map)
    }
}

impl From<Arc<dyn FeatureMap>> for FeatureSpace {
    fn from(map: Arc<dyn FeatureMap>) -> Self {
        FeatureSpace::Explicit(map)
    }
}

impl From<ArcCosine> for FeatureSpace {
    fn from(kernel: ArcCosine) -> Self {
        FeatureSpace::Kernel(kernel)
    }
}

impl fmt::Display for FeatureSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {} to width {}", self.name(), count(self.dim(), "feature"), self.width())
    }
}
