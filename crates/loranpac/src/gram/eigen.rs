//! The spectrum of S, and functions of S.

use std::ops::Range;

use faer::{Mat, MatRef, Side};

use super::Gram;
use crate::divide::Divided;
use crate::error::Error;
use crate::shifted::Shifted;
use crate::tridiagonal::{self, Reduced};

/// `S = V diag(values) V'` with the values in descending order.
pub struct Eigen {
    /// Eigenvalues, largest first.
    pub values: Vec<f64>,
    /// Eigenvectors, one per column.
    pub vectors: Mat<f64>,
}

/// `S = V diag(values) V'`, of which eigenvectors are computed as they are asked for.
pub(crate) struct Decomposition<'a> {
    values: Vec<f64>,
    vectors: Vectors<'a>,
}

enum Vectors<'a> {
    /// S holds a part of the reduction in its lower triangle.
    Reduced(&'a Gram, Box<Reduced>, Box<Divided>),
    /// One per column.
    Whole(Mat<f64>),
}

impl Decomposition<'_> {
    /// Returns the eigenvalues, largest first.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns the eigenvectors of a range of eigenvalues, one per row. Cost: `5 r^2` flops each, all of it products with
    /// matrices that are read once for many of them.
    pub fn rows(&self, range: Range<usize>) -> Mat<f64> {
        match &self.vectors {
            Vectors::Whole(vectors) => vectors.subcols(range.start, range.len()).transpose().to_owned(),
            Vectors::Reduced(gram, reduced, divided) => {
                let mut of_t = Mat::zeros(self.values.len(), range.len());
                divided.vectors(range, of_t.as_mut());
                reduced.eigenvectors(gram.view(), of_t.as_ref())
            }
        }
    }
}

impl Gram {
    /// Computes the spectrum of S: `4/3 r^3` flops for the reduction to a tridiagonal matrix and `r^3 / 3` for what its
    /// eigenvectors are computed from, which takes a square of r besides S.
    ///
    /// The algorithms, in order: divide and conquer after a reduction in two stages on S scaled to 1, faer's divide and conquer,
    /// faer's SVD (equivalent for a semidefinite matrix), and then a typed error.
    pub(crate) fn decompose(&mut self) -> Result<Decomposition<'_>, Error> {
        let rank = self.rank();
        let (scale, trace) = (self.scale(), self.trace());
        let trusted = |values: &[f64]| (values.iter().sum::<f64>() - trace / scale).abs() <= 1e-8 * rank as f64;
        let reduced = self.reduce();
        match Divided::new(reduced.tridiagonal()) {
            Ok(divided) if trusted(divided.values()) => {
                let values = divided.values().iter().map(|v| v * scale).collect();
                Ok(Decomposition { values, vectors: Vectors::Reduced(self, Box::new(reduced), Box::new(divided)) })
            }
            _ => {
                let Eigen { values, vectors } = self.decompose_otherwise()?;
                Ok(Decomposition { values, vectors: Vectors::Whole(vectors) })
            }
        }
    }

    /// Computes the full eigendecomposition. Needs about four r x r matrices while it runs.
    pub fn eigen(&mut self) -> Result<Eigen, Error> {
        const STRIP: usize = 512;
        let decomposition = self.decompose()?;
        if let Vectors::Whole(vectors) = decomposition.vectors {
            return Ok(Eigen { values: decomposition.values, vectors });
        }
        let rank = decomposition.values.len();
        let mut vectors = Mat::zeros(rank, rank);
        for first in (0..rank).step_by(STRIP) {
            let range = first..rank.min(first + STRIP);
            let rows = decomposition.rows(range.clone());
            vectors.as_mut().subcols_mut(first, range.len()).copy_from(rows.transpose());
        }
        Ok(Eigen { values: decomposition.values, vectors })
    }

    fn decompose_otherwise(&mut self) -> Result<Eigen, Error> {
        let rank = self.rank();
        let scale = self.scale();
        self.load_lower(1.0 / scale, 0.0);
        let s = self.view();
        let trusted = |values: &[f64], vectors: MatRef<'_, f64>| {
            let trace: f64 = values.iter().sum();
            (trace - self.trace() / scale).abs() < 1e-8 * rank as f64 && vectors.norm_max() <= 1.0 + 1e-8
        };
        if let Ok(evd) = s.self_adjoint_eigen(Side::Lower) {
            let values: Vec<f64> = evd.S().column_vector().iter().rev().map(|v| v * scale).collect();
            if trusted(&values.iter().map(|v| v / scale).collect::<Vec<_>>(), evd.U()) {
                return Ok(Eigen { values, vectors: evd.U().reverse_cols().to_owned() });
            }
        }
        if let Ok(svd) = self.to_matrix().svd() {
            let values: Vec<f64> = svd.S().column_vector().iter().copied().collect();
            let relative: Vec<f64> = values.iter().map(|v| v / scale).collect();
            if trusted(&relative, svd.U()) {
                return Ok(Eigen { values, vectors: svd.U().to_owned() });
            }
        }
        Err(Error::Eigen { rank })
    }

    /// Returns the eigenvalues in descending order.
    pub fn eigenvalues(&mut self) -> Result<Vec<f64>, Error> {
        let scale = self.scale();
        self.load_lower(1.0 / scale, 0.0);
        match tridiagonal::eigenvalues(self.view_mut()) {
            Ok(values) => Ok(values.into_iter().map(|v| v * scale).collect()),
            Err(_) => Ok(self.eigen()?.values),
        }
    }

    /// Computes `B <- B f(S)`. `f` receives the eigenvalues in descending order and the energy of B along each
    /// eigenvector, and returns its value at each. Memory: O(r) per row of B.
    pub fn apply_function(
        &mut self,
        b: &mut Mat<f64>,
        f: impl FnOnce(&[f64], &[f64]) -> Vec<f64>,
    ) -> Result<(), Error> {
        let reduced = self.reduce();
        self.apply_reduced(&reduced, b, f)
    }

    /// Reduces S to a tridiagonal matrix, for [`Gram::apply_reduced`]. The lower triangle holds a part of the result
    /// until the next factorisation.
    pub(crate) fn reduce(&mut self) -> Reduced {
        self.load_lower(1.0 / self.scale(), 0.0);
        Reduced::new(self.view_mut())
    }

    /// Computes `B <- B f(S)` as [`Gram::apply_function`], by the result of [`Gram::reduce`].
    pub(crate) fn apply_reduced(
        &self,
        reduced: &Reduced,
        b: &mut Mat<f64>,
        f: impl FnOnce(&[f64], &[f64]) -> Vec<f64>,
    ) -> Result<(), Error> {
        let scale = self.scale();
        let mut f = Some(f);
        let mut attempt = b.clone();
        let done = reduced.apply_function(self.view(), attempt.as_mut(), |values, energies| {
            let values: Vec<f64> = values.iter().map(|v| v * scale).collect();
            f.take().map_or_else(|| vec![0.0; values.len()], |f| f(&values, energies))
        });
        if done.is_ok() {
            *b = attempt;
            return Ok(());
        }
        // The QL iteration fails before it calls f, so f is available for the fallback.
        let f = f.ok_or(Error::Eigen { rank: self.rank() })?;
        let Eigen { values, vectors } = self.clone().eigen()?;
        let mut rotated = &*b * &vectors;
        let energies: Vec<f64> = (0..values.len()).map(|j| rotated.col(j).squared_norm_l2()).collect();
        for (j, weight) in f(&values, &energies).into_iter().enumerate() {
            rotated.col_mut(j).iter_mut().for_each(|v| *v *= weight);
        }
        *b = rotated * vectors.transpose();
        Ok(())
    }

    /// Prepares `left (S + shift I)^-1 right` for many shifts, by one reduction. `left` is v x r, `right` r x c.
    pub(crate) fn shifted(&mut self, left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Shifted {
        self.load_lower(1.0, 0.0);
        Shifted::new(self.view_mut(), left, right)
    }
}
