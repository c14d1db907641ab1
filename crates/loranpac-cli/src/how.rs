//! Options that commands share: threads, JSON, silence; and the check of an output.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use loranpac_data::atomic;

use crate::json::Json;
use crate::words::shown;

/// How a command works and reports.
#[derive(clap::Args)]
pub struct How {
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub json: Json<true>,
    /// Print nothing but errors and skipped inputs
    #[arg(long, short)]
    pub quiet: bool,
}

/// Refuses an output of another extension, one whose folder does not exist, and one that is an input. `what` names the output.
pub fn check_out(out: &Path, what: &str, extension: &str, encoder: &str, inputs: &[PathBuf]) -> Result<()> {
    if out.extension().is_none_or(|e| e != extension) {
        bail!("{}: the name of {what} must end with .{extension}", shown(out));
    }
    if !atomic::parent(out).is_dir() {
        bail!("{}: its folder does not exist; make it first", shown(out));
    }
    let place = |path: &Path| path.canonicalize().ok();
    let weights = Path::new(encoder).join("model.safetensors");
    let sources = inputs.iter().map(PathBuf::as_path).chain([Path::new(encoder), &weights]);
    if let Some(out_place) = place(out)
        && sources.filter_map(place).any(|source| source == out_place)
    {
        bail!("{}: it is an input of the command; choose another name for the output", shown(out));
    }
    Ok(())
}
