//! Edits of a model. Each edit is recorded with a digest of its input in the same commit. Edits are idempotent: an
//! interrupted command can be repeated.

use std::collections::HashMap;

use loranpac::{Features, Label, Prior};

use crate::digest::{Fingerprint, of_labels};
use crate::error::Error;
use crate::manifest::{Calibration, EditEntry, Manifest, TaskEntry};
use crate::session::Session;

/// The maximum number of samples that are unlearned or relabelled at a time.
pub const EDIT_ROWS: usize = 2048;

/// The result of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Edited {
    /// The model has changed.
    Done {
        /// Samples that could not be verified to have been learned under their labels.
        unchecked: usize,
    },
    /// The same edit was applied before; nothing has changed.
    Already {
        /// The version that applied it.
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

    /// Renames a class.
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
        if let Prior::Table(table) = &mut self.manifest.prior
            && let Some(weight) = table.remove(&from.to_string())
        {
            table.insert(to.to_string(), weight);
        }
        self.manifest.record("rename", subject, digest, None);
        Ok(Edited::DONE)
    }

    /// Moves samples that were learned under `from`, with the same weights, to other labels. With `again`, an edit that was applied before is
    /// applied once more: for samples that were learned several times.
    pub fn relabel(&mut self, x: Features<'_>, from: &[Label], to: &[Label], again: bool) -> Result<Edited, Error> {
        if let Some(present) = x.present() {
            let (from, to) = (present.of(from), present.of(to));
            no_weight(&from)?;
            return self.relabel(present.features(), &from, &to, again);
        }
        let (old, new) = (Fingerprint::of(x, from), Fingerprint::of(x, to));
        let digest = format!("{} {}", old.digest, new.digest);
        if let Some(version) = self.earlier("relabel", &old.features, &digest, again)? {
            return Ok(Edited::Already { version });
        }
        self.check_counts(from)?;
        let task = self.manifest.recorded_task(&old.digest);
        let parts = || x.chunks(EDIT_ROWS).zip(from.chunks(EDIT_ROWS)).zip(to.chunks(EDIT_ROWS));
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
            // The digest becomes that of a task learned with these labels.
            let version = self.manifest.version + 1;
            let task = &mut self.manifest.tasks[place];
            *task = TaskEntry { digest: new.digest, version, ..task.clone() };
        }
        self.manifest.record("relabel", old.features, digest, task);
        Ok(Edited::Done { unchecked })
    }

    /// Removes samples that were learned with the same weights, as if they had never been learned. With `again`, an edit that was applied before is applied
    /// once more: for samples that were learned several times.
    pub fn unlearn(&mut self, x: Features<'_>, labels: &[Label], again: bool) -> Result<Edited, Error> {
        if let Some(present) = x.present() {
            let labels = present.of(labels);
            no_weight(&labels)?;
            return self.unlearn(present.features(), &labels, again);
        }
        let Fingerprint { digest, features, .. } = Fingerprint::of(x, labels);
        if let Some(version) = self.earlier("unlearn", &features, &digest, again)? {
            return Ok(Edited::Already { version });
        }
        self.check_counts(labels)?;
        if labels.len() >= self.model()?.counts().iter().sum() {
            return Err(loranpac::Error::NothingLeft { samples: labels.len() }.into());
        }
        let task = self.manifest.recorded_task(&digest);
        let parts = || x.chunks(EDIT_ROWS).zip(labels.chunks(EDIT_ROWS));
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

    /// Sets the temperature that was fitted on the samples with this fingerprint. The model itself is not read.
    pub fn calibrate(&mut self, temperature: f64, held_out: &Fingerprint) {
        let classes = self.model.as_ref().map_or(self.manifest.classes.len(), |model| model.classes().len());
        self.manifest.calibrate(temperature, held_out, classes);
    }

    /// Adds the changes of an edit; returns the number of samples that could not be checked.
    fn applied(&mut self, edited: loranpac::Edited) -> usize {
        self.delta.append(edited.delta);
        edited.unchecked
    }

    /// Returns the version at which the same edit was applied to the same samples. Fails if something was learned
    /// since: the samples may be in the model again, and only the user can decide.
    fn earlier(&self, command: &'static str, features: &str, digest: &str, again: bool) -> Result<Option<u64>, Error> {
        match self.manifest.edited(command, features, digest).filter(|_| !again) {
            Some(edit) if !edit.current => Err(Error::AppliedBefore { command, version: edit.version }),
            found => Ok(found.map(|edit| edit.version)),
        }
    }

    /// Refuses more samples of a class than the model has, before anything changes.
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
    /// Returns the latest edit of this subject, if its digest is the same.
    pub(crate) fn edited(&self, command: &str, subject: &str, digest: &str) -> Option<&EditEntry> {
        let same = |edit: &&EditEntry| edit.command == command && edit.subject == subject && edit.digest == digest;
        self.edits.iter().find(same)
    }

    /// Sets the temperature that was fitted on the samples with this fingerprint, for this number of classes.
    pub(crate) fn calibrate(&mut self, temperature: f64, held_out: &Fingerprint, classes: usize) {
        let (samples, version, prior) = (held_out.samples, self.version, self.prior.clone());
        self.calibration = Some(Calibration { temperature, samples, classes, version, prior });
        self.list(CALIBRATE, "temperature".to_owned(), held_out.digest.clone());
    }

    /// Returns the version that fitted the temperature on the same samples, if the model has not changed since.
    pub fn calibrated_on(&self, held_out: &Fingerprint) -> Option<u64> {
        let edit = self.edited(CALIBRATE, "temperature", &held_out.digest)?;
        (edit.current && self.calibration.is_some()).then_some(edit.version)
    }

    /// Records a change of samples or classes. Unless it concerns exactly the task at this index, every task may have
    /// changed in part.
    pub(crate) fn record(&mut self, command: &str, subject: String, digest: String, task: Option<usize>) {
        if task.is_none() {
            self.tasks.iter_mut().for_each(|task| task.doubtful = true);
        }
        self.outdate_temperature();
        self.list(command, subject, digest);
    }

    /// Records that the temperature was fitted for other scores than those of the model now.
    pub(crate) fn outdate_temperature(&mut self) {
        self.edits.iter_mut().filter(|edit| edit.command == CALIBRATE).for_each(|edit| edit.current = false);
    }

    /// Lists an edit, replacing an earlier one of the same subject.
    pub(crate) fn list(&mut self, command: &str, subject: String, digest: String) {
        self.edits.retain(|edit| edit.subject != subject);
        let version = self.version + 1;
        self.edits.push(EditEntry { command: command.to_owned(), subject, digest, current: true, version });
    }

    /// Lists a learned task. Edits of the same samples are superseded, and other edits may concern them.
    pub fn note(&mut self, name: &str, learned: &Fingerprint) {
        let (digest, samples, version) = (learned.digest.clone(), learned.samples, self.version + 1);
        self.edits.retain(|edit| edit.subject != learned.features);
        self.edits.iter_mut().for_each(|edit| edit.current = false);
        self.tasks.push(TaskEntry { name: name.to_owned(), digest, samples, version, doubtful: false });
    }

    /// Returns the index of a task with this digest whose samples are unchanged in the model.
    fn recorded_task(&self, digest: &str) -> Option<usize> {
        self.tasks.iter().rposition(|task| task.digest == digest && !task.doubtful)
    }
}

/// The name under which a fitted temperature is recorded.
const CALIBRATE: &str = "calibrate";

/// Refuses an edit of samples that all have the weight 0.
fn no_weight(labels: &[Label]) -> Result<(), Error> {
    if labels.is_empty() { Err(loranpac::Error::NoWeight.into()) } else { Ok(()) }
}

/// Converts the row of an engine error from its part to all samples.
fn located(error: loranpac::Error, part: usize) -> loranpac::Error {
    match error {
        loranpac::Error::NeverLearned { row } => loranpac::Error::NeverLearned { row: part * EDIT_ROWS + row },
        other => other,
    }
}
