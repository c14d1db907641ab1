//! The report of a sweep: one HTML file that needs nothing else, Markdown, CSV tables, and each figure as its own SVG.

mod csv;
mod figures;
mod html;
mod markdown;
mod runs;

use std::path::Path;

use crate::chart::{self, Heights, Panel};
use crate::error::Error;
use crate::origin::Origin;
use crate::recipe::Recipe;
use crate::sweep::{Record, write_atomically};
use crate::view::{Axis, Filled};
use runs::Runs;

/// A sweep's results, ready to be written.
pub struct Report<'a> {
    recipe: &'a Recipe,
    notes: &'a [String],
    origin: Origin<'a>,
    tables: Vec<Filled>,
    figures: Vec<(String, Vec<Panel>)>,
    runs: Runs<'a>,
}

impl<'a> Report<'a> {
    /// Fills in the recipe's tables and figures, and adds what any report should show.
    pub fn new(recipe: &'a Recipe, records: &'a [Record], notes: &'a [String], command: &'a str) -> Self {
        let varying = varying(records);
        let further = figures::further(recipe, records, &varying);
        let draw = |figure: &crate::view::Figure| (figure.title.clone(), figure.draw(records));
        Report {
            recipe,
            notes,
            origin: Origin::here(command, records.iter().map(|record| record.run.config.threads)),
            tables: recipe.tables.iter().map(|table| table.fill(records)).collect(),
            figures: recipe.figures.iter().chain(&further).map(draw).collect(),
            runs: Runs::new(records, varying),
        }
    }

    /// The recipe's tables, filled in.
    pub fn tables(&self) -> &[Filled] {
        &self.tables
    }

    /// Writes `report.html`, `report.md`, `table-N.csv`, `figure-N-M.svg`, one for every panel, and `figure-N.svg` with all
    /// panels of a figure side by side into a folder.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        std::fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
        remove_old(folder)?;
        let put = |name: String, text: String| write_atomically(&folder.join(name), text.as_bytes());
        for (n, table) in self.tables.iter().enumerate() {
            put(format!("table-{}.csv", n + 1), csv::table(table))?;
        }
        put("runs.csv".to_owned(), csv::runs(&self.runs))?;
        for (n, (title, panels)) in self.figures.iter().enumerate() {
            if panels.len() > 1 {
                let all = chart::grid(title, panels, Heights::Own);
                put(format!("figure-{}.svg", n + 1), chart::standalone(&all))?;
            }
            for (m, panel) in panels.iter().enumerate() {
                put(format!("figure-{}-{}.svg", n + 1, m + 1), chart::standalone(&chart::svg(panel)))?;
            }
        }
        put("report.md".to_owned(), markdown::write(self))?;
        put("report.html".to_owned(), html::write(self))
    }
}

/// Removes the tables and figures of an earlier report: the new one may have fewer.
fn remove_old(folder: &Path) -> Result<(), Error> {
    let unreadable = |source| Error::Read { path: folder.to_owned(), source };
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ours = (name.starts_with("figure-") && name.ends_with(".svg"))
            || (name.starts_with("table-") && name.ends_with(".csv"));
        if ours {
            std::fs::remove_file(&path).map_err(|source| Error::Write { path, source })?;
        }
    }
    Ok(())
}

/// Axes on which the runs differ, besides data set, division into tasks and seed.
fn varying(records: &[Record]) -> Vec<Axis> {
    let settings = records.iter().flat_map(|record| record.run.config.spec.settings.keys());
    let mut settings: Vec<Axis> = settings.map(|name| Axis::Setting(name.clone())).collect();
    settings.sort();
    settings.dedup();
    let fixed = [
        Axis::Lift,
        Axis::Width,
        Axis::Truncate,
        Axis::Schedule,
        Axis::MaxRank,
        Axis::PerClass,
        Axis::LiftSeed,
        Axis::Gamma,
    ];
    let differs = |axis: &Axis| {
        // What only tells methods or data sets apart says nothing that their names do not.
        let places: Vec<((&str, &str), String)> = records
            .iter()
            .map(|record| ((record.run.method.as_str(), record.data.file.as_str()), axis.place(record).text))
            .collect();
        places.iter().any(|(run, place)| places.iter().any(|(other, p)| other == run && p != place))
    };
    std::iter::once(Axis::Method).chain(fixed.into_iter().chain(settings).filter(differs)).collect()
}
