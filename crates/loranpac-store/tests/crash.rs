//! Power cuts, full disks and failing calls at every single thing that the store does to the disk.
//!
//! A model of two tasks learns a third while something goes wrong. Whatever it was, the model then opens as it was before
//! or as it is after, bit for bit, every byte verifies, and learning the third task (again) gives the model that nothing
//! ever happened to.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::*;
use loranpac::Features;
use loranpac_store::disk::{Disk, Output, RealDisk};
use loranpac_store::{Error, Model, Settings};
use tempfile::TempDir;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
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
    Renamed { from: PathBuf, to: PathBuf, old: Option<Vec<u8>> },
    Removed(PathBuf, Vec<u8>),
}

/// A disk on which one call goes wrong.
#[derive(Clone)]
struct Faulty {
    fault: Fault,
    at: usize,
    calls: Arc<AtomicUsize>,
    pending: Arc<Mutex<Vec<Change>>>,
    unsynced: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Faulty {
    fn new(fault: Fault, at: usize) -> Self {
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
    fn cut(&self, random: &mut Random) {
        let mut pending = self.pending.lock().unwrap();
        let stays = random.below(pending.len() + 1);
        for change in pending.drain(stays..).rev() {
            match change {
                Change::Created(path) => drop(fs::remove_file(path)),
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
        self.file.sync()
    }
}

impl Disk for Faulty {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        self.next()?;
        if !path.exists() {
            self.note(Change::Created(path.to_owned()));
        }
        self.unsynced.lock().unwrap().insert(path.to_owned());
        Ok(Box::new(FaultyFile { disk: self.clone(), path: path.to_owned(), file: RealDisk.create(path)? }))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.next()?;
        self.note(Change::Renamed { from: from.to_owned(), to: to.to_owned(), old: fs::read(to).ok() });
        let mut unsynced = self.unsynced.lock().unwrap();
        if unsynced.remove(from) {
            unsynced.insert(to.to_owned());
        }
        RealDisk.rename(from, to)
    }
    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.next()?;
        self.pending.lock().unwrap().clear();
        RealDisk.sync_folder(path)
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
        RealDisk.make_folder(path)
    }
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Learns the third task, with its classifier, on any disk.
fn third(disk: Box<dyn Disk>, path: &Path) -> Result<(), Error> {
    let (x, y) = &tasks(3)[2];
    let mut model = Model::open_to_write_on(disk, path)?;
    model.learn(Features::new(x, DIM)?, y)?;
    model.learner()?.prepare()?;
    model.note("third", "3", y.len());
    model.commit()
}

/// Everything that the model is, in numbers.
fn contents(path: &Path) -> (Vec<f32>, Vec<f32>, Vec<f64>, usize) {
    let mut model = Model::open(path).unwrap();
    let tasks = model.manifest().tasks.len();
    let learner = model.learner().unwrap();
    (scores_of(learner), basis(learner), gram(learner), tasks)
}

fn check(settings: &Settings, fault: Fault) {
    let folder = TempDir::new().unwrap();
    let [start, end, work] = ["start.lrp", "end.lrp", "work.lrp"].map(|name| folder.path().join(name));
    let mut model = Model::create(&start, settings).unwrap();
    tasks(2).iter().for_each(|task| learn(&mut model, task));
    drop(model);
    copy(&start, &end);
    third(Box::new(RealDisk), &end).unwrap();
    let (before, after) = (contents(&start), contents(&end));
    assert_ne!(before, after);
    let mut random = Random(7);
    let (mut old, mut new) = (0, 0);
    for at in 0.. {
        copy(&start, &work);
        let disk = Faulty::new(fault, at);
        let outcome = third(Box::new(disk.clone()), &work);
        let calls = disk.calls.load(Ordering::SeqCst);
        if fault == Fault::PowerCut {
            disk.cut(&mut random);
        }
        let found = contents(&work);
        let words = format!("{fault:?} at call {at} of {calls}");
        match found == before {
            true => old += 1,
            false => new += 1,
        }
        assert!(found == before || found == after, "{words}: neither before nor after");
        if outcome.is_ok() {
            assert!(found == after, "{words}: it said that it had learned");
        }
        assert!(Model::verify(&work).unwrap().damage.is_empty(), "{words}");
        if found == before {
            third(Box::new(RealDisk), &work).unwrap();
            assert!(contents(&work) == after, "{words}: going on gives another model");
        }
        // The next writer clears away what was left behind.
        drop(Model::open_to_write(&work).unwrap());
        let names = |path: &Path| fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name()).collect::<BTreeSet<_>>();
        assert_eq!(names(&work), names(&end), "{words}");
        if at >= calls {
            assert!(outcome.is_ok(), "nothing went wrong, and yet: {outcome:?}");
            assert!(at > 20 && old > 10 && new > 0, "{at} calls, {old} before, {new} after");
            return;
        }
    }
}

#[test]
fn a_call_that_fails_leaves_the_model_as_it_was_or_as_it_is_to_be() {
    for settings in every_kind() {
        for fault in [Fault::Fails, Fault::Short] {
            check(&settings, fault);
        }
    }
}

#[test]
fn a_process_that_is_killed_leaves_the_model_as_it_was_or_as_it_is_to_be() {
    every_kind().iter().for_each(|settings| check(settings, Fault::Killed));
}

#[test]
fn a_power_cut_leaves_the_model_as_it_was_or_as_it_is_to_be() {
    for settings in every_kind() {
        for _ in 0..3 {
            check(&settings, Fault::PowerCut);
        }
    }
}

#[test]
fn a_model_that_could_not_be_made_can_be_made_again() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("m.lrp");
    for at in 0.. {
        let disk = Faulty::new(Fault::Killed, at);
        let outcome = Model::create_on(Box::new(disk.clone()), &path, &small());
        let made = outcome.is_ok() || path.join("MANIFEST").exists();
        drop(outcome);
        if !made {
            Model::create(&path, &small()).unwrap();
        }
        assert_eq!(Model::open(&path).unwrap().manifest().samples, 0);
        fs::remove_dir_all(&path).unwrap();
        if at >= disk.calls.load(Ordering::SeqCst) {
            break;
        }
    }
}

#[test]
fn going_back_survives_everything_too() {
    let folder = TempDir::new().unwrap();
    let [start, work] = ["start.lrp", "work.lrp"].map(|name| folder.path().join(name));
    let mut model = Model::create(&start, &small()).unwrap();
    learn(&mut model, &tasks(2)[0]);
    let before = contents(&start);
    learn(&mut model, &tasks(2)[1]);
    drop(model);
    let after = contents(&start);
    let mut random = Random(9);
    for at in 0.. {
        copy(&start, &work);
        let disk = Faulty::new(Fault::PowerCut, at);
        let outcome = Model::open_to_write_on(Box::new(disk.clone()), &work).and_then(|mut model| model.rollback(None));
        disk.cut(&mut random);
        let found = contents(&work);
        assert!(found == before || (found == after && outcome.is_err()), "call {at}");
        assert!(Model::verify(&work).unwrap().damage.is_empty());
        if at >= disk.calls.load(Ordering::SeqCst) {
            break;
        }
    }
}
