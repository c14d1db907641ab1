//! How long runs train inside a transformer, before they begin: what they train and encode, times what a sample costs on this machine.

use std::collections::HashMap;

use loranpac::Label;
use loranpac_data::dataset::Part;
use loranpac_data::{Dataset, Split};
use loranpac_encode::Outline;
use loranpac_encode::adapt::Pace;

use crate::adapted::RunFeatures;
use crate::cache::Cache;
use crate::effort::{Effort, shared};
use crate::error::Error;
use crate::source::Source;
use crate::spec::Spec;
use crate::view::Axis;

/// What is left to do, in seconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Forecast {
    /// Methods with their modules, each with the seconds of its runs. Adaptation that several need counts for the first.
    pub rows: Vec<(String, f64)>,
    /// Of features that the encoder has yet to compute as it is.
    pub encoding: f64,
    /// Seconds of a training step and of encoding, per sample, for the module that takes longest.
    pub slowest: Option<Pace>,
}

impl Forecast {
    /// What runs take that are not in the cache. `left` is the number of samples that are not encoded yet.
    pub fn of(
        plans: &[(Source, Vec<Spec>)],
        cache: Option<&Cache>,
        threads: usize,
        left: usize,
    ) -> Result<Forecast, Error> {
        let mut paces: HashMap<String, Pace> = HashMap::new();
        let mut forecast = Forecast::default();
        for (source, specs) in plans.iter().filter(|(_, specs)| specs.iter().any(RunFeatures::trains)) {
            // Data that cannot be read are noted when their turn comes.
            let (Some(raw), Ok(dataset)) = (source.raw(), source.open()) else { continue };
            let data = source.data(&dataset);
            let mut counted: Vec<Spec> = Vec::new();
            for spec in specs.iter().filter(|spec| RunFeatures::trains(spec)) {
                if cache.is_some_and(|cache| cache.load(&data, spec, threads).is_some()) {
                    continue;
                }
                // Runs that cannot be made are noted when their turn comes.
                let Ok(effort) = Effort::of(spec, &dataset) else { continue };
                let known = shared(spec);
                let again = counted.contains(&known);
                let kind = spec.adapt.clone().unwrap_or_else(|| spec.method.clone());
                let pace = match paces.get(&kind) {
                    Some(pace) => *pace,
                    None => *paces.entry(kind).or_insert(raw.pace(spec)?),
                };
                forecast.add(&name(spec), if again { 0.0 } else { effort.seconds(pace) });
                counted.push(known);
            }
        }
        forecast.slowest = paces.values().copied().max_by(|a, b| a.train.total_cmp(&b.train));
        let encode = paces.values().map(|pace| pace.encode).min_by(f64::total_cmp);
        forecast.encoding = left as f64 * encode.unwrap_or(0.0);
        Ok(forecast)
    }

    fn add(&mut self, name: &str, seconds: f64) {
        match self.rows.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += seconds,
            None => self.rows.push((name.to_owned(), seconds)),
        }
    }

    /// In words: all of it, and each row. Nothing if no run trains inside the encoder.
    pub fn words(&self) -> Vec<String> {
        let Some(pace) = self.slowest else { return Vec::new() };
        let encoding = match self.encoding {
            0.0 => String::new(),
            seconds => format!(", and encoding as it is {}", words(seconds)),
        };
        let all = self.rows.iter().map(|(_, seconds)| seconds).sum();
        let total = format!(
            "training inside the encoder takes about {} in all on this machine{encoding} (at most {:.3} s per sample and epoch, {:.3} s to encode \
             one); it resumes after an interruption",
            words(all),
            pace.train,
            pace.encode,
        );
        let row = |(name, seconds): &(String, f64)| match *seconds {
            0.0 => format!("{name}: no training of its own"),
            seconds => format!("{name}: {}", words(seconds)),
        };
        std::iter::once(total).chain(self.rows.iter().map(row)).collect()
    }
}

/// A run in a table: its method and what it trains.
fn name(spec: &Spec) -> String {
    match Axis::Adapt.place_of(spec).text {
        text if text == "-" => spec.method.clone(),
        text => format!("{} ({text})", spec.method),
    }
}

/// A data set without features: what a listing shows of it.
pub fn sketch(key: &str, outline: &Outline, dim: usize) -> Dataset {
    let part = |split: Split| {
        let groups = || outline.groups.iter().filter(move |(tags, _)| tags.split == Some(split));
        let labels: Vec<Label> =
            groups().flat_map(|(tags, count)| tags.label.iter().flat_map(|x| vec![x.clone(); *count])).collect();
        let domain: Vec<Label> =
            groups().flat_map(|(tags, count)| tags.domain.iter().flat_map(|x| vec![x.clone(); *count])).collect();
        let domain = (!domain.is_empty()).then_some(domain);
        (Part { x: Vec::new(), y: Vec::new(), domain, layers: Default::default() }, labels)
    };
    Dataset::new(key.to_owned(), dim, part(Split::Train), part(Split::Test))
}

/// A duration for people.
fn words(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} seconds"),
        s if s < 5400.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{:.1} hours", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forecast_has_a_line_for_each_row_and_one_for_all() {
        let mut forecast = Forecast { encoding: 600.0, ..Forecast::default() };
        assert!(forecast.words().is_empty());
        forecast.slowest = Some(Pace { train: 0.5, encode: 0.25 });
        for (name, seconds) in [("l2p", 3.0), ("ease (adapter)", 9000.0), ("l2p", 4.0), ("adam (adapter)", 0.0)] {
            forecast.add(name, seconds);
        }
        let words = forecast.words();
        assert!(words[0].contains("about 2.5 hours in all") && words[0].contains("as it is 10 minutes"), "{words:?}");
        let rows = ["l2p: 7 seconds", "ease (adapter): 2.5 hours", "adam (adapter): no training of its own"];
        assert_eq!(words[1..], rows);
    }
}
