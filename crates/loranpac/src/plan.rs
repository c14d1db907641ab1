//! Memory estimates of a model, before anything is allocated.

use crate::basis::{Basis, SANDWICH, STRIP};
use crate::classifier::CHUNK;
use crate::error::Error;
use crate::memory::{human_bytes, product, sum};
use crate::width::Width;

/// Most bytes of the rotations that the hard filter holds at a time, with their checkpoints. All rotations of r directions take
/// about 14 r^2 bytes, in memory that doubles as it grows.
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
    /// Whether all eigenvectors of S are ever needed at once (the `paper` schedule).
    pub full_eigen: bool,
    /// The rank to which the basis is compressed, if it ever is.
    pub compressed: Option<usize>,
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
        // Rows of N, the rotations, and the reflections of the second stage of the reduction.
        let factorise = sum(&[product(&[3, 8, rank, classes]), ROTATIONS.min(square.saturating_mul(4)), square / 2]);
        // Reflections, both halves of the eigenvectors of the tridiagonal matrix, and eigenvectors of S, some at a time.
        let decompose = |kept: usize| sum(&[square / 2, square / 2, product(&[5, 8, rank, STRIP.min(kept)])]);
        let factorise = match (self.full_eigen, self.compressed) {
            (true, _) => factorise.max(decompose(rank).saturating_add(square)),
            (false, Some(kept)) => factorise.max(decompose(kept).saturating_add(product(&[4, rank, kept]))),
            (false, None) => factorise,
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
        basis_with_slack(cap, chunk).saturating_add(step)
    }
}

/// Numbers by which the slack of a basis may enlarge half of the square of S: 0.4 GB.
const SLACK: usize = 50_000_000;

/// Returns the rank above which a basis capped at `cap` is compressed.
///
/// A slack of x times the cap costs `x / 2` more to learn each sample, and compressions cost `(1 + x) / x` and, for S,
/// `(1 + x)^3 / x`: least for x about 0.6. For caps of more than 9,000 memory limits the slack.
pub fn basis_with_slack(cap: usize, chunk: usize) -> usize {
    let slack = (cap - cap / 5 * 2).min(SLACK / cap.max(1));
    cap.saturating_add(slack.max(chunk))
}

/// Returns the number of samples above which those of a model that keeps at most `cap` are evicted: the slack spreads the
/// cost over many tasks.
pub fn with_slack(cap: usize, chunk: usize) -> usize {
    cap.saturating_add((cap / 4).max(chunk))
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
        let compressed = (4_500 > basis_with_slack(cap, 256)).then_some(cap);
        let plan =
            Plan { width: 20_000, rank, classes: 150, chunk: 256, keep_null: false, full_eigen: false, compressed };
        plan.peak()
    }

    #[test]
    fn the_sizes_of_the_paper_fit_into_16_and_22_gib() {
        for (cap, classes, gib, samples) in [(10_000, 100, 16, 50_000), (20_000, 300, 22, 89_697)] {
            let rank = Plan::peak_rank(cap, 256, 256);
            assert!(rank < samples);
            let compressed = Some(cap);
            let plan =
                Plan { width: 100_000, rank, classes, chunk: 256, keep_null: false, full_eigen: false, compressed };
            // With the projection and the features of all samples.
            let needed = plan.peak() + 4 * 768 * (100_000 + samples);
            assert!(needed < gib << 30, "r_max = {cap}: {}", human_bytes(needed));
        }
    }

    #[test]
    fn a_larger_cap_is_never_compressed_earlier() {
        let at = |cap| basis_with_slack(cap, 256);
        assert!((1..60_000).all(|cap| at(cap) <= at(cap + 1) && at(cap) >= cap + 256));
        assert_eq!((at(1), at(10_000), at(20_000)), (257, 15_000, 22_500));
        assert_eq!(at(usize::MAX), usize::MAX);
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
