//! Training of adapters for runs. Each is trained once: further runs take it from memory, further commands from a folder.

use std::path::{Path, PathBuf};
use std::time::Instant;

use loranpac_data::system;
use loranpac_encode::Transformer;
use loranpac_encode::adapt::{Adapter, Samples, Settings, Trainer};

use crate::error::Error;
use crate::kept::Kept;
use crate::say::{Say, progress, warn};

/// Bytes of adapters that are kept in memory.
const MOST: usize = 256 << 20;

/// Adapters that were trained.
pub(crate) struct Adapters {
    /// Where they are kept, if anywhere.
    folder: Option<PathBuf>,
    /// Adapters with the seconds of their training.
    kept: Kept<String, (Adapter, f64)>,
}

impl Adapters {
    /// Adapters that are kept in a folder, or in memory only.
    pub fn new(folder: Option<PathBuf>) -> Adapters {
        Adapters { folder, kept: Kept::new(MOST) }
    }

    /// The place of a file in the folder, which is created. If that is impossible, there is a warning, and nothing is kept.
    pub fn place(&mut self, name: &str, say: Say<'_>) -> Result<Option<PathBuf>, Error> {
        let Some(folder) = self.folder.clone() else { return Ok(None) };
        match std::fs::create_dir_all(&folder) {
            Ok(()) => Ok(Some(folder.join(name))),
            Err(source) => {
                self.give_up(Error::Write { path: folder, source }, say)?;
                Ok(None)
            }
        }
    }

    /// Goes on without a folder, because of an error.
    pub fn give_up(&mut self, error: impl Into<Error>, say: Say<'_>) -> Result<(), Error> {
        self.folder = None;
        warn(say, &format!("{}; what is trained is not kept, so that an interruption loses it", error.into()))
    }

    /// The encoder with modules that are trained, or were before, and the seconds of their training in this process. An interrupted training
    /// resumes after its last epoch. `of` begins what is said.
    pub fn train(
        &mut self,
        transformer: &Transformer,
        mut trainer: Trainer,
        of: &str,
        say: Say<'_>,
    ) -> Result<(Transformer, f64), Error> {
        let task = trainer.task();
        if let Some((adapter, seconds)) = self.kept.get(&task) {
            return Ok((adapter.apply(transformer)?, seconds));
        }
        let started = Instant::now();
        let file = self.place(&format!("{}.safetensors", &task[..16]), say)?;
        let found = match &file {
            Some(file) if file.exists() => match Adapter::read(file, transformer) {
                Ok(adapter) => Some(adapter),
                Err(error) => {
                    warn(say, &format!("{error}; it is trained again"))?;
                    None
                }
            },
            _ => None,
        };
        let adapter = match found {
            Some(adapter) => adapter,
            None => {
                self.run(&mut trainer, file.as_deref(), of, say)?;
                let adapter = trainer.finish();
                if let (Some(file), Some(_)) = (&file, &self.folder) {
                    let written = adapter.write(file).and_then(|()| Trainer::forget(file));
                    written.or_else(|error| self.give_up(error, say))?;
                }
                adapter
            }
        };
        let (adapted, seconds) = (adapter.apply(transformer)?, started.elapsed().as_secs_f64());
        let bytes = size_of::<f32>() * adapter.parameters();
        self.kept.put(task, (adapter, seconds), bytes);
        Ok((adapted, seconds))
    }

    /// Trains to the end, with a checkpoint beside a file after each epoch.
    fn run(&mut self, trainer: &mut Trainer, file: Option<&Path>, of: &str, say: Say<'_>) -> Result<(), Error> {
        let first = file.map_or(0, |file| trainer.resume(file));
        if let Some(file) = file.filter(|file| first == 0 && Trainer::has_checkpoint(file)) {
            let file = file.display();
            warn(say, &format!("{file}: its checkpoint is damaged or another's; training begins anew"))?;
        }
        system::room().ensure(trainer.step_bytes(), "adaptation", "a smaller `adapt-batch` needs less")?;
        let (started, epochs) = (Instant::now(), trainer.most_epochs());
        while !trainer.is_done() {
            let epoch = trainer.epoch(|_| {}).map_err(named)?;
            if let (Some(file), Some(_)) = (file, &self.folder) {
                trainer.save(file).or_else(|error| self.give_up(error, say))?;
            }
            let done = trainer.epochs().len();
            let left = started.elapsed().as_secs_f64() / (done - first) as f64 * (epochs - done) as f64;
            let words = format!("{of}adapting: epoch {done} of {epochs}, loss {:.4}, {left:.0} s left", epoch.loss);
            progress(say, &words)?;
        }
        Ok(())
    }
}

/// A trainer for the samples of a run.
pub(crate) fn trainer(transformer: &Transformer, samples: Samples, settings: &Settings) -> Result<Trainer, Error> {
    let memory = system::room().available.map_or(1 << 30, |bytes| bytes / 2);
    Trainer::new(transformer.clone(), samples, settings.clone(), memory).map_err(named)
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
