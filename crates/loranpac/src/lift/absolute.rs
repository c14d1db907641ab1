//! The kernel of random ReLU features with less variance: their linear half is exact, and only the other half is random.
//!
//! ```text
//! relu(u) = (u + |u|) / 2,   h = sqrt(E) / 2 [x; |P x| / sqrt(E')],   E = d + E'
//! ```
//!
//! The products `u(x) u(z)` and `|u(x)| |u(z)|` have the means `x'z` and `E|p'x| |p'z|`, and those of u and |u| have the mean 0, so
//! that `H'H / E` has the same limit as that of `relu(P x)`, the arc-cosine kernel. At equal E the random half has d rows less.

use std::sync::Arc;

use faer::{MatMut, MatRef, Scale};

use super::random::{map, project};
use super::{ArcCosine, FeatureMap, LiftEntry, LiftSpec, Operation, Projection, Rows};
use crate::error::Error;

/// `h = sqrt(E) / 2 [x; |P x| / sqrt(E')]`: d + rows of P = E features. Cost: `2 E' d n` flops.
#[derive(Debug, Clone)]
pub struct Absolute {
    projection: Projection,
}

impl Absolute {
    /// Creates the map from a projection of `E' = E - d` rows.
    pub fn new(projection: Projection) -> Self {
        Absolute { projection }
    }

    pub(super) fn build(spec: LiftSpec) -> Result<Arc<dyn FeatureMap>, Error> {
        Ok(Arc::new(Absolute::new(Projection::beside_the_sample(spec)?)))
    }

    /// Returns the factor of the sample, `sqrt(E) / 2`.
    fn amplitude(&self) -> f64 {
        0.5 * (self.width() as f64).sqrt()
    }

    /// Returns the factor of `|P x|` inside the amplitude, `1 / sqrt(E')`.
    fn share(&self) -> f64 {
        1.0 / (self.projection.width() as f64).sqrt()
    }
}

impl FeatureMap for Absolute {
    fn name(&self) -> &'static str {
        ABS_RANDOM.name
    }
    fn dim(&self) -> usize {
        self.projection.dim()
    }
    fn width(&self) -> usize {
        self.projection.dim() + self.projection.width()
    }
    fn lift(&self, x: MatRef<'_, f32>, h: MatMut<'_, f32>) {
        let (mut linear, random) = h.split_at_row_mut(x.nrows());
        linear.copy_from(x);
        linear *= Scale(self.amplitude() as f32);
        let scale = (self.amplitude() * self.share()) as f32;
        project(&self.projection, scale, x, random, |strip| map(strip, f32::abs));
    }
    fn operations(&self) -> Vec<Operation> {
        vec![
            Operation::Project { scale: self.share() as f32 },
            Operation::Absolute,
            Operation::PrependSample,
            Operation::Scale(self.amplitude() as f32),
        ]
    }
    fn bytes(&self) -> usize {
        self.projection.bytes()
    }
}

pub(super) const ABS_RANDOM: LiftEntry = LiftEntry {
    name: "abs-random",
    summary: "x and |P x|, the kernel of relu-random with less variance",
    projection: Rows::WidthMinusDim,
    limit: Some(ArcCosine::new),
    build: Absolute::build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lift::{self, Polar};
    use faer::Mat;

    const DIM: usize = 8;
    const SAMPLES: usize = 9;

    fn samples() -> Vec<f32> {
        (0..DIM * SAMPLES).map(|i| ((i * 37 + 11) % 23) as f32 / 7.0 - 1.5).collect()
    }

    /// Returns the mean squared difference of `H'H / E` from the arc-cosine kernel, relative to the energies, over some seeds.
    fn error(name: &str, width: usize) -> f64 {
        let x = samples();
        let x = MatRef::from_column_major_slice(&x, DIM, SAMPLES);
        let polar = Polar::new(x);
        let mut exact = Mat::<f64>::zeros(SAMPLES, SAMPLES);
        polar.kernel(0..SAMPLES, 0..SAMPLES, exact.as_mut());
        let seeds = 8;
        let mut sum = 0.0;
        for seed in 0..seeds {
            let map = lift::build(name, LiftSpec { seed, ..LiftSpec::new(DIM, width) }).unwrap();
            let mut h = Mat::<f32>::zeros(width, SAMPLES);
            map.lift(x, h.as_mut());
            for (i, j) in (0..SAMPLES * SAMPLES).map(|at| (at / SAMPLES, at % SAMPLES)) {
                let product: f64 =
                    h.col(i).iter().zip(h.col(j).iter()).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                let scale = (exact[(i, i)] * exact[(j, j)]).sqrt();
                sum += ((product / width as f64 - exact[(i, j)]) / scale).powi(2);
            }
        }
        sum / (seeds as usize * SAMPLES * SAMPLES) as f64
    }

    /// The squared error falls as 1/E, towards 0: there is no bias.
    #[test]
    fn the_limit_is_the_arc_cosine_kernel() {
        let [narrow, wide] = [1_000, 16_000].map(|width| error("abs-random", width));
        assert!(wide < 1e-4 && wide * 8.0 < narrow, "{narrow:e} {wide:e}");
    }

    #[test]
    fn the_variance_is_less_than_half_of_that_of_random_relu_features() {
        for width in [200, 4_000] {
            let [relu, absolute] = ["relu-random", "abs-random"].map(|name| error(name, width));
            assert!(absolute < 0.5 * relu, "E = {width}: {relu:e} {absolute:e}");
        }
    }

    #[test]
    fn a_width_without_room_for_random_features_is_refused() {
        for width in [0, 1, DIM] {
            let message = lift::build("abs-random", LiftSpec::new(DIM, width)).err().unwrap().to_string();
            assert!(message.contains("E must be larger"), "{message}");
        }
        assert_eq!(lift::build("abs-random", LiftSpec::new(DIM, DIM + 1)).unwrap().width(), DIM + 1);
    }

    /// Printed by `bench/reference/abs_random.py`, in NumPy, for the rows of P that `projection.rs` pins: seed 0, d = 5, E = 7.
    #[test]
    fn golden_features() {
        let x = [0.5f32, -1.0, 2.0, 0.25, -3.0];
        let map = lift::build("abs-random", LiftSpec::new(5, 7)).unwrap();
        let mut h = Mat::<f32>::zeros(7, 1);
        map.lift(MatRef::from_column_major_slice(&x, 5, 1), h.as_mut());
        for (found, expected) in h.col(0).iter().zip(GOLDEN) {
            assert!((f64::from(*found) - expected).abs() < 1e-5, "{h:?}");
        }
    }

    const GOLDEN: [f64; 7] = [0.66143783, -1.32287566, 2.64575131, 0.33071891, -3.96862697, 0.91466465, 1.29359012];
}
