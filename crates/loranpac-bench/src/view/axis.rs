//! What runs differ in.

use loranpac::{Schedule, Truncation, Width};
use serde::Deserialize;

use super::paper;
use crate::chart::thousands;
use crate::record::Record;
use crate::spec::{AdaptFeatures, Scenario, Spec};

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
    /// What is trained inside the encoder.
    Adapt,
    /// Rate of the first epoch of adaptation.
    AdaptRate,
    /// A setting of the method.
    Setting(String),
}

pub(super) const AXES: [(&str, Axis); 13] = [
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
    ("adapt", Axis::Adapt),
    ("adapt-rate", Axis::AdaptRate),
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
            Axis::AdaptRate => format!("rate {text}"),
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
            Axis::AdaptRate => "learning rate".to_owned(),
            Axis::Setting(name) if name == "rate" => "learning rate".to_owned(),
            axis => axis.name().replace('-', " "),
        }
    }

    /// The place of a run.
    pub fn place(&self, record: &Record) -> Place {
        match self {
            Axis::Data => Place::text(record.data.title()),
            Axis::Adapt => adaptation(&record.run.config.spec, Some(&record.data.key)),
            axis => axis.place_of(&record.run.config.spec),
        }
    }

    pub(crate) fn place_of(&self, spec: &Spec) -> Place {
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
            Axis::MaxRank if spec.is_infinite() && spec.max_rank.is_none() => Place::text("all samples"),
            Axis::MaxRank => Place::number(spec.cap() as f64, thousands(spec.cap())),
            Axis::PerClass => match spec.per_class {
                Some(count) => Place::number(count as f64, count.to_string()),
                None => Place::text("all"),
            },
            Axis::LiftSeed => Place::number(spec.lift_seed as f64, spec.lift_seed.to_string()),
            Axis::Gamma => Place::number(spec.gamma, spec.gamma.to_string()),
            Axis::Adapt => adaptation(spec, None),
            Axis::AdaptRate => match &spec.adapt {
                None => Place::text("-"),
                Some(_) => Place::number(spec.adapt_rate, spec.adapt_rate.to_string()),
            },
            Axis::Setting(name) => match spec.settings.get(name) {
                Some(value) => Place { text: value.clone(), number: value.parse().ok() },
                None => Place::text("-"),
            },
        }
    }
}

/// What is trained inside the encoder, which features are learned, and whether its settings are those of EASE for a data set.
fn adaptation(spec: &Spec, data: Option<&str>) -> Place {
    let Some(module) = &spec.adapt else { return Place::text("-") };
    let features = match spec.adapt_features {
        AdaptFeatures::Adapted => "",
        AdaptFeatures::Both => ", both features",
        AdaptFeatures::Chosen => ", chosen",
    };
    let settings = if paper::is_ease(spec, data) { " as EASE" } else { "" };
    Place::text(format!("{module}{settings}{features}"))
}

/// The width of a run as a column of widths shows it: E, infinity, or a dash for methods on plain features.
pub fn width_of(spec: &Spec) -> String {
    match spec.width {
        Width::Infinite => "\u{221e} (keeps samples)".to_owned(),
        Width::Finite(0) => "-".to_owned(),
        Width::Finite(width) => thousands(width),
    }
}

fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
