//! Files that are never seen half-written: they grow beside their place and are renamed when they are whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;

/// Tells apart files that one process writes at the same time.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A file under a temporary name; dropped, it is gone.
pub struct Beside {
    place: PathBuf,
    name: PathBuf,
    file: BufWriter<File>,
}

impl Beside {
    /// Begins a file that shall be at `place`.
    pub fn create(place: &Path) -> Result<Beside, Error> {
        let Some(file_name) = place.file_name() else {
            return Err(Error::Refused(format!("{} does not name a file", place.display())));
        };
        let mut name = file_name.to_owned();
        name.push(format!(".tmp{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
        let name = place.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).open(&name).map_err(Error::write(place))?;
        Ok(Beside { place: place.to_owned(), name, file: BufWriter::with_capacity(1 << 20, file) })
    }

    /// Brings everything to the disk, so that what is left to do can hardly fail.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.file.flush().and_then(|()| self.file.get_ref().sync_all()).map_err(Error::write(&self.place))
    }

    /// Puts the file in its place.
    pub fn replace(mut self) -> Result<(), Error> {
        self.sync()?;
        fs::rename(&self.name, &self.place).map_err(Error::write(&self.place))?;
        // The new name outlives a power cut only if the folder is on the disk as well; not every system can do that.
        let folder = self.place.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

impl Write for Beside {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // After `replace` there is nothing of this name any more.
        let _ = fs::remove_file(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_at_the_place_until_the_file_is_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a.bin");
        let mut file = Beside::create(&place).unwrap();
        file.write_all(b"half").unwrap();
        assert!(!place.exists());
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let mut file = Beside::create(&place).unwrap();
        file.write_all(b"whole").unwrap();
        file.replace().unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
