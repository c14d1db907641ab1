//! Texts in batches, with their labels, splits and domains.

use std::path::{Path, PathBuf};

use loranpac::Label;

use crate::error::{Error, ReadError};
use crate::formats::{Format, Shared, Source, TextPiece, TextRows};
use crate::reader::{format_of, open_shared, row_splits};
use crate::rows::{DOMAIN, LABEL, Options, SPLIT, Split, TextOptions};

/// Reads the texts of a table: CSV or TSV with a header, JSON lines, or Parquet.
pub struct Texts {
    path: PathBuf,
    rows: Box<dyn TextRows>,
    /// Rows that were read.
    row: usize,
    ended: bool,
}

/// One row of a table of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextRow {
    /// The text, which may be empty.
    pub text: String,
    /// Its label, if the table has labels.
    pub label: Option<Label>,
    /// Its split, if the table has splits.
    pub split: Option<Split>,
    /// Its domain, if the table has domains.
    pub domain: Option<Label>,
    /// The line where it begins, from 1, in formats that have lines.
    pub line: Option<u64>,
}

impl Texts {
    /// Opens a table.
    pub fn open(path: &Path, options: &TextOptions) -> Result<Texts, Error> {
        let by_name = Options { format: options.format.clone(), ..Options::default() };
        let format = format_of(path, &by_name, "")?;
        Texts::from_shared(path, open_shared(path)?, format, options)
    }

    /// Reads a table from a source that can seek, such as a `Cursor` over bytes. Errors refer to it as `path`.
    pub fn from_source(
        path: &Path,
        source: impl Source + 'static,
        format: Format,
        options: &TextOptions,
    ) -> Result<Texts, Error> {
        let shared = Shared::new(source).map_err(|source| ReadError::new(path, source))?;
        Texts::from_shared(path, shared, format, options)
    }

    fn from_shared(path: &Path, shared: Shared, format: Format, options: &TextOptions) -> Result<Texts, Error> {
        let rows = format.open_texts(path, shared, options)?;
        Ok(Texts { path: path.to_owned(), rows, row: 0, ended: false })
    }

    /// Whether rows have labels.
    pub fn has_labels(&self) -> bool {
        self.rows.has(LABEL)
    }

    /// Whether rows have splits.
    pub fn has_splits(&self) -> bool {
        self.rows.has(SPLIT)
    }

    /// Whether rows have domains.
    pub fn has_domains(&self) -> bool {
        self.rows.has(DOMAIN)
    }

    /// The next rows, at most `most`; none at the end and after an error.
    pub fn next(&mut self, most: usize) -> Result<Vec<TextRow>, Error> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(Vec::new());
        }
        let TextPiece { texts, tags: [labels, splits, domains], lines, .. } = self.rows.read(most.max(1))?;
        let splits = row_splits(&self.path, &splits, self.row)?;
        self.row += texts.len();
        self.ended = texts.is_empty();
        let (mut labels, mut splits, mut domains) = (labels.into_iter(), splits.into_iter(), domains.into_iter());
        let mut lines = lines.into_iter();
        let row = |text| {
            let (label, split, domain) = (labels.next(), splits.next(), domains.next());
            TextRow { text, label, split, domain, line: lines.next() }
        };
        Ok(texts.into_iter().map(row).collect())
    }
}
