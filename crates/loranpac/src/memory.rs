//! Memory before it is allocated: what the machine has left, fallible reservations, and sizes for messages.

use std::cell::Cell;

use crate::error::Error;

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
}
