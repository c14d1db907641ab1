//! `loranpac verify` and `loranpac rollback`: the integrity and the earlier versions of a model.

use std::path::PathBuf;

use anyhow::Result;
use loranpac::memory::human_bytes;
use serde_json::json;

use super::{ensure_memory, on_threads, print, raw, shown};
use crate::json::Json;
use crate::say::{changed, say};
use crate::words::count;
use loranpac_data::text::escape;
use loranpac_store::folder::MANIFEST;
use loranpac_store::{Error, Manifest, Rolled, Session};

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
    /// The version to roll back to [default: the previous one; each further call goes one version back]
    #[arg(long, value_name = "V", conflicts_with = "drop")]
    to: Option<u64>,
    /// Set how many earlier versions are kept from now on, instead of rolling back
    #[arg(long, value_name = "N", conflicts_with_all = ["drop", "to"])]
    keep: Option<usize>,
    /// Delete the earlier versions instead of rolling back
    #[arg(long)]
    drop: bool,
}

/// The result of a failed [`verify`].
#[derive(Debug)]
pub enum Unsound {
    /// Files are damaged.
    Damaged(usize),
    /// Files could not be read, so that their state is unknown.
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
        // An unreadable manifest is damage, which verify reports.
        if let Ok(manifest) = Manifest::read(&args.model.join(MANIFEST)) {
            ensure_memory(&args.model, &manifest, manifest.load_bytes())?;
        }
        let found = Session::verify(&args.model)?;
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
                format!(
                    "{}: {}, {size}, every byte matches its checksum\n",
                    shown(&args.model),
                    count(found.files, "file")
                )
            }
            Some(_) => found.problems().map(|error| format!("{}\n", escape(&error.to_string()))).collect(),
        };
        let printed = print(&args.json, &value, &words);
        // The findings determine the exit code, even if the output cannot be written.
        unsound.map_or_else(|| Ok(printed?), |unsound| Err(unsound.into()))
    })
}

pub fn rollback(args: RollbackArgs) -> Result<()> {
    on_threads(None, || go_back(&args))
}

fn go_back(args: &RollbackArgs) -> Result<()> {
    if args.drop || args.keep.is_some() {
        let mut model = Session::open_to_write(&args.model)?;
        let keep = args.keep.unwrap_or(model.manifest().keep);
        model.keep(keep);
        let name = shown(&args.model);
        let said = if args.drop {
            model.drop_history()?;
            say!("deleted the earlier versions of {name}")
        } else {
            model.commit()?;
            say!("{name} keeps {} from this one on", count(keep, "earlier version"))
        };
        return Ok(changed(said)?);
    }
    let mut model = Session::open_to_roll_back(&args.model)?;
    let version = match model.rollback(args.to)? {
        Rolled::Back(version) => version,
        Rolled::Already(version) => {
            return Ok(say!(
                "{} already has the contents of version {version}; nothing has changed",
                shown(&args.model)
            )?);
        }
    };
    let manifest = model.manifest();
    let said = say!(
        "rolled {} back to version {version}: {} of {}",
        shown(&args.model),
        count(manifest.samples, "sample"),
        count(manifest.classes.len(), "class")
    );
    Ok(changed(said)?)
}
