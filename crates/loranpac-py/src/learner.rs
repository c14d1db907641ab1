//! A learner in memory.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use loranpac::memory::sum;
use loranpac::{Label, lift};
use loranpac_store::{Edit, Fingerprint, Manifest, Merged, Model, Part, Precision, TaskDigest, temperature};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::errors;
use crate::samples::{PyLabel, features, labels_of};
use crate::state::{Options, ROWS, State, ensure};
use crate::threads::detached;

/// A learner.
#[pyclass(frozen, module = "loranpac._engine")]
pub struct Learner {
    /// Held while waiting for the state: a thread that learns chunk after chunk lets those go first that have waited.
    turn: Mutex<()>,
    state: Mutex<State>,
    threads: usize,
}

impl Learner {
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut State) -> Result<T, PyErr> + Send) -> PyResult<T> {
        let turn = self.turn.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let mut state = self.state.lock_py_attached(py).map_err(|_| broken())?;
        drop(turn);
        let state = &mut *state;
        detached(py, self.threads, || work(state))?
    }
}

fn broken() -> PyErr {
    PyValueError::new_err("an earlier call has failed half-way; this model cannot be used any more")
}

#[pymethods]
impl Learner {
    #[new]
    fn new(py: Python<'_>, options: Options, threads: usize) -> PyResult<Learner> {
        let state = detached(py, threads, || State::new(&options))??;
        Ok(Learner { turn: Mutex::default(), state: Mutex::new(state), threads })
    }

    /// Reads a model from the disk.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, threads: usize) -> PyResult<Learner> {
        let (learner, manifest) = detached(py, threads, || {
            let model = Model::open(&path).map_err(errors::store)?;
            let Manifest { lift, .. } = model.manifest();
            let needed = sum(&[model.manifest().load_bytes(), lift.bytes()]);
            ensure(needed, &path.display().to_string(), "a model of a smaller width or max_rank needs less")?;
            model.into_parts().map_err(errors::store)
        })??;
        let state = State::stored_as(learner, manifest);
        Ok(Learner { turn: Mutex::default(), state: Mutex::new(state), threads })
    }

    /// Learns a task. An interrupt between chunks ends it; what came before has been learned then. The lock is not held
    /// while Python looks at signals, because a handler may want to use the model.
    fn learn(
        &self,
        py: Python<'_>,
        x: PyReadonlyArray2<'_, f32>,
        codes: PyReadonlyArray1<'_, i64>,
        names: Vec<PyLabel>,
    ) -> PyResult<()> {
        let (x, labels) = (features(&x)?, labels_of(&codes, &names)?);
        // All of it is looked at before any of it is learned.
        let (rows, chunk) = self.with(py, |state| {
            x.validate(state.map.dim()).map_err(errors::engine)?;
            state.manifest.iter().try_for_each(|manifest| manifest.config.accepts(x)).map_err(errors::engine)?;
            let known = state.learner.classes();
            let new: HashSet<&Label> = labels.iter().filter(|label| known.get(label).is_none()).collect();
            state.ensure_learning(x.len(), known.len() + new.len())?;
            Ok(state.pieces(x.len()))
        })?;
        let mut digest = TaskDigest::default();
        let (mut done, mut signal) = (0, Ok(()));
        for (x_part, part) in x.chunks(rows).zip(labels.chunks(rows)) {
            let piece = part.len().div_ceil(part.len().div_ceil(chunk));
            let before = done;
            for (x_piece, piece) in x_part.chunks(piece).zip(part.chunks(piece)) {
                self.with(py, |state| {
                    state.learner.learn(x_piece, piece).map_err(errors::engine)?;
                    state.samples += piece.len();
                    Ok(())
                })?;
                done += piece.len();
                signal = py.check_signals();
                if signal.is_err() {
                    break;
                }
            }
            let learned = done - before;
            self.with(py, |state| {
                x_part.chunks(learned).take(1).for_each(|x| state.note(x, &part[..learned], &mut digest));
                Ok(())
            })?;
            if signal.is_err() {
                break;
            }
        }
        self.with(py, |state| {
            if let Some(manifest) = &mut state.manifest {
                manifest.note("partial_fit", &digest.finish());
            }
            Ok(())
        })?;
        signal.map_err(|signal| interrupted(py, signal, done, labels.len()))
    }

    /// Forms the classifier, if the last task has made it stale.
    fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |state| state.learner.prepare().map_err(errors::engine))
    }

    /// Scores of these classes; one that the model does not know gets minus infinity.
    fn scores<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f32>,
        names: Vec<PyLabel>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let x = features(&x)?;
        self.with(py, |state| state.ensure_answer(x.len(), names.len(), "prediction"))?;
        let mut values = Vec::with_capacity(x.len() * names.len());
        for part in x.chunks(ROWS) {
            // Another thread may teach the model in between: columns are looked up together with the scores.
            let (scores, columns) = self.with(py, |state| {
                let scores = state.learner.scores(part).map_err(errors::engine)?;
                let table = state.learner.classes();
                Ok((scores, names.iter().map(|name| table.get(&name.0)).collect::<Vec<_>>()))
            })?;
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
        let (values, width) = self.with(py, |state| {
            x.validate(state.map.dim()).map_err(errors::engine)?;
            if state.map.is_infinite() {
                return Err(PyValueError::new_err("width=inf: infinitely many features cannot be written down"));
            }
            state.ensure_answer(x.len(), state.map.width(), "the random features")?;
            Ok((lift::lifted(&*state.map, x), state.map.width()))
        })?;
        PyArray1::from_vec(py, values).reshape([x.len(), width])
    }

    /// How foreign samples are; None for methods that cannot tell.
    fn novelty<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f32>,
    ) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
        let x = features(&x)?;
        let mut values = Vec::with_capacity(x.len());
        for part in x.chunks(ROWS) {
            let novelty = self.with(py, |state| state.learner.novelty(part).map_err(errors::engine))?;
            let Some(novelty) = novelty else { return Ok(None) };
            values.extend(novelty);
            py.check_signals()?;
        }
        Ok(Some(PyArray1::from_vec(py, values)))
    }

    /// Labels by column, in order of first appearance.
    fn labels(&self, py: Python<'_>) -> PyResult<Vec<PyLabel>> {
        self.with(py, |state| Ok(state.learner.classes().labels().iter().cloned().map(PyLabel).collect()))
    }

    /// Samples of each class, by column; None for methods that do not count.
    fn counts(&self, py: Python<'_>) -> PyResult<Option<Vec<usize>>> {
        self.with(py, |state| Ok(state.learner.as_editable().map(|learner| learner.counts().to_vec())))
    }

    /// What is known about the model, as JSON. The classifier is formed if need be.
    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |state| {
            state.learner.prepare().map_err(errors::engine)?;
            let summary = state.learner.summary();
            let mut value = serde_json::json!(summary);
            value["verdict"] = serde_json::json!(summary.verdict());
            value["state_bytes"] = serde_json::json!(state.learner.state_bytes());
            value["settings"] = state.learner.settings();
            Ok(value.to_string())
        })
    }

    /// Eigenvalues of the Gram matrix, in descending order; None for methods that do not keep it.
    fn spectrum(&self, py: Python<'_>) -> PyResult<Option<Vec<f64>>> {
        self.with(py, |state| state.learner.spectrum().map_err(errors::engine))
    }

    /// What the model on disk says about itself, as JSON: lift, settings, encoder, tasks.
    fn manifest(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |state| {
            let (_, manifest) = state.stored("be written to a disk")?;
            Ok(serde_json::json!(manifest).to_string())
        })
    }

    /// Writes the model: into a new folder, or as the next version of the one that is there.
    fn save(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> PyResult<()> {
        self.with(py, |state| {
            let (learner, manifest) = state.stored("be saved")?;
            Model::store(&path, manifest, learner, overwrite).map_err(errors::store)
        })
    }

    /// Writes a copy of the model into a new folder.
    fn save_copy(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.with(py, |state| {
            let (learner, manifest) = state.stored("be saved")?;
            Model::store_copy(&path, manifest, learner).map_err(errors::store)
        })
    }

    /// Writes the classifier as ONNX, or as a small file that `loranpac predict` takes.
    fn export(&self, py: Python<'_>, path: PathBuf, half: bool, probabilities: bool) -> PyResult<()> {
        let precision = if half { Precision::F16 } else { Precision::F32 };
        self.with(py, |state| state.export(&path, precision, probabilities))
    }

    /// Takes in what others have learned.
    fn merge(slf: &Bound<'_, Self>, others: Vec<Bound<'_, Learner>>, again: bool) -> PyResult<Vec<String>> {
        let py = slf.py();
        let all: Vec<&Learner> = std::iter::once(slf.get()).chain(others.iter().map(|other| other.get())).collect();
        // Always in the same order, so that two threads cannot wait for each other.
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|&number| std::ptr::from_ref(all[number]));
        if order.windows(2).any(|pair| std::ptr::eq(all[pair[0]], all[pair[1]])) {
            return Err(PyValueError::new_err("other: a model cannot be merged with itself"));
        }
        let mut guards = Vec::new();
        for number in order {
            guards.push((number, all[number].state.lock_py_attached(py).map_err(|_| broken())?));
        }
        guards.sort_by_key(|(number, _)| *number);
        let samples = guards.iter().map(|(_, state)| state.samples).sum::<usize>() - guards[0].1.samples;
        let classes = guards.iter().map(|(_, state)| state.learner.classes().len()).sum();
        let first = &mut *guards[0].1;
        detached(py, slf.get().threads, move || first.ensure_learning(samples, classes))??;
        let mut parts = Vec::new();
        for (number, guard) in &mut guards {
            let (learner, manifest) = guard.stored("be merged")?;
            let name = if *number == 0 { "this model".to_owned() } else { format!("model {number}") };
            parts.push(Part { name, learner, manifest });
        }
        let merged = detached(py, slf.get().threads, || loranpac_store::merge(parts, again))?;
        let Merged { learner, manifest, warnings } = merged.map_err(errors::store)?;
        *guards[0].1 = State::stored_as(learner, manifest);
        Ok(errors::warnings(warnings))
    }

    /// Removes a class from prediction; None if that was done before.
    fn forget(&self, py: Python<'_>, label: PyLabel) -> PyResult<Option<usize>> {
        self.with(py, |state| state.edit("forget", |edit| edit.forget(&label.0)))
    }

    /// Gives a class another name; None if that was done before.
    fn rename(&self, py: Python<'_>, from: PyLabel, to: PyLabel) -> PyResult<Option<usize>> {
        self.with(py, |state| state.edit("rename classes", |edit| edit.rename(&from.0, &to.0)))
    }

    /// Moves samples to other labels; gives the number of those that could not be checked, or None if that was done before.
    fn relabel(
        &self,
        py: Python<'_>,
        x: PyReadonlyArray2<'_, f32>,
        from: PyReadonlyArray1<'_, i64>,
        to: PyReadonlyArray1<'_, i64>,
        names: Vec<PyLabel>,
        again: bool,
    ) -> PyResult<Option<usize>> {
        let (x, from, to) = (features(&x)?, labels_of(&from, &names)?, labels_of(&to, &names)?);
        self.with(py, |state| {
            state.ensure_edit(x.len(), "relabelling")?;
            state.edit("relabel", |edit| edit.relabel(x, &from, &to, again))
        })
    }

    /// Takes samples back that have been learned; gives the number of those that could not be checked, or None if that was
    /// done before.
    fn unlearn(
        &self,
        py: Python<'_>,
        x: PyReadonlyArray2<'_, f32>,
        codes: PyReadonlyArray1<'_, i64>,
        names: Vec<PyLabel>,
        again: bool,
    ) -> PyResult<Option<usize>> {
        let (x, labels) = (features(&x)?, labels_of(&codes, &names)?);
        self.with(py, |state| {
            state.ensure_edit(x.len(), "unlearning")?;
            state.edit("unlearn", |edit| edit.unlearn(x, &labels, again))
        })
    }

    /// Whether these samples have been learned before, as one task.
    fn knows(
        &self,
        py: Python<'_>,
        x: PyReadonlyArray2<'_, f32>,
        codes: PyReadonlyArray1<'_, i64>,
        names: Vec<PyLabel>,
    ) -> PyResult<bool> {
        let (x, labels) = (features(&x)?, labels_of(&codes, &names)?);
        self.with(py, |state| {
            let Some(manifest) = &state.manifest else { return Ok(false) };
            if manifest.tasks.is_empty() {
                return Ok(false);
            }
            let digest = Fingerprint::of(x, &labels).digest;
            Ok(manifest.tasks.iter().any(|task| task.digest == digest))
        })
    }

    /// Fits the temperature of probabilities to samples that have not been learned; columns of `codes` are the model's.
    fn calibrate(
        &self,
        py: Python<'_>,
        x: PyReadonlyArray2<'_, f32>,
        codes: PyReadonlyArray1<'_, i64>,
        names: Vec<PyLabel>,
    ) -> PyResult<f64> {
        let (x, labels) = (features(&x)?, labels_of(&codes, &names)?);
        self.with(py, |state| {
            let scores = state.learner.scores(x).map_err(errors::engine)?;
            let table = state.learner.classes();
            let known = scores.rows().zip(&labels).filter_map(|(row, label)| Some((row.to_vec(), table.get(label)?)));
            let samples: Vec<(Vec<f32>, usize)> = known.collect();
            if samples.is_empty() {
                return Err(PyValueError::new_err("y: none of the samples is of a class that the model knows"));
            }
            let temperature = temperature::fit(&samples);
            let held_out = Fingerprint { samples: samples.len(), ..Fingerprint::of(x, &labels) };
            if let (Some(learner), Some(manifest)) = (state.learner.as_editable(), &mut state.manifest) {
                Edit { learner, manifest }.calibrate(temperature, &held_out);
            }
            Ok(temperature)
        })
    }
}

/// The interrupt, with what has been learned by then.
fn interrupted(py: Python<'_>, signal: PyErr, done: usize, all: usize) -> PyErr {
    if !signal.is_instance_of::<PyKeyboardInterrupt>(py) {
        return signal;
    }
    let error = PyKeyboardInterrupt::new_err(if done == all {
        format!("all {all} samples have been learned")
    } else {
        format!("{done} of {all} samples have been learned; partial_fit(X[{done}:], y[{done}:]) goes on")
    });
    error.set_cause(py, Some(signal));
    error
}
