//! The life of a model: one file per command or per few that belong together.

pub mod edit;
pub mod eval;
pub mod export;
pub mod init;
pub mod inspect;
pub mod keep;
pub mod learn;
pub mod merge;
mod npz;
pub mod predict;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use loranpac::memory;
use loranpac::{Classifier, Label, UNCALIBRATED};
use loranpac_data::system;
use loranpac_data::text::{escape, integer};
use loranpac_data::{Options, Reader, Split};
use loranpac_store::{Inference, Manifest, Session};

use crate::say::{self, Unwritten, note};
use crate::threads;

pub use loranpac_store::ROWS;

/// How files of samples are read.
#[derive(clap::Args, Clone)]
pub struct Samples {
    /// Column, key or array with the labels [default: label, y or class]
    #[arg(long, value_name = "NAME", help_heading = "Samples")]
    pub label: Option<String>,
    /// Column, key or array with the features [default: x, features or embedding]
    #[arg(long, value_name = "NAME", help_heading = "Samples")]
    pub features: Option<String>,
    /// Format of standard input (file name -), or of files whose name does not tell: csv, jsonl, npy, npz, parquet, ...
    #[arg(long, value_name = "NAME", help_heading = "Samples")]
    pub format: Option<String>,
}

impl Samples {
    pub fn options(&self, split: Split) -> Options {
        Options { split, label: self.label.clone(), features: self.features.clone(), format: self.format.clone() }
    }

    /// Opens a file whose samples must be of this dimension.
    pub fn open(&self, path: &Path, split: Split, dim: usize) -> Result<Reader> {
        let reader = Reader::open(path, &self.options(split))?;
        if reader.dim() != dim {
            bail!("{}: its samples have {} features, but the model was made for {dim}", path.display(), reader.dim());
        }
        Ok(reader)
    }

    /// The same with labels.
    pub fn open_labelled(&self, path: &Path, split: Split, dim: usize) -> Result<Reader> {
        let reader = self.open(path, split, dim)?;
        if !reader.has_labels() {
            bail!("{}: it has no labels; name their column with --label", path.display());
        }
        Ok(reader)
    }
}

/// Everything in a file: for commands that need all of it at once.
pub fn read_all(mut reader: Reader) -> Result<(Vec<f32>, Option<Vec<Label>>)> {
    let (mut x, mut labels) = (Vec::new(), Vec::new());
    let labelled = reader.has_labels();
    while let Some(batch) = reader.next(ROWS)? {
        memory::grow(&mut x, batch.x.len())?;
        x.extend(batch.x);
        labels.extend(batch.labels.unwrap_or_default());
    }
    if x.is_empty() {
        bail!("there are no samples in the file");
    }
    Ok((x, labelled.then_some(labels)))
}

/// Runs something on so many threads.
pub fn on_threads<T: Send>(asked: Option<usize>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    pool(threads(asked)?)?.install(work)
}

/// So many threads.
pub fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.with_context(|| format!("cannot start {threads} threads; --threads takes a smaller number"))?;
    // What the threads take to start is taken before anybody asks what is left.
    pool.broadcast(|_| ());
    Ok(pool)
}

/// Refuses work on a model that needs more memory than there is, before it begins.
pub fn ensure_memory(model: &Path, manifest: &Manifest, needed: usize) -> Result<()> {
    let Manifest { lift, classes, .. } = manifest;
    let batch = memory::product(&[ROWS, memory::sum(&[lift.dim.saturating_mul(12), classes.len().saturating_mul(8)])]);
    let what = format!("{} at width {}", shown(model), lift.width);
    let advice = "nothing was changed. Fewer --threads, or a model of a smaller --width or --max-rank, need less";
    Ok(system::room().ensure(needed.saturating_add(batch), &what, advice)?)
}

/// What a command predicts with: a classifier, and the session that it comes from unless that was an inference file.
pub struct Predictor {
    /// The classifier.
    pub classifier: Classifier,
    /// The model behind it.
    pub session: Option<Session>,
}

impl Predictor {
    /// Opens a model, or a file that `export` has written. A classifier that has not been formed yet is formed.
    pub fn open(path: &Path, novelty: bool) -> Result<Predictor> {
        if path.is_dir() || path.extension().is_some_and(|e| e == "lrp") {
            return Predictor::of(Session::open(path)?, path, novelty);
        }
        if novelty {
            bail!("{} has no basis to measure novelty with; give the model itself", shown(path));
        }
        // All of the file is read, and its numbers may be in half precision there.
        let bytes = std::fs::metadata(path).map_or(0, |file| file.len() as usize);
        let advice = "a model of a smaller --width needs less";
        system::room().ensure(bytes.saturating_mul(3), &shown(path), advice)?;
        let Inference { lift, classifier } = Inference::load(path)?;
        let needed = lift.predict_bytes(classifier.labels().len());
        system::room().ensure(needed, &format!("prediction with {}", shown(path)), advice)?;
        Ok(Predictor { classifier, session: None })
    }

    /// The classifier of a model, with what measures novelty if that is wanted.
    pub fn of(mut session: Session, path: &Path, novelty: bool) -> Result<Predictor> {
        ensure_memory(path, session.manifest(), session.manifest().predict_bytes()?)?;
        if novelty {
            ensure_memory(path, session.manifest(), session.manifest().novelty_bytes(ROWS)?)?;
        }
        let classifier = if novelty { session.classifier()? } else { session.predictor()? };
        Ok(Predictor { classifier, session: Some(session) })
    }

    /// The temperature of probabilities.
    pub fn temperature(&self) -> f64 {
        self.classifier.temperature().unwrap_or(UNCALIBRATED)
    }
}

/// What an inference file or an ONNX file of a model holds.
pub fn inference(session: &mut Session, path: &Path) -> Result<Inference> {
    if session.manifest().keeps_samples() {
        bail!(
            "{} is of infinite width: its scores need its samples, and there is no classifier to write down; predict \
             with the model itself, or learn a model of finite --width",
            shown(path)
        );
    }
    Ok(Inference { lift: session.manifest().lift.clone(), classifier: session.predictor()? })
}

/// Says so if the temperature was fitted for other classes than the model has now.
pub fn warn_stale_temperature(model: &Session) {
    let manifest = model.manifest();
    if let Some(old) = manifest.calibration.as_ref().filter(|old| old.classes != manifest.classes.len()) {
        let (then, now) = (old.classes, manifest.classes.len());
        note!("note: the temperature was fitted when the model had {then} classes; it has {now} now (calibrate again)");
    }
}

/// A label as the user writes it: the class of that name, whether it is a number or a text.
pub fn find_label(known: &[Label], text: &str) -> Result<Label> {
    let number = integer(text).map(Label::Integer);
    let candidates = [Some(Label::Text(text.to_owned())), number];
    let mut found = candidates.into_iter().flatten().filter(|label| known.contains(label));
    match (found.next(), found.next()) {
        (Some(label), None) => Ok(label),
        (Some(_), Some(_)) => bail!("there is a class with the text {text:?} and one with the number {text}"),
        _ => {
            let mut near: Vec<&Label> = known.iter().filter(|label| label.to_string().contains(text)).collect();
            near.truncate(5);
            let near = near.iter().map(|label| label.to_string()).collect::<Vec<_>>().join(", ");
            let near = if near.is_empty() { String::new() } else { format!("; did you mean one of {near}?") };
            bail!("there is no class {text:?} among the model's {}{near}", known.len())
        }
    }
}

/// A new label as the user writes it: a number if the model's labels are numbers.
pub fn new_label(known: &[Label], text: &str) -> Label {
    let numbers = known.iter().all(|label| matches!(label, Label::Integer(_)));
    match integer(text) {
        Some(number) if numbers => Label::Integer(number),
        _ => Label::Text(text.to_owned()),
    }
}

/// Classes with fewer samples than this: their sums reveal them.
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
        let (count, some) = (small.len(), small.iter().take(5).cloned().collect::<Vec<_>>().join(", "));
        let more = if count > 5 { ", ..." } else { "" };
        note!(
            "warning: {count} classes have fewer than {least} samples, and {what} reveals them: {some}{more} (see --least)"
        );
    }
}

/// What a model consists of, in messages.
pub fn parts(manifest: &Manifest) -> &'static str {
    if manifest.keeps_samples() { "samples kept" } else { "directions" }
}

/// A path in messages: on one line, and without what a terminal would obey.
pub fn shown(path: &Path) -> String {
    escape(&raw(path)).into_owned()
}

/// A path in JSON and in records.
pub fn raw(path: &Path) -> String {
    path.display().to_string()
}

/// A label in messages, as [`shown`] is for paths.
pub fn named(label: &Label) -> String {
    escape(&label.to_string()).into_owned()
}

/// Prints JSON, or words.
pub fn print(json: bool, value: &serde_json::Value, words: &str) -> Result<(), Unwritten> {
    if json { say::json(&format!("{value:#}\n")) } else { say::lines(words) }
}

/// A folder for a new model.
pub fn new_folder(path: &Path) -> Result<PathBuf> {
    let name = path.file_name().with_context(|| format!("{} does not name a folder", path.display()))?;
    if !name.to_string_lossy().ends_with(".lrp") {
        bail!("{}: the name of a model ends with .lrp", path.display());
    }
    Ok(path.to_owned())
}
