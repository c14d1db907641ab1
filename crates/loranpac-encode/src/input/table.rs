//! Tables with a column of texts, or of paths to images.

use std::path::{Path, PathBuf};

use loranpac_data::{Options, Reader, Split, TextOptions, TextRow, Texts};

use super::files::{self, LONGEST_PATH};
use super::{Data, Input, InputOptions, Present, Source, Tags};
use crate::error::Error;
use crate::modality::Modality;

/// Usual names of columns of texts, and of paths.
const TEXTS: &[&str] = &["text", "sentence", "utterance", "message", "query"];
const PATHS: &[&str] = &["path", "file", "file_name", "filename", "image"];
/// Rows that are read at a time.
const ROWS: usize = 256;

pub(super) struct Table {
    texts: Texts,
    /// Paths are relative to this folder.
    folder: PathBuf,
    /// Rows that were read, the next one last.
    rows: Vec<TextRow>,
    /// Rows that were returned.
    row: usize,
    options: InputOptions,
}

impl Table {
    pub fn open(path: &Path, options: &InputOptions) -> Result<Table, Error> {
        let usual = match options.modality {
            Modality::Text => TEXTS,
            Modality::Image => PATHS,
        };
        let (text, label) = (options.column.clone(), options.label.clone());
        let text_options = TextOptions { text, usual, label, format: None };
        let texts = Texts::open(path, &text_options)?;
        if let Some(split) = options.split.filter(|_| texts.has_splits())
            && !has_split(Texts::open(path, &text_options)?, split)?
        {
            return Err(Error::NoSplit { path: path.to_owned(), split: split.name() });
        }
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Table { texts, folder, rows: Vec::new(), row: 0, options: options.clone() })
    }

    /// The next row of the split; none at the end.
    fn row(&mut self) -> Result<Option<TextRow>, Error> {
        loop {
            if self.rows.is_empty() {
                self.rows = self.texts.next(ROWS)?;
                self.rows.reverse();
            }
            let Some(row) = self.rows.pop() else { return Ok(None) };
            self.row += 1;
            if self.options.takes(row.split) {
                return Ok(Some(row));
            }
        }
    }
}

/// Whether a table has a column of texts or paths, and no features. A CSV file has a column for each feature, which its
/// names do not reveal.
pub(super) fn looks_raw(path: &Path, column: Option<&str>) -> bool {
    if column.is_some() {
        return true;
    }
    let csv = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv") || e.eq_ignore_ascii_case("tsv"));
    let has = |usual| {
        let options = TextOptions { usual, ..TextOptions::default() };
        match Texts::open(path, &options) {
            Ok(mut texts) => {
                // A column of numbers is a feature, whatever its name.
                let first = texts.next(1).unwrap_or_default();
                !csv || first.first().is_none_or(|row| row.text.trim().parse::<f64>().is_err())
            }
            // Two columns with usual names.
            Err(error) => matches!(error, loranpac_data::Error::Ambiguous { .. }),
        }
    };
    (has(TEXTS) || has(PATHS)) && (csv || Reader::open(path, &Options::default()).is_err())
}

/// Whether a table has a row of a split.
fn has_split(mut texts: Texts, split: Split) -> Result<bool, Error> {
    loop {
        let rows = texts.next(ROWS)?;
        if rows.is_empty() || rows.iter().any(|row| row.split == Some(split)) {
            return Ok(!rows.is_empty());
        }
    }
}

impl Source for Table {
    fn present(&self) -> Present {
        let names = self.options.modality == Modality::Image;
        Present { labels: self.texts.has_labels(), splits: self.texts.has_splits(), names }
    }

    fn len(&self) -> Option<usize> {
        None
    }

    fn next(&mut self) -> Option<Result<Input, Error>> {
        let TextRow { text, label, split, domain } = match self.row() {
            Ok(row) => row?,
            Err(error) => return Some(Err(error)),
        };
        let tags = Tags { label, split, domain };
        match self.options.modality {
            Modality::Text => Some(Ok(Input { name: format!("row {}", self.row - 1), data: Data::Text(text), tags })),
            Modality::Image if text.len() > LONGEST_PATH => {
                let reason = format!("its path is longer than {LONGEST_PATH} bytes");
                Some(Err(Error::Input { name: format!("row {}", self.row - 1), reason }))
            }
            Modality::Image => {
                let read = files::read(&text, &self.folder.join(&text), &self.options);
                Some(read.map(|data| Input { name: text, data, tags }))
            }
        }
    }
}
