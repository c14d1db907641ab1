//! `loranpac forget`, `rename`, `relabel` and `unlearn`: edits of a model.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use loranpac::Label;
use loranpac_store::{EDIT_ROWS, Edited, Session};

use super::{
    Samples, Target, ensure_memory, find_label, find_or_new, named, on_threads, raw, read_all, shown, written_as,
};
use crate::say::{changed, note, say};
use crate::words::count;

/// Options of `forget`.
#[derive(clap::Args)]
pub struct ForgetArgs {
    /// The model
    model: PathBuf,
    /// The class; number:7 or text:7 if the number 7 and the text 7 are classes
    class: String,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Options of `rename`.
#[derive(clap::Args)]
pub struct RenameArgs {
    /// The model
    model: PathBuf,
    /// The class; number:7 or text:7 if the number 7 and the text 7 are classes
    from: String,
    /// Its new name; number:7 or text:7 for a number or a text
    to: String,
}

/// Options of edits of samples.
#[derive(clap::Args)]
struct EditArgs {
    /// Apply it again, although it was applied before: for samples that were learned several times
    #[arg(long)]
    again: bool,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    samples: Samples,
}

/// Options of `relabel`.
#[derive(clap::Args)]
pub struct RelabelArgs {
    /// The model
    model: PathBuf,
    /// Samples that the model has learned
    file: PathBuf,
    /// The label under which they were learned [default: those in the file]
    #[arg(long, value_name = "CLASS")]
    from: Option<String>,
    /// Their new label
    #[arg(long, value_name = "CLASS")]
    to: String,
    #[command(flatten)]
    edit: EditArgs,
}

/// Options of `unlearn`.
#[derive(clap::Args)]
pub struct UnlearnArgs {
    /// The model
    model: PathBuf,
    /// Samples that the model has learned, with the labels under which it learned them
    file: PathBuf,
    #[command(flatten)]
    edit: EditArgs,
}

fn labels(model: &Session) -> Vec<Label> {
    model.manifest().classes.iter().map(|class| class.label.clone()).collect()
}

/// Opens a model for writing, if there is enough memory to edit it.
fn open(path: &Path, at_once: usize) -> Result<Session> {
    let model = Session::open_to_write(path)?;
    let manifest = model.manifest();
    ensure_memory(path, manifest, manifest.edit_bytes(at_once.min(manifest.samples))?)?;
    Ok(model)
}

/// Forms the classifier and writes the model.
fn finish(model: &mut Session) -> Result<()> {
    model.prepared()?;
    Ok(model.commit()?)
}

/// Prints that the same edit was applied before and nothing has changed.
fn already(version: u64, hint: &str) -> Result<()> {
    Ok(say!("already applied (version {version}); nothing has changed{hint}")?)
}

/// How to apply an edit of samples twice.
const AGAIN: &str = "; --again applies it once more, for samples that were learned several times";

/// Warns about samples whose edit could not be checked.
fn warn_unchecked(unchecked: usize) {
    if unchecked > 0 {
        note!(
            "warning: could not check that {unchecked} of the samples had been learned under their labels: the model has at \
             least as many samples as directions, and the file is not one that was learned. The training error is no longer \
             exact"
        );
    }
}

pub fn forget(args: ForgetArgs) -> Result<()> {
    on_threads(args.threads, || {
        let mut model = open(&args.model, 0)?;
        let label = match find_label(&labels(&model), &args.class) {
            Ok(label) => label,
            // A class that was forgotten before is no longer in the model, but recorded.
            Err(unknown) => {
                for label in written_as(&args.class) {
                    if let Ok(Edited::Already { version }) = model.forget(&label) {
                        return already(version, "");
                    }
                }
                return Err(unknown);
            }
        };
        let samples = model.manifest().classes.iter().find(|class| class.label == label).map_or(0, |class| class.count);
        let samples = count(samples, "sample");
        if let Edited::Already { version } = model.forget(&label)? {
            return already(version, "");
        }
        finish(&mut model)?;
        let (label, model_name) = (named(&label), shown(&args.model));
        let summary = model.model()?.summary();
        let mut words = match summary
            .certificate
            .filter(|_| model.manifest().keeps_samples())
            .map(|certificate| certificate.capped)
        {
            Some(0) => format!(
                "{label} was removed from {model_name}, with its {samples}: the model is the same as if it had never learned them."
            ),
            Some(_) => format!(
                "{label} was removed from {model_name}, with those of its {samples} that were kept. Evicted samples \
                 still contribute to the feature statistics; only a new model that never learned them is free of them."
            ),
            None => format!(
                "{label} was removed from {model_name}: it will no longer be predicted, and the sum of its {samples} is \
                 deleted.\n\
             Its samples still contribute to the feature statistics (the basis and the Gram matrix). To remove that as well:\n\
             - loranpac unlearn {model_name} FILE removes samples (before the class is forgotten), if you still have \
             them;\n\
             - a new model that never learned them is free of them."
            ),
        };
        if !model.history().is_empty() {
            words += &format!(
                "\nAn earlier version still contains the class: loranpac rollback {model_name} --drop deletes it."
            );
        }
        Ok(changed(say!("{words}"))?)
    })
}

pub fn rename(args: RenameArgs) -> Result<()> {
    on_threads(None, || rename_class(&args))
}

fn rename_class(args: &RenameArgs) -> Result<()> {
    let mut model = open(&args.model, 0)?;
    let known = labels(&model);
    let to = find_or_new(&known, &args.to)?;
    let from = match find_label(&known, &args.from) {
        Ok(label) => label,
        // A class that was renamed before no longer has its old name, but the edit is recorded.
        Err(unknown) => {
            for from in written_as(&args.from) {
                if let Ok(Edited::Already { version }) = model.rename(&from, &to) {
                    return already(version, "");
                }
            }
            return Err(unknown);
        }
    };
    if model.manifest().weights.is_some() {
        // The classifier does not change.
        model.prepared()?;
    }
    if let Edited::Already { version } = model.rename(&from, &to)? {
        return already(version, "");
    }
    model.commit()?;
    Ok(changed(say!("renamed {} to {}", named(&from), named(&to)))?)
}

pub fn relabel(args: RelabelArgs) -> Result<()> {
    on_threads(args.edit.threads, || {
        let mut model = open(&args.model, EDIT_ROWS)?;
        let (known, dim) = (labels(&model), model.manifest().lift.dim);
        let target = Target::of(&args.model, model.manifest());
        let all = read_all(&args.file, args.edit.samples.open(&args.file, &target)?)?;
        let x = all.features(dim)?;
        let from = match (&args.from, all.labels.clone()) {
            (Some(from), _) => match find_label(&known, from) {
                Ok(from) => vec![from; x.len()],
                // If all samples of the class were moved before, the class no longer exists, but the edit is recorded.
                Err(unknown) => {
                    let to = find_or_new(&known, &args.to)?;
                    let to = vec![to; x.len()];
                    for from in written_as(from).filter(|_| !args.edit.again) {
                        let from = vec![from; x.len()];
                        if let Ok(Edited::Already { version }) = model.relabel(x, &from, &to, false) {
                            return already(version, AGAIN);
                        }
                    }
                    return Err(unknown);
                }
            },
            (None, Some(own)) => own,
            (None, None) => bail!("{} has no labels; give their old label with --from", shown(&args.file)),
        };
        let to = find_or_new(&known, &args.to)?;
        let to = vec![to; x.len()];
        match model.relabel(x, &from, &to, args.edit.again)? {
            Edited::Already { version } => return already(version, AGAIN),
            Edited::Done { unchecked } => warn_unchecked(unchecked),
        }
        finish(&mut model)?;
        Ok(changed(say!("relabelled {} as {}", count(x.len(), "sample"), named(&to[0])))?)
    })
}

pub fn unlearn(args: UnlearnArgs) -> Result<()> {
    on_threads(args.edit.threads, || {
        let mut model = open(&args.model, EDIT_ROWS)?;
        let dim = model.manifest().lift.dim;
        let target = Target::of(&args.model, model.manifest());
        let all = read_all(&args.file, args.edit.samples.open_labelled(&args.file, &target)?)?;
        let (x, own) = (all.features(dim)?, all.labels.clone().unwrap_or_default());
        let tasks = model.manifest().tasks.len();
        match model.unlearn(x, &own, args.edit.again)? {
            Edited::Already { version } => return already(version, AGAIN),
            Edited::Done { unchecked } => warn_unchecked(unchecked),
        }
        let (name, manifest) = (raw(&args.file), model.manifest());
        if manifest.tasks.len() == tasks && manifest.tasks.iter().any(|task| task.name.starts_with(&name)) {
            note!("note: {name} was learned in other pieces; learn --skip still skips those");
        }
        finish(&mut model)?;
        let manifest = model.manifest();
        let mut words = format!(
            "unlearned {}, to rounding; {} has {} of {}",
            count(own.len(), "sample"),
            shown(&args.model),
            count(manifest.samples, "sample"),
            count(manifest.classes.len(), "class")
        );
        if manifest.keep > 0 {
            words += "\nan earlier version still contains them; loranpac rollback --drop deletes it";
        }
        Ok(changed(say!("{words}"))?)
    })
}
