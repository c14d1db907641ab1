//! The commands on models: one file per command or group of related commands.

pub mod edit;
pub mod eval;
pub mod export;
pub mod init;
pub mod inspect;
pub mod keep;
mod label;
pub mod learn;
pub mod merge;
pub mod predict;
mod samples;
mod survey;

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use loranpac::memory;
use loranpac::{Classifier, Prior, UNCALIBRATED};
use loranpac_data::disk::open_through_links;
use loranpac_data::system;
use loranpac_store::{Identity, Inference, Manifest, Session};

use crate::json::Json;
use crate::say::{Unwritten, note};
use crate::threads::threads;
use crate::words::count;

pub use crate::words::{named, raw, shown};
pub use label::{find_label, find_or_new, written_as};
pub use loranpac_store::ROWS;
pub use samples::{Samples, Target, labelled, note_skipped, read_all, weighted};

/// Runs a function on this many threads.
pub fn on_threads<T: Send>(asked: Option<usize>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    pool(threads(asked)?)?.install(work)
}

/// Creates a pool of this many threads.
pub fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool =
        pool.with_context(|| format!("cannot start {}; --threads takes a smaller number", count(threads, "thread")))?;
    // The threads allocate their stacks before available memory is measured.
    pool.broadcast(|_| ());
    Ok(pool)
}

/// Refuses work on a model that needs more memory than there is, before it begins.
pub fn ensure_memory(model: &Path, manifest: &Manifest, needed: usize) -> Result<()> {
    let Manifest { lift, classes, .. } = manifest;
    let batch = memory::product(&[ROWS, memory::sum(&[lift.dim.saturating_mul(12), classes.len().saturating_mul(8)])]);
    let what = format!("{} at width {}", shown(model), lift.width);
    let advice = "nothing has changed; use fewer --threads, or a model of a smaller --width or --max-rank";
    Ok(system::room().ensure(needed.saturating_add(batch), &what, advice)?)
}

/// The source of predictions: a classifier, and its session unless it was read from an inference file.
pub struct Predictor {
    /// The classifier.
    pub classifier: Classifier,
    /// The encoder of its features.
    pub encoder: Identity,
    /// The model behind it.
    pub session: Option<Session>,
}

impl Predictor {
    /// Opens a model or an exported file. A classifier that has not been formed yet is formed. `prior` replaces the model's.
    pub fn open(path: &Path, novelty: bool, prior: Option<&Prior>) -> Result<Predictor> {
        if path.is_dir() || path.extension().is_some_and(|e| e == "lrp") {
            let mut session = Session::open(path)?;
            if let Some(prior) = prior {
                session.set_prior(prior.clone())?;
            }
            return Predictor::of(session, path, novelty);
        }
        if prior.is_some() {
            bail!("{} has no class sizes: its prior is part of its weights; give the model itself", shown(path));
        }
        if novelty {
            bail!("{} has no basis to measure novelty with; give the model itself", shown(path));
        }
        refuse_samples(path)?;
        // The whole file is read, and its numbers may be in half precision.
        let bytes = std::fs::metadata(path).map_or(0, |file| file.len() as usize);
        let advice = "use a model of a smaller --width";
        system::room().ensure(bytes.saturating_mul(3), &shown(path), advice)?;
        let Inference { lift, encoder, classifier } = Inference::load(path)?;
        let needed = lift.predict_bytes(classifier.labels().len());
        system::room().ensure(needed, &format!("prediction with {}", shown(path)), advice)?;
        Ok(Predictor { classifier, encoder, session: None })
    }

    /// Returns the classifier of a model, with the data for novelty if it is wanted.
    pub fn of(mut session: Session, path: &Path, novelty: bool) -> Result<Predictor> {
        ensure_memory(path, session.manifest(), session.manifest().predict_bytes()?)?;
        if novelty {
            ensure_memory(path, session.manifest(), session.manifest().novelty_bytes(ROWS)?)?;
        }
        let classifier = if novelty { session.classifier()? } else { session.predictor()? };
        let encoder = session.manifest().encoder.identity();
        Ok(Predictor { classifier, encoder, session: Some(session) })
    }

    /// Returns what samples for prediction are read for. `path` is the model.
    pub fn target(&self, path: &Path) -> Target {
        Target::new(path, self.classifier.dim(), self.encoder.clone(), self.classifier.labels())
    }

    /// Returns the temperature of probabilities.
    pub fn temperature(&self) -> f64 {
        self.classifier.temperature().unwrap_or(UNCALIBRATED)
    }
}

/// Refuses a file that cannot be an inference file, such as a file of samples: it has no JSON at the place of the
/// header.
fn refuse_samples(path: &Path) -> Result<()> {
    let mut start = [0; 9];
    let read = open_through_links(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok());
    let named = path.extension().is_some_and(|e| e == "safetensors");
    if read && start[8] != b'{' && !named {
        bail!("{} is not a model: give a folder NAME.lrp, or a .safetensors file that export has written", shown(path));
    }
    Ok(())
}

/// Returns the contents of an inference file or an ONNX file of a model.
pub fn inference(session: &mut Session, path: &Path) -> Result<Inference> {
    if session.manifest().keeps_samples() {
        bail!(
            "{} is of infinite width: its scores need its samples, and there is no classifier to export; predict \
             with the model itself, or learn a model of finite --width",
            shown(path)
        );
    }
    let (lift, encoder) = (session.manifest().lift.clone(), session.manifest().encoder.identity());
    Ok(Inference { lift, encoder, classifier: session.predictor()? })
}

/// Warns if the temperature was fitted for other classes than the model has now.
pub fn warn_stale_temperature(model: &Session) {
    let manifest = model.manifest();
    if let Some(old) = manifest.calibration.as_ref().filter(|old| old.classes != manifest.classes.len()) {
        let (then, now) = (count(old.classes, "class"), manifest.classes.len());
        note!("note: the temperature was fitted when the model had {then}; it has {now} now (calibrate again)");
    }
    if let Some(old) = manifest.calibration.as_ref().filter(|old| old.prior != manifest.prior) {
        let (then, now) = (old.prior.name(), manifest.prior.name());
        note!(
            "note: the temperature was fitted to scores with prior {then}; they have prior {now} now (calibrate again)"
        );
    }
}

/// Warns about classes with fewer samples than this: their sums reveal them.
pub fn warn_small_classes(model: &Session, path: &Path, least: usize, what: &str) {
    if model.manifest().keeps_samples() {
        note!("note: {} is of infinite width: it contains its training samples", shown(path));
        return;
    }
    let small: Vec<String> = model
        .manifest()
        .classes
        .iter()
        .filter(|class| class.count < least)
        .map(|class| format!("{} ({})", class.label, class.count))
        .collect();
    if !small.is_empty() {
        let some = small.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
        let (has, more) = (if small.len() == 1 { "has" } else { "have" }, if small.len() > 5 { ", ..." } else { "" });
        note!(
            "warning: {} {has} fewer than {}, which {what} reveals: {some}{more} (see --least)",
            count(small.len(), "class"),
            count(least, "sample")
        );
    }
}

/// Returns a warning about classes of very different sizes without a prior, and the remedy.
pub fn unequal_classes(manifest: &Manifest, path: &Path) -> Option<String> {
    let (least, most) = manifest.unequal_classes()?;
    Some(format!(
        "classes have from {least} to {most} samples, and scores favour large ones; if all classes matter equally, predict with \
         --prior uniform (to keep it: loranpac calibrate {} FILE --prior uniform)",
        shown(path)
    ))
}

/// Counts the directions of a model, or the samples that it keeps.
pub fn parts(manifest: &Manifest) -> String {
    match manifest.keeps_samples() {
        true => count(manifest.rank(), "sample") + " kept",
        false => count(manifest.rank(), "direction"),
    }
}

/// Prints JSON or text.
pub fn print(json: &Json<true>, value: &serde_json::Value, words: &str) -> Result<(), Unwritten> {
    json.print(&format!("{value:#}\n"), words)
}

/// Returns the path of a new model's folder.
pub fn new_folder(path: &Path) -> Result<PathBuf> {
    let name = path.file_name().with_context(|| format!("{} does not name a folder", path.display()))?;
    if !name.to_string_lossy().ends_with(".lrp") {
        bail!("{}: the name of a model ends with .lrp", path.display());
    }
    Ok(path.to_owned())
}
