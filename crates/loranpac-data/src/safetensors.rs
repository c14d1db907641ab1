//! The header of a safetensors file: its length in eight bytes, then JSON with the type, shape and place of each tensor.

use std::io::{self, Read};

use safetensors::tensor::Metadata;
use serde_json::{Map, Value, json};

/// A tensor in a header to be written.
pub struct TensorInfo<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type of element, as the format spells it.
    pub dtype: &'a str,
    /// Its shape.
    pub shape: &'a [usize],
    /// Bytes of its elements.
    pub bytes: usize,
}

/// The header of a file whose tensors follow in this order. It is padded so that they start at a multiple of eight bytes.
/// Keys are sorted, so that the same tensors always have the same header.
pub fn header<'a>(tensors: impl IntoIterator<Item = TensorInfo<'a>>, metadata: Option<Value>) -> Vec<u8> {
    let mut entries = Map::new();
    entries.extend(metadata.map(|metadata| ("__metadata__".to_owned(), metadata)));
    let mut at = 0;
    for TensorInfo { name, dtype, shape, bytes } in tensors {
        let entry = json!({ "dtype": dtype, "shape": shape, "data_offsets": [at, at + bytes] });
        entries.insert(name.to_owned(), entry);
        at += bytes;
    }
    let mut text = Value::Object(entries).to_string().into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    [&(text.len() as u64).to_le_bytes(), text.as_slice()].concat()
}

/// Why a header was refused.
#[derive(Debug, thiserror::Error)]
pub enum HeaderError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// The header is damaged.
    #[error("{0}")]
    Damaged(String),
}

/// Reads the header of a file of `length` bytes, which it must account for exactly. Returns it with the offset of the
/// data. Memory is allocated only for bytes that exist.
pub fn read_header(source: &mut impl Read, length: u64) -> Result<(Metadata, u64), HeaderError> {
    let damaged = |reason: String| Err(HeaderError::Damaged(reason));
    if length < 8 {
        return damaged(format!("it has {length} bytes, and is shorter than a header"));
    }
    let mut size = [0; 8];
    source.read_exact(&mut size)?;
    let size = u64::from_le_bytes(size);
    if size > length - 8 {
        return damaged(format!("its header should have {size} bytes, but the file has {length}"));
    }
    let mut text = Vec::new();
    source.take(size).read_to_end(&mut text)?;
    let header: Metadata = match serde_json::from_slice(&text) {
        Ok(header) => header,
        Err(error) => return damaged(format!("its header cannot be read: {error}")),
    };
    let (expected, found) = (header.data_len() as u64, length - 8 - size);
    if expected != found {
        return damaged(format!("its tensors should have {expected} bytes, but the file has {found} for them"));
    }
    Ok((header, size + 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back() {
        let info = |name, bytes| TensorInfo { name, dtype: "F32", shape: &[1, 2], bytes };
        let bytes = header([info("b", 8), info("a", 8)], Some(json!({ "k": "v" })));
        assert_eq!(bytes.len() % 8, 0);
        let (read, start) = read_header(&mut &bytes[..], bytes.len() as u64 + 16).unwrap();
        assert_eq!((start, read.info("a").unwrap().data_offsets), (bytes.len() as u64, (8, 16)));
        assert_eq!(read.metadata().as_ref().unwrap()["k"], "v");
    }
}
