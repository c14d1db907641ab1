//! What an operation changed in a model: everything that a copy elsewhere needs to follow.

use std::collections::BTreeSet;

use crate::factor::Factor;

/// What an operation changed. [`Delta::append`] adds up the deltas of successive operations.
#[derive(Debug, Clone, Default)]
pub struct Delta {
    /// What S has taken in, in order, unless it was replaced.
    pub factors: Vec<Factor>,
    /// Whether S was replaced.
    pub gram: bool,
    /// Whether the columns of Q, or the kept samples, were replaced. Otherwise some may have been appended.
    pub basis: bool,
    /// Classes whose column of J changed, or, at infinite width, that got samples.
    pub sums: BTreeSet<usize>,
    /// Classes whose row of N changed, apart from zeros at its end.
    pub cross: BTreeSet<usize>,
    /// Classes after the operation.
    classes: usize,
}

impl Delta {
    /// Nothing changed in a model of so many classes.
    pub(crate) fn none(classes: usize) -> Self {
        Delta { classes, ..Delta::default() }
    }

    /// J and N of these classes changed.
    pub(crate) fn of_classes(changed: impl IntoIterator<Item = usize>, classes: usize) -> Self {
        let sums: BTreeSet<usize> = changed.into_iter().filter(|class| *class < classes).collect();
        Delta { cross: sums.clone(), sums, ..Delta::none(classes) }
    }

    /// Everything changed.
    pub fn everything(classes: usize) -> Self {
        Delta { gram: true, basis: true, ..Delta::of_classes(0..classes, classes) }
    }

    /// S was replaced.
    pub(crate) fn replaced_gram(classes: usize) -> Self {
        Delta { gram: true, ..Delta::none(classes) }
    }

    /// Q, and with it S and N, was replaced.
    pub(crate) fn replaced_basis(classes: usize) -> Self {
        Delta { gram: true, basis: true, cross: (0..classes).collect(), ..Delta::none(classes) }
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.factors.is_empty() && !self.gram && !self.basis && self.sums.is_empty() && self.cross.is_empty()
    }

    /// Numbers in all factors.
    pub fn factor_len(&self) -> usize {
        self.factors.iter().map(|factor| factor.data().len()).sum()
    }

    /// S is to be written as a whole instead of its increments.
    pub fn drop_factors(&mut self) {
        self.factors = Vec::new();
        self.gram = true;
    }

    /// Adds what a later operation changed.
    pub fn append(&mut self, later: Delta) {
        if later.gram {
            self.drop_factors();
        } else if !self.gram {
            self.factors.extend(later.factors);
        }
        self.basis |= later.basis;
        self.sums.extend(later.sums);
        self.cross.extend(later.cross);
        self.classes = later.classes;
        // Removing a class marks all others, so that indices that have moved are in the sets anyway.
        self.sums.split_off(&self.classes);
        self.cross.split_off(&self.classes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_add_up() {
        let mut delta = Delta::of_classes([0, 3], 4);
        assert!(!delta.is_empty() && Delta::none(4).is_empty());
        delta.append(Delta::of_classes(0..3, 3)); // a class was removed
        assert_eq!(delta.sums, BTreeSet::from([0, 1, 2]));
        delta.append(Delta::replaced_gram(3));
        assert!(delta.gram && !delta.basis);
        delta.append(Delta::none(3));
        assert!(delta.gram);
    }
}
