//! Files that are replaced atomically: they are written under a temporary name and renamed when they are complete.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::disk::{Disk, Output, RealDisk, open_lock, open_regular, remove_if_there};

/// A file under a temporary name. Dropping it removes the file; [`AtomicFile::replace`] renames it.
///
/// The temporary name depends only on the final name, so the next process that writes there finds and replaces what a
/// killed process left behind.
pub struct AtomicFile {
    disk: Box<dyn Disk>,
    place: PathBuf,
    name: PathBuf,
    file: Option<BufWriter<Box<dyn Output>>>,
    replaced: bool,
    /// Held while this process writes the file.
    _lock: File,
}

impl AtomicFile {
    /// Starts a file that will replace `place`. If `place` is a link, its target is replaced.
    ///
    /// Fails with [`io::ErrorKind::ResourceBusy`] while another process writes the same file.
    pub fn create(place: &Path) -> io::Result<AtomicFile> {
        AtomicFile::create_on(Box::new(RealDisk), place)
    }

    /// Like [`AtomicFile::create`], on any disk.
    pub fn create_on(disk: Box<dyn Disk>, place: &Path) -> io::Result<AtomicFile> {
        let place = target(place)?;
        let Some(name) = hidden(&place, "partial") else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it does not name a file"));
        };
        if fs::symlink_metadata(&name).is_ok() {
            let left = open_lock(&name)?;
            lock(&left, &name)?;
            remove_if_there(&*disk, &name)?;
        }
        let file = disk.create(&name)?;
        let own = open_regular(&name)?;
        lock(&own, &name)?;
        let file = Some(BufWriter::with_capacity(1 << 20, file));
        Ok(AtomicFile { disk, place, name, file, replaced: false, _lock: own })
    }

    /// Flushes and syncs everything written so far, so that [`AtomicFile::replace`] can hardly fail.
    pub fn sync(&mut self) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.flush().and_then(|()| file.get_mut().sync()),
            None => Ok(()),
        }
    }

    /// Syncs the file and renames it to its final name.
    pub fn replace(mut self) -> io::Result<()> {
        self.sync()?;
        self.disk.rename(&self.name, &self.place)?;
        self.replaced = true;
        // The new name survives a power cut only if the folder is synced as well; not every system supports that.
        let _ = self.disk.sync_folder(parent(&self.place));
        Ok(())
    }
}

/// Replaces the contents of a file atomically.
pub fn write(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(place)?;
    file.write_all(bytes)?;
    file.replace()
}

/// A hidden name in the same folder, determined by `place` and `ending`. None if `place` has no file name.
pub fn hidden(place: &Path, ending: &str) -> Option<PathBuf> {
    let mut name = OsString::from(".");
    name.push(place.file_name()?);
    name.push(format!(".{ending}"));
    Some(place.with_file_name(name))
}

/// The folder that contains a path.
pub fn parent(place: &Path) -> &Path {
    place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
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
        // Discard the buffer: its contents must not be written any more.
        if let Some(file) = self.file.take() {
            drop(file.into_parts());
        }
        // After `replace`, a file of this name belongs to another process.
        if !self.replaced {
            let _ = remove_if_there(&*self.disk, &self.name);
        }
    }
}

/// Locks a temporary file, unless another process uses it. A file system without locks has none to respect.
fn lock(file: &File, name: &Path) -> io::Result<()> {
    let busy = || io::Error::new(io::ErrorKind::ResourceBusy, "it is being written by another process");
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(busy()),
        Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => Err(error),
        // Another process may have replaced the file between the two calls.
        _ if !is_same_file(file, name) => Err(busy()),
        _ => Ok(()),
    }
}

/// Whether a name still refers to an open file. Systems without inodes assume so.
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

/// The path itself, or the target of a link: a rename would replace the link. Devices and folders are refused.
fn target(place: &Path) -> io::Result<PathBuf> {
    let real = match fs::symlink_metadata(place) {
        Ok(found) if found.is_symlink() => fs::canonicalize(place)?,
        _ => place.to_owned(),
    };
    match fs::metadata(&real) {
        Ok(found) if !found.is_file() => Err(io::Error::other("it is not a regular file")),
        _ => Ok(real),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_at_the_place_until_the_file_is_complete_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a.bin");
        let mut file = AtomicFile::create(&place).unwrap();
        file.write_all(b"half").unwrap();
        assert!(!place.exists());
        let second = AtomicFile::create(&place).map(|_| ()).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::ResourceBusy, "two cannot write the same file");
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        // A killed process leaves its temporary file.
        fs::write(hidden(&place, "partial").unwrap(), "left").unwrap();
        write(&place, b"whole").unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn the_target_of_a_link_is_replaced_and_a_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(write(folder.path(), b"").unwrap_err().to_string().contains("not a regular file"));
    }
}
