//! Sweeps: many runs on several data sets, those of a recipe for one. What is finished is on disk at once; what is on disk is not run again.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use loranpac::registry::Input;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::paper;
use crate::plan::Maps;
use crate::run::{Experiment, Progress, Run, SCHEMA};
use crate::spec::Spec;
use crate::stream::{self, Task};
use loranpac_data::atomic;
use loranpac_data::dataset::{Dataset, Digest};
use loranpac_data::embedded;
use loranpac_data::formats;

/// The data of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    /// Name of the data set, as recipes call it.
    pub key: String,
    /// Encoder, from the name of the file.
    pub backbone: String,
    /// Stem of the file's name.
    pub file: String,
    /// Where it was: a path, or `digits`.
    pub path: String,
    /// [`Dataset::digest`], in hexadecimal digits.
    pub digest: String,
}

impl Data {
    /// For people: the file's own name says data set and encoder.
    pub fn title(&self) -> &str {
        &self.file
    }
}

/// A run with the data that it was made on: what a sweep writes down.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Version of the format.
    pub schema: u32,
    /// The data.
    pub data: Data,
    /// The run.
    pub run: Run,
}

/// Where the data of a recipe come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Name of the data set.
    pub key: String,
    /// Encoder.
    pub backbone: String,
    /// The feature file; none for the digits inside the program.
    pub path: Option<PathBuf>,
}

impl Source {
    /// The digits inside the program.
    pub fn embedded() -> Source {
        Source { key: "digits".to_owned(), backbone: "pixels".to_owned(), path: None }
    }

    /// A feature file: `NAME.*` or `NAME-ENCODER.*`, where NAME is one of the paper's, or has no dash in it.
    pub fn file_at(path: &Path) -> Source {
        let stem = stem(path);
        let begins = |key: &&String| {
            stem.strip_prefix(key.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let length =
            paper::data_sets().keys().filter(begins).map(String::len).max().or(stem.find('-')).unwrap_or(stem.len());
        let (key, rest) = stem.split_at(length);
        let backbone = rest.trim_start_matches('-').to_owned();
        Source { key: key.to_owned(), backbone, path: Some(path.to_owned()) }
    }

    /// Reads the data.
    pub fn open(&self) -> Result<Dataset, Error> {
        Ok(self.path.as_deref().map_or_else(|| Ok(embedded::digits()), Dataset::open)?)
    }

    fn file(&self) -> String {
        self.path.as_deref().map_or_else(|| self.key.clone(), stem)
    }
}

/// The feature files in a folder, in the order of their names.
pub fn feature_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let unreadable = |source| Error::Read { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if formats::looks_like_features(&path) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Finds the files of data sets among others: by the data set's name, or by the whole name of the file. Those of the
/// recipe's own encoder are preferred. Also returns the names for which there is none.
pub fn find(files: &[PathBuf], names: &[String], backbone: Option<&str>) -> (Vec<Source>, Vec<String>) {
    let all = all(files);
    let (mut sources, mut missing) = (Vec::new(), Vec::new());
    for name in names {
        let of: Vec<&Source> = all.iter().filter(|source| source.key == *name || source.file() == *name).collect();
        let preferred = of.iter().any(|source| Some(source.backbone.as_str()) == backbone);
        if of.is_empty() {
            missing.push(name.clone());
        }
        let wanted = |source: &&&Source| !preferred || Some(source.backbone.as_str()) == backbone;
        sources.extend(of.iter().filter(wanted).map(|&source| source.clone()));
    }
    (sources, missing)
}

/// Every file as a data set.
pub fn all(files: &[PathBuf]) -> Vec<Source> {
    files.iter().map(|path| Source::file_at(path)).collect()
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Finished runs in a folder, one file each. Recipes with runs in common share them.
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Runs under `folder`, which is made.
    pub fn open(folder: PathBuf) -> Result<Store, Error> {
        std::fs::create_dir_all(&folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
        Ok(Store { folder })
    }

    fn path(&self, data: &Data, spec: &Spec, threads: usize) -> PathBuf {
        // Sums over threads are rounded in an order that depends on how many there are.
        let identity = serde_json::json!([data.digest, spec, threads, env!("CARGO_PKG_VERSION")]).to_string();
        let mut digest = Digest::default();
        identity.bytes().for_each(|byte| digest.add(byte.into()));
        self.folder.join(format!("{}_{}_{:016x}.json", data.file, spec.method, digest.0))
    }

    /// A finished run of the same configuration on the same data, if it is there and whole.
    pub fn load(&self, data: &Data, spec: &Spec, threads: usize) -> Option<Record> {
        let text = std::fs::read_to_string(self.path(data, spec, threads)).ok()?;
        let record: Record = serde_json::from_str(&text).ok()?;
        let same = record.schema == SCHEMA && record.data.digest == data.digest && record.run.config.spec == *spec;
        same.then(|| Record { data: data.clone(), ..record })
    }

    /// Writes a run, all or nothing.
    pub fn save(&self, record: &Record) -> Result<(), Error> {
        let path = self.path(&record.data, &record.run.config.spec, record.run.config.threads);
        let text = serde_json::to_string(record).map_err(|e| Error::Write { path: path.clone(), source: e.into() })?;
        match write_atomically(&path, text.as_bytes()) {
            // Another process is writing the same run.
            Err(Error::Write { source, .. }) if source.kind() == std::io::ErrorKind::ResourceBusy => Ok(()),
            outcome => outcome,
        }
    }
}

/// Replaces the contents of a file atomically.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    atomic::write(path, bytes).map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// What a sweep tells while it goes on.
pub enum Event<'a> {
    /// A run begins.
    Start {
        /// Its place among all.
        number: usize,
        /// The data.
        data: &'a Data,
        /// What it is.
        spec: &'a Spec,
    },
    /// A task is done.
    Task {
        /// Share of the whole sweep that is done, by an estimate.
        share: f64,
        /// Where the run stands.
        progress: Progress<'a>,
    },
    /// A run is on disk.
    Done {
        /// Whether it was there before.
        before: bool,
        /// The run.
        record: &'a Record,
    },
    /// Something a person should know.
    Note(String),
}

/// Many runs on some data.
pub struct Sweep<'a> {
    /// What to run on what.
    pub plans: &'a [(Source, Vec<Spec>)],
    /// Where finished runs are kept, if anywhere.
    pub store: Option<&'a Store>,
    /// Threads in use.
    pub threads: usize,
    /// Whether results are to stand beside the paper's: a file that is not what its name claims is then noted.
    pub beside_the_paper: bool,
}

impl Sweep<'_> {
    /// How many runs there are.
    pub fn count(&self) -> usize {
        self.plans.iter().map(|(_, specs)| specs.len()).sum()
    }

    /// Runs what is not there yet; returns all runs in the order of the plans. A run that cannot be done (for want of
    /// memory, or of arrays in the file) is left out with a note, and so is a file that cannot be read. Ends with [`Error::Interrupted`] if `watch` breaks.
    pub fn run(&self, watch: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>) -> Result<Vec<Record>, Error> {
        let total: f64 = self.plans.iter().flat_map(|(_, specs)| specs).map(cost).sum();
        let (mut before, mut number) = (0.0, 0);
        let mut records = Vec::new();
        let mut maps = Maps::new(true, None);
        for (source, specs) in self.plans {
            let whole = match source.open() {
                Ok(whole) => whole,
                Err(error) => {
                    let _ = watch(Event::Note(format!("skipped: {error}")));
                    (before, number) = (before + specs.iter().map(cost).sum::<f64>(), number + specs.len());
                    continue;
                }
            };
            let data = Data {
                path: source.path.as_ref().map_or_else(|| source.key.clone(), |path| path.display().to_string()),
                key: source.key.clone(),
                backbone: source.backbone.clone(),
                file: source.file(),
                digest: format!("{:016x}", whole.digest()),
            };
            if let Some(words) = unlike_the_paper(source, &whole).filter(|_| self.beside_the_paper) {
                let _ = watch(Event::Note(words));
            }
            let mut limited: Option<(usize, Dataset)> = None;
            for spec in specs {
                number += 1;
                let share = |done: f64| (before + done * cost(spec)) / total;
                let record = match self.store.and_then(|store| store.load(&data, spec, self.threads)) {
                    Some(record) => {
                        let _ = watch(Event::Done { before: true, record: &record });
                        Some(record)
                    }
                    None => {
                        if watch(Event::Start { number, data: &data, spec }).is_break() {
                            return Err(Error::Interrupted);
                        }
                        let dataset = part(&whole, &mut limited, spec.per_class);
                        let mut tell = |progress: Progress<'_>| {
                            let share = share(progress.share);
                            watch(Event::Task { share, progress })
                        };
                        match run(spec, dataset, &mut maps, self.threads, &mut tell) {
                            Ok(run) => {
                                let record = Record { schema: SCHEMA, data: data.clone(), run };
                                self.store.map_or(Ok(()), |store| store.save(&record))?;
                                let _ = watch(Event::Done { before: false, record: &record });
                                Some(record)
                            }
                            Err(Error::Interrupted) => return Err(Error::Interrupted),
                            Err(error) => {
                                let words = format!("left out: {error} ({})", spec.command(&data.path));
                                let _ = watch(Event::Note(words));
                                None
                            }
                        }
                    }
                };
                before += cost(spec);
                records.extend(record);
            }
        }
        Ok(records)
    }
}

/// Checks settings, class order and memory of a run; returns the layers stacked, if it wants them, and its tasks.
pub fn check(spec: &Spec, dataset: &Dataset, maps: &Maps) -> Result<(Option<Dataset>, Vec<Task>), Error> {
    let stacked = if spec.method()?.input == Input::Layers {
        let missing = || Error::Experiment(format!("{} needs arrays x_train_layer* and x_test_layer*", spec.method));
        Some(dataset.with_layers().ok_or_else(missing)?)
    } else {
        None
    };
    let dataset = stacked.as_ref().unwrap_or(dataset);
    let tasks = stream::tasks(dataset, spec.scenario, &stream::order_of(dataset, spec)?)?;
    let sizes = stream::sizes(dataset, tasks.iter());
    maps.check(&mut [(spec.clone(), dataset.dim)], &sizes, None)?;
    Ok((stacked, tasks))
}

/// One run on a data set, with its settings and memory checked first.
pub fn run(
    spec: &Spec,
    dataset: &Dataset,
    maps: &mut Maps,
    threads: usize,
    watch: crate::run::Watch<'_>,
) -> Result<Run, Error> {
    let method = spec.method()?;
    maps.keep_only(spec, dataset.dim);
    let (stacked, tasks) = check(spec, dataset, maps)?;
    let dataset = stacked.as_ref().unwrap_or(dataset);
    let map = maps.get(spec, dataset.dim)?;
    let lift = maps.facts(spec, &map)?;
    Experiment { spec, method, options: spec.options(map), lift, tasks: &tasks, threads }.run(dataset, watch)
}

/// The data set with so many samples per class; the last such part is kept.
fn part<'a>(whole: &'a Dataset, limited: &'a mut Option<(usize, Dataset)>, count: Option<usize>) -> &'a Dataset {
    let Some(count) = count else { return whole };
    if limited.as_ref().is_none_or(|(known, _)| *known != count) {
        *limited = None; // The old part goes before the new one comes.
        let mut dataset = whole.clone();
        dataset.limit_per_class(count);
        *limited = Some((count, dataset));
    }
    limited.as_ref().map_or(whole, |(_, dataset)| dataset)
}

/// How a file differs from the data set of the paper that its name claims, in words.
fn unlike_the_paper(source: &Source, dataset: &Dataset) -> Option<String> {
    let sizes = (dataset.train.len(), dataset.test.len(), dataset.classes.len());
    let differs = paper::data_sets().get(&source.key)?.differs(sizes.0, sizes.1, sizes.2)?;
    Some(format!("{} is not compared with the paper: it has {differs}", source.file()))
}

/// A rough cost of a run among others: wide ones take longer, and so does looking after every task.
fn cost(spec: &Spec) -> f64 {
    let tasks = match spec.scenario {
        stream::Scenario::Class { increment, .. } => 100.0 / increment.max(1) as f64,
        _ => 1.0,
    };
    let looks = if spec.eval == crate::spec::When::Every { tasks } else { 1.0 };
    (1000.0 + spec.width as f64) * (5.0 + looks)
}
