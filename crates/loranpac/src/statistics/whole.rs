//! Statistics of more samples than lifted features: Q is the identity, and `S = H H'`.

use super::Statistics;
use crate::delta::Delta;
use crate::scalar::Scalar;

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
        Delta::replaced_basis(self.counts.len())
    }
}
