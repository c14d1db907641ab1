//! The learner behind an estimator.

use std::collections::HashSet;
use std::path::PathBuf;

use loranpac::internals::count;
use loranpac::memory::sum;
use loranpac::{Label, lift};
use loranpac_store::{Fingerprint, Identity, Merged, Precision, ROWS, Reference, Session, temperature};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors;
use crate::samples::{Coded, PyLabel, Weights, features, labels_of, weighted_features};
use crate::shared::Shared;
use crate::state::{Engine, Options, State, ensure};
use crate::threads::detached;

/// The digests of samples with their labels, and of their features.
type Digests = (String, String);

/// A learner.
#[pyclass(frozen, module = "loranpac._engine")]
pub struct Learner {
    shared: Shared,
}

#[pymethods]
impl Learner {
    #[new]
    fn new(py: Python<'_>, options: Options, threads: usize) -> PyResult<Learner> {
        let state = detached(py, threads, || State::new(&options))??;
        Ok(Learner { shared: Shared::new(state, threads) })
    }

    /// Reads a model from disk.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, threads: usize) -> PyResult<Learner> {
        let state = detached(py, threads, || {
            let session = Session::open(&path).map_err(errors::store)?;
            let manifest = session.manifest();
            let needed = sum(&[manifest.load_bytes(), manifest.lift.bytes()]);
            ensure(needed, &path.display().to_string(), "a model of a smaller width or max_rank needs less")?;
            State::stored(session.into_memory().map_err(errors::store)?)
        })??;
        Ok(Learner { shared: Shared::new(state, threads) })
    }

    /// Learns a task. An interrupt between chunks ends it; the chunks before it have been learned. The lock is not held
    /// while Python handles signals, because a handler may use the model. `progress` is called after each chunk with the
    /// number of samples learned, and whether a group of chunks is complete.
    /// `digests` is what [`Learner::knows`] returned for the same samples, so that they are not hashed again.
    #[pyo3(signature = (x, y, progress=None, digests=None, weights=None))]
    fn learn(
        &self,
        py: Python<'_>,
        x: PyReadonlyArray2<'_, f32>,
        y: Coded<'_>,
        progress: Option<Bound<'_, PyAny>>,
        digests: Option<Digests>,
        weights: Option<Weights<'_>>,
    ) -> PyResult<()> {
        let (x, labels) = (weighted_features(&x, weights.as_ref())?, labels_of(&y)?);
        // The whole task is checked before any sample is learned.
        let (rows, chunk) = self.shared.with(py, |state| {
            x.validate(state.space.dim()).map_err(errors::engine)?;
            if let Engine::Stored(session) = &state.engine {
                session.manifest().config.accepts(x).map_err(errors::engine)?;
            }
            let known = state.learner()?.classes();
            let new: HashSet<&Label> = labels.iter().filter(|label| known.get(label).is_none()).collect();
            let classes = known.len() + new.len();
            state.ensure_learning(x.len(), classes)?;
            state.pieces(x.len())
        })?;
        let learned = digests.map(|(digest, features)| Fingerprint { digest, features, samples: labels.len() });
        self.shared.learn_pieces(py, x, &labels, (rows, chunk), progress.as_ref(), learned)
    }

    /// Forms the classifier, if it is outdated.
    fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.classifier(py).map(drop)
    }

    /// Scores of these classes; minus infinity for classes without samples.
    fn scores<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f32>,
        names: Vec<PyLabel>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let x = features(&x)?;
        let classifier = self.shared.classifier(py)?;
        let needed = loranpac::memory::product(&[8, x.len(), names.len()]);
        if needed > 1 << 20 {
            detached(py, self.shared.threads, || {
                let what = format!("prediction of {}", count(x.len(), "sample"));
                ensure(needed, &what, "give fewer samples at a time, or reduce width")
            })??;
        }
        let columns: Vec<Option<usize>> = names.iter().map(|name| classifier.column(&name.0)).collect();
        let mut values = Vec::with_capacity(x.len() * names.len());
        for part in x.chunks(ROWS) {
            let scores = detached(py, self.shared.threads, || classifier.scores(part))?.map_err(errors::engine)?;
            for row in scores.rows() {
                values.extend(columns.iter().map(|column| column.map_or(f32::NEG_INFINITY, |column| row[column])));
            }
            py.check_signals()?;
        }
        PyArray1::from_vec(py, values).reshape([x.len(), names.len()])
    }

    /// Lifted samples, one in each row.
    fn lift<'py>(&self, py: Python<'py>, x: PyReadonlyArray2<'py, f32>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let x = features(&x)?;
        let (values, width) = self.shared.with(py, |state| {
            x.validate(state.space.dim()).map_err(errors::engine)?;
            let infinite = || PyValueError::new_err("width=inf: infinitely many features cannot be computed");
            let map = state.space.map().ok_or_else(infinite)?;
            state.ensure_answer(x.len(), map.width(), "the random features")?;
            Ok((lift::lifted(&**map, x), map.width()))
        })?;
        PyArray1::from_vec(py, values).reshape([x.len(), width])
    }

    /// The novelty of samples; None for methods that cannot measure it.
    fn novelty<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f32>,
    ) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
        let x = features(&x)?;
        let classifier = self.shared.classifier(py)?;
        let mut values = Vec::with_capacity(x.len());
        for part in x.chunks(ROWS) {
            let novelty = detached(py, self.shared.threads, || classifier.novelty(part))?.map_err(errors::engine)?;
            let Some(novelty) = novelty else { return Ok(None) };
            values.extend(novelty);
            py.check_signals()?;
        }
        Ok(Some(PyArray1::from_vec(py, values)))
    }

    /// Labels by column, in order of first appearance.
    fn labels(&self, py: Python<'_>) -> PyResult<Vec<PyLabel>> {
        self.shared.with(py, |state| Ok(state.learner()?.classes().labels().iter().cloned().map(PyLabel).collect()))
    }

    /// Samples of each class, by column; None for methods that do not count.
    fn counts(&self, py: Python<'_>) -> PyResult<Option<Vec<usize>>> {
        self.shared.with(py, |state| match &mut state.engine {
            Engine::Stored(session) => Ok(Some(session.model().map_err(errors::store)?.counts().to_vec())),
            Engine::Other(..) => Ok(None),
        })
    }

    /// The summary of the model, as JSON. Forms the classifier if it is outdated.
    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        self.shared.with(py, |state| {
            state.classifier()?;
            let learner = state.learner()?;
            let summary = learner.summary();
            let mut value = serde_json::json!(summary);
            value["verdict"] = serde_json::json!(summary.verdict());
            value["state_bytes"] = serde_json::json!(learner.state_bytes());
            value["settings"] = learner.settings();
            Ok(value.to_string())
        })
    }

    /// Eigenvalues of the Gram matrix, in descending order; None for methods that do not keep it.
    fn spectrum(&self, py: Python<'_>) -> PyResult<Option<Vec<f64>>> {
        self.shared.with(py, State::spectrum)
    }

    /// The manifest of the model, as JSON: lift, settings, encoder, tasks.
    fn manifest(&self, py: Python<'_>) -> PyResult<String> {
        self.shared
            .with(py, |state| Ok(serde_json::json!(state.session("be written to a disk")?.manifest()).to_string()))
    }

    /// The width; None if it is infinite.
    fn width(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        self.shared.with(py, |state| Ok(state.space.width().finite()))
    }

    /// Why the width was chosen, in words; None if it was given.
    fn width_choice(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.shared.with(py, |state| Ok(state.choice.map(|choice| choice.to_string())))
    }

    /// Refuses an encoder that is not the model's. Its digest decides, or else its name.
    #[pyo3(signature = (name, reference=None))]
    fn check_encoder(&self, py: Python<'_>, name: String, reference: Option<PyReference>) -> PyResult<()> {
        let identity = identity(name, reference);
        self.shared.with(py, |state| state.check_encoder(&identity))
    }

    /// Records which encoder computes the features, where that is not recorded yet: its name, and a dictionary of its
    /// digest, location, preprocessing and adapter. Another encoder than the recorded one is refused.
    #[pyo3(signature = (name, reference=None))]
    fn identify_encoder(&self, py: Python<'_>, name: String, reference: Option<PyReference>) -> PyResult<()> {
        let identity = identity(name, reference);
        self.shared.with(py, |state| state.identify_encoder(&identity))
    }

    /// Writes the model into a new folder, or as the next version of an existing model.
    fn save(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> PyResult<()> {
        self.shared.with(py, |state| state.session("be saved")?.save(&path, overwrite).map_err(errors::store))
    }

    /// Writes a copy of the model into a new folder.
    fn save_copy(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.shared.with(py, |state| state.session("be saved")?.save_copy(&path).map_err(errors::store))
    }

    /// Writes the classifier as ONNX, or as a small file for `loranpac predict`.
    fn export(&self, py: Python<'_>, path: PathBuf, half: bool, probabilities: bool) -> PyResult<()> {
        let precision = if half { Precision::F16 } else { Precision::F32 };
        self.shared.with(py, |state| state.export(&path, precision, probabilities))
    }

    /// Merges other learners into this one.
    fn merge(slf: &Bound<'_, Self>, others: Vec<Bound<'_, Learner>>, again: bool) -> PyResult<Vec<String>> {
        let py = slf.py();
        let others = others.iter().map(|other| &other.get().shared);
        let all: Vec<&Shared> = std::iter::once(&slf.get().shared).chain(others).collect();
        // Locks are always taken in the same order, so that two threads cannot deadlock.
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|&number| std::ptr::from_ref(all[number]));
        if order.windows(2).any(|pair| std::ptr::eq(all[pair[0]], all[pair[1]])) {
            return Err(PyValueError::new_err("other: a model cannot be merged with itself"));
        }
        let mut guards = Vec::new();
        for number in order {
            guards.push((number, all[number].lock(py)?));
        }
        guards.sort_by_key(|(number, _)| *number);
        let (mut samples, mut classes) = (0, 0);
        for (number, guard) in &mut guards {
            samples += if *number == 0 { 0 } else { guard.samples()? };
            classes += guard.learner()?.classes().len();
        }
        let first = &mut *guards[0].1;
        detached(py, all[0].threads, move || first.ensure_learning(samples, classes))??;
        let mut parts = Vec::new();
        for (number, guard) in &mut guards {
            let name = if *number == 0 { "this model".to_owned() } else { format!("model {number}") };
            parts.push((name, guard.session("be merged")?));
        }
        let merged = detached(py, all[0].threads, || loranpac_store::merge(parts, again))?;
        let Merged { session, warnings } = merged.map_err(errors::store)?;
        *guards[0].1 = State::stored(session)?;
        all[0].outdate();
        Ok(errors::warnings(warnings))
    }

    /// Removes a class from prediction; None if it was removed before.
    fn forget(&self, py: Python<'_>, label: PyLabel) -> PyResult<Option<usize>> {
        self.shared.changing(py, |state| state.edit("forget", |model| model.forget(&label.0)))
    }

    /// Renames a class; None if it was renamed so before.
    fn rename(&self, py: Python<'_>, from: PyLabel, to: PyLabel) -> PyResult<Option<usize>> {
        self.shared.changing(py, |state| state.edit("rename classes", |model| model.rename(&from.0, &to.0)))
    }

    /// Moves samples to other labels. Returns the number of samples that could not be checked, or None if the same edit was
    /// applied before.
    #[pyo3(signature = (x, from, to, again, weights=None))]
    fn relabel(
        &self,
        py: Python<'_>,
        x: PyReadonlyArray2<'_, f32>,
        from: Coded<'_>,
        to: Coded<'_>,
        again: bool,
        weights: Option<Weights<'_>>,
    ) -> PyResult<Option<usize>> {
        let (x, from, to) = (weighted_features(&x, weights.as_ref())?, labels_of(&from)?, labels_of(&to)?);
        self.shared.changing(py, |state| {
            state.ensure_edit(x.len(), "relabelling")?;
            state.edit("relabel", |model| model.relabel(x, &from, &to, again))
        })
    }

    /// Removes samples that were learned. Returns the number of samples that could not be checked, or None if the same edit
    /// was applied before.
    #[pyo3(signature = (x, y, again, weights=None))]
    fn unlearn(
        &self,
        py: Python<'_>,
        x: PyReadonlyArray2<'_, f32>,
        y: Coded<'_>,
        again: bool,
        weights: Option<Weights<'_>>,
    ) -> PyResult<Option<usize>> {
        let (x, labels) = (weighted_features(&x, weights.as_ref())?, labels_of(&y)?);
        self.shared.changing(py, |state| {
            state.ensure_edit(x.len(), "unlearning")?;
            state.edit("unlearn", |model| model.unlearn(x, &labels, again))
        })
    }

    /// Whether these samples were learned before, as one task, and their digests; None if no task is recorded.
    #[pyo3(signature = (x, y, weights=None))]
    fn knows(
        &self,
        py: Python<'_>,
        x: PyReadonlyArray2<'_, f32>,
        y: Coded<'_>,
        weights: Option<Weights<'_>>,
    ) -> PyResult<Option<(bool, Digests)>> {
        let (x, labels) = (weighted_features(&x, weights.as_ref())?, labels_of(&y)?);
        self.shared.with(py, |state| match &state.engine {
            Engine::Stored(session) if !session.manifest().tasks.is_empty() => {
                let Fingerprint { digest, features, .. } = Fingerprint::of(x, &labels);
                Ok(Some((session.task(&digest).is_some(), (digest, features))))
            }
            _ => Ok(None),
        })
    }

    /// Sets how often classes are expected in queries: `none`, `train`, `uniform`, or a JSON object with a number for each label.
    fn set_prior(&self, py: Python<'_>, prior: &str) -> PyResult<()> {
        self.shared.set_prior(py, prior.parse().map_err(errors::engine)?)
    }

    /// Fits the temperature of probabilities to samples that were not learned.
    fn calibrate(&self, py: Python<'_>, x: PyReadonlyArray2<'_, f32>, y: Coded<'_>) -> PyResult<f64> {
        let (x, labels) = (features(&x)?, labels_of(&y)?);
        self.shared.changing(py, |state| {
            let classifier = state.classifier()?;
            let scores = classifier.scores(x).map_err(errors::engine)?;
            let known = scores.rows().zip(&labels);
            let known = known.filter_map(|(row, label)| Some((row.to_vec(), classifier.column(label)?)));
            let samples: Vec<(Vec<f32>, usize)> = known.collect();
            if samples.is_empty() {
                return Err(PyValueError::new_err("y: the model has learned none of these classes"));
            }
            let temperature = temperature::fit(&samples);
            let held_out = Fingerprint { samples: samples.len(), ..Fingerprint::of(x, &labels) };
            if let Engine::Stored(session) = &mut state.engine {
                session.calibrate(temperature, &held_out);
            }
            Ok(temperature)
        })
    }
}

/// A reference to an encoder: a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PyReference {
    digest: String,
    location: Option<String>,
    preprocess: Option<String>,
    adapter: Option<String>,
    concat: bool,
}

/// What is recorded of an encoder.
fn identity(name: String, reference: Option<PyReference>) -> Identity {
    let reference = reference.map(|given| {
        let PyReference { digest, location, preprocess, adapter, concat } = given;
        Reference { digest, location, preprocess, adapter, concat }
    });
    Identity { name: Some(name), reference }
}
