//! Files that are written outside of models: exports, predictions and reports.

use std::fs;
use std::io::Read;
use std::path::Path;

use loranpac_data::AtomicFile;
use loranpac_data::atomic::parent;

use crate::disk::{Disk, RealDisk, open_regular};
use crate::error::Error;
use crate::folder::MANIFEST;
use crate::manifest::MAGIC;

/// Starts a file that replaces `place` when it is complete. A path inside a model's folder is refused.
pub fn create(place: &Path) -> Result<AtomicFile, Error> {
    create_on(Box::new(RealDisk), place)
}

/// Like [`create`], on any disk.
pub fn create_on(disk: Box<dyn Disk>, place: &Path) -> Result<AtomicFile, Error> {
    refuse_inside_model(place)?;
    AtomicFile::create_on(disk, place).map_err(Error::write(place))
}

/// Refuses a file in the folder of a model, where only the store writes. A link is followed.
pub fn refuse_inside_model(place: &Path) -> Result<(), Error> {
    let target = fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
    let folder = parent(&target);
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    if real.ancestors().any(is_model) {
        return Err(Error::InsideModel { path: place.to_owned() });
    }
    Ok(())
}

/// Returns whether a folder is a model: by its name, or by its manifest.
fn is_model(folder: &Path) -> bool {
    let has_manifest = || {
        let mut start = [0; MAGIC.len()];
        let read = open_regular(&folder.join(MANIFEST)).is_ok_and(|mut file| file.read_exact(&mut start).is_ok());
        read && start == MAGIC.as_bytes()
    };
    folder.extension().is_some_and(|e| e == "lrp") || has_manifest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_into_a_model() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("m.lrp");
        fs::create_dir(&model).unwrap();
        let refused = create(&model.join("MANIFEST")).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("inside a model"), "{refused}");
    }
}
