//! The state of a model of infinite width: the kept samples, and the contribution of evicted ones.

use faer::Mat;

use crate::features::Features;
use crate::statistics::Masses;

/// The parts of the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KernelState {
    /// Z: the kept samples, one after the other.
    pub samples: Vec<f32>,
    /// The class of each.
    pub classes: Vec<usize>,
    /// Samples of each class, evicted ones included.
    pub counts: Vec<usize>,
    /// The weights of samples; None if all are 1.
    pub weighted: Option<KeptWeights>,
    /// Contribution of evicted samples.
    pub evicted: Option<Evicted>,
}

/// The weights of samples.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptWeights {
    /// Of each kept sample.
    pub kept: Vec<f64>,
    /// Sums over all samples learned.
    pub masses: Masses,
}

/// Contribution of evicted samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Evicted {
    /// `M - I` of the first kept samples, n x n.
    pub mass: Mat<f64>,
    /// `B - Y_Z` of the same, c x n; rows of later classes are missing.
    pub sums: Mat<f64>,
    /// Number of evicted samples.
    pub samples: usize,
    /// Evicted samples whose class was removed.
    pub unlabelled: usize,
    /// How often samples were evicted.
    pub evictions: usize,
    /// A bound on the length of the residuals of the projections: `|H - Phi (...)|_F`, without the latest eviction.
    pub error: f64,
    /// The same for the latest eviction, until another sample is learned: its residuals are orthogonal to all kept samples,
    /// and cost the classifier nothing.
    pub latest: f64,
}

impl Evicted {
    /// Creates the contribution of no samples.
    pub(super) fn none() -> Self {
        let (mass, sums) = (Mat::zeros(0, 0), Mat::zeros(0, 0));
        Evicted { mass, sums, samples: 0, unlabelled: 0, evictions: 0, error: 0.0, latest: 0.0 }
    }

    /// Adds the loss of the latest eviction to the total: new samples may have components along its residuals.
    pub(super) fn settle(&mut self) {
        self.error += std::mem::take(&mut self.latest);
    }

    fn fits(&self, samples: usize, classes: usize) -> bool {
        let m = self.mass.nrows();
        let sizes = m <= samples && self.mass.ncols() == m && self.sums.ncols() == m && self.sums.nrows() <= classes;
        sizes && self.mass.is_all_finite() && self.sums.is_all_finite() && self.error >= 0.0 && self.latest >= 0.0
    }
}

impl KernelState {
    /// Returns the number of kept samples, n.
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Returns whether no sample is kept.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Returns the number of samples learned, M.
    pub fn learned(&self) -> usize {
        self.counts.iter().sum::<usize>() + self.evicted.as_ref().map_or(0, |evicted| evicted.unlabelled)
    }

    /// Returns whether the parts fit together, for samples of `dim` features and this many classes.
    pub(super) fn fits(&self, dim: usize, classes: usize) -> bool {
        let n = self.len();
        let mut own = vec![0; classes];
        let known = self.classes.iter().all(|class| own.get_mut(*class).map(|count| *count += 1).is_some());
        let samples = Some(self.samples.len()) == n.checked_mul(dim)
            && Features::new(&self.samples, dim).is_ok_and(|x| x.validate(dim).is_ok());
        if !known || !samples || self.counts.len() != classes || own.iter().zip(&self.counts).any(|(o, c)| o > c) {
            return false;
        }
        let weights = self.weighted.as_ref().is_none_or(|weighted| {
            let valid = weighted.kept.iter().all(|weight| *weight > 0.0 && weight.is_finite());
            weighted.kept.len() == n && valid && weighted.masses.fits(classes) && weighted.masses.all > 0.0
        });
        if !weights {
            return false;
        }
        let Some(evicted) = &self.evicted else { return own == self.counts };
        let all = self.counts.iter().try_fold(evicted.unlabelled, |sum, count| sum.checked_add(*count));
        evicted.fits(n, classes) && all.is_some() && n.checked_add(evicted.samples) == all
    }

    /// Returns the weights of the kept samples, unless no sample had a weight other than 1.
    pub(super) fn weights(&self) -> Option<&[f64]> {
        self.weighted.as_ref().map(|weighted| &*weighted.kept)
    }

    /// Returns the weights of samples, to be changed.
    pub(super) fn weighted_mut(&mut self) -> &mut KeptWeights {
        let (kept, masses) = (self.classes.len(), Masses::of_counts(&self.counts, self.learned()));
        self.weighted.get_or_insert_with(|| KeptWeights { kept: vec![1.0; kept], masses })
    }

    /// Returns the sums of the weights.
    pub(super) fn masses(&self) -> Masses {
        match &self.weighted {
            Some(weighted) => weighted.masses.clone(),
            None => Masses::of_counts(&self.counts, self.learned()),
        }
    }

    /// Returns the root of the weight of a kept sample.
    pub(super) fn root(&self, sample: usize) -> f64 {
        self.weights().map_or(1.0, |weights| weights[sample].sqrt())
    }

    /// Returns Y of the kept samples, c x n.
    pub(super) fn labels(&self, classes: usize) -> Mat<f64> {
        let mut labels = Mat::zeros(classes, self.len());
        self.classes.iter().enumerate().for_each(|(i, class)| labels[(*class, i)] = self.root(i));
        labels
    }
}
