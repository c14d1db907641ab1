//! An array that is read a few rows at a time.

use std::io::Read;

use loranpac::{Label, memory};

use super::array::{Array, Elements};
use super::element::Kind;
use super::npy::{Header, to_c_order};
use crate::error::ArrayProblem;

/// Elements are converted in blocks of about this many bytes.
const BLOCK: usize = 1 << 17;

/// An array that is read in order.
pub(crate) struct Stream {
    /// Its dimensions.
    pub shape: Vec<usize>,
    supply: Supply,
    /// Rows that were read.
    row: usize,
}

enum Supply {
    /// In C order.
    Rows { source: Box<dyn Read + Send>, kind: Kind, big_endian: bool },
    /// The file is in Fortran order: the first row is known only when everything is read. Turned into C order.
    Columns(Elements),
}

impl Stream {
    /// Rows of a known kind.
    pub fn new(source: Box<dyn Read + Send>, kind: Kind, shape: Vec<usize>) -> Stream {
        Stream { shape, supply: Supply::Rows { source, kind, big_endian: false }, row: 0 }
    }

    /// An array in NumPy's format. At most `available` bytes exist, including the header.
    pub fn npy(mut source: Box<dyn Read + Send>, available: u64) -> Result<Stream, ArrayProblem> {
        let header = Header::read(&mut source)?;
        header.check(available)?;
        let Header { kind, big_endian, shape, fortran } = header;
        // With one column or one row, both orders are the same.
        let turned = fortran && shape.iter().filter(|&&n| n != 1).count() > 1;
        let mut stream = Stream { shape, supply: Supply::Rows { source, kind, big_endian }, row: 0 };
        if turned {
            let data = to_c_order(stream.elements()?, &stream.shape)?;
            stream.supply = Supply::Columns(data);
        }
        Ok(stream)
    }

    /// The whole array, of which nothing has been read yet.
    pub fn into_array(mut self) -> Result<Array, ArrayProblem> {
        let data = self.elements()?;
        Ok(Array { shape: self.shape, data })
    }

    /// All elements, and the check of the array's end.
    fn elements(&mut self) -> Result<Elements, ArrayProblem> {
        match &mut self.supply {
            Supply::Columns(data) => Ok(data.clone()),
            Supply::Rows { source, kind, big_endian } => {
                let count = self.shape.iter().fold(1u64, |n, &d| n.saturating_mul(d as u64));
                let mut data = kind.empty();
                let outcome = blocks(source, *kind, count, |raw| kind.convert(raw, *big_endian, &mut data));
                let end = outcome.is_ok().then(|| check_end(source)).transpose();
                outcome.map_err(|stopped| self.truncated(stopped))?;
                end.map(|_| data)
            }
        }
    }

    /// Rows and columns, if the array can hold features.
    pub fn feature_shape(&self) -> Result<(usize, usize), ArrayProblem> {
        let refuse = |expected: &str| ArrayProblem::Shape { found: self.shape.clone(), expected: expected.to_owned() };
        let [rows, columns] = self.shape[..] else { return Err(refuse("(samples, features)")) };
        if columns == 0 {
            return Err(refuse("at least one feature per sample"));
        }
        let text = match &self.supply {
            Supply::Rows { kind, .. } => kind.is_text(),
            Supply::Columns(data) => matches!(data, Elements::Text(_)),
        };
        if text {
            let expected = "a floating point or integer type";
            return Err(ArrayProblem::Dtype { found: "string".to_owned(), expected });
        }
        Ok((rows, columns))
    }

    /// The next `rows` rows as features; at least as many must be left. The last row is followed by a check of the end.
    pub fn features(&mut self, rows: usize) -> Result<Vec<f32>, ArrayProblem> {
        let columns = self.shape.get(1).copied().unwrap_or(1);
        let mut out = Vec::new();
        match &mut self.supply {
            Supply::Columns(data) => {
                let range = self.row * columns..(self.row + rows) * columns;
                match data {
                    Elements::Float(data) => out.extend_from_slice(&data[range]),
                    Elements::Integer(data) => out.extend(data[range].iter().map(|&v| v as f32)),
                    Elements::Text(_) => {}
                }
            }
            Supply::Rows { source, kind, big_endian } => {
                blocks(source, *kind, rows as u64 * columns as u64, |raw| {
                    memory::grow(&mut out, raw.len() / kind.bytes())
                        .map_err(|e| ArrayProblem::Memory(e.to_string()))?;
                    kind.features(raw, *big_endian, &mut out);
                    Ok(())
                })
                .map_err(|found| self.truncated(found))?;
            }
        }
        self.advance(rows)?;
        Ok(out)
    }

    /// The next `rows` rows of one number each; at least as many must be left.
    pub fn numbers(&mut self, rows: usize) -> Result<Vec<f64>, ArrayProblem> {
        let (mut out, shape) = (Vec::new(), self.shape.clone());
        // An array with one dimension has no second order, so it is never in `Columns`.
        let Supply::Rows { source, kind, big_endian } = &mut self.supply else {
            return Err(ArrayProblem::Shape { found: shape, expected: "(samples,)".to_owned() });
        };
        if kind.is_text() {
            let expected = "a floating point or integer type";
            return Err(ArrayProblem::Dtype { found: "string".to_owned(), expected });
        }
        blocks(source, *kind, rows as u64, |raw| {
            kind.numbers(raw, *big_endian, &mut out);
            Ok(())
        })
        .map_err(|found| self.truncated(found))?;
        self.advance(rows)?;
        Ok(out)
    }

    /// The next `rows` rows as labels; at least as many must be left.
    pub fn labels(&mut self, rows: usize) -> Result<Vec<Label>, ArrayProblem> {
        // An array with one dimension has no second order, so it is never in `Columns`.
        let Supply::Rows { source, kind, big_endian } = &mut self.supply else {
            return Err(ArrayProblem::Shape { found: self.shape.clone(), expected: "(samples,)".to_owned() });
        };
        let mut data = kind.empty();
        let outcome = blocks(source, *kind, rows as u64, |raw| kind.convert(raw, *big_endian, &mut data));
        let first = self.row;
        let place = |problem| match problem {
            ArrayProblem::Label { row, reason } => ArrayProblem::Label { row: first + row, reason },
            other => other,
        };
        outcome.map_err(|found| place(self.truncated(found)))?;
        let labels = Array { shape: vec![rows], data }.into_labels().map_err(place)?;
        self.advance(rows)?;
        Ok(labels)
    }

    fn advance(&mut self, rows: usize) -> Result<(), ArrayProblem> {
        self.row += rows;
        match &mut self.supply {
            Supply::Rows { source, .. } if self.shape.first() == Some(&self.row) => check_end(source),
            _ => Ok(()),
        }
    }

    /// The problem of a reader that stopped, with its place in the whole array.
    fn truncated(&self, stopped: Stopped) -> ArrayProblem {
        match stopped {
            Stopped::Problem(problem) => problem,
            Stopped::After(bytes) => {
                let Supply::Rows { kind, .. } = &self.supply else { return ArrayProblem::Damaged("ends".to_owned()) };
                let each = kind.bytes() as u128;
                let row = self.shape.iter().skip(1).fold(each, |n, &d| n.saturating_mul(d as u128));
                let needed = self.shape.iter().fold(each, |n, &d| n.saturating_mul(d as u128));
                let found = row.saturating_mul(self.row as u128).saturating_add(bytes.into());
                let found = found.min(u64::MAX.into()) as u64;
                ArrayProblem::Truncated { shape: self.shape.clone(), needed, found }
            }
        }
    }
}

enum Stopped {
    /// The source ended after so many bytes.
    After(u64),
    Problem(ArrayProblem),
}

/// Passes `count` elements to `use_block`, some at a time. Memory grows with the bytes that exist, not with `count`.
fn blocks(
    source: &mut impl Read,
    kind: Kind,
    count: u64,
    mut use_block: impl FnMut(&[u8]) -> Result<(), ArrayProblem>,
) -> Result<(), Stopped> {
    let most = (BLOCK / kind.bytes()).max(1) as u64;
    let mut buffer = Vec::new();
    let mut done = 0;
    while done < count {
        buffer.clear();
        let want = (count - done).min(most) * kind.bytes() as u64;
        let damaged = |e: std::io::Error| Stopped::Problem(ArrayProblem::Damaged(e.to_string()));
        let got = source.by_ref().take(want).read_to_end(&mut buffer).map_err(damaged)? as u64;
        if got < want {
            return Err(Stopped::After(done * kind.bytes() as u64 + got));
        }
        use_block(&buffer).map_err(Stopped::Problem)?;
        done += (count - done).min(most);
    }
    Ok(())
}

/// Reads to the end: a zip entry compares its checksum there, and an array longer than its shape is damaged.
fn check_end(source: &mut impl Read) -> Result<(), ArrayProblem> {
    let mut byte = [0u8; 1];
    match source.read(&mut byte) {
        Ok(0) => Ok(()),
        Ok(_) => Err(ArrayProblem::Damaged("it has more bytes than its shape needs".to_owned())),
        Err(e) => Err(ArrayProblem::Damaged(e.to_string())),
    }
}
