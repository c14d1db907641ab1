//! `loranpac learn`: all files are surveyed; then each is a task, which is committed before the next one begins.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use loranpac::{Label, Schedule, StreamSizes, memory};
use loranpac_data::{Reader, system, text::escape};
use loranpac_store::{Fingerprint, Session, TaskDigest};
use serde_json::json;

use super::samples::identity_of;
use super::survey::{Division, Held, Outlook, Survey, check, refuse_again, room_to_hold, survey};
use super::{
    ROWS, Samples, Target, ensure_memory, init, on_threads, parts, print, raw, shown, unequal_classes, weighted,
};
use crate::faults::with_flags;
use crate::how::How;
use crate::progress::Count;
use crate::say::{changed, note};
use crate::words::count;

/// Options of `learn`.
#[derive(clap::Args)]
#[command(after_help = "Example:  loranpac learn intents.lrp monday.npz tuesday.csv\n\n\
    Interrupted? Rerun the command with --skip to resume; the model is the same to the last bit.")]
pub struct Args {
    /// The model
    model: PathBuf,
    /// Files of features with labels, or, if the model has an encoder, folders or archives of images (CLASS/*.jpg), images
    /// and tables of texts; each is a task. The training split is read where a file has two. - reads standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The class of all samples, if they have no labels of their own: a folder of images of one class
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
    /// Divide files into tasks of N samples, each of which is committed before the next one begins
    #[arg(long, value_name = "N")]
    task_size: Option<usize>,
    /// Skip tasks that were learned before
    #[arg(long, conflicts_with = "again")]
    skip: bool,
    /// Learn tasks again that were learned before
    #[arg(long)]
    again: bool,
    /// Do not form the classifier; the first prediction does
    #[arg(long)]
    defer: bool,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    samples: Samples,
}

pub fn main(args: Args) -> Result<()> {
    on_threads(args.how.threads, || learn(&args, room_to_hold()))
}

/// Learns, and holds at most `room` bytes of samples between the two passes.
fn learn(args: &Args, room: usize) -> Result<()> {
    let mut model = Session::open_to_write(&args.model)?;
    if args.task_size == Some(0) {
        bail!("--task-size 0 is not possible: a task has at least one sample");
    }
    if args.files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
        bail!("standard input is named twice, but can be read only once; name it once");
    }
    // Every file is opened before the first is learned, so that a wrong name changes nothing.
    let mut target = Target::of(&args.model, model.manifest());
    target = target.read_twice(args.how.quiet).of_class(args.class.as_deref())?;
    let mut seen = args.samples.named_encoder(&target)?;
    for file in args.files.iter().filter(|file| !args.samples.read_once(file)) {
        let reader = args.samples.open_labelled(file, &target)?;
        let Some(own) = reader.encoder().map(identity_of) else { continue };
        if let Some(difference) = seen.as_ref().and_then(|seen| seen.differs(&own)) {
            bail!("{}: its encoder is another than that of the files before it: {}", shown(file), escape(&difference));
        }
        seen.get_or_insert(own);
    }
    let before = model.manifest().clone();
    // The first encoder that is known is the model's, whatever it learned before: another one is refused from now on.
    if let Some(encoder) = seen {
        model.identify_encoder(&encoder)?;
        target.encoder = model.manifest().encoder.identity();
    }
    // Every file is read in full before the first is learned, so that damage inside one of them changes nothing. Small files are
    // held from then on. Features from standard input can be read only once, when their turn comes.
    let Args { samples, task_size, skip, again, .. } = args;
    let division = Division { samples, task_size: *task_size, skip: *skip, again: *again };
    let mut outlook = Outlook::of(model.manifest(), room);
    let mut surveys = Vec::new();
    for file in &args.files {
        let once = samples.read_once(file);
        let plan = if once { None } else { Some(survey(&model, file, &division, &target, &mut outlook)?) };
        // The classes of folders in the next file are the same whether this one was learned by this command or before.
        target.labels.extend(plan.iter().flat_map(|plan| plan.new_labels.iter().cloned()));
        surveys.push(plan);
    }
    let (mut tasks, mut skipped) = (0, 0);
    let last = args.files.len() - 1;
    for (index, (file, plan)) in args.files.iter().zip(surveys).enumerate() {
        let (done, left) = learn_file(&mut model, file, args, &target, (plan, index == last), &mut outlook)?;
        tasks += done;
        skipped += left;
    }
    // The last task was skipped, and with it the classifier.
    if !args.defer && model.manifest().weights.is_none() && model.manifest().samples > 0 {
        model.prepared()?;
        model.commit()?;
    }
    let formed = model.manifest().weights.is_some();
    let verdict = if formed { model_verdict(&mut model)? } else { None };
    let manifest = model.manifest();
    // The verdict has it otherwise.
    if let Some(warning) = manifest.width_warning().filter(|_| !formed) {
        note!("warning: {}", with_flags::<init::Args>(&warning));
    }
    if let Some(warning) = unequal_classes(manifest, &args.model) {
        note!("warning: {warning}");
    }
    let known = before.classes.len().min(manifest.classes.len());
    let new: Vec<&Label> = manifest.classes[known..].iter().map(|class| &class.label).collect();
    let samples = manifest.samples - before.samples;
    let value = json!({
        "model": raw(&args.model), "version": manifest.version, "tasks": tasks, "skipped": skipped,
        "samples": samples, "new_classes": new, "samples_in_all": manifest.samples,
        "classes_in_all": manifest.classes.len(), "basis_rank": manifest.rank(), "verdict": verdict,
    });
    let mut words = format!(
        "learned {} in {}, {}; {} has {} of {}, {}\n",
        count(samples, "sample"),
        count(tasks, "task"),
        count(new.len(), "new class"),
        shown(&args.model),
        count(manifest.samples, "sample"),
        count(manifest.classes.len(), "class"),
        parts(manifest)
    );
    if skipped > 0 {
        words += &format!("skipped {} learned before\n", count(skipped, "task"));
    }
    if let Some(verdict) = verdict {
        words += &format!("{verdict}\n");
    }
    if args.how.quiet && !args.how.json.to_stdout() {
        let saved = args.how.json.save(&format!("{value:#}\n"));
        return Ok(if tasks > 0 { changed(saved) } else { saved }?);
    }
    let printed = print(&args.how.json, &value, &words);
    Ok(if tasks > 0 { changed(printed) } else { printed }?)
}

/// Returns the verdict as text, and prints its warnings to standard error.
fn model_verdict(model: &mut Session) -> Result<Option<String>> {
    let verdict = model.prepared()?.summary().verdict();
    if let Some(verdict) = &verdict {
        verdict.warnings.iter().for_each(|warning| note!("warning: {}", with_flags::<init::Args>(warning)));
    }
    Ok(verdict.map(|verdict| verdict.line))
}

/// Learns the tasks of a file, whose survey is known unless it can be read only once; `last` is whether no file follows.
/// Returns the numbers of learned and of skipped tasks. Labels of standard input are added to `outlook`.
fn learn_file(
    model: &mut Session,
    file: &Path,
    args: &Args,
    target: &Target,
    (plan, last): (Option<Survey>, bool),
    outlook: &mut Outlook,
) -> Result<(usize, usize)> {
    // Tasks learned before this file, with their counts: a task that occurs twice in the file is learned twice.
    let mut known: HashMap<String, usize> = HashMap::new();
    model.manifest().tasks.iter().for_each(|task| *known.entry(task.digest.clone()).or_default() += 1);
    let dim = model.manifest().lift.dim;
    let name = raw(file);
    let once = plan.is_none();
    let whole_in_memory = model.manifest().config.schedule == Schedule::Paper;
    if let Some(plan) = &plan {
        // Standard input, which was not surveyed, may have had the same samples.
        if let Some(task) = plan.tasks.iter().find(|task| !args.again && known.contains_key(&task.digest)) {
            refuse_again(model, &shown(file), &task.digest, args.skip)?;
        }
        check_memory(model, &shown(file), plan, args, &known)?;
    }
    let (plan, held) = plan.map(|plan| (plan.tasks, plan.held)).unzip();
    let (mut done, mut left) = (0, 0);
    let total = plan.as_ref().map(|plan| plan.iter().map(|task| task.samples).sum::<usize>() as u64);
    let bar = Count::new(&name, total, args.how.quiet);
    let is_held = matches!(held, Some(Some(_)));
    let mut batches = match held.flatten() {
        Some(held) => Batches::Held(held.into_iter()),
        None => Batches::Read(Box::new(args.samples.open_labelled(file, target)?)),
    };
    for number in 0.. {
        let planned = plan.as_ref().map(|plan| plan.get(number));
        if let Some(None) = planned {
            break;
        }
        let size = planned.flatten().map(|task| task.samples).or(args.task_size);
        let skip = planned.flatten().is_some_and(|task| args.skip && take(&mut known, &task.digest));
        let mut digest = TaskDigest::default();
        let mut samples = 0;
        let (mut held, mut held_labels, mut held_weights) = (Vec::new(), Vec::new(), Vec::new());
        while size.is_none_or(|size| samples < size) {
            let most = size.map_or(ROWS, |size| ROWS.min(size - samples));
            let Some((x, labels, weights, rows)) = batches.next(most)? else { break };
            samples += labels.len();
            if once {
                check(model.manifest(), weighted(&x, dim, weights.as_deref())?, file, &rows)?;
                let new = outlook.add(&labels);
                outlook.warn_twins(file, &new);
            }
            if !is_held {
                digest.add(weighted(&x, dim, weights.as_deref())?, &labels);
            }
            bar.add(labels.len() as u64);
            if skip {
                continue;
            }
            if whole_in_memory || once {
                if once && held.len() + x.len() > held.capacity() {
                    let needed = memory::product(&[2 * held.len() + x.len(), size_of::<f32>()]);
                    let advice = "nothing of this task was learned; give a file, or divide it with --task-size";
                    system::room().ensure(needed, &shown(file), advice)?;
                }
                held.extend(x);
                held_labels.extend(labels);
                held_weights.extend(weights.unwrap_or_default());
            } else {
                model.learn(weighted(&x, dim, weights.as_deref())?, &labels)?;
            }
        }
        if samples == 0 {
            break;
        }
        // Samples that are held are those that were surveyed.
        let learned = planned.flatten().filter(|_| is_held).cloned().unwrap_or_else(|| digest.finish());
        let digest = &learned.digest;
        if planned.flatten().is_some_and(|task| task.digest != *digest) {
            bail!("{} has changed while it was read; nothing more of it was learned", shown(file));
        }
        if skip {
            left += 1;
            continue;
        }
        if once && !args.again && known.get(digest).is_some_and(|count| *count > 0) {
            refuse_again(model, &shown(file), digest, args.skip)?;
            take(&mut known, digest);
            left += 1;
            continue;
        }
        if !held_labels.is_empty() {
            // In pieces, as from a file, unless the schedule cuts after each.
            let piece = if whole_in_memory { held_labels.len() } else { ROWS };
            let held_weights = Some(&*held_weights).filter(|weights| !weights.is_empty());
            for (x, labels) in weighted(&held, dim, held_weights)?.chunks(piece).zip(held_labels.chunks(piece)) {
                model.learn(x, labels)?;
            }
        }
        let part = if number > 0 || size.is_some_and(|size| Some(size) == args.task_size) {
            format!("{name} [{number}]")
        } else {
            name.clone()
        };
        model.note(&part, &learned);
        // One commit for a task and its classifier, so that a rollback undoes both.
        let final_task = last && plan.as_ref().map_or(args.task_size.is_none(), |plan| number + 1 == plan.len());
        if final_task && !args.defer {
            model.prepared()?;
        }
        model.commit()?;
        done += 1;
    }
    if once && done + left == 0 {
        bail!("{}: there are no samples in it", shown(file));
    }
    Ok((done, left))
}

/// Features, labels, weights if there are any, and, if they were read, rows.
type Batch = (Vec<f32>, Vec<Label>, Option<Vec<f64>>, Vec<usize>);

/// The samples of a file, batch by batch: from the first pass, or read again.
enum Batches {
    Held(std::vec::IntoIter<Held>),
    Read(Box<Reader>),
}

impl Batches {
    /// Returns the next samples, at most `most`.
    fn next(&mut self, most: usize) -> Result<Option<Batch>> {
        Ok(match self {
            // The first pass read batches of the same sizes.
            Batches::Held(held) => held.next().map(|(x, labels, weights)| (x, labels, weights, Vec::new())),
            Batches::Read(reader) => {
                let all = |batch: loranpac_data::Batch| {
                    (batch.x, batch.labels.unwrap_or_default(), batch.weights, batch.rows)
                };
                reader.next(most)?.map(all)
            }
        })
    }
}

/// Refuses a file that would need more memory than there is. The directions on disk are mapped, and take none.
fn check_memory(model: &Session, name: &str, plan: &Survey, args: &Args, known: &HashMap<String, usize>) -> Result<()> {
    let manifest = model.manifest();
    let left_out = |task: &&Fingerprint| args.skip && known.contains_key(&task.digest);
    let new = plan.tasks.iter().filter(|task| !left_out(task)).map(|task| task.samples);
    let sizes = StreamSizes {
        samples: new.clone().sum(),
        largest_task: new.max().unwrap_or(0),
        classes: plan.new_labels.len(),
    };
    ensure_memory(&args.model, manifest, manifest.learn_bytes(&sizes)?)
        .with_context(|| format!("{name} cannot be learned"))
}

/// Consumes one occurrence of a task learned before; returns false if none is left.
fn take(known: &mut HashMap<String, usize>, digest: &str) -> bool {
    match known.get_mut(digest) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use loranpac::{Config, Prior, Width};
    use loranpac_store::{LiftRecord, Manifest, Settings};

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn files_that_are_held_are_learned_as_those_that_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (name, rows) in [("a.csv", 50), ("b.csv", 70)] {
            let row = |i: usize| format!("{}.5,{}.25,{},class {}\n", i * 7 % 11, (i + rows) % 5, i, i % 3);
            let text = format!("f0,f1,f2,label\n{}", (0..rows).map(row).collect::<String>());
            std::fs::write(path(name), text).unwrap();
        }
        let lift = LiftRecord::new("relu-random", 3, Width::Finite(60), 0, 0.1).unwrap();
        let settings = Settings {
            lift,
            config: Config::default(),
            keep: 0,
            width_choice: None,
            encoder: None,
            prior: Prior::None,
        };
        let learned = |name: &str, room: usize, options: &[&str]| -> Result<Manifest> {
            let model = path(name);
            Session::create(&model, &settings)?;
            let files = [model.clone(), path("a.csv"), path("b.csv")].map(|path| path.display().to_string());
            let line = ["learn", "--quiet"]
                .iter()
                .copied()
                .chain(files.iter().map(String::as_str))
                .chain(options.iter().copied());
            learn(&Command::try_parse_from(line)?.args, room)?;
            Ok(Manifest::read(&model.join("MANIFEST"))?)
        };
        for (number, options) in [&[][..], &["--task-size", "20"], &["--task-size", "7", "--defer"]].iter().enumerate()
        {
            // All is held; the first file alone; nothing.
            let all =
                [usize::MAX, 4000, 0].map(|room| learned(&format!("{number}-{room}.lrp"), room, options).unwrap());
            assert!(all.iter().all(|manifest| *manifest == all[0]), "{options:?}");
            assert_eq!(all[0].samples, 120);
        }
    }
}
