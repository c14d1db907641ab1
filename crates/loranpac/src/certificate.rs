//! The paper's quantities, read off the state.

use serde::{Deserialize, Serialize};

use crate::filter::Facts;
use crate::statistics::Losses;

/// What truncation has cost so far, in the paper's terms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// Sum over past cuts of the largest eigenvalue removed: a_{t-1}. 0 in the late schedule without compression.
    pub lost: f64,
    /// Number of past cuts.
    pub cuts: usize,
    /// a_t: `lost`, the cut after the latest task, and the one that the classifier makes (equation define-a).
    pub accumulative_error: f64,
    /// gamma_t: the smallest kept eigenvalue over the largest removed before. None if nothing was removed (gamma is
    /// infinite then), or if the filter does not compute the spectrum (soft).
    pub gamma: Option<f64>,
    /// mu_1 / mu_k of what the classifier inverts, where the spectrum is known.
    pub condition: Option<f64>,
}

impl Certificate {
    /// Puts the books of past cuts, the latest task's own cut, and the facts of the current classifier together.
    pub fn new(past: Losses, latest_cut: f64, facts: Facts) -> Self {
        let gamma = facts.smallest_kept.filter(|_| past.largest > 0.0).map(|smallest| smallest / past.largest);
        let condition = facts
            .largest
            .zip(facts.smallest_kept)
            .map(|(largest, smallest)| (largest + facts.ridge) / (smallest + facts.ridge));
        let accumulative_error = past.lost + latest_cut + facts.cut;
        Certificate { lost: past.lost, cuts: past.cuts, accumulative_error, gamma, condition }
    }
}
