//! A model on disk: opened, changed in memory, and committed as a whole.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use faer::Mat;
use loranpac::{Changes, Config, Editable, Features, Form, Label, LabelTable};

use crate::commit;
use crate::digest::Fingerprint;
use crate::disk::{Disk, RealDisk};
use crate::edit::Edit;
use crate::error::Error;
use crate::folder::{Building, MANIFEST, lock};
use crate::lift::LiftRecord;
use crate::load::{self, Files};
use crate::manifest::{Manifest, TaskEntry};

/// How often a reader looks again when the model is replaced while it opens it.
pub(crate) const OPEN_RETRIES: usize = 8;

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
    pub(crate) folder: PathBuf,
    pub(crate) manifest: Manifest,
    pub(crate) disk: Box<dyn Disk>,
    pub(crate) files: Files,
    /// Held as long as this is the one that may write.
    pub(crate) lock: Option<File>,
    pub(crate) learner: Option<Box<dyn Editable>>,
    /// Whether the learner's parts have been compared with their checksums.
    pub(crate) checked: bool,
}

impl Model {
    /// A new model in a folder that must not exist.
    pub fn create(folder: &Path, settings: &Settings) -> Result<Model, Error> {
        Model::create_on(Box::new(RealDisk), folder, settings)
    }

    /// The same on any disk.
    pub fn create_on(disk: Box<dyn Disk>, folder: &Path, settings: &Settings) -> Result<Model, Error> {
        let manifest = Manifest::new(settings)?;
        let building = Building::begin(&*disk, folder)?;
        commit::begin(&*disk, building.folder(), &manifest)?;
        let lock = Some(building.publish()?);
        let folder = folder.to_owned();
        Ok(Model { folder, manifest, disk, files: Files::default(), lock, learner: None, checked: true })
    }

    /// Whether a folder holds a model that was made with these settings and has not changed since.
    pub fn is_new(folder: &Path, settings: &Settings) -> bool {
        match (Manifest::new(settings), Manifest::read(&folder.join(MANIFEST))) {
            (Ok(expected), Ok(found)) => Manifest { software: found.software.clone(), ..expected } == found,
            _ => false,
        }
    }

    /// Opens a model to read it. Writers do not disturb.
    pub fn open(folder: &Path) -> Result<Model, Error> {
        let mut last = None;
        for _ in 0..OPEN_RETRIES {
            match Model::opened(folder, Box::new(RealDisk), None) {
                // A writer may have replaced the model, and removed files of this version, in the meantime.
                Err(error @ Error::Missing { .. }) => last = Some(error),
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
        if fs::symlink_metadata(folder.join(MANIFEST)).is_err() {
            return Err(no_model(folder));
        }
        let lock = lock(folder)?;
        let model = Model::opened(folder, disk, Some(lock))?;
        // What cannot be removed is in the way of nothing.
        let _ = commit::collect(&*model.disk, &model.folder, &model.manifest);
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
        let files = Files::open(folder, &manifest)?;
        let folder = folder.to_owned();
        Ok(Model { folder, manifest, disk, files, lock, learner: None, checked: false })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it consists of: as it is on the disk, with what has been noted since.
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
        self.manifest.tasks.iter().find(|task| task.digest == digest)
    }

    /// Learns samples, in memory; [`Model::commit`] makes it last. After an error the model must be opened anew.
    pub fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        self.learner()?.learn(x, labels)?;
        self.manifest.encoder.add(x);
        Ok(())
    }

    /// Notes what was learned under a name, for the next commit.
    pub fn note(&mut self, name: &str, learned: &Fingerprint) {
        self.manifest.note(name, learned);
    }

    /// Gives the encoder a name, if it has none.
    pub fn name_encoder(&mut self, name: &str) {
        self.manifest.encoder.name.get_or_insert_with(|| name.to_owned());
    }

    /// Sets the temperature that was fitted on the samples with this fingerprint. The learner is not needed for that.
    pub fn calibrate(&mut self, temperature: f64, held_out: &Fingerprint) {
        let classes = self.manifest.classes.len();
        self.manifest.calibrate(temperature, held_out, classes);
    }

    /// Changes the model in memory, by one of the methods of [`Edit`]; [`Model::commit`] makes it last.
    pub fn edit(&mut self) -> Result<Edit<'_>, Error> {
        self.learner()?;
        match self.learner.as_deref_mut() {
            Some(learner) => Ok(Edit { learner, manifest: &mut self.manifest }),
            None => Err(Error::Refused("there is no learner".to_owned())),
        }
    }

    /// How many earlier versions are kept from now on.
    pub fn keep(&mut self, versions: usize) {
        self.manifest.keep = versions;
    }

    /// Writes everything that has changed, as one step: a power cut leaves the model as it was or as it is.
    pub fn commit(&mut self) -> Result<(), Error> {
        self.check_writable()?;
        let manifest = Manifest { restored: None, contents: None, ..self.manifest.clone() };
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
}

pub(crate) fn no_model(folder: &Path) -> Error {
    Error::Refused(format!("{} is not a model; make one with: loranpac init", folder.display()))
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
