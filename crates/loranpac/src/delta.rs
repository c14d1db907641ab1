//! The changes that an operation made to a model: what a stored copy needs to be brought up to date.

use std::collections::BTreeSet;

use crate::factor::Factor;

/// The changes of an operation. [`Delta::append`] combines the deltas of successive operations.
#[derive(Debug, Clone, Default)]
pub struct Delta {
    /// The increments of S, in order, unless it was replaced.
    pub factors: Vec<Factor>,
    /// Whether S was replaced.
    pub gram: bool,
    /// Whether the columns of Q, or the kept samples, were replaced. Otherwise some may have been appended.
    pub basis: bool,
    /// Classes whose column of J changed, or, at infinite width, that gained samples.
    pub sums: BTreeSet<usize>,
    /// Classes whose row of N changed, apart from zeros at its end.
    pub cross: BTreeSet<usize>,
    /// Number of classes after the operation.
    classes: usize,
}

/// A callback that receives the changes of an operation, one delta after the other.
pub type Receiver<'a> = &'a mut dyn FnMut(Delta);

impl Delta {
    /// Creates an empty delta for a model of `classes` classes.
    pub(crate) fn none(classes: usize) -> Self {
        Delta { classes, ..Delta::default() }
    }

    /// Creates a delta that marks J and N of these classes dirty.
    pub(crate) fn of_classes(changed: impl IntoIterator<Item = usize>, classes: usize) -> Self {
        let sums: BTreeSet<usize> = changed.into_iter().filter(|class| *class < classes).collect();
        Delta { cross: sums.clone(), sums, ..Delta::none(classes) }
    }

    /// Creates a delta that marks everything dirty.
    pub fn everything(classes: usize) -> Self {
        Delta { gram: true, basis: true, ..Delta::of_classes(0..classes, classes) }
    }

    /// Creates a delta that replaces S.
    pub(crate) fn replaced_gram(classes: usize) -> Self {
        Delta { gram: true, ..Delta::none(classes) }
    }

    /// Creates a delta that replaces Q, and with it S and N.
    pub(crate) fn replaced_basis(classes: usize) -> Self {
        Delta { gram: true, basis: true, cross: (0..classes).collect(), ..Delta::none(classes) }
    }

    /// Returns whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.factors.is_empty() && !self.gram && !self.basis && self.sums.is_empty() && self.cross.is_empty()
    }

    /// Returns the number of values in all factors.
    pub fn factor_len(&self) -> usize {
        self.factors.iter().map(|factor| factor.data().len()).sum()
    }

    /// Drops the increments of S: S is written as a whole.
    pub fn drop_factors(&mut self) {
        self.factors = Vec::new();
        self.gram = true;
    }

    /// Adds the changes of a later operation.
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
        // Removing a class marks all others dirty, so that shifted indices are in the sets anyway.
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
