//! Changes of a model besides learning. Each is recorded with a digest of what it was given, in the commit that makes it last:
//! doing it again changes nothing, so that a command that was killed can simply be repeated.

use loranpac::{Editable, Features, Label};

use crate::digest::{Fingerprint, of_labels};
use crate::error::Error;
use crate::manifest::{Calibration, EditEntry, Manifest, TaskEntry};

/// The most samples that are taken back or relabelled at a time.
const AT_ONCE: usize = 2048;

/// What an edit has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Edited {
    /// The model has changed. Of so many samples it could not be checked that they had been learned under their labels.
    Done {
        /// Samples that could not be checked.
        unchecked: usize,
    },
    /// The same was done before; nothing has changed.
    Already {
        /// The version that it made.
        version: u64,
    },
}

impl Edited {
    const DONE: Edited = Edited::Done { unchecked: 0 };
}

/// A model in memory, with what is recorded about it.
pub struct Edit<'a> {
    /// The model.
    pub learner: &'a mut dyn Editable,
    /// What is recorded.
    pub manifest: &'a mut Manifest,
}

impl Edit<'_> {
    /// Removes a class from prediction.
    pub fn forget(&mut self, label: &Label) -> Result<Edited, Error> {
        let subject = format!("class {}", of_labels(&[label]));
        let is_known = self.learner.classes().get(label).is_some();
        if let Some(version) = self.manifest.edited("forget", &subject, &subject).filter(|_| !is_known) {
            return Ok(Edited::Already { version });
        }
        self.learner.forget(label)?;
        self.record("forget", subject.clone(), subject, false);
        Ok(Edited::DONE)
    }

    /// Gives a class another label.
    pub fn rename(&mut self, from: &Label, to: &Label) -> Result<Edited, Error> {
        let subject = format!("class {}", of_labels(&[from]));
        let digest = of_labels(&[from, to]);
        let table = self.learner.classes();
        let is_renamed = table.get(from).is_none() && table.get(to).is_some();
        if let Some(version) = self.manifest.edited("rename", &subject, &digest).filter(|_| is_renamed) {
            return Ok(Edited::Already { version });
        }
        self.learner.rename(from, to.clone())?;
        self.record("rename", subject, digest, false);
        Ok(Edited::DONE)
    }

    /// Moves samples that were learned under `from` to other labels. `again` does it though it was done before: for samples
    /// that were learned several times.
    pub fn relabel(&mut self, x: Features<'_>, from: &[Label], to: &[Label], again: bool) -> Result<Edited, Error> {
        let (old, new) = (Fingerprint::of(x, from), Fingerprint::of(x, to));
        let digest = format!("{} {}", old.digest, new.digest);
        if let Some(version) = self.manifest.edited("relabel", &old.features, &digest).filter(|_| !again) {
            return Ok(Edited::Already { version });
        }
        let task = self.manifest.recorded_task(&old.digest);
        let parts = || x.chunks(AT_ONCE).zip(from.chunks(AT_ONCE)).zip(to.chunks(AT_ONCE));
        let mut unchecked = 0;
        for (done, ((x, from), to)) in parts().enumerate() {
            match self.learner.relabel(x, from, to) {
                Ok(count) => unchecked += count,
                Err(error) => {
                    for ((x, from), to) in parts().take(done) {
                        unchecked += self.learner.relabel(x, to, from)?;
                    }
                    self.learner.vouch(unchecked);
                    return Err(located(error, done).into());
                }
            }
        }
        if let Some(place) = task {
            self.learner.vouch(std::mem::take(&mut unchecked));
            // The task is what it would be had it been learned like that.
            let version = self.manifest.version + 1;
            let task = &mut self.manifest.tasks[place];
            *task = TaskEntry { digest: new.digest, version, ..task.clone() };
        }
        self.record("relabel", old.features, digest, task.is_some());
        Ok(Edited::Done { unchecked })
    }

    /// Takes samples back, as if they had never been learned. `again` does it though it was done before: for samples that
    /// were learned several times.
    pub fn unlearn(&mut self, x: Features<'_>, labels: &[Label], again: bool) -> Result<Edited, Error> {
        let Fingerprint { digest, features, .. } = Fingerprint::of(x, labels);
        if let Some(version) = self.manifest.edited("unlearn", &features, &digest).filter(|_| !again) {
            return Ok(Edited::Already { version });
        }
        let task = self.manifest.recorded_task(&digest);
        let parts = || x.chunks(AT_ONCE).zip(labels.chunks(AT_ONCE));
        let mut unchecked = 0;
        for (done, (part, part_labels)) in parts().enumerate() {
            match self.learner.unlearn(part, part_labels) {
                Ok(count) => unchecked += count,
                Err(error) => {
                    for (x, labels) in parts().take(done) {
                        self.learner.learn(x, labels)?;
                    }
                    self.learner.vouch(unchecked);
                    return Err(located(error, done).into());
                }
            }
        }
        self.manifest.encoder.remove(x);
        if let Some(place) = task {
            self.learner.vouch(std::mem::take(&mut unchecked));
            self.manifest.tasks.remove(place);
        } else if let Some(place) = self.manifest.tasks.iter().rposition(|task| task.digest == digest) {
            self.manifest.tasks.remove(place);
        }
        self.record("unlearn", features, digest, task.is_some());
        Ok(Edited::Done { unchecked })
    }

    /// Sets the temperature that was fitted on the samples with this fingerprint.
    pub fn calibrate(&mut self, temperature: f64, held_out: &Fingerprint) {
        self.manifest.calibrate(temperature, held_out, self.learner.classes().len());
    }

    fn record(&mut self, command: &str, subject: String, digest: String, recorded: bool) {
        self.manifest.record(command, subject, digest, recorded);
    }
}

impl Manifest {
    /// The version at which the latest edit of this subject was exactly this one.
    pub(crate) fn edited(&self, command: &str, subject: &str, digest: &str) -> Option<u64> {
        let same = |edit: &&EditEntry| edit.command == command && edit.subject == subject && edit.digest == digest;
        self.edits.iter().find(same).map(|edit| edit.version)
    }

    /// Sets the temperature that was fitted on the samples with this fingerprint, for so many classes.
    pub(crate) fn calibrate(&mut self, temperature: f64, held_out: &Fingerprint, classes: usize) {
        let (samples, version) = (held_out.samples, self.version);
        self.calibration = Some(Calibration { temperature, samples, classes, version });
        self.record("calibrate", "temperature".to_owned(), held_out.digest.clone(), true);
    }

    /// The version that fitted the temperature on these very samples, if the model has not changed since.
    pub fn calibrated_on(&self, held_out: &Fingerprint) -> Option<u64> {
        self.edited("calibrate", "temperature", &held_out.digest).filter(|version| *version == self.version)
    }

    /// Lists an edit, in the place of an earlier one of the same subject.
    pub(crate) fn record(&mut self, command: &str, subject: String, digest: String, recorded: bool) {
        self.edits.retain(|edit| edit.subject != subject);
        let version = self.version + 1;
        self.edits.push(EditEntry { command: command.to_owned(), subject, digest, recorded, version });
    }

    /// Lists a task that was learned. Edits of the same samples are superseded.
    pub fn note(&mut self, name: &str, learned: &Fingerprint) {
        let (digest, samples, version) = (learned.digest.clone(), learned.samples, self.version + 1);
        self.edits.retain(|edit| edit.subject != learned.features);
        self.tasks.push(TaskEntry { name: name.to_owned(), digest, samples, version });
    }

    /// The place of a task with this digest whose samples are in the model as they were learned: no later edit may have
    /// changed some of them.
    fn recorded_task(&self, digest: &str) -> Option<usize> {
        let doubtful = self.edits.iter().filter(|edit| !edit.recorded).map(|edit| edit.version).max();
        self.tasks
            .iter()
            .rposition(|task| task.digest == digest && doubtful.is_none_or(|version| task.version > version))
    }
}

/// An error of the engine with the row in all samples instead of that in a part.
fn located(error: loranpac::Error, part: usize) -> loranpac::Error {
    match error {
        loranpac::Error::NeverLearned { row } => loranpac::Error::NeverLearned { row: part * AT_ONCE + row },
        other => other,
    }
}
