//! Eigenvectors of a symmetric tridiagonal matrix by divide and conquer.
//!
//! ```text
//! T = [T1 0; 0 T2] + rho v v' = Q (D + rho z z') Q'     Q = [Q1 0; 0 Q2], D: the eigenvalues of both halves
//! D + rho z z' = W diag(mu) W'                          W from the roots of a secular equation, no flops of size n^3
//! V = Q W
//! ```
//!
//! Only the last product is large, `n^2` flops per eigenvector, and it is computed for the eigenvectors that are wanted, some at
//! a time: two halves of `n^2 / 4` numbers are held. Finding them costs `n^3 / 3` flops, all of it matrix products.
//!
//! Equal poles and components without weight are deflated as LAPACK's `dlaed2` does, and z is recomputed from the roots (Gu and
//! Eisenstat, 1994), so that eigenvectors are orthogonal to rounding however close their eigenvalues are.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::prelude::ReborrowMut;
use faer::{Accum, Mat, MatMut};
use rayon::prelude::*;

use crate::chase::Tridiagonal;
use crate::linalg::par;
use crate::secular::{self, Root};
use crate::tridiagonal::{NoConvergence, by_rotations};

/// Matrices up to this size are solved by the QL iteration.
const SMALL: usize = 48;
/// Eigenvectors that are computed at a time.
const STRIP: usize = 512;

/// The spectrum of T, and what its eigenvectors are computed from.
pub(crate) struct Divided {
    /// Eigenvalues, largest first.
    values: Vec<f64>,
    parts: Parts,
}

enum Parts {
    /// The eigenvectors themselves, in the order of the values.
    Vectors(Mat<f64>),
    /// Q1 and Q2, and W.
    Merged(Mat<f64>, Mat<f64>, Merge),
}

/// W: the eigenvectors of `D + rho z z'`.
struct Merge {
    /// Poles with their weight and their place in D, in ascending order.
    poles: Vec<secular::Pole>,
    places: Vec<usize>,
    /// Plane rotations of D's places that made weights zero, in the order of their use.
    rotations: Vec<(usize, usize, f64, f64)>,
    /// The eigenvectors, in descending order of the eigenvalues.
    vectors: Vec<Vector>,
}

/// An eigenvector of `D + rho z z'` after the rotations.
#[derive(Clone, Copy)]
enum Vector {
    /// The unit vector of a deflated place.
    Unit(usize),
    /// That of a root: `z_i / (d_i - mu)`.
    Root(Root),
}

impl Divided {
    /// Decomposes T.
    pub fn new(t: &Tridiagonal) -> Result<Self, NoConvergence> {
        let n = t.diagonal.len();
        if !t.diagonal.iter().chain(&t.subdiagonal).all(|value| value.is_finite()) {
            return Err(NoConvergence);
        }
        if n <= SMALL {
            let (values, vectors) = by_rotations(t)?;
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
            let sorted = Mat::from_fn(n, n, |i, j| vectors[(i, order[j])]);
            return Ok(Divided { values: order.iter().map(|&i| values[i]).collect(), parts: Parts::Vectors(sorted) });
        }
        let middle = n / 2;
        let link = t.subdiagonal[middle - 1];
        let rho = link.abs();
        let part = |range: Range<usize>| {
            let mut part = Tridiagonal {
                diagonal: t.diagonal[range.clone()].to_vec(),
                subdiagonal: t.subdiagonal[range.clone()].to_vec(),
            };
            // v has ones, up to signs, on either side of the middle.
            part.diagonal[if range.start == 0 { middle - 1 } else { 0 }] -= rho;
            part.subdiagonal[range.len() - 1] = 0.0;
            part
        };
        let solve = |range| Divided::new(&part(range)).map(|part| (part.all(), part.values));
        let (first, second) = rayon::join(|| solve(0..middle), || solve(middle..n));
        let ((q1, d1), (q2, d2)) = (first?, second?);
        let sign = if link < 0.0 { -1.0 } else { 1.0 };
        let d: Vec<f64> = d1.into_iter().chain(d2).collect();
        let z: Vec<f64> = q1.row(middle - 1).iter().copied().chain(q2.row(0).iter().map(|v| sign * v)).collect();
        let (values, merge) = Merge::new(d, z, rho);
        Ok(Divided { values, parts: Parts::Merged(q1, q2, merge) })
    }

    /// Returns the eigenvalues, largest first.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    fn all(&self) -> Mat<f64> {
        let n = self.values.len();
        let mut all = Mat::zeros(n, n);
        for first in (0..n).step_by(STRIP) {
            let range = first..n.min(first + STRIP);
            self.vectors(range.clone(), all.as_mut().subcols_mut(first, range.len()));
        }
        all
    }

    /// Computes the eigenvectors of a range of eigenvalues, one per column. Cost: `n^2` flops each.
    pub fn vectors(&self, range: Range<usize>, mut target: MatMut<'_, f64>) {
        match &self.parts {
            Parts::Vectors(all) => target.copy_from(all.as_ref().subcols(range.start, range.len())),
            Parts::Merged(q1, q2, merge) => {
                let w = merge.vectors(range);
                let middle = q1.nrows();
                let (above, below) = target.split_at_row_mut(middle);
                matmul(above, Accum::Replace, q1, w.subrows(0, middle), 1.0, par());
                matmul(below, Accum::Replace, q2, w.subrows(middle, q2.nrows()), 1.0, par());
            }
        }
    }
}

impl Merge {
    /// Decomposes `D + rho z z'`; returns the eigenvalues, largest first.
    fn new(mut d: Vec<f64>, mut z: Vec<f64>, rho: f64) -> (Vec<f64>, Merge) {
        let n = d.len();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&i, &j| d[i].total_cmp(&d[j]));
        let largest = |values: &[f64]| values.iter().fold(0.0f64, |largest, v| largest.max(v.abs()));
        let tolerance = 8.0 * f64::EPSILON * largest(&d).max(rho * largest(&z));
        let (mut places, mut rotations, mut deflated) = (Vec::with_capacity(n), Vec::new(), Vec::new());
        for place in order {
            if rho * z[place].abs() * 2f64.sqrt() <= tolerance {
                deflated.push(place);
                continue;
            }
            if let Some(&before) = places.last() {
                // A rotation moves the weight of the pole before to this one, if that hardly changes D.
                let (from, to): (usize, usize) = (before, place);
                let weight = z[from].hypot(z[to]);
                let (c, s) = (z[to] / weight, -z[from] / weight);
                if ((d[to] - d[from]) * c * s).abs() <= tolerance {
                    (z[from], z[to]) = (0.0, weight);
                    (d[from], d[to]) = (d[from] * c * c + d[to] * s * s, d[from] * s * s + d[to] * c * c);
                    rotations.push((from, to, c, s));
                    deflated.push(from);
                    places.pop();
                }
            }
            places.push(place);
        }
        let mut poles: Vec<secular::Pole> =
            places.iter().map(|&place| secular::Pole { at: d[place], weight: z[place] }).collect();
        let roots = secular::roots(&mut poles, rho);
        let unit = deflated.into_iter().map(|place| (d[place], Vector::Unit(place)));
        let root = roots.into_iter().map(|root| (poles[root.origin].at + root.offset, Vector::Root(root)));
        let mut both: Vec<(f64, Vector)> = unit.chain(root).collect();
        both.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (values, vectors) = both.into_iter().unzip();
        (values, Merge { poles, places, rotations, vectors })
    }

    /// Returns columns of W.
    fn vectors(&self, range: Range<usize>) -> Mat<f64> {
        let mut w = Mat::zeros(self.vectors.len(), range.len());
        w.par_col_iter_mut().zip(&self.vectors[range]).for_each(|(mut w, vector)| {
            match vector {
                Vector::Unit(place) => w[*place] = 1.0,
                Vector::Root(root) => {
                    let mut square = 0.0;
                    for (pole, &place) in self.poles.iter().zip(&self.places) {
                        let value = pole.weight / ((pole.at - self.poles[root.origin].at) - root.offset);
                        square += value * value;
                        w[place] = value;
                    }
                    let scale = square.sqrt().recip();
                    w.rb_mut().iter_mut().for_each(|value| *value *= scale);
                }
            }
            for &(from, to, c, s) in self.rotations.iter().rev() {
                (w[from], w[to]) = (c * w[from] - s * w[to], s * w[from] + c * w[to]);
            }
        });
        w
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks `T V = V diag(values)` and `V' V = I`, for all eigenvectors and for some.
    fn check(diagonal: Vec<f64>, mut subdiagonal: Vec<f64>) {
        let n = diagonal.len();
        subdiagonal.resize(n, 0.0);
        let full = Mat::from_fn(n, n, |i, j| match i.abs_diff(j) {
            0 => diagonal[i],
            1 => subdiagonal[i.min(j)],
            _ => 0.0,
        });
        let scale = full.norm_max().max(f64::MIN_POSITIVE);
        let divided = Divided::new(&Tridiagonal { diagonal, subdiagonal }).unwrap();
        assert!(divided.values().is_sorted_by(|a, b| a >= b));
        let v = divided.all();
        let off = (v.transpose() * &v - Mat::<f64>::identity(n, n)).norm_max();
        assert!(off < 1e-13 * (n as f64).sqrt(), "n = {n}: V'V - I is {off:e}");
        let scaled = Mat::from_fn(n, n, |i, j| v[(i, j)] * divided.values()[j]);
        let off = (&full * &v - scaled).norm_max() / scale;
        assert!(off < 1e-14 * n as f64, "n = {n}: T V - V D is {off:e}");
        let range = n / 3..n - n / 4;
        let mut some = Mat::zeros(n, range.len());
        divided.vectors(range.clone(), some.as_mut());
        assert!((some - v.subcols(range.start, range.len())).norm_max() < 1e-14);
    }

    #[test]
    fn eigenvectors_are_orthogonal_and_exact() {
        for n in [1, 2, 30, 48, 49, 50, 97, 130, 400, 1100] {
            let entry = |i: usize, step: f64| (i as f64 * step).sin();
            check((0..n).map(|i| entry(i, 1.3)).collect(), (0..n).map(|i| entry(i, 0.7)).collect());
        }
    }

    #[test]
    fn close_and_equal_eigenvalues_are_no_trouble() {
        let n = 300;
        check(vec![0.0; n], vec![0.0; n]);
        check(vec![2.0; n], vec![0.0; n]);
        check(vec![2.0; n], vec![-1.0; n]);
        check(vec![1.0; n], (0..n).map(|i| if i % 7 == 0 { 0.0 } else { 1e-9 }).collect());
        // Wilkinson's matrices, glued: pairs of eigenvalues that agree to rounding.
        let diagonal = (0..n).map(|i| ((i % 21) as f64 - 10.0).abs()).collect();
        check(diagonal, (0..n).map(|i| if i % 21 == 20 { 1e-8 } else { 1.0 }).collect());
        // Graded over twenty orders of magnitude, in both directions.
        let graded = |i: usize| 10f64.powf(-(i as f64) / 15.0);
        check((0..n).map(graded).collect(), (0..n).map(|i| 0.3 * graded(i)).collect());
        check((0..n).map(|i| graded(n - i)).collect(), (0..n).map(|i| 0.3 * graded(n - i)).collect());
    }

    #[test]
    fn what_is_not_finite_is_an_error() {
        for value in [f64::NAN, f64::INFINITY] {
            let mut diagonal = vec![1.0; 100];
            diagonal[70] = value;
            assert!(Divided::new(&Tridiagonal { diagonal, subdiagonal: vec![0.5; 100] }).is_err());
        }
    }
}
