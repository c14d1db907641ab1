//! NumPy's npy format, versions 1 to 3: a header that is a Python dictionary, then the elements.
//!
//! Read here rather than by a crate, because a header must never cause an allocation that the file does not
//! warrant: memory grows with the bytes that are really there, and every product of sizes is checked.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use half::f16;

use super::{Array, Arrays, Elements};
use crate::error::{ArrayProblem, Error};

/// NumPy itself refuses to parse headers beyond 10,000 bytes.
const LONGEST_HEADER: usize = 10_000;
/// Elements are converted in blocks of about this many bytes.
const BLOCK: usize = 1 << 18;

/// Reads one `.npy` file.
pub fn read_file(path: &Path) -> Result<Array, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let array = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    read(BufReader::new(file), length).map_err(|problem| Error::Array { path: path.to_owned(), array, problem })
}

/// Reads the `.npy` files of a folder; an array is called what its file is called.
pub(super) fn read_folder(folder: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Arrays, Error> {
    let failed = |source| Error::Read { path: folder.to_owned(), source };
    let mut arrays = Arrays::new();
    for entry in folder.read_dir().map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        if path.extension().is_some_and(|e| e == "npy") && wanted(&name) {
            arrays.insert(name, read_file(&path)?);
        }
    }
    Ok(arrays)
}

/// Reads an array of which `available` bytes (header included) are said to be there.
pub(super) fn read(mut source: impl Read, available: u64) -> Result<Array, ArrayProblem> {
    let header = Header::read(&mut source)?;
    let count = header.shape.iter().try_fold(1u128, |n, &d| n.checked_mul(d as u128)).unwrap_or(u128::MAX);
    let promised = count.saturating_mul(header.kind.bytes() as u128);
    let truncated = |found| ArrayProblem::Truncated { shape: header.shape.clone(), promised, found };
    if promised > available as u128 {
        return Err(truncated(available));
    }
    let mut data = header.kind.empty();
    let block = (BLOCK / header.kind.bytes()).max(1) * header.kind.bytes();
    let mut buffer = Vec::new();
    let mut left = promised as u64;
    while left > 0 {
        buffer.clear();
        let want = left.min(block as u64);
        let got =
            (&mut source).take(want).read_to_end(&mut buffer).map_err(|e| ArrayProblem::Damaged(e.to_string()))?;
        if (got as u64) < want {
            return Err(truncated(promised as u64 - left + got as u64));
        }
        header.kind.convert(&buffer, header.big_endian, &mut data)?;
        left -= want;
    }
    // A zip entry checks its checksum when it is read to its end.
    source.read(&mut [0u8; 1]).map_err(|e| ArrayProblem::Damaged(e.to_string()))?;
    if header.fortran && header.shape.len() > 1 {
        data = to_c_order(data, &header.shape)?;
    }
    Ok(Array { shape: header.shape, data })
}

/// What an element is.
#[derive(Clone, Copy)]
enum Kind {
    Float(usize),
    Signed(usize),
    Unsigned(usize),
    /// UTF-32 code points.
    Unicode(usize),
    /// Bytes, taken as UTF-8.
    Bytes(usize),
}

impl Kind {
    fn bytes(self) -> usize {
        match self {
            Kind::Float(n) | Kind::Signed(n) | Kind::Unsigned(n) | Kind::Bytes(n) => n.max(1),
            Kind::Unicode(n) => (4 * n).max(1),
        }
    }

    fn empty(self) -> Elements {
        match self {
            Kind::Float(_) => Elements::Float(Vec::new()),
            Kind::Signed(_) | Kind::Unsigned(_) => Elements::Integer(Vec::new()),
            Kind::Unicode(_) | Kind::Bytes(_) => Elements::Text(Vec::new()),
        }
    }

    /// Appends the elements in `raw`, a whole number of them.
    fn convert(self, raw: &[u8], big: bool, data: &mut Elements) -> Result<(), ArrayProblem> {
        let items = raw.chunks_exact(self.bytes());
        match (self, data) {
            (Kind::Float(2), Elements::Float(out)) => {
                out.extend(items.map(|b| f16::from_bits(number(b, big) as u16).to_f32()))
            }
            (Kind::Float(4), Elements::Float(out)) => out.extend(items.map(|b| f32::from_bits(number(b, big) as u32))),
            (Kind::Float(_), Elements::Float(out)) => out.extend(items.map(|b| f64::from_bits(number(b, big)) as f32)),
            (Kind::Signed(n), Elements::Integer(out)) => {
                let spare = 64 - 8 * n as u32;
                out.extend(items.map(|b| ((number(b, big) << spare) as i64) >> spare))
            }
            (Kind::Unsigned(_), Elements::Integer(out)) => {
                for b in items {
                    let value = number(b, big);
                    out.push(i64::try_from(value).map_err(|_| ArrayProblem::Label {
                        row: out.len(),
                        reason: format!("{value} does not fit into 64 bits with a sign"),
                    })?);
                }
            }
            (Kind::Unicode(_), Elements::Text(out)) => out.extend(items.map(|b| {
                let points = b.chunks_exact(4).map(|p| number(p, big) as u32).take_while(|&p| p != 0);
                points.map(|p| char::from_u32(p).unwrap_or(char::REPLACEMENT_CHARACTER)).collect::<String>()
            })),
            (Kind::Bytes(_), Elements::Text(out)) => out.extend(items.map(|b| {
                let end = b.iter().rposition(|&c| c != 0).map_or(0, |last| last + 1);
                String::from_utf8_lossy(&b[..end]).into_owned()
            })),
            _ => unreachable!("the container was made by Kind::empty"),
        }
        Ok(())
    }
}

/// Up to eight bytes as a number.
fn number(bytes: &[u8], big: bool) -> u64 {
    let add = |value: u64, byte: &u8| value << 8 | *byte as u64;
    if big { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) }
}

/// Rearranges two-dimensional Fortran order.
fn to_c_order(data: Elements, shape: &[usize]) -> Result<Elements, ArrayProblem> {
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

struct Header {
    kind: Kind,
    big_endian: bool,
    fortran: bool,
    shape: Vec<usize>,
}

impl Header {
    fn read(source: &mut impl Read) -> Result<Header, ArrayProblem> {
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
            version => return Err(ArrayProblem::NotNpy(format!("version {version} is not known"))),
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
