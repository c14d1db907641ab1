//! NumPy's npz: a zip archive of npy files, stored or deflated.

use std::io::{self, BufReader, Cursor, Read, Seek, Write};
use std::path::{Path, PathBuf};

use flate2::CrcReader;
use flate2::bufread::DeflateDecoder;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::container::Container;
use super::format::{Format, Opening};
use super::npy::{self, Column};
use super::source::{Shared, Window};
use super::stream::Stream;
use crate::error::{ArrayProblem, Error};

/// The largest expansion of deflate. A larger claim is false.
const LARGEST_EXPANSION: u64 = 1_032;

/// Named NumPy arrays.
pub(super) const NPZ: Format = Format {
    name: "npz",
    other_names: &[],
    opening: Opening::Arrays(|path, shared| Ok(Box::new(Npz::open(path, &shared)?))),
    texts: None,
};

/// An archive whose entries are read without borrowing it, several at a time.
struct Npz {
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
        let start = entry.data_start().ok_or_else(|| damaged("its offset in the archive is unknown".to_owned()))?;
        let (size, packed) = (entry.size(), entry.compressed_size());
        let raw = self.shared.window(start, packed);
        let (unpacked, available): (Box<dyn Read + Send>, u64) = match entry.compression() {
            CompressionMethod::Stored => (Box::new(raw), size.min(packed)),
            CompressionMethod::Deflated => {
                (Box::new(DeflateDecoder::new(raw)), size.min(packed.saturating_mul(LARGEST_EXPANSION)))
            }
            other => return Err(damaged(format!("unsupported compression {other}"))),
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
            return Err(io::Error::new(io::ErrorKind::InvalidData, "checksum mismatch"));
        }
        Ok(got)
    }
}

/// An npz archive of named arrays, in memory.
pub fn to_npz(columns: &[(impl AsRef<str>, Column)]) -> io::Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    columns.iter().try_for_each(|(name, column)| add(&mut archive, name.as_ref(), column))?;
    Ok(archive.finish()?.into_inner())
}

/// Writes an npz archive of named arrays. Each is dropped when it is written.
pub fn write_npz(columns: impl IntoIterator<Item = (String, Column)>, out: impl Write) -> io::Result<()> {
    let mut archive = ZipWriter::new_stream(out);
    columns.into_iter().try_for_each(|(name, column)| add(&mut archive, &name, &column))?;
    archive.finish()?.into_inner().flush()
}

fn add<W: Write + Seek>(archive: &mut ZipWriter<W>, name: &str, column: &Column) -> io::Result<()> {
    archive.start_file(format!("{name}.npy"), SimpleFileOptions::default().large_file(true))?;
    npy::write(column, archive)
}
