//! The safetensors format: a JSON header and raw little-endian tensors.

use std::path::Path;

use half::{bf16, f16};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use super::{Array, Arrays, Elements};
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

fn convert(tensor: &TensorView<'_>) -> Result<Array, ArrayProblem> {
    /// Elements of N bytes.
    fn items<const N: usize>(tensor: &TensorView<'_>) -> impl Iterator<Item = [u8; N]> {
        tensor.data().as_chunks::<N>().0.iter().copied()
    }
    let data = match tensor.dtype() {
        Dtype::F16 => Elements::Float(items(tensor).map(|b| f16::from_le_bytes(b).to_f32()).collect()),
        Dtype::BF16 => Elements::Float(items(tensor).map(|b| bf16::from_le_bytes(b).to_f32()).collect()),
        Dtype::F32 => Elements::Float(items(tensor).map(f32::from_le_bytes).collect()),
        Dtype::F64 => Elements::Float(items(tensor).map(|b| f64::from_le_bytes(b) as f32).collect()),
        Dtype::BOOL | Dtype::U8 => Elements::Integer(tensor.data().iter().map(|&b| b as i64).collect()),
        Dtype::I8 => Elements::Integer(tensor.data().iter().map(|&b| b as i8 as i64).collect()),
        Dtype::I16 => Elements::Integer(items(tensor).map(|b| i16::from_le_bytes(b) as i64).collect()),
        Dtype::U16 => Elements::Integer(items(tensor).map(|b| u16::from_le_bytes(b) as i64).collect()),
        Dtype::I32 => Elements::Integer(items(tensor).map(|b| i32::from_le_bytes(b) as i64).collect()),
        Dtype::U32 => Elements::Integer(items(tensor).map(|b| u32::from_le_bytes(b) as i64).collect()),
        Dtype::U64 => {
            let whole: Result<Vec<i64>, _> = items(tensor).map(|b| i64::try_from(u64::from_le_bytes(b))).collect();
            Elements::Integer(whole.map_err(|_| ArrayProblem::Dtype {
                found: "U64 with numbers beyond 2^63".to_owned(),
                expected: "an integer type whose values fit into 64 bits with a sign",
            })?)
        }
        Dtype::I64 => Elements::Integer(items(tensor).map(i64::from_le_bytes).collect()),
        other => {
            return Err(ArrayProblem::Dtype {
                found: format!("{other:?}"),
                expected: "a float of 16, 32 or 64 bits, or an integer type",
            });
        }
    };
    Ok(Array { shape: tensor.shape().to_vec(), data })
}
