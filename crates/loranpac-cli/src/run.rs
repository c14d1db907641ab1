//! `loranpac run`: a continual-learning experiment on a feature file.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{ArgGroup, ValueEnum};
use loranpac::lift;
use loranpac::memory::human_bytes;
use loranpac::registry::{self, Input, METHODS, Method};
use loranpac::{Schedule, Truncation};
use loranpac_bench::chart::thousands;
use loranpac_bench::origin::Origin;
use loranpac_bench::plan::{Given, Maps};
use loranpac_bench::report::{self, MethodSummary, mean_and_spread};
use loranpac_bench::run::{Experiment, Run, SCHEMA};
use loranpac_bench::spec::{DEFAULT_MAX_RANK, Order, Spec, When, Width};
use loranpac_bench::stream::{self, Scenario};
use loranpac_bench::sweep::Source;
use loranpac_data::Dataset;
use loranpac_data::formats;
use loranpac_data::system;
use loranpac_data::text::{escape, escape_markdown};
use serde_json::json;

use crate::progress::Bar;
use crate::say::{self, note};
use crate::{command_line, stability, table, threads};

/// Options of `run`.
#[derive(clap::Args)]
#[command(
    after_help = "Example:  loranpac run --data features.npz --method loranpac,loranpac-soft --inc 10 --width 10000",
    group = ArgGroup::new("truncation").args(["truncate", "threshold", "rank"]),
    group = ArgGroup::new("cap").args(["max_rank", "memory"]),
)]
pub struct Args {
    /// Feature file (.npz, .safetensors, or a folder of .npy) with x_train, y_train, x_test, y_test; digits for those inside
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    pub(crate) data: PathBuf,
    /// Use the first N training samples of each class, in file order
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub(crate) per_class: Option<usize>,

    /// Methods, separated by commas, or all
    #[arg(long, value_delimiter = ',', default_value = "loranpac", value_name = "NAME", help = method_help(), help_heading = "Method")]
    method: Vec<String>,
    /// A setting of the method, e.g. --set ridge=1e4
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value, help_heading = "Method")]
    settings: Vec<(String, String)>,
    /// Cut this share of the directions, the paper's zeta, in [0, 1) [default: 0.25; soft: a ridge instead of a cut]
    #[arg(long, value_name = "Z", allow_negative_numbers = true, help_heading = "Method")]
    truncate: Option<f64>,
    /// Cut eigenvalues below this instead
    #[arg(long, value_name = "D", allow_negative_numbers = true, help_heading = "Method")]
    threshold: Option<f64>,
    /// Keep this many directions instead
    #[arg(long, value_name = "K", help_heading = "Method")]
    rank: Option<usize>,
    /// Keep at most R directions, the paper's r_max [default: 10000]
    #[arg(long, value_name = "R", help_heading = "Method")]
    max_rank: Option<usize>,
    /// Memory that the process may use, e.g. 2G, the data and the program included: chooses --max-rank
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "Method")]
    memory: Option<usize>,
    /// When to cut the spectrum: when the classifier is formed, or after every task as in the paper's Algorithm 4
    #[arg(long, value_enum, default_value = "late", help_heading = "Method")]
    schedule: ScheduleArg,

    /// Feature map
    #[arg(long, default_value = "relu-random", value_name = "NAME", help = lift_help(), help_heading = "Lift")]
    lift: String,
    /// Width of the lifted features, or `infinite`: exact by their kernel, but samples are kept
    #[arg(long, default_value = "10000", value_name = "E", help_heading = "Lift")]
    width: Width,
    /// Seed of the random projection
    #[arg(long, default_value_t = 0, value_name = "S", help_heading = "Lift")]
    lift_seed: u64,
    /// Take the projection from a .npy file (E x d) instead of the seed; gives the width too
    #[arg(long, value_name = "FILE", help_heading = "Lift")]
    projection: Option<PathBuf>,
    /// Inverse width of the kernel behind fourier features: exp(-G |x - z|^2) of unit vectors
    #[arg(long, default_value_t = lift::DEFAULT_GAMMA, value_name = "G", help_heading = "Lift")]
    gamma: f64,
    /// Generate the projection again for every batch instead of keeping it: slower, saves 4 E d bytes
    #[arg(long, help_heading = "Lift")]
    regenerate: bool,

    /// How samples become tasks: new classes, new domains, or all at once
    #[arg(long, value_enum, default_value = "class", help_heading = "Protocol")]
    scenario: ScenarioArg,
    /// Classes in the first task; 0 for as many as in the others (B-q1)
    #[arg(long, default_value_t = 0, value_name = "N", help_heading = "Protocol")]
    base: usize,
    /// Classes in each task (Inc-q2)
    #[arg(long, default_value_t = 10, value_name = "N", help_heading = "Protocol")]
    inc: usize,
    /// Class order, as NumPy's legacy generator shuffles for this seed; several, separated by commas, for several runs
    #[arg(long, value_delimiter = ',', default_value = "1993", value_name = "S", help_heading = "Protocol")]
    seed: Vec<u32>,
    /// Class order: a file with one label per line, a list separated by commas, or sorted
    #[arg(long, value_name = "FILE", conflicts_with = "seed", help_heading = "Protocol")]
    order: Option<PathBuf>,
    /// Form and evaluate the classifier after every task, or at the end
    #[arg(long, value_enum, default_value = "every", help_heading = "Protocol")]
    eval: WhenArg,
    /// Measure the error on all training samples so far, which the learner itself no longer has
    #[arg(long, value_enum, value_name = "WHEN", help_heading = "Protocol")]
    train_loss: Option<WhenArg>,
    /// Record the eigenvalues of the feature Gram matrix, for methods that keep it
    #[arg(long, value_enum, value_name = "WHEN", help_heading = "Protocol")]
    spectrum: Option<WhenArg>,

    /// Vary zeta, lambda, E and the classes per task, one at a time, and report how much the final accuracy depends on each
    #[arg(long, conflicts_with_all = ["eval", "train_loss", "spectrum", "projection", "memory", "regenerate"], help_heading = "Protocol")]
    stability: bool,

    /// Threads [default: all cores]
    #[arg(long, value_name = "N", help_heading = "Output")]
    threads: Option<usize>,
    /// Write the results as JSON to a file, or to standard output with -
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) json: Option<PathBuf>,
    /// Write a report into this folder: run.json, report.md and pictures
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
    /// Print no tables and no progress
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ScheduleArg {
    Late,
    Paper,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum ScenarioArg {
    Class,
    Domain,
    Joint,
}

#[derive(Clone, Copy, ValueEnum)]
enum WhenArg {
    Every,
    Final,
}

impl From<WhenArg> for When {
    fn from(arg: WhenArg) -> When {
        match arg {
            WhenArg::Every => When::Every,
            WhenArg::Final => When::Final,
        }
    }
}

pub fn main(args: Args) -> Result<()> {
    let threads = threads(args.threads)?;
    let pool = crate::model::pool(threads)?;
    if args.stability {
        return pool.install(|| stability::main(&args, threads));
    }
    let runs = pool.install(|| run_all(&args, threads))?;
    if args.to_stdout() {
        say::json(&to_json(&runs)?)?;
    } else if !args.quiet {
        say::lines(&tables(&runs))?;
    }
    if !args.quiet {
        for (method, verdict) in report::verdicts(&runs) {
            verdict.warnings.iter().for_each(|warning| note!("warning: {method}: {warning}"));
        }
    }
    Ok(())
}

impl Args {
    pub(crate) fn to_stdout(&self) -> bool {
        self.json.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// Where the data are.
    pub(crate) fn source(&self) -> Source {
        let embedded = self.data.as_os_str() == "digits" && !self.data.exists();
        if embedded { Source::embedded() } else { Source::file_at(&self.data) }
    }

    /// Writes the files that were asked for, with the runs so far: nothing finished is lost if a later run fails.
    fn save(&self, runs: &[Run]) -> Result<()> {
        if let Some(path) = self.json.as_ref().filter(|_| !self.to_stdout()) {
            write(path, &to_json(runs)?)?;
        }
        if let Some(folder) = &self.report {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            write(&folder.join("run.json"), &to_json(runs)?)?;
            write(&folder.join("report.md"), &markdown(runs))?;
            write(&folder.join("accuracy.svg"), &report::accuracy_svg(runs, &title(runs)))?;
            if let Some(svg) = report::certificate_svg(runs, &title(runs)) {
                write(&folder.join("certificate.svg"), &svg)?;
            }
        }
        Ok(())
    }
}

fn to_json(runs: &[Run]) -> Result<String> {
    Ok(serde_json::to_string_pretty(&json!({ "schema": SCHEMA, "runs": runs }))? + "\n")
}

pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// What was run, in one line.
fn title(runs: &[Run]) -> String {
    let Some(run) = runs.first() else { return String::new() };
    let width = run.config.lift.as_ref().map_or(String::new(), |lift| match lift.width {
        Some(width) => format!(", E = {}", thousands(width)),
        None => ", infinite width (samples are kept)".to_owned(),
    });
    format!("{}, {} classes in {} tasks{width}", run.dataset.name, run.dataset.classes, run.tasks.len())
}

fn markdown(runs: &[Run]) -> String {
    let table = report::markdown(runs);
    let mut text = format!("# {}\n\n{table}\n![Accuracy over tasks](accuracy.svg)\n", escape_markdown(&title(runs)));
    let verdicts = report::verdicts(runs);
    if !verdicts.is_empty() {
        text.push_str("\n## What the models can promise\n\n");
        for (method, verdict) in verdicts {
            text.push_str(&format!("- `{method}`: {}\n", verdict.line));
            verdict.warnings.iter().for_each(|warning| text.push_str(&format!("  - warning: {warning}\n")));
        }
        text.push_str("\n![Certificates over tasks](certificate.svg)\n");
    }
    let command = format!("loranpac {}", command_line());
    text + &Origin::here(&command, runs.iter().map(|run| run.config.threads)).markdown()
}

impl Args {
    fn is_infinite(&self) -> bool {
        self.width == Width::Infinite || self.lift == lift::ArcCosine::NAME
    }
}

/// The methods, and what the options say about all of their runs. What can be refused without the data is refused here.
pub(crate) fn specify(args: &Args) -> Result<(Vec<&'static Method>, Spec)> {
    let methods = with_width(methods(args)?, args)?;
    let truncation = truncation(args, &methods)?;
    check_settings(args, &methods)?;
    let infinite = args.is_infinite();
    if infinite && ![lift::LIFTS[0].name, lift::ArcCosine::NAME].contains(&args.lift.as_str()) {
        bail!("--width infinite does not go with --lift {}: it is the limit of {}", args.lift, lift::LIFTS[0].name);
    }
    if infinite && (args.lift_seed != 0 || args.regenerate) {
        bail!("--lift-seed and --regenerate mean nothing at infinite width: nothing is drawn");
    }
    if matches!(args.schedule, ScheduleArg::Paper) && !methods.iter().any(|method| method.cuts) {
        bail!("--schedule paper means nothing to {}, which never cuts the spectrum", args.method.join(", "));
    }
    if args.per_class == Some(0) {
        bail!("--per-class 0 leaves no samples");
    }
    if args.projection.is_some() && (infinite || !lift::find(&args.lift)?.projection.is_drawn()) {
        bail!("--projection does not go with --lift {}, which has no projection", args.lift);
    }
    let mut common = Spec {
        settings: args.settings.iter().cloned().collect(),
        truncation,
        schedule: match args.schedule {
            ScheduleArg::Late => Schedule::Late,
            ScheduleArg::Paper => Schedule::Paper,
        },
        max_rank: args.max_rank.unwrap_or(DEFAULT_MAX_RANK),
        lift: args.lift.clone(),
        lift_seed: args.lift_seed,
        gamma: args.gamma,
        scenario: match args.scenario {
            ScenarioArg::Class => Scenario::Class { base: args.base, increment: args.inc },
            ScenarioArg::Domain => Scenario::Domain,
            ScenarioArg::Joint => Scenario::Joint,
        },
        per_class: args.per_class,
        eval: args.eval.into(),
        train_loss: args.train_loss.map_or(When::Never, When::from),
        spectrum: args.spectrum.map_or(When::Never, When::from),
        ..Spec::new("")
    };
    common.widen(args.width);
    Ok((methods, common))
}

fn run_all(args: &Args, threads: usize) -> Result<Vec<Run>> {
    let (methods, common) = specify(args)?;
    let mut dataset = args.source().open()?;
    if let Some(count) = args.per_class {
        dataset.limit_per_class(count);
    }
    let mut streams = Vec::new();
    for (seed, order) in orders(args)? {
        let spec = Spec { seed, order, ..Spec::new("") };
        let place = || args.order.as_ref().map_or(String::new(), |path| path.display().to_string());
        let order = stream::order_of(&dataset, &spec).with_context(place)?;
        streams.push((spec.seed, spec.order, stream::tasks(&dataset, common.scenario, &order)?));
    }
    let wants_layers = methods.iter().any(|method| method.input == Input::Layers);
    let stacked = if wants_layers { dataset.with_layers() } else { None };
    let methods = with_data_for(methods, stacked.as_ref(), args)?;
    let sizes = stream::sizes(&dataset, streams.iter().flat_map(|(.., tasks)| tasks));
    let data_of = |method: &Method| stacked.as_ref().filter(|_| method.input == Input::Layers).unwrap_or(&dataset);
    let (given, width) = projection(args, &dataset)?;
    let mut common = common;
    width.into_iter().for_each(|width| common.widen(width));
    let mut maps = Maps::new(!args.regenerate, given);
    let mut plan = Vec::new();
    for method in &methods {
        let spec = Spec { method: method.name.to_owned(), ..common.clone() }.normalised()?;
        plan.push((spec, data_of(method).dim));
    }
    let left = args.memory.map(left_for_model).transpose()?;
    let checked = maps.check(&mut plan, &sizes, left);
    match args.memory.zip(left) {
        Some((budget, left)) => checked
            .with_context(|| format!("--memory {} leaves {} to the model", human_bytes(budget), human_bytes(left)))?,
        None => checked?,
    }
    let mut runs = Vec::new();
    args.save(&runs)?; // An unwritable path shows now, not after hours.
    for (seed, order, tasks) in &streams {
        for (spec, dim) in &plan {
            let spec = Spec { seed: *seed, order: order.clone(), ..spec.clone() };
            let (method, map) = (spec.method()?, maps.get(&spec, *dim)?);
            let lift = maps.facts(&spec, &*map)?;
            let experiment = Experiment { spec: &spec, method, options: spec.options(map), lift, tasks, threads };
            let bar = Bar::new(method.name, args.quiet);
            runs.push(experiment.run(data_of(method), &mut |progress| {
                bar.update(progress);
                ControlFlow::Continue(())
            })?);
            drop(bar);
            args.save(&runs)?;
        }
    }
    Ok(runs)
}

/// One part in so many of a budget goes to the allocator's gaps and to threads: measured, the process holds up to a fifth
/// more than the arrays that are counted.
const OVERHEAD: usize = 4;

/// What a budget for the whole process leaves to a model: all but that part and what the program and the data hold.
fn left_for_model(budget: usize) -> Result<usize> {
    let held = system::resident_memory().map_or(0, |bytes| bytes as usize);
    match (budget - budget / OVERHEAD).checked_sub(held) {
        Some(left) if left > 0 => Ok(left),
        _ => bail!(
            "--memory {} is too little: the program and the data hold {} before anything is learned",
            human_bytes(budget),
            human_bytes(held)
        ),
    }
}

/// The methods by name; `all` is all of them.
fn methods(args: &Args) -> Result<Vec<&'static Method>> {
    let mut methods: Vec<&Method> = Vec::new();
    for name in &args.method {
        let named = if name == "all" { METHODS.iter().collect() } else { vec![registry::find(name)?] };
        for method in named {
            if !methods.iter().any(|other| other.name == method.name) {
                methods.push(method);
            }
        }
    }
    Ok(methods)
}

/// Leaves out methods that have no infinite width if that was asked for and they were meant by `all`; refuses them if they
/// were named.
fn with_width(methods: Vec<&'static Method>, args: &Args) -> Result<Vec<&'static Method>> {
    let able = |method: &&Method| !args.is_infinite() || method.infinite || !method.input.lifted();
    let (fit, unfit): (Vec<_>, Vec<_>) = methods.into_iter().partition(able);
    let named = unfit.iter().find(|method| args.method.iter().any(|given| given == method.name));
    if let Some(method) = named {
        let able: Vec<&str> = METHODS.iter().filter(|method| method.infinite).map(|method| method.name).collect();
        bail!("--width infinite is for {}; {} needs lifted features", able.join(" and "), method.name);
    }
    if !unfit.is_empty() && !args.quiet {
        let names: Vec<&str> = unfit.iter().map(|method| method.name).collect();
        note!("note: left out, because they have no infinite width: {}", names.join(", "));
    }
    Ok(fit)
}

/// Leaves out methods for which the file has no data if they were meant by `all`; refuses them if they were named.
pub(crate) fn with_data_for<'a>(
    methods: Vec<&'a Method>,
    stacked: Option<&Dataset>,
    args: &Args,
) -> Result<Vec<&'a Method>> {
    let (fit, unfit): (Vec<_>, Vec<_>) =
        methods.into_iter().partition(|method| method.input != Input::Layers || stacked.is_some());
    for method in unfit {
        let name = method.name;
        if args.method.iter().any(|given| given == name) {
            bail!("{name} needs the features of several layers: arrays x_train_layer* and x_test_layer* in the file");
        }
        if !args.quiet {
            note!("note: {name} is left out, because the file has no arrays x_train_layer*");
        }
    }
    Ok(fit)
}

/// The projection from a file, if one was given, and the width that it has.
fn projection(args: &Args, dataset: &Dataset) -> Result<(Option<Given>, Option<Width>)> {
    let Some(path) = &args.projection else { return Ok((None, None)) };
    let (values, rows, dim) = formats::read_npy(path)?.into_features().with_context(|| path.display().to_string())?;
    if dim != dataset.dim {
        bail!("{} is {rows} x {dim}, but the data has {} features", path.display(), dataset.dim);
    }
    let width = lift::find(&args.lift)?.projection.width(dim, rows);
    Ok((Some(Given { lift: args.lift.clone(), values }), Some(Width::Finite(width))))
}

/// The truncation that was asked for, if any of the methods can use one.
fn truncation(args: &Args, methods: &[&Method]) -> Result<Option<Truncation>> {
    let truncation = match (args.truncate, args.threshold, args.rank) {
        (Some(zeta), _, _) => Truncation::Fraction(zeta),
        (_, Some(delta), _) => Truncation::Threshold(delta),
        (_, _, Some(rank)) => Truncation::Rank(rank),
        _ => return Ok(None),
    };
    if !methods.iter().any(|method| method.truncates) {
        bail!("--truncate, --threshold and --rank mean nothing to {}", args.method.join(", "));
    }
    Ok(Some(truncation.validate()?))
}

/// A setting that no method knows is a mistake; one that some do not know is not theirs.
fn check_settings(args: &Args, methods: &[&Method]) -> Result<()> {
    for (name, _) in &args.settings {
        if !methods.iter().any(|method| method.knows(name)) {
            let known: Vec<String> = methods.iter().map(|m| format!("{}: {}", m.name, m.known_settings())).collect();
            bail!("no method here has a setting {name:?} ({})", known.join("; "));
        }
    }
    Ok(())
}

/// The class orders, as parts of a spec: one for each seed, or the one that was given.
pub(crate) fn orders(args: &Args) -> Result<Vec<(u32, Option<Order>)>> {
    let Some(path) = &args.order else { return Ok(args.seed.iter().map(|&seed| (seed, None)).collect()) };
    if path.as_os_str() == "sorted" {
        return Ok(vec![(0, Some(Order::Sorted))]);
    }
    let listed = path.to_str().filter(|text| text.contains(',') && !path.exists());
    let labels = match listed {
        Some(list) => list.split(',').map(str::to_owned).collect(),
        None => {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
        }
    };
    Ok(vec![(0, Some(Order::Labels(labels)))])
}

/// Tables for people: each run task by task, then all runs side by side, best first.
fn tables(runs: &[Run]) -> String {
    let mut text = String::new();
    if let [run] = runs {
        text.push_str(&task_table(run));
        text.push('\n');
    }
    let rows: Vec<Vec<String>> = report::by_method(runs).iter().map(summary_row).collect();
    let header = [
        "method",
        "final %",
        "total %",
        "all samples %",
        "forgetting",
        "train MSE",
        "learn s",
        "weights s",
        "eval s",
        "model",
        "kind",
    ];
    text.push_str(&table::render(&header, &rows));
    text.push('\n');
    report::meanings().iter().for_each(|meaning| text.push_str(&format!("{meaning}\n")));
    if let Some(run) = runs.first() {
        let d = &run.dataset;
        text.push_str(&format!(
            "\n{}: {} training and {} test samples, {} features, {} classes in {} tasks\n",
            escape(&d.name),
            d.train,
            d.test,
            d.dim,
            d.classes,
            run.tasks.len()
        ));
        for (method, verdict) in report::verdicts(runs) {
            text.push_str(&format!("{method}: {}\n", verdict.line));
        }
        if let Some(peak) = runs.iter().filter_map(|run| run.peak_rss_bytes).max() {
            text.push_str(&format!("peak memory of the process: {}\n", human_bytes(peak as usize)));
        }
    }
    text
}

fn task_table(run: &Run) -> String {
    // Long streams: the first tasks, some in between, and the last.
    let step = run.tasks.len().div_ceil(20);
    let shown = |t: usize| t.is_multiple_of(step) || t + 1 == run.tasks.len();
    let rows: Vec<Vec<String>> = run
        .tasks
        .iter()
        .enumerate()
        .filter(|(t, _)| shown(*t))
        .map(|(t, task)| {
            vec![
                (t + 1).to_string(),
                task.classes_seen.to_string(),
                task.samples_seen.to_string(),
                task.basis_rank.map_or("-".to_owned(), |r| r.to_string()),
                task.kept_rank.map_or("-".to_owned(), |k| k.to_string()),
                table::number(run.accuracy_matrix.get(t, t), 2),
                table::number(task.accuracy_samples, 2),
                table::number(task.train_mse, 4),
                task.drift.map_or("-".to_owned(), |drift| format!("{drift:.1e}")),
                table::seconds(task.learn_seconds),
                task.weights_seconds.map_or("-".to_owned(), table::seconds),
            ]
        })
        .collect();
    let header = [
        "task",
        "classes",
        "samples",
        "basis",
        "kept",
        "new task %",
        "all so far %",
        "train MSE",
        "drift",
        "learn",
        "weights",
    ];
    table::render(&header, &rows)
}

fn summary_row(method: &MethodSummary<'_>) -> Vec<String> {
    let digits = |value: f64| if value < 10.0 { 2 } else { 1 };
    let seconds = |values: Vec<f64>| mean_and_spread(&values, digits(values.iter().copied().fold(0.0, f64::max)));
    vec![
        method.name.to_owned(),
        mean_and_spread(&method.column(|run| run.final_accuracy), 2),
        mean_and_spread(&method.column(|run| run.total_accuracy), 2),
        mean_and_spread(&method.column(|run| run.final_accuracy_samples), 2),
        mean_and_spread(&method.column(|run| run.forgetting), 2),
        mean_and_spread(&method.column(|run| run.tasks.last().and_then(|t| t.train_mse)), 4),
        seconds(method.total(|task| Some(task.learn_seconds))),
        seconds(method.total(|task| task.weights_seconds)),
        seconds(method.total(|task| task.eval_seconds)),
        human_bytes(method.state_bytes()),
        method.kind().to_owned(),
    ]
}

fn method_help() -> String {
    let list: Vec<String> = METHODS.iter().map(|m| format!("{} ({})", m.name, m.summary)).collect();
    format!("Methods, separated by commas, or `all`: {}", list.join("; "))
}

fn lift_help() -> String {
    let list: Vec<String> = lift::LIFTS.iter().map(|l| format!("{} ({})", l.name, l.summary)).collect();
    format!("Feature map: {}", list.join("; "))
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err(format!("{text:?} is not of the form KEY=VALUE")),
    }
}

/// `2G`, `500M`, `1.5GiB`, or a plain number of bytes.
fn bytes(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        other => return Err(format!("{other:?} is not a unit of memory; use K, M, G or T")),
    };
    match digits.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok((number * (1u64 << unit) as f64) as usize),
        _ => Err(format!("{text:?} is not an amount of memory; write 2G or 500M")),
    }
}
