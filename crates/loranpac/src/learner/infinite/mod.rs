//! LoRanPAC of infinite width: the samples are kept, and everything is done by the arc-cosine kernel between them.
//!
//! With Z the samples that are kept (d x n) and `K = k(Z, Z)`, the classifier is `scores(x) = A k(Z, x)`, where A filters
//! the spectrum of K as the explicit form filters that of S ([`crate::filter`]). Learning is appending.
//!
//! Beyond a cap, samples go. One that goes leaves its projection on the span of those that stay, `phi(x) ~ Phi b`, so that
//! everything learned is summed up by
//!
//! ```text
//! H H' ~ Phi M Phi',  M = I + sum over gone of b b'        Y H' ~ B Phi',  B = Y_Z + sum over gone of y b'
//! ```
//!
//! (subset of regressors). With `M = G G'` this is the same problem again, with `G'KG` for K and `B G^-T` for Y.

mod cap;

use std::collections::HashMap;
use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Side};

pub use cap::{Gone, Kept};

use super::lifted::{CHUNK, LEAST, bytes_of, indices};
use super::{Config, Editable, Form, Learner, Schedule, Scores, StreamSizes, Summary, check_lifts, check_task};
use crate::certificate::Certificate;
use crate::error::Error;
use crate::features::Features;
use crate::filter::{Dual, Facts};
use crate::gram::Gram;
use crate::label::{Label, LabelTable};
use crate::lift::{FeatureMap, Polar};
use crate::linalg::par;
use crate::memory::{product, sum, with_slack};

/// A kernel matrix of more bytes than this is not kept for the next classifier, but computed again: 16,384 samples.
const LARGEST_KEPT: usize = 2 << 30;

/// Columns of the kernel matrix that are computed at a time.
const COLUMNS: usize = 512;

/// The learner.
pub struct Infinite {
    lift: Arc<dyn FeatureMap>,
    config: Config,
    table: LabelTable,
    kept: Kept,
    /// K of the first samples that are kept.
    kernel: Gram,
    classifier: Option<Classifier>,
    /// How many of the samples that are kept have been written down as they are.
    written: usize,
}

/// A, and what forming it showed.
struct Classifier {
    /// The samples that are kept.
    polar: Polar,
    /// A', n x c.
    weights: Mat<f64>,
    facts: Facts,
    /// A bound on what has changed in `H H'` because samples are gone.
    lost: f64,
}

impl Infinite {
    /// A model that knows nothing yet.
    pub fn new(lift: Arc<dyn FeatureMap>, config: Config) -> Result<Self, Error> {
        let config = config.validate()?;
        if !lift.is_infinite() {
            let reason = "this learner has infinite width: its lift is arc-cosine";
            return Err(Error::setting("lift", lift.name(), reason));
        }
        if config.schedule == Schedule::Paper {
            let reason =
                "the paper schedule cuts features that are written down; at infinite width nothing is lost by waiting";
            return Err(Error::setting("schedule", "paper", reason));
        }
        let (table, kept, kernel) = (LabelTable::default(), Kept::default(), Gram::default());
        Ok(Infinite { lift, config, table, kept, kernel, classifier: None, written: 0 })
    }

    /// A model from what it consisted of; None if the parts do not fit together.
    pub fn from_parts(
        lift: Arc<dyn FeatureMap>,
        config: Config,
        table: LabelTable,
        kept: Kept,
    ) -> Result<Option<Self>, Error> {
        let model = Infinite::new(lift, config)?;
        let (n, classes) = (kept.classes.len(), table.len());
        let mut own = vec![0; classes];
        let known = kept.classes.iter().all(|class| own.get_mut(*class).map(|count| *count += 1).is_some());
        let fits = known
            && kept.counts.len() == classes
            && own.iter().zip(&kept.counts).all(|(own, count)| own <= count)
            && Some(kept.samples.len()) == n.checked_mul(model.lift.dim())
            && Features::new(&kept.samples, model.lift.dim()).is_ok_and(|x| x.validate(model.lift.dim()).is_ok())
            && kept.gone.as_ref().is_none_or(|gone| {
                let (m, finite) = (gone.mass.nrows(), gone.mass.is_all_finite() && gone.sums.is_all_finite());
                m <= n && gone.mass.ncols() == m && gone.sums.ncols() == m && gone.sums.nrows() <= classes && finite
            })
            && match &kept.gone {
                None => own == kept.counts,
                Some(gone) => {
                    let all = kept.counts.iter().try_fold(gone.orphans, |sum, count| sum.checked_add(*count));
                    n.checked_add(gone.samples) == all && all.is_some() && gone.error >= 0.0 && gone.latest >= 0.0
                }
            };
        Ok(fits.then_some(Infinite { written: n, table, kept, ..model }))
    }

    /// What it is made of.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Samples that are kept, n.
    pub fn len(&self) -> usize {
        self.kept.classes.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many of the samples that are kept have been written down as they are.
    pub fn written(&self) -> usize {
        self.written
    }

    /// Notes how many of the samples that are kept have been written down.
    pub fn set_written(&mut self, samples: usize) {
        self.written = samples.min(self.len());
    }

    /// A bound on the change of `H H'` because samples are gone, as of the current classifier.
    pub fn lost(&self) -> f64 {
        self.classifier.as_ref().map_or(0.0, |classifier| classifier.lost)
    }

    /// A of the current classifier, transposed (n x c): `scores(x) = A k(Z, x)`.
    pub fn coefficients(&mut self) -> Result<MatRef<'_, f64>, Error> {
        Ok(self.classifier()?.weights.as_ref())
    }

    /// Takes a classifier that was formed before and written down; false if it does not fit.
    pub fn set_classifier(&mut self, weights: Mat<f64>, facts: Facts, lost: f64) -> bool {
        let fits = (weights.nrows(), weights.ncols()) == (self.len(), self.table.len());
        if fits {
            self.classifier = Some(Classifier { polar: self.polar(), weights, facts, lost });
        }
        fits
    }

    /// Takes in everything that other models have learned, as if it had been learned here. Models for other features are
    /// refused, and nothing changes then.
    pub fn merge<'a>(&mut self, others: impl IntoIterator<Item = &'a mut Infinite>) -> Result<(), Error> {
        let others: Vec<&mut Infinite> = others.into_iter().collect();
        others.iter().try_for_each(|other| check_lifts(&self.lift, &other.lift))?;
        self.classifier = None;
        self.written = 0;
        for other in others {
            let places = indices(&mut self.table, other.table.labels());
            self.join(&other.kept, &places);
            self.make_room()?;
        }
        Ok(())
    }

    fn polar(&self) -> Polar {
        Polar::new(MatRef::from_column_major_slice(&self.kept.samples, self.lift.dim(), self.len()))
    }

    /// K of all samples that are kept: what is missing is computed, block by block.
    fn extend_kernel(&mut self, polar: &Polar) {
        while self.kernel.rank() < polar.len() {
            let first = self.kernel.rank();
            let p = COLUMNS.min(polar.len() - first);
            self.kernel.append(p, |out| polar.kernel(0..first + p, first..first + p, out));
        }
    }

    /// K of all samples that are kept, from scratch: what becomes part of the state must not depend, not even in the last bit,
    /// on when blocks of K were computed. A model that was read from a file has none.
    fn renew_kernel(&mut self) {
        self.kernel = Gram::default();
        let polar = self.polar();
        self.extend_kernel(&polar);
    }

    fn samples(&self) -> usize {
        self.kept.counts.iter().sum::<usize>() + self.kept.gone.as_ref().map_or(0, |gone| gone.orphans)
    }

    /// Y of the samples that are kept, c x n.
    fn labels(&self) -> Mat<f64> {
        let mut labels = Mat::zeros(self.table.len(), self.len());
        self.kept.classes.iter().enumerate().for_each(|(i, class)| labels[(*class, i)] = 1.0);
        labels
    }

    fn classifier(&mut self) -> Result<&Classifier, Error> {
        if self.classifier.is_none() {
            if self.is_empty() {
                return Err(Error::NothingLearned);
            }
            let polar = self.polar();
            self.extend_kernel(&polar);
            let (weights, facts, lost) = self.formed()?;
            if self.kernel.bytes() > LARGEST_KEPT {
                self.kernel = Gram::default();
            }
            self.classifier = Some(Classifier { polar, weights, facts, lost });
        }
        self.classifier.as_ref().ok_or(Error::NothingLearned)
    }

    /// A', what forming it showed, and a bound on what has changed in `H H'`.
    fn formed(&mut self) -> Result<(Mat<f64>, Facts, f64), Error> {
        let samples = self.samples();
        let labelled = self.kept.counts.iter().sum::<usize>() as f64 / samples as f64;
        let Config { filter, max_rank, .. } = self.config;
        let Some(gone) = &self.kept.gone else {
            let (labels, classes) = (self.labels(), Some(self.kept.classes.as_slice()));
            let mut dual = Dual { kernel: &mut self.kernel, labels: &labels, classes, samples, labelled, max_rank };
            let solution = dual.solve(filter)?;
            return Ok((solution.coefficients.transpose().to_owned(), solution.facts, 0.0));
        };
        let (mut kernel, labels, g) = self.whitened()?;
        let energy = kernel.trace();
        let mut dual = Dual { kernel: &mut kernel, labels: &labels, classes: None, samples, labelled, max_rank };
        let solution = dual.solve(filter)?;
        let (x, mut facts) = (solution.coefficients, solution.facts);
        // What was lost changes the scores of all samples by a matrix of at most this length: `W (H - Phi (...))`, with
        // |W|^2 the largest eigenvalue of `X K X'`.
        let squared = &x * (kernel.to_matrix() * x.transpose());
        let squared = squared.self_adjoint_eigenvalues(Side::Lower).map_err(|_| Error::Eigen { rank: x.nrows() })?;
        let length = squared.last().copied().unwrap_or(0.0).max(0.0).sqrt();
        let change = gone.error * length / (samples as f64).sqrt();
        let middle = facts.train_mse.sqrt();
        facts.train_mse = (middle - change).max(0.0).powi(2);
        facts.train_mse_upper = (middle + change).powi(2);
        let error = gone.error + gone.latest;
        let lost = error * (2.0 * energy.max(0.0).sqrt() + error);
        Ok((&g * x.transpose(), facts, lost))
    }

    /// The kernel between the samples that are kept and a few others, padded so that a sample's is the same to the last bit
    /// whatever else is in its batch, but for the lengths of those others; and they themselves.
    fn between(polar: &Polar, x: Features<'_>) -> (Mat<f64>, Polar) {
        let mut padded: Vec<f32> = (0..x.len()).flat_map(|row| x.row(row)).copied().collect();
        let n = x.len().max(LEAST);
        padded.resize(n * x.dim(), 0.0);
        let other = Polar::new(MatRef::from_column_major_slice(&padded, x.dim(), n));
        let mut kernel = Mat::zeros(polar.len(), n);
        polar.shapes(0..polar.len(), &other, 0..n, kernel.as_mut());
        for column in kernel.col_iter_mut() {
            column.iter_mut().zip(polar.lengths()).for_each(|(value, length)| *value *= length);
        }
        (kernel, other)
    }

    /// The places of samples that were learned under these labels.
    fn find(&self, x: Features<'_>, labels: &[Label]) -> Result<Vec<usize>, Error> {
        let dim = self.lift.dim();
        let rounded = self.rounded(x);
        let bits = |row: &[f32]| row.iter().map(|v| v.to_bits()).collect::<Vec<u32>>();
        let mut places: HashMap<(Vec<u32>, usize), Vec<usize>> = HashMap::new();
        for (i, row) in self.kept.samples.chunks_exact(dim).enumerate().rev() {
            places.entry((bits(row), self.kept.classes[i])).or_default().push(i);
        }
        let find = |(row, (sample, label)): (usize, (&[f32], &Label))| {
            let class = self.table.find(label)?;
            let place = places.get_mut(&(bits(sample), class)).and_then(Vec::pop);
            place.ok_or(match &self.kept.gone {
                Some(gone) => Error::NotExact { cuts: gone.times },
                None => Error::NeverLearned { row },
            })
        };
        rounded.chunks_exact(dim).zip(labels).enumerate().map(find).collect()
    }

    /// Samples as they are kept: in single precision, or rounded to half.
    fn rounded(&self, x: Features<'_>) -> Vec<f32> {
        let all = (0..x.len()).flat_map(|row| x.row(row)).copied();
        // Adding zero makes -0 and 0 the same.
        match self.config.half {
            true => all.map(|v| half::f16::from_f32(v).to_f32() + 0.0).collect(),
            false => all.map(|v| v + 0.0).collect(),
        }
    }

    fn remove_empty_classes(&mut self) {
        while let Some(class) = self.kept.counts.iter().position(|count| *count == 0) {
            self.drop_class(class);
        }
    }

    /// Removes a class that has no samples any more.
    fn drop_class(&mut self, class: usize) {
        self.table.remove(class);
        self.kept.counts.remove(class);
        self.kept.classes.iter_mut().filter(|other| **other > class).for_each(|other| *other -= 1);
        if let Some(gone) = &mut self.kept.gone
            && class < gone.sums.nrows()
        {
            gone.sums = Mat::from_fn(gone.sums.nrows() - 1, gone.sums.ncols(), |c, j| {
                gone.sums[(if c < class { c } else { c + 1 }, j)]
            });
        }
        self.written = 0;
        self.classifier = None;
    }
}

impl Learner for Infinite {
    /// Samples are appended, and nothing is computed but what the cap asks for.
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        check_task(x, labels, self.lift.dim())?;
        self.config.accepts(x)?;
        self.classifier = None;
        let mut outcome = Ok(());
        let chunk = x.len().div_ceil(x.len().div_ceil(self.config.chunk));
        for (part, labels) in x.chunks(chunk).zip(labels.chunks(chunk)) {
            if let Some(gone) = &mut self.kept.gone {
                gone.settle();
            }
            let classes = indices(&mut self.table, labels);
            self.kept.counts.resize(self.table.len(), 0);
            classes.iter().for_each(|class| self.kept.counts[*class] += 1);
            let rows = self.rounded(part);
            self.kept.samples.extend(rows);
            self.kept.classes.extend(classes);
            outcome = outcome.and(self.make_room());
        }
        outcome
    }

    fn prepare(&mut self) -> Result<(), Error> {
        self.classifier().map(|_| ())
    }

    fn scores(&mut self, x: Features<'_>) -> Result<Scores, Error> {
        x.validate(self.lift.dim())?;
        let chunk = self.config.chunk;
        let Classifier { polar, weights, .. } = self.classifier()?;
        let classes = weights.ncols();
        let mut values = Vec::with_capacity(x.len() * classes);
        for part in x.chunks(chunk) {
            let (kernel, other) = Self::between(polar, part);
            let mut scores = Mat::<f64>::zeros(classes, kernel.ncols());
            matmul(&mut scores, Accum::Replace, weights.transpose(), &kernel, 1.0, par());
            for (i, length) in other.lengths().iter().take(part.len()).enumerate() {
                values.extend(scores.col(i).iter().map(|score| (score * length) as f32));
            }
        }
        Ok(Scores::new(values, classes))
    }

    fn novelty(&mut self, x: Features<'_>) -> Result<Option<Vec<f64>>, Error> {
        x.validate(self.lift.dim())?;
        let Classifier { polar, facts, .. } = self.classifier()?;
        let (ridge, mut energies) = (facts.ridge, Vec::with_capacity(x.len()));
        let mut known = Mat::<f64>::zeros(polar.len(), x.len());
        for part in x.chunks(CHUNK) {
            let (kernel, other) = Self::between(polar, part);
            let first = energies.len();
            for (i, length) in other.lengths().iter().take(part.len()).enumerate() {
                let column = known.as_mut().col_mut(first + i);
                column.iter_mut().zip(kernel.col(i).iter()).for_each(|(value, k)| *value = k * length);
            }
            energies.extend(other.energies().take(part.len()));
        }
        let polar = self.polar();
        self.extend_kernel(&polar);
        let (samples, Config { filter, max_rank, .. }) = (self.samples(), self.config);
        let novelty = |kernel: &mut Gram, known: Mat<f64>| {
            let labels = &Mat::zeros(0, 0);
            let mut dual = Dual { kernel, labels, classes: None, samples, labelled: 1.0, max_rank };
            dual.novelty(filter, ridge, known, &energies)
        };
        if self.kept.gone.is_none() {
            return novelty(&mut self.kernel, known.transpose().to_owned()).map(Some);
        }
        let (mut kernel, _, g) = self.whitened()?;
        novelty(&mut kernel, known.transpose() * &g).map(Some)
    }

    fn spectrum(&mut self) -> Result<Option<Vec<f64>>, Error> {
        let polar = self.polar();
        self.extend_kernel(&polar);
        match self.kept.gone {
            None => self.kernel.eigenvalues().map(Some),
            Some(_) => self.whitened()?.0.eigenvalues().map(Some),
        }
    }

    fn classes(&self) -> &LabelTable {
        &self.table
    }

    fn as_editable(&mut self) -> Option<&mut dyn Editable> {
        Some(self)
    }

    fn summary(&self) -> Summary {
        let facts = self.classifier.as_ref().map(|c| c.facts);
        Summary {
            samples: self.samples(),
            classes: self.table.len(),
            basis_rank: Some(self.len()),
            kept_rank: facts.map(|f| f.kept),
            ridge: facts.map(|f| f.ridge),
            train_mse: facts.map(|f| f.train_mse),
            train_mse_upper: facts.map(|f| f.train_mse_upper),
            certificate: facts.map(|f| Certificate::from_books(&self.books(), f)),
            leave_one_out: facts.and_then(|f| f.leave_one_out),
            ..Summary::default()
        }
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!(self.config)
    }

    fn state_bytes(&self) -> usize {
        let gone = self.kept.gone.as_ref().map_or(0, |gone| bytes_of(&gone.mass) + bytes_of(&gone.sums));
        let classifier = self.classifier.as_ref().map_or(0, |c| c.polar.bytes() + bytes_of(&c.weights));
        size_of_val(self.kept.samples.as_slice()) + self.kernel.bytes() + gone + classifier
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        let Config { max_rank, chunk, .. } = self.config;
        let most = with_slack(max_rank, chunk).saturating_add(chunk);
        let n = stream.samples.min(most);
        // Beyond the cap: K, M - I, G or a factor of K, and what is multiplied.
        let capped = self.kept.gone.is_some() || stream.samples > with_slack(max_rank, chunk);
        let squares = if capped { 6 } else { 1 };
        let columns =
            sum(&[product(&[12, self.lift.dim()]), product(&[5, 8, stream.classes]), product(&[2, 8, chunk])]);
        sum(&[product(&[squares, 8, n, n]), product(&[n, columns])])
    }
}

impl Editable for Infinite {
    fn config(&self) -> &Config {
        &self.config
    }

    fn feature_map(&self) -> Arc<dyn FeatureMap> {
        self.lift.clone()
    }

    fn counts(&self) -> &[usize] {
        &self.kept.counts
    }

    fn facts(&mut self) -> Result<Facts, Error> {
        Ok(self.classifier()?.facts)
    }

    fn is_prepared(&self) -> bool {
        self.classifier.is_some()
    }

    /// The samples of the class go, and the model is what it would be if it had never seen them; after a cap, what samples
    /// have left that went before stays.
    fn forget(&mut self, label: &Label) -> Result<(), Error> {
        let class = self.table.removable(label)?;
        let stay: Vec<bool> = self.kept.classes.iter().map(|other| *other != class).collect();
        let own = stay.iter().filter(|stays| !**stays).count();
        if own == stay.len() {
            let reason = "no sample of another class is kept";
            return Err(Error::Setting { name: "class", value: label.to_string(), reason: reason.to_owned() });
        }
        self.reduce(&stay, false)?;
        if let Some(gone) = &mut self.kept.gone {
            gone.orphans += self.kept.counts[class] - own;
        }
        self.drop_class(class);
        Ok(())
    }

    fn rename(&mut self, from: &Label, to: Label) -> Result<(), Error> {
        self.table.renamed(from, to).map(|_| ())
    }

    fn relabel(&mut self, x: Features<'_>, from: &[Label], to: &[Label]) -> Result<usize, Error> {
        check_task(x, from, self.lift.dim())?;
        check_task(x, to, self.lift.dim())?;
        let places = self.find(x, from)?;
        let new = indices(&mut self.table, to);
        self.kept.counts.resize(self.table.len(), 0);
        for (place, class) in places.into_iter().zip(new) {
            self.kept.counts[self.kept.classes[place]] -= 1;
            self.kept.counts[class] += 1;
            self.kept.classes[place] = class;
        }
        self.written = 0;
        self.classifier = None;
        self.remove_empty_classes();
        Ok(0)
    }

    fn unlearn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<usize, Error> {
        check_task(x, labels, self.lift.dim())?;
        if x.len() >= self.len() {
            let reason = "nothing would be left; start a new model instead";
            return Err(Error::setting("samples", x.len(), reason));
        }
        let mut stay = vec![true; self.len()];
        let places = self.find(x, labels)?;
        places.iter().for_each(|place| stay[*place] = false);
        let classes: Vec<usize> = places.iter().map(|place| self.kept.classes[*place]).collect();
        self.reduce(&stay, false)?;
        classes.iter().for_each(|class| self.kept.counts[*class] -= 1);
        self.remove_empty_classes();
        Ok(0)
    }

    /// Samples are kept, and found: nothing is ever assumed.
    fn vouch(&mut self, _samples: usize) {}

    fn form(&mut self) -> Form<'_> {
        Form::Infinite(self)
    }
}
