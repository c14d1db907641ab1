//! Files that are read: regular ones, or links to them. A pipe would block, and a device would never end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use loranpac_data::disk;

/// Opens a regular file.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    disk::open_through_links(path).map_err(Into::into)
}

/// Reads a regular file of at most `most` bytes.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    if file.metadata()?.len() > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}
