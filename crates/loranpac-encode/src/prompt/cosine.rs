//! Cosines of queries and keys, and their gradients:
//!
//! ```text
//! c = u · k / (|u| |k|):    dc/dk = (u / |u| - c k / |k|) / |k|
//! ```

/// The smallest length that vectors are divided by.
const SHORTEST: f64 = 1e-12;

/// The cosine of two vectors.
pub(super) fn cosine(u: &[f32], k: &[f32]) -> f64 {
    dot(u, k) / (length(u) * length(k))
}

/// Adds `slope` times the gradient of the cosine with respect to k.
pub(super) fn add_gradient(u: &[f32], k: &[f32], slope: f64, out: &mut [f32]) {
    let (own, other) = (length(k), length(u));
    let cosine = dot(u, k) / (own * other);
    for ((out, u), k) in out.iter_mut().zip(u).zip(k) {
        *out += (slope * (f64::from(*u) / other - cosine * f64::from(*k) / own) / own) as f32;
    }
}

pub(super) fn dot(x: &[f32], y: &[f32]) -> f64 {
    x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

fn length(x: &[f32]) -> f64 {
    dot(x, x).sqrt().max(SHORTEST)
}
