//! Segments: immutable safetensors files that are checked by their digest and mapped into memory.

use std::io;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;
use loranpac::internals::{Buffer, Source};
use loranpac_data::safetensors::{HeaderError, TensorInfo, header, read_header};
use memmap2::Mmap;
use safetensors::Dtype;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::disk::{Disk, Output, create_anew, open_regular};
use crate::error::Error;
use crate::lift::hex;

#[cfg(target_endian = "big")]
compile_error!("segments are little-endian and are mapped as they are");

/// The maximum number of bytes per write.
const PIECE: usize = 1 << 20;

/// The size and digest of a file of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of the whole file, in hexadecimal digits.
    pub sha256: String,
}

/// An element type of tensors.
pub trait Element: Pod + Send + Sync {
    /// Its name in a header.
    const NAME: &'static str;
    /// Its type for the reader.
    const DTYPE: Dtype;
}

impl Element for f32 {
    const NAME: &'static str = "F32";
    const DTYPE: Dtype = Dtype::F32;
}

impl Element for f64 {
    const NAME: &'static str = "F64";
    const DTYPE: Dtype = Dtype::F64;
}

impl Element for half::f16 {
    const NAME: &'static str = "F16";
    const DTYPE: Dtype = Dtype::F16;
}

impl Element for i32 {
    const NAME: &'static str = "I32";
    const DTYPE: Dtype = Dtype::I32;
}

impl Element for u32 {
    const NAME: &'static str = "U32";
    const DTYPE: Dtype = Dtype::U32;
}

/// A tensor to be written: its numbers in C order, in runs that need not be contiguous.
pub struct Tensor<'a> {
    name: String,
    dtype: &'static str,
    /// Bytes of an element.
    size: usize,
    shape: [usize; 2],
    runs: Vec<&'a [u8]>,
}

impl<'a> Tensor<'a> {
    /// Creates a matrix of `rows` rows from runs of its numbers.
    pub fn new<T: Element>(name: &str, rows: usize, columns: usize, runs: impl IntoIterator<Item = &'a [T]>) -> Self {
        let runs: Vec<&[u8]> = runs.into_iter().map(bytemuck::cast_slice).collect();
        debug_assert_eq!(runs.iter().map(|run| run.len()).sum::<usize>(), rows * columns * size_of::<T>());
        Tensor { name: name.to_owned(), dtype: T::NAME, size: size_of::<T>(), shape: [rows, columns], runs }
    }
}

/// Writes tensors into a new file and syncs it. Those with larger elements come first, so that every tensor is aligned.
pub fn write(disk: &dyn Disk, path: &Path, mut tensors: Vec<Tensor<'_>>) -> Result<FileEntry, Error> {
    tensors.sort_by_key(|tensor| std::cmp::Reverse(tensor.size));
    let infos = tensors.iter().map(|Tensor { name, dtype, shape, runs, .. }| TensorInfo {
        name,
        dtype,
        shape,
        bytes: runs.iter().map(|run| run.len()).sum(),
    });
    let header = header(infos, None);
    let runs = tensors.iter().flat_map(|tensor| &tensor.runs).copied();
    write_bytes(disk, path, [header.as_slice()].into_iter().chain(runs))
}

/// Writes a file and syncs it. An existing file of this name, from an earlier attempt, is removed first.
pub fn write_bytes<'a>(
    disk: &dyn Disk,
    path: &Path,
    runs: impl IntoIterator<Item = &'a [u8]>,
) -> Result<FileEntry, Error> {
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let all = |out: &mut dyn Output| -> io::Result<()> {
        for piece in runs.into_iter().flat_map(|run| run.chunks(PIECE)) {
            out.write_all(piece)?;
            hash.update(piece);
            bytes += piece.len() as u64;
        }
        out.flush()?;
        out.sync()
    };
    create_anew(disk, path)
        .and_then(|mut out| all(&mut *out))
        .map_err(|source| Error::Write { path: path.to_owned(), source })?;
    Ok(FileEntry { bytes, sha256: hex(&hash.finalize()) })
}

/// A mapped file.
pub struct Segment {
    path: std::path::PathBuf,
    map: Arc<Mmap>,
}

impl Segment {
    /// Maps a file, and checks its size.
    pub fn open(path: &Path, entry: &FileEntry) -> Result<Segment, Error> {
        let failed = Error::read(path);
        let file = open_regular(path).map_err(|error| match error {
            Error::Read(error) if error.is_missing() => Error::Missing { path: error.path },
            other => other,
        })?;
        let found = file.metadata().map_err(&failed)?.len();
        if found != entry.bytes {
            let reason = format!("it has {found} bytes instead of {}", entry.bytes);
            return Err(Error::Damaged { path: path.to_owned(), reason });
        }
        // SAFETY: a segment is never modified after a manifest refers to it, and is unlinked, not truncated, when it is
        // no longer needed. Truncating it by hand while it is mapped terminates the process.
        #[allow(unsafe_code)]
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        Ok(Segment { path: path.to_owned(), map: Arc::new(map) })
    }

    /// Reads the whole file and compares it with its digest.
    pub fn check(&self, entry: &FileEntry) -> Result<(), Error> {
        if hex(&Sha256::digest(&self.map[..])) == entry.sha256 {
            return Ok(());
        }
        Err(self.damaged("its contents do not agree with the checksum in the manifest".to_owned()))
    }

    fn damaged(&self, reason: String) -> Error {
        Error::Damaged { path: self.path.clone(), reason }
    }

    /// Returns the numbers of a tensor, in place, and checks its shape.
    pub fn tensor<T: Element>(&self, name: &str, rows: usize, columns: usize) -> Result<Numbers<T>, Error> {
        let (header, start) = read_header(&mut &self.map[..], self.map.len() as u64).map_err(|error| match error {
            HeaderError::Read(source) => Error::read(&self.path)(source),
            HeaderError::Damaged(reason) => self.damaged(reason),
        })?;
        let tensor = header.info(name).ok_or_else(|| self.damaged(format!("tensor {name} is missing")))?;
        if tensor.dtype != T::DTYPE || tensor.shape != [rows, columns] {
            let (found, shape) = (tensor.dtype, &tensor.shape);
            let expected = format!("{} of [{rows}, {columns}]", T::NAME);
            return Err(self.damaged(format!("tensor {name} is {found:?} of {shape:?} instead of {expected}")));
        }
        // The header accounts for every byte of the file.
        let (start, end) = (start as usize + tensor.data_offsets.0, start as usize + tensor.data_offsets.1);
        if !start.is_multiple_of(size_of::<T>()) {
            // Version 0.1.0 wrote unaligned files: f64 after an odd number of f32.
            let data = self.map[start..end].chunks_exact(size_of::<T>());
            let copy: Vec<T> = data.map(bytemuck::pod_read_unaligned).collect();
            return Ok(Numbers { source: Arc::new(copy), count: rows * columns, copied: true });
        }
        let view = View::<T> { map: self.map.clone(), start, length: end - start, numbers: PhantomData };
        Ok(Numbers { source: Arc::new(view), count: rows * columns, copied: false })
    }
}

/// The numbers of a tensor in a mapped file.
pub struct Numbers<T> {
    source: Source<T>,
    count: usize,
    /// Whether they are a copy: a part must then not keep all of it alive.
    copied: bool,
}

impl<T: Element> Numbers<T> {
    /// Returns a part of them, in place.
    pub fn part(&self, start: usize, length: usize) -> Option<Buffer<T>> {
        let range = start..start.checked_add(length)?;
        match self.copied {
            true => (*self.source).as_ref().get(range).map(|part| Buffer::from(part.to_vec())),
            false => Buffer::shared(self.source.clone(), range),
        }
    }

    /// Returns all numbers.
    pub fn all(&self) -> Buffer<T> {
        Buffer::Shared(self.source.clone(), 0..self.count)
    }
}

struct View<T> {
    map: Arc<Mmap>,
    start: usize,
    length: usize,
    numbers: PhantomData<T>,
}

impl<T: Element> AsRef<[T]> for View<T> {
    fn as_ref(&self) -> &[T] {
        bytemuck::cast_slice(&self.map[self.start..self.start + self.length])
    }
}
