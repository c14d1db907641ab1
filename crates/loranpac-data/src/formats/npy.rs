//! NumPy's npy format, versions 1 to 3: a header that is a Python dictionary, then the elements.
//!
//! This reader replaces a crate because a header must never cause an allocation larger than the file: memory grows
//! with the bytes that exist, and every product of sizes is checked.

use std::io::{self, Read, Write};

use loranpac::Label;

use super::array::Elements;
use super::element::Kind;
use crate::error::ArrayProblem;

/// NumPy itself refuses to parse headers beyond 10,000 bytes.
const LONGEST_HEADER: usize = 10_000;

/// Converts two-dimensional Fortran order to C order.
pub(super) fn to_c_order(data: Elements, shape: &[usize]) -> Result<Elements, ArrayProblem> {
    let [rows, columns] = *shape else {
        return Err(ArrayProblem::Shape { found: shape.to_vec(), expected: "at most two dimensions".to_owned() });
    };
    fn turn<T: Clone>(data: &[T], rows: usize, columns: usize) -> Vec<T> {
        (0..rows * columns).map(|at| data[at % columns * rows + at / columns].clone()).collect()
    }
    Ok(match data {
        Elements::Float(data) => Elements::Float(turn(&data, rows, columns)),
        Elements::Integer(data) => Elements::Integer(turn(&data, rows, columns)),
        Elements::Text(data) => Elements::Text(turn(&data, rows, columns)),
    })
}

/// The header of an array.
pub(super) struct Header {
    pub kind: Kind,
    pub big_endian: bool,
    pub fortran: bool,
    pub shape: Vec<usize>,
}

impl Header {
    /// Refuses a header that needs more than `available` bytes.
    pub fn check(&self, available: u64) -> Result<(), ArrayProblem> {
        let count = self.shape.iter().try_fold(1u128, |n, &d| n.checked_mul(d as u128)).unwrap_or(u128::MAX);
        let needed = count.saturating_mul(self.kind.bytes() as u128);
        if needed <= u128::from(available) {
            return Ok(());
        }
        Err(ArrayProblem::Truncated { shape: self.shape.clone(), needed, found: available })
    }

    /// Reads a header; the elements follow it in `source`.
    pub fn read(source: &mut impl Read) -> Result<Header, ArrayProblem> {
        let mut start = [0u8; 8];
        let ended = |_| ArrayProblem::NotNpy("it ends inside the header".to_owned());
        source.read_exact(&mut start).map_err(|_| ArrayProblem::NotNpy("it is shorter than a header".to_owned()))?;
        if &start[..6] != b"\x93NUMPY" {
            return Err(ArrayProblem::NotNpy("the magic bytes are missing".to_owned()));
        }
        let mut length = [0u8; 4];
        let field = match start[6] {
            1 => 2,
            2 | 3 => 4,
            version => return Err(ArrayProblem::NotNpy(format!("unknown version {version}"))),
        };
        source.read_exact(&mut length[..field]).map_err(ended)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST_HEADER {
            return Err(ArrayProblem::Header(format!("{length} bytes is too long for a header")));
        }
        let mut text = vec![0u8; length];
        source.read_exact(&mut text).map_err(ended)?;
        let text = String::from_utf8(text).map_err(|_| ArrayProblem::Header("it is not text".to_owned()))?;
        Header::parse(&text)
    }

    /// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
    fn parse(text: &str) -> Result<Header, ArrayProblem> {
        let bad = |what: &str| ArrayProblem::Header(format!("{what} in {:?}", text.trim_end()));
        let value = |key: &str| {
            let quoted = [format!("'{key}'"), format!("\"{key}\"")];
            let at = quoted.iter().find_map(|q| text.find(q.as_str()).map(|at| at + q.len()));
            let after = at.map(|at| text[at..].trim_start()).and_then(|rest| rest.strip_prefix(':'));
            after.map(str::trim_start).ok_or_else(|| bad(&format!("no key {key}")))
        };
        let descr = value("descr")?;
        let quote = descr.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let descr = match quote.and_then(|q| descr[1..].split_once(q)) {
            Some((descr, _)) => descr,
            None => {
                return Err(ArrayProblem::Dtype { found: "a record".to_owned(), expected: "a plain number or string" });
            }
        };
        let fortran = match value("fortran_order")? {
            v if v.starts_with("True") => true,
            v if v.starts_with("False") => false,
            _ => return Err(bad("fortran_order is neither True nor False")),
        };
        let shape = value("shape")?.strip_prefix('(').and_then(|s| s.split_once(')')).ok_or_else(|| bad("no shape"))?.0;
        let shape: Result<Vec<usize>, _> =
            shape.split(',').map(str::trim).filter(|s| !s.is_empty()).map(|s| s.parse::<usize>()).collect();
        let shape = shape.map_err(|_| bad("a dimension is not a number"))?;
        let (kind, big_endian) = parse_descr(descr)?;
        Ok(Header { kind, big_endian, fortran, shape })
    }
}

/// `<f4`, `>i8`, `|u1`, `<U12`, `|S3`, `|b1`.
fn parse_descr(descr: &str) -> Result<(Kind, bool), ArrayProblem> {
    let refuse = || ArrayProblem::Dtype {
        found: descr.to_owned(),
        expected: "float16/32/64, an integer type, bool, or a string",
    };
    let (order, rest) = match descr.chars().next() {
        Some(c @ ('<' | '>' | '|' | '=')) => (c, &descr[1..]),
        _ => ('<', descr),
    };
    let letter = rest.chars().next().filter(char::is_ascii).ok_or_else(refuse)?;
    if letter == 'O' {
        return Err(ArrayProblem::Pickle);
    }
    let size: usize = rest[1..].parse().map_err(|_| refuse())?;
    let kind = match (letter, size) {
        ('f', 2 | 4 | 8) => Kind::Float(size),
        ('i', 1 | 2 | 4 | 8) => Kind::Signed(size),
        ('u', 1 | 2 | 4 | 8) | ('b', 1) => Kind::Unsigned(size),
        ('U', ..=1_000_000) => Kind::Unicode(size),
        ('S' | 'a', ..=1_000_000) => Kind::Bytes(size),
        _ => return Err(refuse()),
    };
    Ok((kind, order == '>'))
}

/// A column of results, to be written as an array.
pub enum Column {
    /// Numbers.
    Float(Vec<f64>),
    /// A matrix of this many columns, in C order.
    Matrix(usize, Vec<f32>),
    /// Labels: integers if all of them are, else strings.
    Labels(Vec<Label>),
}

/// Values that are converted at a time.
const BLOCK: usize = 1 << 16;

/// Writes an array in npy format, version 1.
pub(super) fn write(column: &Column, out: &mut impl Write) -> io::Result<()> {
    match column {
        Column::Float(values) => {
            write_header(out, "<f8", &format!("({},)", values.len()))?;
            write_blocks(out, values, |v| v.to_le_bytes())
        }
        Column::Matrix(columns, values) => {
            write_header(out, "<f4", &format!("({}, {columns})", values.len() / columns.max(&1)))?;
            write_blocks(out, values, |v| v.to_le_bytes())
        }
        Column::Labels(labels) => {
            let number = |label: &Label| if let Label::Integer(number) = label { Some(*number) } else { None };
            let shape = format!("({},)", labels.len());
            if let Some(numbers) = labels.iter().map(number).collect::<Option<Vec<i64>>>() {
                write_header(out, "<i8", &shape)?;
                return write_blocks(out, &numbers, |v| v.to_le_bytes());
            }
            let length = |label: &Label| label.to_string().chars().count();
            let longest = labels.iter().map(length).max().unwrap_or(0).max(1);
            write_header(out, &format!("<U{longest}"), &shape)?;
            labels.iter().try_for_each(|label| {
                let text: Vec<char> = label.to_string().chars().chain(std::iter::repeat('\0')).take(longest).collect();
                write_blocks(out, &text, |&c| u32::from(c).to_le_bytes())
            })
        }
    }
}

fn write_header(out: &mut impl Write, descr: &str, shape: &str) -> io::Result<()> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // The data starts at a multiple of 64 bytes.
    header += &" ".repeat(63 - (10 + header.len()) % 64);
    header.push('\n');
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&(header.len() as u16).to_le_bytes())?;
    out.write_all(header.as_bytes())
}

fn write_blocks<T, const N: usize>(out: &mut impl Write, values: &[T], bytes: fn(&T) -> [u8; N]) -> io::Result<()> {
    values.chunks(BLOCK).try_for_each(|block| out.write_all(&block.iter().flat_map(bytes).collect::<Vec<u8>>()))
}
