//! `loranpac embed`: images or texts in, a feature file out.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use loranpac::{Label, memory};
use loranpac_data::formats::{Column, to_npz};
use loranpac_data::text::escape;
use loranpac_data::{Split, atomic};
use loranpac_encode::{Embedding, EmbeddingOptions, Encoder, InputOptions, Inputs, Limits, Tags, hex};
use serde_json::json;

use crate::encoding::Encoding;
use crate::file;
use crate::json::Json;
use crate::model::{on_threads, print, shown};
use crate::progress::Count;
use crate::say::note;
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
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    json: Json<true>,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

/// The longest label, domain or name in bytes: an array of strings has the length of the longest for each.
const LONGEST: usize = 4096;

/// The features of one split, and what is known about its samples.
#[derive(Default)]
struct Part {
    x: Vec<f32>,
    labels: Vec<Option<Label>>,
    domains: Vec<Option<Label>>,
    names: Vec<Label>,
}

pub fn main(args: Args) -> Result<()> {
    on_threads(args.threads, || embed(&args))
}

fn embed(args: &Args) -> Result<()> {
    if args.out.extension().is_none_or(|e| e != "npz") {
        bail!("{}: the name of a feature file must end with .npz", shown(&args.out));
    }
    let place = |path: &Path| path.canonicalize().ok();
    let sources = args.inputs.iter().map(PathBuf::as_path).chain([Path::new(&args.encoder)]);
    if let Some(out) = place(&args.out)
        && sources.filter_map(place).any(|source| source == out)
    {
        bail!("{}: it is an input of the command", shown(&args.out));
    }
    if !atomic::parent(&args.out).is_dir() {
        bail!("{}: its folder does not exist", shown(&args.out));
    }
    let started = Instant::now();
    let encoder: Arc<dyn Encoder> = args.encoding.open(&args.encoder)?;
    let options = InputOptions {
        column: args.encoding.text.clone(),
        label: args.label.clone(),
        skip_bad: args.encoding.skip_bad,
        ..InputOptions::new(encoder.modality())
    };
    let inputs = Inputs::open(&args.inputs, &options)?;
    let cache = args.encoding.cache(&*encoder, args.layers.as_deref())?;
    let layers = args.layers.clone();
    let options = EmbeddingOptions { layers, skip_bad: args.encoding.skip_bad, limits: Limits::default() };
    let mut embedding = Embedding::new(inputs, encoder.clone(), cache, options)?;
    let bar = Count::new(&args.encoder, embedding.count_hint().map(|count| count as u64), args.quiet);
    // Samples without a split, training samples and test samples.
    let mut parts: [Part; 3] = Default::default();
    let row = embedding.row();
    while let Some(encoded) = embedding.next_batch()? {
        bar.add(encoded.names.len() as u64);
        let rows = encoded.features.chunks_exact(row);
        for ((name, Tags { label, split, domain }), x) in encoded.names.into_iter().zip(encoded.tags).zip(rows) {
            let part = &mut parts[match split {
                None => 0,
                Some(Split::Train) => 1,
                Some(Split::Test) => 2,
            }];
            let long = |label: &Label| matches!(label, Label::Text(text) if text.len() > LONGEST);
            if name.len() > LONGEST || label.iter().chain(&domain).any(long) {
                bail!("{}: a label, a domain or a name is longer than {LONGEST} bytes", shorten(&name));
            }
            memory::grow(&mut part.x, row)?;
            part.x.extend_from_slice(x);
            part.labels.push(label);
            part.domains.push(domain);
            part.names.push(Label::Text(name));
        }
    }
    drop(bar);
    let other = |name: &str| format!("{name}: not a kind of file that this encoder reads");
    let mut skipped: Vec<String> = embedding.other_files().map(other).collect();
    skipped.extend(embedding.skipped().iter().map(ToString::to_string));
    skipped.iter().for_each(|reason| note!("skipped: {}", escape(reason)));
    let samples: usize = parts.iter().map(|part| part.names.len()).sum();
    if samples == 0 {
        bail!("none of the inputs can be used");
    }
    if let (Some(name), true) = (parts[0].names.first(), parts[1..].iter().any(|part| !part.names.is_empty())) {
        bail!("{name}: no split, but other inputs have one");
    }
    parts_of_one_type(&mut parts);
    let digest = hex(&encoder.digest());
    let mut columns = vec![("encoder".to_owned(), Column::Labels(vec![encoder.name().into(), digest.clone().into()]))];
    for (part, suffix) in parts.into_iter().zip(["", "_train", "_test"]).filter(|(part, _)| !part.names.is_empty()) {
        columns.extend(arrays(part, suffix, &*encoder, args.layers.as_deref())?);
    }
    file::write(&args.out, to_npz(&columns)?)?;
    let seconds = started.elapsed().as_secs_f64();
    let (computed, dim) = (embedding.computed(), encoder.dim());
    let value = json!({
        "encoder": encoder.name(), "digest": digest, "dim": dim, "layers": args.layers, "samples": samples,
        "computed": computed, "skipped": skipped, "seconds": seconds, "out": crate::model::raw(&args.out),
    });
    let words = format!(
        "{}: {} of {}, {} encoded at {:.1} per second, {} from the cache\n",
        shown(&args.out),
        count(samples, "sample"),
        count(dim, "feature"),
        computed,
        computed as f64 / seconds.max(1e-9),
        samples - computed,
    );
    Ok(print(&args.json, &value, if args.quiet { "" } else { &words })?)
}

/// Makes all labels texts if one of them is, and the same for domains: 1 and "1" are different classes.
fn parts_of_one_type(parts: &mut [Part]) {
    fn unify(tags: Vec<&mut Label>) {
        if tags.iter().any(|label| matches!(label, Label::Text(_))) {
            tags.into_iter().for_each(|label| *label = Label::Text(label.to_string()));
        }
    }
    unify(parts.iter_mut().flat_map(|part| &mut part.labels).flatten().collect());
    unify(parts.iter_mut().flat_map(|part| &mut part.domains).flatten().collect());
}

/// The beginning of a name.
fn shorten(name: &str) -> String {
    name.chars().take(80).collect()
}

/// The arrays of one split: features, labels, domains and names. Several layers have an array each, and `x` is the last.
fn arrays(part: Part, suffix: &str, encoder: &dyn Encoder, layers: Option<&[usize]>) -> Result<Vec<(String, Column)>> {
    let dim = encoder.dim();
    let layers = layers.unwrap_or_default();
    let row = dim * layers.len().max(1);
    let layer = |at: usize| part.x.chunks_exact(row).flat_map(|x| &x[at * dim..(at + 1) * dim]).copied().collect();
    let mut arrays = vec![(format!("x{suffix}"), Column::Matrix(dim, layer(layers.len().max(1) - 1)))];
    if layers.len() > 1 {
        let named =
            |(at, number): (usize, &usize)| (format!("x{suffix}_layer{number}"), Column::Matrix(dim, layer(at)));
        arrays.extend(layers.iter().enumerate().map(named));
    }
    for (tags, name) in [(part.labels, "y"), (part.domains, "domain")] {
        if let Some(missing) = tags.iter().position(Option::is_none).filter(|_| tags.iter().any(Option::is_some)) {
            bail!(
                "{}: no {}, but other inputs have one",
                part.names[missing],
                if name == "y" { "label" } else { name }
            );
        }
        let tags: Vec<Label> = tags.into_iter().flatten().collect();
        if !tags.is_empty() {
            arrays.push((format!("{name}{suffix}"), Column::Labels(tags)));
        }
    }
    arrays.push((format!("name{suffix}"), Column::Labels(part.names)));
    Ok(arrays)
}
