//! Class priors: how scores become decisions when classes differ in size.
//!
//! ```text
//! score_c  <-  f_c score_c        f_c = pi_c^(3/20) n_c^(-2/5) / g
//! ```
//!
//! with n_c the samples of class c (or the sum of their weights), pi_c how often it is expected in queries, and g the geometric
//! mean of all factors, so that scores stay of the same size. If all classes have the same size and prior, every f_c is 1, and
//! nothing changes.
//!
//! One-hot least squares favours large classes: without a prior (`none`), a class of one sample beside classes of 100 is
//! rarely predicted. `f_c = n_c^(-1/2)` is the scaling under which least squares is linear discriminant analysis (Ye, ICML
//! 2007); with few samples per class it takes more from large classes than it gives to small ones. `uniform` (`pi_c = 1`:
//! `n_c^(-2/5)`) is for classes that matter equally, `train` (`pi_c = n_c`: `n_c^(-1/4)`) for queries that are as frequent as the
//! training samples, and a table for other frequencies. There is nothing to choose: the exponents were measured
//! (`docs/decisions.md`).
//!
//! Factors are derived whenever a classifier is asked for: a model stores its [`Prior`] only, and weights, training error and
//! certificate are those of the least-squares solution. A factor does not change the sign of a score: a class with a score
//! below zero, which has no evidence for it, moves away from zero too.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::label::Label;

/// The exponent of the prior.
const PRIOR: f64 = 0.15;
/// The exponent of the size of a class, negated.
const SIZE: f64 = 0.4;

/// How often classes are expected in queries.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prior {
    /// The scores of least squares as they are.
    #[default]
    None,
    /// As often as in training.
    Train,
    /// All equally often.
    Uniform,
    /// In proportion to these numbers, by the text of the label.
    Table(BTreeMap<String, f64>),
}

impl Prior {
    /// The names of priors without a table.
    pub const NAMES: [&'static str; 3] = ["none", "train", "uniform"];

    /// Returns the prior with this name.
    pub fn named(name: &str) -> Option<Prior> {
        match name {
            "none" => Some(Prior::None),
            "train" => Some(Prior::Train),
            "uniform" => Some(Prior::Uniform),
            _ => None,
        }
    }

    /// Creates a table; every label must be listed once, with a number above 0.
    pub fn table(entries: impl IntoIterator<Item = (String, f64)>) -> Result<Prior, Error> {
        let mut table = BTreeMap::new();
        for (label, weight) in entries {
            if table.contains_key(&label) {
                return Err(Error::setting("prior", weight, format!("class {label} is listed twice")));
            }
            table.insert(label, weight);
        }
        Prior::Table(table).validate()
    }

    /// Returns the name, or `table`.
    pub fn name(&self) -> &'static str {
        match self {
            Prior::None => "none",
            Prior::Train => "train",
            Prior::Uniform => "uniform",
            Prior::Table(_) => "table",
        }
    }

    /// Returns whether it leaves scores as they are.
    pub fn is_none(&self) -> bool {
        *self == Prior::None
    }

    /// Checks that all numbers of a table are positive.
    pub fn validate(self) -> Result<Self, Error> {
        if let Prior::Table(table) = &self
            && let Some((label, weight)) = table.iter().find(|(_, weight)| !(weight.is_finite() && **weight > 0.0))
        {
            return Err(Error::setting("prior", weight, format!("class {label} needs a number above 0")));
        }
        Ok(self)
    }

    /// Returns the factor of each class, from its number of samples (or sum of weights); None if all are 1. Classes without
    /// samples, whose scores are zero, have the factor 1. Classes that a table does not list are an error.
    pub fn factors(&self, labels: &[Label], counts: &[f64]) -> Result<Option<Vec<f32>>, Error> {
        let pis: Vec<f64> = match self {
            Prior::None => return Ok(None),
            Prior::Train => counts.to_vec(),
            Prior::Uniform => vec![1.0; counts.len()],
            Prior::Table(table) => weights(table, labels)?,
        };
        let log = |(&n, pi): (&f64, f64)| (n > 0.0).then(|| PRIOR * pi.ln() - SIZE * n.ln());
        let logs: Vec<Option<f64>> = counts.iter().zip(pis).map(log).collect();
        let known: Vec<f64> = logs.iter().copied().flatten().collect();
        if known.windows(2).all(|pair| pair[0] == pair[1]) {
            return Ok(None);
        }
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        Ok(Some(logs.into_iter().map(|log| log.map_or(1.0, |log| (log - mean).exp() as f32)).collect()))
    }
}

impl fmt::Display for Prior {
    /// Writes the name, or the table as a JSON object.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Prior::Table(table) => f.write_str(&serde_json::json!(table).to_string()),
            named => f.write_str(named.name()),
        }
    }
}

impl FromStr for Prior {
    type Err = Error;

    /// Reads what [`Prior`] displays.
    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some(prior) = Prior::named(text) {
            return Ok(prior);
        }
        let table = serde_json::from_str(text).map_err(|_| {
            let expected = "none, train, uniform, or a JSON object with a number above 0 for each label is expected";
            Error::setting("prior", text, expected)
        })?;
        Prior::Table(table).validate()
    }
}

/// Returns the number of each label in a table.
fn weights(table: &BTreeMap<String, f64>, labels: &[Label]) -> Result<Vec<f64>, Error> {
    let found: Vec<Option<f64>> = labels.iter().map(|label| table.get(&label.to_string()).copied()).collect();
    let missing: Vec<String> =
        labels.iter().zip(&found).filter(|(_, weight)| weight.is_none()).map(|(label, _)| label.to_string()).collect();
    if missing.is_empty() {
        return Ok(found.into_iter().flatten().collect());
    }
    Err(Error::PriorTable { missing })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(count: i64) -> Vec<Label> {
        (0..count).map(Label::from).collect()
    }

    fn table(entries: &[(&str, f64)]) -> Prior {
        Prior::Table(entries.iter().map(|(label, weight)| (label.to_string(), *weight)).collect())
    }

    #[test]
    fn equal_sizes_change_nothing() {
        for count in [1.0, 3.0, 0.1, 1e9] {
            let counts = vec![count; 7];
            let same = table(&[("0", 0.3), ("1", 0.3), ("2", 0.3), ("3", 0.3), ("4", 0.3), ("5", 0.3), ("6", 0.3)]);
            for prior in [Prior::None, Prior::Train, Prior::Uniform, same] {
                assert_eq!(prior.factors(&labels(7), &counts).unwrap(), None, "{prior:?}");
            }
        }
        assert_eq!(Prior::Uniform.factors(&[], &[]).unwrap(), None);
        assert_eq!(Prior::Uniform.factors(&labels(1), &[5.0]).unwrap(), None);
    }

    #[test]
    fn factors_follow_the_equation() {
        let counts: [f64; 4] = [1.0, 4.0, 100.0, 2.5];
        let pis = [[1.0; 4], counts, [0.5, 0.25, 0.125, 0.125]];
        let given = table(&[("0", 0.5), ("1", 0.25), ("2", 0.125), ("3", 0.125), ("unknown", 9.0)]);
        for (prior, pi) in [Prior::Uniform, Prior::Train, given].iter().zip(pis) {
            let raw: Vec<f64> = (0..4).map(|c| pi[c].powf(3.0 / 20.0) / counts[c].powf(2.0 / 5.0)).collect();
            let mean = raw.iter().product::<f64>().powf(0.25);
            let factors = prior.factors(&labels(4), &counts).unwrap().unwrap();
            for (factor, raw) in factors.iter().zip(raw) {
                assert!((f64::from(*factor) - raw / mean).abs() < 1e-6, "{prior:?}: {factor} {}", raw / mean);
            }
        }
    }

    #[test]
    fn smaller_classes_get_larger_factors_and_a_common_scale_of_weights_changes_nothing() {
        let counts = [1.0, 2.0, 30.0, 500.0];
        for prior in [Prior::Train, Prior::Uniform] {
            let factors = prior.factors(&labels(4), &counts).unwrap().unwrap();
            assert!(factors.windows(2).all(|pair| pair[0] > pair[1]), "{factors:?}");
            let twice = prior.factors(&labels(4), &counts.map(|n| 2.0 * n)).unwrap().unwrap();
            assert!(factors.iter().zip(twice).all(|(a, b)| (a - b).abs() < 1e-6));
        }
    }

    #[test]
    fn what_is_shown_can_be_read() {
        for prior in [Prior::None, Prior::Train, Prior::Uniform, table(&[("a b", 0.25), ("x, \"y\"", 3.0)])] {
            assert_eq!(prior.to_string().parse(), Ok(prior));
        }
        for wrong in ["", "uniforms", "{", "{\"a\": 0}", "{\"a\": \"b\"}", "[1]", "3"] {
            assert!(wrong.parse::<Prior>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_class_without_samples_has_no_say() {
        let with = Prior::Uniform.factors(&labels(3), &[4.0, 0.0, 9.0]).unwrap().unwrap();
        let without = Prior::Uniform.factors(&labels(2), &[4.0, 9.0]).unwrap().unwrap();
        assert_eq!((with[0], with[1], with[2]), (without[0], 1.0, without[1]));
    }

    #[test]
    fn a_table_names_the_classes_that_it_lacks_and_those_with_bad_numbers() {
        let error = table(&[("1", 1.0)]).factors(&labels(3), &[1.0; 3]).unwrap_err();
        assert_eq!(error, Error::PriorTable { missing: vec!["0".to_owned(), "2".to_owned()] });
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let message = table(&[("owl", bad)]).validate().unwrap_err().to_string();
            assert!(message.contains("owl"), "{message}");
        }
    }
}
