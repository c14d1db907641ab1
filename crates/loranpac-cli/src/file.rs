//! Files that a command writes: replaced atomically, unless the path is a device or a pipe.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use loranpac_data::AtomicFile;
use loranpac_store::output;

/// A file that a command writes.
pub struct Target {
    path: PathBuf,
    kind: Kind,
}

enum Kind {
    Atomic(AtomicFile),
    /// A device or a pipe, which a rename would replace.
    Direct(File),
}

impl Target {
    pub fn create(path: &Path) -> Result<Target> {
        let kind = if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            let file = File::options().write(true).open(path);
            Kind::Direct(file.with_context(|| format!("cannot write {}", path.display()))?)
        } else {
            Kind::Atomic(output::create(path)?)
        };
        Ok(Target { path: path.to_owned(), kind })
    }

    /// Completes the file.
    pub fn finish(self) -> Result<()> {
        match self.kind {
            Kind::Atomic(file) => file.replace(),
            Kind::Direct(mut file) => file.flush(),
        }
        .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// Writes a whole file.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    let mut file = Target::create(path)?;
    file.write_all(contents.as_ref()).with_context(|| format!("cannot write {}", path.display()))?;
    file.finish()
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.kind {
            Kind::Atomic(file) => file.write(bytes),
            Kind::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.kind {
            Kind::Atomic(file) => file.flush(),
            Kind::Direct(file) => file.flush(),
        }
    }
}
