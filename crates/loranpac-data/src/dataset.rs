//! A data set in memory: features and labels, training and test, with classes numbered by their sorted labels.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use loranpac::{Features, Label};

use crate::error::{ArrayProblem, Error};
use crate::formats::{self, Array, Arrays};

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
    /// What to call it.
    pub name: String,
    /// Features per sample.
    pub dim: usize,
    /// All labels, sorted; a class's index is its place here.
    pub classes: Vec<Label>,
    /// Training samples.
    pub train: Part,
    /// Test samples.
    pub test: Part,
}

impl Dataset {
    /// Reads a feature file with `x_train`, `y_train`, `x_test`, `y_test` and, if there are any, `domain_train` and
    /// `domain_test`, and `x_train_layer*` with `x_test_layer*`.
    pub fn open(path: &Path) -> Result<Dataset, Error> {
        const NAMES: [&str; 6] = ["x_train", "y_train", "x_test", "y_test", "domain_train", "domain_test"];
        const LAYERS: [&str; 2] = ["x_train_layer", "x_test_layer"];
        let found = RefCell::new(BTreeSet::new());
        let mut arrays = formats::open(path, &|name| {
            found.borrow_mut().insert(name.to_owned());
            NAMES.contains(&name) || LAYERS.iter().any(|layer| name.starts_with(layer))
        })?;
        let found = found.into_inner().into_iter().collect::<Vec<_>>().join(", ");
        let (train, train_labels, dim) = part(path, &mut arrays, &found, "train")?;
        let (test, test_labels, test_dim) = part(path, &mut arrays, &found, "test")?;
        if dim != test_dim {
            let expected = format!("(samples, {dim}), as x_train,");
            let problem = ArrayProblem::Shape { found: vec![test_labels.len(), test_dim], expected };
            return Err(Error::Array { path: path.to_owned(), array: "x_test".to_owned(), problem });
        }
        let same = |(name, (dim, _)): (&String, &(usize, Vec<f32>))| test.layers.get(name).is_some_and(|t| t.0 == *dim);
        if train.layers.len() != test.layers.len() || !train.layers.iter().all(same) {
            let names = |part: &Part, half: &str| {
                let name = |(layer, (dim, _)): (&String, &(usize, _))| format!("x_{half}_{layer} ({dim} features)");
                part.layers.iter().map(name).collect::<Vec<_>>().join(", ")
            };
            let (train, test) = (names(&train, "train"), names(&test, "test"));
            return Err(Error::Layers { path: path.to_owned(), train, test });
        }
        let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Dataset::new(name, dim, (train, train_labels), (test, test_labels)))
    }

    /// Puts features and labels together.
    pub fn new(name: String, dim: usize, train: (Part, Vec<Label>), test: (Part, Vec<Label>)) -> Dataset {
        let classes: BTreeSet<Label> = train.1.iter().chain(&test.1).cloned().collect();
        let classes: Vec<Label> = classes.into_iter().collect();
        let index: HashMap<&Label, usize> = classes.iter().enumerate().map(|(i, label)| (label, i)).collect();
        let number =
            |(part, labels): (Part, Vec<Label>)| Part { y: labels.iter().map(|label| index[label]).collect(), ..part };
        let (train, test) = (number(train), number(test));
        drop(index);
        Dataset { name, dim, classes, train, test }
    }

    /// Keeps the first `count` training samples of each class, in file order.
    pub fn limit_per_class(&mut self, count: usize) {
        let mut seen = vec![0usize; self.classes.len()];
        let keep: Vec<usize> = (0..self.train.y.len())
            .filter(|&row| {
                seen[self.train.y[row]] += 1;
                seen[self.train.y[row]] <= count
            })
            .collect();
        let (x, y) = self.train.gather(&keep, self.dim);
        let domain = self.train.domain.as_ref().map(|d| keep.iter().map(|&row| d[row].clone()).collect());
        let layer = |(name, (dim, x)): (&String, &(usize, Vec<f32>))| (name.clone(), (*dim, rows_of(x, &keep, *dim)));
        let layers = self.train.layers.iter().map(layer).collect();
        self.train = Part { x, y, domain, layers };
    }

    /// The same samples with the features of all layers one after the other, the last layer's (`x_train`) at the end.
    /// None if the file has no layers.
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
        Some(Dataset { name: self.name.clone(), dim, classes: self.classes.clone(), train, test })
    }

    /// A number that changes with the features, the labels and the domains of the data.
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

/// FNV-1a over words: told apart are files that changed, not ones that somebody forged.
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

/// Features, labels and domains of the training or the test half.
fn part(path: &Path, arrays: &mut Arrays, found: &str, half: &str) -> Result<(Part, Vec<Label>, usize), Error> {
    let refuse = |array: String, problem| Error::Array { path: path.to_owned(), array, problem };
    let mut take = |name: &str| {
        arrays.remove(name).ok_or_else(|| Error::MissingArray {
            path: path.to_owned(),
            array: name.to_owned(),
            found: if found.is_empty() { "none at all".to_owned() } else { found.to_owned() },
        })
    };
    let features = |array: Array, name: &str| {
        let (x, rows, dim) = array.into_features().map_err(|p| refuse(name.to_owned(), p))?;
        if dim == 0 || rows == 0 {
            let expected = "at least one sample with one feature".to_owned();
            return Err(refuse(name.to_owned(), ArrayProblem::Shape { found: vec![rows, dim], expected }));
        }
        if let Some(at) = x.iter().position(|v| !v.is_finite()) {
            let source = loranpac::Error::NotFinite { row: at / dim, column: at % dim, value: x[at] };
            return Err(refuse(name.to_owned(), ArrayProblem::Feature(Box::new(source))));
        }
        Ok((x, rows, dim))
    };
    let (x_name, y_name, domain_name) = (format!("x_{half}"), format!("y_{half}"), format!("domain_{half}"));
    let (x, rows, dim) = features(take(&x_name)?, &x_name)?;
    let labels = take(&y_name)?.into_labels().map_err(|p| refuse(y_name.clone(), p))?;
    let same_length = |name: &str, length: usize| {
        let expected = format!("({rows},), one per row of {x_name},");
        if length == rows {
            Ok(())
        } else {
            Err(refuse(name.to_owned(), ArrayProblem::Shape { found: vec![length], expected }))
        }
    };
    same_length(&y_name, labels.len())?;
    let domain = match arrays.remove(&domain_name) {
        None => None,
        Some(array) => {
            let domain = array.into_labels().map_err(|p| refuse(domain_name.clone(), p))?;
            same_length(&domain_name, domain.len())?;
            Some(domain)
        }
    };
    let mut layers = BTreeMap::new();
    let prefix = format!("{x_name}_layer");
    let names: Vec<String> = arrays.keys().filter(|name| name.starts_with(&prefix)).cloned().collect();
    for name in names {
        let Some(array) = arrays.remove(&name) else { continue };
        let (x, count, dim) = features(array, &name)?;
        same_length(&name, count)?;
        layers.insert(name[x_name.len() + 1..].to_owned(), (dim, x));
    }
    Ok((Part { x, y: Vec::new(), domain, layers }, labels, dim))
}
