//! The state of an estimator: a model with its records, or a method that cannot be stored.

use std::path::Path;

use loranpac::auto::{self, Choice, Expected};
use loranpac::internals::count;
use loranpac::lift::{self, LiftEntry, LiftSpec, Rows};
use loranpac::memory::{product, sum};
use loranpac::registry::{self, Method, MethodOptions};
use loranpac::{
    Classifier, Config, FeatureSpace, Features, Label, Learner, Prior, Schedule, StreamSizes, Truncation, Width,
};
use loranpac_data::system;
use loranpac_store::onnx::{self, OnnxOptions};
use loranpac_store::{
    EDIT_ROWS, Edited, Encoder, Error, Identity, Inference, LiftRecord, Precision, ROWS, Session, Settings,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors;

/// Smaller answers are computed without a look at the available memory.
const SMALL: usize = 1 << 20;

/// Refuses work that needs more memory than is available.
pub fn ensure(needed: usize, what: &str, advice: &str) -> PyResult<()> {
    system::room().ensure(needed, what, advice).map_err(errors::engine)
}

/// The options of an estimator.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Options {
    method: String,
    dim: usize,
    lift: String,
    width: WidthOption,
    /// Samples that will be learned at least, and their classes.
    samples: usize,
    classes: usize,
    keep_samples: bool,
    seed: u64,
    gamma: f64,
    /// Kind (truncate, threshold or rank) and number.
    truncation: Option<(String, f64)>,
    schedule: String,
    max_rank: Option<usize>,
    settings: Vec<(String, String)>,
    keep: usize,
}

/// A width as Python gives it.
#[derive(FromPyObject)]
enum WidthOption {
    /// None for an infinite width.
    #[pyo3(transparent)]
    Given(Option<usize>),
    /// The word "auto".
    #[pyo3(transparent)]
    Auto(#[expect(dead_code, reason = "there is only one word")] String),
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

    /// The options of the method in a feature space.
    fn of_method(&self, space: FeatureSpace) -> PyResult<MethodOptions> {
        let schedule = match self.schedule.as_str() {
            "paper" => Schedule::Paper,
            _ => Schedule::Late,
        };
        Ok(MethodOptions {
            truncation: self.truncation()?,
            max_rank: self.max_rank.unwrap_or(Config::cap(space.width())),
            schedule,
            seed: self.seed,
            settings: self.settings.clone(),
            ..MethodOptions::new(space)
        })
    }

    /// Chooses the width of a lift.
    fn choose(&self, method: &Method, lift: &LiftEntry) -> PyResult<Choice> {
        let Options { dim, samples, classes, seed, gamma, .. } = *self;
        let sizes = StreamSizes { samples, largest_task: samples, classes };
        let room = system::room();
        let fits = |width: Width| -> PyResult<bool> {
            let spec = LiftSpec { seed, keep: false, gamma, ..LiftSpec::new(dim, width.finite().unwrap_or(0)) };
            let space = FeatureSpace::build(lift.name, width, spec).map_err(errors::engine)?;
            let learner = method.build(&self.of_method(space)?).map_err(errors::engine)?;
            let rows = lift.projection.count(dim, width.finite().unwrap_or(0));
            Ok(room.suffices(sum(&[learner.peak_bytes(&sizes), product(&[4, rows, dim])])))
        };
        let expected = Expected {
            samples: Some(samples),
            may_keep: self.keep_samples,
            has_limit: method.infinite && lift.limit.is_some() && seed == 0,
            inside: if lift.projection == Rows::WidthMinusDim { dim } else { 0 },
        };
        // What is wrong apart from memory is refused afterwards, with its reason.
        Ok(auto::choose(expected, |width| fits(width).unwrap_or(!width.is_infinite())))
    }
}

/// The state of an estimator.
pub struct State {
    /// The feature space.
    pub space: FeatureSpace,
    /// The method.
    pub engine: Engine,
    /// Why it has its width, if that was chosen automatically.
    pub choice: Option<Choice>,
    /// The encoder of a method that cannot be stored.
    encoder: Encoder,
}

/// The method of an estimator.
pub enum Engine {
    /// A model that can be stored, merged and edited.
    Stored(Box<Session>),
    /// Another method, and how many samples it has learned.
    Other(Box<dyn Learner>, usize),
}

impl State {
    /// A state that has learned nothing.
    pub fn new(options: &Options) -> PyResult<State> {
        let method = registry::find(&options.method).map_err(errors::engine)?;
        let name = method.input.lift(&options.lift).to_owned();
        let Options { dim, seed, gamma, .. } = *options;
        let entry = lift::find(&name).map_err(errors::engine)?;
        let choice = match options.width {
            WidthOption::Auto(_) if entry.projection.is_drawn() => Some(options.choose(method, entry)?),
            _ => None,
        };
        let width = match (choice, &options.width) {
            (Some(choice), _) => choice.width,
            (None, WidthOption::Given(width)) if method.input.lifted() => width.map_or(Width::Infinite, Width::Finite),
            // Methods without a lift have no width.
            _ => Width::Finite(dim),
        };
        let rows = entry.projection.count(dim, width.finite().unwrap_or(0));
        let what = format!("width={width}: the projection of {}", count(dim, "feature"));
        ensure(product(&[4, rows, dim]), &what, "reduce width")?;
        let lift = LiftRecord::new(&name, dim, width, seed, gamma).map_err(errors::store)?;
        let space = lift.build(true).map_err(errors::store)?;
        let method_options = options.of_method(space.clone())?;
        let engine = match method.config(&method_options).map_err(errors::engine)? {
            None => Engine::Other(method.build(&method_options).map_err(errors::engine)?, 0),
            Some(config) => {
                let settings = Settings {
                    lift,
                    config,
                    keep: options.keep,
                    width_choice: choice,
                    encoder: None,
                    prior: Prior::None,
                };
                Engine::Stored(Box::new(Session::in_memory_with(&settings, space.clone()).map_err(errors::store)?))
            }
        };
        Ok(State { space, engine, choice, encoder: Encoder::default() })
    }

    /// The state of a model that was read or merged.
    pub fn stored(mut session: Session) -> PyResult<State> {
        let space = session.model().map_err(errors::store)?.space();
        let choice = session.manifest().width_choice;
        Ok(State { space, engine: Engine::Stored(Box::new(session)), choice, encoder: Encoder::default() })
    }

    /// The method, whichever it is.
    pub fn learner(&mut self) -> PyResult<&dyn Learner> {
        match &mut self.engine {
            Engine::Stored(session) => Ok(session.model().map_err(errors::store)?),
            Engine::Other(learner, _) => Ok(&**learner),
        }
    }

    /// The model with its records, for what only LoRanPAC can do.
    pub fn session(&mut self, what: &str) -> PyResult<&mut Session> {
        match &mut self.engine {
            Engine::Stored(session) => Ok(session),
            Engine::Other(..) => {
                Err(PyTypeError::new_err(format!("this method cannot {what}; loranpac and loranpac-soft can")))
            }
        }
    }

    /// Refuses an encoder that is not the model's.
    pub fn check_encoder(&self, identity: &Identity) -> PyResult<()> {
        let own = match &self.engine {
            Engine::Stored(session) => session.manifest().encoder.identity(),
            Engine::Other(..) => self.encoder.identity(),
        };
        match own.differs(identity) {
            Some(difference) => Err(errors::store(Error::OtherEncoder { difference })),
            None => Ok(()),
        }
    }

    /// Records which encoder computes the features, where that is not recorded yet.
    pub fn identify_encoder(&mut self, identity: &Identity) -> PyResult<()> {
        self.check_encoder(identity)?;
        match &mut self.engine {
            Engine::Stored(session) => session.identify_encoder(identity).map_err(errors::store),
            Engine::Other(..) => {
                self.encoder.identify(identity);
                Ok(())
            }
        }
    }

    /// Learns samples as one piece.
    pub fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> PyResult<()> {
        match &mut self.engine {
            Engine::Stored(session) => session.learn(x, labels).map_err(errors::store),
            Engine::Other(learner, samples) => {
                learner.learn(x, labels).map_err(errors::engine)?;
                *samples += labels.len();
                Ok(())
            }
        }
    }

    /// The classifier of everything learned so far.
    pub fn classifier(&mut self) -> PyResult<Classifier> {
        match &mut self.engine {
            Engine::Stored(session) => session.classifier().map_err(errors::store),
            Engine::Other(learner, _) => learner.classifier().map_err(errors::engine),
        }
    }

    /// Eigenvalues of the Gram matrix, in descending order; None for methods that do not keep it.
    pub fn spectrum(&mut self) -> PyResult<Option<Vec<f64>>> {
        match &mut self.engine {
            Engine::Stored(session) => session.spectrum().map(Some).map_err(errors::store),
            Engine::Other(learner, _) => learner.spectrum().map_err(errors::engine),
        }
    }

    /// Samples learned so far.
    pub fn samples(&mut self) -> PyResult<usize> {
        match &mut self.engine {
            Engine::Stored(session) => Ok(session.model().map_err(errors::store)?.counts().iter().sum()),
            Engine::Other(_, samples) => Ok(*samples),
        }
    }

    /// Bytes of P, if it has not been generated yet.
    fn projection_bytes(&self) -> usize {
        match &self.engine {
            Engine::Stored(session) if self.space.bytes() == 0 => session.manifest().lift.bytes(),
            _ => 0,
        }
    }

    /// Refuses to learn samples that do not fit into memory.
    pub fn ensure_learning(&mut self, new: usize, classes: usize) -> PyResult<()> {
        let sizes = StreamSizes { samples: self.samples()?.saturating_add(new), largest_task: new, classes };
        let what = format!("learning {} with width={}", count(new, "sample"), width(&self.space));
        let projection = self.projection_bytes();
        let learner = self.learner()?;
        let peak = learner.peak_bytes(&sizes).saturating_sub(learner.state_bytes());
        ensure(sum(&[peak, projection]), &what, "reduce width or max_rank")
    }

    /// Refuses an answer of `numbers` numbers per sample that does not fit into memory.
    pub fn ensure_answer(&self, samples: usize, numbers: usize, what: &str) -> PyResult<()> {
        let needed = sum(&[product(&[8, samples, numbers]), self.projection_bytes()]);
        if needed < SMALL {
            return Ok(());
        }
        let what = format!("{what} of {} with width={}", count(samples, "sample"), width(&self.space));
        ensure(needed, &what, "give fewer samples at a time, or reduce width")
    }

    /// Samples of a group, and the maximum size of the pieces of it that are learned at once: one chunk, so that an interrupt
    /// does not wait for more.
    pub fn pieces(&mut self, rows: usize) -> PyResult<(usize, usize)> {
        if let Engine::Stored(session) = &mut self.engine
            && session.manifest().config.schedule == Schedule::Late
        {
            return Ok((ROWS, session.manifest().config.chunk));
        }
        // Every call is one task, and one cut.
        Ok((rows, rows))
    }

    /// Refuses to unlearn or relabel samples that do not fit into memory.
    pub fn ensure_edit(&self, samples: usize, what: &str) -> PyResult<()> {
        let Width::Finite(width) = self.space.width() else { return Ok(()) };
        // The lifted samples, and their projections.
        self.ensure_answer(samples.min(EDIT_ROWS), 2 * width, what)
    }

    /// Edits the model. Returns the number of samples that could not be checked, or None if the same edit was applied before.
    pub fn edit(
        &mut self,
        what: &str,
        work: impl FnOnce(&mut Session) -> Result<Edited, Error>,
    ) -> PyResult<Option<usize>> {
        Ok(match work(self.session(what)?).map_err(errors::store)? {
            Edited::Done { unchecked } => Some(unchecked),
            Edited::Already { .. } => None,
        })
    }

    /// Writes the classifier as ONNX, or as a small file for `loranpac predict`.
    pub fn export(&mut self, path: &Path, precision: Precision, probabilities: bool) -> PyResult<()> {
        let session = self.session("be exported")?;
        let (lift, encoder) = (session.manifest().lift.clone(), session.manifest().encoder.identity());
        let inference = Inference { lift, encoder, classifier: session.classifier().map_err(errors::store)? };
        if path.extension().is_some_and(|e| e == "onnx") {
            let options = OnnxOptions { precision, probabilities, ..OnnxOptions::default() };
            onnx::export(&inference, path, &options).map(drop).map_err(errors::store)
        } else {
            inference.save(path, precision).map_err(errors::store)
        }
    }
}

/// The width as Python writes it.
fn width(space: &FeatureSpace) -> String {
    space.width().finite().map_or_else(|| "inf".to_owned(), |width| width.to_string())
}
