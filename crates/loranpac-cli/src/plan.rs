//! From what a user chose to what each method is told: feature maps that methods share, settings, and memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use loranpac::lift::{self, FeatureMap, LiftSpec, Rows};
use loranpac::memory;
use loranpac::registry::{Method, MethodOptions};
use loranpac::{Schedule, StreamSizes, Truncation};
use loranpac_eval::Dataset;
use loranpac_eval::run::LiftFacts;
use loranpac_eval::system;

/// The cap on the basis where nothing was said.
const DEFAULT_MAX_RANK: usize = 10_000;

/// What the user chose, for all methods alike.
pub struct Choices {
    pub lift: String,
    pub width: usize,
    pub lift_seed: u64,
    pub gamma: f64,
    /// Whether projections stay in memory.
    pub keep: bool,
    pub truncation: Option<Truncation>,
    pub schedule: Schedule,
    pub max_rank: Option<usize>,
    /// A budget in bytes that chooses `max_rank`.
    pub memory: Option<usize>,
    pub settings: Vec<(String, String)>,
}

/// What the methods are going to be told, and the feature maps that they share.
pub struct Plan {
    choices: Choices,
    /// A projection from a file, for the lift that the user named, until that lift is made.
    projection: Option<Vec<f32>>,
    from_file: bool,
    /// E of every lifted method: the user's, or that of the projection from a file.
    width: Option<usize>,
    /// Maps by name and dimension, made when they are first needed.
    maps: BTreeMap<(String, usize), Arc<dyn FeatureMap>>,
}

/// A method's name, its width, and the bytes that it needs for a cap.
type Need<'a> = (&'a str, usize, Box<dyn Fn(usize) -> usize + 'a>);

impl Plan {
    /// `projection` is one from a file: its numbers and its rows.
    pub fn new(choices: Choices, projection: Option<(Vec<f32>, usize)>) -> Result<Self> {
        let rows = lift::find(&choices.lift)?.projection;
        let width = projection.as_ref().map(|(values, count)| rows.width(values.len() / count.max(&1), *count));
        let (projection, from_file) = (projection.map(|(values, _)| values), width.is_some());
        Ok(Plan { choices, projection, from_file, width, maps: BTreeMap::new() })
    }

    fn spec(&self, dim: usize) -> LiftSpec {
        LiftSpec {
            dim,
            width: self.width.unwrap_or(self.choices.width),
            seed: self.choices.lift_seed,
            keep: self.choices.keep,
            projection: None,
            gamma: self.choices.gamma,
        }
    }

    fn told(&self, method: &Method, lift: Arc<dyn FeatureMap>, max_rank: usize, seed: Option<u32>) -> MethodOptions {
        let choices = &self.choices;
        MethodOptions {
            lift,
            truncation: choices.truncation,
            max_rank,
            // Methods that do not cut are late among others.
            schedule: if method.cuts { choices.schedule } else { Schedule::Late },
            seed: seed.unwrap_or(0).into(),
            settings: choices.settings.iter().filter(|(name, _)| method.knows(name)).cloned().collect(),
        }
    }

    /// Options for a run, with the lift in memory.
    pub fn options(
        &mut self,
        method: &Method,
        dim: usize,
        max_rank: usize,
        seed: Option<u32>,
    ) -> Result<MethodOptions> {
        let key = (method.input.lift(&self.choices.lift).to_owned(), dim);
        if !self.maps.contains_key(&key) {
            let projection = if key.0 == self.choices.lift { self.projection.take() } else { None };
            self.maps.insert(key.clone(), lift::build(&key.0, LiftSpec { projection, ..self.spec(dim) })?);
        }
        Ok(self.told(method, self.maps[&key].clone(), max_rank, seed))
    }

    /// What is recorded about a lift.
    pub fn facts(&self, lift: &dyn FeatureMap) -> LiftFacts {
        let from_file = self.from_file && lift.name() == self.choices.lift;
        let projects = lift::find(lift.name()).is_ok_and(|entry| entry.projection != Rows::None);
        LiftFacts {
            name: lift.name().to_owned(),
            width: lift.width(),
            seed: (projects && !from_file).then_some(self.choices.lift_seed),
        }
    }

    /// Checks settings and memory before any is taken, and finds the cap that a budget in bytes leaves.
    pub fn max_rank<'d>(
        &self,
        methods: &[&Method],
        data_of: &dyn Fn(&Method) -> &'d Dataset,
        sizes: &StreamSizes,
    ) -> Result<usize> {
        let default = self.choices.max_rank.unwrap_or(DEFAULT_MAX_RANK);
        let mut needs: Vec<Need<'_>> = Vec::new();
        for &method in methods {
            let dim = data_of(method).dim;
            let name = method.input.lift(&self.choices.lift);
            // A map that keeps nothing lets everything be checked before memory is taken.
            let probe = lift::build(name, LiftSpec { keep: false, ..self.spec(dim) })?;
            let (width, options) = (probe.width(), self.told(method, probe, default, None));
            method.build(&options)?;
            let rows = lift::find(name)?.projection.count(dim, width);
            let kept = if self.choices.keep { rows.saturating_mul(4 * dim) } else { 0 };
            let need = move |max_rank: usize| {
                let learner = method.build(&MethodOptions { max_rank: max_rank.max(1), ..options.clone() });
                learner.map_or(usize::MAX, |learner| learner.peak_bytes(sizes).saturating_add(kept))
            };
            needs.push((method.name, width, Box::new(need)));
        }
        // One cap for all methods, so that they can be compared: the smallest that a budget in bytes leaves to any of
        // those that it matters to.
        let max_rank = match self.choices.memory {
            Some(budget) => {
                let capped = needs.iter().filter(|(_, width, need)| need(1) != need(*width));
                let caps = capped.map(|(_, width, need)| memory::largest_cap(*width, budget, need));
                caps.min().unwrap_or(default).max(1)
            }
            None => default,
        };
        let available = system::available_memory().map_or(usize::MAX, |bytes| bytes as usize);
        let available = available.min(self.choices.memory.unwrap_or(usize::MAX));
        for (name, width, need) in &needs {
            memory::preflight(name, *width, max_rank, available, need)?;
        }
        Ok(max_rank)
    }
}
