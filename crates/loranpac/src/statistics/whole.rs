//! Statistics of more samples than lifted features: Q is the identity, and `S = H H'`. J is N, and not kept apart from it.

use super::{Statistics, Step};
use crate::buffer::Buffer;
use crate::delta::Delta;
use crate::scalar::Scalar;

/// S is kept in fixed point from this share of E more samples than features on: its smallest eigenvalues are then far above
/// the rounding.
const MARGIN: usize = 8;
/// S stays in double precision if its mean energy per sample is this many times that of the mean of any class: the rounding
/// is relative to the longest samples.
const UNEVEN: f64 = 1e4;

impl<T: Scalar> Statistics<T> {
    /// Returns whether Q has as many directions as features were ever active, so that unit vectors serve as well.
    /// `added` is whether the latest samples added a direction.
    pub fn spans_all(&self, added: bool) -> bool {
        let rank = self.basis.rank();
        let full = rank == self.basis.width() || !added && self.samples >= self.basis.width();
        full && rank > 0 && self.drop > 0.0 && !self.basis.is_whole() && self.basis.spans_all()
    }

    /// Replaces Q by the identity: `S <- Q S Q'`, `N <- N Q'`, which represent the same matrices. From then on samples cost
    /// `E^2` flops each, and no basis is kept. Cost: `3 E^2 r` flops in f64.
    pub fn make_whole(&mut self) -> Delta {
        self.settle();
        let s = self.gram.to_matrix();
        // Frees the memory of S, unless a classifier shares it.
        self.gram = Default::default();
        let (gram, cross) = self.basis.make_whole(s, self.cross.transpose().to_owned());
        self.gram = gram.into();
        self.cross = cross.transpose().to_owned();
        if self.outside {
            // J is in the span of the unit vectors, and N is J.
            self.cross = self.project_label_sums();
            self.outside = false;
        }
        self.sums = Vec::new();
        self.fit_grid();
        Delta::replaced_basis(self.counts.len())
    }

    /// Computes J from N, before Q ceases to be the identity.
    pub(super) fn restore_label_sums(&mut self) {
        let row = |row: faer::RowRef<'_, f64>| row.iter().map(|v| T::from_f64(*v)).collect::<Vec<_>>();
        self.sums = self.cross.row_iter().map(|n| Buffer::from(row(n))).collect();
    }

    /// Returns whether S is in fixed point, or will be when its pending increments have been applied.
    pub(crate) fn is_on_grid(&self) -> bool {
        let given = self.pending.iter().rev().find_map(|step| match step {
            Step::Grid { .. } => Some(true),
            Step::Whole { .. } => Some(false),
            Step::Grow(_) => None,
        });
        given.unwrap_or_else(|| self.gram.is_on_grid())
    }

    /// Returns whether S, with this trace, can be kept in fixed point: where there is no basis, and what the rounding adds is
    /// far below all that matters. What a cut has removed must stay zero.
    pub(super) fn fits_grid(&self, trace: f64) -> bool {
        let width = self.basis.width();
        let never_cut = self.losses.cuts == 0 && self.latest_cut.directions == 0;
        self.basis.is_whole() && never_cut && self.samples >= width + width / MARGIN && {
            let energy = |(n, mass): (faer::RowRef<'_, f64>, &f64)| n.squared_norm_l2() / mass.powi(2);
            let means = self.cross.row_iter().zip(&self.masses.classes).map(energy).filter(|energy| *energy > 0.0);
            trace / self.masses.all <= UNEVEN * means.fold(f64::INFINITY, f64::min)
        }
    }

    /// Changes S to fixed point or back; returns whether it was not so before.
    pub(super) fn set_grid(&mut self, fits: bool) -> bool {
        if fits == self.is_on_grid() {
            return false;
        }
        match fits {
            true => self.gram().round(),
            false => self.gram().leave_grid(),
        }
        true
    }

    /// Changes S to fixed point, or back, after it has changed.
    pub(super) fn fit_grid(&mut self) {
        if self.basis.is_whole() {
            self.set_grid(self.fits_grid(self.trace()));
        }
    }

    /// Returns the trace of S, without the pending increments being applied.
    pub(super) fn trace(&self) -> f64 {
        self.pending.iter().fold(self.gram.trace(), |trace, step| match step {
            Step::Whole { rank, upper } => (0..*rank).map(|j| upper[j * (j + 3) / 2]).sum(),
            Step::Grid { diagonal, .. } => diagonal.iter().sum(),
            Step::Grow(factor) => trace + factor.matrix().squared_norm_l2(),
        })
    }
}
