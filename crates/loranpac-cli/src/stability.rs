//! `loranpac run --stability`: how much the final accuracy depends on each setting, on the user's own features.

use anyhow::{Result, bail};
use loranpac_bench::plan::Maps;
use loranpac_bench::run::SCHEMA;
use loranpac_bench::spec::Spec;
use loranpac_bench::stability::{self, COLUMNS};
use loranpac_bench::sweep::{self as sweeps, Store, Sweep};
use loranpac_data::text::{escape, escape_markdown};
use serde_json::json;

use crate::run::{Args, orders, specify, with_data_for, write};
use crate::say::{self, say};
use crate::{command_line, table};

pub fn main(args: &Args, threads: usize) -> Result<()> {
    let (methods, common) = specify(args)?;
    let source = args.source();
    let mut dataset = source.open()?;
    args.per_class.into_iter().for_each(|count| dataset.limit_per_class(count));
    let methods = with_data_for(methods, dataset.with_layers().as_ref(), args)?;
    let mut bases = Vec::new();
    for method in &methods {
        for (seed, order) in orders(args)? {
            let spec = Spec { method: method.name.to_owned(), seed, order, ..common.clone() }.normalised()?;
            // What is wrong with the runs themselves is an error now, not a note for each of their variations.
            sweeps::check(&spec, &dataset, &Maps::new(true, None))?;
            bases.push(spec);
        }
    }
    let (name, classes) = (dataset.name.clone(), dataset.classes.len());
    drop(dataset);
    if let Some(path) = args.json.as_ref().filter(|_| !args.to_stdout()) {
        write(path, "")?; // An unwritable path shows now, not after hours.
    }
    let plans = [(source, stability::specs(&bases, classes)?)];
    let store = match &args.report {
        None => None,
        Some(folder) => Some(Store::open(folder.join("runs"))?),
    };
    let sweep = Sweep { plans: &plans, store: store.as_ref(), threads, beside_the_paper: false };
    let mut notes = Vec::new();
    let records = crate::sweep::run(&sweep, args.quiet, &mut notes, args.report.as_deref())?;
    if records.is_empty() {
        bail!("nothing could be run: {}", notes.join("; "));
    }
    let all = stability::measure(&bases, classes, &records)?;
    let title = format!("Final accuracy on {name} when one setting is varied ({} runs)", records.len());
    let runs: Vec<_> = records.iter().map(|record| &record.run).collect();
    let text = || {
        anyhow::Ok(serde_json::to_string_pretty(&json!({ "schema": SCHEMA, "stability": all, "runs": runs }))? + "\n")
    };
    if let Some(folder) = &args.report {
        let page = format!(
            "# {}\n\n    loranpac {}\n\n{}\n![Final accuracy over each setting](stability.svg)\n{}",
            escape_markdown(&title),
            escape(command_line()),
            stability::markdown(&all),
            notes.iter().map(|note| format!("\n- {}\n", escape_markdown(note))).collect::<String>()
        );
        write(&folder.join("stability.json"), &text()?)?;
        write(&folder.join("stability.md"), &page)?;
        write(&folder.join("stability.svg"), &stability::svg(&title, &all))?;
    }
    if args.to_stdout() {
        return Ok(say::json(&text()?)?);
    }
    if let Some(path) = &args.json {
        crate::file::write(path, text()?.as_bytes())?;
    }
    if !args.quiet {
        let table = table::layout(&COLUMNS, &stability::rows(&all), 3);
        say!("{table}\n{}; spread: highest minus lowest, in points", escape(&title))?;
    }
    Ok(())
}
