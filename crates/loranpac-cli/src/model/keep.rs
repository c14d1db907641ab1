//! `loranpac verify` and `loranpac rollback`: whether a model is whole, and how it was before.

use std::path::PathBuf;

use anyhow::Result;
use loranpac::memory::human_bytes;
use serde_json::json;

use super::{ensure_memory, on_threads, print, raw, shown};
use crate::json::Json;
use crate::say::{changed, say};
use loranpac_data::text::escape;
use loranpac_store::folder::MANIFEST;
use loranpac_store::{Error, Manifest, Model, Rolled};

/// Options of `verify`.
#[derive(clap::Args)]
pub struct VerifyArgs {
    /// The model
    model: PathBuf,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    json: Json<true>,
}

/// Options of `rollback`.
#[derive(clap::Args)]
pub struct RollbackArgs {
    /// The model
    model: PathBuf,
    /// The version to go back to [default: the one before, and again the one before that]
    #[arg(long, value_name = "V", conflicts_with = "drop")]
    to: Option<u64>,
    /// Keep N earlier versions from now on
    #[arg(long, value_name = "N", conflicts_with_all = ["drop", "to"])]
    keep: Option<usize>,
    /// Do not go back: delete the earlier versions
    #[arg(long)]
    drop: bool,
}

/// What [`verify`] found wrong.
#[derive(Debug)]
pub enum Unsound {
    /// Files are not as they were written.
    Damaged(usize),
    /// Files could not be read, so that nothing is known about them.
    Unreadable,
    /// Files were written by a newer program.
    Newer,
}

impl std::fmt::Display for Unsound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unsound::Damaged(1) => write!(f, "the model is damaged in one place"),
            Unsound::Damaged(count) => write!(f, "the model is damaged in {count} places"),
            Unsound::Unreadable => write!(f, "the model could not be read as a whole; it may or may not be damaged"),
            Unsound::Newer => write!(f, "the model was written by a newer version of loranpac"),
        }
    }
}

impl std::error::Error for Unsound {}

pub fn verify(args: VerifyArgs) -> Result<()> {
    on_threads(args.threads, || {
        // A manifest that cannot be read is damage, which verify reports.
        if let Ok(manifest) = Manifest::read(&args.model.join(MANIFEST)) {
            ensure_memory(&args.model, &manifest, manifest.load_bytes())?;
        }
        let found = Model::verify(&args.model)?;
        let texts = |errors: &[Error]| errors.iter().map(|error| error.to_string()).collect::<Vec<_>>();
        let unsound = match (found.damage.len(), found.unreadable.len(), found.newer.len()) {
            (0, 0, 0) => None,
            (0, 0, _) => Some(Unsound::Newer),
            (0, _, _) => Some(Unsound::Unreadable),
            (damage, ..) => Some(Unsound::Damaged(damage)),
        };
        let value = json!({
            "model": raw(&args.model), "whole": found.is_whole(), "files": found.files, "bytes": found.bytes,
            "damage": texts(&found.damage), "unreadable": texts(&found.unreadable), "newer": texts(&found.newer),
        });
        let words = match unsound {
            None => {
                let size = human_bytes(found.bytes as usize);
                format!("{}: {} files, {size}, every byte as it was written\n", shown(&args.model), found.files)
            }
            Some(_) => found.problems().map(|error| format!("{}\n", escape(&error.to_string()))).collect(),
        };
        let printed = print(&args.json, &value, &words);
        // The findings decide the exit code, even if the output cannot be written.
        unsound.map_or_else(|| Ok(printed?), |unsound| Err(unsound.into()))
    })
}

pub fn rollback(args: RollbackArgs) -> Result<()> {
    on_threads(None, || go_back(&args))
}

fn go_back(args: &RollbackArgs) -> Result<()> {
    if args.drop || args.keep.is_some() {
        let mut model = Model::open_to_write(&args.model)?;
        let keep = args.keep.unwrap_or(model.manifest().keep);
        model.keep(keep);
        let name = shown(&args.model);
        let said = if args.drop {
            model.drop_history()?;
            say!("the earlier versions of {name} are deleted")
        } else {
            model.commit()?;
            say!("{name} keeps {keep} earlier versions from now on")
        };
        return Ok(changed(said)?);
    }
    let mut model = Model::open_to_roll_back(&args.model)?;
    let version = match model.rollback(args.to)? {
        Rolled::Back(version) => version,
        Rolled::Already(version) => {
            return Ok(say!("{} is as it was at version {version} already; nothing has changed", shown(&args.model))?);
        }
    };
    let manifest = model.manifest();
    let said = say!(
        "{} is as it was at version {version}: {} samples of {} classes",
        shown(&args.model),
        manifest.samples,
        manifest.classes.len()
    );
    Ok(changed(said)?)
}
