//! The first pass of `loranpac learn` over its files: everything that can be wrong with them is found before the first is
//! learned.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Result, bail};
use loranpac::{Features, Label};
use loranpac_data::Reader;
use loranpac_store::{Encoder, Fingerprint, Manifest, Session, TaskDigest};

use super::{ROWS, Samples, Target, note_skipped, raw, shown};
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

/// A part of a file that is learned as one task.
pub struct Task {
    pub samples: usize,
    pub digest: String,
}

/// The results of a first pass over a file.
pub struct Survey {
    pub tasks: Vec<Task>,
    /// Classes that neither the model nor the files before it have.
    pub new_classes: usize,
}

/// What the model will be when the files that were surveyed have been learned.
pub struct Outlook {
    /// Labels of its classes, by how they are written.
    labels: HashMap<String, Label>,
    classes: usize,
    encoder: Encoder,
    /// Digests of the tasks in these files, and the files.
    tasks: HashMap<String, String>,
}

impl Outlook {
    /// The model as it is.
    pub fn of(manifest: &Manifest) -> Outlook {
        let labels = manifest.classes.iter().map(|class| (class.label.to_string(), class.label.clone())).collect();
        let (classes, encoder) = (manifest.classes.len(), manifest.encoder.clone());
        Outlook { labels, classes, encoder, tasks: HashMap::new() }
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
    let mut new_labels = HashSet::new();
    let mut twin = None;
    loop {
        let mut digest = TaskDigest::default();
        while division.task_size.is_none_or(|size| digest.samples() < size) {
            let most = division.task_size.map_or(ROWS, |size| ROWS.min(size - digest.samples()));
            let Some(batch) = reader.next(most)? else { break };
            let x = Features::new(&batch.x, dim)?;
            x.validate(dim)
                .and_then(|()| manifest.config.accepts(x))
                .map_err(|e| anyhow::anyhow!("{}: from row {} on: {e}", shown(file), batch.first))?;
            let labels = batch.labels.unwrap_or_default();
            digest.add(x, &labels);
            seen.add(x);
            for label in labels {
                match outlook.labels.get(&label.to_string()) {
                    Some(known) if *known == label => continue,
                    Some(_) => twin = twin.or_else(|| Some(label.clone())),
                    None => {}
                }
                new_labels.insert(label);
            }
        }
        if digest.samples() == 0 {
            break;
        }
        let Fingerprint { digest, samples, .. } = digest.finish();
        tasks.push(Task { samples, digest });
    }
    note_skipped(&reader);
    if tasks.is_empty() {
        bail!("{}: there are no samples in it", shown(file));
    }
    check_new(model, file, division, &tasks, outlook)?;
    let name = shown(file);
    if let Some(label) = twin {
        let (new, old) = match label {
            Label::Integer(_) => ("number", "text"),
            Label::Text(_) => ("text", "number"),
        };
        note!(
            "warning: the label {label} of {name} is a {new}, but the model has a class with the {old} {label}: they differ"
        );
    }
    if let Some(reason) = outlook.encoder.unlike(&seen, outlook.classes) {
        note!("warning: the samples of {name} look like another encoder's: {reason}");
    }
    let new_classes = new_labels.len();
    outlook.classes += new_classes;
    outlook.labels.extend(new_labels.into_iter().map(|label| (label.to_string(), label)));
    outlook.encoder.join(&seen);
    outlook.tasks.extend(tasks.iter().map(|task| (task.digest.clone(), name.clone())));
    Ok(Survey { tasks, new_classes })
}

/// Refuses tasks that the model, or a file before this one, has, unless the user wants them skipped or learned again.
fn check_new(model: &Session, file: &Path, division: &Division<'_>, tasks: &[Task], outlook: &Outlook) -> Result<()> {
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
    if earlier.iter().any(|task| task.name == name || task.name.starts_with(&format!("{name} ["))) {
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
