//! Everything that is done to the disk goes through here, so that tests can let each of it fail.
//!
//! Nothing is read or written through a link: a model's folder may come from anywhere, and a link in it could point anywhere.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::error::Error;

/// A file that is being written.
pub trait Output: Write {
    /// Waits until everything written is safe from a power cut.
    fn sync(&mut self) -> io::Result<()>;
}

/// What a store does to a disk.
pub trait Disk: Send + Sync {
    /// Creates an empty file; there must be nothing of this name, not even a link.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>>;
    /// Gives a file or a folder another name, in one step; a file of that name is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Waits until the names in a folder are safe from a power cut.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes a folder.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;
}

/// The disk of this machine.
pub struct RealDisk;

impl Output for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(OpenOptions::new().write(true).create_new(true).open(path)?))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }
    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        // Only Unix lets a folder be opened and synced.
        if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }
}

/// Creates an empty file in the place of what an earlier attempt has left there.
pub(crate) fn create_anew(disk: &dyn Disk, path: &Path) -> io::Result<Box<dyn Output>> {
    match disk.create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Removing a link removes the link, not what it points to.
            disk.remove(path)?;
            disk.create(path)
        }
        outcome => outcome,
    }
}

/// Removes a file that may not be there.
pub(crate) fn remove_if_there(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// Opens a regular file of a model. Links, pipes, devices and folders are refused, and opening them does not wait.
pub(crate) fn open_regular(path: &Path) -> Result<File, Error> {
    open_with(OpenOptions::new().read(true), path).map_err(|failed| failed.into_error(path, Error::read(path)))
}

/// Opens a regular file that a user has named, who may have named a link to it. Opening does not wait.
pub(crate) fn open_through_links(path: &Path) -> Result<File, Error> {
    let real = fs::canonicalize(path).map_err(Error::read(path))?;
    open_with(OpenOptions::new().read(true), &real).map_err(|failed| failed.into_error(path, Error::read(path)))
}

/// Opens a regular file to lock it; it is created if there is none.
pub(crate) fn open_lock(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    open_with(&mut options, path).map_err(|failed| failed.into_error(path, Error::write(path)))
}

/// Why a file was not opened.
enum Failed {
    System(io::Error),
    /// What it is instead of a regular file.
    Other(&'static str),
}

impl Failed {
    fn into_error(self, path: &Path, system: impl Fn(io::Error) -> Error) -> Error {
        match self {
            Failed::System(error) => system(error),
            Failed::Other(kind) => Error::damaged(path, format!("it is {kind} instead of a regular file")),
        }
    }
}

fn open_with(options: &mut OpenOptions, path: &Path) -> Result<File, Failed> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A pipe would be waited for without the second.
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    }
    let outcome = options.open(path);
    let kind = match &outcome {
        Ok(file) => file.metadata().map(|found| found.file_type()),
        Err(_) => fs::symlink_metadata(path).map(|found| found.file_type()),
    };
    match kind {
        Ok(kind) if kind.is_symlink() => Err(Failed::Other("a symbolic link")),
        Ok(kind) if kind.is_dir() => Err(Failed::Other("a folder")),
        Ok(kind) if !kind.is_file() => Err(Failed::Other("a pipe or a device")),
        _ => outcome.map_err(Failed::System),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_are_opened_and_nothing_is_created_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, gone] = ["file", "link", "gone"].map(|name| folder.path().join(name));
        fs::write(&file, "contents").unwrap();
        symlink(&file, &link).unwrap();
        symlink(folder.path().join("nowhere"), &gone).unwrap();
        assert!(open_regular(&file).is_ok());
        for path in [&link, &gone, folder.path(), Path::new("/dev/zero")] {
            let error = open_regular(path).unwrap_err();
            assert!(matches!(error, Error::Damaged { .. }), "{error}");
        }
        for path in [&link, &gone] {
            assert!(matches!(open_lock(path).unwrap_err(), Error::Damaged { .. }));
            drop(create_anew(&RealDisk, path).unwrap());
            assert!(fs::symlink_metadata(path).unwrap().is_file());
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "contents");
        assert!(!folder.path().join("nowhere").exists());
    }
}
