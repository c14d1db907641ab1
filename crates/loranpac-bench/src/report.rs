//! Runs for people: Markdown tables and an SVG of the accuracy over tasks. Reports only read runs.

use std::fmt::Write;

use loranpac::Verdict;
use loranpac::memory::human_bytes;

use crate::by_class::Balance;
use crate::chart::{self, Heights, Line, Log, Panel, Point, Style};
use crate::measure::Metric;
use crate::metrics::{mean, spread, with_spread};
use crate::run::{Run, TaskRecord};
use crate::view::width_of;

/// Mean and sample standard deviation, as text.
pub fn mean_and_spread(values: &[f64], digits: usize) -> String {
    with_spread(mean(values), spread(values), digits)
}

/// The names of the methods, in the order in which they were run.
pub fn methods(runs: &[Run]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for run in runs {
        if !names.contains(&run.method.as_str()) {
            names.push(&run.method);
        }
    }
    names
}

/// What all runs of one method, over the seeds, come to.
pub struct MethodSummary<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its runs, one per seed.
    pub runs: Vec<&'a Run>,
}

impl MethodSummary<'_> {
    /// A number of every run that has it.
    pub fn column(&self, f: impl Fn(&Run) -> Option<f64>) -> Vec<f64> {
        self.runs.iter().filter_map(|run| f(run)).collect()
    }

    /// A number of every task, added up for every run.
    pub fn total(&self, f: impl Fn(&TaskRecord) -> Option<f64>) -> Vec<f64> {
        self.runs.iter().map(|run| run.tasks.iter().filter_map(&f).sum()).collect()
    }

    /// Bytes that the model holds at the end, at most.
    pub fn state_bytes(&self) -> usize {
        self.runs.iter().map(|run| run.state_bytes).max().unwrap_or(0)
    }

    /// What kind of method it is, in words.
    pub fn kind(&self) -> &'static str {
        match self.runs.first().map(|run| (run.continual, run.exemplar_free)) {
            Some((true, true)) => "continual, exemplar-free",
            Some((true, false)) => "continual, keeps samples",
            _ => "joint, keeps samples",
        }
    }
}

/// A column about classes of different sizes: its head, what it means, and its number.
pub type BalanceColumn = (&'static str, &'static str, fn(&Balance) -> Option<f64>);

/// The columns for runs in which the sizes of classes matter.
const BALANCE: [BalanceColumn; 5] = [
    ("balanced %", "mean over classes of the accuracy on each, after the last task", |balance| {
        Some(balance.balanced_accuracy)
    }),
    ("macro F1 %", "mean over classes of the harmonic mean of precision and recall", |balance| Some(balance.macro_f1)),
    ("many %", "balanced accuracy of the classes of more than 100 training samples", |balance| {
        balance.group_accuracy.many
    }),
    ("medium %", "the same for 20 to 100", |balance| balance.group_accuracy.medium),
    ("few %", "the same for fewer than 20", |balance| balance.group_accuracy.few),
];

/// The columns about classes of different sizes, if one of the runs has a long tail or a prior.
pub fn balance_columns(runs: &[Run]) -> &'static [BalanceColumn] {
    let matters = |run: &Run| run.config.spec.long_tail.is_some() || !run.config.spec.prior.is_none();
    if runs.iter().any(matters) { &BALANCE } else { &[] }
}

impl MethodSummary<'_> {
    /// The cells of [`balance_columns`].
    pub fn balance_cells(&self, columns: &[BalanceColumn]) -> Vec<String> {
        let cell = |(_, _, number): &BalanceColumn| {
            mean_and_spread(&self.column(|run| run.balance.as_ref().and_then(number)), 2)
        };
        columns.iter().map(cell).collect()
    }
}

/// The methods with their runs, best accuracy first.
pub fn by_method(runs: &[Run]) -> Vec<MethodSummary<'_>> {
    let of = |name| runs.iter().filter(|run| run.method == name).collect();
    let mut all: Vec<_> = methods(runs).into_iter().map(|name| MethodSummary { name, runs: of(name) }).collect();
    let accuracy = |summary: &MethodSummary<'_>| mean(&summary.column(|run| run.final_accuracy_samples)).unwrap_or(0.0);
    all.sort_by(|a, b| accuracy(b).total_cmp(&accuracy(a)));
    all
}

/// One row per method, over all seeds, best first, and what the columns mean.
pub fn markdown(runs: &[Run]) -> String {
    let all = by_method(runs);
    let widths: Vec<String> =
        all.iter().map(|m| m.runs.first().map_or(String::new(), |run| width_of(&run.config.spec))).collect();
    // One width for all of them stands in the title.
    let differ = widths.iter().any(|width| *width != widths[0]);
    let mut heads = vec!["method", "runs", "accuracy %", "final %", "total %", "forgetting", "learn s", "weights s"];
    heads.extend(["eval s", "model", "kind"]);
    if differ {
        heads.insert(1, "width E");
    }
    let balance = balance_columns(runs);
    heads.extend(balance.iter().map(|(head, ..)| head));
    let mut text = format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for (method, width) in all.iter().zip(widths) {
        let mut cells = vec![
            method.name.to_owned(),
            method.runs.len().to_string(),
            mean_and_spread(&method.column(|run| run.final_accuracy_samples), 2),
            mean_and_spread(&method.column(|run| run.final_accuracy), 2),
            mean_and_spread(&method.column(|run| run.total_accuracy), 2),
            mean_and_spread(&method.column(|run| run.forgetting), 2),
            mean_and_spread(&method.total(|task| Some(task.learn_seconds)), 1),
            mean_and_spread(&method.total(|task| task.weights_seconds), 1),
            mean_and_spread(&method.total(|task| task.eval_seconds), 1),
            human_bytes(method.state_bytes()),
            method.kind().to_owned(),
        ];
        if differ {
            cells.insert(1, width);
        }
        cells.extend(method.balance_cells(balance));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text.push('\n');
    text.extend(meanings().iter().map(|meaning| format!("- {meaning}\n")));
    text.extend(balance.iter().map(|(head, meaning, _)| format!("- {}: {meaning}\n", head.trim_end_matches(" %"))));
    text
}

/// What the columns of accuracies mean, one line each.
pub fn meanings() -> Vec<String> {
    [
        ("accuracy", Metric::Accuracy),
        ("final", Metric::Final),
        ("total", Metric::Total),
        ("forgetting", Metric::Forgetting),
    ]
    .into_iter()
    .filter_map(|(name, metric)| Some(format!("{name}: {}", uncapitalised(metric.meaning()?))))
    .collect()
}

/// A sentence as it stands behind a colon.
fn uncapitalised(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect()
}

/// Accuracy over all classes seen so far, after every task, one line per method (mean and spread over seeds).
pub fn accuracy_svg(runs: &[Run], title: &str) -> String {
    let line = |name: &str| {
        let points = curve(&runs.iter().filter(|run| run.method == name).collect::<Vec<_>>());
        Line { name: name.to_owned(), style: Style::of(name), points }
    };
    let lines: Vec<Line> = methods(runs).into_iter().map(line).collect();
    let along = if runs.first().is_some_and(classes_grow) { "classes seen" } else { "tasks learned" };
    let (title, x, y) = (title.to_owned(), along.to_owned(), Metric::Accuracy.label().to_owned());
    chart::standalone(&chart::svg(&Panel::Chart { title, x, y, log: Log::None, lines }))
}

/// The certificates of the first run of each method that has them, over tasks: what is known and bounded of the training
/// error, and what has been lost. None if no method tells.
pub fn certificate_svg(runs: &[Run], title: &str) -> Option<String> {
    const ERRORS: [(Metric, &str); 3] = [
        (Metric::TrainMse, "training MSE"),
        (Metric::TrainMseUpper, "at most"),
        (Metric::TrainingBound, "Corollary training-loss"),
    ];
    const LOSSES: [(Metric, &str); 3] =
        [(Metric::AccumulativeError, "a_t"), (Metric::LossShare, "lost / mu_k"), (Metric::Gamma, "gamma_t")];
    let first = |name: &str| runs.iter().find(|run| run.method == name);
    let told: Vec<&Run> = methods(runs).into_iter().filter_map(first).filter(|run| run.verdict.is_some()).collect();
    let alone = told.len() == 1;
    let lines = |metrics: &[(Metric, &str)]| -> Vec<Line> {
        let line = |run: &Run, (metric, words): &(Metric, &str)| {
            let name = if alone { words.to_string() } else { format!("{}: {words}", run.method) };
            let value = |(t, task): (usize, &TaskRecord)| Some(Point::new((t + 1) as f64, metric.at(task)?));
            let points = run.tasks.iter().enumerate().filter_map(value).filter(|point| point.y > 0.0).collect();
            Line { name, style: Style::of(&run.method), points }
        };
        let of = |run: &&Run| {
            let mut lines: Vec<Line> = metrics.iter().map(|metric| line(run, metric)).collect();
            lines.retain(|line| !line.points.is_empty());
            lines.iter_mut().enumerate().for_each(|(n, line)| line.style = line.style.variant(n));
            lines
        };
        told.iter().flat_map(of).collect()
    };
    let panel = |title: &str, y: &str, metrics| {
        let (title, x, y) = (title.to_owned(), "tasks learned".to_owned(), y.to_owned());
        Panel::Chart { title, x, y, log: Log::Y, lines: lines(metrics) }
    };
    let panels = [
        panel("Training error: what is known, and what the paper bounds", "squared error per training sample", &ERRORS),
        panel("What truncation has cost", "ratio", &LOSSES),
    ];
    (!told.is_empty()).then(|| chart::standalone(&chart::grid(title, &panels, Heights::Own)))
}

/// What each method can promise: the line of its first run, which is named if there are several, and the warnings of all.
pub fn verdicts(runs: &[Run]) -> Vec<(String, Verdict)> {
    let of = |name: &str| {
        let all: Vec<&Run> = runs.iter().filter(|run| run.method == name).collect();
        let told: Vec<&Verdict> = all.iter().filter_map(|run| run.verdict.as_ref()).collect();
        let mut warnings: Vec<String> = Vec::new();
        for warning in told.iter().flat_map(|verdict| &verdict.warnings) {
            if !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
        let seed = all.first()?.seed.filter(|_| all.len() > 1).map_or(String::new(), |seed| format!(", seed {seed}"));
        Some((format!("{name}{seed}"), Verdict { line: told.first()?.line.clone(), warnings }))
    };
    methods(runs).into_iter().filter_map(of).collect()
}

/// Mean and spread of the accuracy after every evaluated task, over the classes seen.
fn curve(runs: &[&Run]) -> Vec<Point> {
    let tasks = runs.iter().map(|run| run.tasks.len()).min().unwrap_or(0);
    let by_class = runs.first().is_some_and(|run| classes_grow(run));
    let point = |t: usize| {
        let values: Vec<f64> = runs.iter().filter_map(|run| run.tasks[t].accuracy_samples).collect();
        let x = if by_class { runs[0].tasks[t].classes_seen } else { t + 1 } as f64;
        Some(Point { x, y: mean(&values)?, spread: spread(&values) })
    };
    (0..tasks).filter_map(point).collect()
}

/// Whether classes arrive over the tasks; where they all come back in each, tasks are what counts.
fn classes_grow(run: &Run) -> bool {
    run.tasks.first().map(|task| task.classes_seen) < run.tasks.last().map(|task| task.classes_seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_spread_by_hand() {
        assert_eq!(mean_and_spread(&[], 2), "-");
        assert_eq!(mean_and_spread(&[91.234], 2), "91.23");
        assert_eq!(mean_and_spread(&[1.0, 2.0, 3.0], 2), "2.00 ± 1.00");
    }
}
