//! The report of a sweep: one HTML file that needs nothing else, Markdown, CSV tables, and each figure as its own SVG.

mod contents;
mod csv;
mod figures;
mod html;
mod markdown;
mod runs;

use std::path::Path;

use loranpac_data::ReadError;

use crate::cache::write_atomically;
use crate::chart::{self, Heights};
use crate::error::Error;
use crate::recipe::Recipe;
use crate::record::Record;
use crate::view::Filled;
use contents::Contents;

/// A sweep's results, ready to be written.
pub struct Report<'a>(Contents<'a>);

impl<'a> Report<'a> {
    /// Fills in the recipe's tables and figures, and adds what any report should show.
    pub fn new(recipe: &'a Recipe, records: &'a [Record], notes: &'a [String], command: &'a str) -> Self {
        Report(Contents::new(recipe, records, notes, command))
    }

    /// The recipe's tables, filled in.
    pub fn tables(&self) -> &[Filled] {
        &self.0.tables
    }

    /// Writes `report.html`, `report.md`, `table-N.csv`, `figure-N-M.svg`, one for every panel, and `figure-N.svg` with all
    /// panels of a figure side by side into a folder.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        std::fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
        remove_old(folder)?;
        let contents = &self.0;
        let put = |name: String, text: String| write_atomically(&folder.join(name), text.as_bytes());
        for (n, table) in contents.tables.iter().enumerate() {
            put(format!("table-{}.csv", n + 1), csv::table(table))?;
        }
        put("runs.csv".to_owned(), csv::runs(&contents.runs))?;
        for (n, (title, panels)) in contents.figures.iter().enumerate() {
            if panels.len() > 1 {
                let all = chart::grid(title, panels, Heights::Own);
                put(format!("figure-{}.svg", n + 1), chart::standalone(&all))?;
            }
            for (m, panel) in panels.iter().enumerate() {
                put(format!("figure-{}-{}.svg", n + 1, m + 1), chart::standalone(&chart::svg(panel)))?;
            }
        }
        put("report.md".to_owned(), markdown::write(contents))?;
        put("report.html".to_owned(), html::write(contents))
    }
}

/// Removes the tables and figures of an earlier report: the new one may have fewer.
fn remove_old(folder: &Path) -> Result<(), Error> {
    let unreadable = |source| ReadError::new(folder, source);
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
