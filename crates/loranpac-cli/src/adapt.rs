//! `loranpac adapt`: train small modules inside an encoder.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use loranpac_data::Split;
use loranpac_data::text::escape;
use loranpac_encode::adapt::{Event, HeadKind, Job, Optimiser, SampleOptions, Samples, Settings, Trained};
use loranpac_encode::{Encoder, InputOptions, Inputs, Limits, ModuleKind, open_transformer};
use serde_json::json;

use crate::how::{How, check_out};
use crate::model::{on_threads, print, shown};
use crate::progress::Count;
use crate::say::note;

/// Options of `adapt`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    loranpac adapt minilm/ tickets.csv -o tickets.safetensors\n  \
    loranpac init tickets.lrp --encoder minilm/ --adapter tickets.safetensors     # embed and run take --adapter as well\n  \
    loranpac adapt vit/ photos/ -o photos.safetensors --module ssf --classes 10\n\n\
    Interrupted? Rerun the command to resume after the last epoch: the file is the same to the last bit.")]
pub struct Args {
    /// The encoder: a folder with model.safetensors and config.json, or a .safetensors file
    encoder: String,
    /// Labelled images or texts, as embed takes them; of inputs with splits, the training split
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    /// What is trained: adapter (AdaptFormer), lora, vpt-deep, vpt-shallow (prompt tokens) or ssf (scales and shifts)
    #[arg(long, default_value = "adapter", value_name = "NAME", help_heading = "Training", value_parser = names())]
    module: String,
    /// The adapter to write, NAME.safetensors; an existing file is replaced when training has ended
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Features of the bottleneck, rank, or tokens [default: 64, 8 or 5]
    #[arg(long, value_name = "N", help_heading = "Training")]
    size: Option<usize>,
    /// Train on the first N classes only, in order of appearance: those of a first session
    #[arg(long, value_name = "N")]
    classes: Option<usize>,
    /// Most epochs
    #[arg(long, default_value_t = 20, value_name = "N", help_heading = "Training")]
    epochs: usize,
    /// Learning rate of the first epoch; it falls along a cosine to zero
    #[arg(long, default_value_t = 0.01, value_name = "R", help_heading = "Training", allow_negative_numbers = true)]
    rate: f64,
    /// Samples per step
    #[arg(long, default_value_t = 48, value_name = "N", help_heading = "Training")]
    batch: usize,
    /// Seed of everything random
    #[arg(long, default_value_t = 0, value_name = "S", help_heading = "Training")]
    seed: u64,
    /// The optimiser: sgd (momentum 0.9, weight decay 0.0005) or adam
    #[arg(long, value_enum, default_value = "sgd", value_name = "NAME", help_heading = "Training")]
    optimiser: OptimiserArg,
    /// The classifier that is trained with the module, and dropped
    #[arg(long, value_enum, default_value = "cosine", value_name = "NAME", help_heading = "Training")]
    head: HeadArg,
    /// Scale of a cosine classifier before training; a larger one makes gradients larger
    #[arg(long, default_value_t = 1.0, value_name = "S", help_heading = "Training", allow_negative_numbers = true)]
    scale: f64,
    /// Hold out one in N samples of each class that has N; 0: none
    #[arg(long, default_value_t = 5, value_name = "N", help_heading = "Training")]
    held_out: usize,
    /// Stop after N epochs without a better accuracy of held-out samples; 0: never
    #[arg(long, default_value_t = 5, value_name = "N", help_heading = "Training")]
    patience: usize,
    /// Do not crop and mirror images at random
    #[arg(long, help_heading = "Training")]
    no_augment: bool,
    /// Write no file unless held-out samples are classified better than without adaptation
    #[arg(long)]
    only_if_better: bool,
    /// Column or key of a table with the labels [default: y, labels, label, class or target]
    #[arg(long, value_name = "NAME")]
    label: Option<String>,
    /// Column or key of a table with the texts, or with paths of images
    #[arg(long, value_name = "NAME", help_heading = "Encoder")]
    text: Option<String>,
    /// Preprocessing of images, as in embed [default: the encoder's own]
    #[arg(long, value_name = "SETTINGS", help_heading = "Encoder")]
    preprocess: Option<String>,
    /// Skip inputs that cannot be read, and list them
    #[arg(long, help_heading = "Encoder")]
    skip_bad: bool,
    #[command(flatten)]
    how: How,
}

#[derive(Clone, Copy, ValueEnum)]
enum OptimiserArg {
    Sgd,
    Adam,
}

#[derive(Clone, Copy, ValueEnum)]
enum HeadArg {
    Cosine,
    Linear,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(ModuleKind::ALL.iter().map(|kind| kind.name()))
}

pub fn main(args: Args) -> Result<()> {
    on_threads(args.how.threads, || adapt(&args))
}

fn adapt(args: &Args) -> Result<()> {
    check_out(&args.out, "an adapter", "safetensors", &args.encoder, &args.inputs)?;
    let settings = settings(args)?;
    let started = Instant::now();
    let job = Job::new(&args.out)?;
    let transformer = open_transformer(&args.encoder, args.preprocess.as_deref())?;
    settings.check(transformer.dim())?;
    if let Some(classes @ 0..2) = args.classes {
        bail!("--classes {classes}: adaptation needs samples of two classes or more");
    }
    let options = InputOptions {
        column: args.text.clone(),
        label: args.label.clone(),
        split: Some(Split::Train),
        skip_bad: args.skip_bad,
        ..InputOptions::new(transformer.modality())
    };
    let inputs = Inputs::open(&args.inputs, &options)?;
    let options = SampleOptions { classes: args.classes, skip_bad: args.skip_bad, limits: Limits::default() };
    let samples = Samples::read(inputs, &transformer, options)?;
    samples.skipped().iter().for_each(|reason| note!("skipped: {}", escape(&reason.to_string())));
    let quiet = args.how.quiet;
    if !quiet {
        note!("measuring the encoder as it is");
    }
    let mut bar: Option<Count> = None;
    let mut count = 0;
    let trained = job.run(transformer, samples, settings, args.only_if_better, !quiet, |event| match event {
        _ if quiet => {}
        Event::Step(step) => {
            let name = format!("epoch {}/{}", step.epoch, args.epochs);
            bar.get_or_insert_with(|| Count::new(&name, Some(count), false)).add(args.batch as u64);
        }
        other => {
            if let Event::Start { sizes, .. } = &other {
                count = sizes[0] as u64;
            }
            bar = None;
            other.to_string().lines().for_each(|line| note!("{line}"));
        }
    });
    drop(bar);
    report(args, &trained?, started.elapsed().as_secs_f64())
}

fn settings(args: &Args) -> Result<Settings> {
    Ok(Settings {
        module: Settings::module_of(&args.module, args.size)?,
        head: match args.head {
            HeadArg::Cosine => HeadKind::Cosine,
            HeadArg::Linear => HeadKind::Linear,
        },
        scale: args.scale,
        optimiser: match args.optimiser {
            OptimiserArg::Sgd => Optimiser::SGD,
            OptimiserArg::Adam => Optimiser::ADAM,
        },
        rate: args.rate,
        epochs: args.epochs,
        batch: args.batch,
        seed: args.seed,
        held_out: args.held_out,
        patience: args.patience,
        augment: !args.no_augment,
    })
}

fn report(args: &Args, trained: &Trained, seconds: f64) -> Result<()> {
    let mut value = trained.json();
    value["seconds"] = json!(seconds);
    value["out"] = json!(crate::model::raw(&args.out));
    let (adapter, out) = (&trained.adapter, shown(&args.out));
    let place = match trained.written {
        true => format!("{out}: {} for the encoder {}", adapter.settings.module, escape(&adapter.encoder)),
        false if args.out.exists() => format!("{out}: not written; the file of that name is an older one"),
        false => format!("{out}: not written"),
    };
    let next = match trained.written && adapter.outcome.helps() != Some(false) {
        true => format!("Next: loranpac init MODEL --encoder {} --adapter {out}\n", escape(&args.encoder)),
        false => String::new(),
    };
    let words = format!("{place}; {trained}\n{next}");
    Ok(print(&args.how.json, &value, if args.how.quiet { "" } else { &words })?)
}
