//! `loranpac run`: a continual-learning experiment on features, or on raw data that are encoded first.

mod args;
mod flags;
mod stability;
mod tables;

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result};
use loranpac_bench::plan::Plan;
use loranpac_bench::report;
use loranpac_bench::run::{Run, SCHEMA};
use loranpac_bench::say::Notice;
use loranpac_data::text::escape;
use serde_json::json;

pub use args::Args;

use crate::faults::with_flags;
use crate::file::write;
use crate::model::pool;
use crate::progress::Bar;
use crate::say::{self, note};
use crate::threads::threads;

pub fn main(args: Args) -> Result<()> {
    let threads = threads(args.threads)?;
    let pool = pool(threads)?;
    if args.stability {
        return pool.install(|| stability::main(&args, threads));
    }
    let runs = pool.install(|| run_all(&args, threads))?;
    if args.json.to_stdout() {
        say::json(&to_json(&runs)?)?;
    } else if !args.quiet {
        say::lines(&tables::tables(&runs))?;
    }
    if !args.quiet {
        for (method, verdict) in report::verdicts(&runs) {
            verdict.warnings.iter().for_each(|warning| note!("warning: {method}: {}", with_flags::<Args>(warning)));
        }
    }
    Ok(())
}

fn run_all(args: &Args, threads: usize) -> Result<Vec<Run>> {
    let request = args.check()?;
    let source = args.source()?;
    let dataset = args.open(&source)?;
    let specs = request.specs(&dataset, source.raw().is_some())?;
    let mut maps = request.maps()?;
    let mut raw = source.raw();
    let mut plan = Plan::with_raw(&mut maps, dataset, raw.as_mut(), specs, request.resources(threads))
        .map_err(|e| request.explain(e))?;
    if !args.quiet {
        plan.notes().iter().for_each(|words| note!("note: {words}"));
    }
    let names: Vec<String> = plan.specs().map(|spec| spec.method.clone()).collect();
    let mut runs = Vec::new();
    save(args, &runs)?; // An unwritable path is reported now, not after hours.
    for (number, name) in names.iter().enumerate() {
        let bar = Bar::new(name, args.quiet);
        let mut say = |notice: Notice<'_>| {
            match notice {
                Notice::Progress(words) if !args.quiet => note!("{}", escape(words)),
                Notice::Progress(_) => {}
                Notice::Warning(words) => note!("warning: {}", escape(words)),
            }
            ControlFlow::Continue(())
        };
        runs.push(plan.run_and_say(number, &mut say, &mut |progress| {
            bar.update(progress);
            ControlFlow::Continue(())
        })?);
        drop(bar);
        save(args, &runs)?;
    }
    Ok(runs)
}

/// Writes the requested files with the runs so far: no finished run is lost if a later one fails.
fn save(args: &Args, runs: &[Run]) -> Result<()> {
    let text = to_json(runs)?;
    args.json.save(&text)?;
    if let Some(folder) = &args.report {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let put = |name: &str, text: &str| write(&Path::new(folder).join(name), text);
        put("run.json", &text)?;
        put("report.md", &tables::markdown(runs))?;
        put("accuracy.svg", &report::accuracy_svg(runs, &tables::title(runs)))?;
        if let Some(svg) = report::certificate_svg(runs, &tables::title(runs)) {
            put("certificate.svg", &svg)?;
        }
    }
    Ok(())
}

fn to_json(runs: &[Run]) -> Result<String> {
    Ok(serde_json::to_string_pretty(&json!({ "schema": SCHEMA, "runs": runs }))? + "\n")
}
