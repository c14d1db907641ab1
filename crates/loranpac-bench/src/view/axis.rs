//! What runs differ in, and what is shown of them.

use loranpac::{Schedule, Truncation};
use serde::Deserialize;

use crate::record::Record;
use crate::run::{Run, TaskRecord};
use crate::spec::{Scenario, Spec};

/// A property of a run by which tables and figures are laid out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(from = "String")]
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
    /// Seed of the projection.
    LiftSeed,
    /// Inverse kernel width of Fourier features.
    Gamma,
    /// A setting of the method.
    Setting(String),
}

pub(super) const AXES: [(&str, Axis); 11] = [
    ("data", Axis::Data),
    ("method", Axis::Method),
    ("inc", Axis::Inc),
    ("width", Axis::Width),
    ("truncate", Axis::Truncate),
    ("lift", Axis::Lift),
    ("schedule", Axis::Schedule),
    ("max-rank", Axis::MaxRank),
    ("per-class", Axis::PerClass),
    ("lift-seed", Axis::LiftSeed),
    ("gamma", Axis::Gamma),
];

impl From<String> for Axis {
    fn from(name: String) -> Axis {
        AXES.iter().find(|(known, _)| *known == name).map_or(Axis::Setting(name), |(_, axis)| axis.clone())
    }
}

/// Where a run stands on an axis: what to write, and a number where there is one.
#[derive(Debug, Clone, PartialEq)]
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

    /// A place on it among places on others: bare numbers are told apart by a word.
    pub fn named(&self, text: &str) -> String {
        match self {
            Axis::Truncate => format!("zeta {text}"),
            Axis::Schedule => format!("{text} schedule"),
            Axis::MaxRank | Axis::LiftSeed | Axis::Gamma => format!("{} {text}", self.name().replace('-', " ")),
            Axis::PerClass => format!("{text} per class"),
            Axis::Setting(name) => format!("{name} {text}"),
            _ => text.to_owned(),
        }
    }

    /// What a figure writes along it.
    pub(super) fn label(&self) -> String {
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

    pub(super) fn place_of(&self, spec: &Spec) -> Place {
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
            Axis::Width if spec.is_infinite() => Place::text("E = infinite (keeps samples)"),
            Axis::Width if spec.computed_width() == 0 => Place::text("-"),
            Axis::Width => {
                let width = spec.computed_width();
                Place::number(width as f64, format!("E = {}", thousands(width)))
            }
            Axis::Truncate => match spec.truncation {
                Some(Truncation::Fraction(zeta)) => Place::number(zeta, format!("{}%", round(100.0 * zeta))),
                Some(Truncation::Threshold(delta)) => Place::number(delta, format!("below {delta}")),
                Some(Truncation::Rank(k)) => Place::number(k as f64, format!("all but {k}")),
                None => Place::text("-"),
            },
            Axis::Lift if spec.is_infinite() => Place::text("infinite width (keeps samples)"),
            Axis::Lift => Place::text(&spec.lift),
            Axis::Schedule => Place::text(if spec.schedule == Schedule::Paper { "paper" } else { "late" }),
            Axis::MaxRank => Place::number(spec.max_rank as f64, thousands(spec.max_rank)),
            Axis::PerClass => match spec.per_class {
                Some(count) => Place::number(count as f64, count.to_string()),
                None => Place::text("all"),
            },
            Axis::LiftSeed => Place::number(spec.lift_seed as f64, spec.lift_seed.to_string()),
            Axis::Gamma => Place::number(spec.gamma, spec.gamma.to_string()),
            Axis::Setting(name) => match spec.settings.get(name) {
                Some(value) => Place { text: value.clone(), number: value.parse().ok() },
                None => Place::text("-"),
            },
        }
    }
}

/// What is shown of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
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
    TrainMseUpper,
    TrainingBound,
    AccumulativeError,
    Gamma,
    LossShare,
    Condition,
    ConditionBefore,
    /// How far the singular values are from those of the run with the late schedule.
    SpectrumDifference,
    // Many numbers at one task.
    Eigenvalues,
    EffectiveRanks,
}

/// How much of a run a metric says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One number.
    Run,
    /// One number after every task; that of the last serves for the run.
    Task,
    /// Many numbers at one task.
    Spectrum,
}

impl Metric {
    pub(super) fn kind(self) -> Kind {
        match self {
            Metric::Eigenvalues | Metric::EffectiveRanks => Kind::Spectrum,
            Metric::Accuracy
            | Metric::TrainLoss
            | Metric::TrainMse
            | Metric::MaxEigenvalue
            | Metric::MinEigenvalue
            | Metric::EffectiveRank
            | Metric::Ridge
            | Metric::TrainMseUpper
            | Metric::TrainingBound
            | Metric::AccumulativeError
            | Metric::Gamma
            | Metric::LossShare
            | Metric::Condition
            | Metric::ConditionBefore
            | Metric::SpectrumDifference => Kind::Task,
            _ => Kind::Run,
        }
    }

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
            Metric::TrainMseUpper => "training MSE at most",
            Metric::TrainingBound => "bound of Corollary training-loss",
            Metric::AccumulativeError => "accumulative error a_t",
            Metric::Gamma => "gamma_t",
            Metric::LossShare => "lost before, over mu_k",
            Metric::Condition => "condition number, cut",
            Metric::ConditionBefore => "condition number, uncut",
            Metric::SpectrumDifference => "normalized difference",
            Metric::Eigenvalues => "eigenvalue",
            Metric::EffectiveRanks => "effective rank r_k",
        }
    }

    /// The number of a run; of the last task for those that change over tasks.
    pub fn of(self, run: &Run) -> Option<f64> {
        let seconds =
            || -> f64 { run.tasks.iter().map(|task| task.learn_seconds + task.weights_seconds.unwrap_or(0.0)).sum() };
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
    pub(crate) fn at(self, task: &TaskRecord) -> Option<f64> {
        let certificate = task.certificate.as_ref();
        let spectrum = task.spectrum.as_deref().filter(|values| !values.is_empty());
        // Eigenvalues of rounding size may have either sign; a singular value decomposition would give their size.
        let smallest = |values: &[f64]| values.iter().map(|v| v.abs()).fold(f64::INFINITY, f64::min);
        match self {
            Metric::Accuracy => task.accuracy_samples,
            Metric::TrainLoss => task.train_loss,
            Metric::TrainMse => task.train_mse,
            Metric::Ridge => task.ridge,
            Metric::TrainMseUpper => task.train_mse_upper,
            Metric::TrainingBound => certificate.and_then(|c| c.bounds).map(|bounds| bounds.training_mse),
            Metric::AccumulativeError => certificate.map(|c| c.accumulative_error),
            Metric::Gamma => certificate.and_then(|c| c.gamma),
            Metric::LossShare => certificate.and_then(|c| c.loss_share),
            Metric::Condition => certificate.and_then(|c| c.condition),
            Metric::ConditionBefore => certificate.and_then(|c| c.condition_before),
            Metric::MaxEigenvalue => spectrum.map(|values| values[0]),
            Metric::MinEigenvalue => spectrum.map(smallest),
            Metric::EffectiveRank => spectrum.map(|values| values.iter().sum::<f64>() / values[0]),
            _ => None,
        }
    }

    /// Digits after the point in tables.
    pub(super) fn digits(self) -> usize {
        match self {
            Metric::Seconds | Metric::Memory => 1,
            _ => 2,
        }
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
    fn thousands_by_hand() {
        assert_eq!([thousands(5), thousands(10_000), thousands(1_234_567)], ["5", "10,000", "1,234,567"]);
    }
}
