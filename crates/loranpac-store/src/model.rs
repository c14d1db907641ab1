//! A model on disk: opened, changed in memory, and committed as a whole.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use faer::Mat;
use loranpac::{Changes, Config, Editable, Features, Form, Label, LabelTable};

use crate::commit;
use crate::disk::{Disk, RealDisk};
use crate::error::Error;
use crate::lift::LiftRecord;
use crate::load::{self, Files};
use crate::manifest::{Calibration, MANIFEST, Manifest, TaskEntry};

/// The file that a writer holds.
const LOCK: &str = "LOCK";
/// How often a reader looks again when the model is replaced while it opens it.
const PATIENCE: usize = 8;

/// What a new model is told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The feature map.
    pub lift: LiftRecord,
    /// The learner's settings.
    pub config: Config,
    /// How many earlier versions are kept.
    pub keep: usize,
    /// What the encoder is called.
    pub encoder: Option<String>,
}

/// A model in a folder.
pub struct Model {
    folder: PathBuf,
    manifest: Manifest,
    disk: Box<dyn Disk>,
    files: Files,
    /// Held as long as this is the one that may write.
    lock: Option<File>,
    learner: Option<Box<dyn Editable>>,
    /// Whether the learner's parts have been compared with their checksums.
    checked: bool,
    /// What has been learned since the last commit.
    tasks: Vec<TaskEntry>,
}

impl Model {
    /// A new model in a folder that must not exist.
    pub fn create(folder: &Path, settings: &Settings) -> Result<Model, Error> {
        Model::create_on(Box::new(RealDisk), folder, settings)
    }

    /// The same on any disk.
    pub fn create_on(disk: Box<dyn Disk>, folder: &Path, settings: &Settings) -> Result<Model, Error> {
        let manifest = Manifest::new(settings)?;
        let failed = |source| Error::Write { path: folder.to_owned(), source };
        match disk.make_folder(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_unfinished(folder) => {}
            outcome => outcome.map_err(failed)?,
        }
        let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut model = Model {
            folder: folder.to_owned(),
            manifest,
            disk,
            files: Files::default(),
            lock: None,
            learner: None,
            checked: true,
            tasks: Vec::new(),
        };
        model.lock = Some(lock(&model.folder)?);
        if model.folder.join(MANIFEST).exists() {
            return Err(Error::Refused(format!("{} has been made by somebody else", folder.display())));
        }
        commit::replace(&*model.disk, &model.folder, &model.manifest)?;
        model.disk.sync_folder(parent).map_err(failed)?;
        Ok(model)
    }

    /// Opens a model to read it. Writers do not disturb.
    pub fn open(folder: &Path) -> Result<Model, Error> {
        let mut last = None;
        for _ in 0..PATIENCE {
            match Model::opened(folder, Box::new(RealDisk), None) {
                // A writer may have replaced the model, and removed files of this version, in the meantime.
                Err(error @ Error::Read { .. }) => last = Some(error),
                outcome => return outcome,
            }
        }
        Err(last.unwrap_or_else(|| no_model(folder)))
    }

    /// Opens a model to change it; refused while somebody else does.
    pub fn open_to_write(folder: &Path) -> Result<Model, Error> {
        Model::open_to_write_on(Box::new(RealDisk), folder)
    }

    /// The same on any disk.
    pub fn open_to_write_on(disk: Box<dyn Disk>, folder: &Path) -> Result<Model, Error> {
        if !folder.join(MANIFEST).is_file() {
            return Err(no_model(folder));
        }
        let lock = lock(folder)?;
        let model = Model::opened(folder, disk, Some(lock))?;
        commit::collect(&*model.disk, &model.folder, &model.manifest);
        Ok(model)
    }

    fn opened(folder: &Path, disk: Box<dyn Disk>, lock: Option<File>) -> Result<Model, Error> {
        let path = folder.join(MANIFEST);
        let manifest = match Manifest::read(&path) {
            Err(Error::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Err(no_model(folder));
            }
            manifest => manifest?,
        };
        if manifest.lift_digest != manifest.lift.digest() {
            let reason = "its lift is not the one that this program makes from the same seed".to_owned();
            return Err(Error::Damaged { path, reason });
        }
        let files = Files::open(folder, &manifest)?;
        let folder = folder.to_owned();
        Ok(Model { folder, manifest, disk, files, lock, learner: None, checked: false, tasks: Vec::new() })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it consists of, as it is on the disk.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// W, transposed (E x c), if the classifier has been formed since the model last changed and can be written down.
    pub fn weights(&self) -> Result<Option<Mat<f32>>, Error> {
        if self.manifest.is_infinite() {
            return Ok(None);
        }
        load::weights(&self.files, &self.manifest)
    }

    /// The learner, with everything that is in the model. What it is made of is compared with its checksums first.
    pub fn learner(&mut self) -> Result<&mut (dyn Editable + 'static), Error> {
        if !self.checked {
            self.files.check(&self.manifest)?;
            self.checked = true;
        }
        self.learner_unchecked()
    }

    /// The same without the comparison: memory is mapped, and nothing but the manifest is read.
    pub fn learner_unchecked(&mut self) -> Result<&mut (dyn Editable + 'static), Error> {
        if self.learner.is_none() {
            let mut learner = load::learner(&self.files, &self.manifest)?;
            if let Form::Explicit(learner) = learner.form() {
                learner.statistics_mut().track_changes();
            }
            self.learner = Some(learner);
        }
        self.learner.as_deref_mut().ok_or_else(|| Error::Refused("there is no learner".to_owned()))
    }

    /// The learner with its classifier: that of the file, if the model has not changed since it was formed, or else a new one.
    pub fn prepared(&mut self) -> Result<&mut (dyn Editable + 'static), Error> {
        let entry = self.manifest.weights.clone();
        if let Some(entry) = entry.filter(|_| !self.changed()) {
            self.learner()?;
            let (files, manifest) = (&self.files, &self.manifest);
            match self.learner.as_mut().map(|learner| learner.form()) {
                Some(Form::Explicit(learner)) if !learner.is_prepared() => {
                    load::weights(files, manifest)?.map(|weights| learner.set_classifier(weights, entry.facts));
                }
                Some(Form::Infinite(learner)) if !learner.is_prepared() => {
                    let lost = entry.lost.unwrap_or(0.0);
                    load::coefficients(files, manifest)?.map(|a| learner.set_classifier(a, entry.facts, lost));
                }
                _ => {}
            }
        }
        let learner = self.learner()?;
        learner.prepare()?;
        Ok(learner)
    }

    /// Whether anything was learned or changed in memory since the model was read or written.
    fn changed(&mut self) -> bool {
        match self.learner.as_mut().map(|learner| learner.form()) {
            None => false,
            Some(Form::Explicit(learner)) => !is_empty(learner.statistics().changes()),
            Some(Form::Infinite(learner)) => learner.written() != learner.len(),
        }
    }

    /// Whether something of this digest has been learned.
    pub fn knows(&self, digest: &str) -> Option<&TaskEntry> {
        self.manifest.tasks.iter().chain(&self.tasks).find(|task| task.digest == digest)
    }

    /// Learns samples, in memory; [`Model::commit`] makes it last. After an error the model must be opened anew.
    pub fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        self.learner()?.learn(x, labels)?;
        self.manifest.encoder.add(x);
        Ok(())
    }

    /// Notes what was learned under a name, for the next commit.
    pub fn note(&mut self, name: &str, digest: &str, samples: usize) {
        let version = self.manifest.version + 1;
        self.tasks.push(TaskEntry { name: name.to_owned(), digest: digest.to_owned(), samples, version });
    }

    /// Gives the encoder a name, if it has none.
    pub fn name_encoder(&mut self, name: &str) {
        self.manifest.encoder.name.get_or_insert_with(|| name.to_owned());
    }

    /// Sets what turns scores into probabilities.
    pub fn calibrate(&mut self, temperature: f64, samples: usize) {
        let (classes, version) = (self.manifest.classes.len(), self.manifest.version);
        self.manifest.calibration = Some(Calibration { temperature, samples, classes, version });
    }

    /// Takes samples back, in memory, as if they had never been learned.
    pub fn unlearn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        self.learner()?.unlearn(x, labels)?;
        self.manifest.encoder.remove(x);
        Ok(())
    }

    /// Removes the note of what was learned under this digest, which has been taken back; false if there is none.
    pub fn strike(&mut self, digest: &str) -> bool {
        let place = self.manifest.tasks.iter().rposition(|task| task.digest == digest);
        place.map(|place| self.manifest.tasks.remove(place)).is_some()
    }

    /// How many earlier versions are kept from now on.
    pub fn keep(&mut self, versions: usize) {
        self.manifest.keep = versions;
    }

    /// Writes everything that has changed, as one step: a power cut leaves the model as it was or as it is.
    pub fn commit(&mut self) -> Result<(), Error> {
        if self.lock.is_none() {
            return Err(Error::Refused(format!("{} was opened to be read only", self.folder.display())));
        }
        let mut manifest = self.manifest.clone();
        manifest.tasks.append(&mut self.tasks);
        let outcome = match &mut self.learner {
            Some(learner) => commit::write(&*self.disk, &self.folder, manifest, &mut **learner),
            None => commit::write_manifest(&*self.disk, &self.folder, manifest),
        };
        if outcome.is_err() {
            // What is in memory is not what is on the disk, and nothing may be built on it.
            self.lock = None;
        }
        self.manifest = outcome?;
        self.files = Files::open(&self.folder, &self.manifest)?;
        Ok(())
    }

    /// Earlier versions that are kept, the latest first.
    pub fn history(&self) -> Vec<Manifest> {
        commit::history(&self.folder).into_iter().filter_map(|(_, path)| Manifest::read(&path).ok()).collect()
    }

    /// Deletes the earlier versions, and what only they need.
    pub fn drop_history(&mut self) -> Result<(), Error> {
        if self.lock.is_none() {
            return Err(Error::Refused(format!("{} was opened to be read only", self.folder.display())));
        }
        for (_, path) in commit::history(&self.folder) {
            self.disk.remove(&path).map_err(Error::write(&path))?;
        }
        commit::collect(&*self.disk, &self.folder, &self.manifest);
        Ok(())
    }

    /// Opens a model to go back to an earlier version: the current one may be damaged, or gone.
    pub fn open_to_roll_back(folder: &Path) -> Result<Model, Error> {
        let history = commit::history(folder);
        if !folder.join(MANIFEST).exists() && history.is_empty() {
            return Err(no_model(folder));
        }
        let lock = lock(folder)?;
        let manifest = match Manifest::read(&folder.join(MANIFEST)) {
            Ok(manifest) => manifest,
            Err(error) => {
                let newest = history.iter().find_map(|(version, path)| Some((version, Manifest::read(path).ok()?)));
                let (version, old) = newest.ok_or(error)?;
                Manifest { version: version + 1, ..old }
            }
        };
        Ok(Model {
            folder: folder.to_owned(),
            manifest,
            disk: Box::new(RealDisk),
            files: Files::default(),
            lock: Some(lock),
            learner: None,
            checked: false,
            tasks: Vec::new(),
        })
    }

    /// Goes back to an earlier version, which becomes the newest.
    pub fn rollback(&mut self, version: Option<u64>) -> Result<u64, Error> {
        if self.lock.is_none() {
            return Err(Error::Refused(format!("{} was opened to be read only", self.folder.display())));
        }
        let earlier = self.history().into_iter().filter(|old| old.version < self.manifest.version);
        let kept: Vec<u64> = earlier.clone().map(|old| old.version).collect();
        let target = earlier.into_iter().find(|old| version.is_none_or(|wanted| old.version == wanted));
        let Some(old) = target else {
            let kept = kept.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
            let kept = if kept.is_empty() { "no earlier version is kept".to_owned() } else { format!("kept: {kept}") };
            return Err(Error::Refused(format!("there is no version to go back to; {kept}")));
        };
        let found = old.version;
        let files = Files::open(&self.folder, &old)?;
        files.check(&old)?;
        (self.learner, self.checked) = (None, false);
        let manifest = Manifest { version: self.manifest.version, keep: self.manifest.keep, ..old };
        self.manifest = commit::write_manifest(&*self.disk, &self.folder, manifest)?;
        self.files = files;
        Ok(found)
    }

    /// Reads every byte of the model and of its kept versions, and tells everything that is damaged.
    pub fn verify(folder: &Path) -> Result<Verified, Error> {
        let version = || Manifest::read(&folder.join(MANIFEST)).map_or(0, |manifest| manifest.version);
        let mut before = version();
        for _ in 0..PATIENCE {
            let report = Model::verify_once(folder)?;
            let after = version();
            // A writer has replaced the model, and removed files of the version that was looked at.
            if report.damage.is_empty() || after == before {
                return Ok(report);
            }
            before = after;
        }
        Model::verify_once(folder)
    }

    fn verify_once(folder: &Path) -> Result<Verified, Error> {
        let mut report = Verified::default();
        let current = folder.join(MANIFEST);
        if !folder.is_dir() || !current.exists() {
            return Err(no_model(folder));
        }
        // A manifest of this version or a later one was left behind by a commit that did not come to its end.
        let version = Manifest::read(&current).map_or(u64::MAX, |manifest| manifest.version);
        let old = commit::history(folder).into_iter().filter(|(old, _)| *old < version).map(|(_, path)| path);
        for path in std::iter::once(current).chain(old) {
            report.files += 1;
            match Manifest::read(&path) {
                Ok(manifest) => {
                    for (name, entry) in &manifest.files {
                        if !report.seen.insert(name.clone()) {
                            continue;
                        }
                        report.files += 1;
                        report.bytes += entry.bytes;
                        let outcome = load::segment(folder, &manifest, name).and_then(|segment| segment.check(entry));
                        report.damage.extend(outcome.err());
                    }
                    let whole = Files::open(folder, &manifest).and_then(|files| {
                        load::learner(&files, &manifest).and_then(|_| match manifest.is_infinite() {
                            true => load::coefficients(&files, &manifest).map(|_| ()),
                            false => load::weights(&files, &manifest).map(|_| ()),
                        })
                    });
                    // A file that is damaged has been named above.
                    report.damage.extend(whole.err().filter(|_| report.damage.is_empty()));
                }
                Err(error) => report.damage.push(error),
            }
        }
        Ok(report)
    }

    /// Gives the learner away, with its classifier if there is one and everything compared with its checksums, and what
    /// the model consists of. [`Model::store`] takes both back.
    pub fn into_parts(mut self) -> Result<(Box<dyn Editable>, Manifest), Error> {
        if self.manifest.weights.is_some() {
            self.prepared()?;
        }
        self.learner()?;
        let learner = self.learner.take().ok_or_else(|| Error::Refused("there is no learner".to_owned()))?;
        Ok((learner, self.manifest))
    }

    /// Writes a learner that lives in memory: into a new folder, or as the next version of the model that `manifest` tells
    /// of, if that is what is there; only what has changed since is written then. Anything else is replaced if `overwrite`
    /// says so, as its next version. Afterwards `manifest` tells of what is there.
    pub fn store(
        folder: &Path,
        manifest: &mut Manifest,
        learner: &mut dyn Editable,
        overwrite: bool,
    ) -> Result<(), Error> {
        let is_new = !folder.join(MANIFEST).exists();
        let mut model = match () {
            _ if is_new => {
                let Manifest { lift, config, keep, encoder, .. } = manifest.clone();
                Model::create(folder, &Settings { lift, config, keep, encoder: encoder.name })?
            }
            // What is there may be damaged: nothing of it is needed.
            _ if overwrite => Model::open_to_roll_back(folder)?,
            _ => Model::open_to_write(folder)?,
        };
        let there = &model.manifest;
        let is_ours =
            !manifest.files.is_empty() && (there.version, &there.files) == (manifest.version, &manifest.files);
        let base = if is_ours && !is_new && !overwrite {
            manifest.clone()
        } else if is_new || overwrite {
            match learner.form() {
                Form::Explicit(learner) => {
                    learner.statistics_mut().track_changes();
                    learner.statistics_mut().note_all();
                }
                Form::Infinite(learner) => learner.set_written(0),
            }
            Manifest { version: there.version, keep: there.keep.max(manifest.keep), ..manifest.emptied() }
        } else {
            let reason =
                "has been changed by somebody else, or is another model; overwrite makes this its next version";
            return Err(Error::Refused(format!("{} {reason}", folder.display())));
        };
        // If this goes wrong, what has changed is not known any more, and the model is nobody's.
        manifest.files.clear();
        match commit::write(&*model.disk, folder, base, learner) {
            Ok(written) => *manifest = written,
            Err(error) => {
                if is_new {
                    // An empty model is nothing that anybody asked for.
                    let _ = std::fs::remove_dir_all(folder);
                }
                return Err(error);
            }
        }
        if is_new {
            // The version before was empty.
            model.manifest = manifest.clone();
            model.drop_history()?;
        }
        Ok(())
    }

    /// Writes a copy of a learner into a new folder, which it then knows nothing of.
    pub fn store_copy(folder: &Path, manifest: &Manifest, learner: &mut dyn Editable) -> Result<(), Error> {
        let mut copy = manifest.emptied();
        match learner.form() {
            Form::Explicit(learner) => {
                let changes = learner.statistics_mut().swap_changes(None);
                let outcome = Model::store(folder, &mut copy, learner, false);
                learner.statistics_mut().swap_changes(changes);
                outcome
            }
            Form::Infinite(learner) => {
                let written = learner.written();
                let outcome = Model::store(folder, &mut copy, learner, false);
                learner.set_written(written);
                outcome
            }
        }
    }
}

/// What [`Model::verify`] has found.
#[derive(Debug, Default)]
pub struct Verified {
    /// Files that were read.
    pub files: usize,
    /// Their bytes, manifests aside.
    pub bytes: u64,
    /// What is wrong.
    pub damage: Vec<Error>,
    seen: std::collections::BTreeSet<String>,
}

/// Whether a folder was left behind by a program that was killed while it made a model there.
fn is_unfinished(folder: &Path) -> bool {
    let ours = |name: &std::ffi::OsStr| name == LOCK || name == format!("{MANIFEST}.new").as_str();
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.all(|e| e.is_ok_and(|e| ours(&e.file_name()))))
}

fn no_model(folder: &Path) -> Error {
    Error::Refused(format!("{} is not a model; make one with: loranpac init", folder.display()))
}

/// Makes this process the one that may write.
fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join(LOCK);
    let failed = |source| Error::Write { path: path.clone(), source };
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Error::Refused(format!("{} is being changed by another process; try again later", folder.display())))
        }
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// The labels of a manifest as a table.
pub(crate) fn table(manifest: &Manifest) -> LabelTable {
    let mut table = LabelTable::default();
    manifest.classes.iter().for_each(|class| {
        table.get_or_insert(&class.label);
    });
    table
}

/// Whether anything has changed.
pub(crate) fn is_empty(changes: &Changes) -> bool {
    let Changes { factors, gram, basis, sums, cross } = changes;
    factors.is_empty() && !gram && !basis && sums.is_empty() && cross.is_empty()
}
