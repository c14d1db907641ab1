//! A data set in memory: features and labels, training and test, with classes numbered by their sorted labels.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use loranpac::{Features, Label};

use crate::error::Error;
use crate::rows::EncodedBy;

/// Training or test samples.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// Features, one row per sample.
    pub x: Vec<f32>,
    /// Class of each sample, an index into [`Dataset::classes`].
    pub y: Vec<usize>,
    /// Domain of each sample, for domain-incremental streams.
    pub domain: Option<Vec<Label>>,
    /// Features of further layers of the encoder, by the name of the layer: (features per sample, one row per sample).
    pub layers: BTreeMap<String, (usize, Vec<f32>)>,
}

/// Features and labels of one data set.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// Its name.
    pub name: String,
    /// Features per sample.
    pub dim: usize,
    /// All labels, sorted; a class's index is its place here.
    pub classes: Vec<Label>,
    /// Training samples.
    pub train: Part,
    /// Test samples.
    pub test: Part,
    /// The encoder that computed the features, if it is recorded.
    pub encoder: Option<EncodedBy>,
}

impl Dataset {
    /// Builds a data set from features and labels.
    pub fn new(name: String, dim: usize, train: (Part, Vec<Label>), test: (Part, Vec<Label>)) -> Dataset {
        let classes: BTreeSet<Label> = train.1.iter().chain(&test.1).cloned().collect();
        let classes: Vec<Label> = classes.into_iter().collect();
        let index: HashMap<&Label, usize> = classes.iter().enumerate().map(|(i, label)| (label, i)).collect();
        let number =
            |(part, labels): (Part, Vec<Label>)| Part { y: labels.iter().map(|label| index[label]).collect(), ..part };
        let (train, test) = (number(train), number(test));
        drop(index);
        Dataset { name, dim, classes, train, test, encoder: None }
    }

    /// The number of training samples of each class.
    pub fn class_sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0usize; self.classes.len()];
        self.train.y.iter().for_each(|&class| sizes[class] += 1);
        sizes
    }

    /// The rows of the first training samples of each class, up to a limit for each.
    pub fn first_of_classes(&self, limits: &[usize]) -> Vec<usize> {
        let mut left = limits.to_vec();
        let mut take = |class: usize| {
            let room = left[class] > 0;
            left[class] -= usize::from(room);
            room
        };
        (0..self.train.y.len()).filter(|&row| take(self.train.y[row])).collect()
    }

    /// Keeps the first `count` training samples of each class, in their order.
    pub fn limit_per_class(&mut self, count: usize) {
        self.keep_train(&self.first_of_classes(&vec![count; self.classes.len()]));
    }

    /// Keeps these training samples, in this order.
    pub fn keep_train(&mut self, keep: &[usize]) {
        let (x, y) = self.train.gather(keep, self.dim);
        let domain = self.train.domain.as_ref().map(|d| keep.iter().map(|&row| d[row].clone()).collect());
        let layer = |(name, (dim, x)): (&String, &(usize, Vec<f32>))| (name.clone(), (*dim, rows_of(x, keep, *dim)));
        let layers = self.train.layers.iter().map(layer).collect();
        self.train = Part { x, y, domain, layers };
    }

    /// The same samples with the features of all layers concatenated, the last layer's (`x_train`) at the end. None if
    /// the data set has no layers.
    pub fn with_layers(&self) -> Option<Dataset> {
        if self.train.layers.is_empty() {
            return None;
        }
        let dim = self.dim + self.train.layers.values().map(|(dim, _)| dim).sum::<usize>();
        let stack = |part: &Part| {
            let mut x = Vec::with_capacity(part.len() * dim);
            for row in 0..part.len() {
                part.layers.values().for_each(|(dim, layer)| x.extend_from_slice(&layer[row * dim..(row + 1) * dim]));
                x.extend_from_slice(&part.x[row * self.dim..(row + 1) * self.dim]);
            }
            Part { x, y: part.y.clone(), domain: part.domain.clone(), layers: BTreeMap::new() }
        };
        let (train, test) = (stack(&self.train), stack(&self.test));
        let (name, classes, encoder) = (self.name.clone(), self.classes.clone(), self.encoder.clone());
        Some(Dataset { name, dim, classes, train, test, encoder })
    }

    /// A digest of features, labels and domains.
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest.add(self.dim as u64);
        for label in &self.classes {
            label.to_string().bytes().for_each(|byte| digest.add(byte.into()));
            digest.add(u64::MAX);
        }
        for part in [&self.train, &self.test] {
            part.x.iter().for_each(|value| digest.add(value.to_bits().into()));
            part.y.iter().for_each(|&class| digest.add(class as u64));
            let layers = part.layers.values().flat_map(|(_, x)| x);
            layers.for_each(|value| digest.add(value.to_bits().into()));
            let domains = part.domain.iter().flatten().map(Label::to_string).collect::<Vec<_>>();
            domains.iter().flat_map(|domain| domain.bytes()).for_each(|byte| digest.add(byte.into()));
        }
        digest.0
    }

    /// Labels by class index.
    pub fn labels(&self, classes: &[usize]) -> Vec<Label> {
        classes.iter().map(|&class| self.classes[class].clone()).collect()
    }
}

/// FNV-1a over words. It detects files that changed, not files that were forged.
pub struct Digest(pub u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds a word.
    pub fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    }
}

impl Part {
    /// Number of samples.
    pub fn len(&self) -> usize {
        self.y.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.y.is_empty()
    }

    /// Copies some rows.
    pub fn gather(&self, rows: &[usize], dim: usize) -> (Vec<f32>, Vec<usize>) {
        (rows_of(&self.x, rows, dim), rows.iter().map(|&row| self.y[row]).collect())
    }

    /// All samples.
    pub fn features(&self, dim: usize) -> Result<Features<'_>, Error> {
        Ok(Features::new(&self.x, dim)?)
    }
}

fn rows_of(x: &[f32], rows: &[usize], dim: usize) -> Vec<f32> {
    let mut chosen = Vec::with_capacity(rows.len() * dim);
    rows.iter().for_each(|&row| chosen.extend_from_slice(&x[row * dim..(row + 1) * dim]));
    chosen
}
