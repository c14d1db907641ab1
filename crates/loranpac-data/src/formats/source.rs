//! Sources of bytes. One file can be read at several offsets at once: an archive has features in one entry and labels
//! in another, and both are read a few rows at a time.

use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

/// Each read through a [`Window`] seeks; a large buffer makes them few.
const BUFFER: usize = 1 << 16;

/// A file, or bytes in memory.
pub trait Source: Read + Seek + Send {}

impl<T: Read + Seek + Send> Source for T {}

/// A source that several readers share.
#[derive(Clone)]
pub(crate) struct Shared {
    source: Arc<Mutex<Box<dyn Source>>>,
    length: u64,
}

/// Some bytes of a shared source, read in order; ends where the source ends.
pub(crate) struct Window {
    shared: Shared,
    start: u64,
    at: u64,
    end: u64,
}

impl Shared {
    pub fn new(source: impl Source + 'static) -> io::Result<Shared> {
        let mut source: Box<dyn Source> = Box::new(source);
        let length = source.seek(SeekFrom::End(0))?;
        Ok(Shared { source: Arc::new(Mutex::new(source)), length })
    }

    /// Bytes in all.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// At most `length` bytes from `start` on.
    pub fn window(&self, start: u64, length: u64) -> BufReader<Window> {
        let start = start.min(self.length);
        let end = start.saturating_add(length).min(self.length);
        let capacity = (end - start).clamp(1, BUFFER as u64) as usize;
        BufReader::with_capacity(capacity, Window { shared: self.clone(), start, at: start, end })
    }

    /// All of it.
    pub fn whole(&self) -> BufReader<Window> {
        self.window(0, self.length)
    }

    /// A copy of at most `length` bytes from `start` on. Allocates no more than the source has.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "only Parquet files are read like this"))]
    pub fn copy(&self, start: u64, length: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.window(start, length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Read for Window {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let want = (self.end - self.at).min(buffer.len() as u64) as usize;
        if want == 0 {
            return Ok(0);
        }
        // A reader that panicked leaves no state that the next seek would not replace.
        let mut source = self.shared.source.lock().unwrap_or_else(PoisonError::into_inner);
        source.seek(SeekFrom::Start(self.at))?;
        let got = source.read(&mut buffer[..want])?;
        self.at += got as u64;
        Ok(got)
    }
}

impl Seek for Window {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => self.start.checked_add(at),
            SeekFrom::End(by) => self.end.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        let before = || io::Error::new(io::ErrorKind::InvalidInput, "an offset before the beginning");
        // Beyond the end there is nothing to read, as in a file.
        self.at = at.filter(|&at| at >= self.start).ok_or_else(before)?.min(self.end);
        Ok(self.at - self.start)
    }
}
