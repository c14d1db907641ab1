//! SimpleCIL: class means of the features and cosine similarity, the nearest-mean baseline.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef};

use super::lifted::{CHUNK, LEAST};
use super::{Learner, Scores, StreamSizes, Summary, check_task};
use crate::error::Error;
use crate::features::Features;
use crate::label::{Label, LabelTable};
use crate::linalg::{cast, par};
use crate::memory::{product, sum};
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
        // Everything at unit length first: cosines are then one product, and no length is too large or too small.
        let means = Mat::from_fn(self.dim, self.sums.len(), |i, class| self.sums[class][i]);
        let means = unit_columns(means.as_ref());
        let mut values = Vec::with_capacity(x.len() * self.sums.len());
        for part in x.chunks(CHUNK) {
            let mut samples = unit_columns(cast::<f32, f64>(part.as_matrix()).as_ref());
            samples.resize_with(self.dim, part.len().max(LEAST), |_, _| 0.0);
            let mut cosines = Mat::<f32>::zeros(self.sums.len(), samples.ncols());
            matmul(&mut cosines, Accum::Replace, means.transpose(), &samples, 1.0, par());
            cosines.col_iter().take(part.len()).for_each(|column| values.extend(column.iter()));
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
        let scoring = product(&[size_of::<f32>(), 3 * self.dim, sum(&[stream.classes, CHUNK])]);
        sum(&[product(&[size_of::<f64>(), self.dim, stream.classes]), scoring])
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
    infinite: false,
    build: |options, _| Ok(Box::new(SimpleCil::new(options.lift.dim()))),
};

/// Every column divided by its length; columns of zeros stay.
fn unit_columns(a: MatRef<'_, f64>) -> Mat<f32> {
    let lengths: Vec<f64> = a.col_iter().map(|column| column.norm_l2()).collect();
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| if lengths[j] > 0.0 { (a[(i, j)] / lengths[j]) as f32 } else { 0.0 })
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
