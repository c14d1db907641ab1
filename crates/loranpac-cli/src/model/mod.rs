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
use loranpac::lift::FeatureMap;
use loranpac::memory;
use loranpac::{Features, Form, Label};
use loranpac_data::system;
use loranpac_data::text::{escape, integer};
use loranpac_data::{Options, Reader, Split};
use loranpac_store::{Inference, Manifest, Model};

use crate::json::Json;
use crate::say::{Unwritten, note};
use crate::threads::threads;

/// Rows that are read at a time.
pub const ROWS: usize = 4096;

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
    let width = if manifest.is_infinite() { "infinite width".to_owned() } else { format!("width {}", lift.width) };
    let what = format!("{} at {width}", shown(model));
    let advice = "nothing was changed. Fewer --threads, or a model of a smaller --width or --max-rank, need less";
    Ok(system::room().ensure(needed.saturating_add(batch), &what, advice)?)
}

/// What predicts: a model's classifier, or an inference file.
pub struct Classifier {
    /// The classes.
    pub labels: Vec<Label>,
    /// What turns scores into probabilities.
    pub temperature: Option<f64>,
    /// Features per sample.
    pub dim: usize,
    /// W and its lift; the model itself has the scores of infinite width.
    linear: Option<(Inference, std::sync::Arc<dyn FeatureMap>)>,
    /// The model, if it is one.
    pub model: Option<Model>,
}

impl Classifier {
    /// Opens a model, or a file that `export` has written. A classifier that has not been formed yet is formed.
    pub fn open(path: &Path) -> Result<Classifier> {
        if path.is_dir() || path.extension().is_some_and(|e| e == "lrp") {
            return Classifier::of(Model::open(path)?);
        }
        // All of the file is read, and its numbers may be in half precision there.
        let bytes = std::fs::metadata(path).map_or(0, |file| file.len() as usize);
        let advice = "a model of a smaller --width needs less";
        system::room().ensure(bytes.saturating_mul(3), &shown(path), advice)?;
        let inference = Inference::load(path)?;
        let needed = inference.lift.predict_bytes(inference.labels.len());
        system::room().ensure(needed, &format!("prediction with {}", shown(path)), advice)?;
        let (labels, temperature, dim) = (inference.labels.clone(), inference.temperature, inference.lift.dim);
        let map = inference.lift.build(true)?;
        Ok(Classifier { labels, temperature, dim, linear: Some((inference, map)), model: None })
    }

    /// The classifier of a model.
    pub fn of(mut model: Model) -> Result<Classifier> {
        ensure_memory(model.folder(), model.manifest(), model.manifest().predict_bytes()?)?;
        let linear = match model.manifest().is_infinite() {
            true => {
                // Formed now if it has to be: whoever opens a file for the answers should know that there will be some.
                model.prepared()?;
                None
            }
            false => Some(inference(&mut model)?),
        };
        let linear = linear.map(|inference| inference.lift.build(true).map(|map| (inference, map))).transpose()?;
        let manifest = model.manifest();
        Ok(Classifier {
            labels: manifest.classes.iter().map(|class| class.label.clone()).collect(),
            temperature: manifest.calibration.as_ref().map(|calibration| calibration.temperature),
            dim: manifest.lift.dim,
            linear,
            model: Some(model),
        })
    }

    pub fn scores(&mut self, x: &[f32]) -> Result<loranpac::Scores> {
        let x = Features::new(x, self.dim)?;
        match (&self.linear, &mut self.model) {
            (Some((inference, map)), _) => Ok(inference.scores(&**map, x)?),
            (None, Some(model)) => Ok(model.prepared()?.scores(x)?),
            (None, None) => bail!("there is nothing to predict with"),
        }
    }
}

/// What prediction needs of a model.
pub fn inference(model: &mut Model) -> Result<Inference> {
    let weights = match model.weights()? {
        Some(weights) => weights,
        None => match model.learner()?.form() {
            Form::Explicit(learner) => learner.weights()?.to_owned(),
            Form::Infinite(_) => bail!(
                "{} is of infinite width: its scores need its samples, and there is no classifier to write down; predict \
                 with the model itself, or learn a model of finite --width",
                shown(model.folder())
            ),
        },
    };
    let manifest = model.manifest();
    Ok(Inference {
        lift: manifest.lift.clone(),
        labels: manifest.classes.iter().map(|class| class.label.clone()).collect(),
        weights,
        temperature: manifest.calibration.as_ref().map(|calibration| calibration.temperature),
    })
}

/// Says so if the temperature was fitted for other classes than the model has now.
pub fn warn_stale_temperature(model: &Model) {
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
pub fn warn_small_classes(model: &Model, least: usize, what: &str) {
    if model.manifest().is_infinite() {
        note!("note: {} is of infinite width: whoever has it has its samples", shown(model.folder()));
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
    if manifest.is_infinite() { "samples kept" } else { "directions" }
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
pub fn print(json: &Json<true>, value: &serde_json::Value, words: &str) -> Result<(), Unwritten> {
    json.print(&format!("{value:#}\n"), words)
}

/// A folder for a new model.
pub fn new_folder(path: &Path) -> Result<PathBuf> {
    let name = path.file_name().with_context(|| format!("{} does not name a folder", path.display()))?;
    if !name.to_string_lossy().ends_with(".lrp") {
        bail!("{}: the name of a model ends with .lrp", path.display());
    }
    Ok(path.to_owned())
}
