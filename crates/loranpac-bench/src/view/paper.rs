//! The paper's tables. `bench/reference/paper_tables.py` makes them from the paper's source.

use loranpac::Truncation;
use loranpac::registry::{self, Input};

use crate::measure::Metric;
use crate::paper::data_sets;
use crate::record::Record;
use crate::spec::{Scenario, Spec};

macro_rules! tables {
    ($($name:literal,)*) => { &[$(($name, include_str!(concat!("../../paper/tables/", $name, ".csv")))),*] };
}

/// The paper's tables by name.
const TABLES: &[(&str, &str)] = tables![
    "cil-vit",
    "cil-vit-inc1",
    "cil-vit-in21k",
    "cil-vit-multiple",
    "cil-vit-widths",
    "running-times",
    "dil-vit",
    "lc-rates",
    "ablation-rfm",
];

/// Rate, samples per step and epochs of EASE on each data set; Stanford Cars has those of CIFAR100, as all other data sets here.
const EASE: &[(&str, f64, usize, usize)] = &[
    ("cifar100", 0.025, 48, 20),
    ("imagenet-r", 0.05, 16, 20),
    ("imagenet-a", 0.05, 32, 20),
    ("cub200", 0.005, 16, 20),
    ("objectnet", 0.03, 48, 20),
    ("omnibenchmark", 0.01, 16, 20),
    ("vtab", 0.03, 16, 45),
    ("stanfordcars", 0.025, 48, 20),
];

/// Whether a run adapts the encoder with the settings of EASE for a data set; without one, for any.
pub fn is_ease(spec: &Spec, data: Option<&str>) -> bool {
    let is_same = |(_, rate, batch, epochs): &(&str, f64, usize, usize)| {
        (*rate, *batch, *epochs) == (spec.adapt_rate, spec.adapt_batch, spec.adapt_epochs)
    };
    let of = |key: &str| EASE.iter().find(|(known, ..)| *known == key);
    match data {
        None => EASE.iter().any(is_same),
        Some(key) => of(key).or(EASE.first()).is_some_and(is_same),
    }
}

/// Whether a prompt method has the epochs that the paper used for a data set. Prompts may be selected batch by batch, as there, or not.
fn has_usual_epochs(spec: &Spec, data: &str) -> bool {
    let expected = match (data, spec.method.as_str()) {
        ("imagenet-r", "codaprompt") => Some("50"),
        ("imagenet-r", _) => Some("10"),
        _ => None,
    };
    let others = spec.settings.keys().all(|name| ["epochs", "batchwise"].contains(&name.as_str()));
    others && spec.settings.get("epochs").map(String::as_str) == expected
}

/// One number of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Data set.
    pub data: String,
    /// Encoder.
    pub backbone: String,
    /// Our name of the method, or the paper's for methods that are not here.
    pub method: String,
    /// `name=value`, or empty.
    pub setting: String,
    /// B-q1.
    pub base: Option<usize>,
    /// Inc-q2; none for joint and domain-incremental.
    pub inc: Option<usize>,
    /// E.
    pub width: Option<usize>,
    /// What it is.
    pub metric: Metric,
    /// The number.
    pub value: f64,
    /// Its standard deviation.
    pub spread: Option<f64>,
}

/// A table by name.
pub fn table(name: &str) -> Option<Vec<Entry>> {
    let (_, text) = TABLES.iter().find(|(known, _)| *known == name)?;
    Some(text.lines().skip(1).filter_map(entry).collect())
}

fn entry(line: &str) -> Option<Entry> {
    let cells: Vec<&str> = line.split(',').collect();
    let [data, backbone, method, setting, base, inc, width, metric, value, spread] = cells[..] else { return None };
    let metric = match metric {
        "final" => Metric::Final,
        "total" => Metric::Total,
        "minutes" => Metric::Minutes,
        _ => return None,
    };
    let text = |cell: &str| cell.to_owned();
    Some(Entry {
        data: text(data),
        backbone: text(backbone),
        method: text(method),
        setting: text(setting),
        base: base.parse().ok(),
        inc: inc.parse().ok(),
        width: width.parse().ok(),
        metric,
        value: value.parse().ok()?,
        spread: spread.parse().ok(),
    })
}

impl Entry {
    /// Our name of the method, if we have it.
    fn name(&self) -> Option<&'static str> {
        registry::find(&self.method.to_lowercase()).ok().map(|method| method.name)
    }

    /// Whether it is of a method that needs more than features: those that we do not have, and those that adapt the encoder.
    pub fn foreign(&self) -> bool {
        let adapts = |name: &str| registry::find(name).is_ok_and(|method| method.input.adapts());
        self.name().is_none_or(adapts) || self.setting.starts_with("adaptation=")
    }

    /// For people.
    pub fn title(&self) -> String {
        match self.setting.as_str() {
            "" => self.method.clone(),
            "adaptation=ranpac" => format!("{}, adapted as RanPAC", self.method),
            "adaptation=ease" => format!("{}, adapted as EASE", self.method),
            setting => format!("{}, {setting}", self.method),
        }
    }

    /// Whether a run saw the same data in the same tasks, as far as one can tell.
    pub fn same_stream(&self, record: &Record) -> bool {
        let data = record.data.key == self.data && record.data.backbone == self.backbone;
        let spec = &record.run.config.spec;
        let Some(set) = data_sets().get(&self.data) else { return false };
        let tasks = match spec.scenario {
            Scenario::Class { base, increment } => {
                // B-10 Inc-10 has no base to speak of.
                let same = |theirs: usize| theirs == base || (base == 0 && theirs == increment);
                self.inc == Some(increment) && self.base.is_none_or(same)
            }
            Scenario::Domain => self.inc.is_none() && set.scenario == "domain",
            Scenario::Joint => self.inc.is_none() && set.scenario == "class",
        };
        let facts = &record.run.dataset;
        let plain = (spec.per_class, spec.long_tail) == (None, None) && spec.prior.is_none();
        let whole = plain && set.differs(facts.train, facts.test, facts.classes).is_none();
        data && tasks && whole && spec.order.is_none()
    }

    /// Whether a run is what this number is of.
    pub fn matches(&self, record: &Record, metric: Metric) -> bool {
        let spec = &record.run.config.spec;
        let plain = !matches!(spec.truncation, Some(other) if other != Truncation::default());
        let width = self.width.is_none_or(|width| width == spec.computed_width());
        self.metric == metric
            && self.name() == Some(&spec.method)
            && plain
            && width
            && self.same_setting(spec)
            && self.same_stream(record)
    }

    fn same_setting(&self, spec: &Spec) -> bool {
        let usual = Spec::new(&spec.method).normalised().is_ok_and(|plain| plain.lift == spec.lift);
        let adapts = spec.method().is_ok_and(|method| method.input.adapts());
        let frozen = spec.adapt.is_none();
        if spec.method().is_ok_and(|method| method.input == Input::Raw) {
            return self.setting.is_empty() && has_usual_epochs(spec, &self.data);
        }
        match self.setting.split_once('=') {
            // Running times of EASE are those of its own settings.
            None if adapts => usual && spec.settings.is_empty() && self.same_adaptation(spec, "ease"),
            None | Some(("rate", "best")) => usual && frozen && spec.settings.is_empty(),
            Some(("adaptation", whose)) => usual && spec.settings.is_empty() && self.same_adaptation(spec, whose),
            Some(("lift", lift)) => frozen && spec.lift == lift && spec.settings.is_empty(),
            Some((name, value)) => {
                let number = |text: &str| text.parse::<f64>().ok();
                let same = spec.settings.get(name).is_some_and(|ours| number(ours) == number(value));
                same && usual && frozen && spec.settings.len() == 1
            }
        }
    }

    /// Whether a run adapts the encoder as the paper does: with adapters, and the settings of RanPAC, or those of EASE for the data set.
    fn same_adaptation(&self, spec: &Spec, whose: &str) -> bool {
        let plain = Spec::new(&spec.method);
        let is_plain = (spec.adapt_rate, spec.adapt_batch, spec.adapt_epochs)
            == (plain.adapt_rate, plain.adapt_batch, plain.adapt_epochs);
        let same = if whose == "ease" { is_ease(spec, Some(&self.data)) } else { is_plain };
        spec.adapt.as_deref() == Some("adapter")
            && spec.adapt_features == plain.adapt_features
            && spec.adapt_scale == plain.adapt_scale
            && same
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_can_be_read_in_full() {
        let numbers = TABLES.iter().map(|(name, text)| {
            let rows = text.lines().count() - 1;
            let read = table(name).unwrap().len();
            assert_eq!(read, rows, "{name}");
            read
        });
        assert_eq!(numbers.sum::<usize>(), 280 + 32 + 136 + 264 + 96 + 16 + 6 + 192 + 30);
    }

    #[test]
    fn numbers_are_the_papers() {
        let find = |name: &str, data: &str, method: &str, inc: usize| {
            let entries = table(name).unwrap();
            let found: Vec<_> = entries
                .iter()
                .filter(|e| e.data == data && e.method == method && e.inc == Some(inc) && !e.foreign())
                .map(|e| (e.metric, e.value, e.spread))
                .collect();
            found
        };
        assert_eq!(find("cil-vit", "stanfordcars", "ranpac", 5), [(Metric::Final, 58.03, None)]);
        assert_eq!(
            find("cil-vit-inc1", "cub200", "ranpac", 1),
            [(Metric::Final, 55.15, Some(37.14)), (Metric::Total, 74.67, Some(2.87))]
        );
    }
}
