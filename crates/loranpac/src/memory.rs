//! What a model will need, before anything is allocated.

use std::cell::Cell;

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
    /// Whether null directions are kept (`drop = 0`), which takes slower factorisations with copies.
    pub keep_null: bool,
    /// Whether the Gram matrix is ever decomposed in full (compressions, or the `paper` schedule).
    pub full_eigen: bool,
}

impl Plan {
    /// Bytes at the worst moment: Q, S and N, J and W, and either one chunk of lifted samples with its coordinates or
    /// a factorisation, whichever is larger. The lift comes on top.
    pub fn peak(&self) -> usize {
        let Plan { width, rank, classes, chunk, .. } = *self;
        let square = product(&[8, rank, rank]);
        let copies = if self.keep_null { 3 } else { 1 };
        let absorb = product(&[copies, 4, width, chunk]).saturating_add(product(&[4, 8, rank, chunk]));
        let factorise = if self.full_eigen {
            square.saturating_mul(4)
        } else {
            // Rows of N, the rotations, and the reflections of the second stage of the reduction.
            sum(&[product(&[3, 8, rank, classes]), ROTATIONS, square / 2])
        };
        let factorise = if self.keep_null { factorise.saturating_add(square) } else { factorise };
        sum(&[
            Basis::<f32>::bytes_for(width, rank),
            square.saturating_add(product(&[8, rank, classes.saturating_add(256)])),
            product(&[2, 4, width, classes]),
            absorb.max(factorise),
        ])
    }

    /// The most directions that a basis capped at `cap` has at any time: it is compressed after it has outgrown its
    /// slack, by at most `step` samples (a chunk, or a whole task in the paper schedule).
    pub fn peak_rank(cap: usize, chunk: usize, step: usize) -> usize {
        with_slack(cap, chunk).saturating_add(step)
    }
}

/// The rank at which a basis capped at `cap` is compressed: the slack spreads the cost over many tasks.
pub fn with_slack(cap: usize, chunk: usize) -> usize {
    cap.saturating_add((cap / 4).max(chunk))
}

/// Whether a filter ever needs the eigenvectors in full.
pub fn needs_full_eigen(filter: Filter, paper_schedule: bool, compresses: bool) -> bool {
    compresses || (paper_schedule && matches!(filter, Filter::Hard { .. }))
}

/// The largest cap r_max up to `most` for which `needs(cap)` fits into `bytes`; 0 if none does.
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

/// Refuses if a method needs more than the `available` bytes with its cap; `needs` tells for any cap.
pub fn preflight(
    method: &str,
    width: usize,
    cap: usize,
    available: usize,
    needs: impl Fn(usize) -> usize,
) -> Result<(), Error> {
    let needed = needs(cap);
    if needed <= available {
        return Ok(());
    }
    if width == usize::MAX {
        let advice = match largest_cap(cap, available, needs) {
            0 => "there is room for none".to_owned(),
            samples => format!("keep fewer, with --max-rank {samples} or less"),
        };
        return Err(Error::Memory(format!(
            "{method} at infinite width keeps samples and needs about {}, but {} are available: {advice}",
            human_bytes(needed),
            human_bytes(available),
        )));
    }
    let advice = match largest_cap(cap.min(width), available, needs) {
        0 => "reduce the width".to_owned(),
        rank => format!("cap the basis with --max-rank {rank} or less, or reduce the width"),
    };
    Err(Error::Memory(format!(
        "{method} at width {width} needs about {}, but {} are available: {advice}",
        human_bytes(needed),
        human_bytes(available),
    )))
}

/// What a process may still take. The engine reads no files: the caller finds out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Room {
    /// Bytes that can be used without swapping, if that is known.
    pub available: Option<usize>,
    /// Address space that each thread takes besides for products of matrices; little of it is ever touched.
    pub scratch: usize,
}

impl Room {
    /// Refuses work that needs more than there is: `{what} needs about X, but Y are available: {advice}`. To be called on the
    /// threads that will do the work.
    ///
    /// The system is asked as well, because it may limit the address space (`ulimit -v`) or refuse to overcommit. What is
    /// reserved for that is given back at once and never touched, so it costs nothing.
    pub fn ensure(&self, needed: usize, what: &str, advice: &str) -> Result<(), Error> {
        let reason = match self.available {
            Some(available) if needed > available => format!(", but {} are available", human_bytes(available)),
            _ if self.grants(needed) => return Ok(()),
            _ => {
                let (threads, scratch) = (rayon::current_num_threads(), human_bytes(self.scratch));
                format!(" and {threads} x {scratch} of address space for its threads, which the system refuses")
            }
        };
        Err(Error::Memory(format!("{what} needs about {}{reason}: {advice}", human_bytes(needed))))
    }

    /// Whether the system gives `needed` bytes and the scratch space of all threads, in pieces as they will be asked for.
    fn grants(&self, needed: usize) -> bool {
        let pieces = std::iter::once(needed).chain((0..rayon::current_num_threads()).map(|_| self.scratch));
        // Held together until the last has been given.
        let held: Result<Vec<Vec<u8>>, Error> = pieces.map(reserve).collect();
        held.is_ok()
    }
}

thread_local! {
    /// Whether an allocation of this thread may fail; see [`may_fail`].
    static MAY_FAIL: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in [`reserve`], and copes with an allocation that fails. For allocators that end the process where
/// nobody does.
pub fn may_fail() -> bool {
    MAY_FAIL.get()
}

/// An empty vector with room for `count` elements, or an error where there is no memory for them. For sizes that come from a
/// user or a file.
pub fn reserve<T>(count: usize) -> Result<Vec<T>, Error> {
    let mut room = Vec::new();
    grow(&mut room, count)?;
    Ok(room)
}

/// Makes room for `more` elements in a vector, or fails and leaves it as it is.
pub fn grow<T>(vector: &mut Vec<T>, more: usize) -> Result<(), Error> {
    MAY_FAIL.set(true);
    let outcome = vector.try_reserve(more);
    MAY_FAIL.set(false);
    outcome.map_err(|_| {
        let bytes = vector.len().saturating_add(more).saturating_mul(size_of::<T>());
        Error::Memory(format!("there is no memory for {}", human_bytes(bytes)))
    })
}

/// A product that stops at the largest number instead of overflowing: plans may be absurd.
pub fn product(factors: &[usize]) -> usize {
    factors.iter().fold(1, |product: usize, &factor| product.saturating_mul(factor))
}

/// A sum that stops at the largest number.
pub fn sum(terms: &[usize]) -> usize {
    terms.iter().fold(0, |sum: usize, &term| sum.saturating_add(term))
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

    fn needs(cap: usize) -> usize {
        let rank = 4_500.min(Plan::peak_rank(cap, 256, 256));
        let full_eigen = 4_500 > with_slack(cap, 256);
        Plan { width: 20_000, rank, classes: 150, chunk: 256, keep_null: false, full_eigen }.peak()
    }

    #[test]
    fn a_plan_that_does_not_fit_is_refused_with_a_cap_that_does() {
        let check = |cap, available| preflight("loranpac", 20_000, cap, available, needs);
        assert!(check(10_000, 2 << 30).is_ok());
        let message = check(10_000, 300 << 20).unwrap_err().to_string();
        let cap: usize = message.split("--max-rank ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(cap > 100, "{message}");
        assert!(check(cap, 300 << 20).is_ok());
        assert!(check(cap + 260, 300 << 20).is_err());
    }

    #[test]
    fn work_is_refused_by_what_is_available_and_by_the_system() {
        let room = Room { available: Some(1 << 20), scratch: 1 << 10 };
        assert!(room.ensure(1 << 20, "it", "wait").is_ok());
        let message = room.ensure(2 << 20, "learning", "take less").unwrap_err().to_string();
        assert_eq!(message, "learning needs about 2 MiB, but 1 MiB are available: take less");
        // No system gives half of the address space, whatever is said to be available.
        for (needed, scratch) in [(usize::MAX / 2, 0), (1, usize::MAX / 2), (usize::MAX, 0)] {
            let message = Room { available: None, scratch }.ensure(needed, "it", "wait").unwrap_err().to_string();
            assert!(message.contains("the system refuses"), "{message}");
        }
    }

    #[test]
    fn a_vector_that_cannot_grow_is_left_as_it_is() {
        let mut numbers = vec![1.0f32, 2.0];
        for more in [usize::MAX / 8, usize::MAX] {
            assert!(matches!(grow(&mut numbers, more), Err(Error::Memory(_))));
            assert_eq!(numbers, [1.0, 2.0]);
        }
        assert!(!may_fail());
    }

    #[test]
    fn nothing_fits_into_nothing() {
        assert_eq!(largest_cap(20_000, 1000, needs), 0);
        let message = preflight("loranpac", 20_000, 10, 1000, needs).unwrap_err().to_string();
        assert!(message.contains("reduce the width"), "{message}");
    }
}
