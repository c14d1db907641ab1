//! The paper's data sets: names, scenarios and sizes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use loranpac_encode::Layout;
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
    /// Names that the folder or archive of its images may have, besides its key.
    #[serde(default)]
    pub folders: Vec<String>,
    /// What the folders of its images stand for.
    #[serde(default)]
    pub layout: Layout,
}

impl DataSet {
    /// How data of these sizes differ from it, in words: each split that does.
    pub fn differs(&self, train: usize, test: usize, classes: usize) -> Option<String> {
        let sizes = [
            (train, self.train, "training samples"),
            (test, self.test, "test samples"),
            (classes, self.classes, "classes"),
        ];
        let words = |&(ours, theirs, what): &(usize, usize, &str)| format!("{ours} {what} instead of {theirs}");
        let other: Vec<String> = sizes.iter().filter(|(ours, theirs, _)| ours != theirs).map(words).collect();
        (!other.is_empty()).then(|| format!("{} (the paper's {})", other.join(", "), self.name))
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
        let official = "5994 training samples instead of 9430, 5794 test samples instead of 2358 (the paper's CUB-200)";
        assert_eq!(sets["cub200"].differs(5994, 5794, 200).unwrap(), official);
        let fewer = sets["vtab"].differs(1796, 8619, 49).unwrap();
        assert_eq!(fewer, "49 classes instead of 50 (the paper's VTAB)", "only what differs is named");
    }
}
