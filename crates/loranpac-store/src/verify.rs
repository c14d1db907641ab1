//! Verification of a model: every byte of the current and of all kept versions is read.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::Error;
use crate::folder::{MANIFEST, history};
use crate::load::{self, Files};
use crate::manifest::Manifest;
use crate::session::{OPEN_RETRIES, Session, no_model};

/// The result of [`Session::verify`].
#[derive(Debug, Default)]
pub struct Verified {
    /// Files that were read.
    pub files: usize,
    /// Their bytes, manifests aside.
    pub bytes: u64,
    /// Files whose contents are damaged.
    pub damage: Vec<Error>,
    /// Files that could not be read, whose state is unknown.
    pub unreadable: Vec<Error>,
    /// Files that a newer program has written.
    pub newer: Vec<Error>,
    seen: BTreeSet<String>,
}

impl Verified {
    /// Returns whether every byte was read and matches its checksum.
    pub fn is_whole(&self) -> bool {
        self.problems().next().is_none()
    }

    /// Returns all problems.
    pub fn problems(&self) -> impl Iterator<Item = &Error> {
        self.damage.iter().chain(&self.unreadable).chain(&self.newer)
    }

    fn add(&mut self, error: Error) {
        match error {
            Error::Version { .. } => self.newer.push(error),
            Error::Read(_) => self.unreadable.push(error),
            _ => self.damage.push(error),
        }
    }

    /// Reads all files of a manifest.
    fn read(&mut self, folder: &Path, manifest: &Manifest) {
        let before = self.problems().count();
        for (name, entry) in &manifest.files {
            if !self.seen.insert(name.clone()) {
                continue;
            }
            self.files += 1;
            self.bytes = self.bytes.saturating_add(entry.bytes);
            let outcome = load::segment(folder, manifest, name).and_then(|segment| segment.check(entry));
            outcome.err().into_iter().for_each(|error| self.add(error));
        }
        let whole = Files::open(folder, manifest).and_then(|files| {
            load::check(&files, manifest)?;
            let mut model = load::model(&files, manifest)?;
            load::restore_classifier(&files, manifest, &mut model)
        });
        // A damaged file has been reported already.
        whole.err().filter(|_| self.problems().count() == before).into_iter().for_each(|error| self.add(error));
    }
}

impl Session {
    /// Reads every byte of the model and of its kept versions, and reports all problems.
    pub fn verify(folder: &Path) -> Result<Verified, Error> {
        let version = || Manifest::read(&folder.join(MANIFEST)).map_or(0, |manifest| manifest.version);
        let mut before = version();
        for _ in 0..OPEN_RETRIES {
            let report = verify_once(folder)?;
            let after = version();
            // A writer has replaced the model, and removed files of the version that was read.
            if report.is_whole() || after == before {
                return Ok(report);
            }
            before = after;
        }
        verify_once(folder)
    }
}

fn verify_once(folder: &Path) -> Result<Verified, Error> {
    let mut report = Verified::default();
    let current = folder.join(MANIFEST);
    if !folder.is_dir() || std::fs::symlink_metadata(&current).is_err() {
        return Err(no_model(folder));
    }
    // A manifest of this version or a later one was left by an interrupted commit.
    let version = Manifest::read(&current).map_or(u64::MAX, |manifest| manifest.version);
    let old = history(folder)?.into_iter().filter(|(old, _)| *old < version);
    let old = old.map(|(version, path)| Manifest::read_kept(&path, version));
    for manifest in std::iter::once_with(|| Manifest::read(&current)).chain(old) {
        report.files += 1;
        match manifest {
            Ok(manifest) => report.read(folder, &manifest),
            Err(error) => report.add(error),
        }
    }
    Ok(report)
}
