//! The paper's quantities, computed from the state: how far the model may be from the offline solution and from the
//! data.
//!
//! With `H H'` of everything learned, `D = H H' - Q S Q'` is what past cuts removed (Lemma truncation-equality). It is
//! positive semidefinite, and `|D| <= lost`. In the late schedule without compressions D = 0, and the classifier is the
//! offline solution. `docs/theory.md` explains each number and the statements of the paper that it enters.

mod bounds;
mod verdict;

use serde::{Deserialize, Serialize};

pub use bounds::{Assumptions, Bounds, Gaussian};
pub use verdict::Verdict;

use crate::filter::Facts;
use crate::scalar::Scalar;
use crate::statistics::{Cut, Losses, Statistics};

/// The record of past losses from which a certificate is computed.
pub(crate) struct Ledger {
    /// M.
    pub samples: usize,
    /// n_max.
    pub largest_class: usize,
    /// The losses of past cuts.
    pub past: Losses,
    /// The cut after the latest task.
    pub latest: Cut,
    /// Whether D is semidefinite and W that of the theorems, so that their bounds hold.
    pub semidefinite: bool,
    /// Whether samples are kept.
    pub keeps_samples: bool,
    /// Whether samples have weights: the theorems know none.
    pub weighted: bool,
}

impl Ledger {
    pub(crate) fn of<T: Scalar>(stats: &Statistics<T>) -> Self {
        Ledger {
            samples: stats.samples(),
            largest_class: stats.counts().iter().copied().max().unwrap_or(0),
            past: stats.losses(),
            latest: stats.latest_cut(),
            // With null directions kept, the classifier is formed from rounded products, and is not the W of the
            // theorems.
            semidefinite: !stats.keeps_null_directions(),
            keeps_samples: false,
            weighted: stats.is_weighted(),
        }
    }
}

/// The cost of truncation so far, in the paper's terms. Fields that need the spectrum are set for the hard filter only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Certificate {
    /// M: samples learned.
    pub samples: usize,
    /// k: directions that the classifier uses.
    pub kept: usize,
    /// n_max: samples of the largest class.
    pub largest_class: usize,
    /// Sum over past cuts of the largest eigenvalue removed: a_{t-1}. 0 in the late schedule without compression.
    pub lost: f64,
    /// A bound on the change of `H H'` by residuals of rounding size that added no direction to the basis.
    pub dropped: f64,
    /// Samples that were unlearned or relabelled without proof that they had been learned under their labels. The
    /// certificate holds under the assumption that they were.
    pub assumed: usize,
    /// Number of past cuts: the theorems' t - 1.
    pub cuts: usize,
    /// Directions that past cuts removed: the theorems' `M_{t-1} - k_{t-1}`.
    pub removed: usize,
    /// Directions among them that the cap on the basis removed.
    pub capped: usize,
    /// Whether samples are kept and removed by the cap (infinite width), instead of directions.
    pub keeps_samples: bool,
    /// mu_1 of `B_t B_t'`.
    pub largest: Option<f64>,
    /// mu_k of `B_t B_t'`, the smallest kept.
    pub smallest_kept: Option<f64>,
    /// mu_{k+1} of `B_t B_t'`, the largest that is cut now: after the latest task, or by the classifier.
    pub largest_cut: f64,
    /// a_t: the losses of past cuts, and the current cut (equation define-a).
    pub accumulative_error: f64,
    /// gamma_t: the smallest kept eigenvalue over the largest removed before (equation define-gap-gamma). None if nothing
    /// was removed (gamma is infinite then), or if the spectrum is not known.
    pub gamma: Option<f64>,
    /// `lost` divided by the smallest kept eigenvalue, at most `(t - 1) / gamma_t`.
    pub loss_share: Option<f64>,
    /// gap_t: mu_k - mu_{k+1} of `H H'` (equation gap). Exact while nothing was lost; a lower bound afterwards.
    pub gap: Option<f64>,
    /// mu_1 / mu_k of the matrix that the classifier inverts.
    pub condition: Option<f64>,
    /// mu_1 over the smallest eigenvalue above rounding, before the current cut.
    pub condition_before: Option<f64>,
    /// r_1: the sum of all eigenvalues over the largest.
    pub effective_rank: Option<f64>,
    /// r_k: the sum of the eigenvalues from the k-th on, over the k-th.
    pub effective_rank_kept: Option<f64>,
    /// The paper's bounds without unknowns. None where its theorems do not apply: soft filter, a ridge, null directions
    /// kept, or weights.
    pub bounds: Option<Bounds>,
}

impl Certificate {
    /// Computes the certificate from past losses, the latest task's own cut, and the facts of the current classifier.
    pub fn new<T: Scalar>(stats: &Statistics<T>, facts: Facts) -> Self {
        Certificate::from_ledger(&Ledger::of(stats), facts)
    }

    pub(crate) fn from_ledger(ledger: &Ledger, facts: Facts) -> Self {
        let Ledger { past, latest, .. } = *ledger;
        let before = past.lost + past.dropped;
        // The paper schedule has cut already; the late schedule cuts when the classifier is formed.
        let largest_cut = latest.largest.max(facts.cut);
        let mut certificate = Certificate {
            samples: ledger.samples,
            kept: facts.kept,
            largest_class: ledger.largest_class,
            lost: past.lost,
            dropped: past.dropped,
            assumed: past.assumed,
            cuts: past.cuts,
            removed: past.removed,
            capped: past.capped,
            keeps_samples: ledger.keeps_samples,
            largest_cut,
            accumulative_error: before + largest_cut,
            ..Certificate::default()
        };
        let Some(spectrum) = facts.spectrum else { return certificate };
        let smallest = if latest.directions > 0 { latest.smallest } else { spectrum.smallest };
        let smallest = smallest.min(spectrum.smallest_kept);
        certificate.largest = Some(spectrum.largest);
        certificate.smallest_kept = Some(spectrum.smallest_kept);
        certificate.gamma = (past.largest > 0.0).then(|| spectrum.smallest_kept / past.largest);
        certificate.loss_share = Some(past.lost / spectrum.smallest_kept);
        // The removed part is semidefinite: mu_k of H H' is not below that of B B', and mu_{k+1} is above it by `lost`
        // at most. Dropped residuals may move either in either direction.
        let above = if ledger.semidefinite { past.lost } else { 2.0 * past.lost };
        certificate.gap = Some((spectrum.smallest_kept - largest_cut - above - 2.0 * past.dropped).max(0.0));
        certificate.condition = Some((spectrum.largest + facts.ridge) / (spectrum.smallest_kept + facts.ridge));
        certificate.condition_before = Some(spectrum.largest / smallest);
        certificate.effective_rank = Some((spectrum.sum + latest.sum) / spectrum.largest);
        certificate.effective_rank_kept = Some((spectrum.sum_from_kept + latest.sum) / spectrum.smallest_kept);
        if facts.ridge == 0.0 && ledger.semidefinite && !ledger.weighted {
            certificate.bounds = certificate.bounds();
        }
        certificate
    }
}
