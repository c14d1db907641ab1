//! The arguments of `run`, and the specs derived from them.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use loranpac::lift;
use loranpac::registry::{self, Input, METHODS, Method};
use loranpac_bench::Error;
use loranpac_bench::maps::{Given, Maps};
use loranpac_bench::plan::Resources;
use loranpac_bench::source::Source;
use loranpac_bench::spec::{OPEN, Spec};
use loranpac_data::Dataset;
use loranpac_encode::{Inputs, Needs, input};

use super::flags::Chosen;
use crate::json::Json;
use crate::model::shown;
use crate::raw::RawArgs;
use crate::say::note;

/// Options of `run`.
#[derive(clap::Args)]
#[command(after_help = methods_and_example())]
pub struct Args {
    /// Feature file (.npz, .safetensors, or a folder of .npy) with x_train, y_train, x_test, y_test; digits for those inside
    /// the program; with --encoder, a folder, archive or table of images or texts
    #[arg(long, value_name = "PATH", help_heading = "Data")]
    data: PathBuf,
    #[command(flatten)]
    raw: RawArgs,
    /// Column or key of a table of raw data with the labels [default: y, labels, label, class or target]
    #[arg(long, value_name = "NAME", requires = "encoder", help_heading = "Encoder")]
    label: Option<String>,

    /// Methods, separated by commas, or all; they are listed below
    #[arg(long, value_delimiter = ',', default_value = "loranpac", value_name = "NAME", help_heading = "Method")]
    method: Vec<String>,
    /// A setting of the method, e.g. --set ridge=1e4
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value, help_heading = "Method")]
    settings: Vec<(String, String)>,
    #[command(flatten)]
    chosen: Chosen,
    /// Memory that the process may use, e.g. 2G, including data and program: determines --max-rank
    #[arg(long, value_name = "BYTES", value_parser = bytes, conflicts_with = "max-rank", help_heading = "Method")]
    memory: Option<usize>,
    /// Read the projection from a .npy file (E x d) instead of generating it from the seed; its rows determine the
    /// width
    #[arg(long, value_name = "FILE", help_heading = "Lift")]
    projection: Option<PathBuf>,
    /// Regenerate the projection for every batch instead of keeping it: slower, saves 4 E d bytes
    #[arg(long, help_heading = "Lift")]
    regenerate: bool,
    /// Vary zeta, lambda, E and the classes per task, one at a time, and report how much the final accuracy depends on each
    #[arg(long, conflicts_with_all = ["eval", "train-loss", "spectrum", "projection", "memory", "regenerate"], help_heading = "Protocol")]
    pub stability: bool,

    /// Threads [default: all cores]
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub json: Json<false>,
    /// Write a report into this folder: run.json, report.md and pictures
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Print no tables and no progress
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

/// Validated arguments: everything that can be refused without the data has been refused.
pub struct Request<'a> {
    args: &'a Args,
    methods: Vec<&'static Method>,
    /// One spec per class order, without a method.
    streams: Vec<Spec>,
}

impl Args {
    /// Checks the arguments.
    pub fn check(&self) -> Result<Request<'_>> {
        let methods = self.methods()?;
        let base = Spec { settings: self.settings.iter().cloned().collect(), ..Spec::default() };
        let names: Vec<&str> = methods.iter().map(|method| method.name).collect();
        if let Some(setting) = self.chosen.without_effect(&base, &names)? {
            let frozen = setting.section == "Adaptation" && !methods.iter().any(|method| method.input.adapts());
            let advice = if frozen { "; add --adapt MODULE, or choose a method that adapts" } else { "" };
            bail!("--{} has no effect on {}{advice}", setting.name, self.method.join(", "));
        }
        for (name, _) in &self.settings {
            if !methods.iter().any(|method| method.knows(name)) {
                let known = methods.iter().map(|method| format!("{}: {}", method.name, method.known_settings()));
                bail!("none of the methods has a setting {name:?} ({})", known.collect::<Vec<_>>().join("; "));
            }
        }
        let streams = self.chosen.specs(base)?;
        let first = &streams[0];
        if first.is_infinite() && (self.chosen.text("lift-seed").is_some() || self.regenerate) {
            bail!("--lift-seed and --regenerate have no effect at infinite width, which draws nothing at random");
        }
        if self.projection.is_some() && first.is_infinite() {
            bail!("--projection cannot be used at infinite width, which has no projection");
        }
        if self.projection.is_some() && !lift::find(&first.lift)?.projection.is_drawn() {
            bail!("--projection cannot be used with --lift {}, which has no projection", first.lift);
        }
        if first.keep_samples && (first.width != OPEN || self.projection.is_some()) {
            bail!("--keep-samples has no effect on a width that is given; it lets --width auto be infinite");
        }
        let methods = if first.is_infinite() { self.with_infinite_width(methods)? } else { methods };
        Ok(Request { args: self, methods, streams })
    }

    /// Returns the data set; raw data are encoded.
    pub fn source(&self) -> Result<Source> {
        let Some(raw) = self.raw.open(self.quiet)? else { return Ok(Source::named(&self.data)) };
        let place = || shown(&self.data);
        let inputs = Inputs::open(std::slice::from_ref(&self.data), &raw.inputs(self.label.as_deref()))?;
        inputs.outline().map_or(Ok(()), |outline| Needs::Experiment.check(outline)).with_context(place)?;
        let features = raw.gather(inputs, Needs::Experiment).with_context(place)?;
        let dataset = features.dataset(input::stem(&self.data)).with_context(place)?;
        let label = self.label.iter().flat_map(|label| ["--label".to_owned(), label.clone()]);
        let source = Source::encoded(&self.data, self.raw.words().into_iter().chain(label).collect(), dataset);
        Ok(match raw.place(vec![self.data.clone()], raw.inputs(self.label.as_deref())) {
            Some(place) => source.with_raw(place),
            None => source,
        })
    }

    /// Reads a data set. Raw data without an encoder are refused with advice.
    pub fn open(&self, source: &Source) -> Result<Arc<Dataset>> {
        source.open().map_err(|error| match error {
            Error::NotFeatures { .. } => anyhow!("{error}, or add --encoder ENCODER"),
            other => other.into(),
        })
    }

    fn is_named(&self, method: &Method) -> bool {
        self.method.iter().any(|name| name == method.name)
    }

    /// Returns the methods by name; `all` selects all of them.
    fn methods(&self) -> Result<Vec<&'static Method>> {
        let mut methods: Vec<&Method> = Vec::new();
        for name in &self.method {
            let named = if name == "all" { METHODS.iter().collect() } else { vec![registry::find(name)?] };
            for method in named {
                if !methods.iter().any(|other| other.name == method.name) {
                    methods.push(method);
                }
            }
        }
        Ok(methods)
    }

    /// Drops methods without an infinite width if they were selected by `all`; refuses them if they are named.
    fn with_infinite_width(&self, methods: Vec<&'static Method>) -> Result<Vec<&'static Method>> {
        let able = |method: &&Method| method.infinite || !method.input.lifted();
        let (fit, unfit): (Vec<_>, Vec<_>) = methods.into_iter().partition(able);
        if let Some(method) = unfit.iter().find(|method| self.is_named(method)) {
            let able: Vec<&str> = METHODS.iter().filter(|method| method.infinite).map(|method| method.name).collect();
            bail!("--width infinite is for {}; {} needs lifted features", able.join(" and "), method.name);
        }
        if !unfit.is_empty() && !self.quiet {
            let names: Vec<&str> = unfit.iter().map(|method| method.name).collect();
            note!("note: left out, because they have no infinite width: {}", names.join(", "));
        }
        Ok(fit)
    }
}

impl Request<'_> {
    /// Returns the runs on a data set: every method for each class order. Methods that need arrays which the file does
    /// not have are dropped if they were selected by `all`, and refused if they are named.
    pub fn specs(&self, dataset: &Dataset, raw: bool) -> Result<Vec<Spec>> {
        let mut methods = Vec::new();
        for method in &self.methods {
            let name = method.name;
            if method.input.adapts() && !raw && !self.args.is_named(method) {
                if !self.args.quiet {
                    note!(
                        "note: {name} is left out, because it needs images or texts and an encoder that can be adapted"
                    );
                }
            } else if method.input != Input::Layers || !dataset.train.layers.is_empty() {
                methods.push(name);
            } else if self.args.is_named(method) {
                bail!(
                    "{name} needs the features of several layers: arrays x_train_layer* and x_test_layer* in the file"
                );
            } else if !self.args.quiet {
                note!("note: {name} is left out, because the file has no arrays x_train_layer*");
            }
        }
        let of = |stream: &Spec| {
            let with = |name: &&str| Spec { method: (*name).to_owned(), ..stream.clone() };
            methods.iter().map(with).collect::<Vec<_>>()
        };
        Ok(self.streams.iter().flat_map(of).collect())
    }

    /// Converts an error of the plan. One of the class order names its file.
    pub fn explain(&self, error: Error) -> anyhow::Error {
        match (&error, self.args.chosen.text("order")) {
            (Error::ClassOrder(_), Some(order)) => anyhow::Error::from(error).context(order),
            _ => error.into(),
        }
    }

    /// Creates the feature maps of the arguments.
    pub fn maps(&self) -> Result<Maps> {
        let given = self.args.projection.as_ref().map(|path| Given::open(path, &self.streams[0].lift)).transpose()?;
        Ok(Maps::new(!self.args.regenerate, given))
    }

    /// Returns the threads and the memory of the runs.
    pub fn resources(&self, threads: usize) -> Resources {
        Resources { threads, memory: self.args.memory }
    }
}

fn methods_and_example() -> String {
    let longest = METHODS.iter().map(|method| method.name.len()).max().unwrap_or(0);
    let methods: String = METHODS.iter().map(|m| format!("  {:longest$}  {}\n", m.name, m.summary)).collect();
    let examples = [
        "loranpac run --data features.npz --method loranpac,loranpac-soft --inc 10",
        "loranpac run --data photos/ --encoder vit/ --inc 10              # photos/{train,test}/CLASS/*.jpg",
        "loranpac run --data photos.tar --encoder vit/ --scenario domain  # DOMAIN/{train,test}/CLASS/*.jpg",
        "loranpac run --data tickets.csv --encoder text-ngrams --inc 2    # columns text, label and split",
    ];
    format!("Methods:\n{methods}\nExamples:\n  {}", examples.join("\n  "))
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err(format!("{text:?} is not of the form KEY=VALUE")),
    }
}

/// Parses `2G`, `500M`, `1.5GiB`, or a plain number of bytes.
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
