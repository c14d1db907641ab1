//! What decides a run, apart from the data: one plain value that can be written down, compared, and turned into a
//! command line.

use std::collections::BTreeMap;

use loranpac::lift::{self, DEFAULT_GAMMA, LiftSpec};
use loranpac::registry::{self, Input, Method, MethodOptions};
use loranpac::{FeatureSpace, Schedule, Truncation, Width};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::stream::Scenario;

/// The cap on the basis where nothing was said, the paper's r_max for most data sets.
pub const DEFAULT_MAX_RANK: usize = 10_000;

/// The seed of the class order where nothing was said, the paper's.
pub const DEFAULT_SEED: u32 = 1993;

/// Everything that decides a run, apart from the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Name of the method.
    pub method: String,
    /// Its settings, by name.
    pub settings: BTreeMap<String, String>,
    /// How many directions to keep, if it was said.
    pub truncation: Option<Truncation>,
    /// When the spectrum is cut.
    pub schedule: Schedule,
    /// r_max.
    pub max_rank: usize,
    /// Feature map.
    pub lift: String,
    /// E; 0 for maps without a choice.
    pub width: usize,
    /// Seed of the projection.
    pub lift_seed: u64,
    /// Inverse kernel width of Fourier features.
    pub gamma: f64,
    /// How samples become tasks.
    pub scenario: Scenario,
    /// Class order, as NumPy's legacy generator shuffles for this seed.
    pub seed: u32,
    /// Class order, instead of the seed's.
    pub order: Option<Order>,
    /// Training samples per class, if limited.
    pub per_class: Option<usize>,
    /// When the classifier is formed and evaluated.
    pub eval: When,
    /// When the error on all training samples so far is measured, with the samples.
    pub train_loss: When,
    /// When the spectrum of the Gram matrix is recorded.
    pub spectrum: When,
}

/// The name of the limit of random ReLU features in records.
const LIMIT: &str = "arc-cosine";

/// A class order that does not come from a seed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// By label.
    Sorted,
    /// As listed.
    Labels(Vec<String>),
}

/// How often something is done in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Not at all.
    #[default]
    Never,
    /// After the last task.
    Final,
    /// After every task.
    Every,
}

impl When {
    /// Whether it is due after this task.
    pub fn due(self, last: bool) -> bool {
        self == When::Every || (self == When::Final && last)
    }
}

impl Spec {
    /// The defaults for a method.
    pub fn new(method: &str) -> Self {
        Spec {
            method: method.to_owned(),
            settings: BTreeMap::new(),
            truncation: None,
            schedule: Schedule::Late,
            max_rank: DEFAULT_MAX_RANK,
            lift: lift::LIFTS[0].name.to_owned(),
            width: 10_000,
            lift_seed: 0,
            gamma: DEFAULT_GAMMA,
            scenario: Scenario::Class { base: 0, increment: 10 },
            seed: DEFAULT_SEED,
            order: None,
            per_class: None,
            eval: When::Every,
            train_loss: When::Never,
            spectrum: When::Never,
        }
    }

    /// The method's entry.
    pub fn method(&self) -> Result<&'static Method, Error> {
        Ok(registry::find(&self.method)?)
    }

    /// The same run without what makes no difference to it, so that equal runs have equal specs. Settings that the
    /// method does not know are others' business.
    pub fn normalised(mut self) -> Result<Self, Error> {
        let method = self.method()?;
        self.settings.retain(|name, _| method.knows(name));
        self.truncation = self.truncation.filter(|_| method.truncates);
        if !method.cuts {
            self.schedule = Schedule::Late;
        }
        self.lift = method.input.lift(&self.lift).to_owned();
        if !lift::find(&self.lift)?.projection.is_drawn() {
            (self.width, self.lift_seed) = (0, 0);
        }
        if self.lift != "fourier" {
            self.gamma = DEFAULT_GAMMA;
        }
        if self.order.is_some() {
            self.seed = 0;
        }
        if let Scenario::Class { base, increment } = &mut self.scenario
            && base == increment
        {
            *base = 0;
        }
        // A method that is not continual would start from scratch every time: it is a reference for the end.
        if !method.continual {
            self.eval = When::Final;
        }
        Ok(self)
    }

    /// Whether it stands for infinitely many lifted features.
    pub fn is_infinite(&self) -> bool {
        self.lift == LIMIT
    }

    /// Chooses the width; an infinite one is a lift of its own.
    pub fn widen(&mut self, width: Width) {
        match width {
            Width::Finite(width) => self.width = width,
            Width::Infinite if self.lift == lift::LIFTS[0].name => self.lift = LIMIT.to_owned(),
            Width::Infinite if self.is_infinite() => {}
            // Other lifts have no limit that we know; a width of 0 is refused.
            Width::Infinite => self.width = 0,
        }
    }

    /// What is needed to make its feature map for d features.
    pub fn lift_spec(&self, dim: usize, keep: bool) -> LiftSpec {
        LiftSpec { width: self.width, seed: self.lift_seed, keep, gamma: self.gamma, ..LiftSpec::new(dim, 0) }
    }

    /// The feature space for d features; `keep` holds P in memory.
    pub fn space(&self, dim: usize, keep: bool) -> Result<FeatureSpace, Error> {
        let (lift, width) = match self.is_infinite() {
            true => (lift::LIFTS[0].name, Width::Infinite),
            false => (self.lift.as_str(), Width::Finite(self.width)),
        };
        Ok(FeatureSpace::build(lift, width, self.lift_spec(dim, keep))?)
    }

    /// What the method is told.
    pub fn options(&self, space: FeatureSpace) -> MethodOptions {
        MethodOptions {
            space,
            truncation: self.truncation,
            max_rank: self.max_rank,
            schedule: self.schedule,
            seed: self.seed.into(),
            settings: self.settings.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }

    /// The command that repeats the run; what is left at its default is left out.
    pub fn command(&self, data: &str) -> String {
        let plain = Spec::new(&self.method);
        let mut words = vec![format!("loranpac run --data {} --method {}", quote(data), self.method)];
        let mut say = |differs: bool, flag: &str, value: String| {
            if differs {
                words.push(format!("--{flag} {}", quote(&value)));
            }
        };
        for (name, value) in &self.settings {
            say(true, "set", format!("{name}={value}"));
        }
        match self.truncation {
            None => {}
            Some(Truncation::Fraction(zeta)) => say(true, "truncate", zeta.to_string()),
            Some(Truncation::Threshold(delta)) => say(true, "threshold", delta.to_string()),
            Some(Truncation::Rank(k)) => say(true, "rank", k.to_string()),
        }
        say(self.schedule == Schedule::Paper, "schedule", "paper".to_owned());
        say(self.max_rank != plain.max_rank, "max-rank", self.max_rank.to_string());
        let chosen = registry::find(&self.method).is_ok_and(|method| method.input == Input::Lifted);
        say(chosen && self.lift != plain.lift && !self.is_infinite(), "lift", self.lift.clone());
        say(self.is_infinite(), "width", "infinite".to_owned());
        say(self.width != 0, "width", self.width.to_string());
        say(self.lift_seed != 0, "lift-seed", self.lift_seed.to_string());
        say(self.gamma != plain.gamma, "gamma", self.gamma.to_string());
        match self.scenario {
            Scenario::Class { base, increment } => {
                say(base != 0, "base", base.to_string());
                say(true, "inc", increment.to_string());
            }
            Scenario::Domain => say(true, "scenario", "domain".to_owned()),
            Scenario::Joint => say(true, "scenario", "joint".to_owned()),
        }
        say(self.order.is_none() && self.seed != DEFAULT_SEED, "seed", self.seed.to_string());
        match self.order {
            None => {}
            Some(Order::Sorted) => say(true, "order", "sorted".to_owned()),
            Some(Order::Labels(ref labels)) => say(true, "order", labels.join(",")),
        }
        say(self.per_class.is_some(), "per-class", self.per_class.unwrap_or(0).to_string());
        let name = |when: When| if when == When::Every { "every" } else { "final" }.to_owned();
        say(self.eval != plain.eval, "eval", name(self.eval));
        say(self.train_loss != When::Never, "train-loss", name(self.train_loss));
        say(self.spectrum != When::Never, "spectrum", name(self.spectrum));
        words.join(" ")
    }
}

/// A word that a shell takes as it is, or between quotes.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_difference_is_left_out() {
        let wide = Spec { width: 500, lift_seed: 3, truncation: Some(Truncation::Rank(3)), ..Spec::new("simplecil") };
        assert_eq!(wide.normalised().unwrap(), Spec::new("simplecil").normalised().unwrap());
        let wide = Spec { width: 500, ..Spec::new("loranpac") };
        assert_ne!(wide.normalised().unwrap(), Spec::new("loranpac").normalised().unwrap());
        let fourier = Spec { gamma: 2.0, ..Spec::new("randumb") }.normalised().unwrap();
        assert_eq!((fourier.lift.as_str(), fourier.gamma, fourier.width), ("fourier", 2.0, 10_000));
        assert!(Spec::new("magic").normalised().is_err());
        let mut infinite = Spec { lift_seed: 3, ..Spec::new("loranpac") };
        infinite.widen(Width::Infinite);
        let infinite = infinite.normalised().unwrap();
        assert_eq!((infinite.width, infinite.lift_seed), (0, 0));
        assert_eq!(infinite.command("f.npz"), "loranpac run --data f.npz --method loranpac --width infinite --inc 10");
    }

    #[test]
    fn the_command_says_what_is_not_default() {
        let mut spec = Spec::new("loranpac").normalised().unwrap();
        assert_eq!(spec.command("f.npz"), "loranpac run --data f.npz --method loranpac --width 10000 --inc 10");
        spec.settings.insert("ridge".to_owned(), "1e3".to_owned());
        spec.truncation = Some(Truncation::Fraction(0.5));
        spec.scenario = Scenario::Class { base: 16, increment: 5 };
        (spec.seed, spec.per_class, spec.eval, spec.spectrum) = (7, Some(30), When::Final, When::Every);
        assert_eq!(
            spec.command("my file.npz"),
            "loranpac run --data 'my file.npz' --method loranpac --set ridge=1e3 --truncate 0.5 --width 10000 --base 16 \
             --inc 5 --seed 7 --per-class 30 --eval final --spectrum every"
        );
    }
}
