//! The second moments of each class, as a triangular factor: shared by methods that weigh or measure classes one by one.
//!
//! ```text
//! H_y H_y' = L L',   H_y 1 = L u        L: E x min(n_y, E), lower trapezoidal;   1: ones, so that L u / n_y is the mean
//! [ L H ] = L_new G',   u_new = G' [u; 1]        a batch H of the class, G orthogonal
//! ```
//!
//! L is a function of `H_y H_y'` alone, up to signs: neither order nor division of samples matters, and single samples
//! are not kept (unless a class has only one). Cost of a batch of m samples: `2 E (k + m)^2` flops for k columns of L.

use faer::{Mat, MatRef};
use rayon::prelude::*;

use crate::classifier::bytes_of;
use crate::scalar::Scalar;

/// The moments of one class.
pub(super) struct ClassFactor<T> {
    /// L, and below it u' as one more row: (E + 1) x k.
    factor: Mat<T>,
    count: usize,
}

impl<T: Scalar> ClassFactor<T> {
    /// Creates the moments of no samples.
    pub fn new(width: usize) -> Self {
        ClassFactor { factor: Mat::zeros(width + 1, 0), count: 0 }
    }

    /// Returns the number of samples, n_y.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns k, the number of columns of L: `min(n_y, E)`.
    pub fn rank(&self) -> usize {
        self.factor.ncols()
    }

    /// Returns L, E x k.
    pub fn factor(&self) -> MatRef<'_, T> {
        self.factor.as_ref().subrows(0, self.factor.nrows() - 1)
    }

    /// Returns u.
    pub fn ones(&self) -> Vec<f64> {
        self.factor.row(self.factor.nrows() - 1).iter().map(|v| v.to_f64()).collect()
    }

    /// Returns the trace of `H_y H_y'`.
    pub fn energy(&self) -> f64 {
        self.factor().col_iter().flat_map(|column| column.iter()).map(|v| v.to_f64() * v.to_f64()).sum()
    }

    /// Returns the bytes that it holds.
    pub fn bytes(&self) -> usize {
        bytes_of(&self.factor)
    }

    /// Adds the samples in some columns of `h`.
    fn absorb(&mut self, h: MatRef<'_, T>, columns: &[usize]) {
        let (width, old) = (h.nrows(), self.rank());
        let stacked = Mat::from_fn(old + columns.len(), width + 1, |i, j| match i.checked_sub(old) {
            None => self.factor[(j, i)],
            Some(i) if j < width => h[(j, columns[i])],
            Some(_) => T::from_f64(1.0),
        });
        // Of more rows than E the last one has nothing of L.
        let rank = stacked.nrows().min(width);
        let qr = stacked.qr();
        let r = qr.thin_R();
        let zero = T::from_f64(0.0);
        self.factor = Mat::from_fn(width + 1, rank, |j, i| if j >= i { r[(i, j)] } else { zero });
        self.count += columns.len();
    }
}

/// Adds a batch of samples (E x m) to the moments of their classes; there may be more classes than before.
pub(super) fn absorb<T: Scalar>(factors: &mut Vec<ClassFactor<T>>, h: MatRef<'_, T>, classes: &[usize]) {
    let count = classes.iter().map(|class| class + 1).max().unwrap_or(0).max(factors.len());
    factors.resize_with(count, || ClassFactor::new(h.nrows()));
    let mut columns = vec![Vec::new(); count];
    classes.iter().enumerate().for_each(|(sample, &class)| columns[class].push(sample));
    factors.par_iter_mut().zip(columns).filter(|(_, columns)| !columns.is_empty()).for_each(|(factor, columns)| {
        factor.absorb(h, &columns);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_in_parts_has_the_moments_of_all_samples() {
        for n in [1, 3, 7, 20] {
            let h = Mat::<f64>::from_fn(6, n, |i, j| (((i * 37 + j * 101) ^ (i * j + 13)) % 1009) as f64 / 504.5 - 1.0);
            let mut factors = Vec::new();
            for first in (0..n).step_by(3) {
                let part = h.as_ref().subcols(first, 3.min(n - first));
                absorb(&mut factors, part, &vec![1; part.ncols()]);
            }
            let factor: &ClassFactor<f64> = &factors[1];
            assert_eq!((factors[0].count(), factor.count(), factor.rank()), (0, n, n.min(6)));
            let l = factor.factor();
            assert!((l * l.transpose() - &h * h.transpose()).norm_max() < 1e-12, "{n} samples");
            let u = Mat::from_fn(n.min(6), 1, |i, _| factor.ones()[i]);
            assert!((l * u - &h * Mat::<f64>::ones(n, 1)).norm_max() < 1e-12, "{n} samples");
            assert!((factor.energy() - h.squared_norm_l2()).abs() < 1e-12 * h.squared_norm_l2());
        }
    }
}
