//! Figures: charts of lines, and accuracy matrices.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::axis::{Axis, Place};
use super::curves::{self, Curve};
use super::group::{check_groups, join, known, with_data};
use crate::chart::{Line, Log, Panel, Style, level};
use crate::measure::{Kind, Metric};
use crate::record::{Data, Record};
use crate::spec::Spec;
use crate::value::{Many, Value};

/// A figure of a recipe: one panel for every combination of `panels`, one line for every combination of `lines`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Figure {
    /// Its title.
    pub title: String,
    /// What runs along: `task`, `index` (of eigenvalues), an axis of the runs, or `matrix` for accuracy matrices.
    pub x: String,
    /// What is drawn.
    #[serde(default)]
    pub y: Option<Many<Metric>>,
    /// What tells lines apart; in matrices, what tells matrices apart.
    #[serde(default)]
    pub lines: Vec<Axis>,
    /// What tells panels apart.
    #[serde(default = "by_data")]
    pub panels: Vec<Axis>,
    /// Which axes are logarithmic.
    #[serde(default)]
    pub log: Log,
    /// With `index`: draw so many of the first tasks instead of the last.
    #[serde(default)]
    pub tasks: Option<usize>,
    /// Only runs that stand at these places.
    #[serde(default)]
    pub only: BTreeMap<String, Many<Value>>,
}

fn by_data() -> Vec<Axis> {
    vec![Axis::Data]
}

impl Figure {
    pub(super) fn metrics(&self) -> &[Metric] {
        self.y.as_ref().map_or(&[], Many::values)
    }

    /// Whether it can be made from these runs.
    pub fn check(&self, specs: &[Spec]) -> Result<(), String> {
        let title = &self.title;
        let own = !["task", "index", "matrix"].contains(&self.x.as_str());
        let along = own.then(|| Axis::from(self.x.clone()));
        let only = self.only.keys().map(|name| Axis::from(name.clone()));
        let axes: Vec<Axis> = self.lines.iter().chain(&self.panels).cloned().chain(along).collect();
        axes.iter().cloned().chain(only).try_for_each(|axis| known(&axis, specs, title))?;
        if self.x != "matrix" && self.metrics().is_empty() {
            return Err(format!("{title}: y is missing"));
        }
        let fits = |metric: &&Metric| match self.x.as_str() {
            "task" => metric.kind() == Kind::Task,
            "index" => metric.kind() == Kind::Spectrum,
            _ => metric.kind() != Kind::Spectrum,
        };
        if let Some(metric) = self.metrics().iter().find(|metric| !fits(metric)) {
            return Err(format!("{title}: {} cannot be drawn over {}", metric.label(), self.x));
        }
        let wanted: Vec<&Spec> = specs.iter().filter(|spec| self.wants(|axis| axis.place_of(spec), None)).collect();
        if wanted.is_empty() {
            return Err(format!("{title}: no run is as `only` says"));
        }
        // A difference of two runs is drawn as one line.
        let pair = self.metrics().contains(&Metric::SpectrumDifference);
        let axes = if pair { axes.into_iter().chain([Axis::Schedule]).collect() } else { axes };
        check_groups(&axes, wanted.into_iter(), title)
    }

    /// Whether a run stands where `only` says. The data set is known by its name, and by that of its file.
    fn wants(&self, place: impl Fn(&Axis) -> Place, data: Option<&Data>) -> bool {
        self.only.iter().all(|(name, values)| {
            let axis = Axis::from(name.clone());
            let at = place(&axis);
            values.values().iter().any(|value| match (value, at.number, data) {
                (_, _, Some(data)) if axis == Axis::Data => [&data.key, &data.file].contains(&&value.to_string()),
                (_, _, None) if axis == Axis::Data => true,
                (Value::Integer(value), Some(number), _) => *value as f64 == number,
                (Value::Number(value), Some(number), _) => *value == number,
                (value, ..) => value.to_string() == at.text,
            })
        })
    }

    /// Draws it: panels with their lines, seeds averaged.
    pub fn draw(&self, records: &[Record]) -> Vec<Panel> {
        let wanted = |record: &&Record| self.wants(|axis| axis.place(record), Some(&record.data));
        let panel_axes = with_data(&self.panels, &self.lines);
        let mut panels: Vec<(String, Vec<&Record>)> = Vec::new();
        for record in records.iter().filter(wanted) {
            group(&mut panels, join(&panel_axes, record), record);
        }
        let (mut matrices, mut charts) = (Vec::new(), Vec::new());
        for (title, members) in panels {
            let mut lines: Vec<(String, Vec<&Record>)> = Vec::new();
            members.iter().for_each(|record| group(&mut lines, join(&self.lines, record), record));
            if self.x == "matrix" {
                let matrix = |(name, runs): (String, Vec<&Record>)| {
                    let values = curves::mean_matrix(&runs);
                    let seen = values.iter().flatten().filter(|v| v.is_some()).count();
                    (seen > values.len()).then(|| Panel::Matrix { title: format!("{title}, {name}"), values })
                };
                matrices.extend(lines.into_iter().filter_map(matrix));
                continue;
            }
            let alone = lines.len() == 1;
            let of = |(name, runs): &(String, Vec<&Record>)| self.curves(name, alone, runs, &members);
            charts.push((title, lines.iter().flat_map(of).collect::<Vec<Curve>>()));
        }
        charts.retain(|(_, curves)| curves.iter().any(|curve| !curve.points.is_empty()));
        let styles = styles(charts.iter().flat_map(|(_, curves)| curves));
        let panel = |(title, curves): (String, Vec<Curve>)| {
            let style = |name: &str| styles.get(name).copied().unwrap_or(Style::nth(0));
            let line = |curve: Curve| Line { style: style(&curve.name), name: curve.name, points: curve.points };
            let mut lines: Vec<Line> = curves.into_iter().map(line).collect();
            level(&mut lines);
            Panel::Chart { title, x: self.x_label(), y: self.y_label(), log: self.log, lines }
        };
        matrices.into_iter().chain(charts.into_iter().map(panel)).collect()
    }

    /// The curves of some runs that differ in their seeds only.
    fn curves(&self, name: &str, alone: bool, runs: &[&Record], panel: &[&Record]) -> Vec<Curve> {
        let mut all = Vec::new();
        for &metric in self.metrics() {
            let name = match self.metrics() {
                [_] if !name.is_empty() => name.to_owned(),
                _ if alone || name.is_empty() => metric.label().to_owned(),
                _ => format!("{name}, {}", metric.label()),
            };
            match self.x.as_str() {
                "task" => all.push(curves::over_tasks(name, metric, runs, panel)),
                "index" => all.extend(curves::over_index(&name, alone, self.tasks, metric, runs)),
                _ => all.push(curves::over_axis(name, &Axis::from(self.x.clone()), metric, runs)),
            }
        }
        all
    }

    fn x_label(&self) -> String {
        match self.x.as_str() {
            "task" => "tasks learned".to_owned(),
            "index" => "index of the eigenvalue".to_owned(),
            _ => Axis::from(self.x.clone()).label(),
        }
    }

    fn y_label(&self) -> String {
        let all = |group: &[Metric]| self.metrics().iter().all(|metric| group.contains(metric));
        if let [metric] = self.metrics() {
            metric.label().to_owned()
        } else if all(&[Metric::MaxEigenvalue, Metric::MinEigenvalue]) {
            "eigenvalue".to_owned()
        } else if all(&[Metric::TrainLoss, Metric::TrainMse, Metric::TrainMseUpper, Metric::TrainingBound]) {
            "squared error per training sample".to_owned()
        } else if all(&[Metric::Condition, Metric::ConditionBefore]) {
            "condition number".to_owned()
        } else if all(&[Metric::Gamma, Metric::LossShare, Metric::AccumulativeError]) {
            "ratio".to_owned()
        } else {
            "value".to_owned()
        }
    }
}

/// One look for every name in all panels of a figure. Colours tell methods apart; where one method has many lines, lines.
fn styles<'a>(curves: impl Iterator<Item = &'a Curve>) -> BTreeMap<String, Style> {
    const FEW: usize = 3;
    let mut names: Vec<(&str, &str)> = Vec::new();
    for curve in curves {
        if !names.iter().any(|(name, _)| *name == curve.name) {
            names.push((&curve.name, &curve.method));
        }
    }
    let one = names.iter().all(|(_, method)| *method == names[0].1);
    let style = |at: usize, method: &str| {
        let before = names[..at].iter().filter(|(_, other)| *other == method).count();
        if one && names.len() > FEW { Style::nth(at) } else { Style::of(method).variant(before) }
    };
    names.iter().enumerate().map(|(at, (name, method))| (name.to_string(), style(at, method))).collect()
}

fn group<'a>(groups: &mut Vec<(String, Vec<&'a Record>)>, name: String, record: &'a Record) {
    match groups.iter_mut().find(|(known, _)| *known == name) {
        Some((_, members)) => members.push(record),
        None => groups.push((name, vec![record])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_has_its_colour_wherever_it_stands() {
        let curve =
            |name: &str, method: &str| Curve { name: name.to_owned(), method: method.to_owned(), points: Vec::new() };
        let two = [curve("loranpac", "loranpac"), curve("ranpac", "ranpac")];
        let turned = [two[1].clone(), two[0].clone(), curve("loranpac, paper", "loranpac")];
        let (two, turned) = (styles(two.iter()), styles(turned.iter()));
        assert_eq!((two["loranpac"], two["ranpac"]), (Style::of("loranpac"), Style::of("ranpac")));
        assert_eq!((turned["loranpac"], turned["ranpac"]), (two["loranpac"], two["ranpac"]));
        assert_eq!(turned["loranpac, paper"], Style::of("loranpac").variant(1));
        let many: Vec<Curve> = (0..6).map(|task| curve(&format!("task {task}"), "loranpac")).collect();
        let many = styles(many.iter());
        assert!((0..6).all(|task| many[&format!("task {task}")] == Style::nth(task)));
    }
}
