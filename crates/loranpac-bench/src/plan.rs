//! From specs to what each method is given: feature maps that runs share, and memory before any is taken.

use loranpac::lift::{self, LiftSpec};
use loranpac::registry::MethodOptions;
use loranpac::{FeatureSpace, StreamSizes, Width, plan};

use crate::error::Error;
use crate::run::LiftFacts;
use crate::spec::Spec;
use loranpac_data::system;

/// A projection from a file.
pub struct Given {
    /// Name of the lift that it is for.
    pub lift: String,
    /// P, in C order, until the lift is made.
    pub values: Vec<f32>,
}

/// Feature maps in memory, made when they are first needed and shared by runs that agree on them.
pub struct Maps {
    /// Whether projections stay in memory.
    keep: bool,
    given: Option<Given>,
    maps: Vec<(Key, FeatureSpace)>,
}

/// What a map depends on.
type Key = (String, usize, usize, u64, u64);

fn key(spec: &Spec, dim: usize) -> Key {
    (spec.lift.clone(), dim, spec.width, spec.lift_seed, spec.gamma.to_bits())
}

impl Maps {
    /// Maps by seed, and one from a file if it is given.
    pub fn new(keep: bool, given: Option<Given>) -> Self {
        Maps { keep, given, maps: Vec::new() }
    }

    /// Drops all maps but that of a run: sweeps hold one at a time.
    pub fn keep_only(&mut self, spec: &Spec, dim: usize) {
        let wanted = key(spec, dim);
        self.maps.retain(|(key, _)| *key == wanted);
    }

    /// The map of a run on d features.
    pub fn get(&mut self, spec: &Spec, dim: usize) -> Result<FeatureSpace, Error> {
        let wanted = key(spec, dim);
        if let Some((_, map)) = self.maps.iter().find(|(key, _)| *key == wanted) {
            return Ok(map.clone());
        }
        let given = self.given.as_mut().filter(|given| given.lift == spec.lift);
        let projection = given.map(|given| std::mem::take(&mut given.values));
        let map = match projection {
            Some(_) => lift::build(&spec.lift, LiftSpec { projection, ..spec.lift_spec(dim, self.keep) })?.into(),
            None => spec.space(dim, self.keep)?,
        };
        self.maps.push((wanted, map.clone()));
        Ok(map)
    }

    /// What is recorded about the lift of a run, if it has one.
    pub fn facts(&self, spec: &Spec, space: &FeatureSpace) -> Result<Option<LiftFacts>, Error> {
        if !spec.method()?.input.lifted() {
            return Ok(None);
        }
        let given = self.given.as_ref().is_some_and(|given| given.lift == spec.lift);
        let width = space.width().finite();
        let projects = width.is_some() && lift::find(space.name())?.projection.is_drawn();
        let seed = (projects && !given).then_some(spec.lift_seed);
        Ok(Some(LiftFacts { name: space.name().to_owned(), width, seed }))
    }

    /// Checks the settings of a run and estimates the bytes that it needs, without taking any.
    fn need<'a>(&self, spec: &'a Spec, dim: usize, sizes: &'a StreamSizes) -> Result<Need<'a>, Error> {
        let method = spec.method()?;
        // A map that keeps nothing lets everything be checked before memory is taken.
        let probe = spec.space(dim, false)?;
        let rows = lift::find(probe.name())?.projection.count(dim, probe.width().finite().unwrap_or(0));
        let (width, options) = (probe.width(), spec.options(probe));
        method.build(&options)?;
        let kept = if self.keep { rows.saturating_mul(4 * dim) } else { 0 };
        let bytes = move |max_rank: usize| {
            let learner = method.build(&MethodOptions { max_rank: max_rank.max(1), ..options.clone() });
            learner.map_or(usize::MAX, |learner| learner.peak_bytes(sizes).saturating_add(kept))
        };
        Ok(Need { method: method.name, width, bytes: Box::new(bytes) })
    }

    /// Checks settings and memory of runs, given with the number of features that each works on, before any is taken.
    /// A budget in bytes chooses one cap for all, so that they can be compared: the smallest that it leaves to any of
    /// those that it matters to.
    pub fn check(&self, runs: &mut [(Spec, usize)], sizes: &StreamSizes, budget: Option<usize>) -> Result<(), Error> {
        if let Some(budget) = budget {
            let mut cap = usize::MAX;
            for (spec, dim) in runs.iter() {
                let Need { width, bytes, .. } = self.need(spec, *dim, sizes)?;
                // At infinite width it is samples that are kept.
                let most = width.finite().unwrap_or(sizes.samples.max(1));
                if bytes(1) != bytes(most) {
                    cap = cap.min(plan::largest_cap(most, budget, &bytes).max(1));
                }
            }
            if cap != usize::MAX {
                runs.iter_mut().for_each(|(spec, _)| spec.max_rank = cap);
            }
        }
        let room = system::room();
        let available = room.available.unwrap_or(usize::MAX).min(budget.unwrap_or(usize::MAX));
        for (spec, dim) in runs.iter() {
            let Need { method, width, bytes } = self.need(spec, *dim, sizes)?;
            plan::preflight(method, width, spec.max_rank, available, &bytes)?;
            room.ensure(bytes(spec.max_rank), method, "fewer threads, or a smaller --width or --max-rank, need less")?;
        }
        Ok(())
    }
}

/// A method's name, its width, and the bytes that it needs for a cap.
struct Need<'a> {
    method: &'static str,
    width: Width,
    bytes: Box<dyn Fn(usize) -> usize + 'a>,
}
