//! Features by an encoder that is adapted to the tasks of a run.
//!
//! First-session adaptation trains modules on the training samples of the first task; `ease` trains new ones for each task. Everything else
//! of a run is as on frozen features: an adapted data set has the same samples with other features.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use loranpac::internals::count;
use loranpac::registry::Input;
use loranpac_data::dataset::Part;
use loranpac_data::{Dataset, EncodedBy, Split, atomic, system};
use loranpac_encode::adapt::{Adapter, Pace, SampleOptions, Samples, Settings, Trainer};
use loranpac_encode::{Encoder, InputOptions, Inputs, Limits, ModuleKind, Transformer, open_transformer};

use crate::choice::{Choice, Kind, Rehearsal};
use crate::error::Error;
use crate::spec::{AdaptFeatures, Spec};
use crate::stream::Task;

/// Where images or texts are, and what encodes them.
#[derive(Debug, Clone)]
pub struct RawPlace {
    /// The encoder, as users name it.
    pub encoder: String,
    /// Its preprocessing, if it is not its own.
    pub preprocess: Option<String>,
    /// The inputs.
    pub inputs: Vec<PathBuf>,
    /// How they are read.
    pub options: InputOptions,
    /// Where trained adapters are kept, if anywhere.
    pub adapters: Option<PathBuf>,
}

impl RawPlace {
    /// Whether the encoder that computed the features is the one that would be adapted.
    pub fn fits(&self, encoder: &dyn Encoder) -> bool {
        let transformer = open_transformer(&self.encoder, self.preprocess.as_deref());
        transformer.is_ok_and(|transformer| transformer.digest() == encoder.digest())
    }
}

/// Called with what is going on; breaks to stop.
pub type Say<'a> = &'a mut dyn FnMut(&str) -> ControlFlow<()>;

/// Images or texts of a data set in memory, and the encoder that is adapted to them.
pub struct RawData {
    place: RawPlace,
    open: Option<Open>,
    /// The last adapted data sets, oldest first: runs of several methods share them.
    kept: Vec<(Key, Adapted)>,
}

/// What came of adaptation.
#[derive(Clone)]
pub struct Adapted {
    /// The data set with other features; none if frozen ones were chosen.
    pub data: Option<Arc<Dataset>>,
    /// Seconds that it took.
    pub seconds: f64,
    /// Which features were chosen, if that was asked for.
    pub choice: Option<Choice>,
}

/// Bytes of adapted features that are kept for further runs; the last ones in any case.
const KEPT: usize = 1 << 30;

struct Open {
    transformer: Transformer,
    train: Samples,
    test: Samples,
}

/// What adapted features depend on.
#[derive(Clone, PartialEq)]
struct Key {
    settings: Settings,
    wanted: Wanted,
    /// Training samples of each task.
    tasks: Vec<Vec<usize>>,
    train: Vec<usize>,
}

/// Which features a run works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
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

impl Wanted {
    /// The features of a run.
    pub fn of(spec: &Spec) -> Result<Wanted, Error> {
        Ok(match (spec.method()?.input, spec.adapt.is_some(), spec.adapt_features) {
            (Input::Adapted, ..) => Wanted::Both,
            (Input::Subspaces, ..) => Wanted::Subspaces,
            (Input::Raw, ..) => Wanted::Raw,
            (_, false, _) => Wanted::Frozen,
            (_, true, AdaptFeatures::Adapted) => Wanted::Adapted,
            (_, true, AdaptFeatures::Both) => Wanted::Both,
            (_, true, AdaptFeatures::Chosen) => Wanted::Chosen,
        })
    }

    /// Features per sample at most, given those of the encoder and the number of tasks.
    pub fn dim(self, dim: usize, tasks: usize) -> usize {
        match self {
            Wanted::Frozen | Wanted::Adapted | Wanted::Raw => dim,
            Wanted::Both | Wanted::Chosen => 2 * dim,
            Wanted::Subspaces => dim * tasks,
        }
    }
}

impl RawData {
    /// Raw data that are read when they are first needed.
    pub fn new(place: RawPlace) -> RawData {
        RawData { place, open: None, kept: Vec::new() }
    }

    /// What a sample costs on this machine with the module of a run.
    pub fn pace(&self, spec: &Spec) -> Result<Pace, Error> {
        let transformer = open_transformer(&self.place.encoder, self.place.preprocess.as_deref())?;
        Ok(Pace::measure(&transformer, settings(spec)?.module)?)
    }

    /// Encoder and samples in the order of the data set, which is the whole one of the same inputs.
    pub fn open(&mut self, dataset: &Dataset) -> Result<(&Transformer, &Samples, &Samples), Error> {
        let open = match self.open.take() {
            Some(open) => open,
            None => Open::new(&self.place, dataset)?,
        };
        let Open { transformer, train, test } = self.open.insert(open);
        Ok((transformer, train, test))
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
        let wanted = Wanted::of(spec)?;
        let trained = if wanted == Wanted::Subspaces { tasks } else { &tasks[..tasks.len().min(1)] };
        let places = |task: &Task| task.train.iter().map(|row| rows[*row]).collect::<Vec<usize>>();
        let key = Key {
            settings: settings(spec)?,
            wanted,
            tasks: trained.iter().map(places).collect(),
            train: rows.to_vec(),
        };
        if let Some((_, made)) = self.kept.iter().find(|(known, _)| *known == key) {
            return Ok(made.clone());
        }
        let started = Instant::now();
        let folder = self.place.adapters.clone();
        self.open(whole)?;
        // Opened above.
        let Some(open) = &self.open else { return Err(Error::Interrupted) };
        let mut work = Work { open, settings: &key.settings, folder: folder.as_deref(), say };
        let choice = match (wanted, tasks.first()) {
            (Wanted::Chosen, Some(first)) => Some(work.choose(dataset, first, &key.tasks[0])?),
            _ => None,
        };
        let wanted = choice.as_ref().map_or(wanted, |choice| match choice.chosen {
            Kind::Frozen => Wanted::Frozen,
            Kind::Adapted => Wanted::Adapted,
            Kind::Both => Wanted::Both,
        });
        let data = match wanted {
            Wanted::Frozen => None,
            _ => Some(Arc::new(work.dataset(dataset, rows, &key.tasks, wanted)?)),
        };
        let made = Adapted { data, seconds: started.elapsed().as_secs_f64(), choice };
        self.keep(key, made.clone());
        Ok(made)
    }

    /// Keeps adapted features for further runs, and drops the oldest ones if they are too many.
    fn keep(&mut self, key: Key, made: Adapted) {
        let bytes = |made: &Adapted| made.data.as_ref().map_or(0, |data| 4 * (data.train.x.len() + data.test.x.len()));
        self.kept.push((key, made));
        while self.kept.len() > 1 && self.kept.iter().map(|(_, made)| bytes(made)).sum::<usize>() > KEPT {
            self.kept.remove(0);
        }
    }
}

/// What adaptation needs.
struct Work<'a> {
    open: &'a Open,
    settings: &'a Settings,
    folder: Option<&'a Path>,
    say: Say<'a>,
}

impl Work<'_> {
    /// The data set with features after adaptation to each of some tasks.
    fn dataset(
        &mut self,
        dataset: &Dataset,
        rows: &[usize],
        tasks: &[Vec<usize>],
        wanted: Wanted,
    ) -> Result<Dataset, Error> {
        let open = self.open;
        let blocks = tasks.len() + usize::from(wanted == Wanted::Both);
        // Twice: block by block, and side by side.
        let bytes = 8usize.saturating_mul((rows.len() + open.test.len()) * dataset.dim * blocks);
        system::room().ensure(bytes, "adapted features", "fewer samples (`per-class`) or tasks (`inc`) need less")?;
        let mut blocks = Vec::new();
        if wanted == Wanted::Both {
            blocks.push((dataset.train.x.clone(), dataset.test.x.clone()));
        }
        for (number, places) in tasks.iter().enumerate() {
            let of = match tasks.len() {
                1 => String::new(),
                count => format!("task {} of {count}: ", number + 1),
            };
            let part = open.train.part(places);
            // With one class there is nothing to tell apart: the encoder stays as it is.
            let adapted = match part.labels().len() {
                0 | 1 if wanted == Wanted::Subspaces => open.transformer.clone(),
                _ => self.train(part, &of)?,
            };
            let words = format!("{of}encoding with the adapted encoder");
            blocks.push(open.features(&adapted, rows, &words, self.say)?);
        }
        Ok(stacked(dataset, blocks, self.settings, wanted))
    }

    /// Chooses features by adapting the encoder to every other class of the first task, and then to the others.
    fn choose(&mut self, dataset: &Dataset, task: &Task, places: &[usize]) -> Result<Choice, Error> {
        let part = self.open.train.part(places);
        // Both halves need two classes to be told apart.
        if part.labels().len() < 4 {
            let choice = Choice::too_few();
            self.tell(&choice.words())?;
            return Ok(choice);
        }
        let (frozen, _) = dataset.train.gather(&task.train, dataset.dim);
        let all: Vec<usize> = (0..part.len()).collect();
        let mut rehearsal = Rehearsal::default();
        for half in 0..2 {
            let of = format!("choosing, half {} of 2: ", half + 1);
            let seen = |class: usize| class % 2 == half;
            let known: Vec<usize> = all.iter().copied().filter(|at| seen(part.targets()[*at])).collect();
            let adapted = self.train(part.part(&known), &of)?;
            let features = part.features(&adapted, &all, |_| {})?;
            rehearsal.add(dataset.dim, [&frozen, &features], part.targets(), |class| !seen(class));
        }
        let choice = rehearsal.choose();
        self.tell(&choice.words())?;
        Ok(choice)
    }

    fn tell(&mut self, words: &str) -> Result<(), Error> {
        if (self.say)(words).is_break() { Err(Error::Interrupted) } else { Ok(()) }
    }

    fn train(&mut self, samples: Samples, of: &str) -> Result<Transformer, Error> {
        train(&self.open.transformer, samples, self.settings.clone(), self.folder, of, self.say)
    }
}

impl Open {
    fn new(place: &RawPlace, dataset: &Dataset) -> Result<Open, Error> {
        let transformer = open_transformer(&place.encoder, place.preprocess.as_deref())?;
        let read = |split: Split| -> Result<Samples, Error> {
            let options = InputOptions { split: Some(split), ..place.options.clone() };
            let skip = SampleOptions { classes: None, skip_bad: options.skip_bad, limits: Limits::default() };
            Ok(Samples::read(Inputs::open(&place.inputs, &options)?, &transformer, skip)?)
        };
        let (train, test) = (read(Split::Train)?, read(Split::Test)?);
        for (part, samples) in [(&dataset.train, &train), (&dataset.test, &test)] {
            let same =
                |(at, class): (usize, &usize)| samples.label(at).to_string() == dataset.classes[*class].to_string();
            if samples.len() != part.len() || !part.y.iter().enumerate().all(same) {
                let message =
                    "the images or texts are not those that the features were computed from; run the command again";
                return Err(Error::Experiment(message.to_owned()));
            }
        }
        Ok(Open { transformer, train, test })
    }

    /// Features of some training samples and of all test samples.
    fn features(
        &self,
        adapted: &Transformer,
        rows: &[usize],
        words: &str,
        say: Say<'_>,
    ) -> Result<(Vec<f32>, Vec<f32>), Error> {
        if say(words).is_break() {
            return Err(Error::Interrupted);
        }
        let all: Vec<usize> = (0..self.test.len()).collect();
        Ok((self.train.features(adapted, rows, |_| {})?, self.test.features(adapted, &all, |_| {})?))
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

/// Trains modules, or reads those that were trained before. An interrupted training resumes after its last epoch.
fn train(
    transformer: &Transformer,
    samples: Samples,
    settings: Settings,
    folder: Option<&Path>,
    of: &str,
    say: Say<'_>,
) -> Result<Transformer, Error> {
    let room = system::room();
    let epochs = settings.epochs;
    let memory = room.available.map_or(1 << 30, |bytes| bytes / 2);
    let mut trainer = Trainer::new(transformer.clone(), samples, settings, memory).map_err(named)?;
    let file = folder.map(|folder| folder.join(format!("{}.safetensors", &trainer.task()[..16])));
    if let Some(file) = &file {
        if let Ok(adapter) = Adapter::read(file, transformer) {
            return Ok(adapter.apply(transformer)?);
        }
        std::fs::create_dir_all(atomic::parent(file)).map_err(|source| Error::Write { path: file.clone(), source })?;
        trainer.resume(file);
    }
    room.ensure(trainer.step_bytes(), "adaptation", "a smaller `adapt-batch` needs less")?;
    let started = Instant::now();
    let first = trainer.epochs().len();
    while !trainer.is_done() {
        let epoch = trainer.epoch(|_| {}).map_err(named)?;
        if let Some(file) = &file {
            trainer.save(file)?;
        }
        let done = trainer.epochs().len();
        let left = started.elapsed().as_secs_f64() / (done - first) as f64 * (epochs - done) as f64;
        let words = format!("{of}adapting: epoch {done} of {epochs}, loss {:.4}, {left:.0} s left", epoch.loss);
        if say(&words).is_break() {
            return Err(Error::Interrupted);
        }
    }
    let adapter = trainer.finish();
    if let Some(file) = &file {
        adapter.write(file)?;
        Trainer::forget(file)?;
    }
    Ok(adapter.apply(transformer)?)
}

/// The error of training with the names that settings have in runs.
fn named(error: loranpac_encode::Error) -> Error {
    match error {
        loranpac_encode::Error::Adapt { name, reason } => Error::Experiment(format!("`adapt-{name}`: {reason}")),
        loranpac_encode::Error::Diverged { epoch, rate } => Error::Experiment(format!(
            "the loss of epoch {epoch} is not finite, even at a rate of {rate:e}; lower `adapt-rate`"
        )),
        loranpac_encode::Error::TooFewClasses { classes, .. } => Error::Experiment(format!(
            "adaptation needs a first task of two classes or more, not {classes}; a larger `base` or `inc` has more"
        )),
        other => other.into(),
    }
}

/// The data set with other features: blocks of equal size, side by side.
fn stacked(dataset: &Dataset, blocks: Vec<(Vec<f32>, Vec<f32>)>, settings: &Settings, wanted: Wanted) -> Dataset {
    let (size, width) = (dataset.dim, blocks.len());
    let (train, test): (Vec<_>, Vec<_>) = blocks.into_iter().unzip();
    let part = |part: &Part, blocks: Vec<Vec<f32>>| {
        let mut x = Vec::with_capacity(part.len() * size * width);
        (0..part.len()).for_each(|row| {
            blocks.iter().for_each(|block| x.extend_from_slice(&block[row * size..][..size]));
        });
        Part { x, y: part.y.clone(), domain: part.domain.clone(), layers: Default::default() }
    };
    let adapted = |name: &str| match wanted {
        Wanted::Both => format!("{name} before and after adaptation to 1 task with {}", settings.module),
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
