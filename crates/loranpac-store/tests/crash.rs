//! Power cuts, full disks and failing calls at every single thing that the store does to the disk, for every command.
//!
//! Whatever goes wrong, the model then opens as it was before or as it is after, every byte verifies, and repeating the
//! command gives the model to which nothing ever happened, with no file more. `cargo test -p loranpac-store --test crash --
//! --nocapture` prints the table of docs/reliability.md.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use common::*;
use loranpac::{Features, Label, Width};
use loranpac_store::disk::Disk;
use loranpac_store::{
    Edited, Error, Fingerprint, Inference, Manifest, Merged, Precision, Rolled, Session, Settings, merge, merged_before,
};
use tempfile::TempDir;

/// Does what a command does, on any disk, to the models in a folder.
type Run = fn(Box<dyn Disk>, &Path, &Settings) -> Result<(), Error>;

/// A command: what the command line does with the model in `m.lrp` of a folder.
struct Command {
    name: &'static str,
    /// What it changes: `m.lrp` itself, or something new.
    target: &'static str,
    run: Run,
    /// Whether a model of infinite width can do it.
    infinite: bool,
}

fn model(folder: &Path) -> PathBuf {
    folder.join("m.lrp")
}

/// Opens the model, changes it, forms its classifier and commits; what was done before is left alone.
fn edited(
    disk: Box<dyn Disk>,
    folder: &Path,
    change: impl FnOnce(&mut Session) -> Result<Edited, Error>,
) -> Result<(), Error> {
    let mut model = Session::open_to_write_on(disk, &model(folder))?;
    if let Edited::Done { .. } = change(&mut model)? {
        model.prepared()?;
        model.commit()?;
    }
    Ok(())
}

fn task(t: usize) -> Task {
    tasks(4).remove(t)
}

/// The first samples of the second task.
fn some() -> Task {
    let (x, y) = task(1);
    (x[..5 * DIM].to_vec(), y[..5].to_vec())
}

const COMMANDS: [Command; 10] = [
    Command {
        name: "init",
        target: "new.lrp",
        run: |disk, folder, settings| {
            let place = folder.join("new.lrp");
            match Session::create_on(disk, &place, settings) {
                Err(Error::Exists { .. }) if Session::is_new(&place, settings) => Ok(()),
                outcome => outcome.map(drop),
            }
        },
        infinite: true,
    },
    Command {
        name: "learn",
        target: "m.lrp",
        run: |disk, folder, _| {
            let (x, y) = task(2);
            let x = Features::new(&x, DIM)?;
            let learned = Fingerprint::of(x, &y);
            let mut model = Session::open_to_write_on(disk, &model(folder))?;
            if model.task(&learned.digest).is_some() {
                return Ok(());
            }
            model.learn(x, &y)?;
            model.note("third", &learned);
            model.prepared()?;
            model.commit()
        },
        infinite: true,
    },
    Command {
        name: "merge",
        target: "new.lrp",
        run: |disk, folder, _| {
            let place = folder.join("new.lrp");
            let mut models = ["m.lrp", "other.lrp"].map(|name| Session::open(&folder.join(name)).unwrap());
            let manifests: Vec<Manifest> = models.iter().map(|model| model.manifest().clone()).collect();
            if merged_before(&place, &manifests, false)?.is_some() {
                return Ok(());
            }
            let parts = models.iter_mut().map(|model| ("part".to_owned(), model)).collect();
            let Merged { mut session, .. } = merge(parts, false)?;
            session.prepared()?;
            session.save_on(disk, &place, false)
        },
        infinite: true,
    },
    Command {
        name: "forget",
        target: "m.lrp",
        run: |disk, folder, _| edited(disk, folder, |model| model.forget(&task(0).1[1])),
        infinite: true,
    },
    Command {
        name: "rename",
        target: "m.lrp",
        run: |disk, folder, _| edited(disk, folder, |model| model.rename(&task(0).1[1], &Label::from("new"))),
        infinite: true,
    },
    Command {
        name: "relabel",
        target: "m.lrp",
        run: |disk, folder, _| {
            let (x, y) = some();
            let to = vec![Label::from("moved"); y.len()];
            edited(disk, folder, |model| model.relabel(Features::new(&x, DIM)?, &y, &to, false))
        },
        infinite: true,
    },
    Command {
        name: "unlearn",
        target: "m.lrp",
        run: |disk, folder, _| {
            let (x, y) = some();
            edited(disk, folder, |model| model.unlearn(Features::new(&x, DIM)?, &y, false))
        },
        infinite: true,
    },
    Command {
        name: "calibrate",
        target: "m.lrp",
        run: |disk, folder, _| {
            let (x, y) = task(3);
            let held_out = Fingerprint::of(Features::new(&x, DIM)?, &y);
            let mut model = Session::open_to_write_on(disk, &model(folder))?;
            if model.manifest().calibrated_on(&held_out).is_some() {
                return Ok(());
            }
            model.calibrate(0.25, &held_out);
            model.commit()
        },
        infinite: true,
    },
    Command {
        name: "export",
        target: "new.safetensors",
        run: |disk, folder, _| {
            let mut model = Session::open(&model(folder))?;
            let inference = Inference {
                lift: model.manifest().lift.clone(),
                encoder: Default::default(),
                classifier: model.classifier()?,
            };
            inference.save_on(disk, &folder.join("new.safetensors"), Precision::F32)
        },
        infinite: false,
    },
    Command {
        name: "rollback",
        target: "m.lrp",
        run: |disk, folder, _| {
            let mut model = Session::open_to_roll_back_on(disk, &model(folder))?;
            assert!(matches!(model.rollback(Some(1))?, Rolled::Back(1) | Rolled::Already(1)));
            Ok(())
        },
        infinite: true,
    },
];

/// What a folder holds, by what a user would notice: scores, tasks and counts of every model, bytes of other files.
#[derive(PartialEq, Debug)]
enum Held {
    Model { scores: Option<Vec<f32>>, basis: Vec<f32>, gram: Vec<f64>, manifest: Box<Manifest> },
    File(Vec<u8>),
    Nothing,
}

fn held(path: &Path) -> Held {
    if path.is_file() {
        return Held::File(fs::read(path).unwrap());
    }
    if !path.exists() {
        return Held::Nothing;
    }
    let verified = Session::verify(path).unwrap();
    assert!(verified.is_whole(), "{path:?}: {:?}", verified.problems().collect::<Vec<_>>());
    let mut model = Session::open(path).unwrap();
    // What a repeated command may do in another number of commits.
    let manifest = Box::new(Manifest { files: Default::default(), ..model.manifest().clone() });
    let learned = manifest.samples > 0;
    let (basis, gram) = (basis(model.model().unwrap()), gram(&mut model));
    Held::Model { scores: learned.then(|| scores_of(&model.classifier().unwrap())), basis, gram, manifest }
}

/// Every name in a folder and the folders in it, but for locks.
fn names(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(names(&entry));
        }
        found.insert(entry);
    }
    found.into_iter().filter(|path| !path.ends_with("LOCK")).collect()
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

/// A disk on which nothing goes wrong, and that nobody waits for.
fn calm() -> Box<dyn Disk> {
    Box::new(Faulty::new(Fault::Fails, usize::MAX))
}

/// Tries every fault at every call of a command; gives the number of calls that were tried.
fn check(command: &Command, settings: &Settings, fault: Fault, start: &Path, random: &mut Random) -> usize {
    let folder = TempDir::new().unwrap();
    let [end, work] = ["end", "work"].map(|name| folder.path().join(name));
    copy(start, &end);
    (command.run)(calm(), &end, settings).unwrap();
    let (before, after) = (held(&start.join(command.target)), held(&end.join(command.target)));
    assert_ne!(before, after);
    let relative = |root: &Path| names(root).iter().map(|path| path.strip_prefix(root).unwrap().to_owned()).collect();
    let expected: BTreeSet<PathBuf> = relative(&end);
    for at in 0.. {
        copy(start, &work);
        let disk = Faulty::new(fault, at);
        let outcome = (command.run)(Box::new(disk.clone()), &work, settings);
        let calls = disk.calls.load(Ordering::SeqCst);
        if fault == Fault::PowerCut {
            disk.cut(random);
        }
        let words = format!("{}, {fault:?} at call {at} of {calls}", command.name);
        let target = work.join(command.target);
        let found = held(&target);
        assert!(found == before || found == after, "{words}: neither before nor after");
        // A whole file may be lost to a power cut: its folder is synced where the system can do that, and failing is no error.
        if outcome.is_ok() && !(fault == Fault::PowerCut && command.name == "export") {
            assert!(found == after, "{words}: it said that it was done");
        }
        // The other models of the folder are as they were, and repeating the command makes it as if nothing had happened.
        (command.run)(calm(), &work, settings).unwrap_or_else(|error| panic!("{words}: blocked: {error}"));
        assert!(held(&target) == after, "{words}: repeating it gives another model");
        let left: BTreeSet<PathBuf> = relative(&work);
        assert_eq!(left, expected, "{words}: files are left");
        if at >= calls {
            assert!(outcome.is_ok(), "nothing went wrong, and yet: {outcome:?}");
            return at;
        }
    }
    unreachable!("calls end")
}

fn check_all(faults: &[Fault]) {
    let mut random = Random(7);
    for command in &COMMANDS {
        let mut counts = Vec::new();
        for (kind, mut settings) in
            every_kind().into_iter().enumerate().filter(|(kind, _)| command.infinite || *kind < FINITE)
        {
            // Wide enough for every sample to have a direction of its own, and no wider.
            if let Width::Finite(width) = &mut settings.lift.width {
                *width = (*width).min(101);
            }
            let settings = &settings;
            // Samples of cut models cannot be taken back.
            if command.name == "unlearn" && matches!(kind, 2 | 3 | 7) {
                continue;
            }
            let start = TempDir::new().unwrap();
            for (name, range) in [("m.lrp", 0..2), ("other.lrp", 2..4)] {
                let mut model = Session::create_on(calm(), &start.path().join(name), settings).unwrap();
                range.for_each(|t| learn(&mut model, &task(t)));
            }
            for fault in faults {
                counts.push(check(command, settings, *fault, start.path(), &mut random));
            }
        }
        println!("{:<10} {} calls in {} runs of {faults:?}", command.name, counts.iter().sum::<usize>(), counts.len());
        assert!(counts.iter().all(|count| *count >= 4), "{}: {counts:?}", command.name);
    }
}

#[test]
fn a_call_that_fails_leaves_everything_as_it_was_or_as_it_is_to_be() {
    check_all(&[Fault::Fails, Fault::Short]);
}

#[test]
fn a_process_that_is_killed_leaves_everything_as_it_was_or_as_it_is_to_be() {
    check_all(&[Fault::Killed]);
}

#[test]
fn a_power_cut_leaves_everything_as_it_was_or_as_it_is_to_be() {
    check_all(&[Fault::PowerCut, Fault::PowerCut]);
}
