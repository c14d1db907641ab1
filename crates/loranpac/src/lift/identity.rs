//! Maps without a projection: `x` and `relu(x)`.

use std::sync::Arc;

use faer::{MatMut, MatRef};

use super::{Activation, FeatureMap, LiftEntry, Operation, Rows};

/// The features themselves, or their positive part.
#[derive(Debug, Clone)]
pub struct Identity {
    dim: usize,
    relu: bool,
}

impl Identity {
    /// Creates the map `h = x`.
    pub fn new(dim: usize) -> Self {
        Identity { dim, relu: false }
    }

    /// Creates the map `h = max(x, 0)`.
    pub fn relu(dim: usize) -> Self {
        Identity { dim, relu: true }
    }
}

impl FeatureMap for Identity {
    fn name(&self) -> &'static str {
        if self.relu { "relu" } else { "identity" }
    }
    fn dim(&self) -> usize {
        self.dim
    }
    fn width(&self) -> usize {
        self.dim
    }
    fn lift(&self, x: MatRef<'_, f32>, mut h: MatMut<'_, f32>) {
        h.copy_from(x);
        if self.relu {
            super::random::relu(h);
        }
    }
    fn operations(&self) -> Vec<Operation> {
        if self.relu { vec![Operation::Activate(Activation::Relu)] } else { Vec::new() }
    }
    fn bytes(&self) -> usize {
        0
    }
}

pub(super) const RELU: LiftEntry = LiftEntry {
    name: "relu",
    summary: "relu(x)",
    projection: Rows::None,
    limit: None,
    build: |s| Ok(Arc::new(Identity::relu(s.dim))),
};

pub(super) const IDENTITY: LiftEntry = LiftEntry {
    name: "identity",
    summary: "x itself",
    projection: Rows::None,
    limit: None,
    build: |s| Ok(Arc::new(Identity::new(s.dim))),
};
