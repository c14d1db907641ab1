//! The random vector functional link of Pao et al. (1992): the features themselves and random ones, `[x; relu(P x)]`.

use std::sync::Arc;

use faer::{MatMut, MatRef};

use super::{Activation, FeatureMap, LiftEntry, LiftSpec, Operation, Projection, Random, Rows};
use crate::error::Error;

/// `h = [x; relu(P x)]`: d + rows of P = E features.
#[derive(Debug, Clone)]
pub struct Stacked {
    random: Random,
}

impl Stacked {
    /// Creates the map from a projection of `E - d` rows.
    pub fn new(projection: Projection) -> Self {
        Stacked { random: Random::new(projection, Activation::Relu) }
    }

    pub(super) fn build(spec: LiftSpec) -> Result<Arc<dyn FeatureMap>, Error> {
        Ok(Arc::new(Stacked::new(Projection::beside_the_sample(spec)?)))
    }
}

impl FeatureMap for Stacked {
    fn name(&self) -> &'static str {
        "rvfl"
    }
    fn dim(&self) -> usize {
        self.random.dim()
    }
    fn width(&self) -> usize {
        self.random.dim() + self.random.width()
    }
    fn lift(&self, x: MatRef<'_, f32>, h: MatMut<'_, f32>) {
        let (mut plain, random) = h.split_at_row_mut(x.nrows());
        plain.copy_from(x);
        self.random.lift(x, random);
    }
    fn operations(&self) -> Vec<Operation> {
        let mut operations = self.random.operations();
        operations.push(Operation::PrependSample);
        operations
    }
    fn bytes(&self) -> usize {
        self.random.bytes()
    }
}

pub(super) const RVFL: LiftEntry = LiftEntry {
    name: "rvfl",
    summary: "x and relu(P x), Pao's random vector functional link",
    projection: Rows::WidthMinusDim,
    limit: None,
    build: Stacked::build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;

    #[test]
    fn the_features_come_first_and_the_random_ones_after() {
        let projection = Projection::from_seed(9, 3, 1, true);
        let stacked = Stacked::new(projection.clone());
        let x = Mat::<f32>::from_fn(3, 4, |i, j| (i + j) as f32 - 2.0);
        let mut h = Mat::<f32>::zeros(12, 4);
        stacked.lift(x.as_ref(), h.as_mut());
        let mut random = Mat::<f32>::zeros(9, 4);
        Random::new(projection, Activation::Relu).lift(x.as_ref(), random.as_mut());
        assert_eq!(h.as_ref().subrows(0, 3), x);
        assert_eq!(h.as_ref().subrows(3, 9), random);
    }
}
