//! Memory checks before allocation: available memory, fallible reservations, and sizes for messages.

use std::cell::Cell;

use crate::error::Error;

/// One part in this many of the available memory is left free by what is planned ahead.
const SPARE: usize = 5;

/// The memory that a process may still allocate. The engine reads no files, so the caller provides it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Room {
    /// Bytes that can be used without swapping, if known.
    pub available: Option<usize>,
    /// Additional address space of each thread for matrix products; little of it is ever touched.
    pub scratch: usize,
}

impl Room {
    /// Refuses work that needs more than there is: `{what} needs about X, but Y are available: {advice}`. Must be
    /// called on the threads that will do the work.
    ///
    /// The allocator is probed as well, because the system may limit the address space (`ulimit -v`) or refuse to
    /// overcommit. The probe is released at once and never touched, so it costs nothing.
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

    /// Returns whether there is memory for work that is planned ahead: a part is left free, because less may be available by then.
    /// Must be called on the threads that will do the work.
    pub fn suffices(&self, needed: usize) -> bool {
        self.available.is_none_or(|available| needed <= available - available / SPARE) && self.grants(needed)
    }

    /// Returns whether the system grants `needed` bytes and the scratch space of all threads, in the pieces in which
    /// they will be allocated.
    fn grants(&self, needed: usize) -> bool {
        let pieces = std::iter::once(needed).chain((0..rayon::current_num_threads()).map(|_| self.scratch));
        // All pieces are held until the last one is granted.
        let held: Result<Vec<Vec<u8>>, Error> = pieces.map(reserve).collect();
        held.is_ok()
    }
}

thread_local! {
    /// Whether an allocation of this thread may fail; see [`may_fail`].
    static MAY_FAIL: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread is in [`reserve`], which handles a failed allocation. For allocators that end the
/// process on other failures.
pub fn may_fail() -> bool {
    MAY_FAIL.get()
}

/// Creates an empty vector with capacity for `count` elements, or returns an error if there is no memory for them. For
/// sizes that come from a user or a file.
pub fn reserve<T>(count: usize) -> Result<Vec<T>, Error> {
    let mut room = Vec::new();
    grow(&mut room, count)?;
    Ok(room)
}

/// Reserves capacity for `more` elements; on an error the vector does not change.
pub fn grow<T>(vector: &mut Vec<T>, more: usize) -> Result<(), Error> {
    MAY_FAIL.set(true);
    let outcome = vector.try_reserve(more);
    MAY_FAIL.set(false);
    outcome.map_err(|_| {
        let bytes = vector.len().saturating_add(more).saturating_mul(size_of::<T>());
        Error::Memory(format!("there is no memory for {}", human_bytes(bytes)))
    })
}

/// Returns a product that saturates instead of overflowing: planned sizes may be absurd.
pub fn product(factors: &[usize]) -> usize {
    factors.iter().fold(1, |product: usize, &factor| product.saturating_mul(factor))
}

/// Returns a sum that saturates instead of overflowing.
pub fn sum(terms: &[usize]) -> usize {
    terms.iter().fold(0, |sum: usize, &term| sum.saturating_add(term))
}

/// Formats a number of bytes for people.
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

    #[test]
    fn work_is_refused_by_what_is_available_and_by_the_system() {
        let room = Room { available: Some(1 << 20), scratch: 1 << 10 };
        assert!(room.ensure(1 << 20, "it", "wait").is_ok());
        let message = room.ensure(2 << 20, "learning", "take less").unwrap_err().to_string();
        assert_eq!(message, "learning needs about 2 MiB, but 1 MiB are available: take less");
        assert!(room.suffices(800 << 10) && !room.suffices(900 << 10));
        // No system grants half of the address space, whatever is reported as available.
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
}
