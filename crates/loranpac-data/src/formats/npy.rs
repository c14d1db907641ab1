//! NumPy's npy format, versions 1 to 3: a header that is a Python dictionary, then the elements.
//!
//! Read here rather than by a crate, because a header must never cause an allocation that the file does not
//! warrant: memory grows with the bytes that are really there, and every product of sizes is checked.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::container::Container;
use super::element::Kind;
use super::stream::Stream;
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

/// The `.npy` files of a folder, as one file with named arrays.
pub(super) struct Folder(pub PathBuf);

impl Container for Folder {
    fn names(&self) -> Vec<String> {
        // A folder that cannot be listed has no arrays; the error says that it was looked for.
        let paths = self.0.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        let arrays = paths.filter(|path| path.extension().is_some_and(|e| e == "npy"));
        let mut names: Vec<String> =
            arrays.filter_map(|path| path.file_stem().map(|s| s.to_string_lossy().into_owned())).collect();
        names.sort();
        names
    }

    fn array(&mut self, name: &str) -> Result<Stream, Error> {
        let path = self.0.join(format!("{name}.npy"));
        let failed = |source| Error::Read { path: path.clone(), source };
        let file = File::open(&path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        Stream::npy(Box::new(BufReader::new(file)), length).map_err(|problem| Error::Array {
            path: self.0.clone(),
            array: name.to_owned(),
            problem,
        })
    }
}

/// Reads an array of which `available` bytes (header included) are said to be there.
pub(super) fn read(mut source: impl Read, available: u64) -> Result<Array, ArrayProblem> {
    let header = Header::read(&mut source)?;
    let array = header.read_whole(&mut source, available)?;
    // A zip entry checks its checksum when it is read to its end.
    source.read(&mut [0u8; 1]).map_err(|e| ArrayProblem::Damaged(e.to_string()))?;
    Ok(array)
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

/// What stands before the elements.
pub(super) struct Header {
    pub kind: Kind,
    pub big_endian: bool,
    pub fortran: bool,
    pub shape: Vec<usize>,
}

impl Header {
    /// Bytes of all elements. Refused if there are more than `available`.
    pub fn promised(&self, available: u64) -> Result<u64, ArrayProblem> {
        let count = self.shape.iter().try_fold(1u128, |n, &d| n.checked_mul(d as u128)).unwrap_or(u128::MAX);
        let promised = count.saturating_mul(self.kind.bytes() as u128);
        let truncated = || ArrayProblem::Truncated { shape: self.shape.clone(), promised, found: available };
        u64::try_from(promised).ok().filter(|&bytes| bytes <= available).ok_or_else(truncated)
    }

    /// Reads all elements, into C order.
    pub fn read_whole(self, source: &mut impl Read, available: u64) -> Result<Array, ArrayProblem> {
        let promised = self.promised(available)?;
        let mut data = self.kind.empty();
        let block = (BLOCK / self.kind.bytes()).max(1) * self.kind.bytes();
        let mut buffer = Vec::new();
        let mut left = promised;
        while left > 0 {
            buffer.clear();
            let want = left.min(block as u64);
            let got = source
                .by_ref()
                .take(want)
                .read_to_end(&mut buffer)
                .map_err(|e| ArrayProblem::Damaged(e.to_string()))?;
            if (got as u64) < want {
                let found = promised - left + got as u64;
                return Err(ArrayProblem::Truncated { shape: self.shape, promised: promised.into(), found });
            }
            self.kind.convert(&buffer, self.big_endian, &mut data)?;
            left -= want;
        }
        if self.fortran && self.shape.len() > 1 {
            data = to_c_order(data, &self.shape)?;
        }
        Ok(Array { shape: self.shape, data })
    }

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
