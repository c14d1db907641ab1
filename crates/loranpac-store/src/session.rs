//! A model with its records, in memory or in a folder: the single owner of both.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use loranpac::internals::Delta;
use loranpac::{Classifier, FeatureSpace, Features, Label, Model};

use crate::commit;
use crate::digest::Fingerprint;
use crate::disk::{Disk, RealDisk};
use crate::encoder::Identity;
use crate::error::Error;
use crate::folder::{Building, MANIFEST, lock};
use crate::load::{self, Files};
use crate::manifest::{Manifest, Settings, TaskEntry};

/// Number of retries of a reader when the model is replaced while it is being opened.
pub(crate) const OPEN_RETRIES: usize = 8;

/// Maximum number of samples that are learned together: larger tasks are divided. The last bits of a model depend on
/// the division, so all commands and languages use the same.
pub const ROWS: usize = 4096;

/// A model and its manifest. Changes in memory become a version on disk by [`Session::commit`] or [`Session::save`].
pub struct Session {
    pub(crate) manifest: Manifest,
    /// Loaded on first use.
    pub(crate) model: Option<Model>,
    /// Changes since the model was last read or written.
    pub(crate) delta: Delta,
    /// The folder of the model, unless it is in memory.
    pub(crate) home: Option<Home>,
}

/// The folder of an open model.
pub(crate) struct Home {
    pub folder: PathBuf,
    pub disk: Box<dyn Disk>,
    pub files: Files,
    /// Held by the only session that may write.
    pub lock: Option<File>,
    /// Whether the files have been compared with their checksums.
    pub checked: bool,
}

impl Session {
    /// Creates a model in memory.
    pub fn in_memory(settings: &Settings) -> Result<Session, Error> {
        Session::in_memory_with(settings, settings.lift.build(true)?)
    }

    /// Like [`Session::in_memory`], with a feature space that was created from the settings' lift.
    pub fn in_memory_with(settings: &Settings, space: FeatureSpace) -> Result<Session, Error> {
        let manifest = Manifest::new(settings)?;
        let model = Model::new(space, settings.config)?;
        Ok(Session { manifest, model: Some(model), delta: Delta::default(), home: None })
    }

    /// Creates a model in a folder that must not exist.
    pub fn create(folder: &Path, settings: &Settings) -> Result<Session, Error> {
        Session::create_on(Box::new(RealDisk), folder, settings)
    }

    /// Like [`Session::create`], on any disk.
    pub fn create_on(disk: Box<dyn Disk>, folder: &Path, settings: &Settings) -> Result<Session, Error> {
        let manifest = Manifest::new(settings)?;
        let building = Building::begin(&*disk, folder)?;
        commit::begin(&*disk, building.folder(), &manifest)?;
        let lock = building.publish()?;
        let home = Home { folder: folder.to_owned(), disk, files: Files::default(), lock, checked: true };
        Ok(Session { manifest, model: None, delta: Delta::default(), home: Some(home) })
    }

    /// Returns whether a folder holds a model that was created with these settings and has not changed since.
    pub fn is_new(folder: &Path, settings: &Settings) -> bool {
        match (Manifest::new(settings), Manifest::read(&folder.join(MANIFEST))) {
            (Ok(expected), Ok(found)) => Manifest { software: found.software.clone(), ..expected } == found,
            _ => false,
        }
    }

    /// Opens a model for reading. Concurrent writers do not interfere.
    pub fn open(folder: &Path) -> Result<Session, Error> {
        let mut last = None;
        for _ in 0..OPEN_RETRIES {
            match Session::opened(folder, Box::new(RealDisk), None) {
                // A writer may have replaced the model, and removed files of this version, in the meantime.
                Err(error @ Error::Missing { .. }) => last = Some(error),
                outcome => return outcome,
            }
        }
        Err(last.unwrap_or_else(|| no_model(folder)))
    }

    /// Opens a model for writing. Refused while another process has it open for writing.
    pub fn open_to_write(folder: &Path) -> Result<Session, Error> {
        Session::open_to_write_on(Box::new(RealDisk), folder)
    }

    /// Like [`Session::open_to_write`], on any disk.
    pub fn open_to_write_on(disk: Box<dyn Disk>, folder: &Path) -> Result<Session, Error> {
        if fs::symlink_metadata(folder.join(MANIFEST)).is_err() {
            return Err(no_model(folder));
        }
        let lock = lock(folder)?;
        let session = Session::opened(folder, disk, Some(lock))?;
        if let Some(home) = &session.home {
            // Files that cannot be removed are harmless.
            let _ = commit::collect(&*home.disk, &home.folder, &session.manifest);
        }
        Ok(session)
    }

    fn opened(folder: &Path, disk: Box<dyn Disk>, lock: Option<File>) -> Result<Session, Error> {
        let path = folder.join(MANIFEST);
        let manifest = match Manifest::read(&path) {
            Err(Error::Read(error)) if error.is_missing() => return Err(no_model(folder)),
            manifest => manifest?,
        };
        let files = Files::open(folder, &manifest)?;
        let home = Home { folder: folder.to_owned(), disk, files, lock, checked: false };
        Ok(Session { manifest, model: None, delta: Delta::default(), home: Some(home) })
    }

    /// Returns the manifest: the state on disk, with the records added since.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the model. Files on disk are compared with their checksums first. All changes are made through the
    /// session, which records them.
    pub fn model(&mut self) -> Result<&Model, Error> {
        Ok(self.model_mut()?)
    }

    pub(crate) fn model_mut(&mut self) -> Result<&mut Model, Error> {
        if let Some(home) = self.home.as_mut().filter(|home| !home.checked) {
            home.map(&self.manifest)?;
            home.files.check(&self.manifest)?;
            home.checked = true;
        }
        self.loaded()
    }

    /// Returns the model without checking its files: they are mapped, and only the manifest is read.
    pub fn model_unchecked(&mut self) -> Result<&Model, Error> {
        Ok(self.loaded()?)
    }

    fn loaded(&mut self) -> Result<&mut Model, Error> {
        if let (None, Some(home)) = (&self.model, &mut self.home) {
            home.map(&self.manifest)?;
            self.model = Some(load::model(&home.files, &self.manifest)?);
        }
        // A session without a folder has its model from the beginning.
        self.model.as_mut().ok_or(Error::NoFolder)
    }

    /// Returns the model with its classifier: the stored one if nothing changed since it was formed, or else a new one.
    pub fn prepared(&mut self) -> Result<&Model, Error> {
        self.formed().map(|model| &*model)
    }

    fn formed(&mut self) -> Result<&mut Model, Error> {
        self.model_mut()?;
        if let (Some(home), Some(model), true) = (&self.home, &mut self.model, self.delta.is_empty())
            && !model.is_prepared()
        {
            load::restore_classifier(&home.files, &self.manifest, model)?;
        }
        let model = self.model_mut()?;
        model.classifier()?;
        Ok(model)
    }

    /// Returns the current classifier of the model, with its prior, the fitted temperature and with novelty.
    pub fn classifier(&mut self) -> Result<Classifier, Error> {
        let classifier = self.formed()?.classifier()?;
        self.decided(classifier)
    }

    /// Returns the classifier for prediction alone. A stored one is read without the model; it cannot measure novelty.
    pub fn predictor(&mut self) -> Result<Classifier, Error> {
        if let (None, Some(home)) = (&self.model, &mut self.home) {
            home.map(&self.manifest)?;
            if let Some(classifier) = load::classifier(&home.files, &self.manifest)? {
                return self.decided(classifier);
            }
        }
        self.classifier()
    }

    /// Returns the eigenvalues of the feature Gram matrix, in descending order.
    pub fn spectrum(&mut self) -> Result<Vec<f64>, Error> {
        Ok(self.model_mut()?.spectrum()?)
    }

    /// Returns the task with this digest, if it was learned.
    pub fn task(&self, digest: &str) -> Option<&TaskEntry> {
        self.manifest.tasks.iter().find(|task| task.digest == digest)
    }

    /// Learns samples, in memory. After an error, a session with a folder must be reopened.
    pub fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        if let Some(present) = x.present() {
            // A batch without any weight is not an error: others of the same task may have some.
            let labels = present.of(labels);
            return if labels.is_empty() { Ok(()) } else { self.learn(present.features(), &labels) };
        }
        self.model_mut()?;
        let (Some(model), delta) = (&mut self.model, &mut self.delta) else { return Ok(()) };
        // Increments of S are needed only for a model with files.
        let journal = self.home.is_some() || !self.manifest.files.is_empty();
        let outcome = model.learn_with(x, labels, &mut |mut change| {
            if !journal {
                change.factors.clear();
            }
            delta.append(change);
            if delta
                .factors
                .last()
                .is_some_and(|last| commit::outgrow(delta.factor_len(), last.rows(), last.is_single()))
            {
                delta.drop_factors();
            }
        });
        if !journal {
            delta.drop_factors();
        }
        outcome?;
        self.manifest.encoder.add(x);
        Ok(())
    }

    /// Records a learned task under a name, for the next version.
    pub fn note(&mut self, name: &str, learned: &Fingerprint) {
        self.manifest.note(name, learned);
    }

    /// Records which encoder computes the features, where that is not recorded yet. Another encoder than the model's is
    /// refused.
    pub fn identify_encoder(&mut self, identity: &Identity) -> Result<(), Error> {
        self.manifest.check_encoder(identity)?;
        self.manifest.encoder.identify(identity);
        Ok(())
    }

    /// Sets the number of earlier versions to keep.
    pub fn keep(&mut self, versions: usize) {
        self.manifest.keep = versions;
    }

    /// Writes all changes atomically: after a power cut the model is in its previous or in its new state.
    pub fn commit(&mut self) -> Result<(), Error> {
        let manifest = Manifest { restored: None, contents: None, ..self.manifest.clone() };
        let home = self.home.as_mut().ok_or(Error::NoFolder)?;
        home.check_writable()?;
        let outcome = match &mut self.model {
            Some(model) => commit::write(&*home.disk, &home.folder, manifest, model, &self.delta),
            None => commit::write_manifest(&*home.disk, &home.folder, manifest),
        };
        if outcome.is_err() {
            // Memory and disk differ, so further writes are refused.
            home.lock = None;
        }
        self.manifest = outcome?;
        self.delta = Delta::default();
        home.files = Files::open(&home.folder, &self.manifest)?;
        Ok(())
    }
}

impl Home {
    /// Maps the files of the model, unless they are: a session for a rollback opens without the current version.
    fn map(&mut self, manifest: &Manifest) -> Result<(), Error> {
        if self.files.is_empty() {
            self.files = Files::open(&self.folder, manifest)?;
        }
        Ok(())
    }

    pub fn check_writable(&self) -> Result<(), Error> {
        match self.lock {
            Some(_) => Ok(()),
            None => Err(Error::ReadOnly { path: self.folder.clone() }),
        }
    }
}

pub(crate) fn no_model(folder: &Path) -> Error {
    Error::NoModel { path: folder.to_owned() }
}
