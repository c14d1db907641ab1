//! Changes to the file system. Everything goes through [`Disk`], so that tests can make each step fail.
//!
//! The functions that open files do not follow links: a folder may come from anywhere, and a link in it could point
//! anywhere.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// A file that is being written.
pub trait Output: Write + Send {
    /// Waits until everything written is safe from a power cut.
    fn sync(&mut self) -> io::Result<()>;
}

/// The operations that change a file system.
pub trait Disk: Send + Sync {
    /// Creates an empty file. Fails if the name exists, even as a link.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>>;
    /// Renames a file or a folder atomically. An existing file of that name is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Waits until the names in a folder are safe from a power cut.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Creates a folder.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;
}

/// The file system of this machine.
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
        // Only Unix can open and sync a folder.
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

/// Creates an empty file. A file or link of that name, left by an earlier attempt, is removed first.
pub fn create_anew(disk: &dyn Disk, path: &Path) -> io::Result<Box<dyn Output>> {
    match disk.create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Removing a link removes the link, not its target.
            disk.remove(path)?;
            disk.create(path)
        }
        outcome => outcome,
    }
}

/// Removes a file if it exists.
pub fn remove_if_there(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// Why a file was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system refused.
    #[error(transparent)]
    System(#[from] io::Error),
    /// The name is not that of a regular file, but of this.
    #[error("it is {0} instead of a regular file")]
    NotRegular(&'static str),
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> io::Error {
        match error {
            OpenError::System(error) => error,
            other => io::Error::other(other),
        }
    }
}

/// Opens a regular file for reading. Links, pipes, devices and folders are refused; opening them does not block.
pub fn open_regular(path: &Path) -> Result<File, OpenError> {
    open_with(OpenOptions::new().read(true), path, Links::Refuse)
}

/// Opens a regular file, or a link to one, for reading. Pipes, devices and folders are refused; opening them does not
/// block.
pub fn open_through_links(path: &Path) -> Result<File, OpenError> {
    open_with(OpenOptions::new().read(true), path, Links::Follow)
}

/// Opens a regular file in order to lock it. The file is created if it does not exist.
pub fn open_lock(path: &Path) -> Result<File, OpenError> {
    open_with(OpenOptions::new().write(true).create(true).truncate(false), path, Links::Refuse)
}

/// What is done about symbolic links.
#[derive(Clone, Copy, PartialEq)]
enum Links {
    Follow,
    Refuse,
}

fn open_with(options: &mut OpenOptions, path: &Path, links: Links) -> Result<File, OpenError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Without O_NONBLOCK, opening a pipe waits for its other end.
        options.custom_flags(libc::O_NONBLOCK | if links == Links::Refuse { libc::O_NOFOLLOW } else { 0 });
    }
    let outcome = options.open(path);
    let kind = match (&outcome, links) {
        (Ok(file), _) => file.metadata(),
        (Err(_), Links::Refuse) => fs::symlink_metadata(path),
        (Err(_), Links::Follow) => fs::metadata(path),
    };
    let kind = kind.map(|found| found.file_type());
    match kind {
        Ok(kind) if kind.is_symlink() => Err(OpenError::NotRegular("a symbolic link")),
        Ok(kind) if kind.is_dir() => Err(OpenError::NotRegular("a folder")),
        Ok(kind) if !kind.is_file() => Err(OpenError::NotRegular("a pipe or a device")),
        _ => Ok(outcome?),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_are_opened_and_nothing_is_created_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, dangling] = ["file", "link", "dangling"].map(|name| folder.path().join(name));
        fs::write(&file, "contents").unwrap();
        symlink(&file, &link).unwrap();
        symlink(folder.path().join("nowhere"), &dangling).unwrap();
        assert!(open_regular(&file).is_ok() && open_through_links(&link).is_ok());
        for path in [&link, &dangling, folder.path(), Path::new("/dev/zero")] {
            let error = open_regular(path).unwrap_err();
            assert!(matches!(error, OpenError::NotRegular(_)), "{error}");
        }
        for path in [&link, &dangling] {
            assert!(matches!(open_lock(path).unwrap_err(), OpenError::NotRegular(_)));
            drop(create_anew(&RealDisk, path).unwrap());
            assert!(fs::symlink_metadata(path).unwrap().is_file());
        }
        for path in [folder.path(), Path::new("/dev/zero")] {
            assert!(matches!(open_through_links(path).unwrap_err(), OpenError::NotRegular(_)));
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "contents");
        assert!(!folder.path().join("nowhere").exists());
    }
}
