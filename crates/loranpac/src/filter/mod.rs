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

mod geometric_mean;
mod novelty;
mod problem;

use faer::{Mat, Scale};
use serde::{Deserialize, Serialize};

pub(crate) use novelty::Novelty;
pub(crate) use problem::{Limits, Problem, Side, share};

use crate::error::Error;
use crate::linalg::squared_norm;
use crate::scalar::Scalar;
pub use crate::spectrum::Spectrum;
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

/// The classifier in the coordinates of the basis, with its facts.
pub struct Solution {
    /// X: `W = X Q'`, c x r.
    pub coefficients: Mat<f64>,
    /// Facts about the classifier.
    pub facts: Facts,
}

/// Facts that forming the classifier establishes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Directions kept, k.
    pub kept: usize,
    /// lambda.
    pub ridge: f64,
    /// A summary of the spectrum of S, if it was computed and at least one direction was kept.
    pub spectrum: Option<Spectrum>,
    /// mu_{k+1}, the largest eigenvalue that this classifier leaves out.
    pub cut: f64,
    /// Lower bound of the training MSE `|W H - Y|^2 / M`; exact while nothing was lost.
    pub train_mse: f64,
    /// Upper bound of the training MSE: `train_mse + lost |W|^2 / M`.
    pub train_mse_upper: f64,
    /// Leave-one-out accuracy, if the samples are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leave_one_out: Option<f64>,
}

/// Forms the classifier. `max_rank` is the paper's r_max.
pub fn solve<T: Scalar>(stats: &mut Statistics<T>, filter: Filter, max_rank: usize) -> Result<Solution, Error> {
    if stats.samples() == 0 {
        return Err(Error::NothingLearned);
    }
    // Without dropping, J U is formed as in the paper: a rounded product with its noise. The N that the statistics
    // maintain has exact zeros along null directions, and would hide the collapse.
    let literal = stats.keeps_null_directions();
    let (mass, labelled, limits) = (stats.masses().all, stats.labelled(), limits(stats, max_rank));
    let filtered = literal.then(|| stats.project_label_sums());
    let (gram, targets) = stats.gram_and_cross();
    let problem = Problem { gram, targets, side: Side::Primal { filtered }, limits, labelled };
    let Solution { coefficients: x, mut facts } = problem.solve(filter)?;
    if literal {
        // W H - Y|^2 = tr(X S X') - 2 tr(X N') + |Y|^2 for any X.
        let (curved, n) = (&x * stats.gram().to_matrix(), stats.cross());
        let error: f64 = (0..x.ncols()).map(|j| x.col(j).transpose() * (curved.col(j) - n.col(j) * Scale(2.0))).sum();
        facts.train_mse = labelled + error / mass;
    }
    // The part that the latest task's cut removed is orthogonal to the directions that W uses, and costs nothing here.
    let lost = stats.losses().lost;
    facts.train_mse_upper = (facts.train_mse + lost * squared_norm(x.as_ref()) / mass).max(0.0);
    facts.train_mse = facts.train_mse.max(0.0);
    Ok(Solution { coefficients: x, facts })
}

/// Returns the limits on the directions of a classifier on these statistics.
pub(crate) fn limits<T: Scalar>(stats: &Statistics<T>, max_rank: usize) -> Limits {
    Limits {
        width: stats.basis().width(),
        samples: stats.samples(),
        mass: stats.masses().all,
        max_rank,
        keep_null: stats.keeps_null_directions(),
        on_grid: stats.is_on_grid(),
    }
}
