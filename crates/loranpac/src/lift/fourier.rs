//! Random Fourier features (Rahimi and Recht, 2007) of unit vectors.
//!
//! ```text
//! z = sqrt(2 gamma) P x / |x|,   h_{2k} = sqrt(2 / E) cos z_k,   h_{2k+1} = sqrt(2 / E) sin z_k
//! ```
//!
//! `h(x)' h(y)` tends to `exp(-gamma |x/|x| - y/|y||^2)`. Samples are brought to unit length first, so that one gamma
//! serves encoders of any scale.

use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::prelude::ReborrowMut;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::{FeatureMap, LiftEntry, LiftSpec, Operation, Projection, Rows};
use crate::error::Error;

/// Rows of P that one thread works on at a time.
const STRIP: usize = 256;

/// Cosines and sines of a random projection.
#[derive(Debug, Clone)]
pub struct Fourier {
    projection: Projection,
    width: usize,
    gamma: f64,
}

impl Fourier {
    /// Creates the map from a projection of E / 2 rows, rounded up; an odd E omits the last sine.
    pub fn new(projection: Projection, width: usize, gamma: f64) -> Self {
        assert_eq!(projection.width(), width.div_ceil(2));
        Fourier { projection, width, gamma }
    }

    /// The factor of every feature, `sqrt(2 / E)`.
    fn amplitude(&self) -> f32 {
        (2.0 / self.width as f64).sqrt() as f32
    }

    pub(super) fn build(spec: LiftSpec) -> Result<Arc<dyn FeatureMap>, Error> {
        if !(spec.gamma > 0.0 && spec.gamma.is_finite()) {
            return Err(Error::setting("gamma", spec.gamma, "the kernel's inverse width must be above 0"));
        }
        let (width, gamma) = (spec.width, spec.gamma);
        Ok(Arc::new(Fourier::new(Projection::for_lift(spec, width.div_ceil(2))?, width, gamma)))
    }
}

impl FeatureMap for Fourier {
    fn name(&self) -> &'static str {
        "fourier"
    }
    fn dim(&self) -> usize {
        self.projection.dim()
    }
    fn width(&self) -> usize {
        self.width
    }
    fn lift(&self, x: MatRef<'_, f32>, h: MatMut<'_, f32>) {
        assert_eq!((x.nrows(), x.ncols()), (self.dim(), h.ncols()));
        let length = |j: usize| x.col(j).iter().map(|v| *v as f64 * *v as f64).sum::<f64>().sqrt();
        // A length that f32 cannot invert counts as zero.
        let scale = |length: f64| if length > 1e-30 { ((2.0 * self.gamma).sqrt() / length) as f32 } else { 0.0 };
        let scales: Vec<f32> = (0..x.ncols()).map(|j| scale(length(j))).collect();
        let amplitude = self.amplitude();
        h.par_row_chunks_mut(2 * STRIP).enumerate().for_each_init(Vec::new, |scratch, (strip, mut h)| {
            let rows = self.projection.rows(strip * STRIP, h.nrows().div_ceil(2), scratch);
            let p = MatRef::from_row_major_slice(rows, h.nrows().div_ceil(2), self.dim());
            let mut z = Mat::<f32>::zeros(p.nrows(), x.ncols());
            matmul(&mut z, Accum::Replace, p, x, 1.0, Par::Seq);
            for (j, scale) in scales.iter().enumerate() {
                let mut column = h.rb_mut().col_mut(j);
                for (k, z) in z.col(j).iter().enumerate() {
                    let (sin, cos) = (scale * z).sin_cos();
                    column[2 * k] = amplitude * cos;
                    if 2 * k + 1 < column.nrows() {
                        column[2 * k + 1] = amplitude * sin;
                    }
                }
            }
        });
    }
    fn operations(&self) -> Vec<Operation> {
        let project = Operation::Project { scale: (2.0 * self.gamma).sqrt() as f32 };
        vec![Operation::Unit, project, Operation::CosinesAndSines, Operation::Scale(self.amplitude())]
    }
    fn bytes(&self) -> usize {
        self.projection.bytes()
    }
}

pub(super) const FOURIER: LiftEntry = LiftEntry {
    name: "fourier",
    summary: "cosines and sines of P x/|x|, for the Gaussian kernel",
    projection: Rows::Half,
    limit: None,
    build: Fourier::build,
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Rahimi and Recht: products of features are unbiased estimates of the kernel, with error O(1 / sqrt(E)).
    #[test]
    fn products_approach_the_gaussian_kernel_of_unit_vectors() {
        let (dim, n, gamma) = (6, 5, 0.7);
        let x = Mat::<f32>::from_fn(dim, n, |i, j| ((i * 5 + j * 3) % 7) as f32 - 3.0 + 0.1 * j as f32);
        let unit = |j: usize| {
            let length = x.col(j).norm_l2();
            (0..dim).map(|i| (x[(i, j)] / length) as f64).collect::<Vec<f64>>()
        };
        let error = |width: usize| {
            let lift = Fourier::new(Projection::from_seed(width / 2, dim, 4, true), width, gamma);
            let mut h = Mat::<f32>::zeros(width, n);
            lift.lift(x.as_ref(), h.as_mut());
            let pairs = (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
            pairs.fold(0.0f64, |worst, (i, j)| {
                let distance: f64 = unit(i).iter().zip(unit(j)).map(|(a, b)| (a - b).powi(2)).sum();
                let product: f64 = (0..width).map(|k| h[(k, i)] as f64 * h[(k, j)] as f64).sum();
                worst.max((product - (-gamma * distance).exp()).abs())
            })
        };
        assert!(error(200) < 0.35, "{}", error(200));
        assert!(error(20_000) < 0.035, "{}", error(20_000));
    }
}
