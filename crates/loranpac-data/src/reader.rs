//! Samples, some at a time: what `learn` and `predict` read. A file is never in memory as a whole, whatever its size.
//!
//! [`crate::Dataset`] is for experiments, which need training and test samples at once; this is for work.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::formats::{self, Shared, Source};
use crate::rows::{Batch, Format, Options, Piece, Rows};

/// Reads samples, some at a time.
pub struct Reader {
    path: PathBuf,
    rows: Box<dyn Rows>,
    row: usize,
    ended: bool,
}

impl Reader {
    /// Opens a file, a folder of `.npy` files, or standard input, which is called `-`.
    pub fn open(path: &Path, options: &Options) -> Result<Reader, Error> {
        if path.as_os_str() == "-" {
            let path = Path::new("standard input");
            return Reader::from_stream(path, std::io::stdin(), format_of(path, options)?, options);
        }
        if path.is_dir() {
            return Ok(Reader::new(path, formats::open_folder(path, options)?));
        }
        let format = format_of(path, options)?;
        let file = File::open(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        Reader::from_source(path, file, format, options)
    }

    /// Reads from anything that can be read at any place, such as a `Cursor` over bytes; `path` is what errors call it.
    pub fn from_source(
        path: &Path,
        source: impl Source + 'static,
        format: Format,
        options: &Options,
    ) -> Result<Reader, Error> {
        let shared = Shared::new(source).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        Ok(Reader::new(path, formats::open_samples(path, shared, format, options)?))
    }

    /// Reads bytes as they come; only formats that can be read from front to back. `path` is what errors call it.
    pub fn from_stream(
        path: &Path,
        source: impl Read + Send + 'static,
        format: Format,
        options: &Options,
    ) -> Result<Reader, Error> {
        Ok(Reader::new(path, formats::open_stream(path, Box::new(source), None, format, options)?))
    }

    fn new(path: &Path, rows: Box<dyn Rows>) -> Reader {
        Reader { path: path.to_owned(), rows, row: 0, ended: false }
    }

    /// Features per sample; at least one.
    pub fn dim(&self) -> usize {
        self.rows.dim()
    }

    /// Whether samples have labels.
    pub fn has_labels(&self) -> bool {
        self.rows.has_labels()
    }

    /// Number of samples, where the file tells before it is read.
    #[expect(clippy::len_without_is_empty, reason = "a file that does not tell its length is not known to be empty")]
    pub fn len(&self) -> Option<usize> {
        self.rows.len()
    }

    /// The next samples, at most `most` of them (but at least one, if there are any); `None` at the end, and after an error.
    ///
    /// Memory is proportional to `most` times the features. Every feature is finite. What is wrong in a file is told
    /// where it is found, and a checksum is known at the end only: samples before that were given out already.
    pub fn next(&mut self, most: usize) -> Result<Option<Batch>, Error> {
        if self.ended {
            return Ok(None);
        }
        // Whoever goes on after an error gets no samples from the middle of a row.
        self.ended = true;
        let Piece { x, labels } = self.rows.read(most.max(1))?;
        if x.is_empty() {
            return Ok(None);
        }
        let (first, dim) = (self.row, self.dim());
        if let Some(at) = x.iter().position(|value| !value.is_finite()) {
            let source = loranpac::Error::NotFinite { row: first + at / dim, column: at % dim, value: x[at] };
            return Err(Error::Feature { path: self.path.clone(), source });
        }
        self.row += x.len() / dim;
        self.ended = false;
        Ok(Some(Batch { x, labels: self.has_labels().then_some(labels), first }))
    }
}

/// The format that was asked for, else that of the file's name.
fn format_of(path: &Path, options: &Options) -> Result<Format, Error> {
    let ending = || path.extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
    let format = options.format.clone().unwrap_or_else(ending);
    Format::from_name(&format).ok_or_else(|| {
        let known = Format::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
        Error::UnknownSamples { path: path.to_owned(), format, known }
    })
}
