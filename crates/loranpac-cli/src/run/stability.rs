//! `loranpac run --stability`: the sensitivity of the final accuracy to each setting, on the user's own features.

use anyhow::{Result, bail};
use loranpac_bench::cache::Cache;
use loranpac_bench::maps::Maps;
use loranpac_bench::plan::{Plan, Resources};
use loranpac_bench::run::SCHEMA;
use loranpac_bench::stability::{self, COLUMNS};
use loranpac_bench::sweep::Sweep;
use loranpac_data::text::{escape, escape_markdown};
use serde_json::json;

use super::Args;
use crate::file::write;
use crate::say::{self, say};
use crate::words::count;
use crate::{command, sweep, table};

pub fn main(args: &Args, threads: usize) -> Result<()> {
    let request = args.check()?;
    let source = args.source()?;
    let dataset = args.open(&source)?;
    let (name, classes) = (dataset.name.clone(), dataset.classes.len());
    let specs = request.specs(&dataset, source.raw().is_some())?;
    // Invalid runs are an error now, not a note for each of their variations.
    let (mut maps, mut raw) = (Maps::default(), source.raw());
    let plan = Plan::with_raw(&mut maps, dataset, raw.as_mut(), specs, Resources::threads(threads))
        .map_err(|e| request.explain(e))?;
    let bases: Vec<_> = plan.specs().cloned().collect();
    let mut notes = plan.notes().to_vec();
    args.json.save("")?; // An unwritable path is reported now, not after hours.
    let plans = [(source, stability::specs(&bases, classes)?)];
    let cache = args.report.as_ref().map(|folder| Cache::open(folder.join("runs"))).transpose()?;
    let runs = Sweep { plans: &plans, cache: cache.as_ref(), threads, beside_the_paper: false, forecast: true };
    let records = sweep::run(&runs, args.quiet, &mut notes, args.report.as_deref())?;
    if records.is_empty() {
        bail!("nothing could be run: {}", notes.join("; "));
    }
    let all = stability::measure(&bases, classes, &records)?;
    let title = format!("Final accuracy on {name} when one setting is varied ({})", count(records.len(), "run"));
    let runs: Vec<_> = records.iter().map(|record| &record.run).collect();
    let text = || {
        anyhow::Ok(serde_json::to_string_pretty(&json!({ "schema": SCHEMA, "stability": all, "runs": runs }))? + "\n")
    };
    if let Some(folder) = &args.report {
        let page = format!(
            "# {}\n\n    loranpac {}\n\n{}\n![Final accuracy over each setting](stability.svg)\n{}",
            escape_markdown(&title),
            escape(command::line()),
            stability::markdown(&all),
            notes.iter().map(|note| format!("\n- {}\n", escape_markdown(note))).collect::<String>()
        );
        write(&folder.join("stability.json"), &text()?)?;
        write(&folder.join("stability.md"), &page)?;
        write(&folder.join("stability.svg"), stability::svg(&title, &all))?;
    }
    if args.json.to_stdout() {
        return Ok(say::json(&text()?)?);
    }
    args.json.save(&text()?)?;
    if !args.quiet {
        let table = table::layout(&COLUMNS, &stability::rows(&all), 3);
        say!("{table}\n{}; spread: highest minus lowest, in points", escape(&title))?;
    }
    Ok(())
}
