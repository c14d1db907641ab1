//! A file format: its names, and how its files are opened.

use std::fmt;
use std::io::Read;
use std::path::Path;

use super::container::{self, Container};
use super::source::Shared;
use super::texts::TextRows;
use crate::error::Error;
use crate::rows::{Options, Rows, TextOptions};

/// A file format for samples, one of [`super::FORMATS`].
#[derive(Clone, Copy)]
pub struct Format {
    /// Its name, which is also the extension of its files.
    pub(super) name: &'static str,
    /// Other extensions of its files.
    pub(super) other_names: &'static [&'static str],
    pub(super) opening: Opening,
    /// How a table with a column of texts is opened, in formats of tables.
    pub(super) texts: Option<OpenTexts>,
}

/// A source that is read in order.
type Bytes = Box<dyn Read + Send>;

/// A reader, or why the file was refused.
type Opened<T> = Result<Box<T>, Error>;

/// Opens a table with a column of texts.
type OpenTexts = fn(&Path, Shared, &TextOptions) -> Opened<dyn TextRows>;

/// How files of a format are opened.
#[derive(Clone, Copy)]
pub(super) enum Opening {
    /// From a source that is read once from the beginning to the end, and its number of bytes, if known.
    Stream(fn(&Path, Bytes, Option<u64>, &Options) -> Opened<dyn Rows>),
    /// From a source that can seek, as a table.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "only Parquet files are opened like this"))]
    Table(fn(&Path, Shared, &Options) -> Opened<dyn Rows>),
    /// From a source that can seek, as named arrays.
    Arrays(fn(&Path, Shared) -> Opened<dyn Container>),
}

impl Format {
    /// Its name, which is also the extension of its files.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Whether its files have named arrays, such as those of a data set.
    pub fn has_arrays(self) -> bool {
        matches!(self.opening, Opening::Arrays(_))
    }

    /// Whether its files can be read from a pipe.
    pub fn is_streamed(self) -> bool {
        matches!(self.opening, Opening::Stream(_))
    }

    /// Opens the samples of a file that can seek.
    pub(crate) fn open_samples(self, path: &Path, shared: Shared, options: &Options) -> Result<Box<dyn Rows>, Error> {
        match self.opening {
            Opening::Stream(open) => open(path, Box::new(shared.whole()), Some(shared.length()), options),
            Opening::Table(open) => open(path, shared, options),
            Opening::Arrays(open) => Ok(Box::new(container::choose(path, &mut *open(path, shared)?, options)?)),
        }
    }

    /// Opens samples from a source that cannot seek, such as standard input.
    pub(crate) fn open_stream(self, path: &Path, source: Bytes, options: &Options) -> Result<Box<dyn Rows>, Error> {
        match self.opening {
            Opening::Stream(open) => open(path, source, None, options),
            Opening::Table(_) | Opening::Arrays(_) => {
                Err(Error::NotStreamed { path: path.to_owned(), format: self.name })
            }
        }
    }

    /// Opens a table with a column of texts.
    pub(crate) fn open_texts(self, path: &Path, shared: Shared, options: &TextOptions) -> Opened<dyn TextRows> {
        let open = self.texts.ok_or_else(|| Error::NotATable { path: path.to_owned(), format: self.name })?;
        open(path, shared, options)
    }

    /// Opens the arrays of a file; `None` if files of this format have no named arrays.
    pub(crate) fn open_arrays(
        self,
        path: &Path,
        open: impl Fn(&Path) -> Result<Shared, Error>,
    ) -> Result<Option<Box<dyn Container>>, Error> {
        match self.opening {
            Opening::Arrays(arrays) => arrays(path, open(path)?).map(Some),
            Opening::Stream(_) | Opening::Table(_) => Ok(None),
        }
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.name == other.name
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
