//! Random streams, learned by the engine and literally with E x E matrices.

use std::sync::OnceLock;

use faer::{Mat, Side};
use loranpac::filter::solve;
use loranpac::internals::Statistics;
use loranpac::{Certificate, Filter, Truncation};

use crate::common::*;

pub const WIDTH: usize = 36;
pub const CLASSES: usize = 4;
pub const MAX_RANK: usize = 10_000;
const STREAMS: u64 = 240;
/// Where the spectrum of some streams has a step.
const STEP: usize = 8;

/// What the statistics went through, and the same done literally with E x E matrices.
pub struct State {
    pub kind: Kind,
    pub h: Mat<f64>,
    pub y: Mat<f64>,
    /// The engine's.
    pub certificate: Certificate,
    pub train_mse: (f64, f64),
    /// U and Sigma^2, literally: the leading k eigenvectors and eigenvalues of `B_t B_t'`.
    pub u: Mat<f64>,
    pub mu: Vec<f64>,
    /// All its eigenvalues.
    pub spectrum: Vec<f64>,
    /// Past cuts: the eigenvalues that each removed.
    pub cuts: Vec<Vec<f64>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A cut after every task.
    Paper,
    /// One cut, at the end.
    Late,
    /// One cut at the end, and the basis is compressed on the way.
    Capped,
}

pub fn eigen(a: &Mat<f64>) -> (Mat<f64>, Vec<f64>) {
    let eigen = a.self_adjoint_eigen(Side::Lower).unwrap();
    let n = a.nrows();
    let values = (0..n).map(|j| eigen.S().column_vector()[n - 1 - j]).collect();
    (Mat::from_fn(n, n, |i, j| eigen.U()[(i, n - 1 - j)]), values)
}

/// Features of a stream: relu of projected clusters, or normal with a spectrum that decays, or has a step after the
/// first dimensions.
fn features(random: &mut Random, seed: u64, sizes: &[usize]) -> Vec<(Mat<f64>, Vec<usize>)> {
    if random.below(2) == 0 {
        return stream(seed, WIDTH, sizes, CLASSES);
    }
    let decay = [0.0, 0.05, 0.2][random.below(3)];
    let step = [1.0, 0.05][random.below(2)];
    let mut normal = || (0..12).map(|_| random.symmetric()).sum::<f64>() / 2.0;
    let scale = |i: usize| (-decay * i as f64).exp() * if i < STEP { 1.0 } else { step };
    sizes
        .iter()
        .map(|&m| {
            let h = Mat::from_fn(WIDTH, m, |i, _| normal() * scale(i));
            (h, (0..m).map(|j| j % CLASSES).collect())
        })
        .collect()
}

fn state(seed: u64) -> State {
    let mut random = Random(seed);
    let tasks = 1 + random.below(if seed.is_multiple_of(4) { 50 } else { 8 });
    let sizes: Vec<usize> = (0..tasks).map(|_| 1 + random.below(12)).collect();
    let tasks = features(&mut random, seed, &sizes);
    let kind = [Kind::Paper, Kind::Late, Kind::Capped][random.below(3)];
    let zeta = [0.05, 0.1, 0.25, 0.5, 0.75][random.below(5)];
    // A threshold makes gamma at least 1, where the bounds say the most.
    let scale = tasks[0].0.squared_norm_l2() / tasks[0].0.ncols() as f64;
    let rule = match random.below(3) {
        0 => Truncation::Fraction(zeta),
        1 => Truncation::Rank(STEP),
        _ => Truncation::Threshold(scale * [1e-6, 1e-4, 1e-2][random.below(3)]),
    };
    let cap = 4 + random.below(25);
    let mut stats = Statistics::<f64>::new(WIDTH, 20.0);
    let mut literal = Mat::<f64>::zeros(WIDTH, WIDTH);
    let (mut cuts, mut samples) = (Vec::new(), 0);
    for (t, (h, y)) in tasks.iter().enumerate() {
        samples += h.ncols();
        absorb(&mut stats, h, y);
        literal = &literal + h * h.transpose();
        let last = t + 1 == tasks.len();
        let (vectors, values) = eigen(&literal);
        let rank = values.iter().filter(|value| **value > 1e-13 * values[0]).count();
        let keep = match kind {
            Kind::Paper => rule.kept(&values[..rank], WIDTH, samples, MAX_RANK),
            Kind::Late => rank,
            Kind::Capped if rank > cap + 3 => cap,
            Kind::Capped => rank,
        };
        match kind {
            Kind::Paper => drop(stats.cut(|mu| rule.kept(mu, WIDTH, samples, MAX_RANK)).unwrap()),
            Kind::Capped if rank > cap + 3 => drop(stats.compress(cap).unwrap()),
            _ => {}
        }
        // The last cut of the paper schedule belongs to the present.
        if keep < rank && !(last && kind == Kind::Paper) {
            cuts.push(values[keep..rank].to_vec());
            let kept = vectors.subcols(0, keep).to_owned();
            let roots: Vec<f64> = values[..keep].iter().map(|value| value.sqrt()).collect();
            literal = spectral(&kept, &roots, 2);
        }
    }
    let facts = solve(&mut stats, Filter::Hard { truncation: rule, ridge: 0.0 }, MAX_RANK).unwrap().facts;
    let certificate = Certificate::new(&stats, facts);
    let (vectors, spectrum) = eigen(&literal);
    let rank = spectrum.iter().filter(|value| **value > 1e-13 * spectrum[0]).count();
    let k = rule.kept(&spectrum[..rank], WIDTH, samples, MAX_RANK);
    assert_eq!(certificate.kept, k, "seed {seed}");
    let (h, y) = concat(&tasks);
    State {
        kind,
        y: one_hot(&y, CLASSES),
        h,
        certificate,
        train_mse: (facts.train_mse, facts.train_mse_upper),
        u: vectors.subcols(0, k).to_owned(),
        mu: spectrum[..k].to_vec(),
        spectrum: spectrum[..rank].to_vec(),
        cuts,
    }
}

pub fn states() -> &'static [State] {
    static STATES: OnceLock<Vec<State>> = OnceLock::new();
    STATES.get_or_init(|| (0..STREAMS).map(state).filter(|state| !state.mu.is_empty()).collect())
}

/// Literal quantities, by the paper's definitions.
impl State {
    pub fn samples(&self) -> f64 {
        self.h.ncols() as f64
    }
    pub fn k(&self) -> f64 {
        self.mu.len() as f64
    }
    pub fn mu_k(&self) -> f64 {
        self.mu[self.mu.len() - 1]
    }
    pub fn mu_next(&self) -> f64 {
        self.spectrum.get(self.mu.len()).copied().unwrap_or(0.0)
    }
    pub fn gram(&self) -> Mat<f64> {
        &self.h * self.h.transpose()
    }
    /// `U Sigma^-2p U'`.
    pub fn inverse(&self, power: i32) -> Mat<f64> {
        spectral(&self.u, &self.mu, -power)
    }
    /// D_t.
    pub fn lost(&self) -> Mat<f64> {
        self.gram() - spectral(&self.u, &self.mu, 1)
    }
    /// t - 1.
    pub fn t1(&self) -> f64 {
        self.cuts.len() as f64
    }
    pub fn a_before(&self) -> f64 {
        self.cuts.iter().map(|cut| cut[0]).sum()
    }
    pub fn a(&self) -> f64 {
        self.a_before() + self.mu_next()
    }
    /// 1 / gamma_t.
    pub fn per_gamma(&self) -> f64 {
        self.cuts.iter().map(|cut| cut[0]).fold(0.0, f64::max) / self.mu_k()
    }
    /// min(M_{t-1} - k_{t-1}, (t - 1) k_t).
    pub fn directions(&self) -> f64 {
        let removed: usize = self.cuts.iter().map(Vec::len).sum();
        (removed as f64).min(self.t1() * self.k())
    }
    /// a_t + a_{t-1} (t-1) / gamma + a_{t-1} (t-1)^2 / gamma^2.
    pub fn bias(&self) -> f64 {
        let (a, t1, g) = (self.a_before(), self.t1(), self.per_gamma());
        self.a() + a * t1 * g + a * t1 * t1 * g * g
    }
    pub fn projection(&self) -> f64 {
        self.samples() - self.k() + self.t1() * self.per_gamma().powi(2) * self.directions()
    }
    pub fn fit(&self) -> f64 {
        let g = self.per_gamma();
        self.k() + (self.t1() * g * g + 2.0 * g) * self.directions()
    }
    /// Rounding of a quantity that divides by mu_k, relative to 1.
    pub fn rounding(&self) -> f64 {
        1e-12 * self.samples() * self.mu[0] / self.mu_k()
    }
}
