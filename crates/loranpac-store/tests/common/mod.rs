//! Small models and streams for the tests of the store.
#![allow(dead_code)] // Not every test file uses everything.

mod faulty;
mod random;

use std::path::{Path, PathBuf};

use loranpac::{Classifier, Config, Features, Filter, Label, Model, Prior, Ridge, Schedule, Truncation, Width};
use loranpac_store::{Fingerprint, LiftRecord, Session, Settings};
use tempfile::TempDir;

#[allow(unused_imports)] // Not every test file uses everything.
pub use faulty::{Fault, Faulty};
pub use random::Random;

pub const DIM: usize = 6;
/// Samples in a task.
pub const EACH: usize = 24;

pub type Task = (Vec<f32>, Vec<Label>);

/// Tasks with three classes each, of which two are new.
pub fn tasks(count: usize) -> Vec<Task> {
    let task = |t: usize| {
        let mut random = Random(t as u64);
        let mut task = (Vec::new(), Vec::new());
        for i in 0..EACH {
            let class = 2 * t + i % 3;
            let mut centre = Random(1000 + class as u64);
            task.0.extend((0..DIM).map(|_| centre.symmetric() + 0.3 * random.symmetric()));
            task.1.push(if class.is_multiple_of(2) {
                Label::from(class as i64)
            } else {
                Label::from(format!("c{class}").as_str())
            });
        }
        task
    };
    (0..count).map(task).collect()
}

pub fn settings(width: usize, config: Config) -> Settings {
    let lift =
        LiftRecord { name: "relu-random".to_owned(), dim: DIM, width: Width::Finite(width), seed: 3, gamma: 0.1 };
    Settings { lift, config, keep: 1, width_choice: None, encoder: None, prior: Prior::None }
}

pub fn soft() -> Settings {
    settings(900, Config { filter: Filter::Soft(Ridge::GeometricMean), ..Config::default() })
}

pub fn small() -> Settings {
    settings(60, Config { filter: Filter::Soft(Ridge::GeometricMean), ..Config::default() })
}

pub fn tiny() -> Settings {
    settings(12, small().config)
}

/// Of more samples than features, so that it has no basis.
pub fn whole() -> Settings {
    settings(40, Config { chunk: 10, ..small().config })
}

/// The number of kinds of finite width.
pub const FINITE: usize = 5;

/// Soft, hard, the paper's schedule, one that compresses, and one without a basis; and those of infinite width.
pub fn every_kind() -> Vec<Settings> {
    let hard = Filter::Hard { truncation: Truncation::Fraction(0.25), ridge: 0.0 };
    let late = Config { filter: hard, ..Config::default() };
    vec![
        soft(),
        settings(500, late),
        settings(500, Config { schedule: Schedule::Paper, ..late }),
        settings(500, Config { max_rank: 45, chunk: 20, ..late }),
        whole(),
        infinite(soft().config),
        infinite(Config { half: true, ..late }),
        infinite(Config { max_rank: 60, chunk: 20, ..soft().config }),
    ]
}

/// Of infinite width.
pub fn infinite(config: Config) -> Settings {
    Settings { lift: LiftRecord::infinite(DIM), ..settings(1, config) }
}

/// Creates a model `m.lrp` in a new folder.
pub fn created(settings: &Settings) -> (TempDir, PathBuf, Session) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("m.lrp");
    let session = Session::create(&path, settings).unwrap();
    (folder, path, session)
}

/// Learns a task and commits it.
pub fn learn(model: &mut Session, (x, y): &Task) {
    model.learn(Features::new(x, DIM).unwrap(), y).unwrap();
    model.note("task", &Fingerprint::of(Features::new(x, DIM).unwrap(), y));
    model.commit().unwrap();
}

pub fn scores_of(classifier: &Classifier) -> Vec<f32> {
    let x: Vec<f32> = tasks(5).into_iter().flat_map(|(x, _)| x).collect();
    let scores = classifier.scores(Features::new(&x, DIM).unwrap()).unwrap();
    scores.rows().flatten().copied().collect()
}

pub fn scores(path: &Path) -> Vec<f32> {
    scores_of(&Session::open(path).unwrap().classifier().unwrap())
}

/// Q, or the kept samples.
pub fn basis(model: &Model) -> Vec<f32> {
    match model {
        Model::Explicit(model) => model.statistics().basis().columns(0).flatten().copied().collect(),
        Model::Kernel(model) => model.state().samples.clone(),
    }
}

/// The spectrum of S, or the contribution of evicted samples.
pub fn gram(session: &mut Session) -> Vec<f64> {
    if let Model::Kernel(model) = session.model().unwrap() {
        let evicted = model.state().evicted.iter();
        return evicted
            .flat_map(|evicted| {
                let mass = evicted.mass.col_iter().flat_map(|column| column.iter());
                mass.chain(evicted.sums.col_iter().flat_map(|column| column.iter()))
            })
            .copied()
            .collect();
    }
    session.spectrum().unwrap()
}
