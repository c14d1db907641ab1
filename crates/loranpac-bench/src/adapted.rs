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
use loranpac_encode::adapt::{Adapter, SampleOptions, Samples, Settings, Trainer};
use loranpac_encode::{Encoder, InputOptions, Inputs, Limits, ModuleKind, Transformer, open_transformer};

use crate::error::Error;
use crate::spec::Spec;
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
    /// The last adapted data set: runs of several methods share it.
    last: Option<(Key, Arc<Dataset>, f64)>,
}

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
    /// Those after adaptation to each task, side by side.
    Subspaces,
    /// Those of the encoder as it is, as queries beside the images or texts themselves.
    Raw,
}

impl Wanted {
    /// The features of a run.
    pub fn of(spec: &Spec) -> Result<Wanted, Error> {
        Ok(match (spec.method()?.input, spec.adapt.is_some(), spec.adapt_both) {
            (Input::Adapted, ..) => Wanted::Both,
            (Input::Subspaces, ..) => Wanted::Subspaces,
            (Input::Raw, ..) => Wanted::Raw,
            (_, false, _) => Wanted::Frozen,
            (_, true, false) => Wanted::Adapted,
            (_, true, true) => Wanted::Both,
        })
    }

    /// Features per sample, given those of the encoder and the number of tasks.
    pub fn dim(self, dim: usize, tasks: usize) -> usize {
        match self {
            Wanted::Frozen | Wanted::Adapted | Wanted::Raw => dim,
            Wanted::Both => 2 * dim,
            Wanted::Subspaces => dim * tasks,
        }
    }
}

impl RawData {
    /// Raw data that are read when they are first needed.
    pub fn new(place: RawPlace) -> RawData {
        RawData { place, open: None, last: None }
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

    /// The data set with the features that a run works on, and the seconds that they took. `whole` has all training samples, of which
    /// `dataset` has those at `rows`; `tasks` divides the latter.
    pub fn adapted(
        &mut self,
        spec: &Spec,
        whole: &Dataset,
        (dataset, rows): (&Dataset, &[usize]),
        tasks: &[Task],
        say: Say<'_>,
    ) -> Result<(Arc<Dataset>, f64), Error> {
        let wanted = Wanted::of(spec)?;
        let trained = if wanted == Wanted::Subspaces { tasks } else { &tasks[..tasks.len().min(1)] };
        let places = |task: &Task| task.train.iter().map(|row| rows[*row]).collect::<Vec<usize>>();
        let key = Key {
            settings: settings(spec)?,
            wanted,
            tasks: trained.iter().map(places).collect(),
            train: rows.to_vec(),
        };
        if let Some((known, data, seconds)) = &self.last
            && *known == key
        {
            return Ok((data.clone(), *seconds));
        }
        self.last = None;
        let started = Instant::now();
        let folder = self.place.adapters.clone();
        self.open(whole)?;
        // Opened above.
        let Some(open) = &self.open else { return Err(Error::Interrupted) };
        let mut blocks = Vec::new();
        for (number, places) in key.tasks.iter().enumerate() {
            let of = if key.tasks.len() > 1 {
                format!("task {} of {}: ", number + 1, key.tasks.len())
            } else {
                String::new()
            };
            let part = open.train.part(places);
            // With one class there is nothing to tell apart: the encoder stays as it is.
            let adapted = match part.labels().len() {
                0 | 1 if wanted == Wanted::Subspaces => open.transformer.clone(),
                _ => train(&open.transformer, part, key.settings.clone(), folder.as_deref(), &of, say)?,
            };
            blocks.push(open.features(&adapted, rows, &format!("{of}encoding with the adapted encoder"), say)?);
        }
        if wanted == Wanted::Both {
            blocks.insert(0, (dataset.train.x.clone(), dataset.test.x.clone()));
        }
        let data = Arc::new(stacked(dataset, blocks, &key.settings));
        let seconds = started.elapsed().as_secs_f64();
        self.last = Some((key, data.clone(), seconds));
        Ok((data, seconds))
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

/// The settings of training for a run: those of the paper's tables, in which no samples are held out.
fn settings(spec: &Spec) -> Result<Settings, Error> {
    let name = spec.adapt.as_deref().unwrap_or("adapter");
    let unknown = || Error::from(loranpac::Error::setting("adapt", name, "it is no module"));
    let module = ModuleKind::from_name(name).ok_or_else(unknown)?;
    let (rate, epochs, batch) = (spec.adapt_rate, spec.adapt_epochs, spec.adapt_batch);
    Ok(Settings {
        module,
        rate,
        epochs,
        batch,
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
    let mut trainer = Trainer::new(transformer.clone(), samples, settings, memory)?;
    room.ensure(trainer.bytes(), "adaptation", "a smaller `adapt-batch` needs less")?;
    let file = folder.map(|folder| folder.join(format!("{}.safetensors", &trainer.task()[..16])));
    if let Some(file) = &file {
        if let Ok(adapter) = Adapter::read(file, transformer) {
            return Ok(adapter.apply(transformer)?);
        }
        std::fs::create_dir_all(atomic::parent(file)).map_err(|source| Error::Write { path: file.clone(), source })?;
        trainer.resume(file);
    }
    let started = Instant::now();
    let first = trainer.epochs().len();
    while !trainer.is_done() {
        let epoch = trainer.epoch(|_| {})?;
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
    let adapter = trainer.finish()?;
    if let Some(file) = &file {
        adapter.write(file)?;
        Trainer::forget(file)?;
    }
    Ok(adapter.apply(transformer)?)
}

/// The data set with other features: blocks of equal size, side by side.
fn stacked(dataset: &Dataset, blocks: Vec<(Vec<f32>, Vec<f32>)>, settings: &Settings) -> Dataset {
    let (size, width) = (dataset.dim, blocks.len());
    let (train, test): (Vec<_>, Vec<_>) = blocks.into_iter().unzip();
    let part = |part: &Part, blocks: Vec<Vec<f32>>| {
        let mut x = Vec::with_capacity(part.len() * size * width);
        (0..part.len()).for_each(|row| {
            blocks.iter().for_each(|block| x.extend_from_slice(&block[row * size..][..size]));
        });
        Part { x, y: part.y.clone(), domain: part.domain.clone(), layers: Default::default() }
    };
    let by = |by: &EncodedBy| EncodedBy {
        name: format!("{} with {}, adapted to {}", by.name, settings.module, count(width, "task")),
        digest: by.digest.clone(),
    };
    Dataset {
        name: dataset.name.clone(),
        dim: size * width,
        classes: dataset.classes.clone(),
        train: part(&dataset.train, train),
        test: part(&dataset.test, test),
        encoder: dataset.encoder.as_ref().map(by),
    }
}
