//! The least-squares problem behind a classifier, in primal and dual form.
//!
//! ```text
//! primal, in a basis       X = N f(S)       W = X Q'      b_j = |N v_j|^2
//! dual, between samples    A = Y f(K)       W = A H'      b_j = mu_j |Y v_j|^2
//! ```
//!
//! with `f` the filter. K has the eigenvalues of S, so that one type serves both.

use faer::Mat;

use super::geometric_mean::geometric_mean;
use super::{Facts, Filter, Ridge, Solution};
use crate::error::Error;
use crate::gram::Gram;
use crate::linalg::squared_norm;
use crate::spectrum::{Spectrum, floor, rounding};
use crate::truncation::Truncation;

/// A least-squares problem.
pub(crate) struct Problem<'a> {
    /// S or K.
    pub gram: &'a mut Gram,
    /// N or Y, with a class in each row.
    pub targets: &'a Mat<f64>,
    /// Which of the two forms.
    pub side: Side<'a>,
    /// Limits on the kept directions.
    pub limits: Limits,
    /// `|Y|^2 / M` of all samples.
    pub labelled: f64,
}

/// The two forms of the problem.
pub(crate) enum Side<'a> {
    /// In the coordinates of a basis.
    Primal {
        /// The matrix that is filtered instead of N: `J Q` as a rounded product, for the literal minimum-norm solution.
        filtered: Option<Mat<f64>>,
    },
    /// Between samples.
    Dual {
        /// The class of each sample, if K has a row for every sample: leave-one-out scores need it.
        classes: Option<&'a [usize]>,
        /// The weight of each sample, unless all are 1.
        weights: Option<&'a [f64]>,
    },
}

/// The quantities besides the filter that determine how many directions are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// E, or the rows of K.
    pub width: usize,
    /// M; K may have fewer rows.
    pub samples: usize,
    /// The sum of their weights.
    pub mass: f64,
    /// r_max.
    pub max_rank: usize,
    /// Whether null directions are kept.
    pub keep_null: bool,
    /// Whether S is in fixed point.
    pub on_grid: bool,
}

impl Problem<'_> {
    /// Solves for the filtered coefficients, and establishes the facts about them.
    pub fn solve(mut self, filter: Filter) -> Result<Solution, Error> {
        let mut x = match &mut self.side {
            Side::Primal { filtered } => filtered.take().unwrap_or_else(|| self.targets.clone()),
            Side::Dual { .. } => self.targets.clone(),
        };
        let mut facts = match filter {
            Filter::Hard { truncation, ridge } => self.hard(&mut x, truncation, ridge)?,
            Filter::Soft(ridge) => {
                let ridge = self.ridge(ridge)?;
                let ((), ridge) = self.raising(ridge, |gram, ridge| gram.solve(&mut x, ridge))?;
                Facts {
                    kept: x.ncols(),
                    ridge,
                    spectrum: None,
                    cut: 0.0,
                    train_mse: self.labelled - self.fitted(&x, ridge) / self.limits.mass,
                    train_mse_upper: 0.0,
                    leave_one_out: self.left_out(&x)?,
                }
            }
        };
        if let Side::Dual { .. } = self.side {
            facts.train_mse = facts.train_mse.max(0.0);
            facts.train_mse_upper = facts.train_mse;
        }
        Ok(Solution { coefficients: x, facts })
    }

    /// Computes `|Y|^2 - |W H - Y|^2` for the soft filter.
    fn fitted(&self, x: &Mat<f64>, ridge: f64) -> f64 {
        match self.side {
            Side::Primal { .. } => {
                let fitted: f64 = (0..x.ncols()).map(|j| x.col(j).transpose() * self.targets.col(j)).sum();
                fitted + ridge * squared_norm(x.as_ref())
            }
            Side::Dual { .. } => {
                // Y - X K = lambda X, multiplied before it is squared: lambda^2 of samples without energy is zero.
                let residual: f64 = x.col_iter().flat_map(|x| x.iter()).map(|v| (ridge * v).powi(2)).sum();
                squared_norm(self.targets.as_ref()) - residual
            }
        }
    }

    /// Computes `X = N V_k (diag(mu_k) + lambda)^-1 V_k'`, in place of N.
    fn hard(&mut self, x: &mut Mat<f64>, truncation: Truncation, ridge: f64) -> Result<Facts, Error> {
        let (limits, labelled) = (self.limits, self.labelled);
        let dual = matches!(self.side, Side::Dual { .. });
        let along = |mu: f64, energy: f64| if dual { mu.max(0.0) * energy } else { energy };
        let mut facts = None;
        self.gram.apply_function(x, |mu, energy| {
            let k = limits.kept(mu, truncation);
            let at = |j: usize| value(mu, j) + ridge;
            let fitted: f64 = (0..k).map(|j| along(mu[j], energy[j]) * (at(j) + ridge) / (at(j) * at(j))).sum();
            facts = Some(Facts {
                kept: k,
                ridge,
                spectrum: Spectrum::of(mu, k).map(|s| Spectrum { smallest_kept: value(mu, k - 1), ..s }),
                cut: mu.get(k).copied().filter(|value| *value > rounding(mu)).unwrap_or(0.0),
                train_mse: labelled - fitted / limits.mass,
                train_mse_upper: 0.0,
                leave_one_out: None,
            });
            (0..mu.len()).map(|j| if j < k { 1.0 / at(j) } else { 0.0 }).collect()
        })?;
        facts.ok_or(Error::Eigen { rank: x.ncols() })
    }

    /// Returns lambda of the soft filter, never below the rounding of S or K.
    fn ridge(&mut self, ridge: Ridge) -> Result<f64, Error> {
        let floor = self.gram.rounding_floor().max(f64::MIN_POSITIVE);
        if self.gram.rank() == 0 {
            return Ok(floor);
        }
        let ridge = match (ridge, &self.side) {
            (Ridge::Fixed(ridge), _) => ridge,
            (Ridge::Eigenvalue(truncation), _) => {
                let mu = self.gram.eigenvalues()?;
                self.limits.kept(&mu, truncation).checked_sub(1).map_or(floor, |last| mu[last])
            }
            (Ridge::LeaveOneOut, Side::Dual { classes: Some(_), .. }) => return self.best_ridge(floor),
            // Evicted samples cannot be left out.
            (Ridge::GeometricMean | Ridge::LeaveOneOut, _) => self.geometric_mean(floor)?,
        };
        Ok(ridge.max(floor))
    }

    /// Calls `f` with a ridge that makes S definite. Where S is in fixed point, many roundings may have added more than the floor
    /// below which no ridge is tried, and a larger one is needed. Returns it as well.
    fn raising<R>(
        &mut self,
        ridge: f64,
        mut f: impl FnMut(&mut Gram, f64) -> Result<R, Error>,
    ) -> Result<(R, f64), Error> {
        let attempts = if self.gram.is_on_grid() { 16 } else { 1 };
        let mut ridges = (0..attempts).map(|attempt| ridge * 4f64.powi(attempt)).peekable();
        loop {
            let ridge = ridges.next().unwrap_or(ridge);
            match f(self.gram, ridge) {
                Err(Error::NotPositiveDefinite { .. }) if ridges.peek().is_some() => {}
                outcome => return outcome.map(|value| (value, ridge)),
            }
        }
    }

    fn geometric_mean(&mut self, floor: f64) -> Result<f64, Error> {
        match self.side {
            Side::Primal { .. } => {
                // The basis has no null directions, except for features that were never active.
                let dead = self.gram.zeros_on_diagonal();
                let left = self.gram.rank() - dead;
                let (log, floor) = self.raising(floor, Gram::log_det)?;
                let log = log - dead as f64 * floor.ln();
                Ok(if left == 0 { floor } else { (log / left as f64).exp() })
            }
            Side::Dual { .. } => Ok(geometric_mean(self.gram)?.unwrap_or(floor)),
        }
    }

    /// Returns the ridge with the best leave-one-out accuracy among decades around the geometric mean, and then among
    /// half decades around the best. On ties, the one closest to the geometric mean wins.
    fn best_ridge(&mut self, floor: f64) -> Result<f64, Error> {
        let middle = self.geometric_mean(floor)?.max(floor);
        let at = |half_decades: i32| (middle * 10f64.powf(f64::from(half_decades) / 2.0)).max(floor);
        let mut tried: Vec<(i32, f64)> = Vec::new();
        let attempt = |problem: &mut Self, place: i32, tried: &mut Vec<(i32, f64)>| -> Result<(), Error> {
            let mut x = problem.targets.clone();
            problem.gram.solve(&mut x, at(place))?;
            tried.push((place, problem.left_out(&x)?.unwrap_or(0.0)));
            Ok(())
        };
        let best = |tried: &[(i32, f64)]| {
            let order = |a: &&(i32, f64), b: &&(i32, f64)| a.1.total_cmp(&b.1).then(b.0.abs().cmp(&a.0.abs()));
            tried.iter().max_by(order).map_or(0, |(place, _)| *place)
        };
        for place in [0, 2, -2, 4, -4, 6, -6] {
            attempt(self, place, &mut tried)?;
        }
        let decade = best(&tried);
        for place in [decade - 1, decade + 1] {
            attempt(self, place, &mut tried)?;
        }
        Ok(at(best(&tried)))
    }

    /// Returns the leave-one-out accuracy of the soft filter for `x = Y (K + lambda I)^-1`, whose factor K still holds:
    /// without sample i, the scores of sample i are `y_i - x_i / (K + lambda I)^-1_ii`, for the same lambda.
    fn left_out(&mut self, x: &Mat<f64>) -> Result<Option<f64>, Error> {
        let Side::Dual { classes: Some(classes), weights } = self.side else { return Ok(None) };
        let diagonal = self.gram.inverse_diagonal();
        let scores = left_out_scores(self.targets, x, &diagonal);
        let right = classes.iter().enumerate().map(|(i, class)| {
            let best = (0..scores.nrows()).fold(0, |best, c| if scores[(c, i)] > scores[(best, i)] { c } else { best });
            best == *class
        });
        Ok(Some(share(right, weights)))
    }
}

/// Returns the share of samples, by weight, for which something is true.
pub(crate) fn share(right: impl ExactSizeIterator<Item = bool>, weights: Option<&[f64]>) -> f64 {
    let Some(weights) = weights else {
        let all = right.len() as f64;
        return right.filter(|right| *right).count() as f64 / all;
    };
    right.zip(weights).filter(|(right, _)| *right).map(|(_, weight)| weight).sum::<f64>() / weights.iter().sum::<f64>()
}

/// Returns the scores of each sample by the classifier that is formed without it, c x n.
pub(crate) fn left_out_scores(labels: &Mat<f64>, x: &Mat<f64>, diagonal: &[f64]) -> Mat<f64> {
    Mat::from_fn(x.nrows(), x.ncols(), |c, i| labels[(c, i)] - x[(c, i)] / diagonal[i])
}

impl Limits {
    /// Returns how many of these eigenvalues, in descending order, a truncation keeps.
    pub fn kept(&self, mu: &[f64], truncation: Truncation) -> usize {
        let k = truncation.kept(mu, self.width, self.samples, self.max_rank);
        if self.keep_null {
            return k;
        }
        let noise = match self.on_grid {
            true => rounding(mu).max(Gram::grid_noise(mu.len(), mu.iter().sum())),
            false => rounding(mu),
        };
        k.min(mu.iter().take_while(|&&v| v > noise).count())
    }
}

/// Returns the value that the hard filter divides by.
pub(super) fn value(mu: &[f64], j: usize) -> f64 {
    mu[j].max(floor(mu)).max(f64::MIN_POSITIVE)
}
