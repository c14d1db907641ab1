//! Merging models, as if one model had learned everything.

use std::collections::HashSet;
use std::path::Path;

use loranpac::Model;
use loranpac::internals::{Delta, count};
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::folder::MANIFEST;
use crate::lift::{LiftRecord, hex};
use crate::manifest::Manifest;
use crate::session::Session;

/// The result of a merge.
pub struct Merged {
    /// A session in memory with everything that the models have learned.
    pub session: Session,
    /// Signs that the models do not belong together.
    pub warnings: Vec<String>,
}

/// Merges models with the same lift and settings; the names are for messages. Samples that several of them have learned
/// are refused unless `again` is set, which counts them several times.
pub fn merge(mut parts: Vec<(String, &mut Session)>, again: bool) -> Result<Merged, Error> {
    let Some((first_name, first)) = parts.first() else {
        return Err(Error::NothingToMerge);
    };
    let mut manifest =
        Manifest { version: 0, calibration: None, restored: None, contents: None, ..first.manifest.emptied() };
    let mut warnings = Vec::new();
    for (name, session) in parts.iter().skip(1) {
        let other = &session.manifest;
        if other.lift_digest != manifest.lift_digest {
            let (first, second) = (first_name.clone(), name.clone());
            let (first_lift, second_lift) = (words(&manifest.lift), words(&other.lift));
            return Err(Error::DifferentLifts { first, second, first_lift, second_lift });
        }
        let mut config = other.config;
        if manifest.keeps_samples() {
            // The default cap on kept samples depends on the version that made a model.
            let cap = config.max_rank.min(manifest.config.max_rank);
            (config.max_rank, manifest.config.max_rank) = (cap, cap);
        }
        if config != manifest.config {
            return Err(Error::DifferentSettings { first: first_name.clone(), second: name.clone() });
        }
        let twin = other.tasks.iter().find(|task| manifest.tasks.iter().any(|known| known.digest == task.digest));
        if let Some(twin) = twin.filter(|_| !again) {
            return Err(Error::LearnedTwice { model: name.clone(), task: twin.name.clone() });
        }
        let classes = session.model.as_ref().map_or(other.classes.len(), |model| model.classes().len());
        manifest.check_encoder(&other.encoder.identity())?;
        manifest.encoder.identify(&other.encoder.identity());
        if let Some(reason) = manifest.encoder.unlike(&other.encoder, classes) {
            warnings.push(format!("the samples of {name} look like another encoder's: {reason}"));
        }
        if other.prior != manifest.prior {
            let (theirs, ours) = (other.prior.name(), manifest.prior.name());
            warnings
                .push(format!("the prior of {name} is {theirs}; the merged model has that of {first_name}: {ours}"));
        }
        manifest.encoder.join(&other.encoder);
        manifest.tasks.extend(other.tasks.iter().cloned());
        manifest.edits.extend(other.edits.iter().cloned());
    }
    manifest.tasks.iter_mut().for_each(|task| task.version = 1);
    // A model may have unlearned samples that another has learned.
    let mut subjects = HashSet::new();
    manifest.edits.retain(|edit| edit.command != MERGE && subjects.insert(edit.subject.clone()));
    manifest.edits.iter_mut().for_each(|edit| (edit.version, edit.current) = (1, false));
    manifest.list(MERGE, MERGE.to_owned(), merge_digest(parts.iter().map(|(_, part)| &part.manifest), again)?);
    let mut model = Model::new(manifest.lift.build(true)?, manifest.config)?;
    let others = parts.iter_mut().map(|(_, part)| part.model_mut()).collect::<Result<Vec<_>, _>>()?;
    model.merge(others)?;
    let session = Session { manifest, model: Some(model), delta: Delta::default(), home: None };
    Ok(Merged { session, warnings })
}

/// The name under which a merge is recorded.
const MERGE: &str = "merge";

/// Returns a digest of the merged models, and of the options.
fn merge_digest<'a>(manifests: impl Iterator<Item = &'a Manifest>, again: bool) -> Result<String, Error> {
    let mut hash = Sha256::new();
    for manifest in manifests {
        hash.update(Sha256::digest(manifest.to_bytes()?));
    }
    hash.update([u8::from(again)]);
    Ok(hex(&hash.finalize()))
}

/// Returns the manifest of the model in a folder, if it is the merger of exactly these models.
pub fn merged_before(folder: &Path, manifests: &[Manifest], again: bool) -> Result<Option<Manifest>, Error> {
    let Ok(there) = Manifest::read(&folder.join(MANIFEST)) else { return Ok(None) };
    let same = there.edited(MERGE, MERGE, &merge_digest(manifests.iter(), again)?).is_some();
    Ok(Some(there).filter(|there| same && there.version == 1))
}

fn words(lift: &LiftRecord) -> String {
    format!("{} from {} to width {}, seed {}", lift.name, count(lift.dim, "feature"), lift.width, lift.seed)
}
