//! Earlier versions of a model: which ones are kept, and rollback to one of them.

use std::fs;
use std::path::Path;

use loranpac::internals::Delta;

use crate::commit;
use crate::disk::{Disk, RealDisk, remove_if_there};
use crate::error::Error;
use crate::folder::{self, MANIFEST, lock};
use crate::load::Files;
use crate::manifest::Manifest;
use crate::session::{Home, Session, no_model};

/// The result of [`Session::rollback`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Rolled {
    /// The model was rolled back to this version.
    Back(u64),
    /// The model already had the contents of this version; nothing has changed.
    Already(u64),
}

impl Session {
    /// Returns the kept earlier versions that can be read, the latest first.
    pub fn history(&self) -> Vec<Manifest> {
        let kept = self.home.as_ref().and_then(|home| folder::history(&home.folder).ok()).unwrap_or_default();
        kept.into_iter().filter_map(|(version, path)| Manifest::read_kept(&path, version).ok()).collect()
    }

    /// Deletes the earlier versions, and the files that only they refer to.
    pub fn drop_history(&mut self) -> Result<(), Error> {
        let Home { folder, disk, .. } = self.writable()?;
        for (_, path) in folder::history(folder)? {
            remove_if_there(&**disk, &path).map_err(Error::write(&path))?;
        }
        commit::collect(&**disk, folder, &self.manifest)?;
        disk.sync_folder(folder).map_err(Error::write(folder))
    }

    /// Opens a model for a rollback: the current version may be damaged or missing.
    pub fn open_to_roll_back(folder: &Path) -> Result<Session, Error> {
        Session::open_to_roll_back_on(Box::new(RealDisk), folder)
    }

    /// Like [`Session::open_to_roll_back`], on any disk.
    pub fn open_to_roll_back_on(disk: Box<dyn Disk>, folder: &Path) -> Result<Session, Error> {
        let current = folder.join(MANIFEST);
        let history = if folder.is_dir() { folder::history(folder)? } else { Vec::new() };
        if fs::symlink_metadata(&current).is_err() && history.is_empty() {
            return Err(no_model(folder));
        }
        let lock = lock(folder)?;
        let manifest = match Manifest::read(&current) {
            Ok(manifest) => {
                // An interrupted commit may have left files; those that cannot be removed are harmless.
                let _ = commit::collect(&*disk, folder, &manifest);
                manifest
            }
            // A newer program can read it, and the unreadable version may be intact.
            Err(error @ Error::Version { .. }) => return Err(error),
            Err(Error::Read(error)) if !error.is_missing() => return Err(error.into()),
            Err(error) => {
                let newest = history.iter().find_map(|(version, path)| Manifest::read_kept(path, *version).ok());
                let old = newest.ok_or(error)?;
                Manifest { version: old.version + 1, restored: None, contents: None, ..old }
            }
        };
        let folder = folder.to_owned();
        let home = Home { folder, disk, files: Files::default(), lock: Some(lock), checked: false };
        Ok(Session { manifest, model: None, delta: Delta::default(), home: Some(home) })
    }

    /// Rolls back to an earlier version, which becomes the newest. Without a version, each call goes one version
    /// further back, through all versions that are kept. Until the next change, the versions that were rolled back are
    /// kept as well.
    pub fn rollback(&mut self, version: Option<u64>) -> Result<Rolled, Error> {
        let folder = self.writable()?.folder.clone();
        let current = self.manifest.state();
        let kept: Vec<Manifest> =
            self.history().into_iter().filter(|old| old.version < self.manifest.version).collect();
        let same = |version: &u64| {
            *version == current
                || *version == self.manifest.version
                || Some(*version) == self.manifest.restored
                || kept.iter().any(|old| old.version == *version && old.state() == current)
        };
        if let Some(version) = version.filter(same) {
            return Ok(Rolled::Already(version));
        }
        let old = match version {
            Some(version) => {
                let exact = kept.iter().find(|old| old.version == version);
                exact.or_else(|| kept.iter().find(|old| old.state() == version))
            }
            None => kept.iter().filter(|old| old.state() < current).max_by_key(|old| old.state()),
        };
        let Some(old) = old.cloned() else {
            // The version may exist, but be damaged.
            for (number, path) in folder::history(&folder)? {
                if version.is_none_or(|version| version == number) && number < self.manifest.version {
                    Manifest::read_kept(&path, number)?;
                }
            }
            return Err(Error::NotKept { version, kept: kept.iter().map(|old| old.version).collect() });
        };
        let found = old.version;
        let files = Files::open(&folder, &old)?;
        files.check(&old)?;
        (self.model, self.delta) = (None, Delta::default());
        let (version, keep) = (self.manifest.version, self.manifest.keep);
        let contents = Some(old.state()).filter(|contents| *contents != found);
        let manifest = Manifest { version, keep, restored: Some(found), contents, ..old };
        let Some(home) = &mut self.home else { return Ok(Rolled::Already(found)) };
        let outcome = commit::write_manifest(&*home.disk, &home.folder, manifest);
        if outcome.is_err() {
            home.lock = None;
        }
        self.manifest = outcome?;
        (home.files, home.checked) = (files, false);
        Ok(Rolled::Back(found))
    }

    /// Returns the folder, if this session may write to it.
    fn writable(&self) -> Result<&Home, Error> {
        let home = self.home.as_ref().ok_or(Error::NoFolder)?;
        home.check_writable()?;
        Ok(home)
    }
}
