//! Tables with a column of texts, or of paths to images.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loranpac::Label;
use loranpac_data::{Format, Options, Reader, Split, TextOptions, TextRow, Texts};

use super::files::{self, LONGEST_PATH};
use super::{About, Data, EMPTY, Input, InputOptions, Present, Source, Tags};
use crate::error::Error;
use crate::modality::Modality;

/// Usual names of columns of texts, and of paths.
const TEXTS: &[&str] = &["text", "sentence", "utterance", "message", "query"];
const PATHS: &[&str] = &["path", "file", "file_name", "filename", "image"];
/// Rows that are read at a time.
const ROWS: usize = 256;

pub(super) struct Table {
    /// Its file, or its name in messages.
    path: PathBuf,
    about: About,
    /// Paths are relative to this folder.
    folder: PathBuf,
    texts: Texts,
    /// The same table, until its labels and domains have been seen.
    unseen: Option<Texts>,
    /// Whether labels, and domains, are texts although some are written as integers.
    kinds: [bool; 2],
    /// Rows that were read, the next one last.
    rows: Vec<TextRow>,
    /// Rows that were returned.
    row: usize,
    options: InputOptions,
}

/// A table that can be read several times.
struct Origin {
    /// Its file, or its name in messages.
    path: PathBuf,
    /// Its contents and their format, if it is in memory.
    contents: Option<(Arc<[u8]>, Format)>,
    options: TextOptions,
}

impl Origin {
    fn open(&self) -> Result<Texts, Error> {
        Ok(match &self.contents {
            None => Texts::open(&self.path, &self.options)?,
            Some((bytes, format)) => {
                Texts::from_source(&self.path, Cursor::new(bytes.clone()), *format, &self.options)?
            }
        })
    }
}

impl Table {
    /// The table in a file.
    pub fn open(path: &Path, options: &InputOptions) -> Result<Table, Error> {
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Table::of(path, None, folder, options)
    }

    /// A table in memory, which messages call `name`. Its paths are relative to the working directory.
    pub fn in_memory(name: &str, bytes: Arc<[u8]>, format: Format, options: &InputOptions) -> Result<Table, Error> {
        Table::of(Path::new(name), Some((bytes, format)), PathBuf::new(), options)
    }

    fn of(
        path: &Path,
        contents: Option<(Arc<[u8]>, Format)>,
        folder: PathBuf,
        options: &InputOptions,
    ) -> Result<Table, Error> {
        let usual = match options.modality {
            Modality::Text => TEXTS,
            Modality::Image => PATHS,
        };
        let (text, label) = (options.column.clone(), options.label.clone());
        let text_options = TextOptions { text, usual, label, format: None };
        let source = Origin { path: path.to_owned(), contents, options: text_options };
        let texts = source.open()?;
        if let Some(split) = options.split.filter(|_| texts.has_splits())
            && !has_split(source.open()?, split)?
        {
            return Err(Error::NoSplit { path: path.to_owned(), split: split.name() });
        }
        let tagged = texts.has_labels() || texts.has_domains();
        let unseen = tagged.then(|| source.open()).transpose()?;
        let (kinds, rows) = ([false; 2], Vec::new());
        let names = options.modality == Modality::Image;
        let present = Present { labels: texts.has_labels(), splits: texts.has_splits(), names };
        let about = About { present, ..About::default() };
        Ok(Table { path: source.path, about, folder, texts, unseen, kinds, rows, row: 0, options: options.clone() })
    }

    /// The next row of the split; none at the end.
    fn row(&mut self) -> Result<Option<TextRow>, Error> {
        if let Some(unseen) = self.unseen.take() {
            self.kinds = kinds(unseen)?;
        }
        loop {
            if self.rows.is_empty() {
                self.rows = self.texts.next(ROWS)?;
                self.rows.reverse();
            }
            let Some(mut row) = self.rows.pop() else { return Ok(None) };
            self.row += 1;
            if self.options.takes(row.split) {
                for (tag, is_text) in [&mut row.label, &mut row.domain].into_iter().zip(self.kinds) {
                    if let Some(tag) = tag.as_mut().filter(|_| is_text) {
                        *tag = Label::Text(tag.to_string());
                    }
                }
                return Ok(Some(row));
            }
        }
    }

    /// The row that was returned last, as messages name it.
    fn place(&self, line: Option<u64>) -> String {
        match line {
            Some(line) => files::place(&self.path, line),
            None => format!("{}: row {}", self.path.display(), self.row - 1),
        }
    }
}

/// Whether a label of a table, and a domain, is a text. Then all of them are, in all splits: a feature file has one type
/// for all labels, and the classes of a table must not depend on whether it is encoded first.
fn kinds(mut texts: Texts) -> Result<[bool; 2], Error> {
    let is_text = |tag: &Option<Label>| matches!(tag, Some(Label::Text(_)));
    let mut kinds = [false; 2];
    loop {
        let rows = texts.next(ROWS)?;
        if rows.is_empty() {
            return Ok(kinds);
        }
        kinds[0] |= rows.iter().any(|row| is_text(&row.label));
        kinds[1] |= rows.iter().any(|row| is_text(&row.domain));
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
    fn about(&self) -> &About {
        &self.about
    }

    fn len(&self) -> Option<usize> {
        None
    }

    fn row(&self) -> Option<usize> {
        self.row.checked_sub(1)
    }

    fn next(&mut self) -> Option<Result<Input, Error>> {
        let TextRow { text, label, split, domain, line } = match self.row() {
            Ok(row) => row?,
            Err(error) => return Some(Err(error)),
        };
        let tags = Tags { label, split, domain };
        Some(match self.options.modality {
            Modality::Text if text.trim().is_empty() => {
                Err(Error::Input { name: self.place(line), reason: EMPTY.to_owned() })
            }
            Modality::Text => {
                let name = format!("row {}", self.row - 1);
                Ok(Input { tags, ..Input::new(name, Data::Text(text)) })
            }
            Modality::Image if text.len() > LONGEST_PATH => {
                let reason = format!("its path is longer than {LONGEST_PATH} bytes");
                Err(Error::Input { name: self.place(line), reason })
            }
            Modality::Image => {
                let path = self.folder.join(&text);
                files::read_listed(self.place(line), text, &path, tags, &self.options)
            }
        })
    }
}
