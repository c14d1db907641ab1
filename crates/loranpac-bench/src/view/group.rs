//! How runs are told apart and grouped: by their places on axes.

use super::axis::{AXES, Axis};
use crate::record::Record;
use crate::spec::Spec;

/// The places of a run on several axes, as one line of text.
pub fn join(axes: &[Axis], record: &Record) -> String {
    let places = axes.iter().map(|axis| (axis, axis.place(record).text)).filter(|(_, text)| text != "-");
    places.map(|(axis, text)| axis.named(&text)).collect::<Vec<_>>().join(", ")
}

/// The axes, with the data set first if neither they nor `others` have it: runs on different data are never averaged.
pub(super) fn with_data(axes: &[Axis], others: &[Axis]) -> Vec<Axis> {
    let missing = !axes.iter().chain(others).any(|axis| *axis == Axis::Data);
    missing.then_some(Axis::Data).into_iter().chain(axes.iter().cloned()).collect()
}

/// Settings must be settings of one of the runs; everything else every run has.
pub(super) fn known(axis: &Axis, specs: &[Spec], title: &str) -> Result<(), String> {
    match axis {
        Axis::Setting(name) if !specs.iter().any(|spec| spec.settings.contains_key(name)) => {
            let names = AXES.map(|(name, _)| name).join(", ");
            Err(format!("{title}: {name:?} is neither an axis ({names}) nor a setting of these runs"))
        }
        _ => Ok(()),
    }
}

/// Runs that share a place on all axes are averaged, so they may differ in nothing but the seeds, of classes and of projections.
pub(super) fn check_groups<'a>(
    axes: &[Axis],
    specs: impl Iterator<Item = &'a Spec>,
    title: &str,
) -> Result<(), String> {
    let mut groups: Vec<(Vec<String>, Spec)> = Vec::new();
    for spec in specs {
        let places = axes.iter().map(|axis| axis.place_of(spec).text).collect::<Vec<_>>();
        let seedless = Spec { seed: 0, lift_seed: 0, ..spec.clone() };
        match groups.iter().find(|(known, _)| *known == places) {
            None => groups.push((places, seedless)),
            Some((_, first)) if *first == seedless => {}
            Some((_, first)) => {
                let (a, b) = (first.command("DATA"), seedless.command("DATA"));
                return Err(format!("{title}: nothing there tells these apart: {a} and {b}"));
            }
        }
    }
    Ok(())
}
