//! Figures that any report should have.

use crate::chart::Log;
use crate::measure::Metric;
use crate::recipe::Recipe;
use crate::record::Record;
use crate::spec::When;
use crate::value::Many;
use crate::view::{Axis, Figure};

/// Accuracy over tasks, spectra and accuracy matrices, where the runs have them, unless the recipe shows them.
pub(super) fn further(recipe: &Recipe, records: &[Record], varying: &[Axis]) -> Vec<Figure> {
    let has = |x: &str, y: Metric| {
        let metrics = |figure: &Figure| figure.y.as_ref().is_some_and(|y_| y_.values().contains(&y));
        recipe.figures.iter().any(|figure| figure.x == x && (x == "matrix" || metrics(figure)))
    };
    let figure = |title: &str, x: &str, y: Option<Metric>, log: Log| Figure {
        title: title.to_owned(),
        x: x.to_owned(),
        y: y.map(Many::One),
        lines: varying.to_vec(),
        panels: vec![Axis::Data, Axis::Inc],
        log,
        tasks: None,
        only: Default::default(),
    };
    let evaluated = records.iter().any(|r| r.run.config.spec.eval == When::Every && r.run.tasks.len() > 1);
    let spectra = records.iter().any(|r| r.run.config.spec.spectrum != When::Never);
    let mut figures = Vec::new();
    if evaluated && !has("task", Metric::Accuracy) {
        figures.push(figure("Accuracy over tasks", "task", Some(Metric::Accuracy), Log::None));
    }
    if spectra && !has("index", Metric::Eigenvalues) {
        figures.push(figure("Eigenvalues at the end", "index", Some(Metric::Eigenvalues), Log::Y));
    }
    if evaluated && !has("matrix", Metric::Accuracy) {
        figures.push(figure("Accuracy matrices", "matrix", None, Log::None));
    }
    figures
}
