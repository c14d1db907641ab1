//! What a model should answer: all samples in a list, and one solution in double precision.

use faer::{Mat, Side};
use loranpac::filter::Facts;
use loranpac::lift;
use loranpac::{FeatureSpace, Features, Filter, Label};

/// A sample that the model has learned; its label is None once its class was forgotten.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub x: Vec<f32>,
    pub label: Option<Label>,
}

/// Scores that are beyond this share of the largest are not compared: the problem itself loses more digits.
const HOPELESS: f64 = 0.02;
/// Rounding of single precision, with room for the sums it goes through.
const SINGLE: f64 = 2e-6;

/// The share of the energy of samples below which a direction that is left of them counts as rounding.
const TAKEN_BACK: f64 = 2e-5;

/// The scores that a filter gives, and how many digits of them can be expected.
pub struct Expected {
    /// One row for each class, one column for each sample that was asked about.
    pub scores: Mat<f64>,
    /// The largest difference that rounding may make, as a share of the largest score; None if it may make any.
    pub tolerance: Option<f64>,
}

/// Kernel between two lists of samples: of lifted features, or its limit.
fn kernel(space: &FeatureSpace, a: &[&[f32]], b: &[&[f32]]) -> Mat<f64> {
    let Some(map) = space.map() else {
        return Mat::from_fn(a.len(), b.len(), |i, j| arc_cosine(a[i], b[j]));
    };
    let lifted = |rows: &[&[f32]]| {
        let flat: Vec<f32> = rows.iter().flat_map(|row| row.iter().copied()).collect();
        let h = lift::lifted(&**map, Features::new(&flat, map.dim()).unwrap());
        Mat::from_fn(map.width(), rows.len(), |i, j| f64::from(h[j * map.width() + i]))
    };
    lifted(a).transpose() * lifted(b)
}

/// `|x| |z| (sin t + (pi - t) cos t) / (2 pi)`, t the angle between x and z.
fn arc_cosine(x: &[f32], z: &[f32]) -> f64 {
    let length = |v: &[f32]| v.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
    let (a, b) = (length(x), length(z));
    if a == 0.0 || b == 0.0 {
        return 0.0;
    }
    let unit = |v: f32, length: f64| f64::from(v) / length;
    // The angle from the lengths of sum and difference of the directions: exact for small ones.
    let (mut sum, mut difference) = (0.0, 0.0);
    for (x, z) in x.iter().zip(z) {
        let (x, z) = (unit(*x, a), unit(*z, b));
        sum += (x + z).powi(2);
        difference += (x - z).powi(2);
    }
    let t = 2.0 * difference.sqrt().atan2(sum.sqrt());
    a * b * (t.sin() + (std::f64::consts::PI - t) * t.cos()) / (2.0 * std::f64::consts::PI)
}

/// Squared length of a lifted sample.
pub fn energy(space: &FeatureSpace, x: &[f32]) -> f64 {
    kernel(space, &[x], &[x])[(0, 0)]
}

/// The scores of `queries`, for the ridge or the number of directions that the model reports. Samples of an energy of
/// `taken_back` were removed from explicit features; what is smaller than their rounding may be lost with them.
pub fn solve(
    space: &FeatureSpace,
    samples: &[Sample],
    labels: &[Label],
    filter: Filter,
    facts: &Facts,
    queries: &[&[f32]],
    taken_back: f64,
) -> Expected {
    let rows: Vec<&[f32]> = samples.iter().map(|sample| sample.x.as_slice()).collect();
    let k = kernel(space, &rows, &rows);
    let with = kernel(space, &rows, queries);
    let y = Mat::from_fn(labels.len(), samples.len(), |c, i| {
        f64::from(u8::from(samples[i].label.as_ref() == Some(&labels[c])))
    });
    let eigen = k.self_adjoint_eigen(Side::Lower).unwrap();
    let n = samples.len();
    // faer sorts eigenvalues upwards.
    let mu: Vec<f64> = (0..n).map(|j| eigen.S()[n - 1 - j]).collect();
    let largest = mu[0].max(f64::MIN_POSITIVE);
    let ridge = facts.ridge;
    let (weights, lost) = match filter {
        Filter::Soft(_) => {
            let weight = |mu: f64| 1.0 / (mu.max(0.0) + ridge);
            (mu.iter().map(|mu| weight(*mu)).collect::<Vec<_>>(), largest / ridge)
        }
        Filter::Hard { .. } => {
            let kept = facts.kept.min(n);
            let weight = |j: usize| if j < kept { 1.0 / (mu[j].max(f64::MIN_POSITIVE) + ridge) } else { 0.0 };
            let smallest = if kept == 0 { largest } else { mu[kept - 1].max(f64::MIN_POSITIVE) };
            // Directions on both sides of a narrow gap cannot be told apart.
            let gap = smallest - mu.get(kept).copied().unwrap_or(0.0).max(0.0);
            let inverse = (largest / smallest).max(largest / gap.max(f64::MIN_POSITIVE));
            ((0..n).map(weight).collect(), inverse)
        }
    };
    // X = Y V f(mu) V', scores = X k(samples, queries)
    let mut turned = &y * eigen.U();
    for (j, weight) in weights.iter().enumerate() {
        turned.col_mut(n - 1 - j).iter_mut().for_each(|v| *v *= weight);
    }
    let scores = turned * (eigen.U().transpose() * with);
    let removed = if space.width().is_infinite() { 0.0 } else { TAKEN_BACK * taken_back / largest };
    let tolerance = 1e-5 + (SINGLE + removed) * lost;
    Expected { scores, tolerance: (tolerance < HOPELESS).then_some(tolerance) }
}
