//! Tables with a column of texts, or of paths to images.

use std::path::{Path, PathBuf};

use loranpac_data::{TextOptions, TextRow, Texts};

use super::files::{self, LONGEST_PATH};
use super::{Data, Input, InputOptions, Source, Tags};
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
        let texts = Texts::open(path, &TextOptions { text, usual, label, format: None })?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Table { texts, folder, rows: Vec::new(), row: 0, options: options.clone() })
    }
}

impl Source for Table {
    fn len(&self) -> Option<usize> {
        None
    }

    fn next(&mut self) -> Option<Result<Input, Error>> {
        if self.rows.is_empty() {
            match self.texts.next(ROWS) {
                Ok(rows) => self.rows = rows.into_iter().rev().collect(),
                Err(error) => return Some(Err(error.into())),
            }
        }
        let TextRow { text, label, split, domain } = self.rows.pop()?;
        let tags = Tags { label, split, domain };
        self.row += 1;
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
