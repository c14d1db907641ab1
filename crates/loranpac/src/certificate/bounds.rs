//! The right-hand sides of the paper's theorems, with t - 1 the number of past cuts that removed something and
//! `M_{t-1} - k_{t-1}` the number of directions that they removed. Of an infinite gamma the inverse is 0.

use std::f64::consts::SQRT_2;

use serde::{Deserialize, Serialize};

use super::Certificate;

/// Bounds without unknowns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// `|W H - Y|^2 / M`, Corollary training-loss. Predicting 0 for everything has an error of 1: a bound above that is
    /// vacuous. [`crate::Summary::train_mse`] is exact.
    pub training_mse: f64,
    /// `|H' U Sigma^-2 U' H - I|^2`, Proposition projection-error.
    pub projection_error: f64,
    /// `|mu_j(H H') - mu_j(B B')|` for every j, Theorem eigenvalue-eigenspace-bound.
    pub eigenvalue_error: f64,
    /// `|U_k U_k' - U U'|`, offline against continual, the same theorem. None where its condition,
    /// `a_{t-1} < (1 - 1 / sqrt 2) gap_t`, does not hold.
    pub eigenspace: Option<f64>,
    /// `|W_offline - W| / |W*|` for noiseless labels `Y = W* H`, Theorem W-offline-online, under the same condition.
    pub weights: Option<f64>,
}

/// The unknowns of Theorems training-loss-deterministic and test-loss-deterministic: `Y = W* H + noise`,
/// `y = W* h + test noise`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assumptions {
    /// `|W*|`, Frobenius norm.
    pub truth: f64,
    /// Spectral norm of the noise in the labels.
    pub noise: f64,
    /// `|E[h h'] - H H' / M|`, spectral norm.
    pub covariance_gap: f64,
    /// `E |test noise|^2`.
    pub test_noise: f64,
}

/// The unknowns of the Gaussian forms, where all noise is independent and normal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gaussian {
    /// `|W*|`, Frobenius norm.
    pub truth: f64,
    /// Variance of the noise in each label and class.
    pub variance: f64,
    /// c: number of classes.
    pub classes: usize,
    /// `|E[h h'] - H H' / M|`, spectral norm.
    pub covariance_gap: f64,
}

/// The terms of all right-hand sides.
struct Terms {
    samples: f64,
    kept: f64,
    /// t - 1.
    cuts: f64,
    /// 1 / gamma_t.
    inverse_gamma: f64,
    /// `min(M_{t-1} - k_{t-1}, (t - 1) k_t)`.
    directions: f64,
    smallest_kept: f64,
    /// a_{t-1}.
    before: f64,
    /// a_t.
    all: f64,
}

impl Terms {
    /// Computes `a_t + a_{t-1} (t - 1) / gamma_t + a_{t-1} (t - 1)^2 / gamma_t^2`, Lemma various-bounds3.
    fn bias(&self) -> f64 {
        let ratio = self.cuts * self.inverse_gamma;
        self.all + self.before * ratio + self.before * ratio * ratio
    }

    /// Computes `M_t - k_t + (t - 1) / gamma_t^2 min(..)`, Proposition projection-error.
    fn projection(&self) -> f64 {
        self.samples - self.kept + self.cuts * self.inverse_gamma.powi(2) * self.directions
    }

    /// Computes `k_t + ((t - 1) / gamma_t^2 + 2 / gamma_t) min(..)`, the fourth bound of Lemma various-bounds2.
    fn fit(&self) -> f64 {
        self.kept + (self.cuts * self.inverse_gamma.powi(2) + 2.0 * self.inverse_gamma) * self.directions
    }

    /// Returns B_t of Theorem test-loss-deterministic.
    fn test_bias(&self, covariance_gap: f64) -> f64 {
        covariance_gap * (1.0 + (self.cuts * self.inverse_gamma).powi(2)) + self.bias() / self.samples
    }

    /// Returns V_t of Theorem test-loss-deterministic.
    fn test_variance(&self, covariance_gap: f64) -> f64 {
        let directions = self.inverse_gamma * self.directions + self.kept;
        covariance_gap * directions / self.smallest_kept + self.fit() / self.samples
    }
}

impl Certificate {
    /// Returns the terms; None without a spectrum.
    fn terms(&self) -> Option<Terms> {
        Some(Terms {
            samples: self.samples as f64,
            kept: self.kept as f64,
            cuts: self.cuts as f64,
            inverse_gamma: self.gamma.map_or(0.0, f64::recip),
            directions: (self.removed as f64).min(self.cuts as f64 * self.kept as f64),
            smallest_kept: self.smallest_kept?,
            before: self.lost + self.dropped,
            all: self.accumulative_error,
        })
    }

    pub(super) fn bounds(&self) -> Option<Bounds> {
        let terms = self.terms()?;
        let gap = self.gap.filter(|gap| terms.before < (1.0 - SQRT_2.recip()) * gap);
        let eigenspace = gap.map(|gap| SQRT_2 * terms.before / gap);
        Some(Bounds {
            training_mse: self.largest_class as f64 / terms.samples * terms.projection(),
            projection_error: terms.projection(),
            eigenvalue_error: terms.before,
            eigenspace,
            weights: eigenspace
                .map(|space| space + terms.cuts * terms.inverse_gamma + self.dropped / terms.smallest_kept),
        })
    }

    /// Bounds `|W H - Y|^2 / M` under assumptions about the unknowns (Theorem training-loss-deterministic).
    pub fn training_error(&self, given: &Assumptions) -> Option<f64> {
        let Assumptions { truth, noise, .. } = given;
        let terms = self.bounds.and(self.terms())?;
        Some((4.0 * truth.powi(2) * terms.bias() + 2.0 * noise.powi(2) * terms.projection()) / terms.samples)
    }

    /// Bounds `E |W h - y|^2` (Theorem test-loss-deterministic).
    pub fn test_error(&self, given: &Assumptions) -> Option<f64> {
        let Assumptions { truth, noise, covariance_gap, test_noise } = *given;
        let terms = self.bounds.and(self.terms())?;
        let bias = 4.0 * truth.powi(2) * terms.test_bias(covariance_gap);
        Some(bias + 4.0 * noise.powi(2) * terms.test_variance(covariance_gap) + 2.0 * test_noise)
    }

    /// Bounds `E |W H - Y|^2 / M` (Theorem training-loss-Gaussian-noise).
    pub fn training_error_gaussian(&self, given: &Gaussian) -> Option<f64> {
        let terms = self.bounds.and(self.terms())?;
        let variance = given.classes as f64 * given.variance;
        Some((2.0 * given.truth.powi(2) * terms.bias() + variance * terms.projection()) / terms.samples)
    }

    /// Bounds `E |W H - W* H|^2 / M`, the distance to the truth (Theorem training-loss-Gaussian-noise-2).
    pub fn fit_error_gaussian(&self, given: &Gaussian) -> Option<f64> {
        let terms = self.bounds.and(self.terms())?;
        let variance = given.classes as f64 * given.variance;
        Some((2.0 * given.truth.powi(2) * terms.bias() + variance * terms.fit()) / terms.samples)
    }

    /// Bounds `E |W h - y|^2` (Theorem test-Gaussian-noise-full-details-V).
    pub fn test_error_gaussian(&self, given: &Gaussian) -> Option<f64> {
        let terms = self.bounds.and(self.terms())?;
        let variance = given.classes as f64 * given.variance;
        let bias = 2.0 * given.truth.powi(2) * terms.test_bias(given.covariance_gap);
        Some(bias + variance * terms.test_variance(given.covariance_gap) + variance)
    }
}
