//! `loranpac forget`, `rename`, `relabel` and `unlearn`: changes of mind.

use std::path::PathBuf;

use anyhow::{Result, bail};
use loranpac::{Features, Label};
use loranpac_eval::samples::Half;
use loranpac_store::{Model, TaskDigest};

use super::{Samples, find_label, named, new_label, on_threads, raw, read_all, shown};
use crate::say::{changed, note, say};

/// The most samples that are taken back at a time.
const AT_ONCE: usize = 2048;

/// Options of `forget`.
#[derive(clap::Args)]
pub struct ForgetArgs {
    /// The model
    model: PathBuf,
    /// The class
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
    /// The class
    from: String,
    /// Its new name
    to: String,
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
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    samples: Samples,
}

/// Options of `unlearn`.
#[derive(clap::Args)]
pub struct UnlearnArgs {
    /// The model
    model: PathBuf,
    /// Samples that the model has learned, with the labels under which it has
    file: PathBuf,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    samples: Samples,
}

fn labels(model: &Model) -> Vec<Label> {
    model.manifest().classes.iter().map(|class| class.label.clone()).collect()
}

/// Forms the classifier and writes the model.
fn finish(model: &mut Model) -> Result<()> {
    model.prepared()?;
    Ok(model.commit()?)
}

pub fn forget(args: ForgetArgs) -> Result<()> {
    on_threads(args.threads, || {
        let mut model = Model::open_to_write(&args.model)?;
        let label = find_label(&labels(&model), &args.class)?;
        let count = model.manifest().classes.iter().find(|class| class.label == label).map_or(0, |class| class.count);
        model.learner()?.forget(&label)?;
        finish(&mut model)?;
        let (label, model_name) = (named(&label), shown(&args.model));
        let summary = model.learner()?.summary();
        let mut words = match summary
            .certificate
            .filter(|_| model.manifest().is_infinite())
            .map(|certificate| certificate.capped)
        {
            Some(0) => format!(
                "{label} is gone from {model_name}, with its {count} samples: the model is what it would be without them."
            ),
            Some(_) => format!(
                "{label} is gone from {model_name}, with those of its {count} samples that were kept. What others have left \
                 that the cap had removed before still shapes the feature statistics; learning anew leaves nothing."
            ),
            None => format!(
                "{label} is gone from {model_name}: no sample will be called that, and the sum of its {count} samples is deleted.\n\
             What remains: its samples still shape the feature statistics (the basis and the Gram matrix). If that is too much:\n\
             - loranpac unlearn {model_name} FILE takes samples back exactly (before the class is forgotten), if you still \
             have them;\n\
             - learning anew without them leaves nothing."
            ),
        };
        if !model.history().is_empty() {
            words += &format!(
                "\nAn earlier version is kept, and still has the class: loranpac rollback {model_name} --drop deletes it."
            );
        }
        Ok(changed(say!("{words}"))?)
    })
}

pub fn rename(args: RenameArgs) -> Result<()> {
    let mut model = Model::open_to_write(&args.model)?;
    let known = labels(&model);
    let (from, to) = (find_label(&known, &args.from)?, new_label(&known, &args.to));
    if model.manifest().weights.is_some() {
        // The classifier stays what it is.
        model.prepared()?;
    }
    model.learner()?.rename(&from, to.clone())?;
    model.commit()?;
    Ok(changed(say!("{} is called {} from now on", named(&from), named(&to)))?)
}

pub fn relabel(args: RelabelArgs) -> Result<()> {
    on_threads(args.threads, || {
        let mut model = Model::open_to_write(&args.model)?;
        let (known, dim) = (labels(&model), model.manifest().lift.dim);
        let (x, own) = read_all(args.samples.open(&args.file, Half::Train, dim)?)?;
        let x = Features::new(&x, dim)?;
        let from = match (&args.from, own) {
            (Some(from), _) => vec![find_label(&known, from)?; x.len()],
            (None, Some(own)) => own,
            (None, None) => bail!("{} has no labels; say with --from what they were", shown(&args.file)),
        };
        let to = find_label(&known, &args.to).unwrap_or_else(|_| new_label(&known, &args.to));
        let to = vec![to; x.len()];
        for ((x, from), to) in x.chunks(AT_ONCE).zip(from.chunks(AT_ONCE)).zip(to.chunks(AT_ONCE)) {
            model.learner()?.relabel(x, from, to)?;
        }
        finish(&mut model)?;
        Ok(changed(say!("{} samples are {} from now on", x.len(), named(&to[0])))?)
    })
}

pub fn unlearn(args: UnlearnArgs) -> Result<()> {
    on_threads(args.threads, || {
        let mut model = Model::open_to_write(&args.model)?;
        let dim = model.manifest().lift.dim;
        let (x, own) = read_all(args.samples.open_labelled(&args.file, Half::Train, dim)?)?;
        let (x, own) = (Features::new(&x, dim)?, own.unwrap_or_default());
        for (x, labels) in x.chunks(AT_ONCE).zip(own.chunks(AT_ONCE)) {
            model.unlearn(x, labels)?;
        }
        let mut digest = TaskDigest::default();
        digest.add(x, &own);
        let name = raw(&args.file);
        if !model.strike(&digest.finish()) && model.manifest().tasks.iter().any(|task| task.name.starts_with(&name)) {
            note!("note: {name} was learned in other pieces; learn --skip will still leave those out");
        }
        finish(&mut model)?;
        let manifest = model.manifest();
        let mut words = format!(
            "{} samples are taken back, to rounding; {} knows {} samples of {} classes",
            own.len(),
            shown(&args.model),
            manifest.samples,
            manifest.classes.len()
        );
        if manifest.keep > 0 {
            words += "\nan earlier version still has them; loranpac rollback --drop removes it";
        }
        Ok(changed(say!("{words}"))?)
    })
}
