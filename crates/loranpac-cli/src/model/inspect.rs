//! `loranpac inspect`: the settings, contents and guarantees of a model.

use std::path::PathBuf;

use anyhow::Result;
use loranpac::memory::human_bytes;
use loranpac::{Config, Filter, Prior, Ridge, Width};
use loranpac_data::text::escape;
use loranpac_store::Session;
use loranpac_store::manifest::Manifest;
use serde_json::json;

use super::{ensure_memory, init, on_threads, print, raw, shown};
use crate::faults::with_flags;
use crate::json::Json;
use crate::{table, words};

/// Spectra up to this size are computed without --spectrum.
const QUICK: usize = 2_000;
/// Columns and rows of the sketch.
const SKETCH: (usize, usize) = (60, 8);

/// Options of `inspect`.
#[derive(clap::Args)]
pub struct Args {
    /// The model
    model: PathBuf,
    /// Compute the spectrum of a model of any size
    #[arg(long)]
    spectrum: bool,
    /// List all classes
    #[arg(long)]
    classes: bool,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    json: Json<true>,
}

pub fn main(args: Args) -> Result<()> {
    on_threads(args.threads, || inspect(&args))
}

fn inspect(args: &Args) -> Result<()> {
    let mut model = Session::open(&args.model)?;
    let manifest = model.manifest().clone();
    let rank = manifest.rank();
    let wanted = manifest.samples > 0 && (args.spectrum || (rank <= QUICK && !args.json.is_wanted()));
    let needed = if wanted { manifest.spectrum_bytes() } else { manifest.load_bytes() };
    ensure_memory(&args.model, &manifest, needed)?;
    let spectrum = if wanted { Some(model.spectrum()?) } else { None };
    let summary = match manifest.weights {
        Some(_) => Some(model.prepared()?.summary()),
        None => None,
    };
    let verdict = summary.as_ref().and_then(|summary| summary.verdict());
    let bytes: u64 = manifest.files.values().map(|file| file.bytes).sum();
    let history: Vec<u64> = model.history().iter().map(|old| old.version).filter(|v| *v < manifest.version).collect();
    let value = json!({
        "model": raw(&args.model), "version": manifest.version, "kept_versions": history, "bytes": bytes,
        "files": manifest.files.len(), "sample_bytes": manifest.sample_bytes(),
        "infinite_width_bytes": manifest.infinite_bytes(), "lift": manifest.lift,
        "width_choice": manifest.width_choice, "lift_digest": manifest.lift_digest,
        "config": manifest.config, "encoder": manifest.encoder.name, "encoder_reference": manifest.encoder.reference, "samples": manifest.samples, "basis_rank": rank,
        "classes": manifest.classes.iter().map(|c| json!({ "label": c.label, "samples": c.count })).collect::<Vec<_>>(),
        "prior": manifest.prior, "tasks": manifest.tasks, "calibration": manifest.calibration, "summary": summary, "verdict": verdict,
        "spectrum": spectrum,
    });
    let mut words = describe(&manifest, args, bytes, &history);
    let without = if manifest.prior.is_none() { "" } else { ", and without the prior" };
    if let Some(share) = summary.and_then(|summary| summary.leave_one_out) {
        words +=
            &format!("\nleave-one-out accuracy {:.2}% (each sample scored without itself{})\n", 100.0 * share, without);
    }
    if let Some(verdict) = &verdict {
        words += &format!("\n{}\n", verdict.line);
        verdict
            .warnings
            .iter()
            .for_each(|warning| words += &format!("warning: {}\n", with_flags::<init::Args>(warning)));
    } else if manifest.samples > 0 {
        words += "\nthe classifier has not been formed since the model last changed; predict and learn form it\n";
        if let Some(warning) = manifest.width_warning() {
            words += &format!("warning: {}\n", with_flags::<init::Args>(&warning));
        }
    }
    if let Some(values) = spectrum.filter(|values| !values.is_empty()) {
        words += &format!(
            "\nspectrum: {}, largest first, logarithmic\n{}",
            words::count(rank, "eigenvalue"),
            sketch(&values)
        );
    }
    Ok(print(&args.json, &value, &words)?)
}

fn describe(manifest: &Manifest, args: &Args, bytes: u64, history: &[u64]) -> String {
    let Manifest { lift, config, calibration, tasks, .. } = manifest;
    let filter = match config.filter {
        Filter::Hard { truncation, ridge } if ridge > 0.0 => {
            format!("hard, {}, ridge {ridge}", words::truncation(truncation))
        }
        Filter::Hard { truncation, .. } => format!("hard, {}", words::truncation(truncation)),
        Filter::Soft(Ridge::GeometricMean) => "soft, ridge = geometric mean of the spectrum".to_owned(),
        Filter::Soft(Ridge::LeaveOneOut) => {
            "soft, ridge by leave-one-out accuracy (geometric mean after evictions)".to_owned()
        }
        Filter::Soft(Ridge::Fixed(ridge)) => format!("soft, ridge {ridge}"),
        Filter::Soft(Ridge::Eigenvalue(rule)) => {
            format!("soft, ridge = the eigenvalue at the cut ({})", words::truncation(rule))
        }
    };
    let kept = history.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let kept = if kept.is_empty() { String::new() } else { format!(" (also kept: {kept})") };
    let mut encoder = manifest.encoder.name.clone().unwrap_or_else(|| "not named".to_owned());
    if let Some(reference) = &manifest.encoder.reference {
        let place = reference.location.as_ref().map_or(String::new(), |place| format!(" at {place}"));
        let changes =
            reference.preprocess.as_ref().map_or(String::new(), |changes| format!(", preprocessing {changes}"));
        encoder += &format!("{place}, digest {}...{changes}", reference.digest.get(..12).unwrap_or_default());
        if let Some(adapter) = &reference.adapter {
            let both = if reference.concat { ", features before and after side by side" } else { "" };
            encoder += &format!(", adapted by {adapter}{both}");
        }
    }
    let encoder = escape(&encoder);
    let calibrated = calibration.as_ref().map_or("no temperature fitted".to_owned(), |c| {
        format!(
            "temperature {:.4}, fitted on {} at version {}",
            c.temperature,
            words::count(c.samples, "sample"),
            c.version
        )
    });
    let (lifted, parts) = match manifest.keeps_samples() {
        true => (
            "infinite width, by the arc-cosine kernel: SAMPLES ARE KEPT (not exemplar-free)".to_owned(),
            match config.max_rank < Config::cap(Width::Infinite) {
                true => words::count(config.max_rank, "sample") + " (and a quarter more between cuts)",
                false => "all samples".to_owned(),
            },
        ),
        false => (
            format!("{} to {}, seed {}", escape(&lift.name), words::count(lift.computed(), "feature"), lift.seed),
            words::count(config.max_rank, "direction"),
        ),
    };
    let labelled: usize = manifest.classes.iter().map(|class| class.count).sum();
    let forgotten = match manifest.samples - labelled {
        0 => String::new(),
        count => format!(" ({count} of forgotten classes)"),
    };
    let lifted = lifted + &manifest.width_choice.map_or(String::new(), |choice| format!("\n          {choice}"));
    let mut text = format!(
        "{}, version {}{kept}, {} in {}\n\
         encoder   {encoder}, {}\n\
         lift      {lifted}\n\
         filter    {filter}, {} schedule, at most {parts}\n\
         learned   {}{forgotten} of {} in {}, {}\n\
         size      {}\n\
         scores    {calibrated}\n\
         prior     {}\n",
        shown(&args.model),
        manifest.version,
        human_bytes(bytes as usize),
        words::count(manifest.files.len(), "file"),
        words::count(lift.dim, "feature"),
        words::schedule(config.schedule),
        words::count(manifest.samples, "sample"),
        words::count(manifest.classes.len(), "class"),
        words::count(tasks.len(), "task"),
        super::parts(manifest),
        compared(manifest),
        prior(manifest),
    );
    if let Some(warning) = super::unequal_classes(manifest, &args.model) {
        text += &format!("warning: {warning}\n");
    }
    let shown = if args.classes { manifest.classes.len() } else { 10 };
    if !manifest.classes.is_empty() {
        let mut classes: Vec<_> = manifest.classes.iter().collect();
        classes.sort_by_key(|class| std::cmp::Reverse(class.count));
        let rows: Vec<Vec<String>> =
            classes.iter().take(shown).map(|class| vec![class.label.to_string(), class.count.to_string()]).collect();
        text += &format!("\n{}", table::render(&["class", "samples"], &rows));
        if classes.len() > shown {
            let least = words::count(classes.last().map_or(0, |class| class.count), "sample");
            text += &format!("... {} more, the smallest with {least} (--classes)\n", classes.len() - shown);
        }
    }
    text
}

/// Describes the prior, and the sizes of classes.
fn prior(manifest: &Manifest) -> String {
    let meaning = match &manifest.prior {
        Prior::None => "none: scores as they are".to_owned(),
        Prior::Train => "train: classes are expected as often as in training".to_owned(),
        Prior::Uniform => "uniform: classes are expected equally often".to_owned(),
        Prior::Table(table) => format!("a table of {}", words::count(table.len(), "class")),
    };
    let sizes = manifest.classes.iter().map(|class| class.count);
    match sizes.clone().min().zip(sizes.max()) {
        Some((least, most)) if least < most => format!("{meaning}; classes have from {least} to {most} samples"),
        Some((same, _)) => format!("{meaning}; each class has {}", words::count(same, "sample")),
        None => meaning,
    }
}

/// Compares the size of the model with that of its samples, and of one of infinite width.
fn compared(manifest: &Manifest) -> String {
    let samples = format!("the samples alone take {} in single precision", human_bytes(manifest.sample_bytes()));
    match manifest.keeps_samples() {
        true => samples,
        false => {
            format!(
                "{samples}; at infinite width the model keeps them and takes {}",
                human_bytes(manifest.infinite_bytes())
            )
        }
    }
}

/// Sketches eigenvalues in the terminal: one column per group, with logarithmic height.
fn sketch(values: &[f64]) -> String {
    let (columns, rows) = SKETCH;
    let largest = values[0].max(f64::MIN_POSITIVE);
    let logs: Vec<f64> = values.iter().map(|v| (v.max(largest * 1e-16) / largest).log10()).collect();
    let lowest = logs.iter().copied().fold(0.0, f64::min).min(-1e-9);
    let columns = columns.min(logs.len());
    let height = |column: usize| {
        let at = column * (logs.len() - 1) / (columns - 1).max(1);
        (1.0 - logs[at] / lowest) * rows as f64
    };
    let blocks = [' ', '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];
    let mut text = String::new();
    for row in (0..rows).rev() {
        let cell = |column: usize| blocks[((height(column) - row as f64) * 8.0).clamp(0.0, 8.0) as usize];
        let line: String = (0..columns).map(cell).collect();
        let label = match row {
            _ if row + 1 == rows => format!("{largest:.1e}"),
            0 => format!("{:.1e}", largest * 10f64.powf(lowest)),
            _ => String::new(),
        };
        text += &format!("  {label:>8} {}\n", line.trim_end());
    }
    text
}
