//! `loranpac embed`: images or texts in, a feature file out.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use loranpac_data::EncodedBy;
use loranpac_data::formats::write_npz;
use loranpac_encode::{Inputs, Needs};
use serde_json::json;

use crate::encoding::Encoding;
use crate::file::Target;
use crate::how::{How, check_out};
use crate::model::{on_threads, print, shown};
use crate::raw::Raw;
use crate::words::count;

/// Options of `embed`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    loranpac embed minilm/ tickets.csv -o tickets.npz          # a folder with model.safetensors and tokenizer.json\n  \
    loranpac embed vit/ photos/ -o photos.npz                  # photos/CLASS/*.jpg, or photos/{train,test}/CLASS/*.jpg\n  \
    loranpac embed text-ngrams tickets.csv -o tickets.npz      # built in, without weights\n\n\
    Interrupted? Rerun the command to resume: the file is the same to the last bit.")]
pub struct Args {
    /// The encoder: a folder with model.safetensors and config.json, a .safetensors or .onnx file, the address of an
    /// embedding server, or one that is built in (text-ngrams, image-basic)
    encoder: String,
    /// Folders or archives (tar, tar.gz, zip) of images or .txt files, single files, tables (csv, tsv, jsonl, parquet)
    /// with a column of texts or paths, or lists of image paths (txt)
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    /// The feature file to write, NAME.npz
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Layers to write, counted from 0 and separated by commas; x is the last of the list [default: the last layer]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    layers: Option<Vec<usize>>,
    /// Column or key of a table with the labels [default: y, labels, label, class or target]
    #[arg(long, value_name = "NAME")]
    label: Option<String>,
    #[command(flatten)]
    encoding: Encoding,
    #[command(flatten)]
    how: How,
}

pub fn main(args: Args) -> Result<()> {
    on_threads(args.how.threads, || embed(&args))
}

fn embed(args: &Args) -> Result<()> {
    check_out(&args.out, "a feature file", "npz", &args.encoder, &args.inputs)?;
    let started = Instant::now();
    let raw = Raw::open(&args.encoder, args.layers.as_deref(), &args.encoding, args.how.quiet)?;
    let inputs = Inputs::open(&args.inputs, &raw.inputs(args.label.as_deref()))?;
    let features = raw.gather(inputs, Needs::Nothing)?;
    let (samples, computed, dim) = (features.len(), features.computed(), features.dim());
    let (EncodedBy { name, digest }, skipped) = (features.encoder().clone(), features.skipped().to_vec());
    let mut file = Target::create(&args.out)?;
    write_npz(features.columns(), &mut file).with_context(|| format!("cannot write {}", shown(&args.out)))?;
    file.finish()?;
    let seconds = started.elapsed().as_secs_f64();
    let value = json!({
        "encoder": name, "digest": digest, "dim": dim, "layers": args.layers, "samples": samples,
        "computed": computed, "skipped": skipped, "seconds": seconds, "out": crate::model::raw(&args.out),
    });
    let words = format!(
        "{}: {} of {}, {}{} from the cache\n",
        shown(&args.out),
        count(samples, "sample"),
        count(dim, "feature"),
        match computed {
            0 => "0 encoded, ".to_owned(),
            _ => format!("{computed} encoded at {:.1} per second, ", computed as f64 / seconds.max(1e-9)),
        },
        samples - computed,
    );
    Ok(print(&args.how.json, &value, if args.how.quiet { "" } else { &words })?)
}
