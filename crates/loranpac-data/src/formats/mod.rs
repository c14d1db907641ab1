//! File formats: one reader per format, listed in `open_samples` and `open_stream`.

mod array;
mod container;
mod csv;
mod element;
mod folder;
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

use std::io::Read;
use std::path::Path;

use loranpac::Label;

use crate::error::Error;
use crate::rows::{Format, Options, Rows, Split, TextOptions};

pub use array::{Array, Elements};
pub(crate) use container::{Container, Pair, pick};
pub use folder::read_npy;
pub(crate) use names::{DOMAINS, FEATURES, LABELS, missing};
pub use npy::Column;
pub use npz::to_npz;
#[cfg(feature = "parquet")]
pub use parquet::is_decoding;
pub(crate) use source::Shared;
pub use source::Source;
pub(crate) use stream::Stream;
pub(crate) use texts::{TextPiece, TextRows};

/// Opens the samples of a file that can seek.
pub(crate) fn open_samples(
    path: &Path,
    shared: Shared,
    format: Format,
    options: &Options,
) -> Result<Box<dyn Rows>, Error> {
    match format {
        Format::Npz => Ok(Box::new(container::choose(path, &mut npz::Npz::open(path, &shared)?, options)?)),
        Format::Safetensors => {
            Ok(Box::new(container::choose(path, &mut safetensors::Tensors::open(path, &shared)?, options)?))
        }
        #[cfg(feature = "parquet")]
        Format::Parquet => Ok(Box::new(parquet::Parquet::open(path, shared, options)?)),
        _ => open_stream(path, Box::new(shared.whole()), Some(shared.length()), format, options),
    }
}

/// Opens a table with a column of texts.
pub(crate) fn open_texts(
    path: &Path,
    shared: Shared,
    format: Format,
    options: &TextOptions,
) -> Result<Box<dyn TextRows>, Error> {
    match format {
        Format::Csv => Ok(Box::new(texts::CsvTexts::open(path, Box::new(shared.whole()), None, options)?)),
        Format::Tsv => Ok(Box::new(texts::CsvTexts::open(path, Box::new(shared.whole()), Some(b'\t'), options)?)),
        Format::Jsonl => Ok(Box::new(texts::JsonlTexts::open(path, Box::new(shared.whole()), options)?)),
        #[cfg(feature = "parquet")]
        Format::Parquet => Ok(Box::new(parquet::ParquetTexts::open(path, shared, options)?)),
        _ => Err(Error::NotATable { path: path.to_owned(), format: format.name() }),
    }
}

/// Opens samples from a source that cannot seek, such as standard input; `length` is its number of bytes, if known.
pub(crate) fn open_stream(
    path: &Path,
    source: Box<dyn Read + Send>,
    length: Option<u64>,
    format: Format,
    options: &Options,
) -> Result<Box<dyn Rows>, Error> {
    match format {
        Format::Npy => {
            let x = Stream::npy(source, length.unwrap_or(u64::MAX));
            let refuse = |problem| Error::Array { path: path.to_owned(), array: "x".to_owned(), problem };
            Ok(Box::new(Pair::new(path, ("x".to_owned(), x.map_err(refuse)?), None)?))
        }
        Format::Csv => Ok(Box::new(csv::Csv::open(path, source, None, options)?)),
        Format::Tsv => Ok(Box::new(csv::Csv::open(path, source, Some(b'\t'), options)?)),
        Format::Jsonl => Ok(Box::new(jsonl::Jsonl::open(path, source, options)?)),
        Format::Npz | Format::Safetensors | Format::Parquet => {
            Err(Error::NotStreamed { path: path.to_owned(), format: format.name() })
        }
    }
}

/// Opens the samples in a folder of `.npy` files.
pub(crate) fn open_folder(path: &Path, options: &Options) -> Result<Box<dyn Rows>, Error> {
    Ok(Box::new(container::choose(path, &mut folder::Folder(path.to_owned()), options)?))
}

/// Opens the arrays of a folder of `.npy` files, or of a file in a format with named arrays. None for other formats.
pub(crate) fn open_container(
    path: &Path,
    format: Option<Format>,
    open: impl Fn(&Path) -> Result<Shared, Error>,
) -> Result<Option<Box<dyn Container>>, Error> {
    Ok(match format {
        None => Some(Box::new(folder::Folder(path.to_owned()))),
        Some(Format::Npz) => Some(Box::new(npz::Npz::open(path, &open(path)?)?)),
        Some(Format::Safetensors) => Some(Box::new(safetensors::Tensors::open(path, &open(path)?)?)),
        Some(_) => None,
    })
}

/// Whether a path looks like a data set, by its name: an npz or safetensors file, or a folder with training features.
pub fn looks_like_features(path: &Path) -> bool {
    let by_extension = path.extension().is_some_and(|e| e == "npz" || e == "safetensors");
    let is_features = |name: &String| names::is_usual(name, FEATURES, Split::Train.suffix());
    by_extension || path.is_dir() && folder::Folder(path.to_owned()).names().iter().any(is_features)
}

/// A label as a message shows it.
pub(crate) fn shown(label: &Label) -> String {
    text::shorten(&label.to_string())
}
