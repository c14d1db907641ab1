//! Calls of decoders of other crates, whose panics become errors.
//!
//! Such a decoder may panic on a damaged file. A program that does not want these panics printed checks [`is_fenced`] in
//! its panic hook; a library must not install one.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static FENCED: Cell<bool> = const { Cell::new(false) };
}

/// A decoder panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the decoder failed: the file is damaged")]
pub struct Panicked;

/// Calls a decoder. What it could have left half done must be dropped after an error.
///
/// # Errors
/// If it panics.
pub fn fenced<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    let before = FENCED.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(call));
    FENCED.set(before);
    outcome.map_err(|_| Panicked)
}

/// Marks this thread as one that only runs decoders, and whose panics another thread catches.
pub fn fence_thread() {
    FENCED.set(true);
}

/// Whether this thread runs a decoder, whose panics become errors.
pub fn is_fenced() -> bool {
    FENCED.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_and_the_fence_ends() {
        assert_eq!(fenced(|| fenced(is_fenced)), Ok(Ok(true)));
        let nested = fenced(|| {
            let inner: Result<(), Panicked> = fenced(|| std::panic::resume_unwind(Box::new("damaged")));
            (inner, is_fenced())
        });
        assert_eq!(nested, Ok((Err(Panicked), true)));
        assert!(!is_fenced());
    }
}
