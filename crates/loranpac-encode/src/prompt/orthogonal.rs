//! New vectors that are orthogonal to earlier ones, by Gram-Schmidt:
//!
//! ```text
//! u = v - sum over an orthonormal basis b of the earlier vectors of (v · b) b,    u / |u|
//! ```

use std::ops::Range;

use crate::transformer::Random;

/// Shares of a vector's length below this are rounding errors.
const TINY: f64 = 1e-6;

/// Replaces some rows by random ones of length 1 that are orthogonal to each other and to all rows in front of them, as long as there are no
/// more rows than numbers in a row; the others are random.
pub(super) fn renew(matrix: &mut [f32], size: usize, rows: Range<usize>, random: &mut Random) {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let earlier = matrix[..rows.start * size].chunks(size);
    for row in earlier {
        let row: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
        basis.extend(beside(&basis, row));
    }
    for row in matrix[rows.start * size..rows.end * size].chunks_mut(size) {
        let drawn: Vec<f64> = (0..size).map(|_| random.normal()).collect();
        let new = beside(&basis, drawn.clone());
        let chosen = new.clone().unwrap_or_else(|| unit(drawn));
        row.iter_mut().zip(&chosen).for_each(|(x, chosen)| *x = *chosen as f32);
        basis.extend(new);
    }
}

/// The part of a vector that is orthogonal to a basis, with length 1; none if nothing of it is left. Projected twice, for rounding.
fn beside(basis: &[Vec<f64>], x: Vec<f64>) -> Option<Vec<f64>> {
    let before = length(&x);
    let mut rest = x;
    for basis in basis.iter().chain(basis) {
        let along: f64 = rest.iter().zip(basis).map(|(x, b)| x * b).sum();
        rest.iter_mut().zip(basis).for_each(|(x, b)| *x -= along * b);
    }
    (length(&rest) > TINY * before).then(|| unit(rest))
}

fn unit(mut x: Vec<f64>) -> Vec<f64> {
    let factor = 1.0 / length(&x).max(f64::MIN_POSITIVE);
    x.iter_mut().for_each(|x| *x *= factor);
    x
}

fn length(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_rows_are_orthonormal_and_orthogonal_to_all_in_front() {
        let mut random = Random::new(3, 0);
        // Earlier rows are not orthogonal any more, and one is a multiple of another.
        let mut matrix: Vec<f32> = (0..6 * 8).map(|_| random.normal() as f32).collect();
        let copy: Vec<f32> = matrix[..8].iter().map(|x| 2.0 * x).collect();
        matrix[8..16].copy_from_slice(&copy);
        let before = matrix.clone();
        renew(&mut matrix, 8, 3..6, &mut random);
        assert_eq!(matrix[..24], before[..24]);
        let dot = |i: usize, j: usize| -> f64 {
            (0..8).map(|k| f64::from(matrix[i * 8 + k]) * f64::from(matrix[j * 8 + k])).sum()
        };
        for i in 3..6 {
            for j in 0..i {
                assert!(dot(i, j).abs() < 1e-5, "{i} {j}: {}", dot(i, j));
            }
            assert!((dot(i, i) - 1.0).abs() < 1e-5);
        }
    }

    #[test]
    fn more_rows_than_numbers_have_length_one() {
        let mut matrix = vec![0.0; 5 * 2];
        renew(&mut matrix, 2, 0..5, &mut Random::new(1, 0));
        for row in matrix.chunks(2) {
            assert!((row[0] * row[0] + row[1] * row[1] - 1.0).abs() < 1e-5, "{row:?}");
        }
    }
}
