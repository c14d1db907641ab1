//! Random streams, and the paper's algorithms written down literally in f64, to compare with.
#![allow(dead_code)]

#[path = "../random/mod.rs"]
mod random;

use faer::Mat;
use loranpac::internals::{Delta, Scalar, Statistics};
use loranpac::{Features, Label, Learner};
pub use random::Random;

/// Features of [`samples`].
pub const DIM: usize = 8;

/// Samples, one row after the other, and their labels.
pub type Task = (Vec<f32>, Vec<Label>);

impl Random {
    /// Uniform in [-1, 1).
    pub fn symmetric(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    pub fn matrix(&mut self, rows: usize, columns: usize) -> Mat<f64> {
        Mat::from_fn(rows, columns, |_, _| self.symmetric())
    }
}

/// A stream of lifted features: relu of a random projection of clustered points, as in the paper's setting.
/// Values are representable in f32, so that both precisions see the same data.
pub fn stream(seed: u64, width: usize, sizes: &[usize], classes: usize) -> Vec<(Mat<f64>, Vec<usize>)> {
    let dim = 12;
    let mut random = Random(seed);
    let p = random.matrix(width, dim);
    let centres = random.matrix(dim, classes);
    sizes
        .iter()
        .map(|&m| {
            let y: Vec<usize> = (0..m).map(|_| random.below(classes)).collect();
            let x = Mat::from_fn(dim, m, |i, j| centres[(i, y[j])] + 0.4 * random.symmetric());
            let h = &p * x;
            (Mat::from_fn(width, m, |i, j| h[(i, j)].max(0.0) as f32 as f64), y)
        })
        .collect()
}

/// All columns so far.
pub fn concat(tasks: &[(Mat<f64>, Vec<usize>)]) -> (Mat<f64>, Vec<usize>) {
    let width = tasks[0].0.nrows();
    let total = tasks.iter().map(|(h, _)| h.ncols()).sum();
    let columns: Vec<(usize, usize)> =
        tasks.iter().enumerate().flat_map(|(t, (h, _))| (0..h.ncols()).map(move |j| (t, j))).collect();
    let h = Mat::from_fn(width, total, |i: usize, j: usize| tasks[columns[j].0].0[(i, columns[j].1)]);
    (h, tasks.iter().flat_map(|(_, y)| y.clone()).collect())
}

/// Y as a one-hot matrix.
pub fn one_hot(y: &[usize], classes: usize) -> Mat<f64> {
    Mat::from_fn(classes, y.len(), |i, j| if y[j] == i { 1.0 } else { 0.0 })
}

/// Algorithm 3: the top k left singular vectors and singular values.
pub fn truncated_svd(a: &Mat<f64>, k: usize) -> (Mat<f64>, Vec<f64>) {
    let svd = a.thin_svd().unwrap();
    let k = k.min(a.nrows()).min(a.ncols());
    (svd.U().subcols(0, k).to_owned(), svd.S().column_vector().iter().take(k).copied().collect())
}

/// Algorithm 2: one update of (U, Sigma) with new data.
pub fn incremental_truncated_svd(u: &Mat<f64>, sigma: &[f64], h: &Mat<f64>, k: usize) -> (Mat<f64>, Vec<f64>) {
    let c = u.transpose() * h;
    let qr = (h - u * &c).qr();
    let (q, r) = (qr.compute_thin_Q(), qr.thin_R().to_owned());
    let (old, m) = (sigma.len(), h.ncols());
    let small = Mat::from_fn(old + r.nrows(), old + m, |i, j| match (i < old, j < old) {
        (true, true) => {
            if i == j {
                sigma[i]
            } else {
                0.0
            }
        }
        (true, false) => c[(i, j - old)],
        (false, true) => 0.0,
        (false, false) => r[(i - old, j - old)],
    });
    let (u_small, sigma) = truncated_svd(&small, k);
    let joined = Mat::from_fn(u.nrows(), old + q.ncols(), |i, j| if j < old { u[(i, j)] } else { q[(i, j - old)] });
    ((joined * u_small).qr().compute_thin_Q(), sigma)
}

/// `U diag(s^power) U'`.
pub fn spectral(u: &Mat<f64>, sigma: &[f64], power: i32) -> Mat<f64> {
    let scaled = Mat::from_fn(u.nrows(), u.ncols(), |i, j| u[(i, j)] * sigma[j].powi(power));
    scaled * u.transpose()
}

/// Learns a task in either precision.
pub fn absorb<T: Scalar>(stats: &mut Statistics<T>, h: &Mat<f64>, y: &[usize]) -> Delta {
    let mut h = Mat::<T>::from_fn(h.nrows(), h.ncols(), |i, j| T::from_f64(h[(i, j)]));
    stats.absorb(h.as_mut(), y)
}

/// Q as a matrix in f64.
pub fn basis<T: Scalar>(stats: &Statistics<T>) -> Mat<f64> {
    let q = stats.expand(Mat::<f64>::identity(stats.basis().rank(), stats.basis().rank()).as_ref());
    Mat::from_fn(q.nrows(), q.ncols(), |i, j| q[(i, j)].to_f64())
}

/// `Q S Q'`, what the statistics say `H H'` is.
pub fn represented<T: Scalar>(stats: &mut Statistics<T>) -> Mat<f64> {
    let q = basis(stats);
    &q * stats.gram().to_matrix() * q.transpose()
}

/// `|a - b| / |b|` in the Frobenius norm.
pub fn relative_error(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    (a - b).norm_l2() / b.norm_l2()
}

/// Clustered samples of the given classes in turn, `each` of every class.
pub fn samples(seed: u64, classes: &[i64], each: usize) -> Task {
    let mut random = Random(seed);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for i in 0..each * classes.len() {
        let class = classes[i % classes.len()];
        let mut centre = Random(1000u64.wrapping_add(class as u64));
        x.extend((0..DIM).map(|_| (centre.symmetric() + 0.25 * random.symmetric()) as f32));
        y.push(Label::from(class));
    }
    (x, y)
}

pub fn learn(model: &mut dyn Learner, (x, y): &Task) {
    model.learn(Features::new(x, DIM).unwrap(), y).unwrap();
}

pub fn accuracy(model: &mut dyn Learner, (x, y): &Task) -> f64 {
    let winners = model.classifier().unwrap().predict(Features::new(x, DIM).unwrap()).unwrap();
    winners.iter().zip(y).filter(|(winner, y)| winner == y).count() as f64 / y.len() as f64
}
