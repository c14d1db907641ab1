//! Every lemma, proposition, corollary and theorem of the paper on random streams: the left side, computed literally
//! from all data in f64, never exceeds the right side, which comes from the certificate of the engine's state.
//!
//! The certificate itself is compared with a literal computation, number by number: most bounds are so far above what
//! they bound that an inequality alone would not notice a mistake. Each test says how close its bound came.

#[path = "../common/mod.rs"]
mod common;
mod gaussian;
mod state;

use common::*;
use faer::Mat;
use loranpac::filter::solve;
use loranpac::internals::Statistics;
use loranpac::{Assumptions, Bounds, Certificate, Filter, Gaussian, Truncation};
use state::*;

fn norm(a: &Mat<f64>) -> f64 {
    a.singular_values().unwrap().first().copied().unwrap_or(0.0)
}

fn trace(a: &Mat<f64>) -> f64 {
    (0..a.nrows()).map(|i| a[(i, i)]).sum()
}

fn identity(n: usize) -> Mat<f64> {
    Mat::identity(n, n)
}

/// How close the left sides of one statement came to its right sides, over all streams.
struct Tightest(&'static str, f64, usize);

impl Tightest {
    fn new(name: &'static str) -> Self {
        Tightest(name, 0.0, 0)
    }

    /// left <= right, up to `rounding`.
    #[track_caller]
    fn check(&mut self, left: f64, right: f64, rounding: f64) {
        assert!(left <= right * (1.0 + 1e-9) + rounding, "{}: {left:e} > {right:e} (rounding {rounding:e})", self.0);
        if right > 10.0 * rounding {
            self.1 = self.1.max(left / right);
            self.2 += 1;
        }
    }

    /// The statement was put to the test, and came this close somewhere.
    #[track_caller]
    fn came(self, close: f64) {
        println!("{}: at most {:.3} of the bound, in {} cases", self.0, self.1, self.2);
        assert!(self.2 > 0 && self.1 >= close, "{}: {} in {} cases", self.0, self.1, self.2);
    }
}

#[track_caller]
fn same(name: &str, ours: f64, literal: f64, rounding: f64) {
    assert!((ours - literal).abs() <= 1e-6 * literal.abs() + rounding, "{name}: {ours:e}, literally {literal:e}");
}

/// Equations define-gap-gamma, define-a and gap, effective ranks and condition numbers.
#[test]
fn the_certificate_equals_a_literal_computation() {
    let (mut lossless, mut capped, mut below) = (0, 0, 0);
    for state in states() {
        let c = &state.certificate;
        let tiny = 1e-11 * state.mu[0];
        assert_eq!((c.samples, c.kept, c.cuts), (state.h.ncols(), state.mu.len(), state.cuts.len()));
        assert_eq!(c.removed, state.cuts.iter().map(Vec::len).sum::<usize>());
        assert_eq!(c.capped, if state.kind == Kind::Capped { c.removed } else { 0 });
        assert_eq!(c.largest_class as f64, (0..CLASSES).map(|i| state.y.row(i).iter().sum()).fold(0.0, f64::max));
        same("mu_1", c.largest.unwrap(), state.mu[0], 0.0);
        same("mu_k", c.smallest_kept.unwrap(), state.mu_k(), tiny);
        same("mu_{k+1}", c.largest_cut, state.mu_next(), tiny);
        same("a_{t-1}", c.lost, state.a_before(), tiny);
        same("a_t", c.accumulative_error, state.a(), tiny);
        same("1 / gamma", c.gamma.map_or(0.0, f64::recip), state.per_gamma(), state.rounding());
        same("loss share", c.loss_share.unwrap(), state.a_before() / state.mu_k(), state.rounding());
        same("condition", c.condition.unwrap(), state.mu[0] / state.mu_k(), 1e-6 * c.condition.unwrap());
        let smallest = state.spectrum[state.spectrum.len() - 1];
        same("condition before", c.condition_before.unwrap() * smallest, state.mu[0], 1e-3 * state.mu[0]);
        same("r_1", c.effective_rank.unwrap(), state.spectrum.iter().sum::<f64>() / state.mu[0], 1e-9);
        let tail: f64 = state.spectrum[state.mu.len() - 1..].iter().sum();
        same("r_k", c.effective_rank_kept.unwrap(), tail / state.mu_k(), state.rounding());
        let exact = eigen(&state.gram()).1;
        let gap = exact[state.mu.len() - 1] - exact.get(state.mu.len()).copied().unwrap_or(0.0);
        if state.cuts.is_empty() {
            same("gap", c.gap.unwrap(), gap, tiny);
            lossless += 1;
        }
        assert!(c.gap.unwrap() <= gap + tiny);
        assert!(c.loss_share.unwrap() <= state.t1() * state.per_gamma() + state.rounding());
        capped += usize::from(c.capped > 0);
        below += usize::from(c.gamma.is_some_and(|gamma| gamma < 1.0));
    }
    println!("{} streams: {lossless} without losses, {capped} capped, {below} with gamma < 1", states().len());
    assert!(lossless > 20 && capped > 10 && below > 10);
}

/// H H' - U Sigma^2 U' = sum of what the cuts removed: semidefinite, and its norm is at most a_t.
#[test]
fn lemma_truncation_equality() {
    for state in states() {
        let (lost, tiny) = (state.lost(), 1e-10 * state.mu[0]);
        let removed: f64 =
            state.cuts.iter().flatten().sum::<f64>() + state.spectrum[state.mu.len()..].iter().sum::<f64>();
        same("trace", trace(&lost), removed, tiny * state.samples());
        let values = eigen(&lost).1;
        assert!(values[values.len() - 1] > -tiny && values[0] <= state.a() + tiny);
    }
}

#[test]
fn lemma_von_neumann_trace_norm() {
    let (mut random, mut tight) = (Random(1), Tightest::new("tr(AB) <= tr(A) |B|"));
    for n in 1..40 {
        let (root, b) = (random.matrix(n, n), random.matrix(n, n));
        let a = &root * root.transpose();
        tight.check(trace(&(&a * &b)), trace(&a) * norm(&b), 1e-12);
        tight.check(trace(&(&a * identity(n))), trace(&a), 1e-12);
    }
    tight.came(0.99);
}

/// As it must be meant: the second factors are transposed. As printed it is false.
#[test]
fn lemma_abcd_inequality() {
    let (mut random, mut tight) = (Random(2), Tightest::new("ABCD"));
    for n in 1..30 {
        let (a, b, root, d) = (random.matrix(n, n), random.matrix(n, n), random.matrix(n, n), random.matrix(3, n));
        let c = &root * root.transpose();
        let form = |x: &Mat<f64>, y: &Mat<f64>| trace(&(&d * x * &c * y.transpose() * d.transpose()));
        tight.check(form(&a, &b) + form(&b, &a), form(&a, &a) + form(&b, &b), 1e-9);
        let sum = &a + &b;
        tight.check(form(&sum, &sum), 2.0 * form(&a, &a) + 2.0 * form(&b, &b), 1e-9);
    }
    tight.came(0.5);

    // tr(D A C B D') + tr(D B' C A' D') <= tr(D A C A' D') + tr(D B C B' D') fails for these, and so does
    // tr(D (A + B) C (A + B) D') <= 2 tr(..) + 2 tr(..) with A = 0.
    let d = Mat::from_fn(1, 2, |_, j| if j == 0 { 1.0 } else { 0.0 });
    let b = Mat::from_fn(2, 2, |i, j| [[0.0, 1.0], [9.0, 0.0]][i][j]);
    let a = Mat::from_fn(2, 2, |i, j| [[0.0, 1.0], [0.0, 0.0]][i][j]);
    let of = |x: &Mat<f64>| trace(&(&d * x * d.transpose()));
    let (left, right) = (2.0 * of(&(&a * &b)), of(&(&a * a.transpose())) + of(&(&b * b.transpose())));
    assert_eq!((left, right), (18.0, 2.0));
    assert_eq!((of(&(&b * &b)), 2.0 * of(&(&b * b.transpose()))), (9.0, 2.0));
}

#[test]
fn lemma_various_bounds() {
    let mut tight = ["|D G|", "|G D|", "tr(D G)", "tr(D U Sigma^-4 U')"].map(Tightest::new);
    for state in states() {
        let (d, g, rounding) = (state.lost(), state.inverse(1), state.rounding());
        let (ratio, directions) = (state.t1() * state.per_gamma(), state.per_gamma() * state.directions());
        tight[0].check(norm(&(&d * &g)), ratio, rounding);
        tight[1].check(norm(&(&g * &d)), ratio, rounding);
        tight[2].check(trace(&(&d * &g)), directions, rounding * state.k());
        let fourth = trace(&(&d * state.inverse(2))) * state.mu_k();
        tight[3].check(fourth, directions, rounding * state.k());
    }
    tight.into_iter().for_each(|tight| tight.came(0.01));
}

#[test]
fn lemma_various_bounds2() {
    let names = ["tr(DGDG)", "|D G HH' G D|", "|(I - UU') HH' (I - UU')|", "|H' G H|^2", "tr(G HH' G)"];
    let mut tight = names.map(Tightest::new);
    for state in states() {
        let (d, g, gram, rounding) = (state.lost(), state.inverse(1), state.gram(), state.rounding());
        let (t1, per_gamma, directions) = (state.t1(), state.per_gamma(), state.directions());
        let ratio = t1 * per_gamma;
        let dg = &d * &g;
        tight[0].check(trace(&(&dg * &dg)), t1 * per_gamma.powi(2) * directions, rounding * (1.0 + ratio));
        let right = state.a_before() * (ratio * ratio + ratio);
        tight[1].check(norm(&(&dg * &gram * dg.transpose())), right, rounding * state.mu[0] * (1.0 + ratio));
        let outside = identity(WIDTH) - &self_product(&state.u);
        tight[2].check(norm(&(&outside * &gram * &outside)), state.a(), 1e-10 * state.mu[0]);
        let inner = state.h.transpose() * &g * &state.h;
        tight[3].check(inner.squared_norm_l2(), state.fit(), rounding * state.samples() * (1.0 + ratio));
        let right = per_gamma * directions + state.k();
        tight[4].check(trace(&(&g * &gram * &g)) * state.mu_k(), right, rounding * state.k());
    }
    tight.into_iter().for_each(|tight| tight.came(0.01));
}

fn self_product(u: &Mat<f64>) -> Mat<f64> {
    u * u.transpose()
}

/// The identity in the printed statement is E x E.
#[test]
fn lemma_various_bounds3() {
    let (mut random, mut tight) = (Random(3), Tightest::new("|W (HH' G - I) H|^2"));
    for state in states() {
        let w = random.matrix(CLASSES, WIDTH);
        let left = (&w * (state.gram() * state.inverse(1) - identity(WIDTH)) * &state.h).squared_norm_l2();
        let scale = w.squared_norm_l2();
        tight.check(left, 2.0 * scale * state.bias(), state.rounding() * scale * state.mu[0]);
    }
    tight.came(0.01);
}

fn bounds(state: &State) -> Bounds {
    state.certificate.bounds.unwrap()
}

#[test]
fn proposition_projection_error() {
    let mut tight = Tightest::new("|H' G H - I|^2");
    for state in states() {
        let right = bounds(state).projection_error;
        let rounding = state.rounding() * state.samples() * (1.0 + state.t1() * state.per_gamma());
        same("projection error", right, state.projection(), rounding);
        let inner = state.h.transpose() * state.inverse(1) * &state.h - identity(state.h.ncols());
        tight.check(inner.squared_norm_l2(), right, rounding);
    }
    tight.came(0.99); // Equality without past cuts.
}

#[test]
fn corollary_training_loss() {
    let mut tight = Tightest::new("|W H - Y|^2 / M");
    for state in states() {
        let right = bounds(state).training_mse;
        let rounding = state.rounding() * state.samples() * (1.0 + state.t1() * state.per_gamma());
        let largest = norm(&self_product(&state.y));
        same("training MSE", right, largest / state.samples() * state.projection(), rounding);
        let w = &state.y * state.h.transpose() * state.inverse(1);
        let measured = (w * &state.h - &state.y).squared_norm_l2() / state.samples();
        tight.check(measured, right, rounding);
        // ... and the interval that the state itself knows holds the truth, exactly where nothing was lost.
        let (low, high) = state.train_mse;
        let w = &state.y * state.h.transpose() * state.inverse(1);
        let (known, fitted) =
            (&w * spectral(&state.u, &state.mu, 1) * w.transpose(), &w * &state.h * state.y.transpose());
        let least = 1.0 + (trace(&known) - 2.0 * trace(&fitted)) / state.samples();
        same("low", low, least.max(0.0), rounding);
        same("high", high, least + state.a_before() * w.squared_norm_l2() / state.samples(), rounding);
        assert!(low - rounding < measured && measured < high + rounding, "{low} {measured} {high}");
        assert!(high == low || !state.cuts.is_empty());
    }
    tight.came(0.1);
}

/// Labels `Y = W* H + noise` of any size, and `W = Y H' G`.
fn regression(state: &State, random: &mut Random, noise: f64) -> (Mat<f64>, Mat<f64>, Mat<f64>) {
    let truth = random.matrix(CLASSES, WIDTH);
    let noise = random.matrix(CLASSES, state.h.ncols()) * faer::Scale(noise);
    let y = &truth * &state.h + &noise;
    let w = y * state.h.transpose() * state.inverse(1);
    (truth, noise, w)
}

#[test]
fn theorem_training_loss_deterministic() {
    let (mut random, mut tight) = (Random(4), Tightest::new("Theorem 1"));
    for state in states() {
        for scale in [0.0, 0.3, 30.0] {
            let (truth, noise, w) = regression(state, &mut random, scale);
            let y = &truth * &state.h + &noise;
            let given =
                Assumptions { truth: truth.norm_l2(), noise: norm(&noise), covariance_gap: 0.0, test_noise: 0.0 };
            let right = state.certificate.training_error(&given).unwrap();
            let literal = 4.0 * truth.squared_norm_l2() * state.bias() / state.samples()
                + 2.0 * norm(&noise).powi(2) * state.projection() / state.samples();
            let rounding = state.rounding() * (truth.squared_norm_l2() * state.mu[0] + noise.squared_norm_l2());
            same("theorem 1", right, literal, rounding);
            tight.check((w * &state.h - y).squared_norm_l2() / state.samples(), right, rounding);
        }
    }
    tight.came(0.05);
}

/// Test samples from a finite population, each with every one of some noise vectors.
struct Population {
    h: Mat<f64>,
    noise: Mat<f64>,
}

impl Population {
    fn new(random: &mut Random, state: &State, noise: f64) -> Self {
        // Like the training samples, but not the same.
        let mut h = state.h.clone();
        let size = state.h.norm_l2() / (state.h.nrows() as f64 * state.samples()).sqrt();
        for j in 0..h.ncols() {
            (0..WIDTH).for_each(|i| h[(i, j)] += 0.2 * size * random.symmetric());
        }
        Population { h, noise: random.matrix(CLASSES, 7) * faer::Scale(noise) }
    }

    fn covariance(&self) -> Mat<f64> {
        self_product(&self.h) * faer::Scale(1.0 / self.h.ncols() as f64)
    }

    fn gap(&self, state: &State) -> f64 {
        norm(&(self.covariance() - state.gram() * faer::Scale(1.0 / state.samples())))
    }

    /// `E |(W - W*) h - e|^2`.
    fn error(&self, difference: &Mat<f64>) -> f64 {
        let fitted = difference * &self.h;
        let pair = |i: usize, j: usize| (fitted.col(i) - self.noise.col(j)).squared_norm_l2();
        let sum: f64 = (0..fitted.ncols()).flat_map(|i| (0..7).map(move |j| (i, j))).map(|(i, j)| pair(i, j)).sum();
        sum / (7 * fitted.ncols()) as f64
    }
}

fn test_bias(state: &State, gap: f64) -> f64 {
    gap * (1.0 + (state.t1() * state.per_gamma()).powi(2)) + state.bias() / state.samples()
}

fn test_variance(state: &State, gap: f64) -> f64 {
    gap * (state.per_gamma() * state.directions() + state.k()) / state.mu_k() + state.fit() / state.samples()
}

#[test]
fn theorem_test_loss_deterministic() {
    let (mut random, mut tight) = (Random(5), Tightest::new("Theorem 2"));
    for state in states() {
        for scale in [0.0, 1.0] {
            let (truth, noise, w) = regression(state, &mut random, scale);
            let population = Population::new(&mut random, state, scale);
            let test_noise = population.noise.squared_norm_l2() / 7.0;
            let gap = population.gap(state);
            let given = Assumptions { truth: truth.norm_l2(), noise: norm(&noise), covariance_gap: gap, test_noise };
            let right = state.certificate.test_error(&given).unwrap();
            let literal = 4.0 * truth.squared_norm_l2() * test_bias(state, gap)
                + 4.0 * norm(&noise).powi(2) * test_variance(state, gap)
                + 2.0 * test_noise;
            let rounding = state.rounding() * (truth.squared_norm_l2() * state.mu[0] + noise.squared_norm_l2());
            same("theorem 2", right, literal, rounding);
            tight.check(population.error(&(w - truth)), right, rounding);
        }
    }
    tight.came(0.02);
}
