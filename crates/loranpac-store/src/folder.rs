//! The folder of a model: file names, the writer's lock, and the creation of new models.
//!
//! A new model is built in a hidden folder next to its destination and renamed when it is complete. The hidden name
//! depends only on the destination, so that the next process that builds there finds and clears the files of a killed
//! one.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use loranpac_data::atomic::{hidden, parent};

use crate::disk::{Disk, open_lock, remove_if_there};
use crate::error::Error;

/// Name of the current manifest.
pub const MANIFEST: &str = "MANIFEST";
/// The next manifest, before it becomes the current one.
const NEXT: &str = "MANIFEST.new";
/// The file that a writer locks.
const LOCK: &str = "LOCK";
/// The kinds of segments, which are part of their names.
const KINDS: [&str; 7] = ["basis", "classes", "factors", "gram", "gone", "samples", "weights"];

/// Returns the name of a segment that a version writes.
pub(crate) fn segment_name(version: u64, kind: &str) -> String {
    debug_assert!(KINDS.contains(&kind));
    format!("{version:08}-{kind}.safetensors")
}

/// Returns the version that wrote a segment; None if the name is not that of a segment.
fn segment_version(name: &str) -> Option<u64> {
    let (version, kind) = name.strip_suffix(".safetensors")?.split_once('-')?;
    let number: u64 = version.parse().ok()?;
    (KINDS.contains(&kind) && version == format!("{number:08}")).then_some(number)
}

/// Returns the path at which the next manifest is written.
pub(crate) fn next_manifest(folder: &Path) -> PathBuf {
    folder.join(NEXT)
}

/// Returns the path of the manifest of an earlier version.
pub(crate) fn kept_manifest(folder: &Path, version: u64) -> PathBuf {
    folder.join(format!("{MANIFEST}.{version:08}"))
}

/// Acquires the writer's lock.
pub(crate) fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join(LOCK);
    let file = open_lock(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Locked { path: folder.to_owned() }),
        Err(TryLockError::Error(source)) => Err(Error::write(&path)(source)),
    }
}

/// Returns the kept manifests with their versions, the latest first.
pub(crate) fn history(folder: &Path) -> Result<Vec<(u64, PathBuf)>, Error> {
    let version = |name: &str| {
        let digits = name.strip_prefix(MANIFEST)?.strip_prefix('.')?;
        let number: u64 = digits.parse().ok()?;
        (digits == format!("{number:08}")).then_some(number)
    };
    let mut found: Vec<(u64, PathBuf)> =
        names(folder)?.iter().filter_map(|name| Some((version(name)?, folder.join(name)))).collect();
    found.sort_by(|a, b| b.cmp(a));
    Ok(found)
}

/// Removes files that no version refers to: segments up to the given version that are not in `needed`, and a manifest
/// that never became current. Files with other names are not touched.
pub(crate) fn sweep(disk: &dyn Disk, folder: &Path, version: u64, needed: impl Fn(&str) -> bool) -> Result<(), Error> {
    for name in names(folder)? {
        let ours = segment_version(&name).is_some_and(|number| number <= version);
        if (ours && !needed(&name)) || name == NEXT {
            let path = folder.join(&name);
            remove_if_there(disk, &path).map_err(Error::write(&path))?;
        }
    }
    Ok(())
}

/// Returns the names in a folder that are valid text, as all names of the store are.
fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let failed = Error::read(folder);
    let entries = fs::read_dir(folder).map_err(&failed)?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().into_string().ok()).map_err(&failed));
    Ok(names.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// Returns whether the path is free or an empty folder, which a new model may replace.
pub(crate) fn is_free(place: &Path) -> bool {
    match fs::symlink_metadata(place) {
        Ok(found) => found.is_dir() && fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_none()),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// An unpublished new model, in a hidden folder next to its destination.
pub(crate) struct Building<'a> {
    disk: &'a dyn Disk,
    place: &'a Path,
    folder: PathBuf,
    lock: Option<File>,
}

impl<'a> Building<'a> {
    /// Begins a model whose destination must be free.
    pub fn begin(disk: &'a dyn Disk, place: &'a Path) -> Result<Building<'a>, Error> {
        let folder = hidden(place, "partial").ok_or_else(|| Error::NoName { path: place.to_owned() })?;
        if !is_free(place) {
            return Err(Error::Exists { path: place.to_owned() });
        }
        match disk.make_folder(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            outcome => outcome.map_err(Error::write(place))?,
        }
        if !fs::symlink_metadata(&folder).is_ok_and(|found| found.is_dir()) {
            return Err(Error::InTheWay { path: folder });
        }
        let lock = Some(lock(&folder)?);
        let building = Building { disk, place, folder, lock };
        building.clear()?;
        Ok(building)
    }

    /// Returns the hidden folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Moves the model to its destination; returns its lock.
    pub fn publish(mut self) -> Result<Option<File>, Error> {
        let published = self.disk.rename(&self.folder, self.place);
        published.map_err(|source| match is_free(self.place) {
            true => Error::write(self.place)(source),
            false => Error::Exists { path: self.place.to_owned() },
        })?;
        let lock = self.lock.take();
        let unsure = |source| Error::NotDurable { path: self.place.to_owned(), source };
        self.disk.sync_folder(parent(self.place)).map_err(unsure)?;
        Ok(lock)
    }

    /// Removes the files of an earlier attempt.
    fn clear(&self) -> Result<(), Error> {
        sweep(self.disk, &self.folder, u64::MAX, |_| false)?;
        let current = self.folder.join(MANIFEST);
        remove_if_there(self.disk, &current).map_err(Error::write(&current))
    }
}

impl Drop for Building<'_> {
    fn drop(&mut self) {
        // An unpublished model is removed; after `publish` there is no lock here. The lock is held until everything is
        // removed.
        let Some(_lock) = self.lock.take() else { return };
        if self.clear().is_ok() {
            let _ = remove_if_there(self.disk, &self.folder.join(LOCK));
            let _ = self.disk.remove_folder(&self.folder);
        }
    }
}
