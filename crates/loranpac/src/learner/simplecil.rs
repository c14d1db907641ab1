//! SimpleCIL: class means of the features and cosine similarity, the nearest-mean baseline.

use super::{Learner, Scores, StreamSizes, Summary, check_task};
use crate::error::Error;
use crate::features::Features;
use crate::label::{Label, LabelTable};
use crate::memory::product;
use crate::registry::{Input, Method};

/// Running class means, over all tasks in which a class appears.
pub struct SimpleCil {
    dim: usize,
    table: LabelTable,
    sums: Vec<Vec<f64>>,
    samples: usize,
}

impl SimpleCil {
    /// A model for samples of `dim` features.
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

    fn prepare(&mut self) -> Result<(), Error> {
        if self.samples == 0 { Err(Error::NothingLearned) } else { Ok(()) }
    }

    /// The mean and the sum of a class point in the same direction, and the cosine sees nothing else.
    fn scores(&mut self, x: Features<'_>) -> Result<Scores, Error> {
        x.validate(self.dim)?;
        self.prepare()?;
        let lengths: Vec<f64> = self.sums.iter().map(|s| length(s.iter().copied())).collect();
        let mut values = Vec::with_capacity(x.len() * self.sums.len());
        for row in 0..x.len() {
            let sample = x.row(row);
            let norm = length(sample.iter().map(|&v| v as f64));
            for (sum, length) in self.sums.iter().zip(&lengths) {
                let dot: f64 = sum.iter().zip(sample).map(|(a, &b)| a * b as f64).sum();
                values.push(if norm * length > 0.0 { (dot / (norm * length)) as f32 } else { 0.0 });
            }
        }
        Ok(Scores::new(values, self.sums.len()))
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
        product(&[size_of::<f64>(), self.dim, stream.classes])
    }
}

/// The entry in the registry.
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
    build: |options, _| Ok(Box::new(SimpleCil::new(options.lift.dim()))),
};

fn length(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|v| v * v).sum::<f64>().sqrt()
}

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
        let scores = model.scores(Features::new(&[3.0, 3.0], 2).unwrap()).unwrap();
        assert!((scores.row(0)[0] - 1.0).abs() < 1e-6);
        assert!((scores.row(0)[1] - 0.5f32.sqrt()).abs() < 1e-6);
    }
}
