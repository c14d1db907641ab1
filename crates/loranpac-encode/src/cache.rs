//! Features that were computed before, found by the content of their inputs.
//!
//! One file for each encoder and choice of layers holds records of equal length: the digest of an input, its features,
//! and a checksum. Records are only ever appended, so that a kill costs at most the last one. The first process that
//! opens a file appends to it; others read it, and so does a user without the right to write.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use loranpac::Features;
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::hex::hex;
use crate::regular;

/// Digest of an input.
pub type Key = [u8; 32];

const KEY: usize = 32;
const CHECKSUM: usize = 8;

/// The features of inputs that one encoder has encoded.
pub struct Cache {
    path: PathBuf,
    /// None if there is no file, and none can be created.
    file: Option<File>,
    /// Numbers per input.
    row: usize,
    /// Position of the record of each input.
    known: HashMap<Key, u64>,
    /// Whether this process may append.
    stores: bool,
    /// Why only its owner can append.
    unwritable: Option<io::Error>,
    /// Length of the file in records.
    records: u64,
    buffer: Vec<u8>,
    /// Further features, which are only read.
    below: Option<Box<Cache>>,
}

impl Cache {
    /// Opens the cache of an encoder in a folder, which is created if it is missing. `digest` stands for the encoder and
    /// everything else that determines the `row` numbers of an input. Without the right to write, the cache is only read
    /// ([`Cache::unwritable`]).
    ///
    /// # Errors
    /// If the folder or the file cannot be created or read for another reason.
    pub fn open(folder: &Path, digest: &[u8; 32], row: usize) -> Result<Cache, Error> {
        let path = folder.join(format!("{}.rows", hex(digest)));
        let create = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map(Some);
        let (file, unwritable) = match std::fs::create_dir_all(folder).and_then(|()| create()) {
            Ok(file) => (file, None),
            // A pipe would wait forever.
            Err(error) if is_denied(&error) => match regular::open(&path) {
                Ok(file) => (Some(file), Some(error)),
                Err(_) => (None, Some(error)),
            },
            Err(source) => return Err(Error::Cache { path, source }),
        };
        if file.as_ref().is_some_and(|file| !file.metadata().is_ok_and(|about| about.is_file())) {
            return Err(Error::Cache { path, source: io::Error::other("it is no regular file") });
        }
        // Without locks on this file system, the process is taken for the only one.
        let is_taken = |file: &File| matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        let stores = unwritable.is_none() && !file.as_ref().is_some_and(is_taken);
        let mut cache = Cache::new(path.clone(), file, row, stores).map_err(|source| Error::Cache { path, source })?;
        cache.unwritable = unwritable;
        Ok(cache)
    }

    /// A cache of this process alone, in an open file: one without a name is removed by the system when the process ends,
    /// however it ends. Features of `below` are read as well.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn temporary(file: File, row: usize, below: Option<Cache>) -> Result<Cache, Error> {
        let path = PathBuf::from("in a temporary file");
        let cache = Cache::new(path.clone(), Some(file), row, true);
        let cache = cache.map_err(|source| Error::Cache { path, source })?;
        Ok(Cache { below: below.map(Box::new), ..cache })
    }

    fn new(path: PathBuf, mut file: Option<File>, row: usize, stores: bool) -> io::Result<Cache> {
        let (mut known, mut records) = (HashMap::new(), 0);
        if let Some(file) = &mut file {
            known = keys(file, row)?;
            let length = file.metadata()?.len();
            records = length / stride(row);
            if stores && length % stride(row) != 0 {
                // The end of a record that a killed process did not finish.
                file.set_len(records * stride(row))?;
            }
        }
        Ok(Cache { path, file, row, known, stores, unwritable: None, records, buffer: Vec::new(), below: None })
    }

    /// Its file; that of the cache below a temporary one.
    pub fn path(&self) -> &Path {
        self.below.as_ref().map_or(&self.path, |below| below.path())
    }

    /// Whether new features are stored. They are not if another process has the cache open, or without the right to write.
    pub fn stores(&self) -> bool {
        self.stores
    }

    /// Why the file cannot be written, if access is denied.
    pub fn unwritable(&self) -> Option<&io::Error> {
        self.unwritable.as_ref()
    }

    /// Number of inputs whose features are known.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether no features are known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The features of an input, if they are known and intact.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn get(&mut self, key: &Key) -> Result<Option<Vec<f32>>, Error> {
        let (Some(&record), Some(file)) = (self.known.get(key), &mut self.file) else {
            return self.below.as_mut().map_or(Ok(None), |below| below.get(key));
        };
        let mut bytes = vec![0; stride(self.row) as usize];
        let at = SeekFrom::Start(record * stride(self.row));
        let read = file.seek(at).and_then(|_| file.read_exact(&mut bytes));
        read.map_err(|source| self.failed(source))?;
        let (body, sum) = bytes.split_at(bytes.len() - CHECKSUM);
        let numbers = body[KEY..].as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        let numbers: Vec<f32> = numbers.collect();
        let usable = Features::new(&numbers, self.row).and_then(|numbers| numbers.validate(self.row));
        if &body[..KEY] != key || checksum(body) != sum || usable.is_err() {
            self.known.remove(key);
            return Ok(None);
        }
        Ok(Some(numbers))
    }

    /// Discards all features unless those of `key` are among them and intact; those of a cache below likewise.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn keep_with(&mut self, key: &Key) -> Result<(), Error> {
        let below = self.below.take();
        let intact = self.get(key)?.is_some();
        self.below = below;
        if !intact {
            self.known.clear();
            if let Some(file) = self.file.as_ref().filter(|_| self.stores) {
                file.set_len(0).map_err(|source| self.failed(source))?;
                self.records = 0;
            }
        }
        self.below.as_mut().map_or(Ok(()), |below| below.keep_with(key))
    }

    /// Adds the features of an input. They reach the file with the next [`Cache::flush`].
    pub fn put(&mut self, key: Key, features: &[f32]) {
        debug_assert_eq!(features.len(), self.row);
        let stride = stride(self.row) as usize;
        let waiting = || self.buffer.chunks_exact(stride).any(|record| record[..KEY] == key);
        if !self.stores || self.known.contains_key(&key) || waiting() {
            return;
        }
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&key);
        self.buffer.extend(features.iter().flat_map(|value| value.to_le_bytes()));
        let sum = checksum(&self.buffer[start..]);
        self.buffer.extend_from_slice(&sum);
    }

    /// Appends what was added to the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn flush(&mut self) -> Result<(), Error> {
        let Some(file) = self.file.as_mut().filter(|_| !self.buffer.is_empty()) else { return Ok(()) };
        let end = SeekFrom::Start(self.records * stride(self.row));
        let written = file.seek(end).and_then(|_| file.write_all(&self.buffer));
        written.map_err(|source| self.failed(source))?;
        for record in std::mem::take(&mut self.buffer).chunks_exact(stride(self.row) as usize) {
            let mut key = [0; KEY];
            key.copy_from_slice(&record[..KEY]);
            self.known.insert(key, self.records);
            self.records += 1;
        }
        Ok(())
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Cache { path: self.path.clone(), source }
    }
}

/// Whether a file or a folder is read-only, for this user or for all.
fn is_denied(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Bytes of a record.
fn stride(row: usize) -> u64 {
    (KEY + 4 * row + CHECKSUM) as u64
}

/// The first bytes of SHA-256.
fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let mut sum = [0; CHECKSUM];
    sum.copy_from_slice(&Sha256::digest(bytes)[..CHECKSUM]);
    sum
}

/// The keys of all whole records.
fn keys(file: &mut File, row: usize) -> io::Result<HashMap<Key, u64>> {
    let records = file.metadata()?.len() / stride(row);
    let mut known = HashMap::new();
    for record in 0..records {
        let mut key = [0; KEY];
        file.seek(SeekFrom::Start(record * stride(row)))?;
        file.read_exact(&mut key)?;
        known.insert(key, record);
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: [u8; 32] = [7; 32];

    fn open(folder: &Path) -> Cache {
        Cache::open(folder, &DIGEST, 3).unwrap()
    }

    #[test]
    fn features_are_found_again_by_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let mut cache = open(folder.path());
        cache.put([1; 32], &[1.0, -2.5, f32::MIN_POSITIVE]);
        cache.flush().unwrap();
        cache.put([2; 32], &[4.0, 5.0, 6.0]);
        cache.flush().unwrap();
        drop(cache);
        let mut cache = open(folder.path());
        assert_eq!(cache.len(), 2);
        assert_eq!(cache.get(&[1; 32]).unwrap().unwrap(), [1.0, -2.5, f32::MIN_POSITIVE]);
        assert_eq!(cache.get(&[2; 32]).unwrap().unwrap(), [4.0, 5.0, 6.0]);
        assert_eq!(cache.get(&[3; 32]).unwrap(), None);
        assert!(Cache::open(folder.path(), &[8; 32], 3).unwrap().is_empty(), "another encoder has its own features");
    }

    #[test]
    fn a_record_cut_short_at_any_byte_is_dropped_and_the_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let mut cache = open(folder.path());
        for key in 1..=3 {
            cache.put([key; 32], &[f32::from(key); 3]);
        }
        cache.flush().unwrap();
        let path = cache.path.clone();
        drop(cache);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let mut cache = open(folder.path());
            let left = length / stride(3) as usize;
            assert_eq!(cache.len(), left);
            cache.put([9; 32], &[9.0; 3]);
            cache.flush().unwrap();
            drop(cache);
            let mut cache = open(folder.path());
            assert_eq!(cache.len(), left + 1);
            for key in (1..=left as u8).chain([9]) {
                assert_eq!(cache.get(&[key; 32]).unwrap().unwrap(), [f32::from(key); 3]);
            }
        }
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let mut cache = open(folder.path());
        cache.put([1; 32], &[1.0; 3]);
        cache.flush().unwrap();
        let path = cache.path.clone();
        drop(cache);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(open(folder.path()).get(&[1; 32]).unwrap(), None, "byte {at}");
        }
    }

    #[test]
    fn a_temporary_cache_adds_to_one_that_is_only_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = open(folder.path());
        first.put([1; 32], &[1.0; 3]);
        first.flush().unwrap();
        let file = tempfile::tempfile().unwrap();
        let over = || {
            let second = open(folder.path());
            assert!(!second.stores(), "the first has it open");
            Cache::temporary(file.try_clone().unwrap(), 3, Some(second)).unwrap()
        };
        let mut cache = over();
        cache.put([2; 32], &[2.0; 3]);
        cache.flush().unwrap();
        let mut again = over();
        assert_eq!([[1; 32], [2; 32]].map(|key| again.get(&key).unwrap().unwrap()[0]), [1.0, 2.0]);
        assert_eq!(open(folder.path()).len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_in_place_of_the_file_is_refused_and_does_not_wait() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("{}.rows", hex(&DIGEST)));
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(matches!(Cache::open(folder.path(), &DIGEST, 3), Err(Error::Cache { .. })));
        // Without the right to write, which a superuser always has.
        let denied = std::process::Command::new("chmod").arg("a-w").arg(&path).status().unwrap();
        assert!(denied.success());
        let cache = Cache::open(folder.path(), &DIGEST, 3);
        assert!(cache.map_or(true, |cache| cache.is_empty() && !cache.stores()));
    }

    #[test]
    fn a_second_process_reads_and_does_not_write() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = open(folder.path());
        first.put([1; 32], &[1.0; 3]);
        first.flush().unwrap();
        let mut second = open(folder.path());
        assert_eq!(second.get(&[1; 32]).unwrap().unwrap(), [1.0; 3]);
        second.put([2; 32], &[2.0; 3]);
        second.flush().unwrap();
        first.put([3; 32], &[3.0; 3]);
        first.flush().unwrap();
        drop((first, second));
        let mut cache = open(folder.path());
        assert_eq!((cache.len(), cache.get(&[3; 32]).unwrap().unwrap()), (2, vec![3.0; 3]));
    }
}
