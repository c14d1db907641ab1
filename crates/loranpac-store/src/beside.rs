//! Files that are never seen half-written: they grow beside their place and are renamed when they are whole.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::disk::{Disk, Output, RealDisk, open_lock, open_regular, remove_if_there};
use crate::error::Error;
use crate::folder::{MANIFEST, hidden, parent};
use crate::manifest::MAGIC;

/// A file under a temporary name; dropped, it is removed.
///
/// The name depends on the place alone, so that what a killed process has left is found and replaced by the next one that
/// writes there.
pub struct AtomicFile {
    disk: Box<dyn Disk>,
    place: PathBuf,
    name: PathBuf,
    file: Option<BufWriter<Box<dyn Output>>>,
    replaced: bool,
    /// Held as long as this is the process that writes there.
    _lock: File,
}

impl AtomicFile {
    /// Begins a file that shall be at `place`, which must not be inside a model.
    pub fn create(place: &Path) -> Result<AtomicFile, Error> {
        AtomicFile::create_on(Box::new(RealDisk), place)
    }

    /// The same on any disk.
    pub fn create_on(disk: Box<dyn Disk>, place: &Path) -> Result<AtomicFile, Error> {
        let place = &target(place)?;
        let Some(name) = hidden(place, "partial") else {
            return Err(Error::Refused(format!("{} does not name a file", place.display())));
        };
        refuse_inside_model(place)?;
        let busy = || Error::Refused(format!("{} is being written by another process", place.display()));
        if fs::symlink_metadata(&name).is_ok() {
            let left = open_lock(&name)?;
            match left.try_lock() {
                Err(TryLockError::WouldBlock) => return Err(busy()),
                Err(TryLockError::Error(source)) => return Err(Error::write(place)(source)),
                // Another process may have replaced it between the two calls.
                Ok(()) if !is_same_file(&left, &name) => return Err(busy()),
                Ok(()) => remove_if_there(&*disk, &name).map_err(Error::write(place))?,
            }
        }
        let file = disk.create(&name).map_err(Error::write(place))?;
        let lock = open_regular(&name)?;
        lock.try_lock().map_err(|_| busy())?;
        if !is_same_file(&lock, &name) {
            return Err(busy());
        }
        let file = Some(BufWriter::with_capacity(1 << 20, file));
        Ok(AtomicFile { disk, place: place.to_owned(), name, file, replaced: false, _lock: lock })
    }

    /// Brings everything to the disk, so that what is left to do can hardly fail.
    pub fn sync(&mut self) -> Result<(), Error> {
        match &mut self.file {
            Some(file) => file.flush().and_then(|()| file.get_mut().sync()).map_err(Error::write(&self.place)),
            None => Ok(()),
        }
    }

    /// Puts the file in its place.
    pub fn replace(mut self) -> Result<(), Error> {
        self.sync()?;
        self.disk.rename(&self.name, &self.place).map_err(Error::write(&self.place))?;
        self.replaced = true;
        // The new name outlives a power cut only if the folder is on the disk as well; not every system can do that.
        let _ = self.disk.sync_folder(parent(&self.place));
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // What is buffered must not be written any more.
        if let Some(file) = self.file.take() {
            drop(file.into_parts());
        }
        // After `replace`, a file of this name is another process's.
        if !self.replaced {
            let _ = remove_if_there(&*self.disk, &self.name);
        }
    }
}

/// Whether a name still means the file that is open; where that cannot be told, it does.
fn is_same_file(file: &File, name: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let identity = |found: fs::Metadata| (found.dev(), found.ino());
        file.metadata().ok().map(identity) == fs::symlink_metadata(name).ok().map(identity)
    }
    #[cfg(not(unix))]
    {
        let _ = (file, name);
        true
    }
}

/// The place itself, or what a link there points to: a new name would replace the link, and a device must stay one.
fn target(place: &Path) -> Result<PathBuf, Error> {
    let real = match fs::symlink_metadata(place) {
        Ok(found) if found.is_symlink() => fs::canonicalize(place).map_err(Error::write(place))?,
        _ => place.to_owned(),
    };
    match fs::metadata(&real) {
        Ok(found) if !found.is_file() => Err(Error::Refused(format!("{} is not a regular file", place.display()))),
        _ => Ok(real),
    }
}

/// Refuses to write into the folder of a model, where only the store writes.
fn refuse_inside_model(place: &Path) -> Result<(), Error> {
    let folder = parent(place);
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    if real.ancestors().any(is_model) {
        let reason = "is inside a model's folder, where only loranpac itself writes; give another place";
        return Err(Error::Refused(format!("{} {reason}", place.display())));
    }
    Ok(())
}

/// Whether a folder is a model: by its name, or by its manifest.
fn is_model(folder: &Path) -> bool {
    let starts = || {
        let mut start = [0; MAGIC.len()];
        let read = open_regular(&folder.join(MANIFEST)).is_ok_and(|mut file| file.read_exact(&mut start).is_ok());
        read && start == MAGIC.as_bytes()
    };
    folder.extension().is_some_and(|e| e == "lrp") || starts()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_at_the_place_until_the_file_is_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a.bin");
        let mut file = AtomicFile::create(&place).unwrap();
        file.write_all(b"half").unwrap();
        assert!(!place.exists());
        assert!(AtomicFile::create(&place).is_err(), "two cannot write the same file");
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        // What a killed process has left.
        fs::write(hidden(&place, "partial").unwrap(), "left").unwrap();
        let mut file = AtomicFile::create(&place).unwrap();
        file.write_all(b"whole").unwrap();
        file.replace().unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn nothing_is_written_into_a_model() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("m.lrp");
        fs::create_dir(&model).unwrap();
        let refused = AtomicFile::create(&model.join("MANIFEST")).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("inside a model"), "{refused}");
    }
}
