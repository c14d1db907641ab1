//! `loranpac merge`: several models become one, as if it had learned everything.

use std::path::PathBuf;

use anyhow::{Result, bail};
use loranpac::{Learner, LoRanPac};
use loranpac_store::{Model, Notes, Settings};
use serde_json::json;

use super::{new_folder, on_threads, print, shown, warn_small_classes};

/// Options of `merge`.
#[derive(clap::Args)]
#[command(after_help = "Example:  loranpac merge paris.lrp lima.lrp oslo.lrp -o all.lrp")]
pub struct Args {
    /// Models with the same lift and settings
    #[arg(required = true, num_args = 2..)]
    models: Vec<PathBuf>,
    /// Folder of the new model
    #[arg(long, short, value_name = "MODEL")]
    out: PathBuf,
    /// Merge models that have learned the same samples, which then count twice
    #[arg(long)]
    again: bool,
    /// Warn about classes with fewer samples than this: what a model knows of them reveals them
    #[arg(long, default_value_t = 2, value_name = "N")]
    least: usize,
    /// Do not form the classifier
    #[arg(long)]
    defer: bool,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub fn main(args: Args) -> Result<()> {
    on_threads(args.threads, || merge(&args))
}

fn merge(args: &Args) -> Result<()> {
    let folder = new_folder(&args.out)?;
    if folder.exists() {
        bail!("{} is there already", shown(&folder));
    }
    let mut models = args.models.iter().map(|path| Model::open(path)).collect::<Result<Vec<_>, _>>()?;
    let first = models[0].manifest().clone();
    let mut notes = Notes { encoder: first.encoder.clone(), tasks: first.tasks.clone() };
    for (model, path) in models.iter().zip(&args.models).skip(1) {
        let other = model.manifest();
        if other.lift_digest != first.lift_digest {
            bail!(
                "{} and {} have different lifts ({} and {}), and cannot be merged; seed, width and kind must be the same",
                shown(&args.models[0]),
                shown(path),
                words(&first.lift),
                words(&other.lift)
            );
        }
        if other.config != first.config {
            bail!("{} and {} have different settings; see loranpac inspect", shown(&args.models[0]), shown(path));
        }
        if let Some(twin) = other.tasks.iter().find(|task| notes.tasks.iter().any(|t| t.digest == task.digest))
            && !args.again
        {
            bail!(
                "{}: {} has been learned by another of the models, too; --again counts it twice",
                shown(path),
                twin.name
            );
        }
        if let Some(reason) = notes.encoder.unlike(&other.encoder, first.classes.len()) {
            eprintln!("warning: the samples of {} look like another encoder's: {reason}", shown(path));
        }
        notes.encoder.join(&other.encoder);
        notes.tasks.extend(other.tasks.iter().cloned());
    }
    models.iter().for_each(|model| warn_small_classes(model, args.least, "a model"));
    let config = first.config;
    let mut whole = LoRanPac::new(first.lift.build(true)?, config)?;
    let learners = models.iter_mut().map(|model| model.learner()).collect::<Result<Vec<_>, _>>()?;
    whole.merge(learners)?;
    if !args.defer {
        whole.prepare()?;
    }
    let settings = Settings { lift: first.lift, config, keep: first.keep, encoder: first.encoder.name };
    let merged = Model::save_as(&folder, &settings, whole, notes)?;
    let manifest = merged.manifest();
    let value = json!({
        "model": shown(&folder), "samples": manifest.samples, "classes": manifest.classes.len(),
        "basis_rank": manifest.rank(), "merged": args.models.iter().map(|path| shown(path)).collect::<Vec<_>>(),
    });
    let text = format!(
        "{}: {} samples of {} classes from {} models, {} directions\n",
        shown(&folder),
        manifest.samples,
        manifest.classes.len(),
        args.models.len(),
        manifest.rank()
    );
    print(args.json, &value, &text)
}

fn words(lift: &loranpac_store::LiftRecord) -> String {
    format!("{} from {} to {}, seed {}", lift.name, lift.dim, lift.width, lift.seed)
}
