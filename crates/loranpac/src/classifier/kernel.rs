//! Scores on kept samples, by the kernel between them and the queries.

use std::sync::{Arc, OnceLock};

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef};

use super::CHUNK;
use super::linear::padded;
use crate::dual::{self, Outside};
use crate::error::Error;
use crate::features::Features;
use crate::filter::{Filter, Limits, Novelty};
use crate::gram::Gram;
use crate::lift::Polar;
use crate::linalg::{cholesky_lower, par, turned_by_lower};

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

/// Transforms the problem to coordinates in which every sample has mass 1: with `M = G G'`, returns G and `G'KG`.
pub(crate) fn whiten(mut mass: Mat<f64>, kernel: &Gram) -> Result<(Mat<f64>, Gram), Error> {
    let n = mass.nrows();
    if !cholesky_lower(mass.as_mut(), par()) {
        return Err(Error::NotPositiveDefinite { rank: n, ridge: 0.0 });
    }
    for j in 1..n {
        mass.col_mut(j).subrows_mut(0, j).fill(0.0);
    }
    let turned = turned_by_lower(kernel.to_matrix().as_ref(), mass.as_ref());
    let mut gram = Gram::zeros(n);
    gram.set_matrix(turned.as_ref());
    Ok((mass, gram))
}

/// The state that novelty needs, computed on first use.
pub(crate) struct KernelDirections {
    /// K, if the model keeps it in memory.
    pub kernel: Option<Arc<Gram>>,
    /// M, after an eviction.
    pub mass: Option<Mat<f64>>,
    /// The filter, the ridge of the classifier, and the limits on its directions.
    pub filter: (Filter, f64, Limits),
    /// What measures novelty.
    pub measure: OnceLock<Measure>,
}

/// The factorisation that measures novelty.
pub(crate) enum Measure {
    /// G, after an eviction, and the spectrum in its coordinates.
    Spectral(Option<Mat<f64>>, Box<Novelty>),
    /// A factor in single precision.
    Packed(Outside),
}

impl KernelDirections {
    /// Returns the share of each sample's energy outside the directions.
    pub(super) fn outside(&self, scorer: &KernelScorer, x: Features<'_>) -> Result<Vec<f64>, Error> {
        let measure = self.measure(scorer)?;
        let (known, energies) = scorer.known(x);
        match measure {
            Measure::Packed(outside) => Ok(outside.shares(known, &energies)),
            Measure::Spectral(None, novelty) => novelty.outside(known.transpose().to_owned(), &energies),
            Measure::Spectral(Some(g), novelty) => novelty.outside(known.transpose() * g, &energies),
        }
    }

    fn measure(&self, scorer: &KernelScorer) -> Result<&Measure, Error> {
        if self.measure.get().is_none() {
            let (filter, ridge, limits) = self.filter;
            let packs = self.mass.is_none() && dual::packs(filter, scorer.samples.len());
            let outside = if packs { Outside::new(&scorer.samples, ridge)? } else { None };
            if let Some(outside) = outside {
                let _ = self.measure.set(Measure::Packed(outside));
                return self.measure.get().ok_or(Error::NothingLearned);
            }
            let kernel = self.kernel.clone().unwrap_or_else(|| Arc::new(scorer.gram()));
            let (turn, gram) = match &self.mass {
                None => (None, kernel),
                Some(mass) => whiten(mass.clone(), &kernel).map(|(turn, gram)| (Some(turn), Arc::new(gram)))?,
            };
            // Another thread may have set it first; both results are the same.
            let novelty = Box::new(Novelty::new(gram, true, filter, ridge, limits));
            let _ = self.measure.set(Measure::Spectral(turn, novelty));
        }
        self.measure.get().ok_or(Error::NothingLearned)
    }
}

impl KernelScorer {
    /// Returns K of the kept samples.
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

    /// Computes `k(Z, x)` of each sample, n x m, and `k(x, x)`.
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

    /// Computes the kernel between the kept samples and queries of length 1, and returns it with the queries; padded
    /// like explicit features.
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
