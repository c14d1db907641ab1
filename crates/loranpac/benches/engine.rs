//! `cargo bench -p loranpac`: the engine's parts as shares of the GEMM rate measured in the same run.
//!
//! Options after `--`: `--width E`, `--rank R`, `--task M`, `--dim D`, `--classes C`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use loranpac::filter::Spectrum;
use loranpac::internals::{Basis, ExplicitModel, Gram, Statistics};
use loranpac::lift::{Activation, FeatureMap, Projection, Random};
use loranpac::{Config, Features, Filter, Label, Learner, Ridge};

fn main() {
    let width = option("--width", 20_000);
    let rank = option("--rank", 2_048);
    let task = option("--task", 256);
    let dim = option("--dim", 384);
    let classes = option("--classes", 150);
    println!(
        "E = {width}, basis r = {rank}, task m = {task}, d = {dim}, {classes} classes, {} threads\n",
        rayon::current_num_threads()
    );

    let peak = gemm_rate();
    println!("{:44}{:>10}{:>10}{:>9}", "", "seconds", "GFLOP/s", "of GEMM");
    let show = |name: &str, flops: f64, seconds: f64| {
        println!("{name:44}{seconds:>10.4}{:>10.1}{:>8.0}%", flops / seconds / 1e9, 100.0 * flops / seconds / peak);
    };
    println!("{:44}{:>10}{:>10.1}{:>8.0}%", "GEMM 3000 x 3000 x 3000, f32, best of 7", "", peak / 1e9, 100.0);

    let (e, r, m, d, c) = (width as f64, rank as f64, task as f64, dim as f64, classes as f64);
    let lift = Random::new(Projection::from_seed(width, dim, 1, true), Activation::Relu);
    let x = noise(dim, rank + task);
    let mut h = Mat::<f32>::zeros(width, task);
    show("lift", 2.0 * e * d * m, best(5, || lift.lift(x.as_ref().subcols(0, task), h.as_mut())));

    // The kernels that learning is made of.
    let mut statistics = Statistics::<f32>::new(width, 20.0);
    let mut lifted = Mat::<f32>::zeros(width, 256);
    for first in (0..rank).step_by(256) {
        let n = 256.min(rank - first);
        lift.lift(x.as_ref().subcols(first, n), lifted.as_mut().subcols_mut(0, n));
        statistics.absorb(lifted.as_mut().subcols_mut(0, n), &(0..n).map(|i| i % classes).collect::<Vec<_>>());
    }
    let basis: &Basis<f32> = statistics.basis();
    lift.lift(x.as_ref().subcols(rank, task), h.as_mut());
    let seconds = best(5, || drop(black_box(basis.coordinates(h.as_ref()))));
    show("  coordinates, L^-1 B' H (f64 counted as two)", 2.0 * e * r * m + 2.0 * r * r * m, seconds);
    let mut gram = Gram::default();
    gram.set_diagonal(&vec![1.0; rank]);
    let (known, none) = (Mat::<f64>::zeros(rank, task), Mat::<f64>::zeros(0, task));
    show("  grow S (f64)", r * r * m, best(3, || gram.grow(known.as_ref(), none.as_ref())));
    let labels: Vec<usize> = (0..task).map(|i| i % classes).collect();
    let alone = best(5, || drop(Statistics::<f32>::new(width, 20.0).absorb(h.clone().as_mut(), &labels)));
    show("  factorise m columns (no basis yet)", 4.0 * e * m * m, alone);
    drop(gram);

    // Learning as a whole: flops as 2 E r m + 4 E m^2 + 2 E d m.
    let lift: Arc<dyn FeatureMap> = Arc::new(lift);
    let data: Vec<f32> = (0..rank + 4 * task).flat_map(|i| (0..dim).map(move |j| random(i, j))).collect();
    let names: Vec<Label> = (0..rank + 4 * task).map(|i| Label::from((i % classes) as i64)).collect();
    for (name, filter) in [("soft", Filter::Soft(Ridge::GeometricMean)), ("hard", Filter::default())] {
        let config = Config { filter, ..Config::default() };
        let mut model = ExplicitModel::new(lift.clone(), config).expect("the default configuration is valid");
        let rows =
            |first: usize, n: usize| Features::new(&data[first * dim..(first + n) * dim], dim).expect("whole rows");
        model.learn(rows(0, rank), &names[..rank]).expect("valid samples");
        if name == "soft" {
            let clock = Instant::now();
            for t in 0..4 {
                let first = rank + t * task;
                model.learn(rows(first, task), &names[first..first + task]).expect("valid samples");
            }
            let mean_rank = r + 1.5 * m;
            let flops = 2.0 * e * mean_rank * m + 4.0 * e * m * m + 2.0 * e * d * m;
            show("learn (lift and absorb), mean of 4 tasks", flops, clock.elapsed().as_secs_f64() / 4.0);
        }
        let r = (rank + if name == "soft" { 4 * task } else { 0 }) as f64;
        let clock = Instant::now();
        model.classifier().expect("a spectrum");
        let forming = clock.elapsed().as_secs_f64();
        if name == "hard" {
            // What the certificate adds: a pass over the spectrum while the classifier is formed, and sums afterwards.
            let mu: Vec<f64> = (0..rank).map(|j| 1.0 / (1.0 + j as f64)).collect();
            let pass = best(9, || _ = black_box(Spectrum::of(black_box(&mu), 3 * rank / 4)));
            let seconds = pass + best(9, || _ = black_box(model.summary()));
            println!(
                "{:<52}{:>9.1} us, {:.4}% of forming W",
                "certificate, hard",
                1e6 * seconds,
                100.0 * seconds / forming
            );
        }
        let small = if name == "soft" { 2.0 * r.powi(3) / 3.0 } else { 4.0 * r.powi(3) / 3.0 };
        let title = format!("weights, {name} (r = {r:.0}; f64 counted as two)");
        show(&title, 2.0 * e * r * c + 2.0 * small, forming);
        if name == "soft" {
            let n = 1024.min(rank);
            let seconds = best(3, || drop(black_box(model.classifier().unwrap().scores(rows(0, n)).expect("scores"))));
            show("predict, 1024 samples", 2.0 * e * (d + c) * n as f64, seconds);
        }
    }
    drop(lift);
    println!("\ntwice the width: {:.2} times the time to learn", doubling(width, rank, task, dim, &data, &names));
}

/// What twice the width costs: the same tasks at E and at 2 E in turns, so that a busy machine hinders both alike; the
/// median of the ratios.
fn doubling(width: usize, rank: usize, task: usize, dim: usize, data: &[f32], names: &[Label]) -> f64 {
    let model = |width: usize| {
        let lift = Random::new(Projection::from_seed(width, dim, 1, true), Activation::Relu);
        ExplicitModel::new(Arc::new(lift), Config::default()).expect("the default configuration is valid")
    };
    let learn = |model: &mut ExplicitModel, first: usize, n: usize| {
        let rows = Features::new(&data[first * dim..(first + n) * dim], dim).expect("whole rows");
        let clock = Instant::now();
        model.learn(rows, &names[first..first + n]).expect("valid samples");
        clock.elapsed().as_secs_f64()
    };
    let (mut one, mut two) = (model(width), model(2 * width));
    let half = rank / 2;
    learn(&mut one, 0, half);
    learn(&mut two, 0, half);
    let starts = (half..=names.len() - task).step_by(task);
    let ratio = |(turn, first): (usize, usize)| {
        let before = (turn % 2 == 0).then(|| learn(&mut one, first, task));
        let wide = learn(&mut two, first, task);
        wide / before.unwrap_or_else(|| learn(&mut one, first, task))
    };
    let mut ratios: Vec<f64> = starts.enumerate().map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

/// Best rate of a square product, which is what everything is measured against.
fn gemm_rate() -> f64 {
    let n = 3000;
    let (a, b) = (noise(n, n), noise(n, n));
    let mut c = Mat::<f32>::zeros(n, n);
    2.0 * (n as f64).powi(3)
        / best(7, || matmul(c.as_mut(), Accum::Replace, a.as_ref(), b.as_ref(), 1.0, Par::rayon(0)))
}

fn best(times: usize, mut f: impl FnMut()) -> f64 {
    let time = |_| {
        let clock = Instant::now();
        f();
        clock.elapsed().as_secs_f64()
    };
    (0..times).map(time).fold(f64::INFINITY, f64::min)
}

fn noise(rows: usize, columns: usize) -> Mat<f32> {
    Mat::from_fn(rows, columns, |i, j| random(j, i))
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
