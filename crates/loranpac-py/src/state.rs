//! What a learner in memory consists of.

use std::path::Path;
use std::sync::Arc;

use loranpac::lift::{self, FeatureMap};
use loranpac::memory::{product, sum};
use loranpac::registry::{self, MethodOptions};
use loranpac::{Config, Editable, Features, Form, Label, Schedule, StreamSizes, Truncation};
use loranpac_data::system;
use loranpac_store::onnx::{self, OnnxOptions};
use loranpac_store::{AT_ONCE, Edit, Edited, Inference, LiftRecord, Manifest, Precision, Settings, TaskDigest};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::errors;

/// Rows that are taken at a time, as the command line does: the models are then the same to the last bit.
pub const ROWS: usize = 4096;

/// Answers below this are not worth asking the system about.
const SMALL: usize = 1 << 20;

/// Refuses work that needs more memory than there is.
pub fn ensure(needed: usize, what: &str, advice: &str) -> PyResult<()> {
    system::room().ensure(needed, what, advice).map_err(errors::engine)
}

/// What a learner is told.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Options {
    method: String,
    dim: usize,
    lift: String,
    width: usize,
    seed: u64,
    gamma: f64,
    /// Kind (truncate, threshold or rank) and number.
    truncation: Option<(String, f64)>,
    schedule: String,
    max_rank: usize,
    settings: Vec<(String, String)>,
    keep: usize,
    encoder: Option<String>,
}

impl Options {
    fn truncation(&self) -> PyResult<Option<Truncation>> {
        let Some((kind, value)) = &self.truncation else { return Ok(None) };
        let truncation = match kind.as_str() {
            "truncate" => Truncation::Fraction(*value),
            "threshold" => Truncation::Threshold(*value),
            _ => Truncation::Rank(*value as usize),
        };
        truncation.validate().map(Some).map_err(errors::engine)
    }
}

/// The method, and for those that can be written to a disk, what is to be written besides.
pub struct State {
    /// The lift.
    pub map: Arc<dyn FeatureMap>,
    /// The method.
    pub learner: Box<dyn loranpac::Learner>,
    /// What is recorded about the model, if the method can be written to a disk.
    pub manifest: Option<Manifest>,
    /// How many have been learned.
    pub samples: usize,
}

impl State {
    /// A state that has learned nothing.
    pub fn new(options: &Options) -> PyResult<State> {
        let method = registry::find(&options.method).map_err(errors::engine)?;
        let name = method.input.lift(&options.lift).to_owned();
        let Options { dim, width, seed, gamma, .. } = *options;
        let rows = lift::find(&name).map_err(errors::engine)?.projection.count(dim, width);
        let what = format!("width={width}: the projection of {dim} features");
        ensure(product(&[4, rows, dim]), &what, "reduce width")?;
        let lift = LiftRecord::new(&name, dim, width, seed, gamma).map_err(errors::store)?;
        let map = lift.build(true).map_err(errors::store)?;
        let schedule = match options.schedule.as_str() {
            "paper" => Schedule::Paper,
            _ => Schedule::Late,
        };
        let mut learner = method
            .build(&MethodOptions {
                truncation: options.truncation()?,
                max_rank: options.max_rank,
                schedule,
                seed,
                settings: options.settings.clone(),
                ..MethodOptions::new(map.clone())
            })
            .map_err(errors::engine)?;
        let manifest = match learner.as_editable() {
            None => None,
            Some(stored) => {
                let (keep, encoder) = (options.keep, options.encoder.clone());
                let settings = Settings { lift, config: *stored.config(), keep, encoder };
                Some(Manifest::new(&settings).map_err(errors::store)?)
            }
        };
        Ok(State { map, learner, manifest, samples: 0 })
    }

    /// The state with a model that was read or merged.
    pub fn stored_as(learner: Box<dyn Editable>, manifest: Manifest) -> State {
        let samples = learner.counts().iter().sum();
        State { map: learner.feature_map(), learner, manifest: Some(manifest), samples }
    }

    /// The width as Python writes it.
    fn width(&self) -> String {
        if self.map.is_infinite() { "inf".to_owned() } else { self.map.width().to_string() }
    }

    /// Bytes of P, if it is yet to be made.
    fn projection_bytes(&self) -> usize {
        let lift = self.manifest.as_ref().map(|manifest| &manifest.lift);
        lift.filter(|_| self.map.bytes() == 0).map_or(0, |lift| lift.bytes())
    }

    /// Refuses to learn what there is no memory for.
    pub fn ensure_learning(&self, new: usize, classes: usize) -> PyResult<()> {
        let sizes = StreamSizes { samples: self.samples.saturating_add(new), largest_task: new, classes };
        let peak = self.learner.peak_bytes(&sizes).saturating_sub(self.learner.state_bytes());
        let what = format!("learning {new} samples with width={}", self.width());
        ensure(sum(&[peak, self.projection_bytes()]), &what, "reduce width or max_rank")
    }

    /// Refuses an answer of so many numbers for each of some samples if there is no memory for it.
    pub fn ensure_answer(&self, samples: usize, numbers: usize, what: &str) -> PyResult<()> {
        let needed = sum(&[product(&[8, samples, numbers]), self.projection_bytes()]);
        if needed < SMALL {
            return Ok(());
        }
        let what = format!("{what} of {samples} samples with width={}", self.width());
        ensure(needed, &what, "give fewer samples at a time, or reduce width")
    }

    /// The learner and its manifest, for what only LoRanPAC can do.
    pub fn stored(&mut self, what: &str) -> PyResult<(&mut dyn Editable, &mut Manifest)> {
        match (self.learner.as_editable(), &mut self.manifest) {
            (Some(learner), Some(manifest)) => Ok((learner, manifest)),
            _ => Err(PyTypeError::new_err(format!("this method cannot {what}; loranpac and loranpac-soft can"))),
        }
    }

    /// Rows that are learned as one task, and samples of each piece of them that is learned at once: one chunk, so that an
    /// interrupt need not wait for more.
    pub fn pieces(&self, rows: usize) -> (usize, usize) {
        let late = |manifest: &&Manifest| manifest.config.schedule == Schedule::Late;
        match self.manifest.as_ref().filter(late) {
            Some(Manifest { config: Config { chunk, .. }, .. }) => (ROWS, *chunk),
            // A task is a task.
            None => (rows, rows),
        }
    }

    /// Notes what has been learned.
    pub fn note(&mut self, x: Features<'_>, labels: &[Label], digest: &mut TaskDigest) {
        if let Some(manifest) = &mut self.manifest {
            digest.add(x, labels);
            manifest.encoder.add(x);
        }
    }

    /// Refuses to take back or relabel samples if there is no memory for it.
    pub fn ensure_edit(&self, samples: usize, what: &str) -> PyResult<()> {
        if self.map.is_infinite() {
            return Ok(());
        }
        // The samples are lifted, and so is what is taken away from them.
        self.ensure_answer(samples.min(AT_ONCE), 2 * self.map.width(), what)
    }

    /// Changes the model; None if the same was done before, else the number of samples that could not be checked.
    pub fn edit(
        &mut self,
        what: &str,
        work: impl FnOnce(&mut Edit<'_>) -> Result<Edited, loranpac_store::Error>,
    ) -> PyResult<Option<usize>> {
        let (learner, manifest) = self.stored(what)?;
        let edited = work(&mut Edit { learner, manifest }).map_err(errors::store)?;
        let samples = learner.counts().iter().sum();
        self.samples = samples;
        Ok(match edited {
            Edited::Done { unchecked } => Some(unchecked),
            Edited::Already { .. } => None,
        })
    }

    /// Writes the classifier as ONNX, or as a small file that `loranpac predict` takes.
    pub fn export(&mut self, path: &Path, precision: Precision, probabilities: bool) -> PyResult<()> {
        let (learner, manifest) = self.stored("be exported")?;
        let labels = learner.classes().labels().to_vec();
        let Form::Explicit(learner) = learner.form() else {
            let message =
                "a model of infinite width cannot be exported: its scores need its samples; save() keeps them";
            return Err(PyValueError::new_err(message));
        };
        let inference = Inference {
            lift: manifest.lift.clone(),
            weights: learner.weights().map_err(errors::engine)?.to_owned(),
            labels,
            temperature: manifest.calibration.as_ref().map(|calibration| calibration.temperature),
        };
        if path.extension().is_some_and(|e| e == "onnx") {
            let options = OnnxOptions { precision, probabilities, ..OnnxOptions::default() };
            onnx::export(&inference, path, &options).map(drop).map_err(errors::store)
        } else {
            inference.save(path, precision).map_err(errors::store)
        }
    }
}
