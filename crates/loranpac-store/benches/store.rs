//! What a task costs on the disk, and how long a large model takes to open: `cargo bench -p loranpac-store --bench store`.
//!
//! E = 50,000, r = 5,000, 150 classes, late schedule; then one more task of 100 samples. `-- WIDTH RANK` for other sizes.

mod samples;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use loranpac::{Config, Features, Filter, Prior, Ridge};
use loranpac_store::disk::{Disk, Output, RealDisk};
use loranpac_store::{Fingerprint, LiftRecord, Session, Settings};
use samples::samples;

const DIM: usize = 384;
const CLASSES: usize = 150;

fn fingerprint(digest: &str, samples: usize) -> Fingerprint {
    Fingerprint { digest: digest.to_owned(), features: digest.to_owned(), samples }
}

/// A disk that counts what is written.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicU64>);

struct CountingFile(Counting, Box<dyn Output>);

impl Write for CountingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.1.write(bytes)?;
        self.0.0.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.1.flush()
    }
}

impl Output for CountingFile {
    fn sync(&mut self) -> io::Result<()> {
        self.1.sync()
    }
}

impl Disk for Counting {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(CountingFile(self.clone(), RealDisk.create(path)?)))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }
    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_folder(path)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_folder(path)
    }
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        RealDisk.make_folder(path)
    }
}

fn main() {
    let sizes: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let (width, rank) = (sizes.first().copied().unwrap_or(50_000), sizes.get(1).copied().unwrap_or(5_000));
    let folder = tempfile::tempdir().expect("a folder for the model");
    let path = folder.path().join("large.lrp");
    let lift = LiftRecord {
        name: "relu-random".to_owned(),
        dim: DIM,
        width: loranpac::Width::Finite(width),
        seed: 0,
        gamma: 0.1,
    };
    let config = Config { filter: Filter::Soft(Ridge::GeometricMean), ..Config::default() };
    let disk = Counting::default();
    let settings = Settings { lift, config, keep: 1, width_choice: None, encoder: None, prior: Prior::None };
    let mut model = Session::create_on(Box::new(disk.clone()), &path, &settings).expect("a new model");
    let report = |what: &str, clock: Instant, bytes: u64| {
        println!("{what:<58} {:>8.2} s {:>9.1} MB", clock.elapsed().as_secs_f64(), bytes as f64 / 1e6);
    };
    let clock = Instant::now();
    let (x, y) = samples(rank, DIM, CLASSES, 1);
    model.learn(Features::new(&x, DIM).expect("samples"), &y).expect("learned");
    model.note("first", &fingerprint("1", rank));
    model.commit().expect("committed");
    report(&format!("learn {rank} samples at E = {width}"), clock, disk.0.swap(0, Ordering::Relaxed));
    println!("r = {}, {} classes", model.manifest().rank(), model.manifest().classes.len());
    drop(model);

    let (x, y) = samples(100, DIM, CLASSES, 2);
    let mut model = Session::open_to_write_on(Box::new(disk.clone()), &path).expect("opened");
    let clock = Instant::now();
    model.learn(Features::new(&x, DIM).expect("samples"), &y).expect("learned");
    model.note("second", &fingerprint("2", 100));
    model.commit().expect("committed");
    report("learn 100 more and commit", clock, disk.0.swap(0, Ordering::Relaxed));
    let clock = Instant::now();
    model.prepared().expect("a classifier");
    model.commit().expect("committed");
    report("form the classifier and commit it", clock, disk.0.swap(0, Ordering::Relaxed));
    drop(model);

    for _ in 0..3 {
        let clock = Instant::now();
        let mut model = Session::open(&path).expect("opened");
        model.model_unchecked().expect("mapped");
        let mapped = clock.elapsed().as_secs_f64();
        let clock = Instant::now();
        let files = fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("a file").path());
        let bytes: usize = files.map(|file| fs::read(file).map_or(0, |bytes| bytes.len())).sum();
        let read = clock.elapsed().as_secs_f64();
        let clock = Instant::now();
        model.model().expect("checked");
        let checked = clock.elapsed().as_secs_f64();
        println!(
            "open, mapped {mapped:.3} s; read all {:.0} MB {read:.3} s; check all {checked:.3} s; mapped / read {:.3}",
            bytes as f64 / 1e6,
            mapped / read
        );
    }
}
