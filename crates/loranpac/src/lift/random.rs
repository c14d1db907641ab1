//! Random features: `P x`, and the paper's `relu(P x)` (equation def-H).

use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::prelude::ReborrowMut;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::{FeatureMap, LiftSpec, Projection};
use crate::error::Error;

/// Rows of H that one thread makes at a time: the strip stays in its cache for the relu.
const STRIP: usize = 512;

/// `h = P x`, optionally through a relu. Cost: `2 E d n` flops.
#[derive(Debug, Clone)]
pub struct Random {
    projection: Projection,
    relu: bool,
}

impl Random {
    /// Random features from a projection.
    pub fn new(projection: Projection, relu: bool) -> Self {
        Random { projection, relu }
    }

    pub(super) fn build(spec: LiftSpec, relu: bool) -> Result<Arc<dyn FeatureMap>, Error> {
        if spec.width == 0 {
            return Err(Error::setting("width", 0, "E must be at least 1 (10,000 is a good start)"));
        }
        let projection = match spec.projection {
            Some(rows) => Projection::from_rows(spec.width, spec.dim, rows)?,
            None => Projection::from_seed(spec.width, spec.dim, spec.seed, spec.keep),
        };
        Ok(Arc::new(Random::new(projection, relu)))
    }
}

impl FeatureMap for Random {
    fn name(&self) -> &'static str {
        if self.relu { "relu-random" } else { "random" }
    }
    fn dim(&self) -> usize {
        self.projection.dim()
    }
    fn width(&self) -> usize {
        self.projection.width()
    }
    fn lift(&self, x: MatRef<'_, f32>, h: MatMut<'_, f32>) {
        assert_eq!((x.nrows(), x.ncols()), (self.dim(), h.ncols()));
        h.par_row_chunks_mut(STRIP).enumerate().for_each_init(Vec::new, |scratch, (strip, mut h)| {
            let rows = self.projection.rows(strip * STRIP, h.nrows(), scratch);
            let p = MatRef::from_row_major_slice(rows, h.nrows(), self.dim());
            matmul(h.rb_mut(), Accum::Replace, p, x, 1.0, Par::Seq);
            if self.relu {
                relu(h);
            }
        });
    }
    fn bytes(&self) -> usize {
        self.projection.bytes()
    }
}

/// `h <- max(h, 0)`.
pub(super) fn relu(h: MatMut<'_, f32>) {
    for column in h.col_iter_mut() {
        match column.try_as_col_major_mut() {
            Some(column) => column.as_slice_mut().iter_mut().for_each(|v| *v = v.max(0.0)),
            None => unreachable!("lifted features are stored by column"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;

    #[test]
    fn relu_of_the_product_in_any_chunking_kept_or_regenerated() {
        let (width, dim, n) = (1100, 7, 5);
        let kept = Random::new(Projection::from_seed(width, dim, 3, true), true);
        let lazy = Random::new(Projection::from_seed(width, dim, 3, false), true);
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
