//! Calls of the decoder, whose panics become errors.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::errors::ParquetError;

thread_local! {
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs the decoder, whose panics become errors. A program that does not want them printed checks
/// this in its panic hook; a library must not install one.
pub fn is_decoding() -> bool {
    DECODING.get()
}

/// Calls the decoder. It panics on some damaged pages; such a panic is an error of the file.
pub(super) fn fenced<T>(call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    DECODING.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(call));
    DECODING.set(false);
    match outcome {
        Ok(result) => result.map_err(|e| e.to_string()),
        Err(_) => Err("the decoder failed: the file is damaged".to_owned()),
    }
}
