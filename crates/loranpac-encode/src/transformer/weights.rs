//! Tensors of a safetensors file, read one at a time by name.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use loranpac_data::safetensors::{HeaderError, read_header};
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::regular;

/// A safetensors file. Notes which tensors were used, so that what a model does not understand can be refused.
pub(crate) struct Weights {
    path: PathBuf,
    file: RefCell<File>,
    header: Metadata,
    start: u64,
    unused: RefCell<BTreeSet<String>>,
}

impl Weights {
    /// Opens a file, or `model.safetensors` in a folder.
    pub fn open(path: &Path) -> Result<Weights, Error> {
        let path = if path.is_dir() { path.join("model.safetensors") } else { path.to_owned() };
        let read = |source| Error::Read { path: path.clone(), source };
        let file = regular::open(&path).map_err(read)?;
        let length = file.metadata().map_err(read)?.len();
        let mut reader = BufReader::new(&file);
        let (header, start) = read_header(&mut reader, length).map_err(|error| match error {
            HeaderError::Read(source) => read(source),
            HeaderError::Damaged(reason) => Error::Weights { path: path.clone(), reason },
        })?;
        let unused = RefCell::new(header.tensors().into_keys().collect());
        Ok(Weights { path, file: RefCell::new(file), header, start, unused })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the header says besides tensors.
    pub fn metadata(&self) -> Option<&HashMap<String, String>> {
        self.header.metadata().as_ref()
    }

    /// Names of all tensors, in order.
    pub fn names(&self) -> Vec<String> {
        let names: BTreeSet<String> = self.header.tensors().into_keys().collect();
        names.into_iter().collect()
    }

    /// Whether there is a tensor of this name.
    pub fn has(&self, name: &str) -> bool {
        self.header.info(name).is_some()
    }

    /// The shape of a tensor.
    pub fn shape(&self, name: &str) -> Result<&[usize], Error> {
        self.info(name).map(|info| info.shape.as_slice())
    }

    fn info(&self, name: &str) -> Result<&TensorInfo, Error> {
        let missing = || Error::TensorMissing { path: self.path.clone(), name: name.to_owned() };
        self.header.info(name).ok_or_else(missing)
    }

    /// The numbers of a tensor of this shape, in f32.
    pub fn tensor(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        let found = self.shape(name)?;
        if found != shape {
            let (name, expected, found) = (name.to_owned(), shape.to_vec(), found.to_vec());
            return Err(Error::TensorShape { path: self.path.clone(), name, expected, found });
        }
        self.read(name)
    }

    /// The numbers of a tensor of any shape, in f32.
    pub fn read(&self, name: &str) -> Result<Vec<f32>, Error> {
        let info = self.info(name)?;
        let (start, end) = info.data_offsets;
        let failed = |source| Error::Read { path: self.path.clone(), source };
        let mut bytes = vec![0; end - start];
        let mut file = self.file.borrow_mut();
        file.seek(SeekFrom::Start(self.start + start as u64)).map_err(failed)?;
        file.read_exact(&mut bytes).map_err(failed)?;
        self.unused.borrow_mut().remove(name);
        let halves = || bytes.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b));
        let numbers: Vec<f32> = match info.dtype {
            Dtype::F32 => bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            Dtype::F16 => halves().map(f16::from_bits).collect::<Vec<_>>().to_f32_vec(),
            Dtype::BF16 => halves().map(bf16::from_bits).collect::<Vec<_>>().to_f32_vec(),
            other => {
                let (name, dtype) = (name.to_owned(), format!("{other:?}"));
                return Err(Error::TensorType { path: self.path.clone(), name, dtype });
            }
        };
        match numbers.iter().find(|number| !number.is_finite()) {
            None => Ok(numbers),
            Some(number) => {
                let (path, name) = (self.path.clone(), name.to_owned());
                Err(Error::TensorNumber { path, name, number: *number })
            }
        }
    }

    /// Refuses the file if a tensor was not used whose name does not contain one of `ignored`.
    pub fn finish(&self, model: &'static str, ignored: &[&str]) -> Result<(), Error> {
        let unused = self.unused.borrow();
        match unused.iter().find(|name| !ignored.iter().any(|part| name.contains(part))) {
            None => Ok(()),
            Some(name) => Err(Error::TensorUnknown { path: self.path.clone(), name: name.clone(), model }),
        }
    }

    /// SHA-256 of the file.
    pub fn digest(&self) -> Result<[u8; 32], Error> {
        let failed = |source| Error::Read { path: self.path.clone(), source };
        let mut file = self.file.borrow_mut();
        file.rewind().map_err(failed)?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer).map_err(failed)? {
                0 => return Ok(hash.finalize().into()),
                n => hash.update(&buffer[..n]),
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use loranpac_data::safetensors::{TensorInfo, header};

    use super::*;

    /// Writes tensors as f32.
    pub(crate) fn write(path: &Path, tensors: &[(String, Vec<usize>, Vec<f32>)]) {
        let infos = tensors.iter().map(|(name, shape, data)| {
            assert_eq!(shape.iter().product::<usize>(), data.len(), "{name}");
            TensorInfo { name, dtype: "F32", shape, bytes: 4 * data.len() }
        });
        let mut bytes = header(infos, None);
        bytes.extend(tensors.iter().flat_map(|(_, _, data)| data.iter().flat_map(|x| x.to_le_bytes())));
        fs::write(path, bytes).unwrap();
    }

    /// A file with one tensor `w` of shape (2).
    fn one(dtype: &str, data: &[u8]) -> Result<Vec<f32>, Error> {
        let folder = tempfile::tempdir().unwrap();
        let info = TensorInfo { name: "w", dtype, shape: &[2], bytes: data.len() };
        fs::write(folder.path().join("model.safetensors"), [header([info], None), data.to_vec()].concat()).unwrap();
        Weights::open(folder.path())?.tensor("w", &[2])
    }

    #[test]
    fn f32_f16_and_bf16_are_read() {
        let expected = vec![1.5, -0.25];
        assert_eq!(one("F32", &[0, 0, 0xc0, 0x3f, 0, 0, 0x80, 0xbe]).unwrap(), expected);
        assert_eq!(one("F16", &[0, 0x3e, 0, 0xb4]).unwrap(), expected);
        assert_eq!(one("BF16", &[0xc0, 0x3f, 0x80, 0xbe]).unwrap(), expected);
        let error = one("F32", &[0, 0, 0xc0, 0x7f, 0, 0, 0, 0]).unwrap_err();
        assert!(error.to_string().contains("tensor w has the number NaN"), "{error}");
        assert!(matches!(one("F16", &[0, 0, 0, 0x7c]), Err(Error::TensorNumber { .. })));
        let error = one("I16", &[0; 4]).unwrap_err();
        assert!(
            error.to_string().ends_with("model.safetensors: tensor w has type I16 (convert it to F32, F16 or BF16)")
        );
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.safetensors");
        write(&path, &[("a".into(), vec![2, 3], vec![0.0; 6]), ("head.b".into(), vec![1], vec![0.0])]);
        let weights = Weights::open(&path).unwrap();
        let ends = |error: Error, end: &str| assert!(error.to_string().ends_with(end), "{error}");
        ends(weights.tensor("c", &[1]).unwrap_err(), "w.safetensors: tensor c is missing");
        ends(weights.tensor("a", &[3, 2]).unwrap_err(), "tensor a has shape [2, 3] instead of [3, 2]");
        ends(weights.finish("ViT", &["head."]).unwrap_err(), "tensor a has no place in a ViT that loranpac supports");
        weights.tensor("a", &[2, 3]).unwrap();
        weights.finish("ViT", &["head."]).unwrap();
        fs::write(&path, [1, 2, 3]).unwrap();
        ends(Weights::open(&path).map(|_| ()).unwrap_err(), "shorter than a header");
    }
}
