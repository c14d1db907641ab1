//! `.npy` files: one with features, or a folder of them, read like one file with named arrays.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use super::array::Array;
use super::container::{Container, Pair};
use super::format::{Format, Opening};
use super::stream::Stream;
use crate::disk;
use crate::error::{Error, ReadError};

/// One array of features, without labels.
pub(super) const NPY: Format = Format {
    name: "npy",
    other_names: &[],
    opening: Opening::Stream(|path, source, length, _| {
        let x = Stream::npy(source, length.unwrap_or(u64::MAX));
        let refuse = |problem| Error::Array { path: path.to_owned(), array: "x".to_owned(), problem };
        Ok(Box::new(Pair::new(path, ("x".to_owned(), x.map_err(refuse)?), None)?))
    }),
    texts: None,
};

/// A folder. Each array has the name of its file.
pub(super) struct Folder(pub PathBuf);

impl Container for Folder {
    fn names(&self) -> Vec<String> {
        // A folder that cannot be listed has no arrays; opening one gives the error.
        let paths = self.0.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        let arrays = paths.filter(|path| path.extension().is_some_and(|e| e == "npy"));
        let mut names: Vec<String> = arrays.map(|path| stem(&path)).collect();
        names.sort();
        names
    }

    fn array(&mut self, name: &str) -> Result<Stream, Error> {
        open(&self.0.join(format!("{name}.npy")), &self.0)
    }
}

/// Reads one `.npy` file.
pub fn read_npy(path: &Path) -> Result<Array, Error> {
    let refuse = |problem| Error::Array { path: path.to_owned(), array: stem(path), problem };
    open(path, path)?.into_array().map_err(refuse)
}

/// Opens a `.npy` file; errors in its contents refer to `named`.
fn open(path: &Path, named: &Path) -> Result<Stream, Error> {
    let failed = |source| ReadError::new(path, source);
    let file = disk::open_through_links(path).map_err(|error| failed(error.into()))?;
    let length = file.metadata().map_err(failed)?.len();
    let refuse = |problem| Error::Array { path: named.to_owned(), array: stem(path), problem };
    Stream::npy(Box::new(BufReader::new(file)), length).map_err(refuse)
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}
