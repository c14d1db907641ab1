//! From the statistics to the classifier: the two filters on the spectrum of S.
//!
//! ```text
//! hard   W = N V_k (diag(mu_k) + lambda I)^-1 V_k' Q'     the paper (equation Wt-output-ITSVD), lambda = 0
//! soft   W = N (S + lambda I)^-1 Q',  lambda = det(S)^(1/r)
//! ```
//!
//! Both give `W = X Q'` with X of size c x r, and the training error without data: with `b_j = |N v_j|^2`,
//! `|W H - Y|^2 = |Y|^2 - sum over kept j of b_j (mu_j + 2 lambda) / (mu_j + lambda)^2`, and `|Y|^2 = M` unless a class was
//! forgotten.

use faer::{Mat, Scale};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::gram::Gram;
use crate::linalg::squared_norm;
use crate::scalar::Scalar;
use crate::statistics::Statistics;
use crate::truncation::Truncation;

/// How the spectrum of S is filtered when the classifier is formed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filter {
    /// Keep k directions and drop the rest; `ridge` is added to the kept eigenvalues.
    Hard {
        /// How many to keep.
        truncation: Truncation,
        /// lambda, usually 0.
        ridge: f64,
    },
    /// Keep all directions and add a ridge.
    Soft(Ridge),
}

/// Where the soft filter's lambda comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ridge {
    /// `det(S)^(1/r)`: scale-free, nothing to choose.
    GeometricMean,
    /// This number.
    Fixed(f64),
    /// The eigenvalue at which the hard filter would cut.
    Eigenvalue(Truncation),
    /// The best of six decades around the geometric mean, by leave-one-out accuracy: infinite width only.
    LeaveOneOut,
}

impl Default for Filter {
    fn default() -> Self {
        Filter::Hard { truncation: Truncation::default(), ridge: 0.0 }
    }
}

impl Filter {
    /// Checks the parameters.
    pub fn validate(self) -> Result<Self, Error> {
        let ridge = match self {
            Filter::Hard { truncation, ridge } => {
                truncation.validate()?;
                ridge
            }
            Filter::Soft(Ridge::Fixed(ridge)) => ridge,
            Filter::Soft(Ridge::Eigenvalue(truncation)) => {
                truncation.validate()?;
                0.0
            }
            Filter::Soft(Ridge::GeometricMean | Ridge::LeaveOneOut) => 0.0,
        };
        if ridge >= 0.0 && ridge.is_finite() {
            return Ok(self);
        }
        Err(Error::setting("ridge", ridge, "it must be a number >= 0"))
    }
}

/// The classifier in the coordinates of the basis, and what is known about it.
pub struct Solution {
    /// X: `W = X Q'`, c x r.
    pub coefficients: Mat<f64>,
    /// What forming it showed.
    pub facts: Facts,
}

/// What forming the classifier showed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Directions kept, k.
    pub kept: usize,
    /// lambda.
    pub ridge: f64,
    /// The spectrum of S in a few numbers, where it was computed and something was kept.
    pub spectrum: Option<Spectrum>,
    /// mu_{k+1}, the largest that this classifier leaves out.
    pub cut: f64,
    /// Training MSE `|W H - Y|^2 / M`: at least this, and exactly this while nothing was lost.
    pub train_mse: f64,
    /// ... and at most this: `train_mse + lost |W|^2 / M`.
    pub train_mse_upper: f64,
    /// The share of samples that a classifier without them would get right, where the samples are at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leave_one_out: Option<f64>,
}

/// The spectrum of S in a few numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spectrum {
    /// mu_1.
    pub largest: f64,
    /// mu_k, the smallest kept.
    pub smallest_kept: f64,
    /// The smallest that is more than rounding.
    pub smallest: f64,
    /// The sum of all.
    pub sum: f64,
    /// The sum from mu_k on.
    pub sum_from_kept: f64,
}

impl Spectrum {
    /// Of eigenvalues in descending order of which k are kept; none if k = 0.
    pub fn of(mu: &[f64], k: usize) -> Option<Spectrum> {
        let (&largest, &smallest_kept) = (mu.first()?, mu.get(k.checked_sub(1)?)?);
        let rounding = rounding(mu);
        let smallest = mu.iter().copied().take_while(|value| *value > rounding).last().unwrap_or(largest);
        let sum = |part: &[f64]| part.iter().map(|value| value.max(0.0)).sum();
        Some(Spectrum { largest, smallest_kept, smallest, sum: sum(mu), sum_from_kept: sum(&mu[k - 1..]) })
    }
}

/// Forms the classifier. `max_rank` is the paper's r_max.
pub fn solve<T: Scalar>(stats: &mut Statistics<T>, filter: Filter, max_rank: usize) -> Result<Solution, Error> {
    if stats.samples() == 0 {
        return Err(Error::NothingLearned);
    }
    // Without dropping, J U is formed as the paper forms it: a rounded product, noise and all. The N that the
    // statistics keep up to date has exact zeros along null directions, and would hide the collapse.
    let literal = stats.keeps_null_directions();
    let mut x = if literal { stats.project_label_sums() } else { stats.cross().clone() };
    let (samples, labelled) = (stats.samples() as f64, stats.labelled());
    let mut facts = match filter {
        Filter::Hard { truncation, ridge } => {
            let selection = Selection::new(stats, truncation, max_rank);
            hard(stats.gram(), &mut x, selection, ridge, labelled, |_, energy| energy)?
        }
        Filter::Soft(_) => {
            let ridge = soft_ridge(stats, filter, max_rank)?;
            stats.gram().solve(&mut x, ridge)?;
            let fitted: f64 = (0..x.ncols()).map(|j| x.col(j).transpose() * stats.cross().col(j)).sum();
            Facts {
                kept: x.ncols(),
                ridge,
                spectrum: None,
                cut: 0.0,
                train_mse: labelled - (fitted + ridge * squared_norm(x.as_ref())) / samples,
                train_mse_upper: 0.0,
                leave_one_out: None,
            }
        }
    };
    if literal {
        // |W H - Y|^2 = tr(X S X') - 2 tr(X N') + |Y|^2, whatever X is.
        let (curved, n) = (&x * stats.gram().to_matrix(), stats.cross());
        let error: f64 = (0..x.ncols()).map(|j| x.col(j).transpose() * (curved.col(j) - n.col(j) * Scale(2.0))).sum();
        facts.train_mse = labelled + error / samples;
    }
    // What the latest task's cut removed is orthogonal to the directions that W uses, and costs nothing here.
    let lost = stats.losses().lost;
    facts.train_mse_upper = (facts.train_mse + lost * squared_norm(x.as_ref()) / samples).max(0.0);
    facts.train_mse = facts.train_mse.max(0.0);
    Ok(Solution { coefficients: x, facts })
}

/// X = N V_k (diag(mu_k) + lambda)^-1 V_k', in place of N. `along` turns the energy of what is filtered along an eigenvector
/// into that of N.
fn hard(
    gram: &mut Gram,
    x: &mut Mat<f64>,
    selection: Selection,
    ridge: f64,
    labelled: f64,
    along: fn(f64, f64) -> f64,
) -> Result<Facts, Error> {
    let mut facts = None;
    gram.apply_function(x, |mu, energy| {
        let k = selection.kept(mu);
        let at = |j: usize| selection.value(mu, j) + ridge;
        let fitted: f64 = (0..k).map(|j| along(mu[j], energy[j]) * (at(j) + ridge) / (at(j) * at(j))).sum();
        facts = Some(Facts {
            kept: k,
            ridge,
            spectrum: Spectrum::of(mu, k).map(|s| Spectrum { smallest_kept: selection.value(mu, k - 1), ..s }),
            cut: mu.get(k).copied().filter(|value| *value > rounding(mu)).unwrap_or(0.0),
            train_mse: labelled - fitted / selection.samples as f64,
            train_mse_upper: 0.0,
            leave_one_out: None,
        });
        (0..mu.len()).map(|j| if j < k { 1.0 / at(j) } else { 0.0 }).collect()
    })?;
    facts.ok_or(Error::Eigen { rank: x.ncols() })
}

/// The same problem seen from the samples: a kernel matrix `K = H'H` instead of `S`, and the labels Y instead of N.
///
/// ```text
/// hard   A = Y V_k (diag(mu_k) + lambda I)^-1 V_k'      soft   A = Y (K + lambda I)^-1      W = A H'
/// ```
///
/// K has the eigenvalues of S, and `b_j = mu_j |Y v_j|^2`.
pub(crate) struct Dual<'a> {
    /// K.
    pub kernel: &'a mut Gram,
    /// Y, c x n.
    pub labels: &'a Mat<f64>,
    /// The class of each sample, where K has a row for every sample: they are left out one by one then.
    pub classes: Option<&'a [usize]>,
    /// M; K may have fewer rows.
    pub samples: usize,
    /// `|Y|^2 / M` of all samples.
    pub labelled: f64,
    /// r_max.
    pub max_rank: usize,
}

impl Dual<'_> {
    /// Forms A, and what is known about it.
    pub(crate) fn solve(&mut self, filter: Filter) -> Result<Solution, Error> {
        let mut x = self.labels.clone();
        let samples = self.samples as f64;
        let mut facts = match filter {
            Filter::Hard { truncation, ridge } => {
                let selection = self.selection(truncation);
                hard(self.kernel, &mut x, selection, ridge, self.labelled, |mu, energy| mu.max(0.0) * energy)?
            }
            Filter::Soft(ridge) => {
                let ridge = self.ridge(ridge)?;
                self.kernel.solve(&mut x, ridge)?;
                // Y - X K = lambda X, multiplied before it is squared: lambda^2 of samples without energy is zero.
                let residual: f64 = x.col_iter().flat_map(|x| x.iter()).map(|v| (ridge * v).powi(2)).sum();
                let unfitted = squared_norm(self.labels.as_ref()) - residual;
                Facts {
                    kept: x.ncols(),
                    ridge,
                    spectrum: None,
                    cut: 0.0,
                    train_mse: self.labelled - unfitted / samples,
                    train_mse_upper: 0.0,
                    leave_one_out: self.left_out(&x)?,
                }
            }
        };
        facts.train_mse = facts.train_mse.max(0.0);
        facts.train_mse_upper = facts.train_mse;
        Ok(Solution { coefficients: x, facts })
    }

    /// The share of a sample's energy outside the directions that the classifier uses, given its kernel with the others.
    pub(crate) fn novelty(
        &mut self,
        filter: Filter,
        ridge: f64,
        known: Mat<f64>,
        energies: &[f64],
    ) -> Result<Vec<f64>, Error> {
        let mut inside = known.clone();
        match filter {
            Filter::Hard { truncation, .. } => {
                let selection = self.selection(truncation);
                self.kernel.apply_function(&mut inside, |mu, _| {
                    let k = selection.kept(mu);
                    (0..mu.len()).map(|j| if j < k { 1.0 / selection.value(mu, j) } else { 0.0 }).collect()
                })?;
            }
            Filter::Soft(_) => self.kernel.solve(&mut inside, ridge)?,
        }
        Ok(outside(&known, &inside, energies))
    }

    fn selection(&self, truncation: Truncation) -> Selection {
        // Beyond a cap there are more samples than rows, and it is a share of the rows that is cut.
        let (width, samples, max_rank) = (self.kernel.rank(), self.samples, self.max_rank);
        Selection { truncation, width, samples, max_rank, keep_null: false }
    }

    /// lambda of the soft filter, never below the rounding of K.
    fn ridge(&mut self, ridge: Ridge) -> Result<f64, Error> {
        let floor = self.kernel.rounding_floor().max(f64::MIN_POSITIVE);
        let ridge = match ridge {
            Ridge::Fixed(ridge) => ridge,
            Ridge::Eigenvalue(truncation) => {
                let selection = self.selection(truncation);
                let mu = self.kernel.eigenvalues()?;
                selection.kept(&mu).checked_sub(1).map_or(floor, |last| mu[last])
            }
            Ridge::LeaveOneOut if self.classes.is_some() => return self.best_ridge(floor),
            // Samples that are gone cannot be left out.
            Ridge::GeometricMean | Ridge::LeaveOneOut => self.kernel.geometric_mean()?.unwrap_or(floor),
        };
        Ok(ridge.max(floor))
    }

    /// The ridge with the best leave-one-out accuracy among decades around the geometric mean, and then among half
    /// decades around the best. The one closest to the geometric mean wins among equals.
    fn best_ridge(&mut self, floor: f64) -> Result<f64, Error> {
        let middle = self.kernel.geometric_mean()?.unwrap_or(floor).max(floor);
        let at = |half_decades: i32| (middle * 10f64.powf(f64::from(half_decades) / 2.0)).max(floor);
        let mut tried: Vec<(i32, f64)> = Vec::new();
        let attempt = |dual: &mut Self, place: i32, tried: &mut Vec<(i32, f64)>| -> Result<(), Error> {
            let mut x = dual.labels.clone();
            dual.kernel.solve(&mut x, at(place))?;
            tried.push((place, dual.left_out(&x)?.unwrap_or(0.0)));
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

    /// Leave-one-out accuracy of the soft filter for `x = Y (K + lambda I)^-1`, whose factor is still there: without sample
    /// i, the scores of sample i are `y_i - x_i / (K + lambda I)^-1_ii`, for the same lambda.
    fn left_out(&mut self, x: &Mat<f64>) -> Result<Option<f64>, Error> {
        let Some(classes) = self.classes else { return Ok(None) };
        let diagonal = self.kernel.inverse_diagonal();
        let scores = left_out_scores(self.labels, x, &diagonal);
        let right = classes.iter().enumerate().filter(|(i, class)| {
            let best =
                (0..scores.nrows()).fold(0, |best, c| if scores[(c, *i)] > scores[(best, *i)] { c } else { best });
            best == **class
        });
        Ok(Some(right.count() as f64 / classes.len() as f64))
    }
}

/// The scores of each sample by the classifier that is formed without it, c x n.
pub(crate) fn left_out_scores(labels: &Mat<f64>, x: &Mat<f64>, diagonal: &[f64]) -> Mat<f64> {
    Mat::from_fn(x.nrows(), x.ncols(), |c, i| labels[(c, i)] - x[(c, i)] / diagonal[i])
}

/// Eigenvalues of at most this are rounding of the matrix whose spectrum, in descending order, this is.
pub(crate) fn rounding(mu: &[f64]) -> f64 {
    Selection::floor(mu) * mu.len() as f64
}

/// Which eigenvalues the hard filter keeps, and what it divides by.
#[derive(Clone, Copy)]
struct Selection {
    truncation: Truncation,
    width: usize,
    samples: usize,
    max_rank: usize,
    keep_null: bool,
}

impl Selection {
    fn new<T: Scalar>(stats: &Statistics<T>, truncation: Truncation, max_rank: usize) -> Self {
        Selection {
            truncation,
            width: stats.basis().width(),
            samples: stats.samples(),
            max_rank,
            keep_null: stats.keeps_null_directions(),
        }
    }

    /// Eigenvalues below this are rounding noise of S itself.
    fn floor(mu: &[f64]) -> f64 {
        mu.first().map_or(0.0, |largest| largest * f64::EPSILON)
    }

    fn kept(&self, mu: &[f64]) -> usize {
        let k = self.truncation.kept(mu, self.width, self.samples, self.max_rank);
        if self.keep_null {
            return k;
        }
        k.min(mu.iter().take_while(|&&v| v > rounding(mu)).count())
    }

    fn value(&self, mu: &[f64], j: usize) -> f64 {
        mu[j].max(Self::floor(mu)).max(f64::MIN_POSITIVE)
    }
}

/// lambda of the soft filter, never below the rounding of S.
fn soft_ridge<T: Scalar>(stats: &mut Statistics<T>, filter: Filter, max_rank: usize) -> Result<f64, Error> {
    let floor = stats.gram().rounding_floor().max(f64::MIN_POSITIVE);
    let rank = stats.gram().rank();
    let ridge = match filter {
        _ if rank == 0 => floor,
        Filter::Soft(Ridge::Fixed(ridge)) => ridge,
        Filter::Soft(Ridge::Eigenvalue(truncation)) => {
            let selection = Selection::new(stats, truncation, max_rank);
            let mu = stats.gram().eigenvalues()?;
            selection.kept(&mu).checked_sub(1).map_or(floor, |last| mu[last])
        }
        _ => (stats.gram().log_det(floor)? / rank as f64).exp(),
    };
    Ok(ridge.max(floor))
}

/// The share of each sample's energy outside the directions that the classifier uses: 0 is familiar, 1 is new.
///
/// Hard: `1 - |V_k' Q' h|^2 / |h|^2`. Soft: `1 - (Q'h)' S (S + lambda I)^-1 (Q'h) / |h|^2`. `projected` is `H' Q`.
pub fn novelty<T: Scalar>(
    stats: &mut Statistics<T>,
    filter: Filter,
    max_rank: usize,
    projected: Mat<f64>,
    squared_norms: &[f64],
) -> Result<Vec<f64>, Error> {
    let mut inside = projected.clone();
    match filter {
        Filter::Hard { truncation, .. } => {
            let selection = Selection::new(stats, truncation, max_rank);
            stats.gram().apply_function(&mut inside, |mu, _| {
                let k = selection.kept(mu);
                (0..mu.len()).map(|j| if j < k { 1.0 } else { 0.0 }).collect()
            })?;
        }
        Filter::Soft(_) => {
            let ridge = soft_ridge(stats, filter, max_rank)?;
            stats.gram().solve(&mut inside, ridge)?;
            inside = &projected - inside * ridge;
        }
    }
    Ok(outside(&projected, &inside, squared_norms))
}

/// `1 - p_i' f_i / |h_i|^2` for the rows of two matrices.
fn outside(projected: &Mat<f64>, inside: &Mat<f64>, squared_norms: &[f64]) -> Vec<f64> {
    let share = |(i, &squared): (usize, &f64)| {
        let energy: f64 = (0..projected.ncols()).map(|j| projected[(i, j)] * inside[(i, j)]).sum();
        if squared > 0.0 { (1.0 - energy / squared).clamp(0.0, 1.0) } else { 0.0 }
    };
    squared_norms.iter().enumerate().map(share).collect()
}
