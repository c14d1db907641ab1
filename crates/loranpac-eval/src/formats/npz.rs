//! NumPy's npz: a zip archive of npy files, stored or deflated.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use zip::ZipArchive;

use super::{Arrays, npy};
use crate::error::Error;

/// Deflate cannot expand by more than this, so a larger claim is a lie.
const LARGEST_EXPANSION: u64 = 1_032;

pub(super) fn read(path: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Arrays, Error> {
    let damaged = |reason: String| Error::Container { path: path.to_owned(), reason };
    let file = File::open(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|e| damaged(e.to_string()))?;
    let mut arrays = Arrays::new();
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|e| damaged(e.to_string()))?;
        let name = entry.name().map_err(|e| damaged(e.to_string()))?.into_owned();
        let Some(name) = name.strip_suffix(".npy").map(str::to_owned) else { continue };
        if wanted(&name) {
            let available = entry.size().min(entry.compressed_size().saturating_mul(LARGEST_EXPANSION));
            let array = npy::read(entry, available);
            let array =
                array.map_err(|problem| Error::Array { path: path.to_owned(), array: name.clone(), problem })?;
            arrays.insert(name, array);
        }
    }
    Ok(arrays)
}
