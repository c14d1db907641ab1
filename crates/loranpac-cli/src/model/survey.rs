//! The first pass of `loranpac learn` over its files: everything that can be wrong with them is found before the first is
//! learned. Small files are held in memory, so that they are read once.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use loranpac::{Features, Label};
use loranpac_data::{Reader, system};
use loranpac_store::{Encoder, Fingerprint, Manifest, Session, TaskDigest};

use super::{ROWS, Samples, Target, named, note_skipped, raw, shown, weighted};
use crate::say::note;

/// How files are divided into tasks, and which tasks are learned.
pub struct Division<'a> {
    pub samples: &'a Samples,
    /// Samples per task.
    pub task_size: Option<usize>,
    /// Whether tasks that were learned before are skipped.
    pub skip: bool,
    /// Whether they are learned again.
    pub again: bool,
}

/// The most bytes of samples that are kept from the first pass to the second, of all files together.
const MOST_HELD: usize = 128 << 20;

/// Samples as a reader returns them.
pub type Held = (Vec<f32>, Vec<Label>, Option<Vec<f64>>);

/// The results of a first pass over a file.
pub struct Survey {
    /// The parts of the file that are learned as one task each.
    pub tasks: Vec<Fingerprint>,
    /// All samples, batch by batch, if they are few: the file is then read once.
    pub held: Option<Vec<Held>>,
    /// Labels that neither the model nor the files before it have, in the order of their first samples.
    pub new_labels: Vec<Label>,
}

/// What the model will be when the files that were surveyed have been learned.
pub struct Outlook {
    /// Labels of its classes, by how they are written: a number and a text can be written in the same way.
    labels: HashMap<String, Vec<Label>>,
    classes: usize,
    encoder: Encoder,
    /// Digests of the tasks in these files, and the files.
    tasks: HashMap<String, String>,
    /// Bytes of samples that may still be held.
    room: usize,
}

/// Returns the bytes of samples that may be held: few, and a small part of the memory that is left.
pub fn room_to_hold() -> usize {
    MOST_HELD.min(system::room().available.unwrap_or(usize::MAX) / 16)
}

impl Outlook {
    /// The model as it is, and the bytes of samples that may be held.
    pub fn of(manifest: &Manifest, room: usize) -> Outlook {
        let (classes, encoder) = (manifest.classes.len(), manifest.encoder.clone());
        let mut outlook = Outlook { labels: HashMap::new(), classes, encoder, tasks: HashMap::new(), room };
        manifest.classes.iter().for_each(|class| drop(outlook.add(std::slice::from_ref(&class.label))));
        outlook
    }

    /// Adds labels; returns those that are new.
    pub fn add(&mut self, labels: &[Label]) -> Vec<Label> {
        let mut new = Vec::new();
        for label in labels {
            let known = self.labels.entry(label.to_string()).or_default();
            if !known.contains(label) {
                known.push(label.clone());
                new.push(label.clone());
            }
        }
        new
    }

    /// Warns if a new label of a file is written like another class: 1 and "1".
    pub fn warn_twins(&self, file: &Path, new: &[Label]) {
        if let Some(label) = new.iter().find(|label| self.labels[&label.to_string()].len() > 1) {
            let (this, other) = match label {
                Label::Integer(_) => ("number", "text"),
                Label::Text(_) => ("text", "number"),
            };
            let (name, label) = (shown(file), named(label));
            note!(
                "warning: {name}: the label {label} is a {this}, but another class has the {other} {label}: they differ"
            );
        }
    }
}

/// Reads a whole file once: checks that it is readable, that its samples look right, and that its tasks are new.
pub fn survey(
    model: &Session,
    file: &Path,
    division: &Division<'_>,
    target: &Target,
    outlook: &mut Outlook,
) -> Result<Survey> {
    let manifest = model.manifest();
    let dim = manifest.lift.dim;
    let mut reader: Reader = division.samples.open_labelled(file, target)?;
    let mut seen = Encoder::default();
    let mut tasks = Vec::new();
    let mut new_labels = Vec::new();
    let (mut held, mut bytes) = (Some(Vec::new()), 0);
    loop {
        let mut digest = TaskDigest::default();
        while division.task_size.is_none_or(|size| digest.samples() < size) {
            let most = division.task_size.map_or(ROWS, |size| ROWS.min(size - digest.samples()));
            let Some(batch) = reader.next(most)? else { break };
            let x = weighted(&batch.x, dim, batch.weights.as_deref())?;
            check(manifest, x, file, &batch.rows)?;
            let labels = batch.labels.unwrap_or_default();
            digest.add(x, &labels);
            seen.add(x);
            new_labels.extend(outlook.add(&labels));
            bytes += size_of_val(&batch.x[..]) + labels.iter().map(label_bytes).sum::<usize>();
            held = held.filter(|_| bytes <= outlook.room);
            if let Some(held) = &mut held {
                held.push((batch.x, labels, batch.weights));
            }
        }
        if digest.samples() == 0 {
            break;
        }
        tasks.push(digest.finish());
    }
    note_skipped(&reader);
    if tasks.is_empty() {
        bail!("{}: there are no samples in it", shown(file));
    }
    check_new(model, file, division, &tasks, outlook)?;
    let name = shown(file);
    outlook.warn_twins(file, &new_labels);
    if let Some(reason) = outlook.encoder.unlike(&seen, outlook.classes) {
        note!("warning: the samples of {name} look like another encoder's: {reason}");
    }
    outlook.room -= if held.is_some() { bytes } else { 0 };
    outlook.classes += new_labels.len();
    outlook.encoder.join(&seen);
    outlook.tasks.extend(tasks.iter().map(|task| (task.digest.clone(), name.clone())));
    Ok(Survey { tasks, held, new_labels })
}

/// The bytes that a label takes in memory.
fn label_bytes(label: &Label) -> usize {
    size_of::<Label>() + if let Label::Text(text) = label { text.len() } else { 0 }
}

/// Refuses samples that the model cannot learn. `rows` are their rows in the file.
pub fn check(manifest: &Manifest, x: Features<'_>, file: &Path, rows: &[usize]) -> Result<()> {
    let checked = x.validate(manifest.lift.dim).and_then(|()| manifest.config.accepts(x));
    checked.map_err(|error| error.at_row(|row| rows[row])).with_context(|| shown(file))
}

/// Refuses tasks that the model, or a file before this one, has, unless the user wants them skipped or learned again.
fn check_new(
    model: &Session,
    file: &Path,
    division: &Division<'_>,
    tasks: &[Fingerprint],
    outlook: &Outlook,
) -> Result<()> {
    let name = raw(file);
    let earlier = &model.manifest().tasks;
    if let Some(task) = tasks.iter().find(|task| model.task(&task.digest).is_some()) {
        return if division.again { Ok(()) } else { refuse_again(model, &shown(file), &task.digest, division.skip) };
    }
    if let Some(other) = tasks.iter().find_map(|task| outlook.tasks.get(&task.digest))
        && !division.again
        && !division.skip
    {
        bail!("{}: its samples are also those of {other}; --skip skips them, --again learns them twice", shown(file));
    }
    let stdin = file.as_os_str() == "-";
    if !stdin && earlier.iter().any(|task| task.name == name || task.name.starts_with(&format!("{name} ["))) {
        note!(
            "warning: {name} had other contents, or tasks of another size, when it was learned before; samples may count twice"
        );
    }
    Ok(())
}

/// Refuses a task that was learned before, unless the user wants it skipped.
pub fn refuse_again(model: &Session, name: &str, digest: &str, skip: bool) -> Result<()> {
    let Some(task) = model.task(digest).filter(|_| !skip) else { return Ok(()) };
    bail!(
        "{name}: its samples were learned before (as {}, version {}); --skip skips them, --again learns them twice",
        task.name,
        task.version
    )
}
