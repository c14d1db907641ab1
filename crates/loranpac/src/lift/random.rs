//! Random features: `P x`, the paper's `relu(P x)` (equation def-H), and `sigmoid(P x)`.

use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::prelude::ReborrowMut;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::{Activation, ArcCosine, FeatureMap, LiftEntry, LiftSpec, Operation, Projection, Rows};
use crate::error::Error;

/// Rows of H that one thread computes at a time: the strip stays in its cache for the activation.
const STRIP: usize = 512;
/// Rows of P that distinguish maps.
const FINGERPRINT: usize = 16;

/// `h = a(P x)` for an activation a. Cost: `2 E d n` flops.
#[derive(Debug, Clone)]
pub struct Random {
    projection: Projection,
    activation: Activation,
}

impl Random {
    /// Creates random features from a projection.
    pub fn new(projection: Projection, activation: Activation) -> Self {
        Random { projection, activation }
    }

    pub(super) fn build(spec: LiftSpec, activation: Activation) -> Result<Arc<dyn FeatureMap>, Error> {
        let width = spec.width;
        Ok(Arc::new(Random::new(Projection::for_lift(spec, width)?, activation)))
    }
}

impl FeatureMap for Random {
    fn name(&self) -> &'static str {
        match self.activation {
            Activation::Linear => "random",
            Activation::Relu => "relu-random",
            Activation::Sigmoid => "sigmoid-random",
        }
    }
    fn dim(&self) -> usize {
        self.projection.dim()
    }
    fn width(&self) -> usize {
        self.projection.width()
    }
    fn lift(&self, x: MatRef<'_, f32>, h: MatMut<'_, f32>) {
        project(&self.projection, 1.0, x, h, |strip| match self.activation {
            Activation::Linear => {}
            Activation::Relu => relu(strip),
            Activation::Sigmoid => map(strip, |v| 1.0 / (1.0 + (-v).exp())),
        });
    }
    fn operations(&self) -> Vec<Operation> {
        let project = Operation::Project { scale: 1.0 };
        match self.activation {
            Activation::Linear => vec![project],
            activation => vec![project, Operation::Activate(activation)],
        }
    }
    fn bytes(&self) -> usize {
        self.projection.bytes()
    }
    /// Returns the first rows of P: lifting a sample would generate all of P if it is not kept.
    fn fingerprint(&self) -> Vec<f32> {
        let mut scratch = Vec::new();
        self.projection.rows(0, self.width().min(FINGERPRINT), &mut scratch).to_vec()
    }
}

/// Computes `h <- a(scale P x)` strip by strip, in parallel; `activate` is a.
pub(super) fn project(
    projection: &Projection,
    scale: f32,
    x: MatRef<'_, f32>,
    h: MatMut<'_, f32>,
    activate: impl Fn(MatMut<'_, f32>) + Sync,
) {
    assert_eq!((x.nrows(), h.nrows(), x.ncols()), (projection.dim(), projection.width(), h.ncols()));
    h.par_row_chunks_mut(STRIP).enumerate().for_each_init(Vec::new, |scratch, (strip, mut h)| {
        let rows = projection.rows(strip * STRIP, h.nrows(), scratch);
        let p = MatRef::from_row_major_slice(rows, h.nrows(), projection.dim());
        matmul(h.rb_mut(), Accum::Replace, p, x, scale, Par::Seq);
        activate(h);
    });
}

/// Computes `h <- max(h, 0)`.
pub(super) fn relu(h: MatMut<'_, f32>) {
    map(h, |v| v.max(0.0));
}

/// Computes `h <- f(h)`, entry by entry.
pub(super) fn map(h: MatMut<'_, f32>, f: impl Fn(f32) -> f32) {
    for column in h.col_iter_mut() {
        match column.try_as_col_major_mut() {
            Some(column) => column.as_slice_mut().iter_mut().for_each(|v| *v = f(*v)),
            None => unreachable!("lifted features are stored by column"),
        }
    }
}

pub(super) const RELU_RANDOM: LiftEntry = LiftEntry {
    name: ArcCosine::LIMIT_OF,
    summary: "relu(P x), the paper's random ReLU features",
    projection: Rows::Width,
    limit: Some(ArcCosine::new),
    build: |s| Random::build(s, Activation::Relu),
};

pub(super) const RANDOM: LiftEntry = LiftEntry {
    name: "random",
    summary: "P x, a random projection",
    projection: Rows::Width,
    limit: None,
    build: |s| Random::build(s, Activation::Linear),
};

pub(super) const SIGMOID_RANDOM: LiftEntry = LiftEntry {
    name: "sigmoid-random",
    summary: "sigmoid(P x), Schmidt's network",
    projection: Rows::Width,
    limit: None,
    build: |s| Random::build(s, Activation::Sigmoid),
};

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;

    #[test]
    fn the_sigmoid_is_the_logistic_function() {
        let lift = Random::new(Projection::from_rows(3, 1, vec![1.0, -2.0, 0.0]).unwrap(), Activation::Sigmoid);
        let mut h = Mat::zeros(3, 1);
        lift.lift(Mat::from_fn(1, 1, |_, _| 1.0f32).as_ref(), h.as_mut());
        for (found, expected) in h.col(0).iter().zip([0.731_058_6f32, 0.119_202_92, 0.5]) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }

    #[test]
    fn relu_of_the_product_in_any_chunking_kept_or_regenerated() {
        let (width, dim, n) = (1100, 7, 5);
        let kept = Random::new(Projection::from_seed(width, dim, 3, true), Activation::Relu);
        let lazy = Random::new(Projection::from_seed(width, dim, 3, false), Activation::Relu);
        let x = Mat::<f32>::from_fn(dim, n, |i, j| ((i * 5 + j * 3) % 7) as f32 - 3.0);
        let mut h = Mat::zeros(width, n);
        kept.lift(x.as_ref(), h.as_mut());
        let mut again = Mat::zeros(width, n);
        lazy.lift(x.as_ref(), again.as_mut());
        assert_eq!(h, again);
        let mut scratch = Vec::new();
        let p = kept.projection.rows(0, width, &mut scratch);
        for i in [0, 511, 512, 1099] {
            for j in 0..n {
                let dot: f64 = (0..dim).map(|k| p[i * dim + k] as f64 * x[(k, j)] as f64).sum();
                assert!((h[(i, j)] as f64 - dot.max(0.0)).abs() < 1e-5, "({i}, {j})");
            }
        }
    }
}
