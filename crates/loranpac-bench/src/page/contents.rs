//! What a report holds, whatever it is written as.

use super::figures;
use super::runs::Runs;
use crate::chart::Panel;
use crate::origin::Origin;
use crate::recipe::Recipe;
use crate::record::Record;
use crate::view::{Axis, Figure, Filled};

/// Everything in a report.
pub(super) struct Contents<'a> {
    /// Title, description and the place in the paper.
    pub recipe: &'a Recipe,
    /// What was left out or changed, and why.
    pub notes: &'a [String],
    /// When, where and by which command it is written.
    pub origin: Origin<'a>,
    /// The recipe's tables.
    pub tables: Vec<Filled>,
    /// The recipe's figures, and those that any report has: title and panels.
    pub figures: Vec<(String, Vec<Panel>)>,
    /// All runs.
    pub runs: Runs<'a>,
}

impl<'a> Contents<'a> {
    pub fn new(recipe: &'a Recipe, records: &'a [Record], notes: &'a [String], command: &'a str) -> Self {
        let varying = varying(records);
        let further = figures::further(recipe, records, &varying);
        let draw = |figure: &Figure| (figure.title.clone(), figure.draw(records));
        Contents {
            recipe,
            notes,
            origin: Origin::here(command, records.iter().map(|record| &record.run)),
            tables: recipe.tables.iter().map(|table| table.fill(records)).collect(),
            figures: recipe.figures.iter().chain(&further).map(draw).collect(),
            runs: Runs::new(records, varying),
        }
    }
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
