//! What every target does: read the bytes as samples, and hold the reader to its promises.

#[path = "../../crates/loranpac-eval/tests/files/promises.rs"]
mod promises;

pub use promises::check;
