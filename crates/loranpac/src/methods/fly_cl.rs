//! Fly-CL (Zou et al., ICLR 2026): a sparse random projection, the largest features of each sample, and ridge regression.
//!
//! ```text
//! h = top_k(P x)            each row of P has s entries N(0, 1); the k largest features keep their values, others are 0
//! W (H H' + lambda I) = Y H',   lambda: the minimum of GCV on the latest task,
//! GCV(lambda) = m |Y - W_t H_t|^2 / (m - df)^2,   df = sum of s_i / (s_i + lambda), s_i eigenvalues of H_t' H_t
//! ```
//!
//! All but the lift and the choice of lambda is `ranpac`. The paper has E = 10,000, s = 300 of 768 features and
//! k = 0.3 E for CIFAR-100, and powers of ten from 1e6 to 1e9 for lambda, for features of its encoder's scale; here are
//! those of `ranpac`, 1e-8 to 1e8. The projection is a dense product here: on a CPU with vector instructions that is no slower
//! than s / d of it.
//!
//! Cost per task: `2 E d m` flops for the lift, `E^2 m` for `H H'`, the eigenvalues of the smaller of `H_t' H_t` and
//! `H_t H_t'`; `E^3 / 3` for the classifier.

use std::sync::{Arc, OnceLock};

use faer::prelude::ReborrowMut;
use faer::{Mat, MatMut, MatRef};
use rayon::prelude::*;

use super::holdout::{FALLBACK, GRID};
use super::lifted::add_by_class;
use super::ranpac::{RANPAC, RanPac};
use super::shuffle::permutation;
use crate::classifier::{CHUNK, Classifier};
use crate::error::Error;
use crate::features::Features;
use crate::gram::Gram;
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary};
use crate::lift::{Activation, FeatureMap, Operation, Projection, Random};
use crate::linalg::{cast, gram_f64};
use crate::memory::{product, sum};
use crate::method::{Input, Method, MethodOptions, Promise, Settings};

/// The share of the entries of P and of the features that are kept by default.
const DEGREE: f64 = 0.4;
const CODING: f64 = 0.3;

/// The lift: made from a dense projection when it is first used.
struct Winners {
    linear: Arc<dyn FeatureMap>,
    sparse: OnceLock<Random>,
    /// s.
    degree: usize,
    /// k.
    kept: usize,
}

impl Winners {
    /// Returns the sparse projection: which entries of P it has depends on the row alone.
    fn sparse(&self) -> &Random {
        self.sparse.get_or_init(|| {
            let (dim, width) = (self.linear.dim(), self.linear.width());
            // The image of the unit vectors is P.
            let mut p = Mat::<f32>::zeros(width, dim);
            self.linear.lift(Mat::<f32>::identity(dim, dim).as_ref(), p.as_mut());
            let mut rows = vec![0.0; width * dim];
            rows.par_chunks_mut(dim).enumerate().for_each(|(i, row)| {
                permutation(dim, 0, i as u64).into_iter().take(self.degree).for_each(|j| row[j] = p[(i, j)]);
            });
            let projection = Projection::from_rows(width, dim, rows).expect("entries of P were accepted before");
            Random::new(projection, Activation::Linear)
        })
    }
}

/// Returns a number whose order is that of the value.
fn rank(value: f32) -> u32 {
    let bits = value.to_bits();
    if (bits >> 31) == 1 { !bits } else { bits | (1 << 31) }
}

/// Sets all but the `kept` largest values to zero. Of equal values the first ones stay.
fn keep_largest(values: &mut [f32], kept: usize) {
    // The rank of the smallest value that stays, byte by byte, and how many of that rank do.
    let (mut threshold, mut known, mut left) = (0u32, 0u32, kept.min(values.len()));
    for shift in [24, 16, 8, 0] {
        let mut counts = [0usize; 256];
        for rank in values.iter().map(|v| rank(*v)).filter(|rank| (rank & known) == threshold) {
            counts[((rank >> shift) & 255) as usize] += 1;
        }
        let mut byte = 255;
        while counts[byte] < left {
            left -= counts[byte];
            byte -= 1;
        }
        threshold |= (byte as u32) << shift;
        known |= 255 << shift;
    }
    for value in values {
        let rank = rank(*value);
        let equal = rank == threshold && left > 0;
        left -= usize::from(equal);
        if rank < threshold || (rank == threshold && !equal) {
            *value = 0.0;
        }
    }
}

impl FeatureMap for Winners {
    fn name(&self) -> &'static str {
        "fly"
    }
    fn dim(&self) -> usize {
        self.linear.dim()
    }
    fn width(&self) -> usize {
        self.linear.width()
    }
    fn lift(&self, x: MatRef<'_, f32>, mut h: MatMut<'_, f32>) {
        self.sparse().lift(x, h.rb_mut());
        h.par_col_iter_mut().for_each(|column| match column.try_as_col_major_mut() {
            Some(column) => keep_largest(column.as_slice_mut(), self.kept),
            None => unreachable!("lifted features are stored by column"),
        });
    }
    fn operations(&self) -> Vec<Operation> {
        vec![Operation::Project { scale: 1.0 }, Operation::KeepLargest(self.kept)]
    }
    fn bytes(&self) -> usize {
        self.sparse.get().map_or(0, FeatureMap::bytes)
    }
}

/// Returns the lambda of the grid with the smallest generalised cross-validation error on a task, H (E x m).
fn choose(h: MatRef<'_, f32>, classes: &[usize], _seed: u64, _task: u64, before: Option<f64>) -> f64 {
    let m = classes.len();
    if m < 2 {
        return before.unwrap_or(FALLBACK);
    }
    let (values, energies, outside) = spectrum(h, classes);
    let floor = f64::from(f32::EPSILON) * values.first().copied().unwrap_or(0.0);
    let error = |lambda: f64| {
        // m - df, without cancellation where lambda is small.
        let (mut residual, mut rest) = (outside, m as f64 - values.len() as f64);
        for (value, energy) in values.iter().zip(&energies) {
            let share = lambda / (value + lambda);
            residual += share * share * energy;
            rest += share;
        }
        m as f64 * residual / (rest * rest)
    };
    let usable = GRID.iter().copied().filter(|lambda| *lambda >= floor && error(*lambda).is_finite());
    usable.min_by(|a, b| error(*a).total_cmp(&error(*b))).unwrap_or(FALLBACK)
}

/// Returns the eigenvalues of `H' H`, the energy of the one-hot labels along each eigenvector, and that outside of them.
fn spectrum(h: MatRef<'_, f32>, classes: &[usize]) -> (Vec<f64>, Vec<f64>, f64) {
    let (m, count) = (classes.len(), classes.iter().max().map_or(0, |last| last + 1));
    let samples = m <= h.nrows();
    let mut gram = Gram::zeros(m.min(h.nrows()));
    // Y, or Y H'.
    let mut left = Mat::<f64>::zeros(count, gram.rank());
    if samples {
        gram.set_matrix(gram_f64(h).transpose());
        classes.iter().enumerate().for_each(|(sample, &class)| left[(class, sample)] = 1.0);
    } else {
        let mut sums = Mat::<f64>::zeros(gram.rank(), count);
        for (part, classes) in classes.chunks(CHUNK).enumerate() {
            let h: Mat<f64> = cast(h.subcols(part * CHUNK, classes.len()));
            gram.add(h.as_ref());
            add_by_class(&mut sums, h.as_ref(), classes);
        }
        left.copy_from(sums.transpose());
    }
    let (mut values, mut energies) = (Vec::new(), Vec::new());
    let outcome = gram.apply_function(&mut left, |found, along| {
        values = found.iter().map(|value| value.max(0.0)).collect();
        energies = along.to_vec();
        vec![0.0; found.len()]
    });
    // A spectrum that cannot be computed leaves no lambda to prefer.
    if outcome.is_err() {
        return (Vec::new(), Vec::new(), m as f64);
    }
    if !samples {
        // Eigenvectors of H H' give Y H', which is longer by the root of the eigenvalue.
        let shorter = |(energy, value): (&mut f64, &f64)| *energy = if *value > 0.0 { *energy / value } else { 0.0 };
        energies.iter_mut().zip(&values).for_each(shorter);
    }
    // As many eigenvectors as samples have no outside.
    let outside = if samples { 0.0 } else { (m as f64 - energies.iter().sum::<f64>()).max(0.0) };
    (values, energies, outside)
}

/// Ridge regression on the winners.
pub struct FlyCl {
    ridge: RanPac,
    map: Arc<Winners>,
}

impl Learner for FlyCl {
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        self.ridge.learn(x, labels)
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        self.ridge.classifier()
    }

    fn classes(&self) -> &LabelTable {
        self.ridge.classes()
    }

    fn summary(&self) -> Summary {
        self.ridge.summary()
    }

    fn settings(&self) -> serde_json::Value {
        let mut settings = self.ridge.settings();
        settings["degree"] = self.map.degree.into();
        settings["kept"] = self.map.kept.into();
        settings
    }

    fn state_bytes(&self) -> usize {
        self.ridge.state_bytes() + self.map.bytes()
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        sum(&[self.ridge.peak_bytes(stream), product(&[8, self.map.width(), self.map.dim()])])
    }
}

/// Reads a share of `whole`, as a number of at least 1.
fn share(settings: &Settings<'_>, name: &'static str, default: f64, whole: usize) -> Result<usize, Error> {
    match settings.number(name, default)? {
        share if share > 0.0 && share <= 1.0 => Ok(((share * whole as f64).round() as usize).max(1)),
        other => Err(Error::setting(name, other, "it is a share, above 0 and at most 1")),
    }
}

fn build(options: &MethodOptions, settings: &Settings<'_>) -> Result<Box<dyn Learner>, Error> {
    let linear = options.map()?;
    let degree = share(settings, "degree", DEGREE, linear.dim())?;
    let kept = share(settings, "coding", CODING, linear.width())?;
    let map = Arc::new(Winners { linear, sparse: OnceLock::new(), degree, kept });
    Ok(Box::new(FlyCl { ridge: RanPac::choosing(map.clone(), settings.ridge()?, options.seed, choose), map }))
}

/// The registry entry.
pub(crate) const FLY_CL: Method = Method {
    name: "fly-cl",
    summary: "sparse random projection, the largest features of each sample, ridge regression with lambda by GCV",
    input: Input::LiftedBy("random"),
    settings: &[
        ("degree", "share of the features that each row of the projection reads [default: 0.4]"),
        ("coding", "share of the lifted features that a sample keeps [default: 0.3]"),
        ("ridge", "lambda, instead of a choice by generalised cross-validation on every task"),
    ],
    exempt: &[(Promise::Halves, "lambda is chosen on the latest task alone; with a fixed ridge halves make a whole")],
    build,
    ..RANPAC
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_values_stay_and_of_equal_ones_the_first() {
        let mut values = [0.5, -2.0, 3.0, 0.5, -1.0, 0.5, 7.0];
        keep_largest(&mut values, 4);
        assert_eq!(values, [0.5, 0.0, 3.0, 0.5, 0.0, 0.0, 7.0]);
        let mut negative = [-3.0, -1.0, -2.0];
        keep_largest(&mut negative, 2);
        assert_eq!(negative, [0.0, -1.0, -2.0]);
        keep_largest(&mut negative, 9);
        assert_eq!(negative, [0.0, -1.0, -2.0]);
    }

    #[test]
    fn both_sides_of_the_spectrum_agree() {
        let h = Mat::<f32>::from_fn(5, 9, |i, j| (((i * 37 + j * 101) ^ (i * j + 13)) % 1009) as f32 / 504.5 - 1.0);
        let classes = [0, 1, 1, 2, 0, 2, 1, 0, 2];
        let (values, energies, outside) = spectrum(h.as_ref(), &classes);
        // Rows of zeros change no product of samples, and make E larger than m.
        let taller = Mat::<f32>::from_fn(12, 9, |i, j| if i < 5 { h[(i, j)] } else { 0.0 });
        let (more, other, none) = spectrum(taller.as_ref(), &classes);
        for i in 0..5 {
            assert!((values[i] - more[i]).abs() < 1e-6 && (energies[i] - other[i]).abs() < 1e-6);
        }
        assert!(none < 1e-9 && (outside - other[5..].iter().sum::<f64>()).abs() < 1e-6);
        assert!(choose(h.as_ref(), &classes, 0, 0, None) == choose(taller.as_ref(), &classes, 0, 0, None));
    }
}
