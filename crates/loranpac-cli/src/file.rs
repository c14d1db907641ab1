//! Files that a command writes: never seen half-written where there can be a file beside them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use loranpac_store::AtomicFile;

/// Writes a text file.
pub fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// A file that appears when it is whole, or something that is not a regular file and is written to as it is: a rename
/// would replace a device or a pipe.
pub enum Target {
    Atomic(AtomicFile),
    Direct(File),
}

impl Target {
    pub fn create(path: &Path) -> Result<Target> {
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            let file = File::options().write(true).open(path);
            return Ok(Target::Direct(file.with_context(|| format!("cannot write {}", path.display()))?));
        }
        // The file that a link leads to is replaced, not the link.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        Ok(Target::Atomic(AtomicFile::create(&place)?))
    }

    /// Puts the file in its place.
    pub fn finish(self) -> Result<()> {
        match self {
            Target::Atomic(file) => Ok(file.replace()?),
            Target::Direct(mut file) => Ok(file.flush()?),
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::Atomic(file) => file.write(bytes),
            Target::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Atomic(file) => file.flush(),
            Target::Direct(file) => file.flush(),
        }
    }
}
