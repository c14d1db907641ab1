//! `cargo bench -p loranpac --bench infinite`: time and memory of the soft classifier between many samples, which are
//! made up.
//!
//! Options after `--`: `--samples N`, `--dim D`, `--classes C`, `--cap R` (evict samples beyond R), `--compare 1` (to the
//! solution in double precision, which takes 16 n^2 bytes more).

use std::time::Instant;

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use loranpac::internals::{Gram, KernelModel};
use loranpac::lift::ArcCosine;
use loranpac::{Config, Features, Filter, Label, Learner, Ridge, StreamSizes, Width};
use peak_alloc::PeakAlloc;
use rayon::prelude::*;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

fn main() {
    let (n, dim, classes) = (option("--samples", 18_000), option("--dim", 384), option("--classes", 150));
    let max_rank = option("--cap", Config::cap(Width::Infinite));
    println!("{n} samples, d = {dim}, {classes} classes, {} threads", rayon::current_num_threads());
    for (name, rate) in [("f32", gemm_rate::<f32>(1.0)), ("f64", gemm_rate::<f64>(1.0))] {
        println!("GEMM 2000 x 2000 x 2000, {name}: {:.1} GFLOP/s", rate / 1e9);
    }
    let x = samples(n + TEST, dim, classes);
    let (train, test) = x.split_at(n * dim);
    let labels: Vec<Label> = (0..n).map(|i| Label::from((i % classes) as i64)).collect();
    let config = Config { filter: Filter::Soft(Ridge::GeometricMean), max_rank, ..Config::default() };
    let mut model = KernelModel::new(ArcCosine::new(dim), config).unwrap();
    let expected = model.peak_bytes(&StreamSizes { samples: n, largest_task: n, classes });
    let held = ALLOCATOR.current_usage();
    measure("learn", || model.learn(Features::new(train, dim).unwrap(), &labels).unwrap());
    let classifier = measure("classifier", || model.classifier().unwrap());
    let peak = ALLOCATOR.peak_usage() - held;
    println!("peak memory {:.2} GiB, expected at most {:.2} GiB", peak as f64 / GIB, expected as f64 / GIB);
    let facts = classifier.facts().unwrap();
    println!(
        "lambda {:.6e}, training MSE {:.6}, leave-one-out {:?}",
        facts.ridge, facts.train_mse, facts.leave_one_out
    );
    let scores = measure("predict 1000", || classifier.scores(test).unwrap());
    let right = scores.argmax().iter().enumerate().filter(|(i, column)| (n + i) % classes == **column).count();
    println!("accuracy {:.2}%", 100.0 * right as f64 / TEST as f64);
    if option("--compare", 0) > 0 {
        compare(train, test, dim, &labels, facts.ridge, &classifier.scores(test).unwrap().rows().collect::<Vec<_>>());
    }
}

const TEST: usize = 1000;
const GIB: f64 = (1u64 << 30) as f64;

/// Solves the same in double precision, with the kernel by its formula, and prints the differences.
fn compare(train: &[f32], test: &[f32], dim: usize, labels: &[Label], ridge: f64, scores: &[&[f32]]) {
    let n = labels.len();
    let kernel = |rows: &[f32]| {
        let unit = |x: &[f32]| {
            let wide: Vec<f64> = x.iter().map(|v| f64::from(*v)).collect();
            let length = wide.iter().map(|v| v * v).sum::<f64>().sqrt();
            (wide.into_iter().map(|v| v / length).collect::<Vec<f64>>(), length)
        };
        let polar = |x: &[f32]| x.chunks_exact(dim).map(unit).collect::<Vec<_>>();
        let (a, b) = (polar(train), polar(rows));
        let flat = |x: &[(Vec<f64>, f64)]| Mat::from_fn(dim, x.len(), |i, j| x[j].0[i]);
        let mut out = Mat::<f64>::zeros(a.len(), b.len());
        let (u, v) = (flat(&a), flat(&b));
        matmul(&mut out, Accum::Replace, u.transpose(), &v, 1.0, Par::rayon(0));
        out.par_col_iter_mut().zip(&b).for_each(|(column, (_, length))| {
            for (value, (_, other)) in column.iter_mut().zip(&a) {
                let t = value.clamp(-1.0, 1.0).acos();
                *value = length * other * (t.sin() + (std::f64::consts::PI - t) * t.cos()) / std::f64::consts::TAU;
            }
        });
        out
    };
    let mut gram = Gram::zeros(n);
    gram.set_matrix(kernel(train).as_ref());
    let exact = measure("log det in f64", || (gram.log_det(0.0).unwrap() / n as f64).exp());
    println!("lambda is off by {:.1e} of it", ridge / exact - 1.0);
    let mut a = Mat::<f64>::zeros(scores[0].len(), n);
    let mut names: Vec<&Label> = Vec::new();
    for (i, label) in labels.iter().enumerate() {
        let class = names.iter().position(|name| *name == label).unwrap_or_else(|| {
            names.push(label);
            names.len() - 1
        });
        a[(class, i)] = 1.0;
    }
    measure("solution in f64", || gram.solve(&mut a, exact).unwrap());
    let expected = &a * kernel(test);
    let differences = scores.iter().enumerate().flat_map(|(j, row)| {
        let expected = expected.col(j);
        row.iter().enumerate().map(move |(c, score)| (f64::from(*score) - expected[c]).abs())
    });
    println!("scores are off by {:.1e} at most", differences.fold(0.0, f64::max));
}

/// Prints the seconds of a step, and those of all processors, which a busy machine changes less.
fn measure<T>(name: &str, step: impl FnOnce() -> T) -> T {
    let (clock, before) = (Instant::now(), processor_seconds());
    let value = step();
    let (wall, used) = (clock.elapsed().as_secs_f64(), processor_seconds() - before);
    println!("{name}: {wall:.1} s ({used:.1} s of all processors)");
    value
}

/// Returns the processor time of this process, where the system has it in `/proc`.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// Samples around the centres of their classes, with more variance along the first features.
fn samples(n: usize, dim: usize, classes: usize) -> Vec<f32> {
    let scale: Vec<f32> = (0..dim).map(|j| (1.0 + j as f32 / 20.0).sqrt().recip()).collect();
    let mut x = vec![0.0; n * dim];
    x.par_chunks_mut(dim).enumerate().for_each(|(i, row)| {
        for (j, value) in row.iter_mut().enumerate() {
            *value = scale[j] * (random(i % classes, j) + 1.3 * random(classes + i, j));
        }
    });
    x
}

fn gemm_rate<T: loranpac::internals::Scalar>(one: f64) -> f64 {
    let n = 2000;
    let a = Mat::<T>::from_fn(n, n, |i, j| T::from_f64(f64::from(random(i, j))));
    let mut c = Mat::<T>::zeros(n, n);
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let clock = Instant::now();
        matmul(c.as_mut(), Accum::Replace, a.as_ref(), a.as_ref(), T::from_f64(one), Par::rayon(0));
        best = best.min(clock.elapsed().as_secs_f64());
    }
    2.0 * (n as f64).powi(3) / best
}

/// A number in [-1, 1) by a scramble of two indices.
fn random(i: usize, j: usize) -> f32 {
    let mut z = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (j as u64).wrapping_mul(0xd1b5_4a32_d192_ed03);
    z = (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    z ^= z >> 32;
    (z >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

fn option(name: &str, default: usize) -> usize {
    let arguments: Vec<String> = std::env::args().collect();
    let value = arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1));
    value.map_or(default, |v| v.parse().unwrap_or_else(|_| panic!("{name} wants a number, not {v}")))
}
