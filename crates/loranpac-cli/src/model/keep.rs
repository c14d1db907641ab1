//! `loranpac verify` and `loranpac rollback`: whether a model is whole, and how it was before.

use std::path::PathBuf;

use anyhow::Result;
use loranpac::memory::human_bytes;
use loranpac_store::manifest::MANIFEST;
use loranpac_store::{Manifest, Model};
use serde_json::json;

use super::{ensure_memory, on_threads, print, shown};

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
        // A manifest that cannot be read is damage, which verify reports.
        if let Ok(manifest) = Manifest::read(&args.model.join(MANIFEST)) {
            ensure_memory(&args.model, &manifest, manifest.load_bytes())?;
        }
        let found = Model::verify(&args.model)?;
        let damage: Vec<String> = found.damage.iter().map(|error| error.to_string()).collect();
        let value = json!({
            "model": shown(&args.model), "whole": damage.is_empty(), "files": found.files, "bytes": found.bytes,
            "damage": damage,
        });
        let mut words = damage.iter().map(|line| format!("{line}\n")).collect::<String>();
        if damage.is_empty() {
            let size = human_bytes(found.bytes as usize);
            words = format!("{}: {} files, {size}, every byte as it was written\n", shown(&args.model), found.files);
        }
        print(args.json, &value, &words)?;
        if damage.is_empty() { Ok(()) } else { Err(Damage(damage.len()).into()) }
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
        if args.drop {
            model.drop_history()?;
            println!("the earlier versions of {} are deleted", shown(&args.model));
        } else {
            model.commit()?;
            println!("{} keeps {keep} earlier versions from now on", shown(&args.model));
        }
        return Ok(());
    }
    let mut model = Model::open_to_roll_back(&args.model)?;
    let version = model.rollback(args.to)?;
    let manifest = model.manifest();
    println!(
        "{} is as it was at version {version}: {} samples of {} classes",
        shown(&args.model),
        manifest.samples,
        manifest.classes.len()
    );
    Ok(())
}
