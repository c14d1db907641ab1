//! Memory estimates of work on a model, from its manifest alone: upper bounds, before anything is read. Mapped files
//! take address space when the model is opened, and no memory.

use loranpac::internals::packs;
use loranpac::memory::{product, sum};
use loranpac::plan::{basis_with_slack, with_slack};
use loranpac::{CHUNK, Learner, Model, StreamSizes, lift};

use crate::error::Error;
use crate::lift::LiftRecord;
use crate::manifest::Manifest;

impl LiftRecord {
    /// Returns the bytes of P, which is generated from its seed.
    pub fn bytes(&self) -> usize {
        let rows = lift::find(&self.name).map_or(0, |lift| lift.projection.count(self.dim, self.computed()));
        product(&[4, rows, self.dim])
    }

    /// Returns the bytes of prediction with a classifier of this many classes, without the classifier: P, and lifted
    /// samples.
    pub fn predict_bytes(&self, classes: usize) -> usize {
        sum(&[self.bytes(), product(&[4, CHUNK, sum(&[self.computed(), self.dim, classes])])])
    }
}

impl Manifest {
    /// Returns the bytes of loading the model: S, L and N (or the kept samples and the contribution of evicted ones), and
    /// the classifier.
    pub fn load_bytes(&self) -> usize {
        let (rank, classes, dim) = (self.rank(), self.classes.len(), self.lift.dim);
        let square = product(&[8, rank, rank]);
        let rest = if self.keeps_samples() {
            let mass = if self.evicted.is_some() { product(&[2, square]) } else { 0 };
            sum(&[mass, product(&[rank, 8, dim]), product(&[3, 8, rank, classes])])
        } else {
            sum(&[
                product(&[2, square]),
                square / 2,
                product(&[2, 8, rank, classes]),
                product(&[4, self.lift.computed(), classes]),
            ])
        };
        // Lists of classes and tasks, as text and as values.
        let lists = sum(&[product(&[2048, classes]), product(&[1024, self.tasks.len()])]);
        sum(&[rest, lists])
    }

    /// Returns the bytes of the samples learned, as features in single precision.
    pub fn sample_bytes(&self) -> usize {
        product(&[4, self.samples, self.lift.dim])
    }

    /// Returns the bytes on disk of a model of infinite width that keeps all samples learned, with its classifier: the samples
    /// (in half precision if the settings say so), their classes, and A.
    pub fn infinite_bytes(&self) -> usize {
        let samples = if self.config.half { self.sample_bytes() / 2 } else { self.sample_bytes() };
        sum(&[samples, product(&[4, self.samples]), product(&[8, self.samples, self.classes.len()])])
    }

    /// Returns the peak memory of learning, and of forming the classifier; `new` are the sizes of the new samples.
    pub fn learn_bytes(&self, new: &StreamSizes) -> Result<usize, Error> {
        let (rank, chunk, max_rank) = (self.rank(), self.config.chunk, self.config.max_rank);
        let mut samples = rank.saturating_add(new.samples);
        if self.evicted.is_some() {
            // Samples were evicted before, so that more than the rank were kept at some time.
            samples = samples.max(with_slack(max_rank, chunk).saturating_add(1));
        }
        let sizes = StreamSizes {
            samples,
            largest_task: new.largest_task,
            classes: self.classes.len().saturating_add(new.classes),
        };
        let learner = Model::new(self.lift.build(false)?, self.config)?;
        // The directions on disk are mapped, until a compression rewrites them.
        let compressed = sizes.samples > basis_with_slack(max_rank, chunk);
        let mapped = if compressed { 0 } else { product(&[4, self.lift.computed(), rank]) };
        let needed = learner.peak_bytes(&sizes).saturating_sub(mapped);
        Ok(sum(&[needed.max(self.load_bytes()), self.lift.bytes()]))
    }

    /// Returns the bytes of unlearning samples or moving them between classes, at most `samples` at a time, and of
    /// forming the classifier again.
    pub fn edit_bytes(&self, samples: usize) -> Result<usize, Error> {
        let (rank, width) = (self.rank(), self.lift.computed());
        let new = StreamSizes { samples: 0, largest_task: samples, classes: 1 };
        // All of Q is rotated if a direction is removed.
        let basis = product(&[4, width, rank]);
        let batch = sum(&[product(&[3, 4, width, samples]), product(&[6, 8, rank, samples])]);
        Ok(sum(&[self.learn_bytes(&new)?, basis, product(&[6, 8, rank, rank]), batch]))
    }

    /// Returns the bytes of merging models into a new one.
    pub fn merge_bytes(parts: &[Manifest]) -> Result<usize, Error> {
        let [first, others @ ..] = parts else { return Ok(0) };
        let new = StreamSizes {
            samples: others.iter().map(Manifest::rank).fold(0, usize::saturating_add),
            largest_task: parts.iter().map(Manifest::rank).fold(0, usize::max),
            classes: others.iter().map(|other| other.classes.len()).sum(),
        };
        let loaded = parts.iter().map(Manifest::load_bytes).fold(0, usize::saturating_add);
        // The new model exists alongside the others, and nothing of it is mapped.
        let basis = product(&[4, first.lift.computed(), first.rank()]);
        Ok(sum(&[first.learn_bytes(&new)?, basis, loaded]))
    }

    /// Returns the bytes of computing the spectrum.
    pub fn spectrum_bytes(&self) -> usize {
        let rank = self.rank();
        sum(&[self.load_bytes(), product(&[4, 8, rank, rank]), self.lift.bytes()])
    }

    /// Returns the bytes of computing the novelty of this many samples at a time.
    pub fn novelty_bytes(&self, samples: usize) -> Result<usize, Error> {
        let coordinates = product(&[4, 8, samples, self.rank()]);
        let packs = self.keeps_samples() && self.evicted.is_none() && packs(self.config.filter, self.rank());
        let factor = if packs { self.forming_bytes()? } else { self.spectrum_bytes() };
        Ok(sum(&[self.predict_bytes()?, factor, coordinates]))
    }

    /// Returns the bytes of prediction. A classifier that is not in a file is formed first.
    pub fn predict_bytes(&self) -> Result<usize, Error> {
        let (width, classes) = (self.lift.computed(), self.classes.len());
        let scores = self.lift.predict_bytes(classes);
        let kernel = if self.keeps_samples() { product(&[2, 8, CHUNK, self.rank()]) } else { 0 };
        let classifier = match (&self.weights, self.keeps_samples()) {
            (Some(_), true) => sum(&[self.load_bytes(), product(&[4, self.lift.dim, self.rank()])]),
            (Some(_), false) => 0,
            (None, _) => self.forming_bytes()?,
        };
        Ok(sum(&[classifier, product(&[4, width, classes]), scores, kernel]))
    }

    /// Returns the peak memory of forming the classifier.
    fn forming_bytes(&self) -> Result<usize, Error> {
        self.learn_bytes(&StreamSizes { samples: 0, largest_task: 0, classes: 0 })
    }
}
