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
use crate::gram::{Gram, Reduced};
use crate::truncation::Truncation;

/// S or K at the time when the classifier was formed, and the filter.
pub(crate) struct Novelty {
    gram: Arc<Gram>,
    /// Whether the Gram matrix is K.
    dual: bool,
    filter: Filter,
    ridge: f64,
    limits: Limits,
    /// Computed on first use.
    factored: OnceLock<Factored>,
}

/// A factorisation of the Gram matrix, in a copy of it.
enum Factored {
    /// The reduction to a tridiagonal matrix, and the cut of the hard filter.
    Hard(Gram, Reduced, Truncation),
    /// The Cholesky factor of the soft filter.
    Soft(Gram),
}

impl Novelty {
    /// Creates the measure for K (`dual`) or S; `ridge` is the classifier's lambda.
    pub fn new(gram: Arc<Gram>, dual: bool, filter: Filter, ridge: f64, limits: Limits) -> Self {
        Novelty { gram, dual, filter, ridge, limits, factored: OnceLock::new() }
    }

    /// Returns the share of each sample's energy outside, from 0 to 1. Each row of `known` is a sample: coordinates in
    /// the basis of S, or kernel values with the samples of K.
    pub fn outside(&self, known: Mat<f64>, energies: &[f64]) -> Result<Vec<f64>, Error> {
        let mut inside = known.clone();
        match self.factored()? {
            Factored::Hard(gram, reduced, truncation) => {
                let weight = |mu: &[f64], j: usize| if self.dual { 1.0 / value(mu, j) } else { 1.0 };
                gram.apply_reduced(reduced, &mut inside, |mu, _| {
                    let k = self.limits.kept(mu, *truncation);
                    (0..mu.len()).map(|j| if j < k { weight(mu, j) } else { 0.0 }).collect()
                })?;
            }
            Factored::Soft(factor) => {
                factor.solve_factored(&mut inside);
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

    fn factored(&self) -> Result<&Factored, Error> {
        if self.factored.get().is_none() {
            let factored = match self.filter {
                Filter::Hard { truncation, .. } => {
                    let mut gram = (*self.gram).clone();
                    let reduced = gram.reduce();
                    Factored::Hard(gram, reduced, truncation)
                }
                Filter::Soft(_) => Factored::Soft(self.gram.factored(self.ridge)?),
            };
            // Another thread may have set it first; both results are the same.
            let _ = self.factored.set(factored);
        }
        self.factored.get().ok_or(Error::NothingLearned)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Ridge;
    use super::*;
    use crate::linalg::with_spectrum;

    #[test]
    fn the_gram_matrix_is_factorised_once() {
        let values: Vec<f64> = (1..=60).map(|i| 1.0 / i as f64).collect();
        let mut gram = Gram::zeros(values.len());
        gram.set_matrix(with_spectrum(&values).as_ref());
        let known = Mat::from_fn(5, values.len(), |i, j| ((i * 31 + j * 7) % 17) as f64 - 8.0);
        let energies: Vec<f64> = (0..5).map(|i| 1.5 * known.row(i).squared_norm_l2()).collect();
        let limits = Limits { width: 100, samples: 80, mass: 80.0, max_rank: 1000, keep_null: false, on_grid: false };
        let truncation = Truncation::Rank(40);
        for filter in [Filter::Hard { truncation, ridge: 0.0 }, Filter::Soft(Ridge::Fixed(0.1))] {
            for dual in [false, true] {
                let novelty = Novelty::new(Arc::new(gram.clone()), dual, filter, 0.1, limits);
                let shares = novelty.outside(known.clone(), &energies).unwrap();
                let first = std::ptr::from_ref(novelty.factored().unwrap());
                assert_eq!(novelty.outside(known.clone(), &energies).unwrap(), shares);
                assert!(std::ptr::eq(first, novelty.factored().unwrap()));
                assert!(dual || shares.iter().all(|share| (0.3..0.9).contains(share)), "{shares:?}");
            }
        }
        // The same as without a reduction that is kept.
        let novelty = Novelty::new(Arc::new(gram.clone()), false, Filter::Hard { truncation, ridge: 0.0 }, 0.0, limits);
        let mut inside = known.clone();
        gram.apply_function(&mut inside, |mu, _| (0..mu.len()).map(|j| f64::from(u8::from(j < 40))).collect()).unwrap();
        for (i, share) in novelty.outside(known.clone(), &energies).unwrap().into_iter().enumerate() {
            let inside: f64 = (0..known.ncols()).map(|j| known[(i, j)] * inside[(i, j)]).sum();
            assert_eq!(share, (1.0 - inside / energies[i]).clamp(0.0, 1.0));
        }
    }
}
