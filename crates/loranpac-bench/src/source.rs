//! Where data come from: feature files by path or by name, raw data that were encoded, and the digits inside the program.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loranpac_data::{Dataset, ReadError, embedded, formats};

use crate::adapted::RawData;
use crate::error::Error;
use crate::paper;
use crate::raw::RawPlace;
use crate::record::Data;

/// A data set, which need not have been read yet.
#[derive(Debug, Clone)]
pub struct Source {
    /// Name of the data set.
    pub key: String,
    /// Encoder.
    pub backbone: String,
    place: Place,
    /// The images or texts that the features were computed from.
    raw: Option<RawPlace>,
}

/// Where the data are.
#[derive(Debug, Clone)]
enum Place {
    /// Inside the program.
    Program,
    /// In a feature file.
    File(PathBuf),
    /// In memory: encoded from raw data under a path, with the options of `loranpac run` that do it.
    Memory { path: PathBuf, options: Vec<String>, dataset: Arc<Dataset> },
}

impl Source {
    /// The digits inside the program.
    pub fn embedded() -> Source {
        Source { key: "digits".to_owned(), backbone: "pixels".to_owned(), place: Place::Program, raw: None }
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
        Source::file(key, rest.trim_start_matches('-'), path)
    }

    /// A feature file, whatever its name.
    pub fn file(key: &str, backbone: &str, path: &Path) -> Source {
        Source { key: key.to_owned(), backbone: backbone.to_owned(), place: Place::File(path.to_owned()), raw: None }
    }

    /// Raw data under a path that were encoded by `loranpac run --data PATH` with these options.
    pub fn encoded(path: &Path, options: Vec<String>, dataset: Dataset) -> Source {
        let backbone = dataset.encoder.as_ref().map_or_else(String::new, |encoder| encoder.name.clone());
        let place = Place::Memory { path: path.to_owned(), options, dataset: Arc::new(dataset) };
        Source { key: loranpac_encode::input::stem(path), backbone, place, raw: None }
    }

    /// The same under the name of a data set.
    pub fn called(self, key: &str) -> Source {
        Source { key: key.to_owned(), ..self }
    }

    /// The same with the images or texts that the features were computed from.
    pub fn with_raw(self, raw: RawPlace) -> Source {
        Source { raw: Some(raw), ..self }
    }

    /// The images or texts that the features were computed from, if they are known.
    pub fn raw(&self) -> Option<RawData> {
        self.raw.clone().map(RawData::new)
    }

    /// Reads the data.
    pub fn open(&self) -> Result<Arc<Dataset>, Error> {
        Ok(match &self.place {
            Place::Program => Arc::new(embedded::digits()),
            Place::File(path) => Arc::new(Dataset::open(path).map_err(|error| explain(path, error))?),
            Place::Memory { dataset, .. } => dataset.clone(),
        })
    }

    /// What is recorded about the data set that was read.
    pub fn data(&self, dataset: &Dataset) -> Data {
        Data {
            path: match &self.place {
                Place::Program => self.key.clone(),
                Place::File(path) | Place::Memory { path, .. } => path.display().to_string(),
            },
            key: self.key.clone(),
            backbone: self.backbone.clone(),
            file: self.title(),
            digest: format!("{:016x}", dataset.digest()),
            options: match &self.place {
                Place::Memory { options, .. } => options.clone(),
                Place::Program | Place::File(_) => Vec::new(),
            },
            raw: match (&self.place, &self.raw) {
                (Place::File(_), Some(raw)) => raw.inputs.first().map(|path| (path.display().to_string(), raw.words())),
                _ => None,
            },
        }
    }

    /// How a file differs from the data set of the paper that its name claims, in words.
    pub fn unlike_the_paper(&self, dataset: &Dataset) -> Option<String> {
        let sizes = (dataset.train.len(), dataset.test.len(), dataset.classes.len());
        let differs = paper::data_sets().get(&self.key)?.differs(sizes.0, sizes.1, sizes.2)?;
        Some(format!("{} is not compared with the paper: it has {differs}", self.title()))
    }

    /// What tables and files of runs are called after.
    fn title(&self) -> String {
        match &self.place {
            Place::Program => self.key.clone(),
            Place::File(path) => stem(path),
            Place::Memory { .. } => plain(&format!("{}-{}", self.key, self.backbone)),
        }
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
        let of: Vec<&Source> = all.iter().filter(|source| source.key == *name || source.title() == *name).collect();
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

/// A name without characters that a file's name should not have.
pub fn plain(name: &str) -> String {
    let fits = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    name.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}

/// Why a path is no feature file: it may hold raw data.
fn explain(path: &Path, error: loranpac_data::Error) -> Error {
    match loranpac_encode::input::modality_of(path) {
        Some(modality) => Error::NotFeatures { path: path.to_owned(), modality },
        None => error.into(),
    }
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}
