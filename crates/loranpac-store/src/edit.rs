//! Changes of a model besides learning. Each is recorded with a digest of what it was given, in the commit that makes it last:
//! doing it again changes nothing, so that a command that was killed can simply be repeated.

use std::collections::HashMap;

use loranpac::{Features, Label};

use crate::digest::{Fingerprint, of_labels};
use crate::error::Error;
use crate::manifest::{Calibration, EditEntry, Manifest, TaskEntry};
use crate::session::Session;

/// The most samples that are taken back or relabelled at a time.
pub const AT_ONCE: usize = 2048;

/// What an edit has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Edited {
    /// The model has changed. `unchecked` samples could not be compared with what was learned.
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

impl Session {
    /// Removes a class from prediction.
    pub fn forget(&mut self, label: &Label) -> Result<Edited, Error> {
        let subject = format!("class {}", of_labels(&[label]));
        let is_known = self.model()?.classes().get(label).is_some();
        if let Some(edit) = self.manifest.edited("forget", &subject, &subject).filter(|_| !is_known) {
            return Ok(Edited::Already { version: edit.version });
        }
        let change = self.model_mut()?.forget(label)?;
        self.delta.append(change);
        self.manifest.record("forget", subject.clone(), subject, None);
        Ok(Edited::DONE)
    }

    /// Gives a class another label.
    pub fn rename(&mut self, from: &Label, to: &Label) -> Result<Edited, Error> {
        let subject = format!("class {}", of_labels(&[from]));
        let digest = of_labels(&[from, to]);
        let table = self.model()?.classes();
        let is_renamed = table.get(from).is_none() && table.get(to).is_some();
        if let Some(edit) = self.manifest.edited("rename", &subject, &digest).filter(|_| is_renamed) {
            return Ok(Edited::Already { version: edit.version });
        }
        let change = self.model_mut()?.rename(from, to.clone())?;
        self.delta.append(change);
        self.manifest.record("rename", subject, digest, None);
        Ok(Edited::DONE)
    }

    /// Moves samples that were learned under `from` to other labels. `again` applies it even if it was applied before: for
    /// samples that were learned several times.
    pub fn relabel(&mut self, x: Features<'_>, from: &[Label], to: &[Label], again: bool) -> Result<Edited, Error> {
        let (old, new) = (Fingerprint::of(x, from), Fingerprint::of(x, to));
        let digest = format!("{} {}", old.digest, new.digest);
        if let Some(version) = self.earlier("relabel", &old.features, &digest, again)? {
            return Ok(Edited::Already { version });
        }
        self.check_counts(from)?;
        let task = self.manifest.recorded_task(&old.digest);
        let parts = || x.chunks(AT_ONCE).zip(from.chunks(AT_ONCE)).zip(to.chunks(AT_ONCE));
        let mut unchecked = 0;
        for (done, ((x, from), to)) in parts().enumerate() {
            match self.model_mut()?.relabel(x, from, to) {
                Ok(edited) => unchecked += self.applied(edited),
                Err(error) => {
                    for ((x, from), to) in parts().take(done) {
                        let edited = self.model_mut()?.relabel(x, to, from)?;
                        unchecked += self.applied(edited);
                    }
                    self.model_mut()?.vouch(unchecked);
                    return Err(located(error, done).into());
                }
            }
        }
        if let Some(place) = task {
            self.model_mut()?.vouch(std::mem::take(&mut unchecked));
            // The task is what it would be had it been learned like that.
            let version = self.manifest.version + 1;
            let task = &mut self.manifest.tasks[place];
            *task = TaskEntry { digest: new.digest, version, ..task.clone() };
        }
        self.manifest.record("relabel", old.features, digest, task);
        Ok(Edited::Done { unchecked })
    }

    /// Takes samples back, as if they had never been learned. `again` applies it even if it was applied before: for samples
    /// that were learned several times.
    pub fn unlearn(&mut self, x: Features<'_>, labels: &[Label], again: bool) -> Result<Edited, Error> {
        let Fingerprint { digest, features, .. } = Fingerprint::of(x, labels);
        if let Some(version) = self.earlier("unlearn", &features, &digest, again)? {
            return Ok(Edited::Already { version });
        }
        self.check_counts(labels)?;
        if labels.len() >= self.model()?.counts().iter().sum() {
            return Err(loranpac::Error::NothingLeft { samples: labels.len() }.into());
        }
        let task = self.manifest.recorded_task(&digest);
        let parts = || x.chunks(AT_ONCE).zip(labels.chunks(AT_ONCE));
        let mut unchecked = 0;
        for (done, (part, part_labels)) in parts().enumerate() {
            match self.model_mut()?.unlearn(part, part_labels) {
                Ok(edited) => unchecked += self.applied(edited),
                Err(error) => {
                    let encoder = self.manifest.encoder.clone();
                    for (x, labels) in parts().take(done) {
                        self.learn(x, labels)?;
                    }
                    self.manifest.encoder = encoder;
                    self.model_mut()?.vouch(unchecked);
                    return Err(located(error, done).into());
                }
            }
        }
        self.manifest.encoder.remove(x);
        if let Some(place) = task {
            self.model_mut()?.vouch(std::mem::take(&mut unchecked));
            self.manifest.tasks.remove(place);
        } else if let Some(place) = self.manifest.tasks.iter().rposition(|task| task.digest == digest) {
            self.manifest.tasks.remove(place);
        }
        self.manifest.record("unlearn", features, digest, task);
        Ok(Edited::Done { unchecked })
    }

    /// Sets the temperature that was fitted on the samples with this fingerprint. The model itself need not be read.
    pub fn calibrate(&mut self, temperature: f64, held_out: &Fingerprint) {
        let classes = self.model.as_ref().map_or(self.manifest.classes.len(), |model| model.classes().len());
        self.manifest.calibrate(temperature, held_out, classes);
    }

    /// Takes note of what an edit changed; returns the samples that could not be checked.
    fn applied(&mut self, edited: loranpac::Edited) -> usize {
        self.delta.append(edited.delta);
        edited.unchecked
    }

    /// The version at which the same was applied to the same samples. If something was learned since, they may be in the model
    /// again, and only the user can tell.
    fn earlier(&self, command: &str, features: &str, digest: &str, again: bool) -> Result<Option<u64>, Error> {
        match self.manifest.edited(command, features, digest).filter(|_| !again) {
            Some(edit) if !edit.current => Err(Error::Refused(format!(
                "the same {command} was applied before (version {}), and samples have been learned since. If these are among \
                 them, apply it once more with --again (in Python, again=True)",
                edit.version
            ))),
            found => Ok(found.map(|edit| edit.version)),
        }
    }

    /// Refuses more samples of a class than the model has, before any of them is touched.
    fn check_counts(&mut self, labels: &[Label]) -> Result<(), Error> {
        let mut left: HashMap<&Label, usize> = HashMap::new();
        let model = self.model()?;
        let table = model.classes();
        for (row, label) in labels.iter().enumerate() {
            let Some(class) = table.get(label) else {
                let (label, classes) = (label.to_string(), table.len());
                return Err(loranpac::Error::UnknownClass { label, classes }.into());
            };
            let left = left.entry(label).or_insert(model.counts()[class]);
            *left = left.checked_sub(1).ok_or(loranpac::Error::NeverLearned { row })?;
        }
        Ok(())
    }
}

impl Manifest {
    /// The latest edit of this subject, if it was exactly this one.
    pub(crate) fn edited(&self, command: &str, subject: &str, digest: &str) -> Option<&EditEntry> {
        let same = |edit: &&EditEntry| edit.command == command && edit.subject == subject && edit.digest == digest;
        self.edits.iter().find(same)
    }

    /// Sets the temperature that was fitted on the samples with this fingerprint, for so many classes.
    pub(crate) fn calibrate(&mut self, temperature: f64, held_out: &Fingerprint, classes: usize) {
        let (samples, version) = (held_out.samples, self.version);
        self.calibration = Some(Calibration { temperature, samples, classes, version });
        self.list(CALIBRATE, "temperature".to_owned(), held_out.digest.clone());
    }

    /// The version that fitted the temperature on these very samples, if the model has not changed since.
    pub fn calibrated_on(&self, held_out: &Fingerprint) -> Option<u64> {
        let edit = self.edited(CALIBRATE, "temperature", &held_out.digest)?;
        (edit.current && self.calibration.is_some()).then_some(edit.version)
    }

    /// Records a change of samples or classes. Unless it was the task at this place as a whole, any task may have been changed
    /// in part.
    pub(crate) fn record(&mut self, command: &str, subject: String, digest: String, task: Option<usize>) {
        if task.is_none() {
            self.tasks.iter_mut().for_each(|task| task.doubtful = true);
        }
        // The temperature was fitted for another model.
        self.edits.iter_mut().filter(|edit| edit.command == CALIBRATE).for_each(|edit| edit.current = false);
        self.list(command, subject, digest);
    }

    /// Lists an edit, in the place of an earlier one of the same subject.
    pub(crate) fn list(&mut self, command: &str, subject: String, digest: String) {
        self.edits.retain(|edit| edit.subject != subject);
        let version = self.version + 1;
        self.edits.push(EditEntry { command: command.to_owned(), subject, digest, current: true, version });
    }

    /// Lists a task that was learned. Edits of the same samples are superseded, and other edits may concern them.
    pub fn note(&mut self, name: &str, learned: &Fingerprint) {
        let (digest, samples, version) = (learned.digest.clone(), learned.samples, self.version + 1);
        self.edits.retain(|edit| edit.subject != learned.features);
        self.edits.iter_mut().for_each(|edit| edit.current = false);
        self.tasks.push(TaskEntry { name: name.to_owned(), digest, samples, version, doubtful: false });
    }

    /// The place of a task with this digest whose samples are in the model as they were learned.
    fn recorded_task(&self, digest: &str) -> Option<usize> {
        self.tasks.iter().rposition(|task| task.digest == digest && !task.doubtful)
    }
}

/// How a fitted temperature is recorded.
const CALIBRATE: &str = "calibrate";

/// An error of the engine with the row in all samples instead of that in a part.
fn located(error: loranpac::Error, part: usize) -> loranpac::Error {
    match error {
        loranpac::Error::NeverLearned { row } => loranpac::Error::NeverLearned { row: part * AT_ONCE + row },
        other => other,
    }
}
