//! `loranpac eval` and `loranpac calibrate`: a model on held-out labelled samples.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use loranpac::{Features, Label, Prior, UNCALIBRATED, softmax};
use loranpac_bench::by_class::{ByClass, Groups};
use loranpac_data::text::escape;
use loranpac_store::temperature::{fit, negative_log_likelihood};
use loranpac_store::{Fingerprint, Session, TaskDigest};
use serde_json::json;

use super::{Predictor, ROWS, Samples, labelled, note_skipped, on_threads, print, raw, shown};
use crate::json::Json;
use crate::prior;
use crate::say::{changed, note};
use crate::table;
use crate::words::count;

/// Number of bins of the calibration error.
const BINS: usize = 15;

/// Options of both commands.
#[derive(clap::Args)]
struct MeasureArgs {
    /// Another prior than the model's: none, train, uniform, or a CSV or JSON file with a number for each class. After calibrate
    /// it is the model's
    #[arg(long, value_parser = prior::read, value_name = "PRIOR")]
    prior: Option<Prior>,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    json: Json<true>,
    #[command(flatten)]
    samples: Samples,
}

/// Options of `eval`.
#[derive(clap::Args)]
pub struct Args {
    /// The model, or an inference file that export has written
    model: PathBuf,
    /// Samples with labels: features, or images or texts if the model has an encoder; the test split is read where a file
    /// has two
    file: PathBuf,
    /// Also report the share of samples whose class is among the K best
    #[arg(long, default_value_t = 5, value_name = "K")]
    top: usize,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// Options of `calibrate`.
#[derive(clap::Args)]
pub struct CalibrateArgs {
    /// The model
    model: PathBuf,
    /// Samples with labels that the model has not learned; the test split is read where a file has two
    file: PathBuf,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// Scores of labelled samples whose class is in the model, and the labels of the others.
struct Scored {
    samples: Vec<(Vec<f32>, usize)>,
    unknown: BTreeMap<Label, usize>,
    /// The fingerprint of all samples in the file.
    fingerprint: Fingerprint,
}

fn score(predictor: &Predictor, model: &Path, file: &Path, samples: &Samples) -> Result<Scored> {
    let classifier = &predictor.classifier;
    let mut reader = labelled(file, samples.open_test(file, &predictor.target(model), false)?)?;
    let (mut known, mut unknown, mut digest) = (Vec::new(), BTreeMap::new(), TaskDigest::default());
    while let Some(batch) = reader.next(ROWS)? {
        let x = Features::new(&batch.x, classifier.dim())?;
        let scores = classifier.scores(x)?;
        let labels = batch.labels.unwrap_or_default();
        digest.add(x, &labels);
        for (row, label) in scores.rows().zip(labels) {
            match classifier.column(&label) {
                Some(class) => known.push((row.to_vec(), class)),
                None => *unknown.entry(label).or_default() += 1,
            }
        }
    }
    note_skipped(&reader);
    let fingerprint = digest.finish();
    if let Some(task) = predictor.session.as_ref().and_then(|model| model.task(&fingerprint.digest)) {
        note!(
            "warning: {}: the model learned these samples (as {}); their accuracy says little about new ones",
            shown(file),
            escape(&task.name)
        );
    }
    if known.is_empty() {
        bail!("{}: none of its samples belongs to a class of the model", shown(file));
    }
    let fingerprint = Fingerprint { samples: known.len(), ..fingerprint };
    Ok(Scored { samples: known, unknown, fingerprint })
}

pub fn main(args: Args) -> Result<()> {
    on_threads(args.measure.threads, || eval(&args))
}

fn eval(args: &Args) -> Result<()> {
    let predictor = Predictor::open(&args.model, false, args.measure.prior.as_ref())?;
    let classifier = &predictor.classifier;
    let Scored { samples, unknown, .. } = score(&predictor, &args.model, &args.file, &args.measure.samples)?;
    let mut classes: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    let mut confused: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let (mut right, mut near) = (0, 0);
    let mut counts = ByClass::new(classifier.labels().len());
    for (scores, class) in &samples {
        let rank = scores.iter().enumerate().filter(|(i, s)| (**s, *class) > (scores[*class], *i)).count();
        let best = (0..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best });
        let entry = classes.entry(*class).or_default();
        entry.1 += 1;
        counts.add(*class, best);
        near += usize::from(rank < args.top);
        if best == *class {
            right += 1;
            entry.0 += 1;
        } else {
            *confused.entry((*class, best)).or_default() += 1;
        }
    }
    let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole as f64;
    let temperature = classifier.temperature().unwrap_or(UNCALIBRATED);
    let loss = negative_log_likelihood(samples.iter().map(|(s, c)| (s.as_slice(), *c)), temperature);
    let calibration = calibration_error(&samples, temperature);
    // An exported file has no class sizes, and its prior is part of its weights.
    let sizes = predictor.session.as_ref().map(|model| model.manifest().class_sizes());
    let prior = predictor.session.as_ref().map(|model| model.manifest().prior.name());
    let Some(balance) = counts.balance(sizes.as_deref().unwrap_or(&vec![0.0; classifier.labels().len()])) else {
        bail!("{}: there are no samples in it", shown(&args.file));
    };
    let groups = sizes.map(|_| balance.group_accuracy);
    let mut worst: Vec<(usize, usize, usize)> = classes.iter().map(|(class, (r, n))| (*class, *r, *n)).collect();
    worst.sort_by(|a, b| percent(a.1, a.2).total_cmp(&percent(b.1, b.2)).then(a.0.cmp(&b.0)));
    let mut pairs: Vec<((usize, usize), usize)> = confused.into_iter().collect();
    pairs.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let label = |class: usize| &classifier.labels()[class];
    let value = json!({
        "model": raw(&args.model), "samples": samples.len(), "accuracy": percent(right, samples.len()),
        "mean_class_accuracy": balance.balanced_accuracy, "balanced_accuracy": balance.balanced_accuracy,
        "macro_f1": balance.macro_f1, "group_accuracy": groups, "prior": prior, "top": args.top, "top_accuracy": percent(near, samples.len()),
        "unknown_labels": unknown.iter().map(|(label, count)| json!({ "label": label, "samples": count })).collect::<Vec<_>>(),
        "calibrated": classifier.temperature().is_some(), "negative_log_likelihood": loss, "calibration_error": calibration,
        "classes": worst.iter().map(|(c, r, n)| json!({ "label": label(*c), "right": r, "samples": n })).collect::<Vec<_>>(),
        "confusions": pairs.iter().map(|((c, b), n)| json!({ "label": label(*c), "taken_for": label(*b), "samples": n }))
            .collect::<Vec<_>>(),
    });
    let mut words = format!(
        "{}: {:.2}% right ({:.2}% mean over classes, macro F1 {:.2}%), {:.2}% among the best {}\n",
        count(samples.len(), "sample"),
        percent(right, samples.len()),
        balance.balanced_accuracy,
        balance.macro_f1,
        percent(near, samples.len()),
        args.top
    );
    let named: Vec<(&str, f64)> = groups.iter().flat_map(Groups::named).collect();
    if named.len() > 1 {
        let group = |(name, accuracy): &(&str, f64)| format!("{name} {accuracy:.2}%");
        let list = named.iter().map(group).collect::<Vec<_>>().join(", ");
        words += &format!("classes of more than 100, 20 to 100 and fewer than 20 training samples: {list}\n");
    }
    let stated = if classifier.temperature().is_some() { "calibrated" } else { "uncalibrated" };
    words += &format!("probabilities ({stated}): log loss {loss:.3}, expected calibration error {calibration:.3}\n");
    if !unknown.is_empty() {
        let (labels, samples) = (unknown.len(), unknown.values().sum::<usize>());
        words += &format!(
            "{} of {} that are not in the model were left out\n",
            count(samples, "sample"),
            count(labels, "class")
        );
    }
    let rows: Vec<Vec<String>> = worst
        .iter()
        .filter(|(_, right, all)| right < all)
        .take(8)
        .map(|(class, right, all)| {
            let most = pairs.iter().find(|((c, _), _)| c == class);
            let taken = most.map_or(String::new(), |((_, b), n)| format!("{} ({n})", label(*b)));
            vec![label(*class).to_string(), format!("{:.1}", percent(*right, *all)), all.to_string(), taken]
        })
        .collect();
    if !rows.is_empty() {
        words += &format!("\n{}", table::render(&["hardest classes", "%", "samples", "most often taken for"], &rows));
    }
    Ok(print(&args.measure.json, &value, &words)?)
}

/// Computes the expected calibration error: the mean difference of confidence and accuracy over bins of confidence.
fn calibration_error(samples: &[(Vec<f32>, usize)], temperature: f64) -> f64 {
    let mut bins = [(0usize, 0usize, 0.0f64); BINS];
    for (scores, class) in samples {
        let shares = softmax(scores, temperature);
        let best = (0..shares.len()).fold(0, |best, i| if shares[i] > shares[best] { i } else { best });
        let bin = &mut bins[((shares[best] * BINS as f64) as usize).min(BINS - 1)];
        *bin = (bin.0 + 1, bin.1 + usize::from(best == *class), bin.2 + shares[best]);
    }
    let filled = bins.iter().filter(|bin| bin.0 > 0);
    filled.map(|(_, right, confidence)| (*right as f64 - confidence).abs()).sum::<f64>() / samples.len() as f64
}

pub fn calibrate(args: CalibrateArgs) -> Result<()> {
    on_threads(args.measure.threads, || {
        let mut session = Session::open_to_write(&args.model)?;
        if let Some(prior) = &args.measure.prior {
            session.set_prior(prior.clone())?;
        }
        let mut predictor = Predictor::of(session, &args.model, false)?;
        let Scored { samples, unknown, fingerprint } =
            score(&predictor, &args.model, &args.file, &args.measure.samples)?;
        let temperature = fit(&samples);
        let loss = |t: f64| negative_log_likelihood(samples.iter().map(|(s, c)| (s.as_slice(), *c)), t);
        let before = predictor.temperature();
        let errors = [before, temperature].map(|t| (loss(t), calibration_error(&samples, t)));
        let Some(model) = &mut predictor.session else { bail!("{} is not a model", shown(&args.model)) };
        // Fitted on the same samples before, the temperature is the same.
        if model.manifest().calibrated_on(&fingerprint).is_none() {
            model.calibrate(temperature, &fingerprint);
            model.commit()?;
        }
        let value = json!({
            "model": raw(&args.model), "version": model.manifest().version, "temperature": temperature,
            "prior": model.manifest().prior.name(), "samples": samples.len(), "unknown_samples": unknown.values().sum::<usize>(),
            "negative_log_likelihood": errors[1].0, "calibration_error": errors[1].1,
        });
        let words = format!(
            "temperature {temperature:.4}, fitted on {}: log loss {:.3} (was {:.3}), expected calibration error \
             {:.3} (was {:.3})\n",
            count(samples.len(), "sample"),
            errors[1].0,
            errors[0].0,
            errors[1].1,
            errors[0].1
        );
        Ok(changed(print(&args.measure.json, &value, &words))?)
    })
}
