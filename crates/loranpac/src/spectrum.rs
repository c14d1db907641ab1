//! A summary of eigenvalues in descending order, and their rounding levels.

use serde::{Deserialize, Serialize};

/// A summary of the spectrum of S.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spectrum {
    /// mu_1.
    pub largest: f64,
    /// mu_k, the smallest kept.
    pub smallest_kept: f64,
    /// The smallest above rounding.
    pub smallest: f64,
    /// The sum of all.
    pub sum: f64,
    /// The sum from mu_k on.
    pub sum_from_kept: f64,
}

impl Spectrum {
    /// Summarises eigenvalues in descending order of which k are kept; returns None if k = 0.
    pub fn of(mu: &[f64], k: usize) -> Option<Spectrum> {
        let (&largest, &smallest_kept) = (mu.first()?, mu.get(k.checked_sub(1)?)?);
        let rounding = rounding(mu);
        let smallest = mu.iter().copied().take_while(|value| *value > rounding).last().unwrap_or(largest);
        let sum = |part: &[f64]| part.iter().map(|value| value.max(0.0)).sum();
        Some(Spectrum { largest, smallest_kept, smallest, sum: sum(mu), sum_from_kept: sum(&mu[k - 1..]) })
    }
}

/// Returns the level up to which eigenvalues are rounding of the matrix with this spectrum, in descending order.
pub(crate) fn rounding(mu: &[f64]) -> f64 {
    floor(mu) * mu.len() as f64
}

/// Returns the level below which eigenvalues are rounding noise of S itself.
pub(crate) fn floor(mu: &[f64]) -> f64 {
    mu.first().map_or(0.0, |largest| largest * f64::EPSILON)
}
