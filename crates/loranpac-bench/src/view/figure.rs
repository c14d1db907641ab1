//! Figures: charts of lines, and accuracy matrices.

use std::collections::BTreeMap;

use loranpac::Schedule;
use serde::Deserialize;

use super::axis::{Axis, Kind, Metric, Place};
use super::{check_groups, join, known, with_data};
use crate::metrics::mean;
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

/// Which axes of a figure are logarithmic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Log {
    #[default]
    None,
    X,
    Y,
    Both,
}

/// One line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// For the legend.
    pub name: String,
    /// (x, y), in ascending x.
    pub points: Vec<(f64, f64)>,
}

/// One panel of a figure.
#[derive(Debug, Clone)]
pub enum Panel {
    /// Lines.
    Chart {
        /// What it shows.
        title: String,
        /// Label of the horizontal axis.
        x: String,
        /// Label of the vertical axis.
        y: String,
        /// Which axes are logarithmic.
        log: Log,
        /// The lines.
        lines: Vec<Line>,
    },
    /// An accuracy matrix.
    Matrix {
        /// What it shows.
        title: String,
        /// Row i, column t: accuracy on task i after task t, mean over seeds.
        values: Vec<Vec<Option<f64>>>,
    },
}

impl Figure {
    fn metrics(&self) -> &[Metric] {
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
            let title = join(&panel_axes, record);
            group(&mut panels, title, record);
        }
        let mut drawn = Vec::new();
        for (title, members) in panels {
            let mut lines: Vec<(String, Vec<&Record>)> = Vec::new();
            members.iter().for_each(|record| group(&mut lines, join(&self.lines, record), record));
            if self.x == "matrix" {
                let matrix = |(name, runs): (String, Vec<&Record>)| {
                    let values = mean_matrix(&runs);
                    let seen = values.iter().flatten().filter(|v| v.is_some()).count();
                    (seen > values.len()).then(|| Panel::Matrix { title: format!("{title}, {name}"), values })
                };
                drawn.extend(lines.into_iter().filter_map(matrix));
                continue;
            }
            let alone = lines.len() == 1;
            let of = |(name, runs): &(String, Vec<&Record>)| self.lines_of(name, alone, runs, &members);
            let mut lines: Vec<Line> = lines.iter().flat_map(of).collect();
            level(&mut lines);
            if lines.iter().any(|line| !line.points.is_empty()) {
                let x = match self.x.as_str() {
                    "task" => "tasks".to_owned(),
                    "index" => "index".to_owned(),
                    _ => Axis::from(self.x.clone()).label(),
                };
                let y = match self.metrics() {
                    [metric] => metric.label().to_owned(),
                    [Metric::MaxEigenvalue, Metric::MinEigenvalue] => "eigenvalue".to_owned(),
                    _ => String::new(),
                };
                drawn.push(Panel::Chart { title, x, y, log: self.log, lines });
            }
        }
        drawn
    }

    fn lines_of(&self, name: &str, alone: bool, runs: &[&Record], panel: &[&Record]) -> Vec<Line> {
        let mut lines = Vec::new();
        for &metric in self.metrics() {
            let title = match self.metrics() {
                [_] => name.to_owned(),
                _ if alone => metric.label().to_owned(),
                _ => format!("{name}, {}", metric.label()),
            };
            match self.x.as_str() {
                "task" => lines.push(Line { name: title, points: over_tasks(metric, runs, panel) }),
                "index" => lines.extend(self.over_index(&title, alone, metric, runs)),
                _ => {
                    let axis = Axis::from(self.x.clone());
                    let mut values: Vec<(f64, Vec<f64>)> = Vec::new();
                    for record in runs {
                        let Some(y) = metric.of(&record.run) else { continue };
                        let x = axis.place(record).number.unwrap_or(f64::NAN);
                        match values.iter_mut().find(|(at, _)| at.total_cmp(&x).is_eq()) {
                            Some((_, ys)) => ys.push(y),
                            None => values.push((x, vec![y])),
                        }
                    }
                    let mut points: Vec<(f64, f64)> =
                        values.iter().filter_map(|(x, ys)| Some((*x, mean(ys)?))).collect();
                    points.sort_by(|a, b| a.0.total_cmp(&b.0));
                    lines.push(Line { name: title, points });
                }
            }
        }
        lines
    }

    /// Spectra of the first run: those of its last task, or of its first tasks.
    fn over_index(&self, name: &str, alone: bool, metric: Metric, runs: &[&Record]) -> Vec<Line> {
        let Some(record) = runs.first() else { return Vec::new() };
        let with: Vec<(usize, &[f64])> = record
            .run
            .tasks
            .iter()
            .enumerate()
            .filter_map(|(t, task)| Some((t + 1, task.spectrum.as_deref()?)))
            .collect();
        let chosen = match self.tasks {
            Some(count) => &with[..count.min(with.len())],
            None => &with[with.len().saturating_sub(1)..],
        };
        let line = |(task, values): &(usize, &[f64])| {
            let name = match (self.tasks, alone) {
                (None, _) => name.to_owned(),
                (Some(_), true) => format!("task {task}"),
                (Some(_), false) => format!("{name}, task {task}"),
            };
            let mut sizes: Vec<f64> = values.iter().map(|v| v.abs()).collect();
            sizes.sort_by(|a, b| b.total_cmp(a));
            let points = if metric == Metric::EffectiveRanks { effective_ranks(&sizes) } else { sizes };
            Line { name, points: points.into_iter().enumerate().map(|(i, v)| ((i + 1) as f64, v)).collect() }
        };
        chosen.iter().map(line).collect()
    }
}

/// Lines whose only point stands nowhere on the axis (NaN) become level lines from end to end.
pub(crate) fn level(lines: &mut [Line]) {
    let ends = lines.iter().flat_map(|line| line.points.iter().map(|p| p.0)).filter(|x| !x.is_nan());
    let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
    for line in lines {
        if let [(x, y)] = line.points[..]
            && x.is_nan()
        {
            line.points = vec![(low, y), (high, y)];
        }
    }
}

/// `r_k`: the sum of the eigenvalues from the k-th on, over the k-th, as far as they are more than rounding.
fn effective_ranks(values: &[f64]) -> Vec<f64> {
    let floor = values.first().map_or(0.0, |first| first * values.len() as f64 * f64::EPSILON);
    let values = &values[..values.partition_point(|value| *value > floor)];
    let mut tail = 0.0;
    let mut ranks: Vec<f64> = values
        .iter()
        .rev()
        .map(|value| {
            tail += value;
            tail / value
        })
        .collect();
    ranks.reverse();
    ranks
}

/// The largest difference of the leading singular values, over the largest of the first.
fn spectrum_difference(offline: &[f64], continual: &[f64]) -> Option<f64> {
    let singular = |value: f64| value.max(0.0).sqrt();
    let pairs = offline.iter().zip(continual);
    let most = pairs.map(|(&a, &b)| (singular(a) - singular(b)).abs()).fold(0.0, f64::max);
    offline.first().map(|&first| most / singular(first))
}

/// (task, mean over seeds) where the metric is known.
fn over_tasks(metric: Metric, runs: &[&Record], panel: &[&Record]) -> Vec<(f64, f64)> {
    let tasks = runs.iter().map(|record| record.run.tasks.len()).min().unwrap_or(0);
    let value = |record: &Record, t: usize| {
        let task = &record.run.tasks[t];
        if metric != Metric::SpectrumDifference {
            return metric.at(task);
        }
        let spec = &record.run.config.spec;
        let twin = Spec { schedule: Schedule::Late, ..spec.clone() };
        let same = |other: &&&Record| other.data.digest == record.data.digest && other.run.config.spec == twin;
        let offline = panel.iter().find(same).filter(|_| *spec != twin)?;
        let offline = offline.run.tasks.get(t)?.spectrum.as_deref()?;
        spectrum_difference(offline, task.spectrum.as_deref()?)
    };
    let point = |t: usize| {
        let values: Vec<f64> = runs.iter().filter_map(|record| value(record, t)).collect();
        Some(((t + 1) as f64, mean(&values)?))
    };
    (0..tasks).filter_map(point).collect()
}

/// Accuracy matrices of the same size, averaged.
fn mean_matrix(runs: &[&Record]) -> Vec<Vec<Option<f64>>> {
    let Some(first) = runs.first().map(|record| record.run.accuracy_matrix.tasks()) else { return Vec::new() };
    let same: Vec<_> = runs.iter().map(|r| &r.run.accuracy_matrix).filter(|matrix| matrix.tasks() == first).collect();
    let entry = |row: usize, column: usize| {
        let values: Vec<f64> = same.iter().filter_map(|matrix| matrix.get(row, column)).collect();
        mean(&values)
    };
    (0..first).map(|row| (0..first).map(|column| entry(row, column)).collect()).collect()
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
    fn effective_ranks_by_hand() {
        assert_eq!(effective_ranks(&[4.0, 2.0, 2.0]), [2.0, 2.0, 1.0]);
        assert_eq!(effective_ranks(&[4.0, 1e-18]), [1.0]);
        assert!(effective_ranks(&[]).is_empty());
    }

    #[test]
    fn the_difference_of_spectra_is_of_singular_values() {
        assert_eq!(spectrum_difference(&[100.0, 25.0, 4.0], &[100.0, 16.0]), Some(0.1));
        assert_eq!(spectrum_difference(&[], &[]), None);
    }
}
