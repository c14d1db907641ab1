//! SimpleCIL: class means of the features and cosine similarity, the nearest-mean baseline.

use std::sync::Arc;

use faer::Mat;

use crate::classifier::{CHUNK, Classifier, Scorer, unit_columns};
use crate::error::Error;
use crate::features::Features;
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary, check_task};
use crate::lift::{FeatureSpace, Identity};
use crate::memory::{product, sum};
use crate::method::{Input, Method};

/// Running class means, over all tasks in which a class appears.
pub struct SimpleCil {
    dim: usize,
    table: LabelTable,
    sums: Vec<Vec<f64>>,
    samples: usize,
}

impl SimpleCil {
    /// Creates a model for samples of `dim` features.
    pub fn new(dim: usize) -> Self {
        SimpleCil { dim, table: LabelTable::default(), sums: Vec::new(), samples: 0 }
    }
}

impl Learner for SimpleCil {
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        check_task(x, labels, self.dim)?;
        for (row, label) in labels.iter().enumerate() {
            let class = self.table.get_or_insert(label);
            self.sums.resize_with(self.table.len(), || vec![0.0; self.dim]);
            self.sums[class].iter_mut().zip(x.row(row)).for_each(|(sum, v)| *sum += *v as f64);
        }
        self.samples += labels.len();
        Ok(())
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        if self.samples == 0 {
            return Err(Error::NothingLearned);
        }
        let sums = Mat::from_fn(self.dim, self.sums.len(), |i, class| self.sums[class][i]);
        let space = FeatureSpace::from(Arc::new(Identity::new(self.dim)));
        Ok(Classifier::new(space, &self.table, Scorer::Cosine(unit_columns(sums.as_ref()))))
    }

    fn classes(&self) -> &LabelTable {
        &self.table
    }

    fn summary(&self) -> Summary {
        Summary { samples: self.samples, classes: self.table.len(), ..Summary::default() }
    }

    fn state_bytes(&self) -> usize {
        self.sums.len() * self.dim * size_of::<f64>()
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        let scoring = product(&[size_of::<f32>(), 3 * self.dim, sum(&[stream.classes, CHUNK])]);
        sum(&[product(&[size_of::<f64>(), self.dim, stream.classes]), scoring])
    }
}

/// The registry entry.
pub(crate) const SIMPLECIL: Method = Method {
    name: "simplecil",
    summary: "nearest class mean by cosine similarity, on plain features",
    input: Input::Plain,
    continual: true,
    exemplar_free: true,
    truncates: false,
    cuts: false,
    settings: &[],
    exempt: &[],
    infinite: false,
    config: None,
    build: |options, _| Ok(Box::new(SimpleCil::new(options.space.dim()))),
};

/// The registry entry of ADAM, later called APER (Zhou et al., 2023): the same on features of both encoders.
pub(crate) const ADAM: Method = Method {
    name: "adam",
    summary: "simplecil on features before and after first-session adaptation (APER); adapts the encoder",
    input: Input::Adapted,
    ..SIMPLECIL
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_run_over_all_tasks_of_a_class() {
        let mut model = SimpleCil::new(2);
        let mut learn = |x: &[f32], y: i64| model.learn(Features::new(x, 2).unwrap(), &[Label::from(y)]).unwrap();
        learn(&[1.0, 0.0], 5);
        learn(&[0.0, 1.0], 3);
        learn(&[1.0, 2.0], 5); // class 5 now points to (2, 2)
        let scores = model.classifier().unwrap().scores(Features::new(&[3.0, 3.0], 2).unwrap()).unwrap();
        assert!((scores.row(0)[0] - 1.0).abs() < 1e-6);
        assert!((scores.row(0)[1] - 0.5f32.sqrt()).abs() < 1e-6);
    }
}
