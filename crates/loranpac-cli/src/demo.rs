//! `loranpac demo`: the main job on data that is inside the program.

use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::Result;
use loranpac::lift::{self, LiftSpec};
use loranpac::memory;
use loranpac::registry::MethodOptions;
use loranpac_eval::embedded::digits;
use loranpac_eval::run::{Experiment, Run};
use loranpac_eval::spec::Spec;
use loranpac_eval::stream::{self, Scenario};

use crate::progress::Bar;
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
}

/// Method, title of its column.
const METHODS: [(&str, &str); 4] = [
    ("loranpac", "LoRanPAC"),
    ("loranpac-soft", "LoRanPAC soft"),
    ("min-norm", "min-norm"),
    ("simplecil", "class means"),
];

pub fn main(args: Args) -> Result<()> {
    let clock = Instant::now();
    let data = digits();
    let spec = LiftSpec::new(data.dim, args.width);
    let lift = lift::build("relu-random", spec)?;
    let scenario = Scenario::Class { base: 0, increment: 1 };
    let order = stream::class_order(&data, args.seed);
    let tasks = stream::tasks(&data, scenario, &order)?;
    println!(
        "{} handwritten digits, one class at a time, features lifted from {} to {}.\n\
         Accuracy in percent on {} test digits, over all classes seen so far:\n",
        data.train.len(),
        data.dim,
        args.width,
        data.test.len()
    );
    let mut runs: Vec<Run> = Vec::new();
    for (name, _) in METHODS {
        let spec = Spec { width: args.width, scenario, seed: args.seed, ..Spec::new(name) };
        let experiment = Experiment {
            spec: &spec,
            method: spec.method()?,
            options: MethodOptions::new(lift.clone()),
            lift: None,
            tasks: &tasks,
            threads: rayon::current_num_threads(),
        };
        let bar = Bar::new(name, false);
        runs.push(experiment.run(&data, &mut |progress| {
            bar.update(progress);
            ControlFlow::Continue(())
        })?);
    }
    let header: Vec<&str> = ["digit", "classes", "samples"].into_iter().chain(METHODS.map(|m| m.1)).collect();
    let rows: Vec<Vec<String>> = (0..tasks.len())
        .map(|t| {
            let record = &runs[0].tasks[t];
            let start =
                [data.classes[order[t]].to_string(), record.classes_seen.to_string(), record.samples_seen.to_string()];
            start.into_iter().chain(runs.iter().map(|run| table::number(run.tasks[t].accuracy_samples, 1))).collect()
        })
        .collect();
    println!("{}", table::render(&header, &rows));
    println!("{}", verdict(&runs, args.width));
    println!(
        "{} for all four methods. No sample was kept, nothing was tuned.",
        table::seconds(clock.elapsed().as_secs_f64())
    );
    println!("\nNext: loranpac run --data FEATURES.npz   (x_train, y_train, x_test, y_test; see loranpac run --help)");
    Ok(())
}

/// What the numbers show, in words.
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
             samples nears the width {width}, tiny eigenvalues invade the spectrum, and it divides by them.",
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
