//! Tables as text: one sample per line, one column per feature, and optional columns for label, split and domain.
//!
//! **Header.** The first line is a header if one of its cells is not a number. If the label column is given by position
//! (`first`, `last`, a number), its cell counts only if it is a usual name, because a label may be a text. A line
//! `0,1,2,...` of three or more columns is a header as well: pandas writes it for columns without names.
//!
//! **Cells** are separated by tabs if the first line contains one, else by semicolons if it contains one, else by
//! commas. Blanks around names and numbers are ignored. Labels keep their blanks: ` cat` and `cat` are two classes.

use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use csv::{ByteRecord, ReaderBuilder};

use super::format::{Format, Opening};
use super::{names, text};
use crate::error::{Error, LineProblem, ReadError};
use crate::rows::{LABEL, Options, Piece, Rows, TAGS};

/// The byte order mark that some programs write.
const MARK: &[u8] = b"\xef\xbb\xbf";
/// Bytes of the first line that are searched for delimiters.
const GLANCE: u64 = 1 << 16;

/// Cells separated by commas, semicolons or tabs.
pub(super) const CSV: Format = Format {
    name: "csv",
    other_names: &[],
    opening: Opening::Stream(|path, source, _, options| Ok(Box::new(Csv::open(path, source, None, options)?))),
};

/// Cells separated by tabs.
pub(super) const TSV: Format = Format {
    name: "tsv",
    other_names: &[],
    opening: Opening::Stream(|path, source, _, options| Ok(Box::new(Csv::open(path, source, Some(b'\t'), options)?))),
};

struct Csv {
    path: PathBuf,
    reader: csv::Reader<Limited>,
    /// Bytes that may still be read for the current record.
    left: Arc<AtomicUsize>,
    /// Names of the columns, if there is a header.
    names: Option<Vec<String>>,
    /// Columns of label, split and domain.
    tags: [Option<usize>; TAGS],
    columns: usize,
    record: ByteRecord,
    /// Whether `record` is the first line of a file without a header, which is a sample.
    pending: bool,
}

impl Csv {
    pub fn open(
        path: &Path,
        source: Box<dyn Read + Send>,
        delimiter: Option<u8>,
        options: &Options,
    ) -> Result<Csv, Error> {
        let (source, glance) = look(source).map_err(|source| ReadError::new(path, source))?;
        let delimiter = delimiter.unwrap_or_else(|| delimiter_of(&glance));
        let left = Arc::new(AtomicUsize::new(0));
        let source = Limited { source, left: left.clone() };
        // This module checks the lengths of lines and detects headers itself.
        let reader = ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(source);
        let record = ByteRecord::new();
        let (path, tags) = (path.to_owned(), [None; TAGS]);
        let mut csv = Csv { path, reader, left, names: None, tags, columns: 0, record, pending: false };
        if !csv.advance()? {
            return Err(Error::Container { path: csv.path, reason: "no lines".to_owned() });
        }
        csv.understand(options)?;
        if csv.dim() == 0 {
            return Err(Error::Container { path: csv.path, reason: "no feature columns".to_owned() });
        }
        Ok(csv)
    }

    /// Decides whether the first line is a header or a sample.
    fn understand(&mut self, options: &Options) -> Result<(), Error> {
        let line = self.line();
        let cells: Result<Vec<&str>, _> =
            self.record.iter().map(|cell| std::str::from_utf8(cell).map(str::trim)).collect();
        let cells = cells.map_err(|_| self.refuse(line, LineProblem::NotText))?;
        self.columns = cells.len();
        let wanted = options.label.as_deref();
        let place = wanted.and_then(|wanted| place(wanted, cells.len()));
        let usual = |cell: &str| names::LABELS.iter().any(|label| label.eq_ignore_ascii_case(cell));
        let features = || cells.iter().enumerate().filter(|&(at, _)| Some(at) != place).map(|(_, cell)| *cell);
        let counted = cells.len() > 2 && features().enumerate().all(|(at, cell)| cell == at.to_string());
        let label_is_name =
            place.is_some_and(|at| usual(cells[at]) || Some(cells[at]) == wanted && cells[at].parse::<f32>().is_err());
        if !(counted || label_is_name || features().any(|cell| cell.parse::<f32>().is_err())) {
            self.tags[LABEL] = match (place, wanted) {
                (None, Some(wanted)) => {
                    let columns: Vec<String> = (0..cells.len()).map(|at| at.to_string()).collect();
                    return Err(names::missing(&self.path, &columns, wanted.to_owned(), "label column", ""));
                }
                (place, _) => place,
            };
            self.pending = true;
            return Ok(());
        }
        if let Some(number) = cells.iter().position(|cell| cell.is_empty()) {
            return Err(self.refuse(line, LineProblem::NoName { number: number + 1 }));
        }
        // A name takes precedence over a position.
        let label = match place {
            Some(place) => Some(cells.iter().position(|&cell| Some(cell) == wanted).unwrap_or(place)),
            None => names::find(&self.path, &cells, wanted, (names::LABELS, ""), "label column")?,
        };
        let [split, domain] = names::parts(&self.path, &cells)?.map(|place| place.filter(|_| place != label));
        let names = cells.iter().map(|cell| (*cell).to_owned()).collect();
        (self.tags, self.names) = ([label, split, domain], Some(names));
        Ok(())
    }

    /// Reads the next line; false at the end.
    fn advance(&mut self) -> Result<bool, Error> {
        if std::mem::take(&mut self.pending) {
            return Ok(true);
        }
        self.left.store(text::LONGEST_LINE, Ordering::Relaxed);
        let line = self.reader.position().line();
        self.reader.read_byte_record(&mut self.record).map_err(|e| match e.into_kind() {
            csv::ErrorKind::Io(_) if self.left.load(Ordering::Relaxed) == 0 => {
                self.refuse(line, LineProblem::TooLong { limit: text::LONGEST_LINE })
            }
            csv::ErrorKind::Io(source) => ReadError::new(&self.path, source).into(),
            other => Error::Container { path: self.path.clone(), reason: format!("{other:?}") },
        })
    }

    fn line(&self) -> u64 {
        self.record.position().map_or(0, csv::Position::line)
    }

    fn refuse(&self, line: u64, problem: LineProblem) -> Error {
        Error::Line { path: self.path.clone(), line, problem }
    }

    /// Appends the line in `record` to a piece.
    fn take(&self, piece: &mut Piece) -> Result<(), LineProblem> {
        if self.record.len() != self.columns {
            return Err(LineProblem::Cells { found: self.record.len(), expected: self.columns });
        }
        for (at, cell) in self.record.iter().enumerate() {
            let cell = std::str::from_utf8(cell).map_err(|_| LineProblem::NotText)?;
            if let Some(tag) = self.tags.iter().position(|&place| place == Some(at)) {
                if cell.trim().is_empty() {
                    let what = ["label", "split", "domain"][tag];
                    return Err(LineProblem::Empty { column: self.column(at), what });
                }
                piece.tags[tag].push(text::label(cell));
            } else {
                let cell = cell.trim();
                let number = cell.parse().map_err(|_| self.not_a_number(at, cell))?;
                piece.x.push(number);
            }
        }
        Ok(())
    }

    fn not_a_number(&self, at: usize, cell: &str) -> LineProblem {
        let hint = match () {
            _ if cell.contains(',') => "; decimals need a point",
            _ if self.tags[LABEL].is_none() => "; if it is the label, name its column with `label`",
            _ => "",
        };
        LineProblem::NotANumber { column: self.column(at), cell: text::shorten(cell), hint }
    }

    /// A column in messages: its name, or its number from 0.
    fn column(&self, at: usize) -> String {
        let name = self.names.as_ref().and_then(|names| names.get(at));
        name.map_or_else(|| at.to_string(), |name| text::shorten(name))
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

impl Rows for Csv {
    fn dim(&self) -> usize {
        self.columns - self.tags.iter().flatten().count()
    }

    fn has(&self, tag: usize) -> bool {
        self.tags[tag].is_some()
    }

    fn read(&mut self, most: usize) -> Result<Piece, Error> {
        let mut piece = Piece::default();
        while piece.x.len() / self.dim() < most && self.advance()? {
            self.take(&mut piece).map_err(|problem| self.refuse(self.line(), problem))?;
        }
        Ok(piece)
    }
}

/// A column by its position.
fn place(wanted: &str, columns: usize) -> Option<usize> {
    let place = match wanted {
        "first" => Some(0),
        "last" => columns.checked_sub(1),
        number => number.parse().ok(),
    };
    place.filter(|&place| place < columns)
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
