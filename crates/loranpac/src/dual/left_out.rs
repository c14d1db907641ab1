//! Leave-one-out accuracy without the whole inverse.
//!
//! Without sample i, the score of class c for it is `y_ci - x_ci / d_i`, with `d_i` the i-th diagonal entry of
//! `(K + lambda I)^-1`. Its own class wins if and only if
//!
//! ```text
//! d_i > x_own - (the smallest x_ci of the other classes)
//! ```
//!
//! (for a sample of weight w, `sqrt(w) d_i`), so that an estimate of `d_i` decides unless the two sides are close. Random signs z estimate all of them at once: the
//! mean of `z_i ((K + lambda I)^-1 z)_i` is `d_i`, and its spread is known from the same numbers. What the estimate leaves
//! open is computed: `d_i = |L^-1 e_i|^2`. The inverse would take `n^3 / 3` flops; this takes `2 n^2` for each sign vector,
//! and a third of `n^2` on average for each sample left open.

use faer::{Mat, MatRef};

use super::packed::Packed;

/// Vectors of random signs.
const SIGNS: usize = 512;

/// A sample is decided by an estimate that is this number of standard deviations away.
const DEVIATIONS: f64 = 6.0;

/// Entries that are computed at a time.
const AT_A_TIME: usize = 512;

/// Returns which samples are classified correctly by the classifier without them. `x` is `Y (L L')^-1` with its columns
/// multiplied by the roots that [`super::Shifted`] divides by: `x_i / d_i` does not depend on that scale, if `d` has its
/// square. `roots` are the entries of Y that are not 0.
pub(super) fn right(factor: Packed, x: MatRef<'_, f64>, classes: &[usize], scale: &[f64], roots: &[f64]) -> Vec<bool> {
    // In the coordinates of the factor, d_i is `d_i / scale_i^2`.
    let at = |(i, own): (usize, &usize)| limit(x, i, *own) / (roots[i] * scale[i].powi(2));
    let limits: Vec<f64> = classes.iter().enumerate().map(at).collect();
    let n = classes.len();
    if n <= 4 * SIGNS {
        return factor.into_inverse_diagonal().iter().zip(&limits).map(|(d, limit)| d > limit).collect();
    }
    let signs = Mat::<f32>::from_fn(SIGNS, n, sign);
    let mut solved = signs.clone();
    factor.solve(&mut solved);
    let (mut right, mut open) = (vec![false; n], Vec::new());
    for (i, limit) in limits.iter().enumerate() {
        let terms = signs.col(i).iter().zip(solved.col(i).iter()).map(|(z, w)| f64::from(z * w));
        let (sum, squares) = terms.fold((0.0, 0.0), |(sum, squares), v| (sum + v, squares + v * v));
        let mean = sum / SIGNS as f64;
        let variance = (squares / SIGNS as f64 - mean * mean).max(0.0) / SIGNS as f64;
        if (mean - limit).abs() > DEVIATIONS * variance.sqrt() + 1e-3 * mean {
            right[i] = mean > *limit;
        } else {
            open.push(i);
        }
    }
    drop((signs, solved));
    if 2 * open.len() > n {
        let diagonal = factor.into_inverse_diagonal();
        open.iter().for_each(|i| right[*i] = diagonal[*i] > limits[*i]);
        return right;
    }
    for some in open.chunks(AT_A_TIME) {
        let diagonal = factor.inverse_entries(some);
        some.iter().zip(diagonal).for_each(|(i, d)| right[*i] = d > limits[*i]);
    }
    right
}

/// Returns the number that `d_i` must exceed.
fn limit(x: MatRef<'_, f64>, i: usize, own: usize) -> f64 {
    let others = (0..x.nrows()).filter(|c| *c != own).map(|c| x[(c, i)]);
    x[(own, i)] - others.fold(f64::INFINITY, f64::min)
}

/// Returns 1 or -1 by a scramble of two indices.
fn sign(k: usize, i: usize) -> f32 {
    let mut z = ((k as u64) << 32 | i as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    if (z ^ (z >> 31)) & 1 == 0 { 1.0 } else { -1.0 }
}
