//! Features by an encoder that is adapted to the tasks of a run.
//!
//! First-session adaptation trains modules on the training samples of the first task; `ease` trains new ones for each task. Everything else
//! of a run is as on frozen features: an adapted data set has the same samples with other features.

use std::sync::Arc;
use std::time::Instant;

use loranpac::internals::count;
use loranpac::registry::Input;
use loranpac_data::dataset::Part;
use loranpac_data::{Dataset, EncodedBy, system};
use loranpac_encode::adapt::{Pace, Samples, Settings};
use loranpac_encode::{ModuleKind, Transformer};

use crate::adapters::{Adapters, trainer};
use crate::choice::{Choice, Kind, Rehearsal};
use crate::error::Error;
use crate::kept::Kept;
use crate::prompted;
use crate::raw::{RawPlace, RawSamples};
use crate::say::{Say, progress};
use crate::spec::{AdaptFeatures, Spec};
use crate::stream::Task;

/// Bytes of adapted features that are kept for further runs.
const MOST: usize = 1 << 30;

/// Images or texts of a data set in memory, the encoder that is adapted to them, and what came of it: runs of several methods share it.
pub struct RawData {
    place: RawPlace,
    samples: Option<RawSamples>,
    adapters: Adapters,
    /// Features by an adapted encoder: what it was adapted to, and of which training samples.
    blocks: Kept<(String, Vec<usize>), Arc<Block>>,
    /// Choices by the settings and training samples of the first task, with their seconds.
    choices: Kept<(Settings, Vec<usize>), (Choice, f64)>,
}

/// Features of some training samples and of all test samples by one adapted encoder.
struct Block {
    train: Vec<f32>,
    test: Vec<f32>,
    /// Seconds of training and encoding.
    seconds: f64,
}

/// What came of adaptation.
pub struct Adapted {
    /// The data set with other features; none if frozen ones were chosen.
    pub data: Option<Arc<Dataset>>,
    /// Seconds that it took.
    pub seconds: f64,
    /// Which features were chosen, if that was asked for.
    pub choice: Option<Choice>,
}

/// Which features a run works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunFeatures {
    /// Those of the encoder as it is.
    Frozen,
    /// Those after adaptation to the first task.
    Adapted,
    /// Both side by side.
    Both,
    /// The best of these three.
    Chosen,
    /// Those after adaptation to each task, side by side.
    Subspaces,
    /// Those of the encoder as it is, as queries beside the images or texts themselves.
    Raw,
}

impl RunFeatures {
    /// The features of a run.
    pub fn of(spec: &Spec) -> Result<RunFeatures, Error> {
        Ok(match (spec.method()?.input, spec.adapt.is_some(), spec.adapt_features) {
            (Input::Adapted, ..) => RunFeatures::Both,
            (Input::Subspaces, ..) => RunFeatures::Subspaces,
            (Input::Raw, ..) => RunFeatures::Raw,
            (_, false, _) => RunFeatures::Frozen,
            (_, true, AdaptFeatures::Adapted) => RunFeatures::Adapted,
            (_, true, AdaptFeatures::Both) => RunFeatures::Both,
            (_, true, AdaptFeatures::Chosen) => RunFeatures::Chosen,
        })
    }

    /// Whether a run trains inside the encoder.
    pub fn trains(spec: &Spec) -> bool {
        RunFeatures::of(spec).is_ok_and(|features| features != RunFeatures::Frozen)
    }

    /// Features per sample at most, given those of the encoder and the number of tasks.
    pub fn dim(self, dim: usize, tasks: usize) -> usize {
        match self {
            RunFeatures::Frozen | RunFeatures::Adapted | RunFeatures::Raw => dim,
            RunFeatures::Both | RunFeatures::Chosen => 2 * dim,
            RunFeatures::Subspaces => dim * tasks,
        }
    }
}

impl RawData {
    /// Raw data that are read when they are first needed.
    pub fn new(place: RawPlace) -> RawData {
        let adapters = Adapters::new(place.adapters.clone());
        RawData { place, samples: None, adapters, blocks: Kept::new(MOST), choices: Kept::new(MOST) }
    }

    /// What a sample costs on this machine with the module, or the prompts, of a run.
    pub fn pace(&self, spec: &Spec) -> Result<Pace, Error> {
        let transformer = self.place.transformer()?;
        Ok(match RunFeatures::of(spec)? {
            RunFeatures::Raw => prompted::settings(spec)?.pace(&transformer)?,
            _ => Pace::measure(&transformer, settings(spec)?.module)?,
        })
    }

    /// Encoder and samples in the order of the data set, which is the whole one of the same inputs, and where what is trained is kept.
    pub(crate) fn open(&mut self, dataset: &Dataset) -> Result<(&RawSamples, &mut Adapters), Error> {
        let samples = match self.samples.take() {
            Some(samples) => samples,
            None => RawSamples::read(&self.place, dataset)?,
        };
        Ok((self.samples.insert(samples), &mut self.adapters))
    }

    /// The data set with the features that a run works on. `whole` has all training samples, of which `dataset` has those at `rows`; `tasks`
    /// divides the latter.
    pub fn adapted(
        &mut self,
        spec: &Spec,
        whole: &Dataset,
        (dataset, rows): (&Dataset, &[usize]),
        tasks: &[Task],
        say: Say<'_>,
    ) -> Result<Adapted, Error> {
        let (features, settings) = (RunFeatures::of(spec)?, settings(spec)?);
        let trained = if features == RunFeatures::Subspaces { tasks } else { &tasks[..tasks.len().min(1)] };
        let places = |task: &Task| task.train.iter().map(|row| rows[*row]).collect::<Vec<usize>>();
        let places: Vec<Vec<usize>> = trained.iter().map(places).collect();
        self.open(whole)?;
        let RawData { samples, adapters, blocks, choices, .. } = self;
        // Opened above.
        let Some(samples) = samples else { return Err(Error::Interrupted) };
        let mut work = Work { samples, settings: &settings, adapters, blocks, say };
        let chosen = match (features, tasks.first()) {
            (RunFeatures::Chosen, Some(first)) => {
                let key = (settings.clone(), places[0].clone());
                Some(match choices.get(&key) {
                    Some(found) => found,
                    None => {
                        let found = work.choose(dataset, first, &places[0])?;
                        choices.put(key, found.clone(), size_of::<usize>() * places[0].len());
                        found
                    }
                })
            }
            _ => None,
        };
        let (choice, seconds) = chosen.unzip();
        let features = choice.as_ref().map_or(features, |choice| match choice.chosen {
            Kind::Frozen => RunFeatures::Frozen,
            Kind::Adapted => RunFeatures::Adapted,
            Kind::Both => RunFeatures::Both,
        });
        let seconds = seconds.unwrap_or(0.0);
        Ok(match features {
            RunFeatures::Frozen => Adapted { data: None, seconds, choice },
            _ => {
                let (data, more) = work.dataset(dataset, rows, &places, features)?;
                Adapted { data: Some(Arc::new(data)), seconds: seconds + more, choice }
            }
        })
    }
}

/// What adaptation needs.
struct Work<'a> {
    samples: &'a RawSamples,
    settings: &'a Settings,
    adapters: &'a mut Adapters,
    blocks: &'a mut Kept<(String, Vec<usize>), Arc<Block>>,
    say: Say<'a>,
}

impl Work<'_> {
    /// The data set with features after adaptation to each of some tasks, and the seconds that these took.
    fn dataset(
        &mut self,
        dataset: &Dataset,
        rows: &[usize],
        tasks: &[Vec<usize>],
        features: RunFeatures,
    ) -> Result<(Dataset, f64), Error> {
        let with_frozen = features == RunFeatures::Both;
        let count = tasks.len() + usize::from(with_frozen);
        // Twice: block by block, and side by side.
        let bytes = 8usize.saturating_mul((rows.len() + self.samples.test.len()) * dataset.dim * count);
        system::room().ensure(bytes, "adapted features", "fewer samples (`per-class`) or tasks (`inc`) need less")?;
        let mut blocks = Vec::new();
        for (number, places) in tasks.iter().enumerate() {
            let of = match tasks.len() {
                1 => String::new(),
                count => format!("task {} of {count}: ", number + 1),
            };
            let part = self.samples.train.part(places);
            // With one class there is nothing to tell apart: the encoder stays as it is.
            blocks.push(match part.labels().len() {
                0 | 1 if features == RunFeatures::Subspaces => {
                    let samples = self.samples;
                    Arc::new(self.encode(&samples.transformer, rows, &of, 0.0)?)
                }
                _ => self.block(part, rows, &of)?,
            });
        }
        let seconds = blocks.iter().map(|block| block.seconds).sum();
        let frozen = with_frozen.then_some((&dataset.train.x[..], &dataset.test.x[..]));
        let adapted = blocks.iter().map(|block| (&block.train[..], &block.test[..]));
        let side_by_side = frozen.into_iter().chain(adapted).collect();
        Ok((stacked(dataset, side_by_side, self.settings, features), seconds))
    }

    /// Features after adaptation to some samples.
    fn block(&mut self, part: Samples, rows: &[usize], of: &str) -> Result<Arc<Block>, Error> {
        let trainer = trainer(&self.samples.transformer, part, self.settings)?;
        let key = (trainer.task(), rows.to_vec());
        if let Some(block) = self.blocks.get(&key) {
            return Ok(block);
        }
        let (adapted, seconds) = self.adapters.train(&self.samples.transformer, trainer, of, self.say)?;
        let block = Arc::new(self.encode(&adapted, rows, of, seconds)?);
        self.blocks.put(key, block.clone(), size_of::<f32>() * (block.train.len() + block.test.len()));
        Ok(block)
    }

    /// Chooses features by adapting the encoder to every other class of the first task, and then to the others.
    fn choose(&mut self, dataset: &Dataset, task: &Task, places: &[usize]) -> Result<(Choice, f64), Error> {
        let started = Instant::now();
        let part = self.samples.train.part(places);
        // Both halves need two classes to be told apart.
        if part.labels().len() < 4 {
            let choice = Choice::too_few();
            progress(self.say, &choice.words())?;
            return Ok((choice, started.elapsed().as_secs_f64()));
        }
        let (frozen, _) = dataset.train.gather(&task.train, dataset.dim);
        let all: Vec<usize> = (0..part.len()).collect();
        let mut rehearsal = Rehearsal::default();
        for half in 0..2 {
            let of = format!("choosing, half {} of 2: ", half + 1);
            let seen = |class: usize| class % 2 == half;
            let known: Vec<usize> = all.iter().copied().filter(|at| seen(part.targets()[*at])).collect();
            let trainer = trainer(&self.samples.transformer, part.part(&known), self.settings)?;
            let (adapted, _) = self.adapters.train(&self.samples.transformer, trainer, &of, self.say)?;
            let features = part.features(&adapted, &all, |_| {})?;
            rehearsal.add(dataset.dim, [&frozen, &features], part.targets(), |class| !seen(class));
        }
        let choice = rehearsal.choose();
        progress(self.say, &choice.words())?;
        Ok((choice, started.elapsed().as_secs_f64()))
    }

    /// Features by an adapted encoder whose training took some seconds.
    fn encode(&mut self, adapted: &Transformer, rows: &[usize], of: &str, seconds: f64) -> Result<Block, Error> {
        progress(self.say, &format!("{of}encoding with the adapted encoder"))?;
        let started = Instant::now();
        let RawSamples { train, test, .. } = self.samples;
        let all: Vec<usize> = (0..test.len()).collect();
        let (train, test) = (train.features(adapted, rows, |_| {})?, test.features(adapted, &all, |_| {})?);
        Ok(Block { train, test, seconds: seconds + started.elapsed().as_secs_f64() })
    }
}

/// What is said about an unknown module.
const MODULES: &str = "the modules are adapter, lora, vpt-deep, vpt-shallow and ssf";

/// The settings of training for a run: those of the paper's tables, in which no samples are held out.
fn settings(spec: &Spec) -> Result<Settings, Error> {
    let name = spec.adapt.as_deref().unwrap_or("adapter");
    let unknown = || Error::from(loranpac::Error::setting("adapt", name, MODULES));
    let module = ModuleKind::from_name(name).ok_or_else(unknown)?;
    let (rate, epochs, batch, scale) = (spec.adapt_rate, spec.adapt_epochs, spec.adapt_batch, spec.adapt_scale);
    Ok(Settings {
        module,
        rate,
        epochs,
        batch,
        scale,
        seed: spec.seed.into(),
        held_out: 0,
        patience: 0,
        ..Settings::default()
    })
}

/// The data set with other features: blocks of equal size, side by side.
fn stacked(dataset: &Dataset, blocks: Vec<(&[f32], &[f32])>, settings: &Settings, features: RunFeatures) -> Dataset {
    let (size, width) = (dataset.dim, blocks.len());
    let (train, test): (Vec<_>, Vec<_>) = blocks.into_iter().unzip();
    let part = |part: &Part, blocks: Vec<&[f32]>| {
        let mut x = Vec::with_capacity(part.len() * size * width);
        (0..part.len()).for_each(|row| {
            blocks.iter().for_each(|block| x.extend_from_slice(&block[row * size..][..size]));
        });
        Part { x, y: part.y.clone(), domain: part.domain.clone(), layers: Default::default() }
    };
    let adapted = |name: &str| match features {
        RunFeatures::Both => format!("{name} before and after adaptation to 1 task with {}", settings.module),
        _ => format!("{name} with {}, adapted to {}", settings.module, count(width, "task")),
    };
    let by = |by: &EncodedBy| EncodedBy { name: adapted(&by.name), digest: by.digest.clone() };
    Dataset {
        name: dataset.name.clone(),
        dim: size * width,
        classes: dataset.classes.clone(),
        train: part(&dataset.train, train),
        test: part(&dataset.test, test),
        encoder: dataset.encoder.as_ref().map(by),
    }
}
