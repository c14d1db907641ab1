//! Tar archives. One on disk is indexed and read in the order of its names; a compressed one is read twice, for the names
//! and for the contents, in its own order. Nothing is extracted to disk.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tar::{EntryType, Header, PaxExtensions};

use super::layout::{self, Listing};
use super::outline::Found;
use super::{About, Input, InputOptions, LONGEST_LIST, Source, Tags, read_limited, shown, to_data};
use crate::error::Error;
use crate::regular;

/// Size of a header, and the unit to which contents are padded.
const BLOCK: u64 = 512;
/// The longest name or other extension of a header, which is kept in memory.
const LONGEST_EXTENSION: u64 = 1 << 20;
/// The most bytes of the names of a compressed archive, with [`ENTRY`] for each: some bytes can unpack to many names.
const MOST_NAMES: usize = 1 << 30;
/// Bytes of memory that an entry needs besides its name.
const ENTRY: usize = 128;

/// An archive on disk.
pub(super) struct Tape {
    path: PathBuf,
    file: File,
    /// Name, offset, size and tags of each input.
    entries: std::vec::IntoIter<(String, u64, u64, Tags)>,
    about: About,
    options: InputOptions,
}

impl Tape {
    pub fn open(path: &Path, options: &InputOptions) -> Result<Tape, Error> {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        let refuse = |reason: String| Error::Archive { path: path.to_owned(), reason };
        let file = regular::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        let (length, modified) = (about.len(), about.modified().ok());
        let mut headers = Headers::new(BufReader::new(&file));
        let mut found = Vec::new();
        while let Some(entry) = headers.next().map_err(|e| refuse(e.to_string()))? {
            let end = headers.place.checked_add(entry.size).filter(|&end| end <= length);
            let end = end.ok_or_else(|| refuse(format!("it is truncated in {}", entry.name)))?;
            found.push((Found { name: entry.name, size: entry.size, modified }, headers.place));
            let padded = end.next_multiple_of(BLOCK);
            headers.source.seek_relative((padded - headers.place) as i64).map_err(failed)?;
            headers.place = padded;
        }
        found.sort_by(|a, b| (&a.0.name, a.1).cmp(&(&b.0.name, b.1)));
        let (found, places): (Vec<Found>, Vec<u64>) = found.into_iter().unzip();
        let read_list = |at: usize| {
            let name = shown(&path.display().to_string(), &found[at].name);
            let bytes = read(&file, &name, (places[at], found[at].size), LONGEST_LIST);
            bytes.map_err(failed)?
        };
        let Listing { inputs, about } = layout::list(path, &found, options, true, read_list)?;
        let entry = |(at, tags): (usize, Tags)| (found[at].name.clone(), places[at], found[at].size, tags);
        let entries = inputs.into_iter().map(entry).collect::<Vec<_>>().into_iter();
        Ok(Tape { path: path.to_owned(), file, entries, about, options: options.clone() })
    }
}

/// The contents of a file at a place of an archive. The outer error is one of the archive.
fn read(mut file: &File, name: &str, (place, size): (u64, u64), largest: u64) -> io::Result<Result<Vec<u8>, Error>> {
    file.seek(SeekFrom::Start(place))?;
    Ok(read_limited(name, file.take(size), largest))
}

impl Source for Tape {
    fn about(&self) -> &About {
        &self.about
    }

    fn len(&self) -> Option<usize> {
        Some(self.entries.len())
    }

    fn next(&mut self) -> Option<Result<Input, Error>> {
        let (name, place, size, tags) = self.entries.next()?;
        let archive = self.path.display().to_string();
        let entry = shown(&archive, &name);
        let bytes = match read(&self.file, &entry, (place, size), self.options.largest) {
            Ok(bytes) => bytes,
            Err(source) => return Some(Err(Error::Read { path: self.path.clone(), source })),
        };
        let data = bytes.and_then(|bytes| to_data(&entry, bytes, self.options.modality));
        Some(data.map(|data| Input { tags, place: Some(archive), ..Input::new(name, data) }))
    }
}

/// A compressed archive.
pub(super) struct Packed {
    path: PathBuf,
    headers: Headers<Unpacked>,
    /// The inputs among the entries, in order: place among all entries, and tags.
    wanted: std::iter::Peekable<std::vec::IntoIter<(usize, Tags)>>,
    /// Entries whose headers were read.
    at: usize,
    about: About,
    options: InputOptions,
}

type Unpacked = BufReader<MultiGzDecoder<BufReader<File>>>;

impl Packed {
    pub fn open(path: &Path, options: &InputOptions) -> Result<Packed, Error> {
        let open = || regular::open(path).map_err(|source| Error::Read { path: path.to_owned(), source });
        let unpack = |file: File| Headers::new(BufReader::new(MultiGzDecoder::new(BufReader::new(file))));
        let file = open()?;
        let modified = file.metadata().ok().and_then(|about| about.modified().ok());
        let mut headers = unpack(file);
        let (mut found, mut lists) = (Vec::new(), HashMap::new());
        let refuse = |e: io::Error| Error::Archive { path: path.to_owned(), reason: e.to_string() };
        let mut bytes = 0;
        while let Some(entry) = headers.next().map_err(refuse)? {
            match options.layout.reads(&entry.name) {
                true => {
                    let name = shown(&path.display().to_string(), &entry.name);
                    let list = headers.contents(&name, entry.size, LONGEST_LIST).map_err(refuse)??;
                    lists.insert(found.len(), list);
                }
                false => headers.skip(entry.size).map_err(refuse)?,
            }
            bytes += entry.name.len() + ENTRY;
            if bytes > MOST_NAMES {
                return Err(refuse(io::Error::other("it has too many files; unpack it, or divide it")));
            }
            found.push(Found { name: entry.name, size: entry.size, modified });
        }
        // The checksums are at the end, behind the padding of the archive.
        io::copy(&mut headers.source, &mut io::sink()).map_err(refuse)?;
        let read_list = |at: usize| Ok(lists.remove(&at).unwrap_or_default());
        let Listing { inputs, about } = layout::list(path, &found, options, true, read_list)?;
        let wanted = inputs.into_iter().peekable();
        let headers = unpack(open()?);
        Ok(Packed { path: path.to_owned(), headers, wanted, at: 0, about, options: options.clone() })
    }

    /// The next input. An error is one of the archive.
    fn advance(&mut self) -> io::Result<Option<Result<Input, Error>>> {
        while let Some(entry) = self.headers.next()? {
            let at = self.at;
            self.at += 1;
            let Some((_, tags)) = self.wanted.next_if(|wanted| wanted.0 == at) else {
                self.headers.skip(entry.size)?;
                continue;
            };
            let (archive, name) = (self.path.display().to_string(), entry.name);
            let named = shown(&archive, &name);
            let bytes = self.headers.contents(&named, entry.size, self.options.largest)?;
            let data = bytes.and_then(|bytes| to_data(&named, bytes, self.options.modality));
            return Ok(Some(data.map(|data| Input { tags, place: Some(archive), ..Input::new(name, data) })));
        }
        Ok(None)
    }
}

impl Source for Packed {
    fn about(&self) -> &About {
        &self.about
    }

    fn len(&self) -> Option<usize> {
        Some(self.wanted.len())
    }

    fn next(&mut self) -> Option<Result<Input, Error>> {
        if self.wanted.len() == 0 {
            return None;
        }
        let gone = || io::Error::other("it changed while it was read");
        match self.advance().and_then(|found| found.ok_or_else(gone)) {
            Ok(found) => Some(found),
            Err(e) => Some(Err(Error::Archive { path: self.path.clone(), reason: e.to_string() })),
        }
    }
}

/// Reads the headers of files. The `tar` crate parses them; its own iterator borrows the archive and keeps extensions of
/// any size in memory.
struct Headers<R> {
    source: R,
    /// Bytes that were read.
    place: u64,
}

/// A file in an archive, whose contents follow.
struct FileHeader {
    name: String,
    size: u64,
}

impl<R: Read> Headers<R> {
    fn new(source: R) -> Headers<R> {
        Headers { source, place: 0 }
    }

    /// The next file; none at the end. Links, whose contents are elsewhere, are errors.
    fn next(&mut self) -> io::Result<Option<FileHeader>> {
        let (mut long_name, mut long_size) = (None, None);
        loop {
            let mut block = [0; BLOCK as usize];
            self.source.read_exact(&mut block).map_err(|e| match e.kind() {
                io::ErrorKind::UnexpectedEof => io::Error::other("it is truncated: it has no end mark"),
                _ => e,
            })?;
            self.place += BLOCK;
            if block.iter().all(|&byte| byte == 0) {
                return Ok(None);
            }
            let header = Header::from_byte_slice(&block);
            check_sum(header, &block)?;
            let size = long_size.take().map_or_else(|| header.entry_size(), Ok)?;
            match header.entry_type() {
                EntryType::GNULongName => {
                    let mut bytes = self.extension(size)?;
                    bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()));
                    long_name = Some(layout::clean(&bytes));
                }
                EntryType::XHeader => {
                    let bytes = self.extension(size)?;
                    for extension in PaxExtensions::new(&bytes) {
                        let extension = extension?;
                        match extension.key_bytes() {
                            b"path" => long_name = Some(layout::clean(extension.value_bytes())),
                            b"size" => long_size = extension.value().ok().and_then(|size| size.parse().ok()),
                            _ => {}
                        }
                    }
                }
                EntryType::Regular | EntryType::Continuous => {
                    let name = long_name.unwrap_or_else(|| layout::clean(&header.path_bytes()));
                    return Ok(Some(FileHeader { name, size }));
                }
                EntryType::Symlink | EntryType::Link | EntryType::GNUSparse => {
                    let name = long_name.unwrap_or_else(|| layout::clean(&header.path_bytes()));
                    return Err(io::Error::other(format!(
                        "{name} is a link or a sparse file; pack the files themselves"
                    )));
                }
                // Folders, devices and other extensions.
                _ => {
                    self.skip(size)?;
                    long_name = None;
                }
            }
        }
    }

    /// The contents of a file whose header was read. The outer error is one of the archive.
    fn contents(&mut self, name: &str, size: u64, largest: u64) -> io::Result<Result<Vec<u8>, Error>> {
        let mut contents = self.source.by_ref().take(size);
        let bytes = read_limited(name, &mut contents, largest);
        let left = contents.limit();
        self.place += size - left;
        self.skip_rest(left, size)?;
        Ok(bytes)
    }

    /// The contents of an extension.
    fn extension(&mut self, size: u64) -> io::Result<Vec<u8>> {
        if size > LONGEST_EXTENSION {
            return Err(io::Error::other(format!("a header of {size} bytes is too long")));
        }
        let mut bytes = vec![0; size as usize];
        self.source.read_exact(&mut bytes)?;
        self.place += size;
        self.skip_rest(0, size)?;
        Ok(bytes)
    }

    /// Skips contents and the padding after them.
    fn skip(&mut self, size: u64) -> io::Result<()> {
        self.skip_rest(size, size)
    }

    /// Skips the last `left` bytes of contents of a size, and the padding after them.
    fn skip_rest(&mut self, left: u64, size: u64) -> io::Result<()> {
        let padding = size.wrapping_neg() % BLOCK;
        let total = left.checked_add(padding).ok_or_else(|| io::Error::other("a size is out of range"))?;
        let skipped = io::copy(&mut self.source.by_ref().take(total), &mut io::sink())?;
        self.place = self.place.saturating_add(skipped);
        if skipped < total { Err(io::Error::other("it is truncated")) } else { Ok(()) }
    }
}

/// Compares the checksum of a header: the sum of its bytes, with blanks in place of the checksum.
fn check_sum(header: &Header, block: &[u8]) -> io::Result<()> {
    const PLACE: std::ops::Range<usize> = 148..156;
    let sum: u32 = block.iter().enumerate().map(|(at, &b)| u32::from(if PLACE.contains(&at) { b' ' } else { b })).sum();
    match header.cksum() {
        Ok(expected) if expected == sum => Ok(()),
        _ => Err(io::Error::other("a header is damaged, or it is no tar archive")),
    }
}
