//! The table of all runs.

use loranpac::memory::human_bytes;
use serde_json::json;

use crate::measure::Metric;
use crate::metrics::with_spread;
use crate::record::Record;
use crate::view::{Axis, join, width_of};

/// The runs of a report, and what tells them apart.
pub(super) struct Runs<'a> {
    /// The runs.
    pub records: &'a [Record],
    /// What tells them apart, besides data, division into tasks and seed.
    varying: Vec<Axis>,
    /// Whether there is a column of widths.
    widths: bool,
}

impl<'a> Runs<'a> {
    pub fn new(records: &'a [Record], varying: Vec<Axis>) -> Runs<'a> {
        let width = |record: &Record| width_of(&record.run.config.spec);
        let widths = records.iter().any(|record| width(record) != width(&records[0]));
        Runs { records, varying, widths }
    }

    /// What a run is called among the others.
    pub fn name(&self, record: &Record) -> String {
        join(&self.varying, record)
    }

    /// Heads of the columns. The first `words()` hold words, the others numbers.
    pub fn columns(&self) -> Vec<&'static str> {
        let mut all = vec!["data", "run", "tasks", "seed", "accuracy %", "final %", "total %", "forgetting"];
        all.extend(["learn s", "weights s", "eval s", "model"]);
        if self.widths {
            all.insert(2, "width E");
        }
        all
    }

    /// How many columns hold words.
    pub fn words(&self) -> usize {
        if self.widths { 4 } else { 3 }
    }

    /// One row, as text.
    pub fn row(&self, record: &Record) -> Vec<String> {
        let run = &record.run;
        let spec = &run.config.spec;
        let sum = |f: fn(&crate::run::TaskRecord) -> Option<f64>| {
            with_spread(Some(run.tasks.iter().filter_map(f).sum::<f64>()), None, 2)
        };
        // What has a column of its own is not part of the name.
        let named: Vec<Axis> =
            self.varying.iter().filter(|axis| !self.widths || **axis != Axis::Width).cloned().collect();
        let mut cells = vec![
            record.data.title().to_owned(),
            join(&named, record),
            Axis::Inc.place(record).text,
            if spec.order.is_some() { "given".to_owned() } else { spec.seed.to_string() },
            with_spread(run.final_accuracy_samples, None, 2),
            with_spread(run.final_accuracy, None, 2),
            with_spread(run.total_accuracy, None, 2),
            with_spread(run.forgetting, None, 2),
            sum(|task| Some(task.learn_seconds)),
            sum(|task| task.weights_seconds),
            sum(|task| task.eval_seconds),
            human_bytes(run.state_bytes),
        ];
        if self.widths {
            cells.insert(2, width_of(spec));
        }
        cells
    }

    /// What the columns mean: name and sentence.
    pub fn meanings(&self) -> Vec<(&'static str, &'static str)> {
        let of = |name: &'static str, metric: Metric| metric.meaning().map(|meaning| (name, meaning));
        let accuracies = [
            of("accuracy", Metric::Accuracy),
            of("final", Metric::Final),
            of("total", Metric::Total),
            of("forgetting", Metric::Forgetting),
        ];
        let rest = [
            ("learn, weights, eval", "Seconds to learn all tasks, to form classifiers, and to evaluate them."),
            ("model", "Memory that the model keeps between tasks."),
        ];
        accuracies.into_iter().flatten().chain(rest).collect()
    }

    /// What the page's script needs.
    pub fn json(&self) -> serde_json::Value {
        // Runs that differ in their seeds only are pairs of one comparison.
        let unseeded: Vec<Axis> = self.varying.iter().filter(|axis| **axis != Axis::LiftSeed).cloned().collect();
        let slim = |record: &Record| {
            let run = &record.run;
            json!({
                "data": record.data.title(),
                "name": join(&unseeded, record),
                "stream": Axis::Inc.place(record).text,
                "seed": run.seed,
                "lift_seed": run.config.spec.lift_seed,
                "accuracy": run.final_accuracy_samples,
                "final": run.final_accuracy,
                "total": run.total_accuracy,
                "seconds": Metric::Seconds.of(run),
                "mib": Metric::Memory.of(run),
            })
        };
        json!({ "runs": self.records.iter().map(slim).collect::<Vec<_>>() })
    }
}
