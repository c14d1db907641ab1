//! RanPAC's choice of lambda: fit on a random four fifths of a task, and measure the squared error on the rest.
//!
//! With `H_f (E x n)` to fit and `H_v` to validate, the predictions for every lambda come from one reduction of the
//! smaller Gram matrix to a band, which a shift by lambda preserves:
//!
//! ```text
//! n <= E   H_f' H_f = Z B Z'   H_v' H_f Z (B + lambda I)^-1 Z' Y_f'
//! n >  E   H_f H_f' = Z B Z'   H_v' Z (B + lambda I)^-1 Z' H_f Y_f'
//! ```

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef};
use rayon::prelude::*;

use super::lifted::compact;
use super::shuffle::permutation;
use crate::classifier::CHUNK;
use crate::gram::Gram;
use crate::learner::StreamSizes;
use crate::linalg::{cast, gram_f64, par};
use crate::memory;
use crate::method::Promise;

/// The values of lambda that RanPAC tries.
pub const GRID: [f64; 17] =
    [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8];

/// Lambda for tasks that are too small to hold anything out: large enough to be safe, according to the paper.
pub(super) const FALLBACK: f64 = 1e4;

/// The promises that a method cannot make if its lambda is chosen here.
pub(super) const EXEMPT: &[(Promise, &str)] = &[
    (Promise::SampleOrder, "lambda is chosen on a random fifth of the task; with a fixed ridge order does not matter"),
    (Promise::Halves, "lambda is chosen on the latest task alone; with a fixed ridge halves make a whole"),
];

/// Returns the bytes that the choice needs for the largest task: its lifted samples, and the reduction of the smaller
/// square.
pub(super) fn peak_bytes(width: usize, stream: &StreamSizes) -> usize {
    let (task, small) = (stream.largest_task, width.min(stream.largest_task));
    let threads = rayon::current_num_threads();
    let copies = if task > width { 2 } else { 1 };
    memory::sum(&[memory::product(&[copies, 4, width, task]), memory::product(&[4 + threads, 8, small, small])])
}

/// Returns the lambda of the grid with the smallest validation error on lifted samples `h` (E x m).
///
/// Errors are computed from a reduction in f64, which resolves any lambda. RanPAC solves the normal equations in single
/// precision, where values below its rounding never win. They are excluded here, too: otherwise small tasks would
/// choose 1e-8. The split is drawn from `seed` and `task`. `before` is the result for a single sample.
pub(super) fn choose(h: MatRef<'_, f32>, classes: &[usize], seed: u64, task: u64, before: Option<f64>) -> f64 {
    let m = classes.len();
    if m < 2 {
        return before.unwrap_or(FALLBACK);
    }
    let order = permutation(m, seed, task);
    let fit = (m * 4 / 5).clamp(1, m - 1);
    let (errors, largest) = curve(h, classes, &order[..fit], &order[fit..], &GRID);
    let floor = f32::EPSILON as f64 * largest;
    let usable = (0..GRID.len()).filter(|&i| errors[i].is_finite() && GRID[i] >= floor);
    let best = usable.min_by(|&i, &j| errors[i].total_cmp(&errors[j]));
    best.map_or(FALLBACK, |i| GRID[i])
}

/// Returns the mean squared error over the samples `validate` and the classes of the task, for each lambda, of the
/// ridge regression on the samples `fit`. Cost: one reduction in the smaller of E and the number of samples.
pub fn validation_errors(
    h: MatRef<'_, f32>,
    classes: &[usize],
    fit: &[usize],
    validate: &[usize],
    lambdas: &[f64],
) -> Vec<f64> {
    curve(h, classes, fit, validate, lambdas).0
}

/// Computes the same, with the largest eigenvalue.
fn curve(h: MatRef<'_, f32>, classes: &[usize], fit: &[usize], validate: &[usize], lambdas: &[f64]) -> (Vec<f64>, f64) {
    let (present, place) = compact(classes);
    let targets = |samples: &[usize]| {
        let mut y = Mat::<f64>::zeros(samples.len(), present.len());
        samples.iter().enumerate().for_each(|(row, &sample)| y[(row, place[sample])] = 1.0);
        y
    };
    let (y_fit, y) = (targets(fit), targets(validate));
    let mut gram;
    // Predictions are left (S + lambda I)^-1 right, v x n and n x c.
    let (left, right) = if fit.len() <= h.nrows() {
        let k = gram_f64(h); // lower triangle
        let at = |i: usize, j: usize| k[(i.max(j), i.min(j))];
        gram = Gram::zeros(fit.len());
        gram.set_matrix(Mat::from_fn(fit.len(), fit.len(), |i, j| at(fit[i], fit[j])).as_ref());
        (Mat::from_fn(validate.len(), fit.len(), |i, j| at(validate[i], fit[j])), y_fit)
    } else {
        gram = Gram::zeros(h.nrows());
        let mut right = Mat::<f64>::zeros(h.nrows(), present.len());
        for part in fit.chunks(CHUNK) {
            let h: Mat<f64> = cast(select(h, part).as_ref());
            gram.add(h.as_ref());
            matmul(&mut right, Accum::Add, &h, targets(part), 1.0, par());
        }
        (cast(select(h, validate).transpose()), right)
    };
    let shifted = gram.shifted(left.as_ref(), right.as_ref());
    let error = |&lambda: &f64| {
        let miss = shifted.solve(lambda) - &y;
        miss.squared_norm_l2() / (miss.nrows() * miss.ncols()) as f64
    };
    (lambdas.par_iter().map(error).collect(), shifted.largest())
}

fn select(h: MatRef<'_, f32>, samples: &[usize]) -> Mat<f32> {
    let mut chosen = Mat::zeros(h.nrows(), samples.len());
    samples.iter().enumerate().for_each(|(j, &sample)| chosen.col_mut(j).copy_from(h.col(sample)));
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_asks_for_a_large_lambda_and_clean_data_for_a_small_one() {
        let sample = |i: usize, j: usize| (((i * 37 + j * 101) ^ (i * j + 13)) % 1009) as f32 / 504.5 - 1.0;
        let noise = Mat::<f32>::from_fn(40, 100, sample);
        let classes: Vec<usize> = (0..100).map(|j| (j * 7919 / 13) % 2).collect();
        assert!(choose(noise.as_ref(), &classes, 0, 0, None) >= 100.0);
        // The first two features are the classes themselves.
        let clean =
            Mat::<f32>::from_fn(40, 100, |i, j| if i < 2 { f32::from(i == classes[j]) } else { 0.01 * sample(i, j) });
        assert!(choose(clean.as_ref(), &classes, 0, 0, None) <= 1.0);
        assert_eq!(choose(clean.as_ref().subcols(0, 1), &[0], 0, 0, Some(7.0)), 7.0);
    }
}
