//! `loranpac predict`: labels, scores, probabilities and novelty of samples.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use loranpac::{Classifier, Features, Label, Prior, UNCALIBRATED, softmax};
use loranpac_data::formats::{Column, to_npz};
use loranpac_data::text::{escape, escape_json};
use loranpac_data::{Reader, Split, atomic};
use serde_json::json;

use super::{Predictor, ROWS, Samples, named, note_skipped, on_threads, raw, shown, warn_stale_temperature};
use crate::file::{self, Target};
use crate::prior;
use crate::say::{Unwritten, note};

/// Options of `predict`.
#[derive(clap::Args)]
#[command(after_help = "Example:  loranpac predict intents.lrp new.npz --top 3 --probabilities > answers.csv")]
pub struct Args {
    /// The model, or an inference file that export has written
    model: PathBuf,
    /// A file of features, or, if the model has an encoder, a folder or archive of images, an image or a table of texts; the
    /// test split is read where a file has two. - reads standard input
    file: PathBuf,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Output format [default: that of the extension of --out, or csv]
    #[arg(long, value_enum)]
    to: Option<To>,
    /// The K best classes of each sample
    #[arg(long, default_value_t = 1, value_name = "K")]
    top: usize,
    /// Add the scores of all classes
    #[arg(long)]
    scores: bool,
    /// Another prior than the model's: none, train, uniform, or a CSV or JSON file with a number for each class
    #[arg(long, value_parser = prior::read, value_name = "PRIOR")]
    prior: Option<Prior>,
    /// Add probabilities: softmax of scores over the temperature that calibrate has fitted
    #[arg(long)]
    probabilities: bool,
    /// Add the share of each sample outside of what the model has learned, from 0 to 1 (reads the whole model)
    #[arg(long)]
    novelty: bool,
    /// Give no label to samples with a novelty above this
    #[arg(long, value_name = "N")]
    reject: Option<f64>,
    /// Another name of --split test
    #[arg(long, hide = true, conflicts_with = "split")]
    test: bool,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    samples: Samples,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum To {
    Csv,
    Jsonl,
    /// NumPy arrays: label, score and what else was asked for (rejected samples are marked, not left out); needs --out
    Npz,
}

impl Args {
    fn format(&self) -> To {
        let extension = || self.out.as_ref()?.extension()?.to_str();
        self.to.unwrap_or_else(|| match extension() {
            Some("jsonl") => To::Jsonl,
            Some("npz") => To::Npz,
            _ => To::Csv,
        })
    }

    fn wants_novelty(&self) -> bool {
        self.novelty || self.reject.is_some()
    }
}

pub fn main(args: Args) -> Result<()> {
    on_threads(args.threads, || predict(&args))
}

fn predict(args: &Args) -> Result<()> {
    if args.top == 0 {
        bail!("--top 0 is not possible: a sample has at least one label");
    }
    let predictor = Predictor::open(&args.model, args.wants_novelty(), args.prior.as_ref())?;
    let classifier = &predictor.classifier;
    let samples = Samples { split: args.samples.split.or(args.test.then_some(Split::Test)), ..args.samples.clone() };
    let mut reader = samples.open_test(&args.file, &predictor.target(&args.model), true)?;
    if args.probabilities && classifier.temperature().is_none() {
        note!("note: probabilities are uncalibrated; loranpac calibrate fits a temperature on held-out samples");
    }
    if let (true, Some(model)) = (args.probabilities, &predictor.session) {
        warn_stale_temperature(model);
    }
    let same =
        |out: &PathBuf| std::fs::canonicalize(out).ok().is_some_and(|out| Some(out) == args.file.canonicalize().ok());
    if args.out.as_ref().is_some_and(same) {
        bail!("{} is the input file", shown(&args.file));
    }
    let encoder = predictor.encoder.reference.as_ref().and_then(|reference| reference.location.as_ref());
    let folders = [Some(args.file.clone()), encoder.map(PathBuf::from)].into_iter().flatten();
    for folder in folders.filter(|folder| folder.is_dir()).filter_map(|folder| folder.canonicalize().ok()) {
        let parent = args.out.as_deref().and_then(|out| atomic::parent(out).canonicalize().ok());
        if parent.is_some_and(|parent| parent.starts_with(&folder)) {
            bail!("the output would be inside {}; write it elsewhere", shown(&folder));
        }
    }
    if args.format() == To::Npz && (args.out.is_none() || args.top > 1) {
        bail!("--to npz writes the best class of each sample into a file: give --out, and no --top");
    }
    match &args.out {
        Some(path) if args.format() == To::Npz => {
            let mut arrays = Arrays::default();
            answers(args, classifier, &mut reader, |answer, classifier| {
                arrays.add(answer, args, classifier);
                Ok(())
            })?;
            arrays.write(path, classifier)
        }
        Some(path) => {
            let mut file = Target::create(path)?;
            let failed = |error: io::Error| anyhow::Error::new(error).context(format!("cannot write {}", raw(path)));
            write_answers(args, classifier, &mut reader, &mut file, false, &failed)?;
            file.finish()
        }
        None => {
            let out = io::stdout().lock();
            // Data is not changed, but control characters in labels are escaped on a terminal.
            let terminal = out.is_terminal();
            write_answers(args, classifier, &mut reader, out, terminal, &|error| Unwritten::new(error).into())
        }
    }
}

/// Writes answers as text; on a terminal, without control characters.
fn write_answers(
    args: &Args,
    classifier: &Classifier,
    reader: &mut Reader,
    out: impl Write,
    terminal: bool,
    failed: &dyn Fn(io::Error) -> anyhow::Error,
) -> Result<()> {
    if args.format() == To::Jsonl {
        let mut out = BufWriter::new(out);
        answers(args, classifier, reader, |answer, classifier| {
            let line = answer.json(args, classifier).to_string();
            let line = if terminal { escape_json(&line) } else { line.as_str().into() };
            writeln!(out, "{line}").map_err(failed)
        })?;
        return out.flush().map_err(failed);
    }
    let label = |label: &Label| if terminal { named(label) } else { label.to_string() };
    let labels: Vec<String> = classifier.labels().iter().map(label).collect();
    let unwritten = |error: csv::Error| match error.into_kind() {
        csv::ErrorKind::Io(error) => failed(error),
        other => failed(io::Error::other(format!("{other:?}"))),
    };
    let mut out = csv::Writer::from_writer(BufWriter::new(out));
    out.write_record(header(args, reader.has_names(), args.top.min(labels.len()), &labels)).map_err(unwritten)?;
    answers(args, classifier, reader, |answer, _| {
        out.write_record(answer.csv(args, &labels, terminal)).map_err(unwritten)
    })?;
    out.flush().map_err(failed)
}

/// Passes the answer for every sample to `take`.
fn answers(
    args: &Args,
    classifier: &Classifier,
    reader: &mut Reader,
    mut take: impl FnMut(&Answer<'_>, &Classifier) -> Result<()>,
) -> Result<()> {
    let temperature = classifier.temperature().unwrap_or(UNCALIBRATED);
    let top = args.top.min(classifier.labels().len());
    let named = reader.has_names();
    while let Some(batch) = reader.next(ROWS)? {
        let x = Features::new(&batch.x, classifier.dim())?;
        let scores = classifier.scores(x)?;
        let novelty = if args.wants_novelty() { classifier.novelty(x)? } else { None };
        for (i, (row, best)) in scores.rows().zip(scores.top_k(top)).enumerate() {
            let novelty = novelty.as_ref().map(|novelty| novelty[i]);
            let rejected = args.reject.zip(novelty).is_some_and(|(limit, novelty)| novelty > limit);
            let shares = args.probabilities.then(|| softmax(row, temperature));
            let name = batch.names.as_ref().filter(|_| named).map(|names| names[i].as_str());
            let answer = Answer { number: batch.rows[i], name, best, row, shares, novelty, rejected };
            take(&answer, classifier)?;
        }
    }
    note_skipped(reader);
    Ok(())
}

/// The answer for one sample.
struct Answer<'a> {
    number: usize,
    name: Option<&'a str>,
    best: Vec<(usize, f32)>,
    row: &'a [f32],
    shares: Option<Vec<f64>>,
    novelty: Option<f64>,
    rejected: bool,
}

impl Answer<'_> {
    fn csv(&self, args: &Args, labels: &[String], terminal: bool) -> Vec<String> {
        let mut cells = vec![self.number.to_string()];
        cells.extend(self.name.map(|name| if terminal { escape(name).into_owned() } else { name.to_owned() }));
        for (class, score) in &self.best {
            cells.push(if self.rejected { String::new() } else { labels[*class].clone() });
            cells.push(score.to_string());
            cells.extend(self.shares.as_ref().map(|shares| format!("{:.6}", shares[*class])));
        }
        cells.extend(self.novelty.map(|novelty| format!("{novelty:.6}")));
        if args.scores {
            cells.extend(self.row.iter().map(f32::to_string));
        }
        cells
    }

    fn json(&self, args: &Args, classifier: &Classifier) -> serde_json::Value {
        let best = self.best.iter().map(|(class, score)| {
            let mut entry = json!({ "label": classifier.labels()[*class], "score": score });
            if let Some(shares) = &self.shares {
                entry["probability"] = json!(shares[*class]);
            }
            entry
        });
        let label = (!self.rejected).then(|| &classifier.labels()[self.best[0].0]);
        let mut value = json!({ "row": self.number, "label": label, "best": best.collect::<Vec<_>>() });
        if let Some(name) = self.name {
            value["name"] = json!(name);
        }
        if let Some(novelty) = self.novelty {
            (value["novelty"], value["rejected"]) = (json!(novelty), json!(self.rejected));
        }
        if self.shares.is_some() {
            value["calibrated"] = json!(classifier.temperature().is_some());
        }
        if args.scores {
            value["scores"] = json!(self.row);
        }
        value
    }
}

/// Answers by column.
#[derive(Default)]
struct Arrays {
    rows: Vec<Label>,
    names: Vec<Label>,
    labels: Vec<Label>,
    score: Vec<f64>,
    probability: Vec<f64>,
    novelty: Vec<f64>,
    rejected: Vec<f64>,
    scores: Vec<f32>,
}

impl Arrays {
    fn add(&mut self, answer: &Answer<'_>, args: &Args, classifier: &Classifier) {
        let (class, score) = answer.best[0];
        self.rows.push(Label::Integer(answer.number as i64));
        self.names.extend(answer.name.map(|name| Label::Text(name.to_owned())));
        self.labels.push(classifier.labels()[class].clone());
        self.score.push(score.into());
        self.probability.extend(answer.shares.as_ref().map(|shares| shares[class]));
        self.novelty.extend(answer.novelty);
        self.rejected.extend(args.reject.map(|_| f64::from(u8::from(answer.rejected))));
        if args.scores {
            self.scores.extend(answer.row);
        }
    }

    fn write(self, path: &Path, classifier: &Classifier) -> Result<()> {
        let labels = &classifier.labels();
        let (rows, best) = (Column::Labels(self.rows), Column::Labels(self.labels));
        let mut columns = vec![("row", rows), ("label", best), ("score", Column::Float(self.score))];
        if !self.names.is_empty() {
            columns.push(("name", Column::Labels(self.names)));
        }
        let extra = [("probability", self.probability), ("novelty", self.novelty), ("rejected", self.rejected)];
        let extra = extra.into_iter().filter(|(_, values)| !values.is_empty());
        columns.extend(extra.map(|(name, values)| (name, Column::Float(values))));
        if !self.scores.is_empty() {
            columns.push(("scores", Column::Matrix(labels.len(), self.scores)));
            columns.push(("classes", Column::Labels(labels.to_vec())));
        }
        let bytes = to_npz(&columns).with_context(|| format!("cannot write {}", raw(path)))?;
        file::write(path, &bytes)
    }
}

fn header(args: &Args, names: bool, top: usize, labels: &[String]) -> Vec<String> {
    let mut cells = vec!["row".to_owned()];
    cells.extend(names.then(|| "name".to_owned()));
    for place in 1..=top {
        let end = if top == 1 { String::new() } else { format!("_{place}") };
        cells.extend([format!("label{end}"), format!("score{end}")]);
        cells.extend(args.probabilities.then(|| format!("probability{end}")));
    }
    cells.extend(args.wants_novelty().then(|| "novelty".to_owned()));
    if args.scores {
        cells.extend(labels.iter().map(|label| format!("score:{label}")));
    }
    cells
}
