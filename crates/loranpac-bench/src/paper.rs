//! The paper's data sets: names, scenarios and sizes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// One of the paper's data sets.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSet {
    /// The paper's name.
    pub name: String,
    /// `class` or `domain`.
    pub scenario: String,
    /// Training samples.
    pub train: usize,
    /// Test samples.
    pub test: usize,
    /// Classes.
    pub classes: usize,
}

impl DataSet {
    /// How a file of these sizes differs from it, in words.
    pub fn differs(&self, train: usize, test: usize, classes: usize) -> Option<String> {
        let ours = (train, test, classes);
        let theirs = (self.train, self.test, self.classes);
        let words = |(train, test, classes)| format!("{train} training and {test} test samples of {classes} classes");
        (ours != theirs).then(|| format!("{}; the paper's {} has {}", words(ours), self.name, words(theirs)))
    }
}

/// The paper's data sets by key.
pub fn data_sets() -> &'static BTreeMap<String, DataSet> {
    static SETS: LazyLock<BTreeMap<String, DataSet>> =
        LazyLock::new(|| toml::from_str(include_str!("../paper/datasets.toml")).unwrap_or_default());
    &SETS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_tell_files_apart() {
        let sets = data_sets();
        assert_eq!(sets.len(), 11);
        assert_eq!(sets["cub200"].differs(9430, 2358, 200), None);
        assert!(sets["cub200"].differs(5994, 5794, 200).unwrap().contains("the paper's CUB-200 has 9430"));
    }
}
