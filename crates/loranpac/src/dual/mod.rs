//! The soft filter between many samples: `A = Y (K + lambda I)^-1` without K in double precision.
//!
//! ```text
//! L L' ~ K + lambda I       n (n + 1) / 2 numbers in f32: the preconditioner
//! R = Y - A (K + lambda I)  in f64, with K computed from the samples tile by tile, and never stored
//! ```
//!
//! Conjugate gradients take A to the solution in double precision. An error E of A changes no score of a sample x by
//! more than `|E|_K sqrt(k(x, x))`, which the iteration measures. The geometric mean comes from the factor of K itself
//! (`mean`), leave-one-out accuracy from parts of the inverse of L (`left_out`).

mod left_out;
mod mean;
mod packed;
mod system;

use faer::Mat;

use crate::error::Error;
use crate::filter::{Facts, Filter, Ridge, Solution, share};
use crate::lift::Polar;
use crate::linalg::{cast, squared_norm};
use crate::memory::{product, sum};
use packed::{Packed, TILE, packed_bytes};
use system::System;

/// From this number of samples on, a classifier is formed here.
const MANY: usize = 6_144;

/// Returns whether a classifier of a model that keeps all of its samples is formed without K.
pub fn packs(filter: Filter, samples: usize) -> bool {
    matches!(filter, Filter::Soft(_)) && samples >= MANY
}

/// The most samples whose kernel matrix is formed in double precision where single precision does not suffice.
pub(crate) const MOST_DOUBLE: usize = 32_768;

/// The largest change of a score, of samples as long as the longest one, by which coefficients may differ from the
/// solution.
const SCORE: f64 = 1e-6;

/// Returns the bytes of forming a classifier without the samples: the packed matrix, the panel that replaces another, and
/// the vectors of the iteration.
pub(crate) fn bytes(n: usize, classes: usize) -> usize {
    let vectors = product(&[8, 8, n, classes.max(mean::MOST)]);
    sum(&[packed_bytes(n), product(&[4, TILE, n]), vectors])
}

/// Forms the classifier on samples of these classes, of which there are `count`. Samples of other weights than 1 are multiplied by
/// their roots already. None if single precision does not
/// suffice, or if the ridge needs eigenvalues.
pub(crate) fn solve(
    samples: &Polar,
    classes: &[usize],
    count: usize,
    ridge: Ridge,
    weights: Option<&[f64]>,
) -> Result<Option<Solution>, Error> {
    let n = samples.len();
    let largest = samples.energies().fold(0.0, f64::max);
    let floor = (n as f64 * f64::EPSILON * largest).max(f64::MIN_POSITIVE);
    let ridge = match ridge {
        Ridge::Fixed(ridge) => ridge,
        Ridge::GeometricMean => match mean::geometric_mean(samples)? {
            Some(ridge) => ridge,
            None => return Ok(None),
        },
        Ridge::Eigenvalue(_) | Ridge::LeaveOneOut => return Ok(None),
    };
    let ridge = ridge.max(floor);
    let shifted = Shifted::new(samples, ridge);
    let Some(factor) = shifted.factor()? else { return Ok(None) };
    // Scores are those of samples as they are.
    let longest = match weights {
        Some(weights) => samples.energies().zip(weights).map(|(energy, weight)| energy / weight).fold(0.0, f64::max),
        None => largest,
    };
    let roots: Vec<f64> = weights.map_or_else(|| vec![1.0; n], |weights| weights.iter().map(|w| w.sqrt()).collect());
    let Some(x) = shifted.coefficients(&factor, classes, count, &roots, SCORE / longest.sqrt()) else {
        return Ok(None);
    };
    let right = left_out::right(factor, x.as_ref(), classes, &shifted.inverse, &roots);
    let facts = Facts {
        kept: n,
        ridge,
        spectrum: None,
        cut: 0.0,
        train_mse: squared_norm((&x * faer::Scale(ridge)).as_ref())
            / weights.map_or(n as f64, |weights| weights.iter().sum()),
        train_mse_upper: 0.0,
        leave_one_out: Some(share(right.into_iter(), weights)),
    };
    let facts = Facts { train_mse_upper: facts.train_mse, ..facts };
    Ok(Some(Solution { coefficients: x, facts }))
}

/// `K + lambda I` with rows and columns divided by the roots of its diagonal.
struct Shifted<'a> {
    system: System<'a>,
    /// One over the roots.
    inverse: Vec<f64>,
}

impl<'a> Shifted<'a> {
    fn new(samples: &'a Polar, ridge: f64) -> Self {
        let inverse: Vec<f64> = samples.energies().map(|energy| 1.0 / (energy + ridge).sqrt()).collect();
        let scale = samples.lengths().iter().zip(&inverse).map(|(length, inverse)| length * inverse).collect();
        let shift = inverse.iter().map(|inverse| ridge * inverse * inverse).collect();
        Shifted { system: System { samples, scale, shift }, inverse }
    }

    /// Returns the factor; None if the matrix is not positive definite in single precision.
    fn factor(&self) -> Result<Option<Packed>, Error> {
        let mut packed = self.system.packed()?;
        Ok(packed.factorise().then_some(packed))
    }

    /// Returns `Y (K + lambda I)^-1`; None if the factor is too far from the matrix.
    fn coefficients(
        &self,
        factor: &Packed,
        classes: &[usize],
        count: usize,
        roots: &[f64],
        tolerance: f64,
    ) -> Option<Mat<f64>> {
        let mut b = Mat::<f64>::zeros(count, classes.len());
        classes.iter().enumerate().for_each(|(i, class)| b[(*class, i)] = roots[i] * self.inverse[i]);
        let (mut x, _) = self.system.solve(factor, &b, tolerance)?;
        for (column, inverse) in x.col_iter_mut().zip(&self.inverse) {
            column.iter_mut().for_each(|value| *value *= inverse);
        }
        Some(x)
    }
}

/// The share of a sample's energy outside the kept samples: `1 - k_x' (K + lambda I)^-1 k_x / k(x, x)`.
pub(crate) struct Outside {
    factor: Packed,
    inverse: Vec<f64>,
}

impl Outside {
    /// Factorises the kernel matrix; None if single precision does not suffice.
    pub fn new(samples: &Polar, ridge: f64) -> Result<Option<Self>, Error> {
        let shifted = Shifted::new(samples, ridge);
        Ok(shifted.factor()?.map(|factor| Outside { factor, inverse: shifted.inverse }))
    }

    /// Returns the shares of samples, from the kernel between the kept samples and them (n x m), and with themselves.
    pub fn shares(&self, mut known: Mat<f64>, energies: &[f64]) -> Vec<f64> {
        for column in known.col_iter_mut() {
            column.iter_mut().zip(&self.inverse).for_each(|(value, inverse)| *value *= inverse);
        }
        let mut inside: Mat<f32> = cast(known.transpose());
        self.factor.solve_lower(&mut inside);
        let mut squares = vec![0.0; energies.len()];
        for column in inside.col_iter() {
            squares.iter_mut().zip(column.iter()).for_each(|(sum, v)| *sum += f64::from(*v).powi(2));
        }
        let share =
            |(inside, energy): (f64, &f64)| if *energy > 0.0 { (1.0 - inside / energy).clamp(0.0, 1.0) } else { 0.0 };
        squares.into_iter().zip(energies).map(share).collect()
    }
}

#[cfg(test)]
mod tests;
