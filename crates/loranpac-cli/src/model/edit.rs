//! `loranpac forget`, `rename`, `relabel` and `unlearn`: changes of mind.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use loranpac::{Features, Label};
use loranpac_eval::samples::Half;
use loranpac_store::{Model, TaskDigest};

use super::{Samples, ensure_memory, find_label, new_label, on_threads, read_all, shown};

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

/// Opens a model to change it, if there is memory for that.
fn open(path: &Path, at_once: usize) -> Result<Model> {
    let model = Model::open_to_write(path)?;
    let manifest = model.manifest();
    ensure_memory(path, manifest, manifest.edit_bytes(at_once.min(manifest.samples))?)?;
    Ok(model)
}

/// Forms the classifier and writes the model.
fn finish(model: &mut Model) -> Result<()> {
    model.prepared()?;
    Ok(model.commit()?)
}

pub fn forget(args: ForgetArgs) -> Result<()> {
    on_threads(args.threads, || {
        let mut model = open(&args.model, 0)?;
        let label = find_label(&labels(&model), &args.class)?;
        let count = model.manifest().classes.iter().find(|class| class.label == label).map_or(0, |class| class.count);
        model.learner()?.forget(&label)?;
        finish(&mut model)?;
        let model_name = shown(&args.model);
        let summary = model.learner()?.summary();
        match summary.certificate.filter(|_| model.manifest().is_infinite()).map(|certificate| certificate.capped) {
            Some(0) => println!(
                "{label} is gone from {model_name}, with its {count} samples: the model is what it would be without them."
            ),
            Some(_) => println!(
                "{label} is gone from {model_name}, with those of its {count} samples that were kept. What others have left \
                 that the cap had removed before still shapes the feature statistics; learning anew leaves nothing."
            ),
            None => println!(
                "{label} is gone from {model_name}: no sample will be called that, and the sum of its {count} samples is deleted.\n\
             What remains: its samples still shape the feature statistics (the basis and the Gram matrix). If that is too much:\n\
             - loranpac unlearn {model_name} FILE takes samples back exactly (before the class is forgotten), if you still \
             have them;\n\
             - learning anew without them leaves nothing."
            ),
        }
        if !model.history().is_empty() {
            println!(
                "An earlier version is kept, and still has the class: loranpac rollback {model_name} --drop deletes it."
            );
        }
        Ok(())
    })
}

pub fn rename(args: RenameArgs) -> Result<()> {
    on_threads(None, || rename_class(&args))
}

fn rename_class(args: &RenameArgs) -> Result<()> {
    let mut model = open(&args.model, 0)?;
    let known = labels(&model);
    let (from, to) = (find_label(&known, &args.from)?, new_label(&known, &args.to));
    if model.manifest().weights.is_some() {
        // The classifier stays what it is.
        model.prepared()?;
    }
    model.learner()?.rename(&from, to.clone())?;
    model.commit()?;
    println!("{from} is called {to} from now on");
    Ok(())
}

pub fn relabel(args: RelabelArgs) -> Result<()> {
    on_threads(args.threads, || {
        let mut model = open(&args.model, AT_ONCE)?;
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
        println!("{} samples are {} from now on", x.len(), to[0]);
        Ok(())
    })
}

pub fn unlearn(args: UnlearnArgs) -> Result<()> {
    on_threads(args.threads, || {
        let mut model = open(&args.model, AT_ONCE)?;
        let dim = model.manifest().lift.dim;
        let (x, own) = read_all(args.samples.open_labelled(&args.file, Half::Train, dim)?)?;
        let (x, own) = (Features::new(&x, dim)?, own.unwrap_or_default());
        for (x, labels) in x.chunks(AT_ONCE).zip(own.chunks(AT_ONCE)) {
            model.unlearn(x, labels)?;
        }
        let mut digest = TaskDigest::default();
        digest.add(x, &own);
        let name = shown(&args.file);
        if !model.strike(&digest.finish()) && model.manifest().tasks.iter().any(|task| task.name.starts_with(&name)) {
            eprintln!("note: {name} was learned in other pieces; learn --skip will still leave those out");
        }
        finish(&mut model)?;
        let manifest = model.manifest();
        println!(
            "{} samples are taken back, to rounding; {} knows {} samples of {} classes",
            own.len(),
            shown(&args.model),
            manifest.samples,
            manifest.classes.len()
        );
        if manifest.keep > 0 {
            println!("an earlier version still has them; loranpac rollback --drop removes it");
        }
        Ok(())
    })
}
