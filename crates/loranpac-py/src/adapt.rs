//! Training of small modules inside an encoder.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use loranpac_encode::adapt::{Event, HeadKind, Job, Optimiser, SampleOptions, Samples, Settings, Trained};
use loranpac_encode::{Encoder, Error, Input, Inputs, Limits, Tags, hex, open_transformer};
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use crate::encoder::name_of;
use crate::errors;
use crate::inputs::{Failure, PyInputs};
use crate::samples::{Coded, labels_of};
use crate::threads::{detached, watched};

/// Settings of training: the keys of a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Given {
    module: String,
    size: Option<usize>,
    classes: Option<usize>,
    epochs: usize,
    rate: f64,
    batch: usize,
    seed: u64,
    optimiser: String,
    head: String,
    scale: f64,
    held_out: usize,
    patience: usize,
    augment: bool,
    only_if_better: bool,
    skip_bad: bool,
}

impl Given {
    fn settings(&self) -> Result<Settings, Error> {
        let refuse = |name: &'static str, reason: &str| Err(Error::Adapt { name, reason: reason.to_owned() });
        Ok(Settings {
            module: Settings::module_of(&self.module, self.size)?,
            head: match self.head.as_str() {
                "cosine" => HeadKind::Cosine,
                "linear" => HeadKind::Linear,
                _ => return refuse("head", "\"cosine\" or \"linear\" is expected"),
            },
            scale: self.scale,
            optimiser: match self.optimiser.as_str() {
                "sgd" => Optimiser::SGD,
                "adam" => Optimiser::ADAM,
                _ => return refuse("optimiser", "\"sgd\" or \"adam\" is expected"),
            },
            rate: self.rate,
            epochs: self.epochs,
            batch: self.batch,
            seed: self.seed,
            held_out: self.held_out,
            patience: self.patience,
            augment: self.augment,
        })
    }
}

/// The encoder that is adapted: its path, its preprocessing, and its digest if that is known.
type Place = (String, Option<String>, Option<String>);

/// Trains modules in an encoder, and writes them into a file. `inputs` is called with the name of the encoder and what it
/// reads, and returns an iterator as that of `Encoder.encode`; there is a label for each of its inputs.
/// `report` is called with lines for the user, and whether they are about a single step. Returns the outcome as JSON, and
/// why inputs were skipped.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn adapt(
    py: Python<'_>,
    encoder: Place,
    inputs: Bound<'_, PyAny>,
    y: Coded<'_>,
    out: PathBuf,
    given: Given,
    threads: usize,
    report: Option<Bound<'_, PyAny>>,
) -> PyResult<(String, Vec<String>)> {
    let settings = given.settings().map_err(errors::adapt)?;
    let labels = labels_of(&y)?;
    let job = Job::new(&out).map_err(errors::adapt)?;
    let (place, preprocess, digest) = encoder;
    let opened = detached(py, threads, || open_transformer(&place, preprocess.as_deref()))?;
    let transformer = opened.map_err(errors::adapt)?;
    if digest.is_some_and(|digest| digest != hex(&transformer.digest())) {
        return Err(errors::value(format!("the encoder {place} has changed since it was opened")));
    }
    // Inputs are read on the calling thread, where Python's objects belong.
    let failure = Failure::default();
    let mut found: Vec<Input> = Vec::with_capacity(labels.len());
    let modality = transformer.modality();
    let inputs = inputs.call1((transformer.name(), name_of(modality)))?.cast_into::<PyIterator>()?;
    let read = PyInputs::new(inputs, "X".to_owned(), modality, failure.clone());
    for (input, label) in read.zip(labels) {
        py.check_signals()?;
        let input = input.map_err(|error| failure.take().unwrap_or_else(|| errors::adapt(error)))?;
        found.push(Input { tags: Tags { label: Some(label), ..Tags::default() }, ..input });
    }
    let options = SampleOptions { classes: given.classes, skip_bad: given.skip_bad, limits: Limits::default() };
    let stop = Arc::new(AtomicBool::new(false));
    let (epochs, better, measure) = (given.epochs, given.only_if_better, report.is_some());
    let mut done = 0;
    let work = |events: std::sync::mpsc::Sender<Event>| -> Result<(Trained, Vec<String>), Error> {
        let samples = Samples::read(Inputs::of(found.into_iter().map(Ok)), &transformer, options)?;
        let skipped = samples.skipped().iter().map(ToString::to_string).collect();
        let samples = samples.until(stop.clone());
        // A receiver that is gone has stopped the work.
        let trained =
            job.run(transformer.clone(), samples, settings, better, measure, |event| drop(events.send(event)))?;
        Ok((trained, skipped))
    };
    let (outcome, raised) = watched(py, threads, &stop, work, |event| {
        match &event {
            Event::Start { resumed, .. } => done = *resumed,
            Event::Epoch { number: [number, _], .. } => done = *number,
            Event::Step(_) => {}
        }
        let single = matches!(event, Event::Step(_));
        report.as_ref().map_or(Ok(()), |report| report.call1((event.to_string(), single)).map(|_| ()))
    })?;
    let words = || match outcome.is_ok() {
        true => format!("interrupted after training had ended; {} is complete", out.display()),
        false => format!("interrupted after {done} of {epochs} epochs; the same call resumes there"),
    };
    raised.map_err(|error| errors::interrupt(py, error, words))?;
    let (trained, skipped) = outcome.map_err(errors::adapt)?;
    Ok((trained.json().to_string(), errors::warnings(skipped)))
}
