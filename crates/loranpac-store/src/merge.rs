//! Several models become one, as if it had learned everything.

use std::collections::HashSet;
use std::path::Path;

use loranpac::Editable;
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::folder::MANIFEST;
use crate::lift::{LiftRecord, hex};
use crate::manifest::Manifest;

/// One of the models.
pub struct Part<'a> {
    /// What to call it in messages.
    pub name: String,
    /// What it has learned.
    pub learner: &'a mut dyn Editable,
    /// What it is.
    pub manifest: &'a Manifest,
}

/// What they become; [`crate::Model::store`] writes it.
pub struct Merged {
    /// Everything that they have learned.
    pub learner: Box<dyn Editable>,
    /// What it is; nothing of it is in files yet.
    pub manifest: Manifest,
    /// What looks wrong about them.
    pub warnings: Vec<String>,
}

/// Merges models with the same lift and settings. Samples that several of them have learned are refused unless they
/// shall count `again`.
pub fn merge(parts: Vec<Part<'_>>, again: bool) -> Result<Merged, Error> {
    let Some(first) = parts.first() else { return Err(Error::Refused("there are no models to merge".to_owned())) };
    let mut manifest =
        Manifest { version: 0, calibration: None, restored: None, contents: None, ..first.manifest.emptied() };
    let mut warnings = Vec::new();
    for Part { name, learner, manifest: other } in parts.iter().skip(1) {
        if other.lift_digest != manifest.lift_digest {
            return Err(Error::Refused(format!(
                "{} and {name} have different lifts ({} and {}), and cannot be merged; seed, width and kind must be the same",
                first.name,
                words(&manifest.lift),
                words(&other.lift)
            )));
        }
        if other.config != manifest.config {
            return Err(Error::Refused(format!("{} and {name} have different settings", first.name)));
        }
        let twin = other.tasks.iter().find(|task| manifest.tasks.iter().any(|known| known.digest == task.digest));
        if let Some(twin) = twin.filter(|_| !again) {
            return Err(Error::Refused(format!(
                "{name}: {} has been learned by another of the models, too; --again (in Python, again=True) counts it twice",
                twin.name
            )));
        }
        if let Some(reason) = manifest.encoder.unlike(&other.encoder, learner.classes().len()) {
            warnings.push(format!("the samples of {name} look like another encoder's: {reason}"));
        }
        manifest.encoder.join(&other.encoder);
        manifest.tasks.extend(other.tasks.iter().cloned());
        manifest.edits.extend(other.edits.iter().cloned());
    }
    manifest.tasks.iter_mut().for_each(|task| task.version = 1);
    // What one model has taken back, another may have learned.
    let mut subjects = HashSet::new();
    manifest.edits.retain(|edit| edit.command != MERGE && subjects.insert(edit.subject.clone()));
    manifest.edits.iter_mut().for_each(|edit| (edit.version, edit.current) = (1, false));
    manifest.list(MERGE, MERGE.to_owned(), merge_digest(parts.iter().map(|part| part.manifest), again)?);
    let mut learner = <dyn Editable>::new(manifest.lift.build(true)?, manifest.config)?;
    learner.merge(parts.into_iter().map(|part| part.learner))?;
    Ok(Merged { learner, manifest, warnings })
}

/// How a merge is recorded.
const MERGE: &str = "merge";

/// A digest of the models that are merged, and of how.
fn merge_digest<'a>(manifests: impl Iterator<Item = &'a Manifest>, again: bool) -> Result<String, Error> {
    let mut hash = Sha256::new();
    for manifest in manifests {
        hash.update(Sha256::digest(manifest.to_bytes()?));
    }
    hash.update([u8::from(again)]);
    Ok(hex(&hash.finalize()))
}

/// The manifest of the model in a folder, if it is the merger of exactly these models.
pub fn merged_before(folder: &Path, manifests: &[Manifest], again: bool) -> Result<Option<Manifest>, Error> {
    let Ok(there) = Manifest::read(&folder.join(MANIFEST)) else { return Ok(None) };
    let same = there.edited(MERGE, MERGE, &merge_digest(manifests.iter(), again)?).is_some();
    Ok(Some(there).filter(|there| same && there.version == 1))
}

fn words(lift: &LiftRecord) -> String {
    match lift.is_infinite() {
        true => format!("infinite width from {}", lift.dim),
        false => format!("{} from {} to {}, seed {}", lift.name, lift.dim, lift.width, lift.seed),
    }
}
