//! `loranpac demo`: a comparison of methods on the digits inside the program.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use loranpac::memory;
use loranpac_bench::maps::Maps;
use loranpac_bench::plan::{Plan, Resources};
use loranpac_bench::run::Run;
use loranpac_bench::spec::{Scenario, Spec};
use loranpac_bench::stream;
use loranpac_data::dataset::Part;
use loranpac_data::embedded::digits;

use crate::model::{on_threads, shown};
use crate::progress::Bar;
use crate::say::say;
use crate::table;

/// Options of `demo`.
#[derive(clap::Args)]
pub struct Args {
    /// Width of the lifted features, E
    #[arg(long, default_value_t = 1_200, value_name = "E")]
    width: usize,
    /// Class order, as NumPy's legacy generator shuffles for this seed
    #[arg(long, default_value_t = 1993, value_name = "S")]
    seed: u32,
    /// Write the digits as CSV files into this folder instead: two weeks to learn, and some to test and to predict
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
}

/// Method, title of its column.
const METHODS: [(&str, &str); 4] = [
    ("loranpac", "LoRanPAC"),
    ("loranpac-soft", "LoRanPAC soft"),
    ("min-norm", "min-norm"),
    ("simplecil", "class means"),
];

pub fn main(args: Args) -> Result<()> {
    if let Some(folder) = &args.files {
        return files(folder);
    }
    on_threads(None, || show(&args))
}

fn show(args: &Args) -> Result<()> {
    let clock = Instant::now();
    let data = Arc::new(digits());
    let scenario = Scenario::Class { base: 0, increment: 1 };
    let order = stream::class_order(&data, args.seed);
    let specs = METHODS.map(|(name, _)| Spec {
        width: loranpac::Width::Finite(args.width),
        scenario,
        seed: args.seed,
        ..Spec::new(name)
    });
    let resources = Resources::threads(rayon::current_num_threads());
    let mut maps = Maps::default();
    let mut plan = Plan::new(&mut maps, data.clone(), specs.to_vec(), resources)?;
    say!(
        "{} handwritten digits, one class at a time, features lifted from {} to {}.\n\
         Accuracy in percent on {} test digits, over all classes seen so far:\n",
        data.train.len(),
        data.dim,
        args.width,
        data.test.len()
    )?;
    let mut runs: Vec<Run> = Vec::new();
    for (number, (name, _)) in METHODS.iter().enumerate() {
        let bar = Bar::new(name, false);
        runs.push(plan.run(number, &mut |progress| {
            bar.update(progress);
            ControlFlow::Continue(())
        })?);
    }
    let header: Vec<&str> = ["digit", "classes", "samples"].into_iter().chain(METHODS.map(|m| m.1)).collect();
    let rows: Vec<Vec<String>> = (0..order.len())
        .map(|t| {
            let record = &runs[0].tasks[t];
            let start =
                [data.classes[order[t]].to_string(), record.classes_seen.to_string(), record.samples_seen.to_string()];
            start.into_iter().chain(runs.iter().map(|run| table::number(run.tasks[t].accuracy_samples, 1))).collect()
        })
        .collect();
    say!("{}", table::render(&header, &rows))?;
    say!("{}", verdict(&runs, args.width))?;
    say!(
        "{} for all four methods. No sample was kept, nothing was tuned.",
        table::seconds(clock.elapsed().as_secs_f64())
    )?;
    say!("\nNext, with texts or images of yours:")?;
    say!(
        "  loranpac init m.lrp --encoder text-ngrams   (or image-basic, or the folder of a ViT or a sentence encoder)"
    )?;
    say!("  loranpac learn m.lrp samples.csv            (columns text and label; or a folder of images, CLASS/*.jpg)")?;
    say!("Or an experiment on features:  loranpac run --data FEATURES.npz")?;
    Ok(())
}

/// Writes the digits as two weekly batches: 0 to 4 in the first week, 5 to 9 in the second.
fn files(folder: &Path) -> Result<()> {
    let data = digits();
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let rows = |part: &Part, wanted: &dyn Fn(usize) -> bool, labels: bool| {
        let header = (0..data.dim).map(|i| format!("pixel{i}")).chain(labels.then(|| "label".to_owned()));
        let mut table = csv::Writer::from_writer(Vec::new());
        table.write_record(header)?;
        for (row, &class) in part.y.iter().enumerate().filter(|(_, class)| wanted(**class)) {
            let x = part.x[row * data.dim..(row + 1) * data.dim].iter().map(|v| v.to_string());
            let label = labels.then(|| format!("digit {}", data.classes[class]));
            table.write_record(x.chain(label))?;
        }
        anyhow::Ok(table.into_inner().map_err(|error| error.into_error())?)
    };
    for (name, table) in [
        ("week1.csv", rows(&data.train, &|class| class < 5, true)),
        ("week2.csv", rows(&data.train, &|class| class >= 5, true)),
        ("test.csv", rows(&data.test, &|_| true, true)),
        ("new.csv", rows(&data.test, &|_| true, false)),
    ] {
        crate::file::write(&folder.join(name), &table?)?;
    }
    Ok(say!("{}: week1.csv, week2.csv, test.csv, new.csv", shown(folder))?)
}

/// Summarises the results as text.
fn verdict(runs: &[Run], width: usize) -> String {
    let [hard, soft, min_norm, means] = runs else { return String::new() };
    let last = |run: &Run| run.final_accuracy_samples.unwrap_or(0.0);
    let worst_drop = |run: &Run| {
        let mut best = 0.0f64;
        run.tasks.iter().filter_map(|t| t.accuracy_samples).fold(0.0f64, |drop, a| {
            best = best.max(a);
            drop.max(best - a)
        })
    };
    let best = if last(soft) >= last(hard) { soft } else { hard };
    let mut text = format!(
        "LoRanPAC ends at {:.1}% (hard) and {:.1}% (soft), class means at {:.1}%.",
        last(hard),
        last(soft),
        last(means)
    );
    if worst_drop(min_norm) > worst_drop(best) + 2.0 {
        text += &format!(
            "\nWithout truncation (min-norm) the classifier loses up to {:.1} points on the way: as the number of\n\
             samples nears the width {width}, tiny eigenvalues appear in the spectrum, and it divides by them.",
            worst_drop(min_norm)
        );
    }
    if let Some(error) = hard.tasks.last().and_then(|t| t.train_mse) {
        text += &format!(
            "\nTraining error, computed without the data: {error:.4}. Model: {}.",
            memory::human_bytes(hard.state_bytes)
        );
    }
    text + "\n"
}
