//! The paper's tables. `bench/reference/paper_tables.py` makes them from the paper's source.

use loranpac::Truncation;
use loranpac::registry;

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
    /// Whether it is of a method that we do not have: other methods, and those that adapt the encoder first.
    pub fn foreign(&self) -> bool {
        registry::find(&self.method).is_err() || self.setting.starts_with("adaptation=")
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
        let whole = spec.per_class.is_none() && set.differs(facts.train, facts.test, facts.classes).is_none();
        data && tasks && whole && spec.order.is_none()
    }

    /// Whether a run is what this number is of.
    pub fn matches(&self, record: &Record, metric: Metric) -> bool {
        let spec = &record.run.config.spec;
        let plain = !matches!(spec.truncation, Some(other) if other != Truncation::default());
        let width = self.width.is_none_or(|width| width == spec.computed_width());
        self.metric == metric
            && self.method == spec.method
            && plain
            && width
            && self.same_setting(spec)
            && self.same_stream(record)
    }

    fn same_setting(&self, spec: &Spec) -> bool {
        let usual = Spec::new(&spec.method).normalised().is_ok_and(|plain| plain.lift == spec.lift);
        match self.setting.split_once('=') {
            None | Some(("rate", "best")) => usual && spec.settings.is_empty(),
            Some(("lift", lift)) => spec.lift == lift && spec.settings.is_empty(),
            Some((name, value)) => {
                let number = |text: &str| text.parse::<f64>().ok();
                let same = spec.settings.get(name).is_some_and(|ours| number(ours) == number(value));
                same && usual && spec.settings.len() == 1
            }
        }
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
