//! From specs to runs. A [`Plan`] is the one way: it gives every run its samples and its tasks, and refuses what cannot be
//! run, for its settings, for the data or for want of memory, before the first run begins.

use std::ops::ControlFlow;
use std::sync::Arc;

use loranpac::auto::{self, Choice, Expected};
use loranpac::lift::{self, Rows};
use loranpac::memory::{self, Room, human_bytes};
use loranpac::registry::{Input, MethodOptions};
use loranpac::{StreamSizes, Width, plan};
use loranpac_data::{Dataset, system};

use crate::adapted::{RawData, RunFeatures};
use crate::error::Error;
use crate::maps::Maps;
use crate::prompted::{self, Prompted};
use crate::run::{Experiment, Run, Watch};
use crate::say::Say;
use crate::spec::{Order, Spec, When};
use crate::stream;

/// One part in this many of a budget goes to the allocator's gaps and to threads: measured, the process holds up to a fifth
/// more than the arrays that are counted.
const OVERHEAD: usize = 4;

/// What runs may use of the machine.
#[derive(Debug, Clone, Copy)]
pub struct Resources {
    /// Threads in use.
    pub threads: usize,
    /// Bytes that the process may hold, the program and the data included; none for what is available. A budget decides the
    /// cap on the basis.
    pub memory: Option<usize>,
}

impl Resources {
    /// All memory that is available.
    pub fn threads(threads: usize) -> Resources {
        Resources { threads, memory: None }
    }
}

/// Runs on one data set that have been checked.
pub struct Plan<'m> {
    maps: &'m mut Maps,
    raw: Option<&'m mut RawData>,
    /// All samples, for runs that adapt the encoder.
    whole: Option<Arc<Dataset>>,
    runs: Vec<Planned>,
    threads: usize,
    notes: Vec<String>,
}

/// A run that has been checked.
struct Planned {
    spec: Spec,
    data: Arc<Dataset>,
    /// Features of a sample at most, which are not those of the data if the run adapts the encoder.
    dim: usize,
    features: RunFeatures,
    /// Why it has its width, if the plan has chosen it.
    choice: Option<Choice>,
    /// Whether lifted test samples are kept between evaluations.
    keep_lifted: bool,
}

impl<'m> Plan<'m> {
    /// Checks settings, class orders and memory of runs. Feature maps that none of them needs are dropped.
    pub fn new(
        maps: &'m mut Maps,
        dataset: impl Into<Arc<Dataset>>,
        specs: Vec<Spec>,
        resources: Resources,
    ) -> Result<Plan<'m>, Error> {
        Plan::with_raw(maps, dataset, None, specs, resources)
    }

    /// The same with the images or texts that the features were computed from, which runs need that adapt the encoder.
    pub fn with_raw(
        maps: &'m mut Maps,
        dataset: impl Into<Arc<Dataset>>,
        raw: Option<&'m mut RawData>,
        specs: Vec<Spec>,
        resources: Resources,
    ) -> Result<Plan<'m>, Error> {
        let specs = specs.into_iter().map(Spec::normalised).collect::<Result<Vec<_>, _>>()?;
        let adapting =
            specs.iter().find(|spec| RunFeatures::of(spec).is_ok_and(|features| features != RunFeatures::Frozen));
        if let (Some(spec), None) = (adapting, &raw) {
            let message = format!(
                "{} trains inside the encoder: it needs images or texts and a transformer without an adapter, not \
                 features, as in `loranpac run --data photos/ --encoder vit/`",
                if spec.adapt.is_some() && !spec.method()?.input.adapts() { "`adapt`" } else { &spec.method },
            );
            return Err(Error::Experiment(message));
        }
        let dataset = dataset.into();
        let whole = adapting.is_some().then(|| dataset.clone());
        let mut runs = Vec::new();
        for (mut spec, data) in with_data(dataset, specs)? {
            let features = RunFeatures::of(&spec)?;
            let tasks = stream::of(&data, &spec)?.len();
            if features == RunFeatures::Raw {
                prompted::settings(&spec)?.check(tasks)?;
            }
            let dim = features.dim(data.dim, tasks);
            maps.adapt(&mut spec, dim)?;
            runs.push(Planned { spec, data, dim, features, choice: None, keep_lifted: false });
        }
        let mut plan = Plan { maps, raw, whole, runs, threads: resources.threads, notes: Vec::new() };
        let left = resources.memory.map(left_for_models).transpose()?;
        plan.choose_widths(left)?;
        plan.maps.keep_only(plan.runs.iter().map(|run| (&run.spec, run.dim)));
        plan.fit(resources.memory.zip(left))?;
        Ok(plan)
    }

    /// The specs, in the order of the runs.
    pub fn specs(&self) -> impl Iterator<Item = &Spec> {
        self.runs.iter().map(|run| &run.spec)
    }

    /// What users should know about choices that the plan has made.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The number of runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Makes one of the runs. Ends with [`Error::Interrupted`] if `watch` breaks.
    pub fn run(&mut self, number: usize, watch: Watch<'_>) -> Result<Run, Error> {
        self.run_and_say(number, &mut |_| ControlFlow::Continue(()), watch)
    }

    /// The same. `say` is told about adaptation, and may break too.
    pub fn run_and_say(&mut self, number: usize, say: Say<'_>, watch: Watch<'_>) -> Result<Run, Error> {
        let Planned { spec, data, features, choice, keep_lifted, .. } = &self.runs[number];
        let tasks = stream::of(data, spec)?;
        let (threads, choice, keep_lifted) = (self.threads, *choice, *keep_lifted);
        let rows = |whole: &Dataset| -> Result<Vec<usize>, Error> {
            Ok(stream::training_rows(whole, spec)?.unwrap_or_else(|| (0..whole.train.len()).collect()))
        };
        let adapted = match (&mut self.raw, &self.whole) {
            (Some(raw), Some(whole)) if *features == RunFeatures::Raw => {
                let (map, rows) = (self.maps.get(spec, data.dim)?, rows(whole)?);
                let mut subject = Prompted::new(spec, (data, &rows), &tasks, raw.open(whole)?, say)?;
                let (method, options, tasks) = (spec.method()?, spec.options(map), &tasks[..]);
                let (lift, adapt_seconds, adapt_choice) = (None, None, None);
                return Experiment {
                    spec,
                    method,
                    options,
                    lift,
                    choice,
                    tasks,
                    adapt_seconds,
                    adapt_choice,
                    threads,
                    keep_lifted,
                }
                .run_subject(&mut subject, data, watch);
            }
            (Some(raw), Some(whole)) if *features != RunFeatures::Frozen => {
                Some(raw.adapted(spec, whole, (data, &rows(whole)?), &tasks, say)?)
            }
            _ => None,
        };
        let (adapt_seconds, adapt_choice) = adapted.as_ref().map(|made| (made.seconds, made.choice.clone())).unzip();
        let adapt_choice = adapt_choice.flatten();
        let data = adapted.as_ref().and_then(|made| made.data.as_ref()).unwrap_or(data);
        let map = self.maps.get(spec, data.dim)?;
        let lift = self.maps.facts(spec, &map)?;
        let mut options = spec.options(map);
        if *features == RunFeatures::Subspaces {
            // The spec stays as it was asked for, so that a finished run is found again.
            options.settings.retain(|(name, _)| name != "subspaces");
            options.settings.push(("subspaces".to_owned(), tasks.len().to_string()));
        }
        let (method, tasks) = (spec.method()?, &tasks[..]);
        Experiment { spec, method, options, lift, choice, tasks, adapt_seconds, adapt_choice, threads, keep_lifted }
            .run(data, watch)
    }

    /// How much there is to learn in each run.
    fn sizes(&self) -> Result<Vec<StreamSizes>, Error> {
        self.runs.iter().map(|run| Ok(stream::sizes(&run.data, &stream::of(&run.data, &run.spec)?))).collect()
    }

    /// Chooses the widths that are left open: one finite width for all of them, so that they can be compared, and an infinite one
    /// for methods that have it, if samples may be kept. `left` is what a budget leaves to models.
    fn choose_widths(&mut self, left: Option<usize>) -> Result<(), Error> {
        let open: Vec<usize> = (0..self.runs.len()).filter(|at| self.runs[*at].spec.is_open()).collect();
        if open.is_empty() {
            return Ok(());
        }
        let sizes = self.sizes()?;
        let room = system::room();
        let room = Room { available: room.available.into_iter().chain(left).min(), ..room };
        let fits = |at: usize, width: Width| -> Result<bool, Error> {
            let Planned { spec, dim, .. } = &self.runs[at];
            let spec = Spec { width, ..spec.clone() }.normalised()?;
            let needed = (need(self.maps, &spec, *dim, &sizes[at])?.bytes)(spec.cap());
            Ok(room.suffices(needed))
        };
        let samples = open.iter().map(|at| sizes[*at].samples).max();
        let inside = |at: &usize| {
            let Planned { spec, dim, .. } = &self.runs[*at];
            lift::find(&spec.lift).is_ok_and(|lift| lift.projection == Rows::WidthMinusDim).then_some(*dim)
        };
        let expected =
            Expected { samples, inside: open.iter().filter_map(inside).max().unwrap_or(0), ..Expected::default() };
        // What is wrong apart from memory is refused later, with its reason.
        let finite = auto::choose(expected, |width| open.iter().all(|at| fits(*at, width).unwrap_or(true)));
        let limited = |at: usize| {
            let Planned { spec, .. } = &self.runs[at];
            let has_limit = spec.method()?.infinite && lift::find(&spec.lift)?.limit.is_some() && spec.lift_seed == 0;
            let expected = Expected { may_keep: spec.keep_samples, has_limit, ..expected };
            let choice = auto::choose(expected, |width| !width.is_infinite() || fits(at, width).unwrap_or(false));
            Ok(if choice.width.is_infinite() { choice } else { finite })
        };
        let choices = open.iter().map(|at| limited(*at)).collect::<Result<Vec<Choice>, Error>>()?;
        let mut chosen: Vec<(Choice, Vec<&str>)> = Vec::new();
        for (at, choice) in open.into_iter().zip(choices) {
            let Planned { spec, choice: reason, .. } = &mut self.runs[at];
            *reason = Some(choice);
            *spec = Spec { width: choice.width, ..spec.clone() }.normalised()?;
            let name = spec.method()?.name;
            match chosen.iter_mut().find(|(known, _)| *known == choice) {
                Some((_, names)) if names.contains(&name) => {}
                Some((_, names)) => names.push(name),
                None => chosen.push((choice, vec![name])),
            }
        }
        self.notes = match &chosen[..] {
            [(choice, _)] => vec![choice.to_string()],
            several => several.iter().map(|(choice, names)| format!("{}: {choice}", names.join(", "))).collect(),
        };
        Ok(())
    }

    /// Refuses runs that need more memory than there is. A budget chooses one cap for all runs, so that they can be compared:
    /// the smallest that it leaves to any of those that it matters to.
    fn fit(&mut self, budget: Option<(usize, usize)>) -> Result<(), Error> {
        let sizes = self.sizes()?;
        let left = budget.map(|(_, left)| left);
        if let Some(left) = left {
            let mut cap = usize::MAX;
            for (Planned { spec, dim, .. }, sizes) in self.runs.iter().zip(&sizes) {
                let Need { width, bytes, .. } = need(self.maps, spec, *dim, sizes)?;
                // At infinite width it is samples that are kept.
                let most = width.finite().unwrap_or(sizes.samples.max(1));
                if bytes(1) != bytes(most) {
                    cap = cap.min(plan::largest_cap(most, left, &bytes).max(1));
                }
            }
            if cap != usize::MAX {
                self.runs.iter_mut().for_each(|run| run.spec.max_rank = Some(cap));
            }
        }
        let room = system::room();
        let available = room.available.unwrap_or(usize::MAX).min(left.unwrap_or(usize::MAX));
        for (Planned { spec, data, dim, keep_lifted, .. }, sizes) in self.runs.iter_mut().zip(&sizes) {
            let Need { method, width, bytes } = need(self.maps, spec, *dim, sizes)?;
            let advice = "fewer threads, or a smaller `width` or `max-rank`, need less";
            plan::preflight(method, width, spec.cap(), available, &bytes)
                .and_then(|()| room.ensure(bytes(spec.cap()), method, advice))
                .map_err(|error| match budget {
                    Some((budget, left)) => {
                        let reason = format!("it leaves {} to the model: {error}", human_bytes(left));
                        loranpac::Error::setting("memory", human_bytes(budget), reason)
                    }
                    None => error,
                })?;
            let kept = lifted_bytes(spec, data, width)?;
            let all = bytes(spec.cap()).saturating_add(kept.saturating_add(kept / OVERHEAD));
            *keep_lifted = kept > 0 && all <= available && room.ensure(all, method, advice).is_ok();
        }
        Ok(())
    }
}

/// The bytes of the lifted test samples of a run that evaluates more than once; 0 for others.
fn lifted_bytes(spec: &Spec, data: &Dataset, width: Width) -> Result<usize, Error> {
    let repeated = spec.eval == When::Every && spec.method()?.input.lifted();
    Ok(width.finite().filter(|_| repeated).map_or(0, |width| memory::product(&[4, width, data.test.len()])))
}

/// Gives every run its samples: those of its classes up to its limit, with the features of all layers if the method takes them.
/// Runs that agree share them, and the whole data set is dropped if no run needs it.
fn with_data(whole: Arc<Dataset>, specs: Vec<Spec>) -> Result<Vec<(Spec, Arc<Dataset>)>, Error> {
    let mut limits: Vec<(Limits, &Spec)> = Vec::new();
    for spec in &specs {
        let own = Limits::of(spec);
        if !limits.iter().any(|(other, _)| *other == own) {
            limits.push((own, spec));
        }
    }
    let mut whole = Some(whole);
    let mut parts = Vec::new();
    for (at, (limit, spec)) in limits.iter().enumerate() {
        let last = at + 1 == limits.len();
        let Some(dataset) = (if last { whole.take() } else { whole.clone() }) else { continue };
        let part = match stream::training_rows(&dataset, spec)? {
            None => dataset,
            Some(rows) => {
                let mut part = Arc::unwrap_or_clone(dataset);
                part.keep_train(&rows);
                Arc::new(part)
            }
        };
        let layers = |spec: &&Spec| Limits::of(spec) == *limit && takes_layers(spec);
        let stacked = match specs.iter().find(layers) {
            None => None,
            Some(spec) => {
                let name = &spec.method;
                let missing =
                    format!("{name} needs the features of several layers: arrays x_train_layer* and x_test_layer*");
                Some(Arc::new(part.with_layers().ok_or(Error::Experiment(missing))?))
            }
        };
        parts.push((limit.clone(), part, stacked));
    }
    let data_of = |spec: Spec| {
        let (_, part, stacked) = parts.iter().find(|(limit, ..)| *limit == Limits::of(&spec))?;
        let data = stacked.as_ref().filter(|_| takes_layers(&spec)).unwrap_or(part).clone();
        Some((spec, data))
    };
    Ok(specs.into_iter().filter_map(data_of).collect())
}

/// What the training samples of a run depend on: a long tail follows the class order.
#[derive(Clone, PartialEq)]
struct Limits {
    per_class: Option<usize>,
    long_tail: Option<(f64, u32, Option<Order>)>,
}

impl Limits {
    fn of(spec: &Spec) -> Limits {
        let long_tail = spec.long_tail.map(|ratio| (ratio, spec.seed, spec.order.clone()));
        Limits { per_class: spec.per_class, long_tail }
    }
}

fn takes_layers(spec: &Spec) -> bool {
    spec.method().is_ok_and(|method| method.input == Input::Layers)
}

/// What a budget for the whole process leaves to models: all but the overhead, the program and the data.
fn left_for_models(budget: usize) -> Result<usize, Error> {
    let held = system::resident_memory().map_or(0, |bytes| bytes as usize);
    let left = (budget - budget / OVERHEAD).checked_sub(held).filter(|left| *left > 0);
    left.ok_or_else(|| {
        let reason = format!("the program and the data hold {} before anything is learned", human_bytes(held));
        loranpac::Error::setting("memory", human_bytes(budget), reason).into()
    })
}

/// A method's name, its width, and the bytes that it needs for a cap.
struct Need<'a> {
    method: &'static str,
    width: Width,
    bytes: Box<dyn Fn(usize) -> usize + 'a>,
}

/// Checks the settings of a run and estimates the bytes that it needs, without allocating any.
fn need<'a>(maps: &Maps, spec: &'a Spec, dim: usize, sizes: &'a StreamSizes) -> Result<Need<'a>, Error> {
    let method = spec.method()?;
    // A map that keeps nothing lets everything be checked before memory is allocated.
    let probe = spec.space(dim, false)?;
    let (width, options) = (probe.width(), spec.options(probe));
    if method.input == Input::Raw {
        // What training needs depends on the samples, and is checked when they have been read.
        method.config(&options)?;
        return Ok(Need { method: method.name, width, bytes: Box::new(|_| 0) });
    }
    method.build(&options)?;
    let kept = maps.bytes(spec, dim, width)?;
    let bytes = move |max_rank: usize| {
        let learner = method.build(&MethodOptions { max_rank: max_rank.max(1), ..options.clone() });
        learner.map_or(usize::MAX, |learner| learner.peak_bytes(sizes).saturating_add(kept))
    };
    Ok(Need { method: method.name, width, bytes: Box::new(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use loranpac_data::embedded;

    fn open(method: &str, keep_samples: bool) -> Spec {
        Spec { keep_samples, ..Spec::new(method) }
    }

    #[test]
    fn methods_share_an_automatic_width_and_those_that_may_keep_samples_have_an_infinite_one() {
        let digits = Arc::new(embedded::digits());
        assert!(digits.train.len() < 2_000);
        let plan_of = |specs: Vec<Spec>| {
            let mut maps = Maps::new(false, None);
            let plan = Plan::new(&mut maps, digits.clone(), specs, Resources::threads(1)).unwrap();
            let widths: Vec<Width> = plan.specs().map(|spec| spec.width).collect();
            (widths, plan.notes().to_vec(), plan.specs().all(|spec| !spec.keep_samples && !spec.is_open()))
        };
        let ten = Width::Finite(10_000);
        let explicit = Spec { width: Width::Finite(300), ..Spec::new("ranpac") };
        let (widths, notes, decided) =
            plan_of(vec![open("loranpac", false), open("ranpac", false), explicit, open("simplecil", false)]);
        assert_eq!(widths, [ten, ten, Width::Finite(300), Width::Finite(0)]);
        assert_eq!(notes, ["width 10000, chosen for 1348 samples: at least 3 times as many"]);
        assert!(decided);
        let seeded = Spec { lift_seed: 3, ..open("loranpac", true) };
        let (widths, notes, decided) = plan_of(vec![open("loranpac-soft", true), open("ranpac", true), seeded]);
        assert_eq!(widths, [Width::Infinite, ten, ten]);
        assert!(
            notes[0].starts_with("loranpac-soft: width infinite")
                && notes[1].starts_with("ranpac, loranpac: width 10000")
        );
        assert!(decided);
        assert!(plan_of(vec![open("simplecil", true)]).1.is_empty());
    }

    #[test]
    fn an_automatic_width_and_its_reason_are_recorded_and_its_command_repeats_it() {
        let mut maps = Maps::default();
        let scenario = crate::spec::Scenario::Joint;
        let spec = Spec { scenario, per_class: Some(2), eval: When::Final, ..open("loranpac-soft", false) };
        let mut plan = Plan::new(&mut maps, embedded::digits(), vec![spec], Resources::threads(1)).unwrap();
        let run = plan.run(0, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(
            run.config.width_choice.map(|choice| (choice.width, choice.samples)),
            Some((Width::Finite(10_000), Some(20)))
        );
        assert_eq!(run.config.lift.as_ref().and_then(|lift| lift.width), Some(10_000));
        assert!(run.config.spec.command("digits").contains("--width 10000"));
        let json = serde_json::to_value(&run).unwrap();
        assert_eq!(json["config"]["width_choice"]["reason"], "samples");
    }

    #[test]
    fn test_samples_that_are_kept_lifted_change_no_accuracy() {
        let spec = |method: &str| {
            let scenario = crate::spec::Scenario::Class { base: 0, increment: 2 };
            Spec { width: Width::Finite(300), scenario, ..Spec::new(method) }
        };
        let mut maps = Maps::default();
        let specs =
            vec![spec("loranpac-soft"), spec("ranpac"), spec("simplecil"), Spec { eval: When::Final, ..spec("rls") }];
        let mut plan = Plan::new(&mut maps, embedded::digits(), specs, Resources::threads(1)).unwrap();
        assert_eq!(plan.runs.iter().map(|run| run.keep_lifted).collect::<Vec<_>>(), [true, true, false, false]);
        let needed = lifted_bytes(&plan.runs[0].spec, &plan.runs[0].data, Width::Finite(300)).unwrap();
        assert_eq!(needed, 4 * 300 * plan.runs[0].data.test.len());
        for number in 0..2 {
            let [kept, afresh] = [true, false].map(|keep| {
                plan.runs[number].keep_lifted = keep;
                plan.run(number, &mut |_| ControlFlow::Continue(())).unwrap()
            });
            assert_eq!(
                serde_json::to_value(&kept.accuracy_matrix).unwrap(),
                serde_json::to_value(&afresh.accuracy_matrix).unwrap()
            );
            let hits = |run: &Run| run.tasks.iter().map(|task| task.accuracy_samples).collect::<Vec<_>>();
            assert_eq!(hits(&kept), hits(&afresh));
            assert!(kept.final_accuracy > Some(50.0));
        }
    }
}
