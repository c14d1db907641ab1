//! Training from the first step to the file of the adapter, with checkpoints beside it.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use loranpac::internals::count;
use loranpac_data::atomic::AtomicFile;
use loranpac_data::system;
use serde_json::{Value, json};

use super::adapter::Adapter;
use super::checkpoint::Epoch;
use super::samples::Samples;
use super::settings::Settings;
use super::trainer::{Progress, Trainer};
use crate::error::Error;
use crate::transformer::Transformer;

/// A file that is going to be an adapter. Only one process trains for a file at a time.
pub struct Job {
    out: PathBuf,
    /// Held from the beginning: whether the file can be written is known before anything is trained.
    file: AtomicFile,
}

/// What happens while a [`Job`] runs. As text, lines for a user.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The encoder was measured; training begins, or continues.
    Start {
        /// Samples to train on, held out, and classes.
        sizes: [usize; 3],
        /// Numbers to train.
        parameters: usize,
        /// Epochs of the checkpoint.
        resumed: usize,
        /// Whether there was a checkpoint that cannot be continued.
        unusable: bool,
        /// Most epochs that are left, and the steps of each.
        left: [usize; 2],
        /// Seconds of a step.
        step: f64,
        /// Bytes of memory besides the encoder's weights.
        bytes: usize,
    },
    /// A step was made.
    Step(Progress),
    /// An epoch has ended, and its checkpoint is written.
    Epoch {
        /// The epoch, counted from 1, and the most epochs.
        number: [usize; 2],
        /// What it came to.
        epoch: Epoch,
        /// How often the rate was halved in this epoch, and before.
        halved: [u32; 2],
        /// Seconds that are left at most.
        left: f64,
    },
}

/// What a [`Job`] came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// The adapter of the best epoch.
    pub adapter: Adapter,
    /// All epochs.
    pub epochs: Vec<Epoch>,
    /// How often the rate was halved because the loss was not finite.
    pub halved: u32,
    /// Whether the file was written.
    pub written: bool,
}

impl Job {
    /// Reserves the file.
    ///
    /// # Errors
    /// If it cannot be written, or another process trains for it.
    pub fn new(out: &Path) -> Result<Job, Error> {
        let file = AtomicFile::create(out).map_err(|source| Error::Write { path: out.to_owned(), source })?;
        Ok(Job { out: out.to_owned(), file })
    }

    /// Trains to the end, from the checkpoint beside the file if it is one of the same encoder, samples and settings, and writes the file; with
    /// `only_if_better`, unless adaptation does not help. `measure` measures the time of a step before the first.
    ///
    /// # Errors
    /// If a setting cannot be used, there is too little memory, training diverges, a sample cannot be read, or a file cannot be written. The
    /// checkpoint then stays.
    pub fn run(
        self,
        transformer: Transformer,
        samples: Samples,
        settings: Settings,
        only_if_better: bool,
        measure: bool,
        mut each: impl FnMut(Event),
    ) -> Result<Trained, Error> {
        let Job { out, mut file } = self;
        let room = system::room();
        let most = settings.epochs;
        let memory = room.available.map_or(1 << 30, |bytes| bytes / 2);
        let mut trainer = Trainer::new(transformer, samples, settings, memory)?;
        room.ensure(trainer.step_bytes(), "training", "use a smaller `batch`, or fewer samples")?;
        let resumed = trainer.resume(&out);
        each(start(&mut trainer, &out, most - resumed.min(most), measure)?);
        let started = Instant::now();
        while !trainer.is_done() {
            let halved = trainer.halved();
            let epoch = trainer.epoch(|step| each(Event::Step(step)))?;
            trainer.save(&out)?;
            let done = trainer.epochs().len();
            let seconds = started.elapsed().as_secs_f64() / (done - resumed) as f64;
            let (number, left) = ([done, most], seconds * (most - done) as f64);
            each(Event::Epoch { number, epoch, halved: [trainer.halved() - halved, halved], left });
        }
        let (epochs, halved) = (trainer.epochs().to_vec(), trainer.halved());
        let adapter = trainer.finish();
        let written = !only_if_better || adapter.outcome.helps() == Some(true);
        if written {
            let done = file.write_all(&adapter.bytes()).and_then(|()| file.replace());
            done.map_err(|source| Error::Write { path: out.clone(), source })?;
        }
        Trainer::forget(&out)?;
        Ok(Trained { adapter, epochs, halved, written })
    }
}

fn start(trainer: &mut Trainer, out: &Path, epochs: usize, measure: bool) -> Result<Event, Error> {
    let resumed = trainer.epochs().len();
    let epochs = if trainer.is_done() { 0 } else { epochs };
    let mut step = 0.0;
    if measure && epochs > 0 {
        // The first step allocates memory.
        trainer.rehearse()?;
        let started = Instant::now();
        trainer.rehearse()?;
        step = started.elapsed().as_secs_f64();
    }
    let (trained, held_out) = trainer.sizes();
    Ok(Event::Start {
        sizes: [trained, held_out, trainer.samples().labels().len()],
        parameters: trainer.parameters(),
        resumed,
        unusable: resumed == 0 && Trainer::has_checkpoint(out),
        left: [epochs, trainer.steps()],
        step,
        bytes: trainer.bytes(),
    })
}

impl Trained {
    /// Everything as JSON.
    pub fn json(&self) -> Value {
        let Trained { adapter, epochs, halved, written } = self;
        json!({
            "encoder": adapter.encoder, "digest": adapter.digest, "settings": adapter.settings, "parameters": adapter.parameters(),
            "outcome": adapter.outcome, "helps": adapter.outcome.helps(), "epochs": epochs, "halved": halved, "written": written,
        })
    }
}

/// In words: what became of held-out samples.
impl fmt::Display for Trained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = &self.adapter.outcome;
        let (Some(frozen), Some(adapted)) = (outcome.frozen, outcome.adapted) else {
            return f.write_str("no samples were held out, so it is not known whether adaptation helps");
        };
        let epochs = count(outcome.best, "epoch");
        write!(f, "held-out accuracy by class means {frozen:.2}% before, {adapted:.2}% after {epochs}")?;
        f.write_str(match outcome.helps() {
            Some(true) => "",
            _ if frozen == 100.0 => ": all were right before, so that this cannot tell whether adaptation helps",
            _ => ": adaptation does not help these classes",
        })
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Start { sizes: [trained, held_out, classes], parameters, resumed, unusable, left, step, bytes } => {
                let (samples, classes) = (count(*trained, "sample"), count(*classes, "class"));
                let numbers = count(*parameters, "number");
                write!(f, "{samples} of {classes} to train on, {held_out} held out; {numbers} to train")?;
                if *unusable {
                    f.write_str(
                        "\nthe checkpoint beside the output belongs to another training, or is damaged: it is not used",
                    )?;
                }
                if *resumed > 0 {
                    write!(f, "\nresuming after epoch {resumed}")?;
                }
                let [epochs, steps] = *left;
                if epochs > 0 && *step > 0.0 {
                    let all = time(step * (steps * epochs) as f64);
                    let (epochs, steps) = (count(epochs, "epoch"), count(steps, "step"));
                    let mib = bytes >> 20;
                    write!(f, "\nabout {all} for at most {epochs} of {steps} at {step:.2} s, and {mib} MiB of memory")?;
                }
                Ok(())
            }
            Event::Step(Progress { epoch, step, steps, loss }) => {
                write!(f, "epoch {epoch}, step {step}/{steps}  loss {loss:.4}")
            }
            Event::Epoch { number: [number, most], epoch, halved: [halved, before], left } => {
                let accuracy = epoch.accuracy.map_or(String::new(), |accuracy| format!("  held out {accuracy:.2}%"));
                let left = time(*left);
                write!(f, "epoch {number}/{most}  loss {:.4}{accuracy}  at most {left} left", epoch.loss)?;
                if *halved > 0 {
                    let times = 1u64 << (halved + before);
                    write!(f, "\nthe loss was not finite: the rate is now {times} times smaller")?;
                }
                Ok(())
            }
        }
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{seconds:.0} s"),
        ..5400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
