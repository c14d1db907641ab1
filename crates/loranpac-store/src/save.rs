//! Saving sessions in memory: as a whole, or only the changes.

use std::path::Path;

use loranpac::internals::Delta;

use crate::commit;
use crate::disk::{Disk, RealDisk};
use crate::error::Error;
use crate::folder::{Building, is_free};
use crate::manifest::Manifest;
use crate::session::Session;

impl Session {
    /// Reads everything into memory and compares it with its checksums; the session then has no folder.
    pub fn into_memory(mut self) -> Result<Session, Error> {
        match self.manifest.weights {
            Some(_) => self.prepared()?,
            None => self.model()?,
        };
        self.home = None;
        Ok(self)
    }

    /// Saves a model in memory: into a new folder, or as the next version of the model that it was read from or last
    /// saved to, if the folder still holds that version. Then only the changes are written. Any other model is replaced
    /// by its next version if `overwrite` is set, and refused otherwise.
    pub fn save(&mut self, folder: &Path, overwrite: bool) -> Result<(), Error> {
        self.save_on(Box::new(RealDisk), folder, overwrite)
    }

    /// Like [`Session::save`], on any disk.
    pub fn save_on(&mut self, disk: Box<dyn Disk>, folder: &Path, overwrite: bool) -> Result<(), Error> {
        if let Some(home) = &self.home {
            return Err(Error::HasFolder { path: home.folder.clone() });
        }
        self.save_into(disk, folder, overwrite)
    }

    fn save_into(&mut self, disk: Box<dyn Disk>, folder: &Path, overwrite: bool) -> Result<(), Error> {
        let everything = Delta::everything(self.model()?.classes().len());
        if is_free(folder) {
            let building = Building::begin(&*disk, folder)?;
            let base = Manifest { version: 0, restored: None, contents: None, ..self.manifest.emptied() };
            let written = self.written(&*disk, building.folder(), base, everything)?;
            building.publish()?;
            self.manifest = written;
            return Ok(());
        }
        let there = match overwrite {
            // The model in the folder may be damaged: nothing of it is needed.
            true => Session::open_to_roll_back_on(disk, folder)?,
            false => Session::open_to_write_on(disk, folder)?,
        };
        let Some(home) = &there.home else { return Ok(()) };
        let Manifest { version, files, keep, lift_digest, config, .. } = &there.manifest;
        // Digests of files identify a version. Empty models of one version and the same settings are equal.
        let ours = &self.manifest;
        let is_ours =
            (version, files, lift_digest, config) == (&ours.version, &ours.files, &ours.lift_digest, &ours.config);
        let (base, delta) = if is_ours && !overwrite {
            (self.manifest.clone(), if files.is_empty() { everything } else { self.delta.clone() })
        } else if overwrite {
            let keep = self.manifest.keep.max(*keep);
            (Manifest { version: *version, keep, ..self.manifest.emptied() }, everything)
        } else {
            return Err(Error::OtherModel { path: folder.to_owned() });
        };
        let base = Manifest { restored: None, contents: None, ..base };
        self.manifest = self.written(&*home.disk, folder, base, delta)?;
        Ok(())
    }

    /// Writes a version. On an error, the session is detached from its folder: the next version is written as a whole.
    fn written(&mut self, disk: &dyn Disk, folder: &Path, base: Manifest, delta: Delta) -> Result<Manifest, Error> {
        self.manifest = self.manifest.emptied();
        let written = commit::write(disk, folder, base, self.model_mut()?, &delta)?;
        self.delta = Delta::default();
        Ok(written)
    }

    /// Saves a copy of the model into a new folder. The session is not attached to it.
    pub fn save_copy(&mut self, folder: &Path) -> Result<(), Error> {
        let (manifest, delta) = (self.manifest.clone(), self.delta.clone());
        let outcome = match is_free(folder) {
            true => self.save_into(Box::new(RealDisk), folder, false),
            false => Err(Error::Exists { path: folder.to_owned() }),
        };
        (self.manifest, self.delta) = (manifest, delta);
        outcome
    }
}
