//! A model on disk beside the list of its samples.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use loranpac::{FeatureSpace, Features, Label, Schedule};
use loranpac_store::disk::Disk;
use loranpac_store::{Edited, Error, Fingerprint, Inference, Manifest, Merged, Precision, Rolled, Session, Settings};
use loranpac_store::{merge, merged_before};
use tempfile::TempDir;

use crate::Step;
use crate::change::{Change, Memory, Outcome, Seen};
use crate::data::{Data, samples};
use crate::faulty::{Fault, Faulty};
use crate::random::Random;
use crate::reference::{Sample, energy, solve};

pub struct World {
    folder: TempDir,
    path: PathBuf,
    settings: Settings,
    map: FeatureSpace,
    now: Memory,
    /// What each version held.
    versions: BTreeMap<u64, Memory>,
    last: Option<Change>,
    models: usize,
    pub seen: Seen,
}

fn calm() -> Box<dyn Disk> {
    Box::new(Faulty::new(Fault::Fails, usize::MAX))
}

impl World {
    pub fn new(settings: Settings) -> World {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("m0.lrp");
        drop(Session::create_on(calm(), &path, &settings).unwrap());
        let map = settings.lift.build(true).unwrap();
        let versions = BTreeMap::from([(0, Memory::default())]);
        let (now, seen) = (Memory::default(), Seen::default());
        World { folder, path, settings, map, now, versions, last: None, models: 1, seen }
    }

    fn dim(&self) -> usize {
        self.settings.lift.dim
    }

    fn is_infinite(&self) -> bool {
        self.settings.lift.width.is_infinite()
    }

    fn version(&self) -> u64 {
        Session::open(&self.path).unwrap().manifest().version
    }

    fn labels(&self) -> Vec<Label> {
        let model = Session::open(&self.path).unwrap();
        model.manifest().classes.iter().map(|class| class.label.clone()).collect()
    }

    /// Does something, perhaps killed at first, and looks at everything.
    pub fn step(&mut self, step: &Step, killed: Option<usize>) {
        if matches!(step, Step::Export) {
            return self.export();
        }
        let repeated = matches!(step, Step::Repeat);
        let change = if repeated { self.last.clone() } else { self.change(step) };
        let Some(change) = change else { return };
        if let Some(at) = killed {
            let before = self.version();
            let disk = Faulty::new(Fault::Killed, at);
            let _ = self.apply(&change, Box::new(disk));
            self.seen.killed += 1;
            let target = self.target(&change).to_owned();
            if target == self.path {
                // The version tells whether it was before or after the change; either is whole.
                assert!(Session::verify(&self.path).unwrap().is_whole());
                assert!((before..=before + 1).contains(&self.version()));
            } else if target.exists() {
                assert!(Session::verify(&target).unwrap().is_whole());
            }
        }
        let outcome = self.apply(&change, calm());
        if repeated && !matches!(change, Change::Rollback(_)) {
            assert!(!matches!(outcome, Outcome::Done { .. }), "a repeated change was made again");
            self.seen.repeated += 1;
        }
        self.note(&change, &outcome);
        self.last = Some(change);
        self.check();
    }

    /// The change that a step means for the samples there are.
    fn change(&mut self, step: &Step) -> Option<Change> {
        let dim = self.dim();
        let labels = self.labels();
        let pick = |seed: u64| labels.get(seed as usize % labels.len().max(1)).cloned();
        Some(match *step {
            Step::Learn { data, count, seed } => {
                let (x, y) = samples(data, count, dim, seed);
                Change::Learn(x, y)
            }
            Step::Forget(seed) => Change::Forget(pick(seed)?),
            Step::Rename(seed) => Change::Rename(pick(seed)?, Label::from(format!("renamed {seed}").as_str())),
            Step::Relabel { count, seed } => {
                let (x, from) = self.some(count, seed);
                let to = match seed % 3 {
                    0 => Label::from("moved"),
                    _ => pick(seed + 1)?,
                };
                let to = vec![to; from.len()];
                Change::Relabel(x, from, to)
            }
            Step::Unlearn { count, seed } => {
                let (x, y) = self.some(count, seed);
                Change::Unlearn(x, y)
            }
            Step::UnlearnUnknown(seed) | Step::RelabelUnknown(seed) => {
                let (x, _) = samples(Data::Clusters, 2, dim, 5000 + seed);
                let y = vec![pick(seed)?; 2];
                match step {
                    Step::UnlearnUnknown(_) => Change::Unlearn(x, y),
                    _ => Change::Relabel(x, y, vec![Label::from("moved"); 2]),
                }
            }
            Step::Calibrate(seed) => {
                let (x, y) = samples(Data::Clusters, 12, dim, 9000 + seed);
                Change::Calibrate(x, y)
            }
            Step::Merge { data, count, seed } => {
                let path = self.folder.path().join(format!("m{}.lrp", self.models));
                let other = self.folder.path().join("other.lrp");
                let (x, y) = samples(data, count, dim, 20_000 + seed);
                let _ = fs::remove_dir_all(&other);
                let mut model = Session::create_on(calm(), &other, &self.settings).unwrap();
                let learned = model.learn(Features::new(&x, dim).unwrap(), &y);
                if learned.is_err() || self.now.samples.is_empty() {
                    return None;
                }
                model.note("other", &Fingerprint::of(Features::new(&x, dim).unwrap(), &y));
                model.commit().unwrap();
                self.models += 1;
                Change::Merge { ours: self.path.clone(), other, x, y, target: path }
            }
            Step::Rollback => {
                let model = Session::open(&self.path).unwrap();
                let kept = model.history();
                let current = model.manifest().version;
                Change::Rollback(kept.iter().map(|old| old.version).find(|version| *version < current)?)
            }
            Step::Export | Step::Repeat => return None,
        })
    }

    /// Some of the samples that the model has learned and whose class it has.
    fn some(&self, count: usize, seed: u64) -> (Vec<f32>, Vec<Label>) {
        let mut random = Random(seed);
        let mut labelled: Vec<&Sample> = self.now.samples.iter().filter(|sample| sample.label.is_some()).collect();
        let (mut x, mut y) = (Vec::new(), Vec::new());
        for _ in 0..count.min(labelled.len()) {
            let sample = labelled.swap_remove(random.below(labelled.len()));
            x.extend_from_slice(&sample.x);
            y.extend(sample.label.clone());
        }
        (x, y)
    }

    /// The model that a change makes or changes.
    fn target<'a>(&'a self, change: &'a Change) -> &'a Path {
        match change {
            Change::Merge { target, .. } => target,
            _ => &self.path,
        }
    }

    /// Does what the command line does.
    fn apply(&self, change: &Change, disk: Box<dyn Disk>) -> Outcome {
        match self.try_apply(change, disk) {
            Ok(Edited::Done { unchecked }) => Outcome::Done { unchecked },
            Ok(Edited::Already { .. }) => Outcome::Already,
            Err(
                Error::Engine(_)
                | Error::Write { .. }
                | Error::NotDurable { .. }
                | Error::Exists { .. }
                | Error::AppliedBefore { .. }
                | Error::NotKept { .. },
            ) => Outcome::Refused,
            // Whatever the data, what was learned can be written and read.
            Err(error) => panic!("{error}"),
        }
    }

    fn try_apply(&self, change: &Change, disk: Box<dyn Disk>) -> Result<Edited, Error> {
        const DONE: Edited = Edited::Done { unchecked: 0 };
        let features = |x| Features::new(x, self.dim());
        if let Change::Merge { ours, other, target, .. } = change {
            let mut models = [ours, other].map(|path| Session::open(path).unwrap());
            let manifests: Vec<Manifest> = models.iter().map(|model| model.manifest().clone()).collect();
            if merged_before(target, &manifests, true)?.is_some() {
                return Ok(Edited::Already { version: 1 });
            }
            let parts = models.iter_mut().map(|model| ("part".to_owned(), model)).collect();
            let Merged { mut session, .. } = merge(parts, true)?;
            session.prepared()?;
            session.save_on(disk, target, false)?;
            return Ok(DONE);
        }
        if let Change::Rollback(version) = change {
            let mut model = Session::open_to_roll_back_on(disk, &self.path)?;
            return Ok(match model.rollback(Some(*version))? {
                Rolled::Back(_) => DONE,
                Rolled::Already(version) => Edited::Already { version },
            });
        }
        let mut model = Session::open_to_write_on(disk, &self.path)?;
        let edited = match change {
            Change::Learn(x, y) => {
                let learned = Fingerprint::of(features(x)?, y);
                if let Some(task) = model.task(&learned.digest) {
                    return Ok(Edited::Already { version: task.version });
                }
                model.learn(features(x)?, y)?;
                model.note("task", &learned);
                DONE
            }
            Change::Forget(label) => model.forget(label)?,
            Change::Rename(from, to) => model.rename(from, to)?,
            Change::Relabel(x, from, to) => model.relabel(features(x)?, from, to, false)?,
            Change::Unlearn(x, y) => model.unlearn(features(x)?, y, false)?,
            Change::Calibrate(x, y) => {
                let held_out = Fingerprint::of(features(x)?, y);
                if let Some(version) = model.manifest().calibrated_on(&held_out) {
                    return Ok(Edited::Already { version });
                }
                model.calibrate(0.5, &held_out);
                DONE
            }
            Change::Merge { .. } | Change::Rollback(_) => DONE,
        };
        if let Edited::Done { .. } = edited {
            if model.manifest().samples > 0 || matches!(change, Change::Learn(..)) {
                model.prepared()?;
            }
            model.commit()?;
        }
        Ok(edited)
    }

    /// Does the same to the list. A killed change may have been made before it was repeated.
    fn note(&mut self, change: &Change, outcome: &Outcome) {
        let is_merge = matches!(change, Change::Merge { .. });
        let target = self.target(change).to_owned();
        let version = Session::open(&target).map_or(0, |model| model.manifest().version);
        let is_new =
            if is_merge { target.exists() && target != self.path } else { !self.versions.contains_key(&version) };
        if *outcome == Outcome::Refused {
            self.seen.refused += 1;
            assert!(!is_new, "refused, and yet there is a version {version}");
            return;
        }
        if !is_new {
            assert_eq!(*outcome, Outcome::Already);
            return;
        }
        let (dim, infinite) = (self.settings.lift.dim, self.is_infinite());
        let half = self.settings.config.half;
        let rounded = |v: &f32| if half { half::f16::from_f32(*v).to_f32() } else { *v };
        let rows =
            |x: &[f32]| x.chunks_exact(dim).map(|row| row.iter().map(rounded).collect::<Vec<_>>()).collect::<Vec<_>>();
        let learned = |x: &[f32], y: &[Label]| {
            let pairs = rows(x).into_iter().zip(y);
            pairs.map(|(x, label)| Sample { x, label: Some(label.clone()) }).collect::<Vec<_>>()
        };
        let memory = &mut self.now;
        let place = |samples: &[Sample], x: &[f32], label: &Label| {
            samples.iter().position(|sample| sample.x == x && sample.label.as_ref() == Some(label))
        };
        let of = |samples: &mut Vec<Sample>, wanted: &Label, label: Option<Label>| {
            let own = samples.iter_mut().filter(|sample| sample.label.as_ref() == Some(wanted));
            own.for_each(|sample| sample.label.clone_from(&label));
        };
        let mut unknown = false;
        match change {
            Change::Learn(x, y) => memory.samples.extend(learned(x, y)),
            Change::Forget(label) if infinite => memory.samples.retain(|sample| sample.label.as_ref() != Some(label)),
            Change::Forget(label) => of(&mut memory.samples, label, None),
            Change::Rename(from, to) => of(&mut memory.samples, from, Some(to.clone())),
            Change::Relabel(x, from, to) => {
                let places: Vec<(Vec<f32>, &Label, &Label)> =
                    rows(x).into_iter().zip(from).zip(to).map(|((x, from), to)| (x, from, to)).collect();
                // All are found before the first is moved: some may be moved to where others are taken from.
                let mut moved = Vec::new();
                for (x, from, to) in places {
                    match place(&memory.samples, &x, from) {
                        Some(found) => moved.push(Sample { label: Some(to.clone()), ..memory.samples.remove(found) }),
                        None => unknown = true,
                    }
                }
                memory.samples.extend(moved);
            }
            Change::Unlearn(x, y) => {
                let energies = rows(x).into_iter().map(|row| energy(&self.map, &row));
                memory.taken_back += energies.fold(0.0, f64::max);
                for (x, label) in rows(x).iter().zip(y) {
                    match place(&memory.samples, x, label) {
                        Some(found) => drop(memory.samples.remove(found)),
                        None => unknown = true,
                    }
                }
            }
            Change::Calibrate(..) => {}
            Change::Merge { x, y, target, .. } => {
                memory.samples.extend(learned(x, y));
                self.path.clone_from(target);
                self.versions.clear();
            }
            Change::Rollback(version) => *memory = self.versions[version].clone(),
        }
        if unknown {
            memory.tainted = true;
            assert_ne!(*outcome, Outcome::Done { unchecked: 0 }, "samples that were never learned were called checked");
        }
        let shaped = matches!(change, Change::Forget(_) | Change::Relabel(..) | Change::Unlearn(..));
        memory.edited |= shaped;
        self.versions.insert(version, self.now.clone());
    }

    /// Looks at everything that was promised.
    fn check(&mut self) {
        self.seen.checked += 1;
        let verified = Session::verify(&self.path).unwrap();
        assert!(verified.is_whole(), "{:?}", verified.problems().collect::<Vec<_>>());
        self.check_files();
        let mut model = Session::open(&self.path).unwrap();
        let manifest = model.manifest().clone();
        if manifest.samples == 0 {
            assert!(self.now.samples.is_empty() || self.now.tainted);
            return;
        }
        let summary = model.prepared().unwrap().summary();
        let verdict = summary.verdict().unwrap();
        let certificate = summary.certificate.unwrap();
        let exact = verdict.line.contains("exact");
        if self.now.tainted {
            assert!(!exact, "samples were taken back that were never learned, and yet: {}", verdict.line);
            return;
        }
        // What evicted samples of a forgotten class have left cannot be told from the list.
        if certificate.keeps_samples && certificate.capped > 0 && self.now.edited {
            return;
        }
        assert_eq!(manifest.samples, self.now.samples.len());
        let labels: Vec<Label> = manifest.classes.iter().map(|class| class.label.clone()).collect();
        for class in &manifest.classes {
            let own = self.now.samples.iter().filter(|sample| sample.label.as_ref() == Some(&class.label)).count();
            assert_eq!(own, class.count, "{:?}", class.label);
        }
        // The engine takes samples for zero that are shorter than this; their scores are of no use to anybody.
        let negligible = |sample: &Sample| (f64::MIN_POSITIVE..1e-60).contains(&energy(&self.map, &sample.x));
        if self.now.samples.iter().any(negligible) {
            return;
        }
        let queries: Vec<&[f32]> = self.now.samples.iter().map(|sample| sample.x.as_slice()).collect();
        let flat: Vec<f32> = queries.iter().flat_map(|row| row.iter().copied()).collect();
        let found = model.classifier().unwrap().scores(Features::new(&flat, self.dim()).unwrap()).unwrap();
        assert!(found.rows().flatten().all(|score| score.is_finite()), "a score is not finite");
        let facts = *model.classifier().unwrap().facts().unwrap();
        let filter = self.settings.config.filter;
        let expected = solve(&self.map, &self.now.samples, &labels, filter, &facts, &queries, self.now.taken_back);
        let Some(tolerance) = expected.tolerance else { return };
        let uncut = certificate.cuts == 0 && certificate.capped == 0 && self.settings.config.schedule == Schedule::Late;
        if uncut {
            self.seen.compared += 1;
            let scale = expected.scores.norm_max().max(1e-3);
            for (i, row) in found.rows().enumerate() {
                for (c, score) in row.iter().enumerate() {
                    let apart = (f64::from(*score) - expected.scores[(c, i)]).abs() / scale;
                    assert!(
                        apart < tolerance,
                        "sample {i}, class {c}: {score} is off by {apart:e} > {tolerance:e}; {facts:?}"
                    );
                }
            }
        }
        let error = |(row, sample): (&[f32], &Sample)| -> f64 {
            let target = |c: usize| f64::from(u8::from(sample.label.as_ref() == Some(&labels[c])));
            row.iter().enumerate().map(|(c, score)| (f64::from(*score) - target(c)).powi(2)).sum()
        };
        let measured = found.rows().zip(&self.now.samples).map(error).sum::<f64>() / self.now.samples.len() as f64;
        let (least, most) = (summary.train_mse.unwrap(), summary.train_mse_upper.unwrap());
        let slack = 10.0 * tolerance * (1.0 + measured);
        assert!(least - slack <= measured && measured <= most + slack, "{measured} is not in [{least}, {most}]");
        match exact {
            true => self.seen.exact += 1,
            false => self.seen.bounded += 1,
        }
    }

    /// The folder holds what its versions need, and nothing else.
    fn check_files(&self) {
        let model = Session::open(&self.path).unwrap();
        let versions = std::iter::once(model.manifest().clone()).chain(model.history());
        let mut expected: BTreeSet<String> = versions.flat_map(|version| version.files.into_keys()).collect();
        expected.extend(["MANIFEST", "LOCK"].map(str::to_owned));
        expected.extend(model.history().iter().map(|old| format!("MANIFEST.{:08}", old.version)));
        let names = |folder: &Path| -> BTreeSet<String> {
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        assert_eq!(names(&self.path), expected);
        assert!(model.history().len() <= self.settings.keep);
        let beside: Vec<String> =
            names(self.folder.path()).into_iter().filter(|name| name.contains("partial")).collect();
        assert!(beside.is_empty(), "{beside:?} is left");
    }

    /// The inference file answers as the model does.
    fn export(&self) {
        let mut model = Session::open(&self.path).unwrap();
        if self.is_infinite() || model.manifest().samples == 0 {
            return;
        }
        let lift = model.manifest().lift.clone();
        let inference = Inference { lift, encoder: Default::default(), classifier: model.classifier().unwrap() };
        let place = self.folder.path().join("exported.safetensors");
        inference.save(&place, Precision::F32).unwrap();
        let read = Inference::load(&place).unwrap();
        assert_eq!(read.lift, inference.lift);
        assert_eq!(read.classifier.labels(), inference.classifier.labels());
        let weights = [read, inference]
            .map(|of| of.classifier.weights().unwrap().columns().map(|column| column.to_vec()).collect::<Vec<_>>());
        assert_eq!(weights[0], weights[1]);
    }

    /// The program itself finds the model whole.
    pub fn other_process(&self) {
        let output = Command::new(env!("CARGO_BIN_EXE_loranpac")).arg("verify").arg(&self.path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
