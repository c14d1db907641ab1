//! From a folder to a learner that lives in memory, and back.

use std::path::Path;

use loranpac::{Editable, Form};

use crate::commit;
use crate::disk::{Disk, RealDisk};
use crate::error::Error;
use crate::folder::{Building, is_free};
use crate::manifest::Manifest;
use crate::model::Model;

impl Model {
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

    /// Writes a learner that lives in memory: into a new folder, or as the next version of the model that `manifest`
    /// describes, if that is what is there; only what has changed since is written then. Anything else is replaced if
    /// `overwrite` is set, as its next version. Afterwards `manifest` describes what is there.
    pub fn store(
        folder: &Path,
        manifest: &mut Manifest,
        learner: &mut dyn Editable,
        overwrite: bool,
    ) -> Result<(), Error> {
        Model::store_on(Box::new(RealDisk), folder, manifest, learner, overwrite)
    }

    /// The same on any disk.
    pub fn store_on(
        disk: Box<dyn Disk>,
        folder: &Path,
        manifest: &mut Manifest,
        learner: &mut dyn Editable,
        overwrite: bool,
    ) -> Result<(), Error> {
        if is_free(folder) {
            let building = Building::begin(&*disk, folder)?;
            mark_all(learner);
            let base = Manifest { version: 0, restored: None, contents: None, ..manifest.emptied() };
            // If this goes wrong, what has changed is not known any more, and the learner belongs to no folder.
            *manifest = manifest.emptied();
            let written = commit::write(&*disk, building.folder(), base, learner)?;
            building.publish()?;
            *manifest = written;
            return Ok(());
        }
        let model = match overwrite {
            // What is there may be damaged: nothing of it is needed.
            true => Model::open_to_roll_back_on(disk, folder)?,
            false => Model::open_to_write_on(disk, folder)?,
        };
        let there = &model.manifest;
        let is_ours =
            !manifest.files.is_empty() && (there.version, &there.files) == (manifest.version, &manifest.files);
        let base = if is_ours && !overwrite {
            manifest.clone()
        } else if overwrite {
            mark_all(learner);
            Manifest { version: there.version, keep: there.keep.max(manifest.keep), ..manifest.emptied() }
        } else {
            let reason = "was changed by another process, or is another model; overwrite makes this its next version";
            return Err(Error::Refused(format!("{} {reason}", folder.display())));
        };
        *manifest = manifest.emptied();
        *manifest = commit::write(&*model.disk, folder, Manifest { restored: None, contents: None, ..base }, learner)?;
        Ok(())
    }

    /// Writes a copy of a learner into a new folder, to which it does not belong afterwards.
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

/// Everything is to be written.
fn mark_all(learner: &mut dyn Editable) {
    match learner.form() {
        Form::Explicit(learner) => {
            learner.statistics_mut().track_changes();
            learner.statistics_mut().note_all();
        }
        Form::Infinite(learner) => learner.set_written(0),
    }
}
