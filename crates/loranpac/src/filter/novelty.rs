//! The share of a sample that lies outside the directions that a classifier uses.
//!
//! ```text
//! hard   1 - |V_k' Q' h|^2 / |h|^2        soft   1 - (Q'h)' S (S + lambda I)^-1 (Q'h) / |h|^2
//! ```

use std::sync::{Arc, OnceLock};

use faer::Mat;

use super::problem::value;
use super::{Filter, Limits};
use crate::error::Error;
use crate::gram::Gram;

/// S or K at the time when the classifier was formed, and the filter.
pub(crate) struct Novelty {
    gram: Arc<Gram>,
    /// Whether the Gram matrix is K.
    dual: bool,
    filter: Filter,
    ridge: f64,
    limits: Limits,
    /// The Cholesky factor of the soft filter, computed on first use.
    factor: OnceLock<Gram>,
}

impl Novelty {
    /// Creates the measure for K (`dual`) or S; `ridge` is the classifier's lambda.
    pub fn new(gram: Arc<Gram>, dual: bool, filter: Filter, ridge: f64, limits: Limits) -> Self {
        Novelty { gram, dual, filter, ridge, limits, factor: OnceLock::new() }
    }

    /// Returns the share of each sample's energy outside, from 0 to 1. Each row of `known` is a sample: coordinates in
    /// the basis of S, or kernel values with the samples of K.
    pub fn outside(&self, known: Mat<f64>, energies: &[f64]) -> Result<Vec<f64>, Error> {
        let mut inside = known.clone();
        match self.filter {
            Filter::Hard { truncation, .. } => {
                let weight = |mu: &[f64], j: usize| if self.dual { 1.0 / value(mu, j) } else { 1.0 };
                (*self.gram).clone().apply_function(&mut inside, |mu, _| {
                    let k = self.limits.kept(mu, truncation);
                    (0..mu.len()).map(|j| if j < k { weight(mu, j) } else { 0.0 }).collect()
                })?;
            }
            Filter::Soft(_) => {
                self.factor()?.solve_factored(&mut inside);
                if !self.dual {
                    inside = &known - inside * self.ridge;
                }
            }
        }
        let share = |(i, &energy): (usize, &f64)| {
            let inside: f64 = (0..known.ncols()).map(|j| known[(i, j)] * inside[(i, j)]).sum();
            if energy > 0.0 { (1.0 - inside / energy).clamp(0.0, 1.0) } else { 0.0 }
        };
        Ok(energies.iter().enumerate().map(share).collect())
    }

    fn factor(&self) -> Result<&Gram, Error> {
        if self.factor.get().is_none() {
            let factor = self.gram.factored(self.ridge)?;
            // Another thread may have set it first; both factors are the same.
            let _ = self.factor.set(factor);
        }
        self.factor.get().ok_or(Error::NothingLearned)
    }
}
