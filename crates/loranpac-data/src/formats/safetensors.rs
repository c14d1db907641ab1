//! The safetensors format: a JSON header and raw little-endian tensors.

use std::path::{Path, PathBuf};

use safetensors::tensor::{Metadata, TensorView};
use safetensors::{Dtype, SafeTensors};

use super::container::Container;
use super::element::Kind;
use super::source::Shared;
use super::stream::Stream;
use super::{Array, Arrays};
use crate::error::{ArrayProblem, Error};

pub(super) fn read(path: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Arrays, Error> {
    let bytes = std::fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let tensors = SafeTensors::deserialize(&bytes)
        .map_err(|e| Error::Container { path: path.to_owned(), reason: e.to_string() })?;
    let mut arrays = Arrays::new();
    for (name, tensor) in tensors.tensors() {
        if wanted(&name) {
            let array = convert(&tensor);
            let array =
                array.map_err(|problem| Error::Array { path: path.to_owned(), array: name.clone(), problem })?;
            arrays.insert(name, array);
        }
    }
    Ok(arrays)
}

/// Our name for a type of element.
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

fn convert(tensor: &TensorView<'_>) -> Result<Array, ArrayProblem> {
    let kind = kind(tensor.dtype())?;
    let mut data = kind.empty();
    kind.convert(tensor.data(), false, &mut data)?;
    Ok(Array { shape: tensor.shape().to_vec(), data })
}

/// A file of which only the header is in memory.
pub(super) struct Tensors {
    path: PathBuf,
    shared: Shared,
    header: Metadata,
    /// Where the data begins.
    start: u64,
}

impl Tensors {
    pub fn open(path: &Path, shared: &Shared) -> Result<Tensors, Error> {
        let damaged = |reason: String| Error::Container { path: path.to_owned(), reason };
        let failed = |source| Error::Read { path: path.to_owned(), source };
        let length: [u8; 8] = shared
            .copy(0, 8)
            .map_err(failed)?
            .try_into()
            .map_err(|_| damaged("it is shorter than the length of a header".to_owned()))?;
        let length = u64::from_le_bytes(length);
        let start = length.checked_add(8).filter(|&start| start <= shared.length());
        let start = start.ok_or_else(|| damaged(format!("its header of {length} bytes is not all there")))?;
        let header = shared.copy(8, length).map_err(failed)?;
        let header: Metadata = serde_json::from_slice(&header).map_err(|e| damaged(format!("its header: {e}")))?;
        let promised = header.data_len() as u64;
        if start.checked_add(promised) != Some(shared.length()) {
            let there = shared.length() - start;
            return Err(damaged(format!("its header promises {promised} bytes of data, but there are {there}")));
        }
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
        let info = self.header.info(name).ok_or_else(|| {
            let found = self.names().join(", ");
            Error::MissingArray { path: self.path.clone(), array: name.to_owned(), found }
        })?;
        let kind = kind(info.dtype).map_err(refuse)?;
        let (from, to) = (info.data_offsets.0 as u64, info.data_offsets.1 as u64);
        let found = to.min(self.header.data_len() as u64).saturating_sub(from);
        let promised = info.shape.iter().fold(kind.bytes() as u128, |n, &d| n.saturating_mul(d as u128));
        if promised != u128::from(found) {
            return Err(refuse(ArrayProblem::Truncated { shape: info.shape.clone(), promised, found }));
        }
        let source = self.shared.window(self.start.saturating_add(from), found);
        Ok(Stream::new(Box::new(source), kind, info.shape.clone()))
    }
}
