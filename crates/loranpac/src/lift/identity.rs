//! Maps without a projection: `x` and `relu(x)`.

use faer::{MatMut, MatRef};

use super::{Activation, FeatureMap, Operation};

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
