//! Runs for people: Markdown tables and an SVG of the accuracy over tasks. Reports only read runs.

use std::fmt::Write;

use loranpac::memory::human_bytes;

use crate::metrics::mean;
use crate::run::{Run, TaskRecord};

/// Mean and sample standard deviation, as text.
pub fn mean_and_spread(values: &[f64], digits: usize) -> String {
    let Some(centre) = mean(values) else { return "-".to_owned() };
    if values.len() < 2 {
        return format!("{centre:.digits$}");
    }
    let variance = values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (values.len() - 1) as f64;
    format!("{centre:.digits$} ± {:.digits$}", variance.sqrt())
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

/// The methods with their runs, best final accuracy first.
pub fn by_method(runs: &[Run]) -> Vec<MethodSummary<'_>> {
    let of = |name| runs.iter().filter(|run| run.method == name).collect();
    let mut all: Vec<_> = methods(runs).into_iter().map(|name| MethodSummary { name, runs: of(name) }).collect();
    let accuracy = |summary: &MethodSummary<'_>| mean(&summary.column(|run| run.final_accuracy)).unwrap_or(0.0);
    all.sort_by(|a, b| accuracy(b).total_cmp(&accuracy(a)));
    all
}

/// One row per method, over all seeds, best first.
pub fn markdown(runs: &[Run]) -> String {
    let mut text = String::from(
        "| method | runs | final % | total % | all samples % | forgetting | learn s | weights s | eval s | model | kind |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for method in by_method(runs) {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            method.name,
            method.runs.len(),
            mean_and_spread(&method.column(|run| run.final_accuracy), 2),
            mean_and_spread(&method.column(|run| run.total_accuracy), 2),
            mean_and_spread(&method.column(|run| run.final_accuracy_samples), 2),
            mean_and_spread(&method.column(|run| run.forgetting), 2),
            mean_and_spread(&method.total(|task| Some(task.learn_seconds)), 1),
            mean_and_spread(&method.total(|task| task.weights_seconds), 1),
            mean_and_spread(&method.total(|task| task.eval_seconds), 1),
            human_bytes(method.state_bytes()),
            method.kind(),
        );
    }
    text
}

/// Colours that colour-blind people can tell apart (Okabe and Ito).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// Accuracy over all classes seen so far, after every task, one line per method (mean over seeds).
pub fn accuracy_svg(runs: &[Run], title: &str) -> String {
    let curves: Vec<(&str, Vec<(f64, f64)>)> = methods(runs)
        .into_iter()
        .map(|name| (name, curve(&runs.iter().filter(|run| run.method == name).collect::<Vec<_>>())))
        .filter(|(_, points)| !points.is_empty())
        .collect();
    let all = || curves.iter().flat_map(|(_, points)| points.iter());
    let classes = all().map(|p| p.0).fold(1.0, f64::max);
    let lowest = all().map(|p| p.1).fold(100.0, f64::min);
    // The axis starts at a round number below the lowest value.
    let step = if lowest >= 85.0 {
        2.5
    } else if lowest >= 60.0 {
        10.0
    } else {
        20.0
    };
    let bottom = ((lowest / step).floor() * step).max(0.0);
    let (left, top, width, height) = (64.0, 48.0, 520.0, 280.0);
    let x = |value: f64| left + width * value / classes;
    let y = |value: f64| top + height * (100.0 - value) / (100.0 - bottom).max(1e-9);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 390\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"760\" height=\"390\" fill=\"#ffffff\"/>\n\
         <text x=\"{left}\" y=\"26\" font-size=\"16\" fill=\"#222\">{}</text>\n",
        escape(title)
    );
    let mut tick = bottom;
    while tick <= 100.0 + 1e-9 {
        let at = y(tick);
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#444\">{tick}</text>",
            left + width,
            left - 8.0,
            at + 4.5
        );
        tick += step;
    }
    let steps = [1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 2000, 5000];
    let spacing = steps.into_iter().find(|step| classes / *step as f64 <= 8.0).unwrap_or(10_000);
    for value in (0..=classes as usize).step_by(spacing) {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#444\">{value}</text>",
            x(value as f64),
            top + height + 20.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#222\">{}</text>\
         <text transform=\"translate(18 {}) rotate(-90)\" text-anchor=\"middle\" fill=\"#222\">accuracy, %</text>",
        left + width / 2.0,
        top + height + 44.0,
        if runs.first().is_some_and(classes_grow) { "classes seen" } else { "tasks" },
        top + height / 2.0
    );
    // Labels stand at the ends of the lines, pushed apart where the lines meet.
    let mut ends: Vec<(usize, f64)> = curves.iter().enumerate().map(|(i, (_, p))| (i, y(p[p.len() - 1].1))).collect();
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    for i in 1..ends.len() {
        ends[i].1 = ends[i].1.max(ends[i - 1].1 + 17.0);
    }
    let mut lowest_place = top + height + 44.0;
    for (_, place) in ends.iter_mut().rev() {
        *place = place.min(lowest_place);
        lowest_place = *place - 17.0;
    }
    for (index, (name, points)) in curves.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let dash = ["", " stroke-dasharray=\"6 4\"", " stroke-dasharray=\"2 3\""][index / COLOURS.len() % 3];
        let path: Vec<String> = points.iter().map(|&(c, a)| format!("{:.1},{:.1}", x(c), y(a))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\" stroke-linejoin=\"round\"{dash}/>",
            path.join(" ")
        );
        if points.len() <= 30 {
            for &(c, a) in points {
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"><title>{}: {a:.2}% after {c}</title></circle>",
                    x(c),
                    y(a),
                    escape(name)
                );
            }
        }
        let at = ends.iter().find(|(i, _)| *i == index).map_or(0.0, |(_, at)| *at);
        let last = points[points.len() - 1].1;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" fill=\"{colour}\">{} {last:.1}</text>",
            left + width + 8.0,
            at + 4.5,
            escape(name)
        );
    }
    svg + "</svg>\n"
}

/// (classes seen, mean accuracy over seeds) after every evaluated task.
fn curve(runs: &[&Run]) -> Vec<(f64, f64)> {
    let tasks = runs.iter().map(|run| run.tasks.len()).min().unwrap_or(0);
    let by_class = runs.first().is_some_and(|run| classes_grow(run));
    let point = |t: usize| {
        let values: Vec<f64> = runs.iter().filter_map(|run| run.tasks[t].accuracy_samples).collect();
        mean(&values).map(|accuracy| (if by_class { runs[0].tasks[t].classes_seen } else { t + 1 } as f64, accuracy))
    };
    (0..tasks).filter_map(point).collect()
}

/// Whether classes arrive over the tasks; where they all come back in each, tasks are what counts.
fn classes_grow(run: &Run) -> bool {
    run.tasks.first().map(|task| task.classes_seen) < run.tasks.last().map(|task| task.classes_seen)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
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
