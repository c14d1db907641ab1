//! Access to the files of a model, with the store's errors. [`Disk`] is the place where tests inject faults.

use std::fs::File;
use std::io;
use std::path::Path;

pub use loranpac_data::disk::{Disk, Output, RealDisk};
use loranpac_data::disk::{OpenError, open_lock as lock, open_regular as open, open_through_links as follow};
pub(crate) use loranpac_data::disk::{create_anew, remove_if_there};

use crate::error::Error;

/// Opens a regular file of a model. Links, pipes, devices and folders are refused; opening them does not block.
pub(crate) fn open_regular(path: &Path) -> Result<File, Error> {
    open(path).map_err(refused(path, Error::read(path)))
}

/// Opens a regular file, or a link to one, that a user has named.
pub(crate) fn open_through_links(path: &Path) -> Result<File, Error> {
    follow(path).map_err(refused(path, Error::read(path)))
}

/// Opens a regular file in order to lock it. The file is created if it does not exist.
pub(crate) fn open_lock(path: &Path) -> Result<File, Error> {
    lock(path).map_err(refused(path, Error::write(path)))
}

fn refused(path: &Path, system: impl Fn(io::Error) -> Error) -> impl Fn(OpenError) -> Error {
    move |error| match error {
        OpenError::System(error) => system(error),
        other => Error::damaged(path, other),
    }
}
