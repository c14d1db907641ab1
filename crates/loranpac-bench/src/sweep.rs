//! Sweeps: many runs on several data sets. Every finished run is written to the cache at once, and runs in the cache are not run
//! again.

use std::ops::ControlFlow;

use loranpac::internals::count;

use crate::adapted::RunFeatures;
use crate::cache::Cache;
use crate::error::Error;
use crate::maps::Maps;
use crate::plan::{Plan, Resources};
use crate::preflight::Forecast;
use crate::record::{Data, Record};
use crate::run::{Progress, SCHEMA};
use crate::say::Notice;
use crate::source::Source;
use crate::spec::{Scenario, Spec, When};

/// What a sweep reports while it goes on.
pub enum Event<'a> {
    /// A run begins.
    Start {
        /// Its place among all.
        number: usize,
        /// The data.
        data: &'a Data,
        /// What is run.
        spec: &'a Spec,
    },
    /// A task is done.
    Task {
        /// Share of the whole sweep that is done, by an estimate.
        share: f64,
        /// Where the run stands.
        progress: Progress<'a>,
    },
    /// A run is finished.
    Done {
        /// Whether it was in the cache.
        cached: bool,
        /// The run.
        record: &'a Record,
    },
    /// The encoder is being adapted.
    Adapt(&'a str),
    /// A message for the user.
    Note(String),
}

/// Called at every event; breaks to stop the sweep.
pub type Watch<'a> = &'a mut dyn FnMut(Event<'_>) -> ControlFlow<()>;

/// Many runs on some data.
pub struct Sweep<'a> {
    /// The runs on each data set.
    pub plans: &'a [(Source, Vec<Spec>)],
    /// Where finished runs are kept, if anywhere.
    pub cache: Option<&'a Cache>,
    /// Threads in use.
    pub threads: usize,
    /// Whether results are shown beside the paper's: a file that is not what its name claims is then noted.
    pub beside_the_paper: bool,
    /// Whether a note says at the beginning how long training inside the encoder takes.
    pub forecast: bool,
}

impl Sweep<'_> {
    /// The number of runs.
    pub fn count(&self) -> usize {
        self.plans.iter().map(|(_, specs)| specs.len()).sum()
    }

    /// Makes the runs that are not in the cache; returns all in the order of the plans. A run that cannot be made (for want of
    /// memory, or of arrays in the file) is left out with a note, and so is a file that cannot be read. Ends with
    /// [`Error::Interrupted`] if `watch` breaks.
    pub fn run(&self, watch: Watch<'_>) -> Result<Vec<Record>, Error> {
        let total: f64 = self.plans.iter().flat_map(|(_, specs)| specs).map(cost).sum();
        if self.forecast {
            for words in Forecast::of(self.plans, self.cache, self.threads, 0)?.words() {
                let _ = watch(Event::Note(words));
            }
        }
        let (mut before, mut number) = (0.0, 0);
        let mut records = Vec::new();
        let mut maps = Maps::default();
        for (source, specs) in self.plans {
            let dataset = match source.open() {
                Ok(dataset) => dataset,
                Err(error) => {
                    let _ = watch(Event::Note(format!("skipped: {error}")));
                    (before, number) = (before + specs.iter().map(cost).sum::<f64>(), number + specs.len());
                    continue;
                }
            };
            let data = source.data(&dataset);
            let mut raw = source.raw();
            if let Some(words) = source.unlike_the_paper(&dataset).filter(|_| self.beside_the_paper) {
                let _ = watch(Event::Note(words));
            }
            let trains = specs.iter().filter(|spec| RunFeatures::trains(spec)).count();
            if raw.is_none() && trains > 0 {
                let runs = count(trains, "run");
                let words = format!(
                    "left out: {runs} on {} that train inside the encoder: they need images (`--images DIR --encoder ENCODER`) and a transformer \
                     without an adapter",
                    data.title(),
                );
                let _ = watch(Event::Note(words));
            }
            for spec in specs {
                number += 1;
                if raw.is_none() && RunFeatures::trains(spec) {
                    before += cost(spec);
                    continue;
                }
                if let Some(record) = self.cache.and_then(|cache| cache.load(&data, spec, self.threads)) {
                    let _ = watch(Event::Done { cached: true, record: &record });
                    records.push(record);
                } else {
                    if watch(Event::Start { number, data: &data, spec }).is_break() {
                        return Err(Error::Interrupted);
                    }
                    let watch_both = std::cell::RefCell::new(&mut *watch);
                    let mut tell = |progress: Progress<'_>| {
                        let share = (before + progress.share * cost(spec)) / total;
                        (watch_both.borrow_mut())(Event::Task { share, progress })
                    };
                    let mut say = |notice: Notice<'_>| {
                        (watch_both.borrow_mut())(match notice {
                            Notice::Progress(words) => Event::Adapt(words),
                            Notice::Warning(words) => Event::Note(words.to_owned()),
                        })
                    };
                    let resources = Resources::threads(self.threads);
                    let made = Plan::with_raw(&mut maps, dataset.clone(), raw.as_mut(), vec![spec.clone()], resources)
                        .and_then(|mut plan| plan.run_and_say(0, &mut say, &mut tell));
                    match made {
                        Ok(run) => {
                            let record = Record { schema: SCHEMA, data: data.clone(), run };
                            self.cache.map_or(Ok(()), |cache| cache.save(&record))?;
                            let _ = watch(Event::Done { cached: false, record: &record });
                            records.push(record);
                        }
                        Err(Error::Interrupted) => return Err(Error::Interrupted),
                        Err(error) => {
                            let words = format!("left out: {error} ({})", data.command(spec));
                            let _ = watch(Event::Note(words));
                        }
                    }
                }
                before += cost(spec);
            }
        }
        Ok(records)
    }
}

/// A rough cost of a run among others: wide ones take longer, and so does evaluation after every task.
fn cost(spec: &Spec) -> f64 {
    let tasks = match spec.scenario {
        Scenario::Class { increment, .. } => 100.0 / increment.max(1) as f64,
        _ => 1.0,
    };
    let looks = if spec.eval == When::Every { tasks } else { 1.0 };
    (1000.0 + spec.computed_width() as f64) * (5.0 + looks)
}
