//! Tables with a column of texts, and optional columns for label, split and domain. Other columns are ignored.

use std::io::Read;
use std::path::Path;

use loranpac::Label;

use super::lines::{Keys, Lines};
use super::records::Records;
use super::{names, text};
use crate::error::{Error, LineProblem};
use crate::rows::{Options, TAGS, TextOptions};

/// What to do about a column of texts without a usual name.
const ADVICE: &str = "; name the column with `text`";

/// The reader of one format: rows in order.
pub(crate) trait TextRows: Send {
    /// Whether rows have this tag.
    fn has(&self, tag: usize) -> bool;
    /// The next rows, at most `most`, and fewer if they are long; none at the end.
    fn read(&mut self, most: usize) -> Result<TextPiece, Error>;
}

/// Texts that were read together. A tag that they do not have is empty.
#[derive(Default)]
pub(crate) struct TextPiece {
    pub texts: Vec<String>,
    pub tags: [Vec<Label>; TAGS],
    /// Where each row begins, from 1, in formats that have lines.
    pub lines: Vec<u64>,
    /// Bytes of the rows, about.
    pub bytes: usize,
}

/// Bytes beyond which a piece is complete, so that memory does not grow with the length of the texts.
const MOST_BYTES: usize = 16 << 20;

impl TextPiece {
    /// Whether it has `most` rows, or long ones.
    pub fn is_complete(&self, most: usize) -> bool {
        self.texts.len() >= most || self.bytes >= MOST_BYTES
    }
}

/// The places of the texts and of the tags among the columns of a table.
pub(super) fn columns<S: AsRef<str>>(
    path: &Path,
    names: &[S],
    options: &TextOptions,
) -> Result<(usize, [Option<usize>; TAGS]), Error> {
    let text = names::find(path, names, options.text.as_deref(), (options.usual, ""), "text column")?;
    let missing = || names::missing(path, names, options.usual.join(" or "), "text column", ADVICE);
    let text = text.ok_or_else(missing)?;
    let options = Options { label: options.label.clone(), ..Options::default() };
    let tags = names::tags(path, names, &options, "label column")?;
    Ok((text, tags.map(|tag| tag.filter(|&at| at != text))))
}

/// CSV, with a header.
pub(super) struct CsvTexts {
    records: Records,
    names: Vec<String>,
    text: usize,
    tags: [Option<usize>; TAGS],
}

impl CsvTexts {
    pub fn open(
        path: &Path,
        source: Box<dyn Read + Send>,
        delimiter: Option<u8>,
        options: &TextOptions,
    ) -> Result<CsvTexts, Error> {
        let records = Records::open(path, source, delimiter)?;
        let names: Vec<String> = records.cells()?.into_iter().map(|cell| cell.trim().to_owned()).collect();
        let (text, tags) = columns(path, &names, options)?;
        Ok(CsvTexts { records, names, text, tags })
    }

    /// Appends the current record to a piece.
    fn take(&self, piece: &mut TextPiece) -> Result<(), LineProblem> {
        let record = &self.records.record;
        if record.len() != self.names.len() {
            return Err(LineProblem::Cells { found: record.len(), expected: self.names.len() });
        }
        let cell = |at: usize| std::str::from_utf8(&record[at]).map_err(|_| LineProblem::NotText);
        for (tag, place) in self.tags.iter().enumerate() {
            let Some(at) = *place else { continue };
            let value = cell(at)?;
            if value.trim().is_empty() {
                let what = ["label", "split", "domain"][tag];
                return Err(LineProblem::Empty { column: text::shorten(&self.names[at]), what });
            }
            piece.tags[tag].push(text::label(value));
        }
        piece.texts.push(cell(self.text)?.to_owned());
        piece.lines.push(self.records.line());
        piece.bytes += record.as_slice().len();
        Ok(())
    }
}

impl TextRows for CsvTexts {
    fn has(&self, tag: usize) -> bool {
        self.tags[tag].is_some()
    }

    fn read(&mut self, most: usize) -> Result<TextPiece, Error> {
        let mut piece = TextPiece::default();
        while !piece.is_complete(most) && self.records.advance()? {
            self.take(&mut piece).map_err(|problem| self.records.refuse(self.records.line(), problem))?;
        }
        Ok(piece)
    }
}

/// One JSON object per line.
pub(super) struct JsonlTexts {
    lines: Lines,
    keys: Keys<String>,
    /// Whether the current line is the first, which was read to find the keys.
    pending: bool,
}

impl JsonlTexts {
    pub fn open(path: &Path, source: Box<dyn Read + Send>, options: &TextOptions) -> Result<JsonlTexts, Error> {
        let lines = Lines::open(path, source)?;
        let names = lines.keys()?;
        let (text, tags) = columns(path, &names, options)?;
        let keys = Keys::new(names[text].clone(), tags.map(|tag| tag.map(|at| names[at].clone())));
        Ok(JsonlTexts { lines, keys, pending: true })
    }
}

impl TextRows for JsonlTexts {
    fn has(&self, tag: usize) -> bool {
        self.keys.has(tag)
    }

    fn read(&mut self, most: usize) -> Result<TextPiece, Error> {
        let mut piece = TextPiece::default();
        while !piece.is_complete(most) && (std::mem::take(&mut self.pending) || self.lines.advance()?) {
            let (text, tags, _) = self.lines.parse(&self.keys)?;
            piece.bytes += self.lines.buffer.len();
            piece.texts.push(text);
            piece.lines.push(self.lines.line());
            for (column, tag) in piece.tags.iter_mut().zip(tags) {
                column.extend(tag);
            }
        }
        Ok(piece)
    }
}
