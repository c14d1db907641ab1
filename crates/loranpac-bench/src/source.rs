//! Where data come from: feature files by path or by name, and the digits inside the program.

use std::path::{Path, PathBuf};

use loranpac_data::{Dataset, ReadError, embedded, formats};

use crate::error::Error;
use crate::paper;
use crate::record::Data;

/// A data set that has not been read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Name of the data set.
    pub key: String,
    /// Encoder.
    pub backbone: String,
    /// The feature file; none for the digits inside the program.
    pub path: Option<PathBuf>,
}

impl Source {
    /// The digits inside the program.
    pub fn embedded() -> Source {
        Source { key: "digits".to_owned(), backbone: "pixels".to_owned(), path: None }
    }

    /// What a user calls a data set: the path of a feature file. `digits` are those inside the program, unless there are
    /// features under that name.
    pub fn named(path: &Path) -> Source {
        let embedded = Source::embedded();
        match path.as_os_str() == embedded.key.as_str() && !formats::looks_like_features(path) {
            true => embedded,
            false => Source::file_at(path),
        }
    }

    /// A feature file: `NAME.*` or `NAME-ENCODER.*`, where NAME is one of the paper's, or has no dash in it.
    pub fn file_at(path: &Path) -> Source {
        let stem = stem(path);
        let begins = |key: &&String| {
            stem.strip_prefix(key.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let length =
            paper::data_sets().keys().filter(begins).map(String::len).max().or(stem.find('-')).unwrap_or(stem.len());
        let (key, rest) = stem.split_at(length);
        let backbone = rest.trim_start_matches('-').to_owned();
        Source { key: key.to_owned(), backbone, path: Some(path.to_owned()) }
    }

    /// Reads the data.
    pub fn open(&self) -> Result<Dataset, Error> {
        Ok(self.path.as_deref().map_or_else(|| Ok(embedded::digits()), Dataset::open)?)
    }

    /// What is recorded about the data set that was read.
    pub fn data(&self, dataset: &Dataset) -> Data {
        Data {
            path: self.path.as_ref().map_or_else(|| self.key.clone(), |path| path.display().to_string()),
            key: self.key.clone(),
            backbone: self.backbone.clone(),
            file: self.file(),
            digest: format!("{:016x}", dataset.digest()),
        }
    }

    /// How a file differs from the data set of the paper that its name claims, in words.
    pub fn unlike_the_paper(&self, dataset: &Dataset) -> Option<String> {
        let sizes = (dataset.train.len(), dataset.test.len(), dataset.classes.len());
        let differs = paper::data_sets().get(&self.key)?.differs(sizes.0, sizes.1, sizes.2)?;
        Some(format!("{} is not compared with the paper: it has {differs}", self.file()))
    }

    fn file(&self) -> String {
        self.path.as_deref().map_or_else(|| self.key.clone(), stem)
    }
}

/// The feature files in a folder, in the order of their names.
pub fn feature_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let unreadable = |source| ReadError::new(folder, source);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if formats::looks_like_features(&path) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Finds the files of data sets among others: by the data set's name, or by the whole name of the file. Those of the
/// recipe's own encoder are preferred. Also returns the names without a file.
pub fn find(files: &[PathBuf], names: &[String], backbone: Option<&str>) -> (Vec<Source>, Vec<String>) {
    let all = all(files);
    let (mut sources, mut missing) = (Vec::new(), Vec::new());
    for name in names {
        let of: Vec<&Source> = all.iter().filter(|source| source.key == *name || source.file() == *name).collect();
        let preferred = of.iter().any(|source| Some(source.backbone.as_str()) == backbone);
        if of.is_empty() {
            missing.push(name.clone());
        }
        let wanted = |source: &&&Source| !preferred || Some(source.backbone.as_str()) == backbone;
        sources.extend(of.iter().filter(wanted).map(|&source| source.clone()));
    }
    (sources, missing)
}

/// Every file as a data set.
pub fn all(files: &[PathBuf]) -> Vec<Source> {
    files.iter().map(|path| Source::file_at(path)).collect()
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}
