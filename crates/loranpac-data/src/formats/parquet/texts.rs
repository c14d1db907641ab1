//! A column of texts, and optional columns for label, split and domain.

use std::path::{Path, PathBuf};

use loranpac::Label;
use parquet::basic::Type;
use parquet::column::reader::ColumnReader;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::super::source::Shared;
use super::super::texts::{TextPiece, TextRows, columns};
use super::{Column, open_column, open_file, refuse, usable, values};
use crate::error::Error;
use crate::rows::{TAGS, TextOptions};

pub(in super::super) struct ParquetTexts {
    path: PathBuf,
    shared: Shared,
    file: SerializedFileReader<Shared>,
    /// Label, split, domain, and the texts at the end.
    columns: Vec<Option<Column>>,
    /// The row group to open next.
    group: usize,
    /// Rows that the open group still has, and its columns.
    left: usize,
    open: Vec<Option<ColumnReader>>,
    /// Rows that were read.
    row: usize,
}

impl ParquetTexts {
    pub fn open(path: &Path, shared: Shared, options: &TextOptions) -> Result<ParquetTexts, Error> {
        let (file, all) = open_file(path, &shared)?;
        let names: Vec<&str> = all.iter().map(|column| column.name.as_str()).collect();
        let (text, tags) = columns(path, &names, options)?;
        let text = all[text].clone();
        if text.about.max_rep_level() != 0 || text.about.physical_type() != Type::BYTE_ARRAY {
            let reason = format!("it has {}; one text per row is needed", text.about.physical_type());
            return Err(refuse(path, &text, reason));
        }
        let tags = usable(path, tags.map(|tag| tag.map(|at| all[at].clone())))?;
        let columns = tags.into_iter().chain([Some(text)]).collect();
        let path = path.to_owned();
        Ok(ParquetTexts { path, shared, file, columns, group: 0, left: 0, open: Vec::new(), row: 0 })
    }

    /// Opens the next row group; false if there is none.
    fn next_group(&mut self) -> Result<bool, Error> {
        let group = self.group;
        if group >= self.file.num_row_groups() {
            return Ok(false);
        }
        self.group += 1;
        self.left = usize::try_from(self.file.metadata().row_group(group).num_rows()).unwrap_or(0);
        let reader = |column: &Column| {
            let reader = open_column(&self.file, &self.shared, group, column, (false, Some(self.left), "one value"));
            reader.map_err(|reason| refuse(&self.path, column, reason))
        };
        self.open =
            self.columns.iter().map(|column| column.as_ref().map(reader).transpose()).collect::<Result<_, _>>()?;
        Ok(true)
    }
}

impl TextRows for ParquetTexts {
    fn has(&self, tag: usize) -> bool {
        self.columns[tag].is_some()
    }

    fn read(&mut self, most: usize) -> Result<TextPiece, Error> {
        let mut piece = TextPiece::default();
        while !piece.is_complete(most) {
            if self.left == 0 {
                if !self.next_group()? {
                    break;
                }
                continue;
            }
            // Row by row: a long text in a dictionary is copied for every row that refers to it.
            for (at, column) in self.columns.iter().enumerate() {
                let (Some(column), Some(Some(reader))) = (column, self.open.get_mut(at)) else { continue };
                let mut found = Vec::new();
                let read = values::read_labels(reader, &column.about, (self.row, 1), &mut found);
                read.map_err(|reason| refuse(&self.path, column, reason))?;
                piece.bytes += found.iter().map(length).sum::<usize>();
                match at {
                    ..TAGS => piece.tags[at].append(&mut found),
                    _ => piece.texts.extend(found.into_iter().map(into_text)),
                }
            }
            self.left -= 1;
            self.row += 1;
        }
        Ok(piece)
    }
}

fn length(label: &Label) -> usize {
    match label {
        Label::Text(text) => text.len(),
        Label::Integer(_) => size_of::<Label>(),
    }
}

fn into_text(label: Label) -> String {
    match label {
        Label::Text(text) => text,
        Label::Integer(number) => number.to_string(),
    }
}
