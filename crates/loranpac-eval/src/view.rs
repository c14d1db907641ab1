//! From runs to tables and figures, as a recipe asks for them. Views only read runs.

use std::collections::BTreeMap;

use loranpac::{Schedule, Truncation};
use serde::{Deserialize, Serialize};

use crate::metrics::{mean, spread, with_spread};
use crate::paper;
use crate::recipe::{Many, Setting};
use crate::run::{Run, TaskRecord};
use crate::spec::Spec;
use crate::stream::Scenario;
use crate::sweep::Record;

/// A property of a run by which tables and figures are laid out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Axis {
    /// Data set.
    Data,
    /// Method.
    Method,
    /// Classes per task.
    Inc,
    /// E.
    Width,
    /// Zeta.
    Truncate,
    /// Feature map.
    Lift,
    /// When the spectrum is cut.
    Schedule,
    /// r_max.
    MaxRank,
    /// Training samples per class.
    PerClass,
    /// A setting of the method.
    Setting(String),
}

const AXES: [(&str, Axis); 9] = [
    ("data", Axis::Data),
    ("method", Axis::Method),
    ("inc", Axis::Inc),
    ("width", Axis::Width),
    ("truncate", Axis::Truncate),
    ("lift", Axis::Lift),
    ("schedule", Axis::Schedule),
    ("max-rank", Axis::MaxRank),
    ("per-class", Axis::PerClass),
];

impl From<String> for Axis {
    fn from(name: String) -> Axis {
        AXES.iter().find(|(known, _)| *known == name).map_or(Axis::Setting(name), |(_, axis)| axis.clone())
    }
}

impl From<Axis> for String {
    fn from(axis: Axis) -> String {
        axis.name().to_owned()
    }
}

/// Where a run stands on an axis: what to write, and a number where there is one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Place {
    /// For people.
    pub text: String,
    /// For axes of figures.
    pub number: Option<f64>,
}

impl Place {
    fn number(number: f64, text: String) -> Place {
        Place { text, number: Some(number) }
    }

    fn text(text: impl Into<String>) -> Place {
        Place { text: text.into(), number: None }
    }
}

impl Axis {
    /// What the recipe calls it.
    pub fn name(&self) -> &str {
        match self {
            Axis::Setting(name) => name,
            axis => AXES.iter().find(|(_, known)| known == axis).map_or("", |(name, _)| name),
        }
    }

    /// What a figure writes along it.
    fn label(&self) -> String {
        match self {
            Axis::Width => "width E".to_owned(),
            Axis::Truncate => "share of directions cut, zeta".to_owned(),
            Axis::Inc => "classes per task".to_owned(),
            Axis::Setting(name) if name == "ridge" => "lambda".to_owned(),
            Axis::Setting(name) if name == "rate" => "learning rate".to_owned(),
            axis => axis.name().replace('-', " "),
        }
    }

    /// The place of a run.
    pub fn place(&self, record: &Record) -> Place {
        match self {
            Axis::Data => Place::text(record.data.title()),
            axis => axis.place_of(&record.run.config.spec),
        }
    }

    fn place_of(&self, spec: &Spec) -> Place {
        match self {
            Axis::Data => Place::text(""),
            Axis::Method => Place::text(&spec.method),
            Axis::Inc => match spec.scenario {
                Scenario::Class { base: 0, increment } => Place::number(increment as f64, format!("Inc-{increment}")),
                Scenario::Class { base, increment } => {
                    Place::number(increment as f64, format!("B-{base} Inc-{increment}"))
                }
                Scenario::Domain => Place::text("domains"),
                Scenario::Joint => Place::text("joint"),
            },
            Axis::Width if spec.width == 0 => Place::text("-"),
            Axis::Width => Place::number(spec.width as f64, format!("E = {}", thousands(spec.width))),
            Axis::Truncate => match spec.truncation {
                Some(Truncation::Fraction(zeta)) => Place::number(zeta, format!("{}%", round(100.0 * zeta))),
                Some(Truncation::Threshold(delta)) => Place::number(delta, format!("below {delta}")),
                Some(Truncation::Rank(k)) => Place::number(k as f64, format!("all but {k}")),
                None => Place::text("-"),
            },
            Axis::Lift => Place::text(&spec.lift),
            Axis::Schedule => Place::text(if spec.schedule == Schedule::Paper { "paper" } else { "late" }),
            Axis::MaxRank => Place::number(spec.max_rank as f64, thousands(spec.max_rank)),
            Axis::PerClass => match spec.per_class {
                Some(count) => Place::number(count as f64, count.to_string()),
                None => Place::text("all"),
            },
            Axis::Setting(name) => match spec.settings.get(name) {
                Some(value) => Place { text: value.clone(), number: value.parse().ok() },
                None => Place::text("-"),
            },
        }
    }
}

/// What is shown of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Metric {
    // One number for a run.
    Final,
    Total,
    Samples,
    Average,
    Forgetting,
    Minutes,
    Seconds,
    Memory,
    // One number after every task.
    Accuracy,
    TrainLoss,
    TrainMse,
    MaxEigenvalue,
    MinEigenvalue,
    EffectiveRank,
    Ridge,
    /// How far the singular values are from those of the run with the late schedule.
    SpectrumDifference,
    // Many numbers at one task.
    Eigenvalues,
    EffectiveRanks,
}

impl Metric {
    /// For people, with the unit.
    pub fn label(self) -> &'static str {
        match self {
            Metric::Final => "final accuracy, %",
            Metric::Total => "total accuracy, %",
            Metric::Samples => "final accuracy over all samples, %",
            Metric::Average => "average incremental accuracy, %",
            Metric::Forgetting => "forgetting, points",
            Metric::Minutes => "minutes",
            Metric::Seconds => "seconds",
            Metric::Memory => "model, MiB",
            Metric::Accuracy => "accuracy so far, %",
            Metric::TrainLoss => "training loss",
            Metric::TrainMse => "training MSE, from the state",
            Metric::MaxEigenvalue => "largest eigenvalue",
            Metric::MinEigenvalue => "smallest eigenvalue",
            Metric::EffectiveRank => "effective rank r_1",
            Metric::Ridge => "lambda",
            Metric::SpectrumDifference => "normalized difference",
            Metric::Eigenvalues => "eigenvalue",
            Metric::EffectiveRanks => "effective rank r_k",
        }
    }

    /// The number of a run; of the last task for those that change over tasks.
    pub fn of(self, run: &Run) -> Option<f64> {
        let seconds = || -> f64 {
            run.tasks.iter().map(|task| task.learn_seconds + task.weights_seconds.unwrap_or(0.0)).sum()
        };
        match self {
            Metric::Final => run.final_accuracy,
            Metric::Total => run.total_accuracy,
            Metric::Samples => run.final_accuracy_samples,
            Metric::Average => run.average_incremental_accuracy,
            Metric::Forgetting => run.forgetting,
            Metric::Minutes => Some(seconds() / 60.0),
            Metric::Seconds => Some(seconds()),
            Metric::Memory => Some(run.state_bytes as f64 / (1 << 20) as f64),
            per_task => run.tasks.last().and_then(|task| per_task.at(task)),
        }
    }

    /// The number after one task.
    fn at(self, task: &TaskRecord) -> Option<f64> {
        let spectrum = task.spectrum.as_deref().filter(|values| !values.is_empty());
        match self {
            Metric::Accuracy => task.accuracy_samples,
            Metric::TrainLoss => task.train_loss,
            Metric::TrainMse => task.train_mse,
            Metric::Ridge => task.ridge,
            Metric::MaxEigenvalue => spectrum.map(|values| values[0]),
            Metric::MinEigenvalue => spectrum.map(|values| values[values.len() - 1]),
            Metric::EffectiveRank => spectrum.map(|values| values.iter().sum::<f64>() / values[0]),
            _ => None,
        }
    }

    /// Digits after the point in tables.
    fn digits(self) -> usize {
        match self {
            Metric::Seconds | Metric::Memory => 1,
            _ => 2,
        }
    }
}

/// A table of a recipe: which runs in which row and column, and what is shown of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Table {
    /// Its title.
    pub title: String,
    /// What tells rows apart.
    pub rows: Vec<Axis>,
    /// What tells columns apart.
    pub columns: Vec<Axis>,
    /// What is in the cells.
    pub value: Metric,
    /// The paper's table to show beside it.
    #[serde(default)]
    pub paper: Option<String>,
}

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
    pub only: BTreeMap<String, Many<Setting>>,
}

fn by_data() -> Vec<Axis> {
    vec![Axis::Data]
}

/// Which axes of a figure are logarithmic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Log {
    #[default]
    None,
    X,
    Y,
    Both,
}

/// A cell: mean and spread over the seeds, and what the paper has there.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// Mean over the runs; none where only the paper has a number.
    pub mean: Option<f64>,
    /// Standard deviation over two runs or more.
    pub spread: Option<f64>,
    /// Runs.
    pub runs: usize,
    /// The paper's number, where data set, encoder and setting are the same.
    pub paper: Option<f64>,
    /// Its spread.
    pub paper_spread: Option<f64>,
}

/// A table, filled in.
#[derive(Debug, Clone, Serialize)]
pub struct Filled {
    /// Its title.
    pub title: String,
    /// What is in the cells.
    pub value: Metric,
    /// Names of the columns of row labels.
    pub row_names: Vec<String>,
    /// Heads of the other columns.
    pub columns: Vec<String>,
    /// Row labels and cells.
    pub rows: Vec<(Vec<String>, Vec<Option<Cell>>)>,
}

/// One line of a chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// For the legend.
    pub name: String,
    /// (x, y), in ascending x.
    pub points: Vec<(f64, f64)>,
}

/// One panel of a figure.
#[derive(Debug, Clone, Serialize)]
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

impl Table {
    /// Whether it can be made from these runs.
    pub fn check(&self, specs: &[Spec]) -> Result<(), String> {
        if let Some(name) = &self.paper {
            paper::table(name).ok_or_else(|| format!("{}: the paper has no table {name}", self.title))?;
        }
        self.rows.iter().chain(&self.columns).try_for_each(|axis| known(axis, specs, &self.title))
    }

    /// Fills it in.
    pub fn fill(&self, records: &[Record]) -> Filled {
        let paper = self.paper.as_deref().and_then(paper::table).unwrap_or_default();
        let places = |axes: &[Axis], record: &Record| axes.iter().map(|axis| axis.place(record).text).collect();
        let mut columns: Vec<Vec<String>> = Vec::new();
        let mut heads: Vec<&Record> = Vec::new();
        let mut rows: Vec<(Vec<String>, Vec<(usize, &Record)>)> = Vec::new();
        for record in records.iter().filter(|record| self.value.of(&record.run).is_some()) {
            let (row, column) = (places(&self.rows, record), places(&self.columns, record));
            let at = find_or_push(&mut columns, column);
            if at == heads.len() {
                heads.push(record);
            }
            match rows.iter_mut().find(|(labels, _)| *labels == row) {
                Some((_, members)) => members.push((at, record)),
                None => rows.push((row, vec![(at, record)])),
            }
        }
        let cell = |records: Vec<&Record>| {
            let first = records.first()?;
            let numbers: Vec<f64> = records.iter().filter_map(|record| self.value.of(&record.run)).collect();
            let theirs = paper.iter().find(|entry| entry.matches(first, self.value));
            Some(Cell {
                mean: mean(&numbers),
                spread: spread(&numbers),
                runs: numbers.len(),
                paper: theirs.map(|entry| entry.value),
                paper_spread: theirs.and_then(|entry| entry.spread),
            })
        };
        let fill = |(labels, members): (Vec<String>, Vec<(usize, &Record)>)| {
            let of = |column: usize| members.iter().filter(|(at, _)| *at == column).map(|(_, record)| *record).collect();
            (labels, (0..columns.len()).map(|column| cell(of(column))).collect())
        };
        let mut rows: Vec<_> = rows.into_iter().map(fill).collect();
        rows.extend(self.others(&paper, &heads));
        Filled {
            title: self.title.clone(),
            value: self.value,
            row_names: self.rows.iter().map(|axis| axis.name().to_owned()).collect(),
            columns: columns.iter().map(|labels| labels.join(" ")).collect(),
            rows,
        }
    }
}

impl Table {
    /// Rows of methods that only the paper has, in the columns of the runs that stand at their heads.
    fn others(&self, paper: &[paper::Entry], heads: &[&Record]) -> Vec<(Vec<String>, Vec<Option<Cell>>)> {
        if self.rows != [Axis::Method] || self.columns.contains(&Axis::Method) {
            return Vec::new();
        }
        let mut names: Vec<String> = Vec::new();
        for entry in paper.iter().filter(|entry| entry.foreign()) {
            find_or_push(&mut names, entry.title());
        }
        let cell = |name: &str, head: &Record| {
            let fits = |entry: &&paper::Entry| {
                entry.foreign() && entry.title() == name && entry.same_stream(head) && entry.metric == self.value
            };
            let entry = paper.iter().find(fits)?;
            Some(Cell { mean: None, spread: None, runs: 0, paper: Some(entry.value), paper_spread: entry.spread })
        };
        let row = |name: String| {
            let cells: Vec<Option<Cell>> = heads.iter().map(|head| cell(&name, head)).collect();
            cells.iter().any(Option::is_some).then(|| (vec![format!("{name} (paper only)")], cells))
        };
        names.into_iter().filter_map(row).collect()
    }
}

impl Cell {
    /// Ours minus the paper's.
    pub fn difference(&self) -> Option<f64> {
        Some(self.mean? - self.paper?)
    }

    /// Mean and spread as text.
    pub fn text(&self, value: Metric) -> String {
        with_spread(self.mean, self.spread, value.digits())
    }

    /// The paper's number as text.
    pub fn paper_text(&self) -> String {
        with_spread(self.paper, self.paper_spread, 2)
    }
}

impl Figure {
    fn metrics(&self) -> &[Metric] {
        self.y.as_ref().map_or(&[], Many::values)
    }

    /// Whether it can be made from these runs.
    pub fn check(&self, specs: &[Spec]) -> Result<(), String> {
        if !["task", "index", "matrix"].contains(&self.x.as_str()) {
            known(&Axis::from(self.x.clone()), specs, &self.title)?;
        }
        if self.x != "matrix" && self.metrics().is_empty() {
            return Err(format!("{}: y is missing", self.title));
        }
        let only = self.only.keys().map(|name| Axis::from(name.clone()));
        self.lines.iter().chain(&self.panels).cloned().chain(only).try_for_each(|axis| known(&axis, specs, &self.title))
    }

    /// Draws it: panels with their lines, seeds averaged.
    pub fn draw(&self, records: &[Record]) -> Vec<Panel> {
        let wanted = |record: &&Record| {
            self.only.iter().all(|(name, values)| {
                let place = Axis::from(name.clone()).place(record).text;
                values.values().iter().any(|value| value.to_string() == place)
            })
        };
        let mut panels: Vec<(String, Vec<&Record>)> = Vec::new();
        for record in records.iter().filter(wanted) {
            let title = join(&self.panels, record);
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
            let mut lines: Vec<Line> = lines.iter().flat_map(|(name, runs)| self.lines_of(name, runs, &members)).collect();
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

    fn lines_of(&self, name: &str, runs: &[&Record], panel: &[&Record]) -> Vec<Line> {
        let mut lines = Vec::new();
        for &metric in self.metrics() {
            let title = match self.metrics() {
                [_] => name.to_owned(),
                _ => metric.label().to_owned(),
            };
            match self.x.as_str() {
                "task" => lines.push(Line { name: title, points: over_tasks(metric, runs, panel) }),
                "index" => lines.extend(self.over_index(&title, metric, runs)),
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
    fn over_index(&self, name: &str, metric: Metric, runs: &[&Record]) -> Vec<Line> {
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
            let name = if self.tasks.is_some() { format!("task {task}") } else { name.to_owned() };
            let points = match metric {
                Metric::EffectiveRanks => effective_ranks(values),
                _ => values.to_vec(),
            };
            Line { name, points: points.into_iter().enumerate().map(|(i, v)| ((i + 1) as f64, v)).collect() }
        };
        chosen.iter().map(line).collect()
    }
}

/// Lines whose only point stands nowhere on the axis (NaN) become level lines from end to end.
fn level(lines: &mut [Line]) {
    let ends = lines.iter().flat_map(|line| line.points.iter().map(|p| p.0)).filter(|x| !x.is_nan());
    let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    for line in lines {
        if let [(x, y)] = line.points[..]
            && x.is_nan()
        {
            line.points = vec![(low, y), (high, y)];
        }
    }
}

/// `r_k`: the sum of the eigenvalues from the k-th on, over the k-th.
pub fn effective_ranks(values: &[f64]) -> Vec<f64> {
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
        let offline = panel.iter().find(|other| *spec != twin && other.run.config.spec == twin)?;
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

/// The places of a run on several axes, as one line of text.
pub fn join(axes: &[Axis], record: &Record) -> String {
    let places: Vec<String> = axes.iter().map(|axis| axis.place(record).text).filter(|text| text != "-").collect();
    places.join(", ")
}

fn group<'a>(groups: &mut Vec<(String, Vec<&'a Record>)>, name: String, record: &'a Record) {
    match groups.iter_mut().find(|(known, _)| *known == name) {
        Some((_, members)) => members.push(record),
        None => groups.push((name, vec![record])),
    }
}

fn find_or_push<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    list.iter().position(|known| *known == item).unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}

/// Settings must be settings of one of the runs; everything else every run has.
fn known(axis: &Axis, specs: &[Spec], title: &str) -> Result<(), String> {
    match axis {
        Axis::Setting(name) if !specs.iter().any(|spec| spec.settings.contains_key(name)) => {
            let names = AXES.map(|(name, _)| name).join(", ");
            Err(format!("{title}: {name:?} is neither an axis ({names}) nor a setting of these runs"))
        }
        _ => Ok(()),
    }
}

fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// 100,000.
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effective_ranks_by_hand() {
        assert_eq!(effective_ranks(&[4.0, 2.0, 2.0]), [2.0, 2.0, 1.0]);
        assert!(effective_ranks(&[]).is_empty());
    }

    #[test]
    fn the_difference_of_spectra_is_of_singular_values() {
        assert_eq!(spectrum_difference(&[100.0, 25.0, 4.0], &[100.0, 16.0]), Some(0.1));
        assert_eq!(spectrum_difference(&[], &[]), None);
    }

    #[test]
    fn thousands_by_hand() {
        assert_eq!([thousands(5), thousands(10_000), thousands(1_234_567)], ["5", "10,000", "1,234,567"]);
    }
}
