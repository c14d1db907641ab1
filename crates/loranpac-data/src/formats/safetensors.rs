//! Samples in the safetensors format: a JSON header and raw little-endian tensors.

use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::Metadata;

use super::container::Container;
use super::element::Kind;
use super::format::{Format, Opening};
use super::source::Shared;
use super::stream::Stream;
use crate::error::{ArrayProblem, Error, ReadError};
use crate::safetensors::{HeaderError, read_header};

/// Named tensors.
pub(super) const SAFETENSORS: Format = Format {
    name: "safetensors",
    other_names: &[],
    opening: Opening::Arrays(|path, shared| Ok(Box::new(Tensors::open(path, &shared)?))),
    texts: None,
};

/// The kind of a type of element.
fn kind(dtype: Dtype) -> Result<Kind, ArrayProblem> {
    Ok(match dtype {
        Dtype::F16 => Kind::Float(2),
        Dtype::BF16 => Kind::Brain,
        Dtype::F32 => Kind::Float(4),
        Dtype::F64 => Kind::Float(8),
        Dtype::BOOL | Dtype::U8 => Kind::Unsigned(1),
        Dtype::U16 => Kind::Unsigned(2),
        Dtype::U32 => Kind::Unsigned(4),
        Dtype::U64 => Kind::Unsigned(8),
        Dtype::I8 => Kind::Signed(1),
        Dtype::I16 => Kind::Signed(2),
        Dtype::I32 => Kind::Signed(4),
        Dtype::I64 => Kind::Signed(8),
        other => {
            return Err(ArrayProblem::Dtype {
                found: format!("{other:?}"),
                expected: "a float of 16, 32 or 64 bits, or an integer type",
            });
        }
    })
}

/// A file of which only the header is in memory.
struct Tensors {
    path: PathBuf,
    shared: Shared,
    header: Metadata,
    /// Where the data begins.
    start: u64,
}

impl Tensors {
    pub fn open(path: &Path, shared: &Shared) -> Result<Tensors, Error> {
        let opened = read_header(&mut shared.whole(), shared.length());
        let (header, start) = opened.map_err(|error| match error {
            HeaderError::Read(source) => ReadError::new(path, source).into(),
            HeaderError::Damaged(reason) => Error::Container { path: path.to_owned(), reason },
        })?;
        Ok(Tensors { path: path.to_owned(), shared: shared.clone(), header, start })
    }
}

impl Container for Tensors {
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.header.tensors().into_keys().collect();
        names.sort();
        names
    }

    fn array(&mut self, name: &str) -> Result<Stream, Error> {
        let refuse = |problem| Error::Array { path: self.path.clone(), array: name.to_owned(), problem };
        let info = self
            .header
            .info(name)
            .ok_or_else(|| super::names::missing(&self.path, &self.names(), name.to_owned(), "array", ""))?;
        let kind = kind(info.dtype).map_err(refuse)?;
        let (from, to) = (info.data_offsets.0 as u64, info.data_offsets.1 as u64);
        let found = to.min(self.header.data_len() as u64).saturating_sub(from);
        let needed = info.shape.iter().fold(kind.bytes() as u128, |n, &d| n.saturating_mul(d as u128));
        if needed != u128::from(found) {
            return Err(refuse(ArrayProblem::Truncated { shape: info.shape.clone(), needed, found }));
        }
        let source = self.shared.window(self.start.saturating_add(from), found);
        Ok(Stream::new(Box::new(source), kind, info.shape.clone()))
    }
}
