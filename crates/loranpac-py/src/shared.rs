//! A state that several threads use: one changes it, and the others predict meanwhile.

use std::sync::{Mutex, MutexGuard, PoisonError};

use loranpac::{Classifier, Features, Label, Prior};
use loranpac_store::Fingerprint;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::errors;
use crate::state::{Engine, State};
use crate::threads::detached;

/// A state behind a lock, with its latest classifier.
pub struct Shared {
    state: Mutex<State>,
    /// The classifier of the latest complete state, if it was formed. It answers while another thread teaches the model. Its
    /// lock is held only to copy or replace it. A thread that needs both locks takes that of the state first.
    latest: Mutex<Option<Classifier>>,
    /// The prior that was set last; compared first, so that prediction does not wait for a thread that teaches the model.
    prior: Mutex<Option<Prior>>,
    /// The number of threads of the engine; 0 for all cores.
    pub threads: usize,
}

impl Shared {
    /// A state without a classifier.
    pub fn new(state: State, threads: usize) -> Shared {
        Shared { state: Mutex::new(state), latest: Mutex::default(), prior: Mutex::default(), threads }
    }

    /// Waits for the state without the interpreter lock.
    pub fn lock<'a>(&'a self, py: Python<'_>) -> PyResult<MutexGuard<'a, State>> {
        let broken = "an earlier call failed in the middle of a change; load the model again or fit a new one";
        self.state.lock_py_attached(py).map_err(|_| PyValueError::new_err(broken))
    }

    /// Work on the state, without the interpreter lock.
    pub fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut State) -> PyResult<T> + Send) -> PyResult<T> {
        let mut state = self.lock(py)?;
        let state = &mut *state;
        detached(py, self.threads, || work(state))?
    }

    /// The same for work that changes the model: the latest classifier is outdated afterwards.
    pub fn changing<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut State) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        self.with(py, |state| {
            let outcome = work(state);
            self.outdate();
            outcome
        })
    }

    /// Drops the latest classifier; the caller has locked the state.
    pub fn outdate(&self) {
        *self.latest() = None;
    }

    fn latest(&self) -> MutexGuard<'_, Option<Classifier>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The classifier: the latest, or a new one if the model has changed. The state stays locked until the new one is stored:
    /// a change in between would leave an outdated one.
    pub fn classifier(&self, py: Python<'_>) -> PyResult<Classifier> {
        let latest = py.detach(|| self.latest().clone());
        if let Some(classifier) = latest {
            return Ok(classifier);
        }
        self.with(py, |state| {
            let classifier = state.classifier()?;
            *self.latest() = Some(classifier.clone());
            Ok(classifier)
        })
    }

    /// Sets the prior of a model that can be stored; the classifier is outdated if it changes.
    pub fn set_prior(&self, py: Python<'_>, prior: Prior) -> PyResult<()> {
        let last = || self.prior.lock().unwrap_or_else(PoisonError::into_inner);
        if last().as_ref() == Some(&prior) {
            return Ok(());
        }
        self.changing(py, |state| {
            state.session("have a prior")?.set_prior(prior.clone()).map_err(errors::store)?;
            *last() = Some(prior);
            Ok(())
        })
    }

    /// Learns groups of `rows` samples in pieces of at most `chunk`. Handles signals and reports progress in between. `learned` is
    /// the fingerprint of all of them, if it is known.
    pub fn learn_pieces(
        &self,
        py: Python<'_>,
        x: Features<'_>,
        labels: &[Label],
        (rows, chunk): (usize, usize),
        progress: Option<&Bound<'_, PyAny>>,
        learned: Option<Fingerprint>,
    ) -> PyResult<()> {
        let (mut done, mut outcome) = (0, Ok(()));
        for (x_part, part) in x.chunks(rows).zip(labels.chunks(rows)) {
            let piece = part.len().div_ceil(part.len().div_ceil(chunk));
            let before = done;
            for (x_piece, piece) in x_part.chunks(piece).zip(part.chunks(piece)) {
                outcome = self.with(py, |state| state.learn(x_piece, piece));
                if outcome.is_ok() {
                    done += piece.len();
                    let reported = progress.map(|report| report.call1((done, done - before == part.len())));
                    outcome = reported.transpose().and_then(|_| py.check_signals());
                }
                if outcome.is_err() {
                    break;
                }
            }
            if outcome.is_err() {
                break;
            }
        }
        if done == 0 && outcome.is_err() {
            // The engine may have learned the samples before it failed to truncate.
            self.changing(py, |_| Ok(()))?;
        }
        if let Some(x) = x.chunks(done.max(1)).next().filter(|_| done > 0) {
            self.changing(py, |state| {
                if let Engine::Stored(session) = &mut state.engine {
                    let learned = learned.filter(|_| done == labels.len());
                    session.note("partial_fit", &learned.unwrap_or_else(|| Fingerprint::of(x, &labels[..done])));
                }
                Ok(())
            })?;
        }
        outcome.map_err(|error| interrupted(py, error, done, labels.len()))
    }
}

/// An interrupt with the number of samples learned; other errors unchanged.
fn interrupted(py: Python<'_>, error: PyErr, done: usize, all: usize) -> PyErr {
    if !error.is_instance_of::<PyKeyboardInterrupt>(py) {
        return error;
    }
    let interrupt = PyKeyboardInterrupt::new_err(if done == all {
        format!("all {all} samples have been learned")
    } else {
        format!("{done} of {all} samples have been learned; partial_fit(X[{done}:], y[{done}:]) learns the rest")
    });
    interrupt.set_cause(py, Some(error));
    interrupt
}
