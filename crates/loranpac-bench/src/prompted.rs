//! Runs of prompt methods: they learn from images or texts, with the features of the data set as queries.

use std::ops::ControlFlow;
use std::str::FromStr;
use std::time::Instant;

use loranpac::{Label, Summary};
use loranpac_data::{Dataset, system};
use loranpac_encode::Transformer;
use loranpac_encode::adapt::Samples;
use loranpac_encode::prompt::{Part, PromptKind, PromptLearner, PromptSettings};

use crate::adapted::Say;
use crate::error::Error;
use crate::run::Subject;
use crate::spec::Spec;
use crate::stream::Task;

/// The settings of a run: those of the literature, unless others were given.
pub(crate) fn settings(spec: &Spec) -> Result<PromptSettings, Error> {
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
    train: &'a Samples,
    test: &'a Samples,
    tasks: usize,
    done: usize,
    say: Say<'a>,
}

impl<'a> Prompted<'a> {
    /// A learner for the tasks of a run. `rows` are the places of the data set's training samples among all.
    pub fn new(
        spec: &Spec,
        (dataset, rows): (&'a Dataset, &'a [usize]),
        tasks: usize,
        (transformer, train, test): (&Transformer, &'a Samples, &'a Samples),
        say: Say<'a>,
    ) -> Result<Prompted<'a>, Error> {
        let room = system::room();
        let memory = room.available.map_or(1 << 30, |bytes| bytes / 2);
        let learner = PromptLearner::new(transformer.clone(), settings(spec)?, tasks, memory)?;
        room.ensure(learner.bytes(train), "training of prompts", "a smaller batch (`--set batch=N`) needs less")?;
        Ok(Prompted { learner, dataset, rows, train, test, tasks, done: 0, say })
    }
}

impl Subject for Prompted<'_> {
    fn learn(&mut self, task: &Task) -> Result<f64, Error> {
        let Prompted { learner, dataset, rows, tasks, done, say, .. } = self;
        let places: Vec<usize> = task.train.iter().map(|row| rows[*row]).collect();
        let (queries, _) = dataset.train.gather(&task.train, dataset.dim);
        let part = Part { samples: self.train, places: &places, queries: &queries };
        let (started, epochs) = (Instant::now(), learner.settings().epochs);
        let outcome = learner.learn(part, &mut |trained| {
            let left = started.elapsed().as_secs_f64() / trained.epoch as f64 * (epochs - trained.epoch) as f64;
            say(&format!(
                "task {} of {tasks}: epoch {} of {epochs}, loss {:.4}, {left:.0} s left in this task",
                *done + 1,
                trained.epoch,
                trained.loss,
            ))
        })?;
        self.done += 1;
        match outcome {
            ControlFlow::Continue(()) => Ok(started.elapsed().as_secs_f64()),
            ControlFlow::Break(()) => Err(Error::Interrupted),
        }
    }

    fn form(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn predict(&mut self, rows: &[usize]) -> Result<Vec<Label>, Error> {
        let (queries, _) = self.dataset.test.gather(rows, self.dataset.dim);
        let logits = self.learner.logits(Part { samples: self.test, places: rows, queries: &queries })?;
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
