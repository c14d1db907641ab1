//! The features of many inputs, gathered into splits: a feature file, or a data set in memory.

use std::collections::BTreeMap;

use loranpac::{Label, memory};
use loranpac_data::dataset::{self, Dataset};
use loranpac_data::formats::Column;
use loranpac_data::{EncodedBy, Split};

use crate::embedding::{Embedding, Encoded};
use crate::encoder::encoded_by;
use crate::error::Error;
use crate::input::{Outline, Tags, same_type};

/// The longest label, domain or name in bytes: an array of strings has the length of the longest for each.
const LONGEST: usize = 4096;

/// What inputs must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing but features.
    Nothing,
    /// A label, and training and test samples.
    Experiment,
}

impl Needs {
    /// Refuses folders and archives that lack something, before hours of work.
    ///
    /// # Errors
    /// If inputs have no label, or there are no training or no test samples.
    pub fn check(self, outline: &Outline) -> Result<(), Error> {
        match self {
            Needs::Nothing => Ok(()),
            Needs::Experiment if outline.without_label > 0 => Err(Error::NoLabels),
            Needs::Experiment if outline.without_split > 0 => Err(Error::NoSplits),
            Needs::Experiment if outline.train == 0 => Err(Error::EmptySplit { split: Split::Train.name() }),
            Needs::Experiment if outline.test == 0 => Err(Error::EmptySplit { split: Split::Test.name() }),
            Needs::Experiment => Ok(()),
        }
    }
}

/// The features of inputs, with their labels, domains and names. Either all inputs have a split or none, and the same
/// holds for labels and domains within a split.
pub struct FeatureSet {
    encoder: EncodedBy,
    dim: usize,
    layers: Vec<usize>,
    /// Samples without a split, training samples and test samples.
    parts: [Part; 3],
    computed: usize,
    skipped: Vec<String>,
}

/// The features of one split, and what is known about its samples.
#[derive(Default)]
struct Part {
    x: Vec<f32>,
    labels: Vec<Option<Label>>,
    domains: Vec<Option<Label>>,
    names: Vec<Label>,
}

impl FeatureSet {
    /// Encodes all inputs. `progress` is called with the number of inputs of each batch.
    ///
    /// # Errors
    /// If an input cannot be encoded, lacks what it needs, or has a tag that only some inputs have; if there are none.
    pub fn gather(
        mut embedding: Embedding,
        needs: Needs,
        mut progress: impl FnMut(usize),
    ) -> Result<FeatureSet, Error> {
        let row = embedding.row();
        let mut parts: [Part; 3] = Default::default();
        while let Some(Encoded { names, tags, features, .. }) = embedding.next_batch()? {
            progress(names.len());
            for ((name, tags), x) in names.into_iter().zip(tags).zip(features.chunks_exact(row)) {
                if needs == Needs::Experiment && tags.label.is_none() {
                    return Err(Error::NoLabels);
                }
                if needs == Needs::Experiment && tags.split.is_none() {
                    return Err(Error::NoSplits);
                }
                parts[place(tags.split)].push(name, tags, x)?;
            }
        }
        let skipped = embedding.skipped();
        check(&parts, needs)?;
        unify(&mut parts);
        let encoder = embedding.encoder();
        Ok(FeatureSet {
            encoder: encoded_by(encoder),
            dim: encoder.dim(),
            layers: embedding.chosen_layers().to_vec(),
            parts,
            computed: embedding.computed(),
            skipped,
        })
    }

    /// The encoder.
    pub fn encoder(&self) -> &EncodedBy {
        &self.encoder
    }

    /// Features per sample and layer.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.names.len()).sum()
    }

    /// Whether there are no samples. [`FeatureSet::gather`] refuses this.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Samples that were encoded, rather than found in the cache.
    pub fn computed(&self) -> usize {
        self.computed
    }

    /// Inputs that were skipped, with the reason.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// The arrays of a feature file: for each split features, labels, domains and names. Several layers have an array
    /// each, and `x` is the last.
    pub fn columns(self) -> Vec<(String, Column)> {
        let EncodedBy { name, digest } = self.encoder;
        let mut columns = vec![("encoder".to_owned(), Column::Labels(vec![name.into(), digest.into()]))];
        for (part, suffix) in self.parts.into_iter().zip(["", Split::Train.suffix(), Split::Test.suffix()]) {
            if part.names.is_empty() {
                continue;
            }
            let (x, layers) = by_layer(part.x, self.dim, &self.layers);
            columns.push((format!("x{suffix}"), Column::Matrix(self.dim, x)));
            let named = |(number, x)| (format!("x{suffix}_layer{number}"), Column::Matrix(self.dim, x));
            columns.extend(layers.into_iter().map(named));
            for (tags, name) in [(part.labels, "y"), (part.domains, "domain")] {
                let tags: Vec<Label> = tags.into_iter().flatten().collect();
                if !tags.is_empty() {
                    columns.push((format!("{name}{suffix}"), Column::Labels(tags)));
                }
            }
            columns.push((format!("name{suffix}"), Column::Labels(part.names)));
        }
        columns
    }

    /// The data set that a feature file with [`FeatureSet::columns`] holds.
    ///
    /// # Errors
    /// If there are no splits or labels, or if only one split has domains.
    pub fn dataset(self, name: String) -> Result<Dataset, Error> {
        check(&self.parts, Needs::Experiment)?;
        let [_, train, test] = self.parts;
        let (dim, layers) = (self.dim, self.layers);
        let half = |part: Part| {
            let (x, others) = by_layer(part.x, dim, &layers);
            let layers = others.into_iter().map(|(number, x)| (format!("layer{number}"), (dim, x)));
            let domain: Vec<Label> = part.domains.into_iter().flatten().collect();
            let domain = (!domain.is_empty()).then_some(domain);
            let labels: Vec<Label> = part.labels.into_iter().flatten().collect();
            (dataset::Part { x, y: Vec::new(), domain, layers: layers.collect::<BTreeMap<_, _>>() }, labels)
        };
        let data = Dataset::new(name, dim, half(train), half(test));
        Ok(Dataset { encoder: Some(self.encoder), ..data })
    }
}

impl Part {
    fn push(&mut self, name: String, Tags { label, domain, .. }: Tags, x: &[f32]) -> Result<(), Error> {
        let long = |label: &Label| matches!(label, Label::Text(text) if text.len() > LONGEST);
        if name.len() > LONGEST || label.iter().chain(&domain).any(long) {
            return Err(Error::LongTag { name: name.chars().take(80).collect(), limit: LONGEST });
        }
        memory::grow(&mut self.x, x.len())?;
        self.x.extend_from_slice(x);
        self.labels.push(label);
        self.domains.push(domain);
        self.names.push(Label::Text(name));
        Ok(())
    }
}

/// The place of a split among the parts.
fn place(split: Option<Split>) -> usize {
    match split {
        None => 0,
        Some(Split::Train) => 1,
        Some(Split::Test) => 2,
    }
}

/// Refuses tags that only some inputs have, and parts that lack what they need.
fn check(parts: &[Part; 3], needs: Needs) -> Result<(), Error> {
    let [without, train, test] = parts;
    let mixed = |name: &Label, tag| Error::SomeWithout { name: name.to_string(), tag };
    match without.names.first() {
        None if train.names.is_empty() && test.names.is_empty() => return Err(Error::NothingUsable),
        Some(name) if !(train.names.is_empty() && test.names.is_empty()) => return Err(mixed(name, "split")),
        Some(_) if needs == Needs::Experiment => return Err(Error::NoSplits),
        _ => {}
    }
    for part in parts {
        for (tags, tag) in [(&part.labels, "label"), (&part.domains, "domain")] {
            if let Some(missing) = tags.iter().position(Option::is_none).filter(|_| tags.iter().any(Option::is_some)) {
                return Err(mixed(&part.names[missing], tag));
            }
        }
    }
    if needs == Needs::Nothing {
        return Ok(());
    }
    for (part, split) in [(train, Split::Train), (test, Split::Test)] {
        match (part.labels.first(), part.domains.first()) {
            (None, _) => return Err(Error::EmptySplit { split: split.name() }),
            (Some(None), _) => return Err(Error::NoLabels),
            (_, Some(None)) if [train, test].iter().any(|other| matches!(other.domains.first(), Some(Some(_)))) => {
                return Err(mixed(&part.names[0], "domain"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Makes all labels texts if one of them is, and the same for domains: 1 and "1" are different classes.
fn unify(parts: &mut [Part; 3]) {
    same_type(parts.iter_mut().flat_map(|part| &mut part.labels).flatten().collect());
    same_type(parts.iter_mut().flat_map(|part| &mut part.domains).flatten().collect());
}

/// The features of the last of some layers, which stand side by side in each row, and those of each of them if there are
/// several.
fn by_layer(x: Vec<f32>, dim: usize, layers: &[usize]) -> (Vec<f32>, Vec<(usize, Vec<f32>)>) {
    if layers.len() < 2 {
        return (x, Vec::new());
    }
    let rows = || x.chunks_exact(dim * layers.len());
    let layer = |at: usize| rows().flat_map(|row| &row[at * dim..(at + 1) * dim]).copied().collect::<Vec<f32>>();
    let all = layers.iter().enumerate().map(|(at, &number)| (number, layer(at))).collect();
    (layer(layers.len() - 1), all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(labels: &[Option<Label>], domains: &[Option<Label>]) -> Part {
        let mut part = Part::default();
        for (at, (label, domain)) in labels.iter().zip(domains).enumerate() {
            let tags = Tags { label: label.clone(), split: None, domain: domain.clone() };
            part.push(format!("input {at}"), tags, &[at as f32, 10.0 + at as f32]).unwrap();
        }
        part
    }

    fn set(parts: [Part; 3], dim: usize, layers: Vec<usize>) -> FeatureSet {
        let encoder = EncodedBy { name: "e".to_owned(), digest: "d".to_owned() };
        FeatureSet { encoder, dim, layers, parts, computed: 0, skipped: Vec::new() }
    }

    #[test]
    fn a_data_set_equals_the_feature_file_that_is_read_back() {
        let (a, b) = (Some(Label::from("a")), Some(Label::from("b")));
        let domain = Some(Label::Integer(7));
        for (dim, layers) in [(2, vec![11]), (1, vec![5, 11])] {
            let parts = || {
                let train = part(&[a.clone(), b.clone(), a.clone()], &vec![domain.clone(); 3]);
                [Part::default(), train, part(std::slice::from_ref(&b), std::slice::from_ref(&domain))]
            };
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("f.npz");
            let columns = set(parts(), dim, layers.clone()).columns();
            std::fs::write(&path, loranpac_data::formats::to_npz(&columns).unwrap()).unwrap();
            let read = Dataset::open(&path).unwrap();
            let ours = set(parts(), dim, layers).dataset("f".to_owned()).unwrap();
            assert_eq!(ours.digest(), read.digest());
            assert_eq!((&ours.name, ours.dim, &ours.classes), (&read.name, read.dim, &read.classes));
            assert_eq!((&ours.encoder, ours.encoder.is_some()), (&read.encoder, true));
            for (ours, read) in [(&ours.train, &read.train), (&ours.test, &read.test)] {
                assert_eq!((&ours.x, &ours.y, &ours.domain), (&read.x, &read.y, &read.domain));
                assert_eq!(ours.layers, read.layers);
            }
        }
    }

    #[test]
    fn an_experiment_needs_labels_and_both_splits() {
        let a = Some(Label::from("a"));
        let message = |parts: [Part; 3]| set(parts, 2, vec![0]).dataset("f".to_owned()).unwrap_err().to_string();
        let one = || part(std::slice::from_ref(&a), &[None]);
        let none = Part::default;
        assert!(message([one(), none(), none()]).contains("no splits"));
        assert!(message([none(), one(), none()]).contains("no test samples"));
        assert!(message([none(), none(), one()]).contains("no training samples"));
        assert!(message([none(), one(), part(&[None], &[None])]).contains("no labels"));
        assert!(message([one(), one(), one()]).contains("input 0: no split"));
        assert!(message([none(), one(), part(&[a.clone(), None], &[None, None])]).contains("input 1: no label"));
        let with = part(std::slice::from_ref(&a), &[Some(Label::from("art"))]);
        assert!(message([none(), with, one()]).contains("input 0: no domain"));
    }
}
