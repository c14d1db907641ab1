//! A disk on which calls go wrong.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use loranpac_store::disk::{Disk, Output, RealDisk};

use super::random::Random;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// The call fails and has done nothing.
    Fails,
    /// A write fails after half of its bytes; other calls fail.
    Short,
    /// Nothing happens from here on: the process is gone.
    Killed,
    /// The same, and what was not synced is lost or garbled: the power is gone.
    PowerCut,
}

/// A change of a folder that is not safe yet, and how to undo it.
enum Change {
    Created(PathBuf),
    MadeFolder(PathBuf),
    Renamed { from: PathBuf, to: PathBuf, old: Option<Vec<u8>> },
    Removed(PathBuf, Vec<u8>),
}

impl Change {
    /// The name that changed.
    fn place(&self) -> &Path {
        match self {
            Change::Created(path) | Change::MadeFolder(path) | Change::Removed(path, _) => path,
            Change::Renamed { to, .. } => to,
        }
    }
}

/// A disk on which one call goes wrong. It never waits for the real disk, which no test depends on.
#[derive(Clone)]
pub struct Faulty {
    pub fault: Fault,
    at: usize,
    pub calls: Arc<AtomicUsize>,
    pending: Arc<Mutex<Vec<Change>>>,
    unsynced: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Faulty {
    pub fn new(fault: Fault, at: usize) -> Self {
        let (pending, unsynced) = Default::default();
        Faulty { fault, at, calls: Arc::default(), pending, unsynced }
    }

    /// Whether this call goes wrong.
    fn next(&self) -> io::Result<()> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let gone = matches!(self.fault, Fault::Killed | Fault::PowerCut) && call > self.at;
        if call == self.at || gone { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { Ok(()) }
    }

    fn note(&self, change: Change) {
        self.pending.lock().unwrap().push(change);
    }

    /// What a disk looks like after a power cut: the last changes of folders are undone, and files that were not synced have
    /// any contents.
    pub fn cut(&self, random: &mut Random) {
        let mut pending = self.pending.lock().unwrap();
        let stays = random.below(pending.len() + 1);
        for change in pending.drain(stays..).rev() {
            match change {
                Change::Created(path) => drop(fs::remove_file(path)),
                Change::MadeFolder(path) => drop(fs::remove_dir_all(path)),
                Change::Renamed { from, to, old } => {
                    fs::rename(&to, &from).unwrap();
                    if let Some(old) = old {
                        fs::write(&to, old).unwrap();
                    }
                }
                Change::Removed(path, bytes) => fs::write(path, bytes).unwrap(),
            }
        }
        for path in self.unsynced.lock().unwrap().iter().filter(|path| path.exists()) {
            let mut bytes = fs::read(path).unwrap();
            bytes.truncate(random.below(bytes.len() + 1));
            if random.below(2) == 0 {
                bytes.fill(0);
            }
            fs::write(path, bytes).unwrap();
        }
    }
}

struct FaultyFile {
    disk: Faulty,
    path: PathBuf,
    file: Box<dyn Output>,
}

impl Write for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.disk.next() {
            if self.disk.fault != Fault::Fails {
                let _ = self.file.write(&bytes[..bytes.len() / 2]);
            }
            return Err(error);
        }
        self.file.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Output for FaultyFile {
    fn sync(&mut self) -> io::Result<()> {
        self.disk.next()?;
        self.disk.unsynced.lock().unwrap().remove(&self.path);
        Ok(())
    }
}

impl Disk for Faulty {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        self.next()?;
        let file = RealDisk.create(path)?;
        self.note(Change::Created(path.to_owned()));
        self.unsynced.lock().unwrap().insert(path.to_owned());
        Ok(Box::new(FaultyFile { disk: self.clone(), path: path.to_owned(), file }))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.next()?;
        let old = fs::read(to).ok();
        RealDisk.rename(from, to)?;
        self.note(Change::Renamed { from: from.to_owned(), to: to.to_owned(), old });
        // A file, or everything in a folder, has another name now.
        let moved = |path: &PathBuf| {
            path.strip_prefix(from).map_or(path.clone(), |rest| match rest.as_os_str().is_empty() {
                true => to.to_owned(),
                false => to.join(rest),
            })
        };
        let mut unsynced = self.unsynced.lock().unwrap();
        *unsynced = unsynced.iter().map(moved).collect();
        Ok(())
    }
    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.next()?;
        // Names in this folder are safe now; those in others are not.
        self.pending.lock().unwrap().retain(|change| change.place().parent() != Some(path));
        Ok(())
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.next()?;
        let bytes = fs::read(path)?;
        RealDisk.remove(path)?;
        self.note(Change::Removed(path.to_owned(), bytes));
        Ok(())
    }
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.next()?;
        RealDisk.make_folder(path)?;
        self.note(Change::MadeFolder(path.to_owned()));
        Ok(())
    }
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.next()?;
        RealDisk.remove_folder(path)
    }
}
