//! File formats: one file per format, listed in [`FORMATS`].

mod array;
mod container;
mod csv;
#[cfg(test)]
mod dummy;
mod element;
mod folder;
mod format;
mod jsonl;
mod lines;
mod names;
mod npy;
mod npz;
#[cfg(feature = "parquet")]
mod parquet;
mod records;
mod safetensors;
mod source;
mod stream;
mod text;
mod texts;

use std::path::Path;

use loranpac::Label;

use crate::error::Error;
use crate::rows::{Options, Rows, Split};

pub use array::{Array, Elements};
pub(crate) use container::{Container, Pair, encoded_by, pick, texts};
pub use folder::read_npy;
pub use format::Format;
pub(crate) use names::{DOMAINS, FEATURES, LABELS, missing};
pub use npy::Column;
pub use npz::{to_npz, write_npz};
pub(crate) use source::Shared;
pub use source::Source;
pub(crate) use stream::Stream;
pub(crate) use texts::{TextPiece, TextRows};

/// All formats that were compiled in. A new format is a file with a reader and its entry, and one line here.
pub const FORMATS: &[Format] = &[
    folder::NPY,
    npz::NPZ,
    safetensors::SAFETENSORS,
    csv::CSV,
    csv::TSV,
    jsonl::JSONL,
    #[cfg(feature = "parquet")]
    parquet::PARQUET,
    #[cfg(test)]
    dummy::DUMMY,
];

/// The format with this name or extension, in any case.
pub fn find(name: &str) -> Option<Format> {
    let same = |other: &&'static str| other.eq_ignore_ascii_case(name);
    FORMATS.iter().copied().find(|format| same(&format.name) || format.other_names.iter().any(same))
}

/// Opens the samples in a folder of `.npy` files.
pub(crate) fn open_folder(path: &Path, options: &Options) -> Result<Box<dyn Rows>, Error> {
    Ok(Box::new(container::choose(path, &mut folder::Folder(path.to_owned()), options)?))
}

/// Opens the arrays of a folder of `.npy` files.
pub(crate) fn open_folder_arrays(path: &Path) -> Box<dyn Container> {
    Box::new(folder::Folder(path.to_owned()))
}

/// Whether a path looks like a data set, by its name: a file with named arrays, or a folder with training features.
pub fn looks_like_features(path: &Path) -> bool {
    let by_extension = path.extension().and_then(|e| find(&e.to_string_lossy())).is_some_and(Format::has_arrays);
    let is_features = |name: &String| names::is_usual(name, FEATURES, Split::Train.suffix());
    by_extension || path.is_dir() && folder::Folder(path.to_owned()).names().iter().any(is_features)
}

/// A label as a message shows it.
pub(crate) fn shown(label: &Label) -> String {
    text::shorten(&label.to_string())
}
