//! From the runs of one line to its points: over tasks, over the index of eigenvalues, or over what runs differ in.

use loranpac::Schedule;

use super::axis::Axis;
use crate::chart::Point;
use crate::measure::Metric;
use crate::metrics::{mean, spread};
use crate::record::Record;
use crate::spec::Spec;

/// A line that has no look yet.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    /// What the label beside it says.
    pub name: String,
    /// The method of its runs.
    pub method: String,
    /// In ascending x.
    pub points: Vec<Point>,
}

impl Curve {
    fn new(name: String, runs: &[&Record], points: Vec<Point>) -> Curve {
        Curve { name, method: runs.first().map_or(String::new(), |record| record.run.method.clone()), points }
    }
}

/// Mean and spread of some values at a place.
fn point(x: f64, values: &[f64]) -> Option<Point> {
    Some(Point { x, y: mean(values)?, spread: spread(values) })
}

/// A metric after every task, where it is known. `panel` holds the runs among which twins are looked for.
pub(super) fn over_tasks(name: String, metric: Metric, runs: &[&Record], panel: &[&Record]) -> Curve {
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
    let at = |t: usize| {
        let values: Vec<f64> = runs.iter().filter_map(|record| value(record, t)).collect();
        point((t + 1) as f64, &values)
    };
    Curve::new(name, runs, (0..tasks).filter_map(at).collect())
}

/// A metric over what runs differ in. A run that has no place there stands at NaN.
pub(super) fn over_axis(name: String, axis: &Axis, metric: Metric, runs: &[&Record]) -> Curve {
    let mut values: Vec<(f64, Vec<f64>)> = Vec::new();
    for record in runs {
        let Some(y) = metric.of(&record.run) else { continue };
        let x = axis.place(record).number.unwrap_or(f64::NAN);
        match values.iter_mut().find(|(at, _)| at.total_cmp(&x).is_eq()) {
            Some((_, ys)) => ys.push(y),
            None => values.push((x, vec![y])),
        }
    }
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    Curve::new(name, runs, values.iter().filter_map(|(x, ys)| point(*x, ys)).collect())
}

/// Spectra of the first run: those of its last task, or of so many of its first tasks.
pub(super) fn over_index(
    name: &str,
    alone: bool,
    tasks: Option<usize>,
    metric: Metric,
    runs: &[&Record],
) -> Vec<Curve> {
    let Some(record) = runs.first() else { return Vec::new() };
    let all = record.run.tasks.iter().enumerate();
    let with: Vec<(usize, &[f64])> = all.filter_map(|(t, task)| Some((t + 1, task.spectrum.as_deref()?))).collect();
    let chosen = match tasks {
        Some(count) => &with[..count.min(with.len())],
        None => &with[with.len().saturating_sub(1)..],
    };
    let curve = |(task, values): &(usize, &[f64])| {
        let name = match (tasks, alone) {
            (None, _) => name.to_owned(),
            (Some(_), true) => format!("task {task}"),
            (Some(_), false) => format!("{name}, task {task}"),
        };
        let mut sizes: Vec<f64> = values.iter().map(|v| v.abs()).collect();
        sizes.sort_by(|a, b| b.total_cmp(a));
        let values = if metric == Metric::EffectiveRanks { effective_ranks(&sizes) } else { sizes };
        Curve::new(name, runs, values.into_iter().enumerate().map(|(i, v)| Point::new((i + 1) as f64, v)).collect())
    };
    chosen.iter().map(curve).collect()
}

/// Accuracy matrices of the same size, averaged.
pub(super) fn mean_matrix(runs: &[&Record]) -> Vec<Vec<Option<f64>>> {
    let Some(first) = runs.first().map(|record| record.run.accuracy_matrix.tasks()) else { return Vec::new() };
    let same: Vec<_> = runs.iter().map(|r| &r.run.accuracy_matrix).filter(|matrix| matrix.tasks() == first).collect();
    let entry = |row: usize, column: usize| {
        let values: Vec<f64> = same.iter().filter_map(|matrix| matrix.get(row, column)).collect();
        mean(&values)
    };
    (0..first).map(|row| (0..first).map(|column| entry(row, column)).collect()).collect()
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
