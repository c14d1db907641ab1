//! The parts of the statistics, from which they can be restored.

use std::sync::Arc;

use faer::Mat;

use super::{Cut, Losses, Statistics};
use crate::basis::{Basis, Rows};
use crate::buffer::Buffer;
use crate::factor::Factor;
use crate::scalar::Scalar;

/// A step of the construction of S.
#[derive(Debug, Clone)]
pub enum Step {
    /// S is given by its upper triangle, column after column.
    Whole {
        /// Its size.
        rank: usize,
        /// `r (r + 1) / 2` numbers.
        upper: Buffer<f64>,
    },
    /// S is given in fixed point; see [`crate::internals::Grid`]. The increments after it are rounded to its grid.
    Grid {
        /// The diagonal.
        diagonal: Buffer<f64>,
        /// The `r (r - 1) / 2` numbers above it, column after column.
        numbers: Buffer<i32>,
    },
    /// An increment is added.
    Grow(Factor),
}

/// Sums of the weights of samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Masses {
    /// Of each class.
    pub classes: Vec<f64>,
    /// Of all samples, those of classes that were forgotten included.
    pub all: f64,
}

impl Masses {
    /// Returns the sums for samples of weight 1.
    pub(crate) fn of_counts(counts: &[usize], samples: usize) -> Self {
        Masses { classes: counts.iter().map(|count| *count as f64).collect(), all: samples as f64 }
    }

    /// Returns whether all weights are 1, for these numbers of samples.
    pub(crate) fn are_counts(&self, counts: &[usize], samples: usize) -> bool {
        *self == Masses::of_counts(counts, samples)
    }

    /// Adds a sample to a known class.
    pub(crate) fn add(&mut self, class: usize, weight: f64) {
        self.classes[class] += weight;
        self.all += weight;
    }

    /// Subtracts a sample from a class; rounding leaves nothing below 0.
    pub(crate) fn subtract(&mut self, class: usize, weight: f64) {
        self.classes[class] = (self.classes[class] - weight).max(0.0);
        self.all = (self.all - weight).max(0.0);
    }

    /// Returns whether these are sums for this number of classes.
    pub(crate) fn fits(&self, classes: usize) -> bool {
        let valid = |mass: &f64| mass.is_finite() && *mass >= 0.0;
        self.classes.len() == classes && self.classes.iter().chain([&self.all]).all(valid)
    }
}

/// All parts of the statistics.
pub struct State<T> {
    /// E.
    pub width: usize,
    /// r.
    pub rank: usize,
    /// The columns of B, divided as by [`Basis::blocks_for`].
    pub basis: Vec<Buffer<T>>,
    /// The rows of L.
    pub rows: Vec<Rows>,
    /// The construction of S, in order.
    pub gram: Vec<Step>,
    /// N, c x r.
    pub cross: Mat<f64>,
    /// J by columns, one per class; none where Q is the identity, and J is N.
    pub sums: Vec<Buffer<T>>,
    /// Samples of each class.
    pub counts: Vec<usize>,
    /// Samples in all.
    pub samples: usize,
    /// The sums of their weights; None if all weights are 1.
    pub masses: Option<Masses>,
    /// The losses of past cuts.
    pub losses: Losses,
    /// The cut after the latest task.
    pub latest_cut: Cut,
    /// Whether J may have components outside the basis.
    pub outside: bool,
    /// Rounding units below which a residual adds no direction.
    pub drop: f64,
}

impl<T: Scalar> Statistics<T> {
    /// Creates statistics from all their parts; returns None if their sizes do not fit together. S is computed on first
    /// use.
    pub fn from_state(state: State<T>) -> Option<Self> {
        let State { width, rank, basis, rows, gram, cross, sums, counts, samples, .. } = state;
        let State { masses, losses, latest_cut, outside, drop, .. } = state;
        let mut known = 0;
        for step in &gram {
            known = match step {
                Step::Whole { rank, upper } => {
                    let numbers = rank.checked_add(1)?.checked_mul(*rank)? / 2;
                    (numbers == upper.len()).then_some(*rank)?
                }
                Step::Grid { diagonal, numbers } => {
                    let known = diagonal.len();
                    (known.checked_mul(known.saturating_sub(1))? / 2 == numbers.len()).then_some(known)?
                }
                Step::Grow(factor) => (factor.rows() >= known).then_some(factor.rows())?,
            };
            if known > rank {
                return None;
            }
        }
        let classes = counts.len();
        let basis = Basis::from_parts(width, rank, basis, &rows)?;
        let sizes = known == rank && (cross.nrows(), cross.ncols()) == (classes, rank);
        let expected = if basis.is_whole() { 0 } else { classes };
        let masses = masses.unwrap_or_else(|| Masses::of_counts(&counts, samples));
        if !masses.fits(classes) || !sizes || sums.len() != expected || sums.iter().any(|sum| sum.len() != width) {
            return None;
        }
        Some(Statistics {
            basis,
            gram: Arc::default(),
            pending: gram,
            cross,
            sums,
            counts,
            samples,
            masses,
            losses,
            latest_cut,
            outside,
            drop,
        })
    }

    /// Returns whether J may have components outside the basis.
    pub fn outside(&self) -> bool {
        self.outside
    }
}
