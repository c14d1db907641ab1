//! Memory estimates of a model, before anything is allocated.

use crate::basis::{Basis, SANDWICH};
use crate::classifier::CHUNK;
use crate::error::Error;
use crate::filter::Filter;
use crate::memory::{human_bytes, product, sum};
use crate::width::Width;

/// Bytes of the rotations that the hard filter holds at a time, with their checkpoints.
const ROTATIONS: usize = 24 << 20;

/// The sizes that determine the memory of a LoRanPAC model.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Lifted width, E.
    pub width: usize,
    /// Maximum number of directions of the basis; see [`Plan::peak_rank`].
    pub rank: usize,
    /// Number of classes at the end.
    pub classes: usize,
    /// Samples lifted at a time.
    pub chunk: usize,
    /// Whether null directions are kept (`drop = 0`), which takes slower factorisations with copies.
    pub keep_null: bool,
    /// Whether the Gram matrix is ever decomposed in full (compressions, or the `paper` schedule).
    pub full_eigen: bool,
}

impl Plan {
    /// Returns the peak memory in bytes: Q, S and N, J and W, a chunk of lifted samples, and the largest of its coordinates, a
    /// factorisation, and a chunk of queries. The lift is not included.
    pub fn peak(&self) -> usize {
        let Plan { width, rank, classes, chunk, .. } = *self;
        let square = product(&[8, rank, rank]);
        let copies = if self.keep_null { 3 } else { 1 };
        // The lifted chunk stays allocated between tasks; predictions lift into memory of their own.
        let (work, scoring) = (product(&[4, width, chunk]), product(&[4, width, CHUNK]));
        let absorb = product(&[copies - 1, 4, width, chunk]).saturating_add(product(&[8, 8, rank, chunk]));
        let factorise = if self.full_eigen {
            square.saturating_mul(4)
        } else {
            // Rows of N, the rotations, and the reflections of the second stage of the reduction.
            sum(&[product(&[3, 8, rank, classes]), ROTATIONS, square / 2])
        };
        let factorise = if self.keep_null { factorise.saturating_add(square) } else { factorise };
        // S turned to the unit vectors, with the columns that are computed at a time.
        let whole =
            if rank >= width && !self.keep_null { square.saturating_add(product(&[2, 8, rank, SANDWICH])) } else { 0 };
        sum(&[
            Basis::<f32>::bytes_for(width, rank),
            square.saturating_add(product(&[8, rank, classes.saturating_add(256)])),
            product(&[2, 4, width, classes]),
            work,
            absorb.max(factorise).max(whole).max(scoring),
        ])
    }

    /// Returns the maximum number of directions of a basis capped at `cap`: it is compressed after it exceeds its
    /// slack, by at most `step` samples (a chunk, or a whole task in the paper schedule).
    pub fn peak_rank(cap: usize, chunk: usize, step: usize) -> usize {
        with_slack(cap, chunk).saturating_add(step)
    }
}

/// Returns the rank at which a basis capped at `cap` is compressed: the slack spreads the cost over many tasks.
pub fn with_slack(cap: usize, chunk: usize) -> usize {
    cap.saturating_add((cap / 4).max(chunk))
}

/// Returns whether a filter ever needs all eigenvectors.
pub fn needs_full_eigen(filter: Filter, paper_schedule: bool, compresses: bool) -> bool {
    compresses || (paper_schedule && matches!(filter, Filter::Hard { .. }))
}

/// Returns the largest cap r_max up to `most` for which `needs(cap)` fits into `bytes`; 0 if none does.
pub fn largest_cap(most: usize, bytes: usize, needs: impl Fn(usize) -> usize) -> usize {
    if needs(most) <= bytes {
        return most;
    }
    let (mut low, mut high) = (0, most.max(1));
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if needs(middle) <= bytes { low = middle } else { high = middle }
    }
    low
}

/// Refuses a method that needs more than the `available` bytes with its cap; `needs` returns the bytes for any cap.
pub fn preflight(
    method: &str,
    width: Width,
    cap: usize,
    available: usize,
    needs: impl Fn(usize) -> usize,
) -> Result<(), Error> {
    let needed = needs(cap);
    if needed <= available {
        return Ok(());
    }
    let Width::Finite(width) = width else {
        let advice = match largest_cap(cap, available, needs) {
            0 => "not even one sample fits".to_owned(),
            samples => format!("keep fewer, with `max-rank` {samples} or less"),
        };
        return Err(Error::Memory(format!(
            "{method} at infinite width keeps samples and needs about {}, but {} are available: {advice}",
            human_bytes(needed),
            human_bytes(available),
        )));
    };
    let advice = match largest_cap(cap.min(width), available, needs) {
        0 => "reduce the width".to_owned(),
        rank => format!("cap the basis with `max-rank` {rank} or less, or reduce the width"),
    };
    Err(Error::Memory(format!(
        "{method} at width {width} needs about {}, but {} are available: {advice}",
        human_bytes(needed),
        human_bytes(available),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(cap: usize) -> usize {
        let rank = 4_500.min(Plan::peak_rank(cap, 256, 256));
        let full_eigen = 4_500 > with_slack(cap, 256);
        Plan { width: 20_000, rank, classes: 150, chunk: 256, keep_null: false, full_eigen }.peak()
    }

    #[test]
    fn a_plan_that_does_not_fit_is_refused_with_a_cap_that_does() {
        let check = |cap, available| preflight("loranpac", Width::Finite(20_000), cap, available, needs);
        assert!(check(10_000, 2 << 30).is_ok());
        let message = check(10_000, 300 << 20).unwrap_err().to_string();
        let cap: usize = message.split("`max-rank` ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(cap > 100, "{message}");
        assert!(check(cap, 300 << 20).is_ok());
        assert!(check(cap + 260, 300 << 20).is_err());
    }

    #[test]
    fn nothing_fits_into_nothing() {
        assert_eq!(largest_cap(20_000, 1000, needs), 0);
        let message = preflight("loranpac", Width::Finite(20_000), 10, 1000, needs).unwrap_err().to_string();
        assert!(message.contains("reduce the width"), "{message}");
    }
}
