//! NumPy's npz: a zip archive of npy files, stored or deflated.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::CrcReader;
use flate2::bufread::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use super::container::Container;
use super::source::{Shared, Window};
use super::stream::Stream;
use super::{Arrays, npy};
use crate::error::{ArrayProblem, Error};

/// Deflate cannot expand by more than this, so a larger claim is a lie.
const LARGEST_EXPANSION: u64 = 1_032;

pub(super) fn read(path: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Arrays, Error> {
    let damaged = |reason: String| Error::Container { path: path.to_owned(), reason };
    let file = File::open(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|e| damaged(e.to_string()))?;
    let mut arrays = Arrays::new();
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|e| damaged(e.to_string()))?;
        let name = entry.name().map_err(|e| damaged(e.to_string()))?.into_owned();
        let Some(name) = name.strip_suffix(".npy").map(str::to_owned) else { continue };
        if wanted(&name) {
            let available = entry.size().min(entry.compressed_size().saturating_mul(LARGEST_EXPANSION));
            let array = npy::read(entry, available);
            let array =
                array.map_err(|problem| Error::Array { path: path.to_owned(), array: name.clone(), problem })?;
            arrays.insert(name, array);
        }
    }
    Ok(arrays)
}

/// An archive whose entries are read without borrowing it, several at a time.
pub(super) struct Npz {
    path: PathBuf,
    shared: Shared,
    archive: ZipArchive<BufReader<Window>>,
}

impl Npz {
    pub fn open(path: &Path, shared: &Shared) -> Result<Npz, Error> {
        let archive = ZipArchive::new(shared.whole())
            .map_err(|e| Error::Container { path: path.to_owned(), reason: e.to_string() })?;
        Ok(Npz { path: path.to_owned(), shared: shared.clone(), archive })
    }

    fn stream(&mut self, name: &str) -> Result<Stream, ArrayProblem> {
        let damaged = |reason: String| ArrayProblem::Damaged(reason);
        let entry = self.archive.by_name(&format!("{name}.npy")).map_err(|e| damaged(e.to_string()))?;
        if entry.encrypted() {
            return Err(damaged("it is encrypted".to_owned()));
        }
        let start = entry.data_start().ok_or_else(|| damaged("its place in the archive is not known".to_owned()))?;
        let (size, packed) = (entry.size(), entry.compressed_size());
        let raw = self.shared.window(start, packed);
        let (unpacked, available): (Box<dyn Read + Send>, u64) = match entry.compression() {
            CompressionMethod::Stored => (Box::new(raw), size.min(packed)),
            CompressionMethod::Deflated => {
                (Box::new(DeflateDecoder::new(raw)), size.min(packed.saturating_mul(LARGEST_EXPANSION)))
            }
            other => return Err(damaged(format!("compression {other} is not one that NumPy writes"))),
        };
        let checked = Checked { source: CrcReader::new(unpacked.take(size)), expected: entry.crc32() };
        Stream::npy(Box::new(BufReader::new(checked)), available)
    }
}

impl Container for Npz {
    fn names(&self) -> Vec<String> {
        let names = self.archive.file_names().filter_map(Result::ok);
        names.filter_map(|name| name.strip_suffix(".npy").map(str::to_owned)).collect()
    }

    fn array(&mut self, name: &str) -> Result<Stream, Error> {
        self.stream(name).map_err(|problem| Error::Array { path: self.path.clone(), array: name.to_owned(), problem })
    }
}

/// Compares the checksum when the end is reached.
struct Checked<R> {
    source: CrcReader<R>,
    expected: u32,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.source.read(buffer)?;
        if got == 0 && !buffer.is_empty() && self.source.crc().sum() != self.expected {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its checksum does not hold"));
        }
        Ok(got)
    }
}
