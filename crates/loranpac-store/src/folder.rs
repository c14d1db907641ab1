//! The folder of a model: the names in it, who may write to it, and how a new one comes about.
//!
//! A new model is built in a hidden folder beside its place and renamed when it is whole. The hidden folder's name depends on
//! the place alone: what a killed process has left is found and cleared by the next one that builds there.

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
/// What segments hold, as their names tell.
const KINDS: [&str; 7] = ["basis", "classes", "factors", "gram", "gone", "samples", "weights"];

/// The name of a segment that a version writes.
pub(crate) fn segment_name(version: u64, kind: &str) -> String {
    debug_assert!(KINDS.contains(&kind));
    format!("{version:08}-{kind}.safetensors")
}

/// The version that wrote a segment; None if no commit gives files such a name.
fn segment_version(name: &str) -> Option<u64> {
    let (version, kind) = name.strip_suffix(".safetensors")?.split_once('-')?;
    let number: u64 = version.parse().ok()?;
    (KINDS.contains(&kind) && version == format!("{number:08}")).then_some(number)
}

/// Where the next manifest is written.
pub(crate) fn next_manifest(folder: &Path) -> PathBuf {
    folder.join(NEXT)
}

/// Where the manifest of an earlier version is kept.
pub(crate) fn kept_manifest(folder: &Path, version: u64) -> PathBuf {
    folder.join(format!("{MANIFEST}.{version:08}"))
}

/// Makes this process the one that may write.
pub(crate) fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join(LOCK);
    let file = open_lock(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Error::Refused(format!("{} is being changed by another process; try again later", folder.display())))
        }
        Err(TryLockError::Error(source)) => Err(Error::write(&path)(source)),
    }
}

/// Kept manifests with their versions, the latest first.
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

/// Removes what no version needs any more: segments up to the given version that are not in `needed`, and a manifest that
/// never became the current one. A file with a name that no commit gives is not touched.
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

/// The names in a folder that are text; ours are.
fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let failed = Error::read(folder);
    let entries = fs::read_dir(folder).map_err(&failed)?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().into_string().ok()).map_err(&failed));
    Ok(names.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// Whether nothing is there, or an empty folder, which a new model may replace.
pub(crate) fn is_free(place: &Path) -> bool {
    match fs::symlink_metadata(place) {
        Ok(found) => found.is_dir() && fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_none()),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// A new model in the making, in a hidden folder beside its place.
pub(crate) struct Building<'a> {
    disk: &'a dyn Disk,
    place: &'a Path,
    folder: PathBuf,
    lock: Option<File>,
}

impl<'a> Building<'a> {
    /// Begins a model whose place must be free.
    pub fn begin(disk: &'a dyn Disk, place: &'a Path) -> Result<Building<'a>, Error> {
        let Some(folder) = hidden(place, "partial") else {
            return Err(Error::Refused(format!("{} does not name a folder", place.display())));
        };
        if !is_free(place) {
            return Err(Error::Exists { path: place.to_owned() });
        }
        match disk.make_folder(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            outcome => outcome.map_err(Error::write(place))?,
        }
        if !fs::symlink_metadata(&folder).is_ok_and(|found| found.is_dir()) {
            return Err(Error::Refused(format!("{} is in the way; remove it", folder.display())));
        }
        let lock = Some(lock(&folder)?);
        let building = Building { disk, place, folder, lock };
        building.clear()?;
        Ok(building)
    }

    /// Where it is until it is whole.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Puts the model in its place; gives the lock, which goes with it.
    pub fn publish(mut self) -> Result<File, Error> {
        let published = self.disk.rename(&self.folder, self.place);
        published.map_err(|source| match is_free(self.place) {
            true => Error::write(self.place)(source),
            false => Error::Exists { path: self.place.to_owned() },
        })?;
        let lock = self.lock.take();
        let unsure = |source| Error::Unsure { path: self.place.to_owned(), source };
        self.disk.sync_folder(parent(self.place)).map_err(unsure)?;
        lock.ok_or_else(|| Error::Refused("the lock of a new model is missing".to_owned()))
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
        // Nothing is left of a model that did not become whole; after `publish` there is no lock here. The lock is held until
        // everything is removed.
        let Some(_lock) = self.lock.take() else { return };
        if self.clear().is_ok() {
            let _ = remove_if_there(self.disk, &self.folder.join(LOCK));
            let _ = self.disk.remove_folder(&self.folder);
        }
    }
}
