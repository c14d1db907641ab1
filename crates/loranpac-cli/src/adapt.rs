//! `loranpac adapt`: train small modules inside an encoder.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::ValueEnum;
use loranpac_data::text::escape;
use loranpac_data::{Split, system};
use loranpac_encode::adapt::{Adapter, HeadKind, Optimiser, SampleOptions, Samples, Settings, Trainer};
use loranpac_encode::{Encoder, InputOptions, Inputs, Limits, ModuleKind, open_transformer};
use serde_json::{Value, json};

use crate::how::{How, check_out};
use crate::model::{on_threads, print, shown};
use crate::progress::Count;
use crate::say::note;
use crate::words::count;

/// Options of `adapt`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    loranpac adapt minilm/ tickets.csv -o tickets.safetensors         # then: embed, init, run ... --adapter FILE\n  \
    loranpac adapt vit/ photos/ -o photos.safetensors --module ssf --classes 10\n\n\
    Interrupted? Rerun the command to resume after the last epoch: the file is the same to the last bit.")]
pub struct Args {
    /// The encoder: a folder with model.safetensors and config.json, or a .safetensors file
    encoder: String,
    /// Labelled images or texts, as embed takes them; of inputs with splits, the training split
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    /// What is trained: adapter (AdaptFormer), lora, vpt-deep, vpt-shallow (prompt tokens) or ssf (scales and shifts)
    #[arg(long, default_value = "adapter", value_name = "NAME", help_heading = "Training", value_parser = kind)]
    module: ModuleKind,
    /// The adapter to write, NAME.safetensors
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
    /// Rate of the first epoch; it falls along a cosine to zero
    #[arg(long, default_value_t = 0.01, value_name = "R", help_heading = "Training", allow_negative_numbers = true)]
    rate: f64,
    /// Samples per step
    #[arg(long, default_value_t = 48, value_name = "N", help_heading = "Training")]
    batch: usize,
    /// Seed of everything random
    #[arg(long, default_value_t = 0, value_name = "S", help_heading = "Training")]
    seed: u64,
    /// How numbers follow their gradients: sgd (momentum 0.9, weight decay 0.0005) or adam
    #[arg(long, value_enum, default_value = "sgd", help_heading = "Training")]
    optimiser: OptimiserArg,
    /// The classifier that is trained with the module, and dropped
    #[arg(long, value_enum, default_value = "cosine", help_heading = "Training")]
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

fn kind(name: &str) -> Result<ModuleKind, String> {
    let known = || ModuleKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
    ModuleKind::from_name(name).ok_or_else(|| format!("one of {} is expected", known()))
}

pub fn main(args: Args) -> Result<()> {
    on_threads(args.how.threads, || adapt(&args))
}

fn adapt(args: &Args) -> Result<()> {
    check_out(&args.out, "an adapter", "safetensors", &args.encoder, &args.inputs)?;
    let settings = settings(args)?;
    let started = Instant::now();
    let transformer = open_transformer(&args.encoder, args.preprocess.as_deref())?;
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
    let room = system::room();
    if !args.how.quiet {
        note!("measuring the encoder as it is");
    }
    let mut trainer =
        Trainer::new(transformer, samples, settings.clone(), room.available.map_or(1 << 30, |bytes| bytes / 2))?;
    room.ensure(trainer.bytes(), "training", "use a smaller --batch, or fewer samples")?;
    let resumed = trainer.resume(&args.out);
    announce(args, &mut trainer, resumed)?;
    train(args, &mut trainer, settings.epochs)?;
    let losses = json!(trainer.epochs());
    let halved = trainer.halved();
    let adapter = trainer.finish()?;
    let written = !args.only_if_better || adapter.outcome.helps() != Some(false);
    if written {
        adapter.write(&args.out)?;
    }
    Trainer::forget(&args.out)?;
    let value = json!({
        "encoder": adapter.encoder, "digest": adapter.digest, "settings": settings, "parameters": adapter.parameters(),
        "outcome": adapter.outcome, "helps": adapter.outcome.helps(), "epochs": losses, "halved": halved, "written": written,
        "seconds": started.elapsed().as_secs_f64(), "out": crate::model::raw(&args.out),
    });
    report(args, &adapter, written, &value)
}

fn settings(args: &Args) -> Result<Settings> {
    let module = match args.size {
        None => args.module,
        Some(size) => match args.module.sized(size) {
            Some(module) => module,
            None => bail!("--size has no effect with --module {}", args.module.name()),
        },
    };
    Ok(Settings {
        module,
        head: match args.head {
            HeadArg::Cosine => HeadKind::Cosine,
            HeadArg::Linear => HeadKind::Linear,
        },
        scale: args.scale,
        optimiser: match args.optimiser {
            OptimiserArg::Sgd => Optimiser::Sgd { momentum: 0.9, decay: 5e-4 },
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

/// Prints what training will cost.
fn announce(args: &Args, trainer: &mut Trainer, resumed: usize) -> Result<()> {
    if args.how.quiet {
        return Ok(());
    }
    let (trained, held_out) = trainer.sizes();
    let classes = trainer.samples().labels().len();
    note!(
        "{} of {} to train on, {held_out} held out; {} to train",
        count(trained, "sample"),
        count(classes, "class"),
        count(trainer.parameters(), "number"),
    );
    if resumed > 0 {
        note!("resuming after epoch {resumed}");
    }
    let epochs = args.epochs.saturating_sub(resumed);
    if trainer.is_done() || epochs == 0 {
        return Ok(());
    }
    // The first step allocates memory.
    trainer.rehearse()?;
    let started = Instant::now();
    trainer.rehearse()?;
    let step = started.elapsed().as_secs_f64();
    note!(
        "about {} for at most {} of {} at {step:.2} s, and {} MiB of memory",
        time(step * (trainer.steps() * epochs) as f64),
        count(epochs, "epoch"),
        count(trainer.steps(), "step"),
        trainer.bytes() >> 20,
    );
    Ok(())
}

/// Trains to the end, with a checkpoint after each epoch.
fn train(args: &Args, trainer: &mut Trainer, epochs: usize) -> Result<()> {
    let (started, before) = (Instant::now(), trainer.epochs().len());
    while !trainer.is_done() {
        let number = trainer.epochs().len() + 1;
        let bar = Count::new(&format!("epoch {number}/{epochs}"), Some(trainer.sizes().0 as u64), args.how.quiet);
        let halved = trainer.halved();
        let batch = args.batch as u64;
        let epoch = trainer.epoch(|_| bar.add(batch))?;
        drop(bar);
        trainer.save(&args.out)?;
        if args.how.quiet {
            continue;
        }
        if trainer.halved() > halved {
            note!("the loss was not finite: the rate is now {} times smaller", 1u32 << trainer.halved());
        }
        let each = started.elapsed().as_secs_f64() / (number - before) as f64;
        let accuracy = epoch.accuracy.map_or(String::new(), |accuracy| format!("  held out {accuracy:.2}%"));
        let left = time(each * (epochs - number) as f64);
        note!("epoch {number}/{epochs}  loss {:.4}{accuracy}  at most {left} left", epoch.loss);
    }
    Ok(())
}

fn report(args: &Args, adapter: &Adapter, written: bool, value: &Value) -> Result<()> {
    let outcome = &adapter.outcome;
    let found = match (outcome.frozen, outcome.adapted) {
        (Some(frozen), Some(adapted)) => format!(
            "held-out accuracy by class means {frozen:.2}% before, {adapted:.2}% after {}{}",
            count(outcome.best, "epoch"),
            if outcome.helps() == Some(true) { "" } else { ": adaptation does not help here" },
        ),
        _ => "no samples were held out, so it is not known whether adaptation helps".to_owned(),
    };
    let place = match written {
        true => format!("{}: {} of {}", shown(&args.out), adapter.settings.module, escape(&adapter.encoder)),
        false => format!("{}: not written", shown(&args.out)),
    };
    let words = format!("{place}; {found}\n");
    Ok(print(&args.how.json, value, if args.how.quiet { "" } else { &words })?)
}

fn time(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{seconds:.0} s"),
        ..5400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
