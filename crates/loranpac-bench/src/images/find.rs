//! Data sets below a folder, by the names of their folders and archives.

use std::path::{Path, PathBuf};

use loranpac_data::{ReadError, Split};
use loranpac_encode::input::{is_folder_or_archive, stem};
use loranpac_encode::{InputOptions, Inputs, Layout, Needs};

use crate::error::Error;
use crate::paper;

/// What may follow the name of a data set.
const SUFFIX: &str = "images";

/// A data set as a folder or an archive of raw inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSet {
    /// Its name in recipes.
    pub key: String,
    /// The folder or archive.
    pub path: PathBuf,
    /// What the folders in it stand for.
    pub layout: Layout,
}

impl ImageSet {
    /// Lists its inputs, which must have labels and both splits. No contents are read.
    pub fn open(&self, options: &InputOptions) -> Result<Inputs, Error> {
        let (path, options) = self.place(options);
        let inputs = Inputs::open(&[path], &options)?;
        let refuse = |source| Error::Images { path: self.path.clone(), source: Box::new(source) };
        inputs.outline().map_or(Ok(()), |outline| Needs::Experiment.check(outline)).map_err(refuse)?;
        Ok(inputs)
    }

    /// Where its inputs are, and how they are read.
    pub fn place(&self, options: &InputOptions) -> (PathBuf, InputOptions) {
        let options = InputOptions { layout: self.layout, ..options.clone() };
        (if self.layout == Layout::Usual { inner(&self.path) } else { self.path.clone() }, options)
    }

    /// How it differs from the data set of the paper that its name claims, in words.
    pub fn unlike_the_paper(&self, inputs: &Inputs) -> Option<String> {
        let outline = inputs.outline()?;
        let differs = paper::data_sets().get(&self.key)?.differs(outline.train, outline.test, outline.classes)?;
        Some(format!("{} is not compared with the paper: it has {differs}", self.path.display()))
    }
}

/// Finds data sets by name: the paper's under the names of their public folders, others under their own. A folder is
/// preferred to an archive. Also returns the names without either.
pub fn named(folder: &Path, names: &[String]) -> Result<(Vec<ImageSet>, Vec<String>), Error> {
    let places = places(folder)?;
    let (mut sets, mut missing) = (Vec::new(), Vec::new());
    for name in names {
        let names = names_of(name);
        let is_wanted = |path: &&PathBuf| names.iter().any(|name| is_called(path, name));
        match places.iter().find(is_wanted) {
            Some(path) => sets.push(ImageSet { key: name.clone(), path: path.clone(), layout: layout(name) }),
            None => missing.push(name.clone()),
        }
    }
    Ok((sets, missing))
}

/// All data sets, each once.
pub fn all(folder: &Path) -> Result<Vec<ImageSet>, Error> {
    let mut sets: Vec<ImageSet> = Vec::new();
    for path in places(folder)? {
        let papers = |key: &&String| names_of(key).iter().any(|name| is_called(&path, name));
        let key = paper::data_sets().keys().find(papers).cloned().unwrap_or_else(|| own_key(&path));
        if !sets.iter().any(|set| set.key == key) {
            sets.push(ImageSet { layout: layout(&key), key, path });
        }
    }
    sets.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(sets)
}

/// The folders, then the archives, in the order of their names.
fn places(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let unreadable = |source| ReadError::new(folder, source);
    let mut places = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !hidden && is_folder_or_archive(&entry.path()) {
            places.push(entry.path());
        }
    }
    places.sort_by_cached_key(|path| (!path.is_dir(), path.clone()));
    Ok(places)
}

/// The only folder in a folder, and so on, unless it is that of a split: an archive that was unpacked into a folder of its
/// name.
fn inner(path: &Path) -> PathBuf {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_hidden = |path: &PathBuf| stem(path).starts_with('.');
    match &entries.filter(|path| !is_hidden(path)).collect::<Vec<_>>()[..] {
        [only] if only.is_dir() && Split::from_name(&stem(only)).is_none() => inner(only),
        _ => path.to_owned(),
    }
}

/// The names that a data set may have, its key first.
fn names_of(key: &str) -> Vec<&str> {
    let public = paper::data_sets().get(key).into_iter().flat_map(|set| &set.folders).map(String::as_str);
    std::iter::once(key).chain(public).collect()
}

fn layout(key: &str) -> Layout {
    paper::data_sets().get(key).map_or_else(Layout::default, |set| set.layout)
}

/// Whether a folder or an archive has a name, or a name followed by `images`.
fn is_called(path: &Path, name: &str) -> bool {
    let (found, name) = (plain(&stem(path)), plain(name));
    found.strip_prefix(&name).is_some_and(|rest| rest.is_empty() || rest == SUFFIX)
}

/// The key of a data set that is not the paper's.
fn own_key(path: &Path) -> String {
    let stem = stem(path);
    let own = stem.strip_suffix(SUFFIX).and_then(|own| own.strip_suffix(['-', '_'])).filter(|own| !own.is_empty());
    own.unwrap_or(&stem).to_owned()
}

/// A name in lower case without signs.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_sets_are_found_under_their_public_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["CUB", "imagenet-r", "Cars", "core50_128x128", "CDDB", "my set", ".hidden"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        for name in ["cub.zip", "domainnet.tar.gz", "pacs-images.tar", "notes.txt", "ImageNet_A.tgz"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let names = |sets: &[ImageSet]| -> Vec<String> {
            let name = |set: &ImageSet| set.path.file_name().unwrap().to_string_lossy().into_owned();
            sets.iter().map(|set| format!("{} {} {:?}", set.key, name(set), set.layout)).collect()
        };
        let wanted = ["cub200", "vtab", "domainnet", "pacs", "my set"].map(str::to_owned);
        let (sets, missing) = named(folder.path(), &wanted).unwrap();
        let expected = [
            "cub200 CUB Usual",
            "domainnet domainnet.tar.gz Lists",
            "pacs pacs-images.tar Usual",
            "my set my set Usual",
        ];
        assert_eq!(names(&sets), expected);
        assert_eq!(missing, ["vtab"]);
        let expected = [
            "cddb-hard CDDB Forgeries",
            "core50 core50_128x128 Sessions",
            "cub200 CUB Usual",
            "domainnet domainnet.tar.gz Lists",
            "imagenet-a ImageNet_A.tgz Usual",
            "imagenet-r imagenet-r Usual",
            "my set my set Usual",
            "pacs pacs-images.tar Usual",
            "stanfordcars Cars Usual",
        ];
        assert_eq!(names(&all(folder.path()).unwrap()), expected);
    }
}
