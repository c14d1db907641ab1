//! What a model will need, before anything is allocated.

use crate::basis::Basis;
use crate::error::Error;
use crate::filter::Filter;

/// The rotations that the hard filter holds at a time, with their checkpoints.
const ROTATIONS: usize = 24 << 20;

/// The sizes that decide the memory of a LoRanPAC model.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Lifted width, E.
    pub width: usize,
    /// Directions that the basis will have at its largest; see [`Plan::peak_rank`].
    pub rank: usize,
    /// Classes in the end.
    pub classes: usize,
    /// Samples lifted at a time.
    pub chunk: usize,
    /// Bytes of the lift.
    pub lift: usize,
    /// Whether null directions are kept (`drop = 0`), which takes slower factorisations with copies.
    pub keep_null: bool,
    /// Whether the Gram matrix is ever decomposed in full (compressions, or the `paper` schedule).
    pub full_eigen: bool,
}

/// Bytes by what they are for; [`Estimate::peak`] is their largest sum at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Q.
    pub basis: usize,
    /// S, N.
    pub gram: usize,
    /// J and W.
    pub classes: usize,
    /// P.
    pub lift: usize,
    /// One chunk of lifted samples with its coordinates, or a factorisation, whichever is larger.
    pub work: usize,
}

impl Plan {
    /// Adds up what this plan needs.
    pub fn estimate(&self) -> Estimate {
        let Plan { width, rank, classes, chunk, .. } = *self;
        let square = product(&[8, rank, rank]);
        let copies = if self.keep_null { 3 } else { 1 };
        let absorb = product(&[copies, 4, width, chunk]).saturating_add(product(&[4, 8, rank, chunk]));
        let factorise = if self.full_eigen {
            square.saturating_mul(4)
        } else {
            product(&[3, 8, rank, classes]).saturating_add(ROTATIONS)
        };
        let factorise = if self.keep_null { factorise.saturating_add(square) } else { factorise };
        Estimate {
            basis: Basis::<f32>::bytes_for(width, rank),
            gram: square.saturating_add(product(&[8, rank, classes + 256])),
            classes: product(&[2, 4, width, classes]),
            lift: self.lift,
            work: absorb.max(factorise),
        }
    }

    /// Refuses if the estimate is beyond `available` bytes.
    pub fn preflight(&self, available: usize) -> Result<Estimate, Error> {
        let estimate = self.estimate();
        if estimate.peak() <= available {
            return Ok(estimate);
        }
        let fits = self.largest_rank(available);
        let advice = match fits {
            0 => "reduce the width".to_owned(),
            rank => format!("cap the basis with --max-rank {rank} or less, or reduce the width"),
        };
        Err(Error::Memory(format!(
            "a model of width {} with {} directions needs about {}, but {} are available: {advice}",
            self.width,
            self.rank,
            human_bytes(estimate.peak()),
            human_bytes(available),
        )))
    }

    /// The most directions that a basis capped at `cap` has at any time: it is compressed after it has outgrown its
    /// slack, by at most `step` samples (a chunk, or a whole task in the paper schedule).
    pub fn peak_rank(cap: usize, chunk: usize, step: usize) -> usize {
        with_slack(cap, chunk).saturating_add(step)
    }

    /// The largest cap `r_max` (its slack included in the estimate) that fits into `bytes`; 0 if none does.
    pub fn largest_rank(&self, bytes: usize) -> usize {
        let fits = |cap: usize| {
            let rank = Plan::peak_rank(cap, self.chunk, self.chunk).min(self.width);
            Plan { rank, full_eigen: true, ..*self }.estimate().peak() <= bytes
        };
        let (mut low, mut high) = (0, self.width.saturating_add(1));
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) { low = middle } else { high = middle }
        }
        low
    }
}

impl Estimate {
    /// Bytes at the worst moment.
    pub fn peak(&self) -> usize {
        [self.basis, self.gram, self.classes, self.lift, self.work].into_iter().fold(0, usize::saturating_add)
    }
}

/// A product that stops at the largest number instead of overflowing: plans may be absurd.
pub(crate) fn product(factors: &[usize]) -> usize {
    factors.iter().fold(1, |product: usize, &factor| product.saturating_mul(factor))
}

/// The rank at which a basis capped at `cap` is compressed: the slack spreads the cost over many tasks.
pub fn with_slack(cap: usize, chunk: usize) -> usize {
    cap.saturating_add((cap / 4).max(chunk))
}

/// Whether a filter ever needs the eigenvectors in full.
pub fn needs_full_eigen(filter: Filter, paper_schedule: bool, compresses: bool) -> bool {
    compresses || (paper_schedule && matches!(filter, Filter::Hard { .. }))
}

/// Bytes for people.
pub fn human_bytes(bytes: usize) -> String {
    let bytes = bytes as f64;
    match bytes {
        b if b < 1_048_576.0 => format!("{:.0} KiB", b / 1024.0),
        b if b < 1_073_741_824.0 => format!("{:.0} MiB", b / 1_048_576.0),
        b => format!("{:.1} GiB", b / 1_073_741_824.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Plan =
        Plan { width: 20_000, rank: 4_500, classes: 150, chunk: 256, lift: 0, keep_null: false, full_eigen: false };

    #[test]
    fn a_plan_that_does_not_fit_is_refused_with_a_cap_that_does() {
        assert!(PLAN.preflight(2 << 30).is_ok());
        let message = PLAN.preflight(300 << 20).unwrap_err().to_string();
        let cap: usize = message.split("--max-rank ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(cap > 100, "{message}");
        let capped = Plan { rank: Plan::peak_rank(cap, 256, 256), full_eigen: true, ..PLAN };
        assert!(capped.preflight(300 << 20).is_ok());
        let larger = Plan { rank: Plan::peak_rank(cap + 260, 256, 256), full_eigen: true, ..PLAN };
        assert!(larger.preflight(300 << 20).is_err());
    }

    #[test]
    fn nothing_fits_into_nothing() {
        assert_eq!(PLAN.largest_rank(1000), 0);
        assert!(PLAN.preflight(1000).unwrap_err().to_string().contains("reduce the width"));
    }
}
