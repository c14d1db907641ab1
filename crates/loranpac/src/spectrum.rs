//! Eigenvalues in descending order: a few numbers of them, and which of them are rounding.

use serde::{Deserialize, Serialize};

/// The spectrum of S in a few numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spectrum {
    /// mu_1.
    pub largest: f64,
    /// mu_k, the smallest kept.
    pub smallest_kept: f64,
    /// The smallest that is more than rounding.
    pub smallest: f64,
    /// The sum of all.
    pub sum: f64,
    /// The sum from mu_k on.
    pub sum_from_kept: f64,
}

impl Spectrum {
    /// Of eigenvalues in descending order of which k are kept; none if k = 0.
    pub fn of(mu: &[f64], k: usize) -> Option<Spectrum> {
        let (&largest, &smallest_kept) = (mu.first()?, mu.get(k.checked_sub(1)?)?);
        let rounding = rounding(mu);
        let smallest = mu.iter().copied().take_while(|value| *value > rounding).last().unwrap_or(largest);
        let sum = |part: &[f64]| part.iter().map(|value| value.max(0.0)).sum();
        Some(Spectrum { largest, smallest_kept, smallest, sum: sum(mu), sum_from_kept: sum(&mu[k - 1..]) })
    }
}

/// Eigenvalues of at most this are rounding of the matrix whose spectrum, in descending order, this is.
pub(crate) fn rounding(mu: &[f64]) -> f64 {
    floor(mu) * mu.len() as f64
}

/// Eigenvalues below this are rounding noise of S itself.
pub(crate) fn floor(mu: &[f64]) -> f64 {
    mu.first().map_or(0.0, |largest| largest * f64::EPSILON)
}
