//! Infinite width against finite ones, in time and on the disk: `cargo bench -p loranpac-store --bench width`.
//!
//! 6,000 samples of 1,280 features and 200 classes in 20 tasks, soft filter, then one classifier. `-- SAMPLES WIDTH...` for
//! other sizes.

mod samples;

use std::fs;
use std::time::Instant;

use loranpac::{Config, Features, Filter, Prior, Ridge, Width};
use loranpac_store::{LiftRecord, Session, Settings};
use samples::samples;

const DIM: usize = 1280;
const CLASSES: usize = 200;
const TASKS: usize = 20;

fn main() {
    let sizes: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let count = sizes.first().copied().unwrap_or(6_000);
    let widths = if sizes.len() > 1 { sizes[1..].to_vec() } else { vec![20_000, 100_000] };
    let (x, y) = samples(count, DIM, CLASSES, 1);
    let config = Config { filter: Filter::Soft(Ridge::GeometricMean), ..Config::default() };
    let finite = |width| LiftRecord {
        name: "relu-random".to_owned(),
        dim: DIM,
        width: Width::Finite(width),
        seed: 0,
        gamma: 0.1,
    };
    let lifts = std::iter::once(LiftRecord::infinite(DIM)).chain(widths.into_iter().map(finite));
    let mut first = None;
    println!("{:>9} {:>9} {:>9} {:>9} {:>9} {:>9}", "width", "learn", "classify", "times", "on disk", "times");
    for lift in lifts {
        let settings =
            Settings { lift: lift.clone(), config, keep: 0, width_choice: None, encoder: None, prior: Prior::None };
        let mut session = Session::in_memory(&settings).expect("a model");
        let clock = Instant::now();
        let task = count.div_ceil(TASKS);
        for (x, y) in x.chunks(task * DIM).zip(y.chunks(task)) {
            session.learn(Features::new(x, DIM).expect("samples"), y).expect("learned");
        }
        let learned = clock.elapsed().as_secs_f64();
        session.prepared().expect("a classifier");
        let seconds = clock.elapsed().as_secs_f64();
        let folder = tempfile::tempdir().expect("a folder for the model");
        let path = folder.path().join("model.lrp");
        let name = lift.width.to_string();
        session.save(&path, false).expect("stored");
        let files = fs::read_dir(&path).expect("a folder").flatten();
        let bytes = files.map(|file| file.metadata().map_or(0, |facts| facts.len())).sum::<u64>() as f64;
        let (least, small) = *first.get_or_insert((seconds, bytes));
        println!(
            "{name:>9} {learned:>7.2} s {:>7.2} s {:>8.1}x {:>6.1} MB {:>8.1}x",
            seconds - learned,
            seconds / least,
            bytes / 1e6,
            bytes / small
        );
    }
}
