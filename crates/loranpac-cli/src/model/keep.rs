//! `loranpac verify` and `loranpac rollback`: whether a model is whole, and how it was before.

use std::path::PathBuf;

use anyhow::Result;
use loranpac::memory::human_bytes;
use loranpac_eval::text::escape;
use loranpac_store::Model;
use serde_json::json;

use super::{on_threads, print, raw, shown};
use crate::say::{changed, say};

/// Options of `verify`.
#[derive(clap::Args)]
pub struct VerifyArgs {
    /// The model
    model: PathBuf,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Options of `rollback`.
#[derive(clap::Args)]
pub struct RollbackArgs {
    /// The model
    model: PathBuf,
    /// The version to go back to [default: the one before]
    #[arg(long, value_name = "V", conflicts_with = "drop")]
    to: Option<u64>,
    /// Keep N earlier versions from now on
    #[arg(long, value_name = "N", conflicts_with_all = ["drop", "to"])]
    keep: Option<usize>,
    /// Do not go back: delete the earlier versions
    #[arg(long)]
    drop: bool,
}

/// What [`verify`] found wrong; the exit code is 3.
#[derive(Debug)]
pub struct Damage(pub usize);

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the model is damaged in {} places", self.0)
    }
}

impl std::error::Error for Damage {}

pub fn verify(args: VerifyArgs) -> Result<()> {
    on_threads(args.threads, || {
        let found = Model::verify(&args.model)?;
        let damage: Vec<String> = found.damage.iter().map(|error| error.to_string()).collect();
        let value = json!({
            "model": raw(&args.model), "whole": damage.is_empty(), "files": found.files, "bytes": found.bytes,
            "damage": damage,
        });
        let mut words = damage.iter().map(|line| format!("{}\n", escape(line))).collect::<String>();
        if damage.is_empty() {
            let size = human_bytes(found.bytes as usize);
            words = format!("{}: {} files, {size}, every byte as it was written\n", shown(&args.model), found.files);
        }
        let printed = print(args.json, &value, &words);
        // Damage decides the exit code, whoever reads the output.
        if damage.is_empty() { Ok(printed?) } else { Err(Damage(damage.len()).into()) }
    })
}

pub fn rollback(args: RollbackArgs) -> Result<()> {
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
    let version = model.rollback(args.to)?;
    let manifest = model.manifest();
    let said = say!(
        "{} is as it was at version {version}: {} samples of {} classes",
        shown(&args.model),
        manifest.samples,
        manifest.classes.len()
    );
    Ok(changed(said)?)
}
