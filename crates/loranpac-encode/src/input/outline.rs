//! What a listing shows of inputs before they are read.

use std::collections::{BTreeMap, HashSet};
use std::time::{SystemTime, UNIX_EPOCH};

use loranpac::Label;
use loranpac_data::Split;
use sha2::{Digest, Sha256};

use super::Tags;

/// A file of a folder or an archive.
pub(super) struct Found {
    pub name: String,
    pub size: u64,
    /// When the file, or the archive, was changed.
    pub modified: Option<SystemTime>,
}

/// Sizes of a folder or an archive of inputs, and a digest that changes with its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Training samples.
    pub train: usize,
    /// Test samples.
    pub test: usize,
    /// Inputs without a split.
    pub without_split: usize,
    /// Inputs without a label.
    pub without_label: usize,
    /// Different labels.
    pub classes: usize,
    /// Different domains.
    pub domains: usize,
    /// How many inputs have which tags.
    pub groups: Vec<(Tags, usize)>,
    /// SHA-256 of names, sizes, times of modification and tags; not of contents.
    pub digest: [u8; 32],
}

impl Outline {
    /// The outline of inputs with their tags.
    pub(super) fn new<'a>(inputs: impl Iterator<Item = (&'a Found, &'a Tags)>) -> Outline {
        let (mut classes, mut domains) = (HashSet::new(), HashSet::new());
        let (mut counts, mut without_label, mut groups) = ([0; 3], 0, BTreeMap::new());
        let mut digest = Sha256::new();
        for (file, tags) in inputs {
            counts[tags.split.map_or(2, |split| usize::from(split == Split::Test))] += 1;
            without_label += usize::from(tags.label.is_none());
            let place = (tags.split.map(Split::name), &tags.label, &tags.domain);
            groups.entry(place).or_insert_with(|| (tags.clone(), 0)).1 += 1;
            classes.extend(&tags.label);
            domains.extend(&tags.domain);
            let modified = file.modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let text = |label: &Option<Label>| label.as_ref().map(Label::to_string);
            let tags = (text(&tags.label), tags.split.map(Split::name), text(&tags.domain));
            digest.update(format!("{:?}\n", (&file.name, file.size, modified, tags)));
        }
        let [train, test, without_split] = counts;
        let (classes, domains) = (classes.len(), domains.len());
        let (groups, digest) = (groups.into_values().collect(), digest.finalize().into());
        Outline { train, test, without_split, without_label, classes, domains, groups, digest }
    }
}
