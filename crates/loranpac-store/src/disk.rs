//! Everything that is done to the disk goes through here, so that tests can let each of it fail.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// A file that is being written.
pub trait Output: Write {
    /// Waits until everything written is safe from a power cut.
    fn sync(&mut self) -> io::Result<()>;
}

/// What a store does to a disk.
pub trait Disk: Send + Sync {
    /// A file of this name, empty whatever was there.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>>;
    /// Gives a file another name, in one step; a file of that name is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Waits until the names in a folder are safe from a power cut.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes a folder.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
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
        Ok(Box::new(File::create(path)?))
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
}
