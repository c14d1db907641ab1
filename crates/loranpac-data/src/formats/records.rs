//! Records of a table as text: the delimiter, and a limit on the length of a record.
//!
//! **Cells** are separated by tabs if the first line contains one, else by semicolons if it contains one, else by
//! commas.
//!
//! **Quotes.** A cell that begins with a quote ends with the next single one; two quotes stand for one. A quote that is
//! never closed is an error, and so is a quoted cell of several lines in a table with tabs, where texts often begin with a
//! quote that has no meaning: everything up to the next quote would silently be one cell.

use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use csv::{ByteRecord, ReaderBuilder};

use super::text;
use crate::error::{Error, LineProblem, ReadError};

/// The byte order mark that some programs write.
const MARK: &[u8] = b"\xef\xbb\xbf";
/// Bytes of the first line that are searched for delimiters.
const GLANCE: u64 = 1 << 16;

/// A line that is put behind the last one. If it becomes part of a cell, then a quote was not closed.
const END: &[u8] = b"\n\x04 end of table \x04";

/// Reads one record at a time.
pub(super) struct Records {
    pub path: PathBuf,
    reader: csv::Reader<Limited>,
    /// Bytes that may still be read for the current record.
    left: Arc<AtomicUsize>,
    /// Whether a cell may have several lines.
    multiline: bool,
    /// The current record.
    pub record: ByteRecord,
}

impl Records {
    /// Reads the first record.
    pub fn open(path: &Path, source: Box<dyn Read + Send>, delimiter: Option<u8>) -> Result<Records, Error> {
        let (source, glance) = look(source).map_err(|source| ReadError::new(path, source))?;
        let multiline = delimiter != Some(b'\t');
        let delimiter = delimiter.unwrap_or_else(|| delimiter_of(&glance));
        let left = Arc::new(AtomicUsize::new(0));
        let source = Limited { source: Box::new(source.chain(END)), left: left.clone() };
        // The readers check the lengths of lines and detect headers themselves.
        let reader = ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(source);
        let mut records = Records { path: path.to_owned(), reader, left, multiline, record: ByteRecord::new() };
        if !records.advance()? {
            return Err(Error::Container { path: records.path, reason: "no lines".to_owned() });
        }
        Ok(records)
    }

    /// Reads the next line; false at the end.
    pub fn advance(&mut self) -> Result<bool, Error> {
        self.left.store(text::LONGEST_LINE, Ordering::Relaxed);
        let line = self.reader.position().line();
        let more = self.reader.read_byte_record(&mut self.record).map_err(|e| match e.into_kind() {
            csv::ErrorKind::Io(_) if self.left.load(Ordering::Relaxed) == 0 => {
                self.refuse(line, LineProblem::TooLong { limit: text::LONGEST_LINE })
            }
            csv::ErrorKind::Io(source) => ReadError::new(&self.path, source).into(),
            other => Error::Container { path: self.path.clone(), reason: format!("{other:?}") },
        })?;
        let cells = self.record.as_slice();
        if !more || cells == &END[1..] {
            return Ok(false);
        }
        match () {
            () if cells.ends_with(END) => Err(self.refuse(self.line(), LineProblem::OpenQuote)),
            () if !self.multiline && cells.contains(&b'\n') => Err(self.refuse(self.line(), LineProblem::Lines)),
            () => Ok(true),
        }
    }

    /// The line where the current record begins, from 1.
    pub fn line(&self) -> u64 {
        self.record.position().map_or(0, csv::Position::line)
    }

    pub fn refuse(&self, line: u64, problem: LineProblem) -> Error {
        Error::Line { path: self.path.clone(), line, problem }
    }

    /// The cells of the current record, as text.
    pub fn cells(&self) -> Result<Vec<&str>, Error> {
        let cells: Result<Vec<&str>, _> = self.record.iter().map(std::str::from_utf8).collect();
        cells.map_err(|_| self.refuse(self.line(), LineProblem::NotText))
    }
}

/// A source that fails when one record is too long.
struct Limited {
    source: Box<dyn Read + Send>,
    left: Arc<AtomicUsize>,
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let most = left.min(buffer.len());
        let got = self.source.read(&mut buffer[..most])?;
        self.left.store(left - got, Ordering::Relaxed);
        Ok(got)
    }
}

/// Reads ahead. Returns the source without a byte order mark, and the start of the first line.
fn look(mut source: Box<dyn Read + Send>) -> io::Result<(Box<dyn Read + Send>, Vec<u8>)> {
    let mut start = Vec::new();
    source.by_ref().take(GLANCE).read_to_end(&mut start)?;
    if start.starts_with(MARK) {
        start.drain(..MARK.len());
    }
    let first_line = start.split(|&byte| matches!(byte, b'\n' | b'\r')).find(|line| !line.is_empty());
    let first_line = first_line.unwrap_or_default().to_vec();
    Ok((Box::new(Cursor::new(start).chain(source)), first_line))
}

fn delimiter_of(first_line: &[u8]) -> u8 {
    [b'\t', b';'].into_iter().find(|delimiter| first_line.contains(delimiter)).unwrap_or(b',')
}
