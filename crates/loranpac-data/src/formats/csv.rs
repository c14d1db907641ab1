//! Tables as text: one sample per line, one column per feature, and optional columns for label, split and domain.
//!
//! **Header.** The first line is a header if one of its cells is not a number. If the label column is given by position
//! (`first`, `last`, a number), its cell counts only if it is a usual name, because a label may be a text. A line
//! `0,1,2,...` of three or more columns is a header as well: pandas writes it for columns without names.
//!
//! **Cells.** Blanks around names and numbers are ignored. Labels keep their blanks: ` cat` and `cat` are two classes.

use std::io::Read;
use std::path::Path;

use super::format::{Format, Opening};
use super::records::Records;
use super::texts::CsvTexts;
use super::{names, text};
use crate::error::{Error, LineProblem};
use crate::rows::{LABEL, Options, Piece, Rows, TAGS};

/// Cells separated by commas, semicolons or tabs.
pub(super) const CSV: Format = Format {
    name: "csv",
    other_names: &[],
    opening: Opening::Stream(|path, source, _, options| Ok(Box::new(Csv::open(path, source, None, options)?))),
    texts: Some(|path, shared, options| Ok(Box::new(CsvTexts::open(path, Box::new(shared.whole()), None, options)?))),
};

/// Cells separated by tabs.
pub(super) const TSV: Format = Format {
    name: "tsv",
    other_names: &[],
    opening: Opening::Stream(|path, source, _, options| Ok(Box::new(Csv::open(path, source, Some(b'\t'), options)?))),
    texts: Some(|path, shared, options| {
        Ok(Box::new(CsvTexts::open(path, Box::new(shared.whole()), Some(b'\t'), options)?))
    }),
};

struct Csv {
    records: Records,
    /// Names of the columns, if there is a header.
    names: Option<Vec<String>>,
    /// Columns of label, split and domain.
    tags: [Option<usize>; TAGS],
    /// The column of weights.
    weights: Option<usize>,
    columns: usize,
    /// Whether the current record is the first line of a file without a header, which is a sample.
    pending: bool,
}

impl Csv {
    pub fn open(
        path: &Path,
        source: Box<dyn Read + Send>,
        delimiter: Option<u8>,
        options: &Options,
    ) -> Result<Csv, Error> {
        let records = Records::open(path, source, delimiter)?;
        let mut csv = Csv { records, names: None, tags: [None; TAGS], weights: None, columns: 0, pending: false };
        csv.understand(options)?;
        if csv.dim() == 0 {
            return Err(Error::Container { path: csv.records.path, reason: "no feature columns".to_owned() });
        }
        Ok(csv)
    }

    /// Decides whether the first line is a header or a sample.
    fn understand(&mut self, options: &Options) -> Result<(), Error> {
        let path = &self.records.path;
        let cells: Vec<&str> = self.records.cells()?.into_iter().map(str::trim).collect();
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
                    return Err(names::missing(path, &columns, wanted.to_owned(), "label column", ""));
                }
                (place, _) => place,
            };
            if let Some(wanted) = &options.weights {
                let columns: Vec<String> = (0..cells.len()).map(|at| at.to_string()).collect();
                return Err(names::missing(path, &columns, wanted.clone(), "weights column", ""));
            }
            self.pending = true;
            return Ok(());
        }
        if let Some(number) = cells.iter().position(|cell| cell.is_empty()) {
            let line = self.records.line();
            return Err(self.records.refuse(line, LineProblem::NoName { number: number + 1 }));
        }
        // A name takes precedence over a position.
        let label = match place {
            Some(place) => Some(cells.iter().position(|&cell| Some(cell) == wanted).unwrap_or(place)),
            None => names::find(path, &cells, wanted, (names::LABELS, ""), "label column")?,
        };
        let [split, domain] = names::parts(path, &cells)?.map(|place| place.filter(|_| place != label));
        self.weights = names::weights(path, &cells, options, "weights column")?;
        let names = cells.iter().map(|cell| (*cell).to_owned()).collect();
        (self.tags, self.names) = ([label, split, domain], Some(names));
        Ok(())
    }

    /// Appends the line in `record` to a piece.
    fn take(&self, piece: &mut Piece) -> Result<(), LineProblem> {
        let record = &self.records.record;
        if record.len() != self.columns {
            return Err(LineProblem::Cells { found: record.len(), expected: self.columns });
        }
        for (at, cell) in record.iter().enumerate() {
            let cell = std::str::from_utf8(cell).map_err(|_| LineProblem::NotText)?;
            if let Some(tag) = self.tags.iter().position(|&place| place == Some(at)) {
                if cell.trim().is_empty() {
                    let what = ["label", "split", "domain"][tag];
                    return Err(LineProblem::Empty { column: self.column(at), what });
                }
                piece.tags[tag].push(text::label(cell));
            } else {
                let cell = cell.trim();
                let wrong = || self.not_a_number(at, cell);
                match self.weights == Some(at) {
                    true => piece.weights.push(cell.parse().map_err(|_| wrong())?),
                    false => piece.x.push(cell.parse().map_err(|_| wrong())?),
                }
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

impl Rows for Csv {
    fn dim(&self) -> usize {
        self.columns - self.tags.iter().chain([&self.weights]).flatten().count()
    }

    fn has(&self, tag: usize) -> bool {
        self.tags[tag].is_some()
    }

    fn read(&mut self, most: usize) -> Result<Piece, Error> {
        let mut piece = Piece::default();
        for _ in 0..most {
            if !std::mem::take(&mut self.pending) && !self.records.advance()? {
                break;
            }
            self.take(&mut piece).map_err(|problem| self.records.refuse(self.records.line(), problem))?;
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
