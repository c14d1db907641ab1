//! Samples in batches: what `learn` and `predict` read. A file is never in memory as a whole, whatever its size.
//!
//! [`crate::Dataset`] is for experiments, which need training and test samples at once.

use std::io::Read;
use std::path::{Path, PathBuf};

use loranpac::{Features, Label};

use crate::disk;
use crate::error::{Error, ReadError};
use crate::formats::{self, Format, Shared, Source};
use crate::rows::{Batch, EncodedBy, LABEL, Options, Piece, Rows, SPLIT, Split};

/// What to do about a file without a known extension.
const ADVICE: &str = "; `format` names the format of standard input and of files with other names";

/// Rows that are read at a time in search of a split.
const ROWS: usize = 256;

/// Reads samples in batches.
pub struct Reader {
    path: PathBuf,
    rows: Box<dyn Rows>,
    split: Split,
    /// Whether the table has no row of the split in the options.
    fell_back: bool,
    /// Rows of the file that were read.
    row: usize,
    /// Samples of the split that were returned.
    returned: usize,
    ended: bool,
    /// Whether samples of the split were left out because of their weight.
    weightless: bool,
    /// The label of all samples.
    class: Option<Label>,
}

impl Reader {
    /// Opens a file, a folder of `.npy` files, or standard input, which is called `-`.
    pub fn open(path: &Path, options: &Options) -> Result<Reader, Error> {
        if path.as_os_str() == "-" {
            let path = Path::new("standard input");
            return Reader::from_stream(path, std::io::stdin(), format_of(path, options, ADVICE)?, options);
        }
        let rows = open_rows(path, options)?;
        if options.fallback && rows.has(SPLIT) {
            let split = if has_split(path, rows, options.split)? { options.split } else { options.split.other() };
            let fell_back = split != options.split;
            return Ok(Reader { split, fell_back, ..Reader::new(path, open_rows(path, options)?, options) });
        }
        Ok(Reader::new(path, rows, options))
    }

    /// Reads from a source that can seek, such as a `Cursor` over bytes. Errors refer to it as `path`.
    pub fn from_source(
        path: &Path,
        source: impl Source + 'static,
        format: Format,
        options: &Options,
    ) -> Result<Reader, Error> {
        let shared = Shared::new(source).map_err(|source| ReadError::new(path, source))?;
        Ok(Reader::new(path, format.open_samples(path, shared, options)?, options))
    }

    /// Reads from a source that cannot seek, in a format that does not need to. Errors refer to it as `path`.
    pub fn from_stream(
        path: &Path,
        source: impl Read + Send + 'static,
        format: Format,
        options: &Options,
    ) -> Result<Reader, Error> {
        Ok(Reader::new(path, format.open_stream(path, Box::new(source), options)?, options))
    }

    /// Reads samples of any other source. Errors refer to it as `path`.
    pub fn new(path: &Path, rows: Box<dyn Rows>, options: &Options) -> Reader {
        Reader {
            path: path.to_owned(),
            rows,
            split: options.split,
            fell_back: false,
            row: 0,
            returned: 0,
            ended: false,
            weightless: false,
            class: None,
        }
    }

    /// Gives all samples one label.
    pub fn with_class(self, class: Label) -> Reader {
        Reader { class: Some(class), ..self }
    }

    /// Features per sample; at least one.
    pub fn dim(&self) -> usize {
        self.rows.dim()
    }

    /// Whether samples have labels.
    pub fn has_labels(&self) -> bool {
        self.class.is_some() || self.rows.has(LABEL)
    }

    /// The split that is read, if the file has two.
    pub fn split(&self) -> Option<Split> {
        if self.rows.has(SPLIT) { Some(self.split).filter(|_| !self.fell_back) } else { self.rows.split() }
    }

    /// The encoder that computed the features, if the file names it.
    pub fn encoder(&self) -> Option<&EncodedBy> {
        self.rows.encoder()
    }

    /// Whether samples have names.
    pub fn has_names(&self) -> bool {
        self.rows.has_names()
    }

    /// Why inputs were skipped so far.
    pub fn skipped(&self) -> Vec<String> {
        self.rows.skipped()
    }

    /// Number of samples, if the file has it before its samples.
    #[expect(clippy::len_without_is_empty, reason = "a file of unknown length is not known to be empty")]
    pub fn len(&self) -> Option<usize> {
        self.rows.len().filter(|_| !self.rows.has(SPLIT))
    }

    /// The next samples, at most `most` and at least one; `None` at the end and after an error.
    ///
    /// Memory is proportional to `most` times the features. Every feature is finite, and small enough for a model. A damaged file gives an error
    /// where the damage is found, and a checksum is compared at the end: earlier batches have been returned by then.
    pub fn next(&mut self, most: usize) -> Result<Option<Batch>, Error> {
        if self.ended {
            return Ok(None);
        }
        // After an error, reading does not go on in the middle of a row.
        self.ended = true;
        let dim = self.dim();
        loop {
            let piece = self.rows.read(most.max(1))?;
            if piece.x.is_empty() {
                if self.row > 0 && self.returned == 0 && self.weightless {
                    return Err(Error::Feature { path: self.path.clone(), source: loranpac::Error::NoWeight });
                }
                if self.row > 0 && self.returned == 0 {
                    let (path, advice) = (self.path.clone(), "; read the other split with `split`");
                    return Err(Error::EmptySplit { path, split: self.split.name(), advice });
                }
                return Ok(None);
            }
            check_features(&self.path, &piece.x, dim, self.row)?;
            check_weights(&self.path, &piece, self.row)?;
            let taken = taken(splits(&self.path, &piece, self.row)?, self.split, &piece.weights);
            let Piece { mut x, tags: [mut labels, ..], mut weights, mut names, mut rows } = piece;
            let count = x.len() / dim;
            if rows.is_empty() {
                rows.extend(self.row..self.row + count);
            }
            self.row += count;
            self.weightless |= weights.contains(&0.0);
            if let Some(chosen) = taken {
                retain(&mut labels, &chosen, 1);
                retain(&mut weights, &chosen, 1);
                retain(&mut names, &chosen, 1);
                retain(&mut rows, &chosen, 1);
                retain(&mut x, &chosen, dim);
            }
            if !x.is_empty() {
                self.returned += rows.len();
                self.ended = false;
                let names = Some(names).filter(|names| !names.is_empty());
                if let Some(class) = &self.class {
                    labels = vec![class.clone(); rows.len()];
                }
                let weights = Some(weights).filter(|weights| !weights.is_empty());
                return Ok(Some(Batch { x, labels: self.has_labels().then_some(labels), weights, names, rows }));
            }
        }
    }
}

/// Which rows are of a split, and have a weight; None if all are.
fn taken(splits: Option<Vec<Split>>, wanted: Split, weights: &[f64]) -> Option<Vec<bool>> {
    let heavy = || weights.iter().map(|weight| *weight > 0.0);
    match splits {
        Some(splits) if weights.is_empty() => Some(splits.iter().map(|split| *split == wanted).collect()),
        Some(splits) => Some(splits.iter().zip(heavy()).map(|(split, heavy)| *split == wanted && heavy).collect()),
        None => heavy().any(|heavy| !heavy).then(|| heavy().collect()),
    }
}

/// Keeps the chosen rows of an array with this many columns.
fn retain<T>(values: &mut Vec<T>, chosen: &[bool], columns: usize) {
    let mut chosen = chosen.iter().flat_map(|row| std::iter::repeat_n(*row, columns));
    values.retain(|_| chosen.next() == Some(true));
}

/// Refuses weights that no model accepts. `first` is the number of the first row.
fn check_weights(path: &Path, piece: &Piece, first: usize) -> Result<(), Error> {
    if piece.weights.is_empty() {
        return Ok(());
    }
    let checked = Features::new(&piece.x, piece.x.len() / piece.weights.len()).and_then(|x| x.weighted(&piece.weights));
    let refuse =
        |source: loranpac::Error| Error::Feature { path: path.to_owned(), source: source.at_row(|row| first + row) };
    checked.map(drop).map_err(refuse)
}

/// Opens the samples of a file or a folder.
pub(crate) fn open_rows(path: &Path, options: &Options) -> Result<Box<dyn Rows>, Error> {
    if is_folder(path)? {
        return formats::open_folder(path, options);
    }
    let format = format_of(path, options, ADVICE)?;
    format.open_samples(path, open_shared(path)?, options)
}

/// Whether a table has a row of a split.
fn has_split(path: &Path, mut rows: Box<dyn Rows>, split: Split) -> Result<bool, Error> {
    let mut row = 0;
    loop {
        let piece = rows.read(ROWS)?;
        let found = splits(path, &piece, row)?.unwrap_or_default();
        if found.is_empty() || found.contains(&split) {
            return Ok(!found.is_empty());
        }
        row += found.len();
    }
}

/// Whether a path is a folder. It must exist.
pub(crate) fn is_folder(path: &Path) -> Result<bool, Error> {
    let found = std::fs::metadata(path).map_err(|source| ReadError::new(path, source))?;
    Ok(found.is_dir())
}

/// Opens a file for reading at several offsets.
pub(crate) fn open_shared(path: &Path) -> Result<Shared, Error> {
    let failed = |source| ReadError::new(path, source);
    // A pipe would wait forever, and cannot seek.
    let file = disk::open_through_links(path).map_err(|error| failed(error.into()))?;
    Ok(Shared::new(file).map_err(failed)?)
}

/// The format in `options`, else that of the file's extension.
pub(crate) fn format_of(path: &Path, options: &Options, advice: &'static str) -> Result<Format, Error> {
    let extension = || path.extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
    let format = options.format.clone().unwrap_or_else(extension);
    formats::find(&format).ok_or_else(|| {
        let supported = formats::FORMATS.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
        Error::Unsupported { path: path.to_owned(), format, supported, advice }
    })
}

/// Refuses features that no model accepts: not finite, or too large. `first` is the number of the first row.
pub(crate) fn check_features(path: &Path, x: &[f32], dim: usize, first: usize) -> Result<(), Error> {
    let checked = Features::new(x, dim).and_then(|x| x.validate(dim));
    checked.map_err(|source| Error::Feature { path: path.to_owned(), source: source.at_row(|row| first + row) })
}

/// The split of each row, if there is a column for it. `first` is the number of the first row.
pub(crate) fn splits(path: &Path, piece: &Piece, first: usize) -> Result<Option<Vec<Split>>, Error> {
    let cells = &piece.tags[SPLIT];
    if cells.is_empty() { Ok(None) } else { row_splits(path, cells, first).map(Some) }
}

/// The split that each cell names. `first` is the number of the first row.
pub(crate) fn row_splits(path: &Path, cells: &[Label], first: usize) -> Result<Vec<Split>, Error> {
    let split = |(row, cell)| {
        let unknown = || Error::UnknownSplit { path: path.to_owned(), row: first + row, split: formats::shown(cell) };
        Split::of_cell(cell).ok_or_else(unknown)
    };
    cells.iter().enumerate().map(split).collect()
}
