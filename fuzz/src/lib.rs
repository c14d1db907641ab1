//! What every target does: read the bytes as samples, and hold the reader to its promises.

#[path = "../../crates/loranpac-data/tests/files/promises.rs"]
mod promises;

use std::path::PathBuf;

pub use promises::check;

/// A file with these bytes, for readers that want one.
pub fn file(target: &str, data: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("loranpac-fuzz-{target}-{}", std::process::id()));
    std::fs::write(&path, data).unwrap();
    path
}
