//! Stability, measured: one setting varies while the others stay, and the spread of the final accuracy is one number. The
//! paper claims that it is small for LoRanPAC; here it is measured for any method, on any data.

use std::fmt::Write;

use loranpac::lift;
use loranpac::{Truncation, Width};
use serde::Serialize;

use crate::chart::{self, Heights, Line, Log, Panel, Point, Style, level};
use crate::error::Error;
use crate::metrics::{mean, spread as deviation};
use crate::record::Record;
use crate::spec::{Scenario, Spec, When};

/// A setting that is varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knob {
    /// zeta.
    Truncate,
    /// lambda.
    Ridge,
    /// E.
    Width,
    /// Classes per task.
    Inc,
}

impl Knob {
    /// All of them.
    pub const ALL: [Knob; 4] = [Knob::Truncate, Knob::Ridge, Knob::Width, Knob::Inc];

    /// Name in titles.
    fn name(self) -> &'static str {
        match self {
            Knob::Truncate => "zeta",
            Knob::Ridge => "lambda",
            Knob::Width => "E",
            Knob::Inc => "the increment",
        }
    }

    /// Label in tables and figures.
    pub fn label(self) -> &'static str {
        match self {
            Knob::Truncate => "share of directions cut, zeta",
            Knob::Ridge => "ridge, lambda",
            Knob::Width => "width, E",
            Knob::Inc => "classes per task",
        }
    }

    /// Whether the method of a run has it.
    fn applies(self, spec: &Spec) -> Result<bool, Error> {
        let method = spec.method()?;
        Ok(match self {
            Knob::Truncate => method.truncates,
            Knob::Ridge => method.knows("ridge"),
            Knob::Width => method.input.lifted() && lift::find(&spec.lift)?.projection.is_drawn(),
            Knob::Inc => method.continual && matches!(spec.scenario, Scenario::Class { .. }),
        })
    }

    /// The value of a run; none for a method that chooses lambda by itself.
    fn place(self, spec: &Spec) -> Option<f64> {
        match (self, spec.scenario) {
            (Knob::Truncate, _) => match spec.truncation {
                Some(Truncation::Fraction(zeta)) => Some(zeta),
                None if spec.method().is_ok_and(|method| method.cuts) => match Truncation::default() {
                    Truncation::Fraction(zeta) => Some(zeta),
                    _ => None,
                },
                _ => None,
            },
            (Knob::Ridge, _) => spec.settings.get("ridge")?.parse().ok(),
            (Knob::Width, _) => Some(spec.computed_width() as f64),
            (Knob::Inc, Scenario::Class { increment, .. }) => Some(increment as f64),
            (Knob::Inc, _) => None,
        }
    }

    /// The values that are tried besides that of the run itself.
    fn values(self, spec: &Spec, classes: usize) -> Vec<f64> {
        let values = match self {
            Knob::Truncate => vec![0.05, 0.1, 0.25, 0.5, 0.75],
            Knob::Ridge => vec![1.0, 100.0, 1e4, 1e6],
            Knob::Width => {
                [0.25, 0.5, 2.0].iter().map(|part| (spec.computed_width() as f64 * part).round().max(1.0)).collect()
            }
            Knob::Inc => [1.0, 2.0, 5.0, 10.0, 25.0].into_iter().filter(|inc| *inc < classes as f64).collect(),
        };
        let own = self.place(spec);
        values.into_iter().filter(|value| Some(*value) != own).collect()
    }

    /// The run with another value.
    fn set(self, spec: &Spec, value: f64) -> Spec {
        let mut spec = spec.clone();
        match self {
            Knob::Truncate => spec.truncation = Some(Truncation::Fraction(value)),
            Knob::Ridge => drop(spec.settings.insert("ridge".to_owned(), value.to_string())),
            Knob::Width => spec.width = Width::Finite(value as usize),
            Knob::Inc => {
                if let Scenario::Class { increment, .. } = &mut spec.scenario {
                    *increment = value as usize;
                }
            }
        }
        spec
    }

    fn log(self) -> Log {
        if self == Knob::Truncate { Log::None } else { Log::X }
    }
}

/// All variations of some base runs (methods, seeds), each once. They are evaluated at the end only.
pub fn specs(bases: &[Spec], classes: usize) -> Result<Vec<Spec>, Error> {
    let mut all: Vec<Spec> = Vec::new();
    for base in bases {
        let own = at_the_end(base)?;
        let mut runs = vec![own.clone()];
        for knob in Knob::ALL {
            if knob.applies(&own)? {
                runs.extend(knob.values(&own, classes).into_iter().map(|value| knob.set(&own, value)));
            }
        }
        for run in runs {
            let run = run.normalised()?;
            if !all.contains(&run) {
                all.push(run);
            }
        }
    }
    Ok(all)
}

fn at_the_end(spec: &Spec) -> Result<Spec, Error> {
    Spec { eval: When::Final, ..spec.clone() }.normalised()
}

/// How much the final accuracy of a method depends on each knob.
#[derive(Debug, Clone, Serialize)]
pub struct Stability {
    /// The method.
    pub method: String,
    /// Final accuracy over all test samples with the chosen settings, mean over seeds.
    pub accuracy: Option<f64>,
    /// One entry for every knob that the method has.
    pub knobs: Vec<Swept>,
}

/// The effect of one knob.
#[derive(Debug, Clone, Serialize)]
pub struct Swept {
    /// The knob.
    pub knob: Knob,
    /// The value of the chosen settings; none if the method chooses it by itself.
    pub own: Option<f64>,
    /// (value, final accuracy over all test samples, mean over seeds), in ascending order, the method's own included.
    pub points: Vec<(f64, f64)>,
    /// Standard deviation over the seeds at each of the points, of two seeds or more.
    #[serde(skip)]
    pub deviations: Vec<Option<f64>>,
    /// Highest minus lowest accuracy, in points; the method's own value counts.
    pub spread: Option<f64>,
}

/// Computes the spreads from the runs. Runs that could not be made are left out.
pub fn measure(bases: &[Spec], classes: usize, records: &[Record]) -> Result<Vec<Stability>, Error> {
    let accuracy = |specs: &[Spec]| -> Result<Option<(f64, Option<f64>)>, Error> {
        let mut found = Vec::new();
        for spec in specs {
            let spec = spec.clone().normalised()?;
            let record = records.iter().find(|record| record.run.config.spec == spec);
            found.extend(record.and_then(|record| record.run.final_accuracy_samples));
        }
        Ok(mean(&found).map(|mean| (mean, deviation(&found))))
    };
    let mut names: Vec<&str> = bases.iter().map(|base| base.method.as_str()).collect();
    names.dedup();
    let mut all = Vec::new();
    for name in names {
        let seeds = bases.iter().filter(|base| base.method == name).map(at_the_end).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = seeds.first() else { continue };
        let own = accuracy(&seeds)?;
        let mut knobs = Vec::new();
        for knob in Knob::ALL {
            if !knob.applies(first)? {
                continue;
            }
            let mut found: Vec<(f64, (f64, Option<f64>))> = knob.place(first).zip(own).into_iter().collect();
            for value in knob.values(first, classes) {
                let with: Vec<Spec> = seeds.iter().map(|seed| knob.set(seed, value)).collect();
                found.extend(accuracy(&with)?.map(|accuracy| (value, accuracy)));
            }
            found.sort_by(|a, b| a.0.total_cmp(&b.0));
            let points: Vec<(f64, f64)> = found.iter().map(|(value, (accuracy, _))| (*value, *accuracy)).collect();
            let deviations = found.iter().map(|(_, (_, deviation))| *deviation).collect();
            let seen = || points.iter().map(|point| point.1).chain(own.map(|own| own.0));
            let spread = (points.len() > 1).then(|| seen().fold(f64::MIN, f64::max) - seen().fold(f64::MAX, f64::min));
            knobs.push(Swept { knob, own: knob.place(first), points, deviations, spread });
        }
        all.push(Stability { method: name.to_owned(), accuracy: own.map(|own| own.0), knobs });
    }
    Ok(all)
}

/// One picture: a panel for every knob, a line for every method, all on one scale.
pub fn svg(title: &str, all: &[Stability]) -> String {
    let panel = |knob: Knob| {
        let line = |method: &Stability| {
            let swept = method.knobs.iter().find(|swept| swept.knob == knob);
            let points = match swept {
                Some(swept) if !swept.points.is_empty() => {
                    let all = swept.points.iter().zip(&swept.deviations);
                    all.map(|(&(x, y), &spread)| Point { x, y, spread }).collect()
                }
                _ => method.accuracy.map(|own| Point::new(f64::NAN, own)).into_iter().collect(),
            };
            let words = match swept.map(|swept| swept.spread) {
                Some(Some(spread)) => format!("spread {spread:.1}"),
                Some(None) => "not run".to_owned(),
                None => "has none".to_owned(),
            };
            Line { name: format!("{}, {words}", method.method), style: Style::of(&method.method), points }
        };
        let mut lines: Vec<Line> = all.iter().map(line).collect();
        level(&mut lines);
        let (x, y) = (knob.label().to_owned(), "final accuracy, %".to_owned());
        Panel::Chart { title: format!("Varying {}", knob.name()), x, y, log: knob.log(), lines }
    };
    chart::standalone(&chart::grid(title, &Knob::ALL.map(panel), Heights::Shared))
}

/// One row per method and knob: what was tried, the lowest, own and highest accuracy, and their spread.
pub fn rows(all: &[Stability]) -> Vec<Vec<String>> {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let mut rows = Vec::new();
    for method in all {
        if method.knobs.is_empty() {
            let own = number(method.accuracy);
            let words = ["nothing to vary", "", "", &own, "", ""].map(str::to_owned);
            rows.push([method.method.clone()].into_iter().chain(words).collect());
        }
        for swept in &method.knobs {
            let tried: Vec<String> = swept.points.iter().map(|point| chart::short(point.0)).collect();
            let seen = || swept.points.iter().map(|point| point.1).chain(method.accuracy);
            rows.push(vec![
                method.method.clone(),
                swept.knob.label().to_owned(),
                tried.join(" "),
                number(seen().min_by(f64::total_cmp)),
                number(method.accuracy),
                number(seen().max_by(f64::total_cmp)),
                number(swept.spread),
            ]);
        }
    }
    rows
}

/// The columns of [`rows`].
pub const COLUMNS: [&str; 7] = ["method", "knob", "values", "lowest %", "as it is %", "highest %", "spread"];

/// The rows as a Markdown table.
pub fn markdown(all: &[Stability]) -> String {
    let mut text = format!("| {} |\n|{}\n", COLUMNS.join(" | "), "---|".repeat(COLUMNS.len()));
    for row in rows(all) {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}
