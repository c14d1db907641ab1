//! Scores on kept samples, by the kernel between them and the queries.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef};

use super::CHUNK;
use super::linear::padded;
use crate::features::Features;
use crate::gram::Gram;
use crate::lift::Polar;
use crate::linalg::par;

/// A classifier on kept samples: `scores(x) = A k(Z, x)`.
pub(crate) struct KernelScorer {
    /// Z.
    pub samples: Polar,
    /// A, transposed: n x c.
    pub weights: Mat<f64>,
    /// A bound on the change of `H H'` by evicted samples.
    pub lost: f64,
}

/// Columns of the kernel matrix that are computed at a time.
const COLUMNS: usize = 512;

/// Extends K to all of these samples, block by block.
pub(crate) fn extend_kernel(kernel: &mut Gram, samples: &Polar) {
    while kernel.rank() < samples.len() {
        let first = kernel.rank();
        let p = COLUMNS.min(samples.len() - first);
        kernel.append(p, |out| samples.kernel(0..first + p, first..first + p, out));
    }
}

impl KernelScorer {
    /// K of the kept samples.
    pub(super) fn gram(&self) -> Gram {
        let mut gram = Gram::default();
        extend_kernel(&mut gram, &self.samples);
        gram
    }

    /// Appends the scores of a batch.
    pub(super) fn scores(&self, x: Features<'_>, values: &mut Vec<f32>) {
        for part in x.chunks(CHUNK) {
            let (kernel, queries) = self.between(part);
            let mut scores = Mat::<f64>::zeros(self.weights.ncols(), kernel.ncols());
            matmul(&mut scores, Accum::Replace, self.weights.transpose(), &kernel, 1.0, par());
            for (i, length) in queries.lengths().iter().take(part.len()).enumerate() {
                values.extend(scores.col(i).iter().map(|score| (score * length) as f32));
            }
        }
    }

    /// `k(Z, x)` of each sample, n x m, and `k(x, x)`.
    pub(super) fn known(&self, x: Features<'_>) -> (Mat<f64>, Vec<f64>) {
        let mut known = Mat::<f64>::zeros(self.samples.len(), x.len());
        let mut energies = Vec::with_capacity(x.len());
        for part in x.chunks(CHUNK) {
            let (kernel, queries) = self.between(part);
            let first = energies.len();
            for (i, length) in queries.lengths().iter().take(part.len()).enumerate() {
                let column = known.as_mut().col_mut(first + i);
                column.iter_mut().zip(kernel.col(i).iter()).for_each(|(value, k)| *value = k * length);
            }
            energies.extend(queries.energies().take(part.len()));
        }
        (known, energies)
    }

    /// The kernel between the kept samples and queries of length 1, and the queries; padded like explicit features.
    fn between(&self, x: Features<'_>) -> (Mat<f64>, Polar) {
        let (padded, n) = padded(x);
        let queries = Polar::new(MatRef::from_column_major_slice(&padded, x.dim(), n));
        let mut kernel = Mat::zeros(self.samples.len(), n);
        self.samples.shapes(0..self.samples.len(), &queries, 0..n, kernel.as_mut());
        for column in kernel.col_iter_mut() {
            column.iter_mut().zip(self.samples.lengths()).for_each(|(value, length)| *value *= length);
        }
        (kernel, queries)
    }
}
