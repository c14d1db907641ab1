//! Helpers of the tests: random numbers, conversions and comparisons.

use super::strips::{Strip, Strips, WIDTH};

/// Reproducible numbers in (-1, 1).
pub(crate) fn random(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// A matrix in strips.
pub(crate) fn matrix(rows: &[f32], features: usize) -> Strips {
    let mut matrix = Strips::default();
    matrix.reshape(rows.len() / features, features.div_ceil(WIDTH));
    for (s, strip) in matrix.strips_mut().enumerate() {
        for (strip, row) in strip.iter_mut().zip(rows.chunks(features)) {
            *strip = Strip::pad(row)[s];
        }
    }
    matrix
}

/// The rows of a matrix in strips.
pub(crate) fn rows(matrix: &Strips, features: usize) -> Vec<f32> {
    let mut rows = vec![0.0; matrix.rows() * features];
    for (i, row) in rows.chunks_mut(features).enumerate() {
        matrix.row(i, row);
    }
    rows
}

/// Checks that the differences are below a share of the largest number.
#[track_caller]
pub(crate) fn close(found: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(*found) - expected).abs();
        assert!(error <= tolerance * largest, "number {i}: {found} instead of {expected} ({:e})", error / largest);
    }
}
