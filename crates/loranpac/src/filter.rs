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
            Filter::Soft(Ridge::GeometricMean) => 0.0,
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
        Filter::Hard { truncation, ridge } => hard(stats, &mut x, truncation, ridge, max_rank)?,
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

/// X = N V_k (diag(mu_k) + lambda)^-1 V_k', in place of N.
fn hard<T: Scalar>(
    stats: &mut Statistics<T>,
    x: &mut Mat<f64>,
    truncation: Truncation,
    ridge: f64,
    max_rank: usize,
) -> Result<Facts, Error> {
    let (samples, labelled) = (stats.samples(), stats.labelled());
    let selection = Selection::new(stats, truncation, max_rank);
    let mut facts = None;
    stats.gram().apply_function(x, |mu, energy| {
        let k = selection.kept(mu);
        let at = |j: usize| selection.value(mu, j) + ridge;
        let fitted: f64 = (0..k).map(|j| energy[j] * (at(j) + ridge) / (at(j) * at(j))).sum();
        facts = Some(Facts {
            kept: k,
            ridge,
            spectrum: Spectrum::of(mu, k).map(|s| Spectrum { smallest_kept: selection.value(mu, k - 1), ..s }),
            cut: mu.get(k).copied().filter(|value| *value > rounding(mu)).unwrap_or(0.0),
            train_mse: labelled - fitted / samples as f64,
            train_mse_upper: 0.0,
        });
        (0..mu.len()).map(|j| if j < k { 1.0 / at(j) } else { 0.0 }).collect()
    })?;
    facts.ok_or(Error::Eigen { rank: x.ncols() })
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
    let share = |(i, &squared): (usize, &f64)| {
        let energy: f64 = (0..projected.ncols()).map(|j| projected[(i, j)] * inside[(i, j)]).sum();
        if squared > 0.0 { (1.0 - energy / squared).clamp(0.0, 1.0) } else { 0.0 }
    };
    Ok(squared_norms.iter().enumerate().map(share).collect())
}
