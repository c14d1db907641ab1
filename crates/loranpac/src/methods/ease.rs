//! EASE: class means in one subspace per task (Zhou et al., CVPR 2024).
//!
//! ```text
//! x = [x_1 ... x_T]          features of a sample by the encoder as it was adapted to each task
//! p_cj                       mean of class c in subspace j; known where j is not later than the class
//! p_cj = sum_n softmax_n(cos(p_co, p_no)) p_nj     elsewhere: o is the class's own subspace, n runs over the classes of task j
//! score(c) = sum_j a_cj cos(x_j, p_cj),            a_cj = 1 in the class's own subspace, `alpha` in others
//! ```
//!
//! Subspaces of tasks to come are not used. Memory: `c T d` numbers. Whoever computes the features trains the encoder's adapters.

use std::sync::Arc;

use faer::Mat;

use crate::classifier::{CHUNK, Classifier, Scorer};
use crate::error::Error;
use crate::features::Features;
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary, check_task};
use crate::lift::{FeatureSpace, Identity};
use crate::memory::{product, sum};
use crate::method::{Input, Method, Promise};

/// Class means in subspaces.
pub struct Ease {
    dim: usize,
    /// Features of a subspace, d.
    size: usize,
    alpha: f32,
    table: LabelTable,
    classes: Vec<Class>,
    tasks: usize,
    samples: usize,
}

/// Sums of one class.
struct Class {
    /// The task in which it appeared.
    task: usize,
    /// In each subspace, behind each other.
    sums: Vec<f64>,
    /// Samples that were seen in each subspace.
    counts: Vec<usize>,
}

impl Ease {
    /// Creates a model for samples with features in `subspaces` subspaces of equal size.
    pub fn new(dim: usize, subspaces: usize, alpha: f32) -> Result<Self, Error> {
        let size = dim.checked_div(subspaces).filter(|size| size * subspaces == dim && *size > 0);
        let reason = || format!("{dim} features cannot be divided into {subspaces} subspaces");
        let size = size.ok_or_else(|| Error::setting("subspaces", subspaces, reason()))?;
        if !(alpha >= 0.0 && alpha.is_finite()) {
            return Err(Error::setting("alpha", alpha, "it must be a number >= 0"));
        }
        let (table, classes) = (LabelTable::default(), Vec::new());
        Ok(Ease { dim, size, alpha, table, classes, tasks: 0, samples: 0 })
    }

    /// Subspaces that can be used.
    fn open(&self) -> usize {
        self.tasks.min(self.dim / self.size)
    }

    /// The direction of a class in a subspace, as a vector of length 1; zero if its mean is zero.
    fn prototype(&self, class: usize, subspace: usize) -> Vec<f64> {
        let Class { task, sums, counts } = &self.classes[class];
        if counts[subspace] > 0 {
            return unit(sums[subspace * self.size..][..self.size].to_vec());
        }
        // Of classes that are known there, by their likeness in the class's own subspace.
        let own = (*task).min(self.dim / self.size - 1);
        let known: Vec<usize> = (0..self.classes.len()).filter(|other| self.classes[*other].task == subspace).collect();
        let place = self.prototype(class, own);
        let similar: Vec<f64> = known.iter().map(|other| dot(&place, &self.prototype(*other, own)).exp()).collect();
        let total: f64 = similar.iter().sum();
        let mut mixed = vec![0.0; self.size];
        for (other, similar) in known.iter().zip(&similar) {
            let Class { sums, counts, .. } = &self.classes[*other];
            let weight = similar / total / counts[subspace].max(1) as f64;
            let sums = &sums[subspace * self.size..][..self.size];
            mixed.iter_mut().zip(sums).for_each(|(mixed, sum)| *mixed += weight * sum);
        }
        unit(mixed)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn unit(mut x: Vec<f64>) -> Vec<f64> {
    let length = dot(&x, &x).sqrt();
    if length > 0.0 {
        x.iter_mut().for_each(|x| *x /= length);
    }
    x
}

impl Learner for Ease {
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        check_task(x, labels, self.dim)?;
        let (task, subspaces) = (self.tasks, self.dim / self.size);
        self.tasks += 1;
        let open = self.open();
        for (row, label) in labels.iter().enumerate() {
            let class = self.table.get_or_insert(label);
            let new = || Class { task, sums: vec![0.0; self.dim], counts: vec![0; subspaces] };
            self.classes.resize_with(self.table.len(), new);
            let Class { sums, counts, .. } = &mut self.classes[class];
            let seen = x.row(row)[..open * self.size].iter();
            sums.iter_mut().zip(seen).for_each(|(sum, v)| *sum += f64::from(*v));
            counts[..open].iter_mut().for_each(|count| *count += 1);
        }
        self.samples += labels.len();
        Ok(())
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        if self.samples == 0 {
            return Err(Error::NothingLearned);
        }
        let mut weights = Mat::<f32>::zeros(self.dim, self.classes.len());
        for class in 0..self.classes.len() {
            for subspace in 0..self.open() {
                let own = self.classes[class].task.min(self.dim / self.size - 1) == subspace;
                let factor = if own { 1.0 } else { f64::from(self.alpha) };
                let column = &mut weights.col_as_slice_mut(class)[subspace * self.size..][..self.size];
                let prototype = self.prototype(class, subspace);
                column.iter_mut().zip(prototype).for_each(|(weight, x)| *weight = (factor * x) as f32);
            }
        }
        let space = FeatureSpace::from(Arc::new(Identity::new(self.dim)));
        Ok(Classifier::new(space, &self.table, Scorer::Subspaces { weights, size: self.size }))
    }

    fn classes(&self) -> &LabelTable {
        &self.table
    }

    fn summary(&self) -> Summary {
        Summary { samples: self.samples, classes: self.table.len(), ..Summary::default() }
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!({ "subspaces": self.dim / self.size, "alpha": self.alpha })
    }

    fn state_bytes(&self) -> usize {
        self.classes.len() * (self.dim * size_of::<f64>() + self.dim / self.size * size_of::<usize>())
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        let scoring = product(&[size_of::<f32>(), 3 * self.dim, sum(&[stream.classes, CHUNK])]);
        sum(&[product(&[size_of::<f64>(), 2 * self.dim, stream.classes]), scoring])
    }
}

/// The registry entry.
pub(crate) const EASE: Method = Method {
    name: "ease",
    summary: "class means in one adapted subspace per task, with synthesised means of earlier classes; adapts the encoder",
    input: Input::Subspaces,
    continual: true,
    exemplar_free: true,
    truncates: false,
    cuts: false,
    settings: &[
        ("subspaces", "number of subspaces that the features have; a run sets it to its number of tasks [default: 1]"),
        ("alpha", "weight of subspaces other than a class's own [default: 0.1]"),
    ],
    exempt: &[(Promise::Halves, "each task opens a subspace, so that two halves of a task are two subspaces")],
    infinite: false,
    config: None,
    build: |options, settings| {
        let (subspaces, alpha) = (settings.count("subspaces", 1)?, settings.number("alpha", 0.1)?);
        Ok(Box::new(Ease::new(options.space.dim(), subspaces, alpha)?))
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    fn features(x: &[f32]) -> Features<'_> {
        Features::new(x, 4).unwrap()
    }

    /// Two subspaces of two features: the definition, by hand.
    #[test]
    fn means_of_earlier_classes_are_synthesised_from_those_of_the_task() {
        let mut model = Ease::new(4, 2, 0.1).unwrap();
        // The second subspace does not exist yet: its features are not read.
        model.learn(features(&[1.0, 0.0, 9.0, 9.0, 0.0, 1.0, 9.0, 9.0]), &["a", "b"].map(Label::from)).unwrap();
        model.learn(features(&[1.0, 1.0, 2.0, 0.0, -1.0, 0.0, 0.0, 4.0]), &["c", "d"].map(Label::from)).unwrap();
        let x = [0.6f32, 0.8, 0.8, -0.6];
        let scores = model.classifier().unwrap().scores(features(&x)).unwrap();
        let half = 0.5f64.sqrt();
        // Class a, in its own subspace: (1, 0). Its likeness to c is cos = half, to d it is -1.
        let (c, d) = (half.exp(), (-1f64).exp());
        let mixed = [c / (c + d) * 2.0, d / (c + d) * 4.0];
        let length = (mixed[0] * mixed[0] + mixed[1] * mixed[1]).sqrt();
        let a = 0.6 + 0.1 * (0.8 * mixed[0] - 0.6 * mixed[1]) / length;
        // Class c: the second subspace is its own, and it was seen in the first.
        let of_c = 0.1 * (0.6 + 0.8) * half + 0.8;
        assert!((f64::from(scores.row(0)[0]) - a).abs() < 1e-6, "{} {a}", scores.row(0)[0]);
        assert!((f64::from(scores.row(0)[2]) - of_c).abs() < 1e-6, "{} {of_c}", scores.row(0)[2]);
    }

    #[test]
    fn subspaces_that_do_not_fit_are_refused() {
        assert!(matches!(Ease::new(4, 3, 0.1), Err(Error::Setting { name: "subspaces", .. })));
        assert!(matches!(Ease::new(4, 2, f32::NAN), Err(Error::Setting { name: "alpha", .. })));
    }
}
