//! Runs of prompt methods: they learn from images or texts, with the features of the data set as queries.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Instant;

use loranpac::{Label, Summary};
use loranpac_data::{Dataset, system};
use loranpac_encode::prompt::{PromptKind, PromptLearner, PromptSettings, Queried};
use serde::{Deserialize, Serialize};

use crate::adapters::Adapters;
use crate::error::Error;
use crate::raw::RawSamples;
use crate::run::{PartialRun, Subject};
use crate::say::{Say, progress, warn};
use crate::spec::Spec;
use crate::stream::Task;

/// The settings of a run of a prompt method: those of the literature, unless others were given.
///
/// # Errors
/// If the method is none, or a setting cannot be read.
pub fn settings(spec: &Spec) -> Result<PromptSettings, Error> {
    let kind = match spec.method.as_str() {
        "l2p" => PromptKind::L2p,
        "dualprompt" => PromptKind::DualPrompt,
        "codaprompt" => PromptKind::CodaPrompt,
        name => {
            let reason = "it learns from images or texts, and is no prompt method";
            return Err(loranpac::Error::setting("method", name, reason).into());
        }
    };
    let usual = PromptSettings::new(kind);
    Ok(PromptSettings {
        kind,
        rate: number(spec, "rate", usual.rate)?,
        epochs: whole(spec, "epochs", usual.epochs)?,
        batch: whole(spec, "batch", usual.batch)?,
        pool: whole(spec, "pool", usual.pool)?,
        length: whole(spec, "length", usual.length)?,
        top: whole(spec, "top", usual.top)?,
        pull: number(spec, "pull", usual.pull)?,
        batchwise: switch(spec, "batchwise", usual.batchwise)?,
        augment: switch(spec, "augment", usual.augment)?,
        seed: spec.seed.into(),
    })
}

fn whole(spec: &Spec, name: &'static str, usual: usize) -> Result<usize, Error> {
    get(spec, name, usual, "a whole number is expected")
}

fn number(spec: &Spec, name: &'static str, usual: f64) -> Result<f64, Error> {
    get(spec, name, usual, "a number is expected")
}

fn switch(spec: &Spec, name: &'static str, usual: bool) -> Result<bool, Error> {
    get(spec, name, usual, "true or false is expected")
}

fn get<T: FromStr>(spec: &Spec, name: &'static str, usual: T, expected: &str) -> Result<T, Error> {
    match spec.settings.get(name) {
        None => Ok(usual),
        Some(text) => text.parse().map_err(|_| loranpac::Error::setting(name, text, expected).into()),
    }
}

/// A prompt learner on the images or texts of a data set.
pub(crate) struct Prompted<'a> {
    learner: PromptLearner,
    dataset: &'a Dataset,
    /// Where the training samples of the data set are among all of them.
    rows: &'a [usize],
    samples: &'a RawSamples,
    adapters: &'a mut Adapters,
    tasks: usize,
    /// What identifies the run, and the file of its checkpoint.
    identity: String,
    file: Option<PathBuf>,
    note: Note,
    say: Say<'a>,
}

/// What a checkpoint has besides the learner.
#[derive(Default, Serialize, Deserialize)]
struct Note {
    /// What was measured after the tasks that are learned.
    measured: Option<PartialRun>,
    /// Seconds of the epochs of the task that is being learned.
    seconds: f64,
}

impl<'a> Prompted<'a> {
    /// A learner for the tasks of a run. `rows` are the places of the data set's training samples among all.
    pub fn new(
        spec: &Spec,
        (dataset, rows): (&'a Dataset, &'a [usize]),
        tasks: &[Task],
        (samples, adapters): (&'a RawSamples, &'a mut Adapters),
        say: Say<'a>,
    ) -> Result<Prompted<'a>, Error> {
        let room = system::room();
        let memory = room.available.map_or(1 << 30, |bytes| bytes / 2);
        let learner = PromptLearner::new(samples.transformer.clone(), settings(spec)?, tasks.len(), memory)?;
        room.ensure(
            learner.bytes(&samples.train),
            "training of prompts",
            "a smaller batch (`--set batch=N`) needs less",
        )?;
        let places: Vec<_> = tasks.iter().map(|task| (&task.train, &task.test)).collect();
        // Measurements depend on everything else in the spec, and rounding may depend on the version.
        let decided = serde_json::json!([spec, rows, places, dataset.digest(), env!("CARGO_PKG_VERSION")]);
        let identity = learner.identity(&[&samples.train, &samples.test], &decided.to_string());
        let file = adapters.place(&format!("prompts-{}.safetensors", &identity[..16]), say)?;
        let (tasks, note) = (tasks.len(), Note::default());
        Ok(Prompted { learner, dataset, rows, samples, adapters, tasks, identity, file, note, say })
    }
}

/// Writes a checkpoint. If that is impossible, there is a warning, and no further one is written.
fn save(
    learner: &PromptLearner,
    (file, identity): (&mut Option<PathBuf>, &str),
    note: &Note,
    adapters: &mut Adapters,
    say: Say<'_>,
) -> Result<(), Error> {
    let Some(path) = &*file else { return Ok(()) };
    let failed = |source: serde_json::Error| Error::Write { path: path.clone(), source: source.into() };
    let written = serde_json::to_string(note).map_err(failed).and_then(|note| Ok(learner.save(path, identity, &note)?));
    written.or_else(|error| {
        *file = None;
        adapters.give_up(error, say)
    })
}

impl Subject for Prompted<'_> {
    fn resume(&mut self) -> Result<Option<PartialRun>, Error> {
        let Some(file) = self.file.as_deref().filter(|file| file.exists()) else { return Ok(None) };
        let tasks = self.tasks;
        let read = |note: &str, learned: usize| {
            let note: Note = serde_json::from_str(note).ok()?;
            let so_far = note.measured.as_ref().map(|so_far| (so_far.records.len(), so_far.matrix.tasks()));
            (so_far.unwrap_or((0, tasks)) == (learned, tasks)).then_some(note)
        };
        let Some(note) = self.learner.resume(file, &self.identity, read) else {
            let file = file.display();
            warn(self.say, &format!("{file}: this checkpoint is damaged or another's; the run begins anew"))?;
            return Ok(None);
        };
        progress(self.say, &format!("resuming after {} of {} tasks", self.learner.learned(), self.tasks))?;
        self.note = note;
        Ok(self.note.measured.clone())
    }

    fn keep(&mut self, measured: &PartialRun) -> Result<(), Error> {
        self.note = Note { measured: Some(measured.clone()), seconds: 0.0 };
        save(&self.learner, (&mut self.file, &self.identity), &self.note, self.adapters, self.say)
    }

    fn learn(&mut self, task: &Task) -> Result<f64, Error> {
        let Prompted { learner, dataset, rows, samples, adapters, tasks, identity, file, note, say } = self;
        let places: Vec<usize> = task.train.iter().map(|row| rows[*row]).collect();
        let (queries, _) = dataset.train.gather(&task.train, dataset.dim);
        let queried = Queried { samples: &samples.train, places: &places, queries: &queries };
        let (started, epochs, earlier) = (Instant::now(), learner.settings().epochs, note.seconds);
        let (mut first, mut told) = (None, Ok(()));
        let outcome = learner.learn(queried, &mut |learner, trained| {
            let seconds = started.elapsed().as_secs_f64();
            note.seconds = earlier + seconds;
            let done = trained.epoch + 1 - *first.get_or_insert(trained.epoch);
            let left = seconds / done as f64 * (epochs - trained.epoch) as f64;
            let words = format!(
                "task {} of {tasks}: epoch {} of {epochs}, loss {:.4}, {left:.0} s left in this task",
                learner.learned() + 1,
                trained.epoch,
                trained.loss,
            );
            told = save(learner, (&mut *file, &**identity), note, adapters, say).and_then(|()| progress(say, &words));
            if told.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        told?;
        match outcome {
            ControlFlow::Continue(()) => Ok(earlier + started.elapsed().as_secs_f64()),
            ControlFlow::Break(()) => Err(Error::Interrupted),
        }
    }

    fn form(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn predict(&mut self, rows: &[usize]) -> Result<Vec<Label>, Error> {
        let (queries, _) = self.dataset.test.gather(rows, self.dataset.dim);
        let logits = self.learner.logits(Queried { samples: &self.samples.test, places: rows, queries: &queries })?;
        let labels = self.learner.labels();
        let winner = |row: &[f32]| {
            let better = |best: usize, class: usize| if row[class] > row[best] { class } else { best };
            labels[(0..row.len()).reduce(better).unwrap_or(0)].clone()
        };
        Ok(logits.chunks(labels.len()).map(winner).collect())
    }

    fn train_loss(&mut self, _: &[Task]) -> Result<Option<f64>, Error> {
        Ok(None)
    }

    fn spectrum(&mut self) -> Result<Option<Vec<f64>>, Error> {
        Ok(None)
    }

    fn summary(&self) -> Summary {
        let (samples, classes) = (self.learner.seen(), self.learner.labels().len());
        Summary { samples, classes, ..Summary::default() }
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::to_value(self.learner.settings()).unwrap_or_default()
    }

    fn state_bytes(&self) -> usize {
        self.learner.parameters() * size_of::<f32>()
    }
}
