//! `loranpac merge`: merges models, as if one had learned everything.

use std::path::{Path, PathBuf};

use anyhow::Result;
use loranpac_store::{Error, Manifest, Merged, Session, merged_before};
use serde_json::json;

use super::{ensure_memory, new_folder, on_threads, parts as parts_of, print, raw, shown, warn_small_classes};
use crate::json::Json;
use crate::say::{changed, note};
use crate::words::count;

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
    /// Merge models that have learned the same samples, which then count several times
    #[arg(long)]
    again: bool,
    /// Warn about classes with fewer samples than this, which the model reveals
    #[arg(long, default_value_t = 2, value_name = "N")]
    least: usize,
    /// Do not form the classifier
    #[arg(long)]
    defer: bool,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    json: Json<true>,
}

pub fn main(args: Args) -> Result<()> {
    on_threads(args.threads, || merge(&args))
}

fn merge(args: &Args) -> Result<()> {
    let folder = new_folder(&args.out)?;
    let mut models = args.models.iter().map(|path| Session::open(path)).collect::<Result<Vec<_>, _>>()?;
    models.iter().zip(&args.models).for_each(|(model, path)| warn_small_classes(model, path, args.least, "a model"));
    let manifests: Vec<Manifest> = models.iter().map(|model| model.manifest().clone()).collect();
    ensure_memory(&folder, &manifests[0], Manifest::merge_bytes(&manifests)?)?;
    if let Some(there) = merged_before(&folder, &manifests, args.again)? {
        return report(args, &folder, &there, "already merged; nothing has changed: ");
    }
    if std::fs::symlink_metadata(&folder).is_ok() {
        return Err(Error::Exists { path: folder }.into());
    }
    let parts = args.models.iter().map(|path| raw(path)).zip(models.iter_mut()).collect();
    let Merged { mut session, warnings } = loranpac_store::merge(parts, args.again)?;
    warnings.iter().for_each(|warning| note!("warning: {warning}"));
    if !args.defer {
        session.prepared()?;
    }
    session.save(&folder, false)?;
    report(args, &folder, session.manifest(), "")
}

fn report(args: &Args, folder: &Path, manifest: &Manifest, before: &str) -> Result<()> {
    let value = json!({
        "model": raw(folder), "samples": manifest.samples, "classes": manifest.classes.len(),
        "basis_rank": manifest.rank(), "merged": args.models.iter().map(|path| raw(path)).collect::<Vec<_>>(),
    });
    let text = format!(
        "{before}{}: {} of {} from {}, {}\n",
        shown(folder),
        count(manifest.samples, "sample"),
        count(manifest.classes.len(), "class"),
        count(args.models.len(), "model"),
        parts_of(manifest)
    );
    Ok(changed(print(&args.json, &value, &text))?)
}
