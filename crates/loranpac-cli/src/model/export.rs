//! `loranpac export`: the classifier as a file for other programs.

use std::path::PathBuf;

use anyhow::{Result, bail};
use loranpac::memory::human_bytes;
use loranpac_store::onnx::{self, OnnxOptions};
use loranpac_store::{Precision, Session};

use super::{ensure_memory, inference, on_threads, shown, warn_small_classes, warn_stale_temperature};
use crate::say::say;

/// Options of `export`.
#[derive(clap::Args)]
#[command(after_help = "Example:  loranpac export intents.lrp intents.onnx --half")]
pub struct Args {
    /// The model
    model: PathBuf,
    /// NAME.onnx for any ONNX runtime, or NAME.safetensors for a small file for predict
    out: PathBuf,
    /// Store numbers in half precision: half the size
    #[arg(long)]
    half: bool,
    /// ONNX: add an output with probabilities (after calibrate)
    #[arg(long)]
    probabilities: bool,
    /// Warn about classes with fewer samples than this, which the classifier may reveal
    #[arg(long, default_value_t = 2, value_name = "N")]
    least: usize,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

pub fn main(args: Args) -> Result<()> {
    on_threads(args.threads, || {
        let mut model = Session::open(&args.model)?;
        if !model.manifest().keeps_samples() {
            warn_small_classes(&model, &args.model, args.least, "a classifier");
        }
        if args.probabilities {
            warn_stale_temperature(&model);
        }
        ensure_memory(&args.model, model.manifest(), model.manifest().predict_bytes()?)?;
        let inference = inference(&mut model, &args.model)?;
        let precision = if args.half { Precision::F16 } else { Precision::F32 };
        match args.out.extension().and_then(|e| e.to_str()) {
            Some("onnx") => {
                let options = OnnxOptions { precision, probabilities: args.probabilities, ..OnnxOptions::default() };
                let exported = onnx::export(&inference, &args.out, &options)?;
                let size = human_bytes(exported.bytes as usize);
                let data = exported.data.map_or(String::new(), |data| format!(", with {}", shown(&data)));
                say!("{}: {size}{data}; input x, outputs scores and label_index", shown(&args.out))?;
            }
            Some("safetensors") => {
                if args.probabilities {
                    bail!("--probabilities is for ONNX; predict --probabilities works with this file as well");
                }
                inference.save(&args.out, precision)?;
                let size = std::fs::metadata(&args.out).map_or(0, |file| file.len());
                say!("{}: {}; use it with loranpac predict", shown(&args.out), human_bytes(size as usize))?;
            }
            _ => bail!("{}: give a name that ends with .onnx or .safetensors", shown(&args.out)),
        }
        Ok(())
    })
}
