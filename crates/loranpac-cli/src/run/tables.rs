//! The tables of `run` and its report.

use loranpac::memory::human_bytes;
use loranpac_bench::adapted::RunFeatures;
use loranpac_bench::chart::thousands;
use loranpac_bench::origin::Origin;
use loranpac_bench::report::{self, MethodSummary, mean_and_spread};
use loranpac_bench::run::Run;
use loranpac_data::text::{escape, escape_markdown};

use super::args::Args;
use crate::faults::with_flags;
use crate::words::count;
use crate::{command, table};

/// The columns of the summary that need an explanation.
const LEGEND: &str = "\
accuracy    of the test samples of all classes seen so far
final       mean over tasks of the accuracy after the last task; depends on the division into tasks
total       mean accuracy on every task learned so far, after every task
forgetting  mean drop from a task's best earlier accuracy to its last; grows with the number of classes even if nothing is unlearned
";

/// Approximate number of rows in the table of tasks.
const SHOWN: usize = 20;

/// Returns a one-line title of the runs.
pub fn title(runs: &[Run]) -> String {
    let Some(run) = runs.first() else { return String::new() };
    let width = run.config.lift.as_ref().map_or(String::new(), |lift| match lift.width {
        Some(width) => format!(", E = {}", thousands(width)),
        None => ", infinite width (samples are kept)".to_owned(),
    });
    let (classes, tasks) = (count(run.dataset.classes, "class"), count(run.tasks.len(), "task"));
    format!("{}, {classes} in {tasks}{width}", run.dataset.name)
}

/// Returns the report as Markdown.
pub fn markdown(runs: &[Run]) -> String {
    let table = report::markdown(runs);
    let mut text = format!("# {}\n\n{table}\n![Accuracy over tasks](accuracy.svg)\n", escape_markdown(&title(runs)));
    let verdicts = report::verdicts(runs);
    if !verdicts.is_empty() {
        text.push_str("\n## Guarantees of the models\n\n");
        for (method, verdict) in verdicts {
            text.push_str(&format!("- `{method}`: {}\n", verdict.line));
            verdict
                .warnings
                .iter()
                .for_each(|warning| text.push_str(&format!("  - warning: {}\n", with_flags::<Args>(warning))));
        }
        text.push_str("\n![Certificates over tasks](certificate.svg)\n");
    }
    let command = format!("loranpac {}", command::line());
    text + &Origin::here(&command, runs.iter()).markdown()
}

/// Returns a run task by task, if it is the only one, and all methods side by side, best first.
pub fn tables(runs: &[Run]) -> String {
    let mut text = String::new();
    if let [run] = runs {
        text.push_str(&task_table(run));
        text.push('\n');
    }
    let balance = report::balance_columns(runs);
    let row = |method: &MethodSummary<'_>| [summary_row(method), method.balance_cells(balance)].concat();
    let rows: Vec<Vec<String>> = report::by_method(runs).iter().map(row).collect();
    let mut header = vec![
        "method",
        "accuracy %",
        "final %",
        "total %",
        "forgetting",
        "train MSE",
        "learn s",
        "weights s",
        "eval s",
        "model",
        "kind",
    ];
    header.extend(balance.iter().map(|(head, ..)| head));
    text.push_str(&table::render(&header, &rows));
    if let Some(run) = runs.first() {
        let d = &run.dataset;
        text.push_str(&format!(
            "\n{LEGEND}{}\n{}: {} training and {} test samples, {}, {} in {}\n",
            balance
                .iter()
                .map(|(head, meaning, _)| format!("{:10}  {meaning}\n", head.trim_end_matches(" %")))
                .collect::<String>(),
            escape(&d.name),
            d.train,
            d.test,
            count(d.dim, "feature"),
            count(d.classes, "class"),
            count(run.tasks.len(), "task")
        ));
        if let Some(encoder) = &d.encoder {
            let frozen = if RunFeatures::trains(&run.config.spec) { " of the frozen encoder" } else { "" };
            text.push_str(&format!("encoder: {}, digest{frozen} {}\n", escape(&encoder.name), escape(&encoder.digest)));
        }
        for (method, verdict) in report::verdicts(runs) {
            text.push_str(&format!("{method}: {}\n", verdict.line));
        }
        if let Some(peak) = runs.iter().filter_map(|run| run.peak_rss_bytes).max() {
            text.push_str(&format!("peak memory of the process: {}\n", human_bytes(peak as usize)));
        }
    }
    text
}

fn task_table(run: &Run) -> String {
    // Long streams: the first tasks, some in between, and the last.
    let step = run.tasks.len().div_ceil(SHOWN);
    let shown = |t: usize| t.is_multiple_of(step) || t + 1 == run.tasks.len();
    let rows: Vec<Vec<String>> = run
        .tasks
        .iter()
        .enumerate()
        .filter(|(t, _)| shown(*t))
        .map(|(t, task)| {
            vec![
                (t + 1).to_string(),
                task.classes_seen.to_string(),
                task.samples_seen.to_string(),
                task.basis_rank.map_or("-".to_owned(), |r| r.to_string()),
                task.kept_rank.map_or("-".to_owned(), |k| k.to_string()),
                table::number(run.accuracy_matrix.get(t, t), 2),
                table::number(task.accuracy_samples, 2),
                table::number(task.train_mse, 4),
                task.drift.map_or("-".to_owned(), |drift| format!("{drift:.1e}")),
                table::seconds(task.learn_seconds),
                task.weights_seconds.map_or("-".to_owned(), table::seconds),
            ]
        })
        .collect();
    let header = [
        "task",
        "classes",
        "samples",
        "basis",
        "kept",
        "new task %",
        "accuracy %",
        "train MSE",
        "drift",
        "learn",
        "weights",
    ];
    table::render(&header, &rows)
}

fn summary_row(method: &MethodSummary<'_>) -> Vec<String> {
    let digits = |value: f64| if value < 10.0 { 2 } else { 1 };
    let seconds = |values: Vec<f64>| mean_and_spread(&values, digits(values.iter().copied().fold(0.0, f64::max)));
    vec![
        method.name.to_owned(),
        mean_and_spread(&method.column(|run| run.final_accuracy_samples), 2),
        mean_and_spread(&method.column(|run| run.final_accuracy), 2),
        mean_and_spread(&method.column(|run| run.total_accuracy), 2),
        mean_and_spread(&method.column(|run| run.forgetting), 2),
        mean_and_spread(&method.column(|run| run.tasks.last().and_then(|t| t.train_mse)), 4),
        seconds(method.total(|task| Some(task.learn_seconds))),
        seconds(method.total(|task| task.weights_seconds)),
        seconds(method.total(|task| task.eval_seconds)),
        human_bytes(method.state_bytes()),
        method.kind().to_owned(),
    ]
}
