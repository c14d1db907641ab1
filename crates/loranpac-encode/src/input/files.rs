//! Files on disk: those of a folder, of a list, or a single one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use loranpac_data::disk;

use super::layout::{self, Listing};
use super::outline::Found;
use super::{About, Input, InputOptions, LONGEST_LIST, Present, Source, Tags, read_limited, same_type, shown, to_data};
use crate::error::Error;
use crate::regular;

/// The most folders inside one another.
const DEEPEST: usize = 32;
/// The longest path in a list or a table, in bytes.
pub(super) const LONGEST_PATH: usize = 4096;

/// Files and their tags, in order.
pub(super) struct Files {
    files: std::vec::IntoIter<Entry>,
    /// The folder that contains them.
    folder: Option<String>,
    about: About,
    options: InputOptions,
}

/// A file that is read when it is due.
struct Entry {
    name: String,
    path: PathBuf,
    tags: Tags,
    /// The line of the list that names it.
    place: Option<String>,
}

impl Files {
    /// All files of a folder and of the folders in it, by name.
    pub fn folder(path: &Path, options: &InputOptions) -> Result<Files, Error> {
        let mut found = Vec::new();
        let own = path.canonicalize().map_err(|source| Error::Read { path: path.to_owned(), source })?;
        walk(path, "", &mut vec![own], &mut found)?;
        found.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        let (found, paths): (Vec<Found>, Vec<PathBuf>) = found.into_iter().unzip();
        let read = |at: usize| {
            let failed = |source| Error::Read { path: paths[at].clone(), source };
            read_limited(&paths[at].display().to_string(), regular::open(&paths[at]).map_err(failed)?, LONGEST_LIST)
        };
        let Listing { inputs, about } = layout::list(path, &found, options, false, read)?;
        let file = |(at, tags): (usize, Tags)| {
            let (name, path) = (found[at].name.clone(), paths[at].clone());
            Entry { name, path, tags, place: None }
        };
        let files = inputs.into_iter().map(file).collect::<Vec<_>>().into_iter();
        // With a separator at its end.
        let folder = Some(path.join("").display().to_string());
        Ok(Files { files, folder, about, options: options.clone() })
    }

    /// The files of a list: one path per line, optionally followed by a blank and a label.
    pub fn list(path: &Path, options: &InputOptions) -> Result<Files, Error> {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        let bytes = regular::read(path, LONGEST_LIST).map_err(failed)?;
        let text = String::from_utf8(bytes).map_err(|_| failed(io::Error::other("it is not valid UTF-8")))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let (mut files, mut skipped) = (Vec::new(), Vec::new());
        let lines = text.lines().map(str::trim).zip(1u64..);
        for (line, number) in lines.filter(|(line, _)| !line.is_empty()) {
            let is_wanted = |name: &str| name.len() <= LONGEST_PATH && layout::is_wanted(name, options.modality);
            let shortened = || line.chars().take(LONGEST_PATH).collect::<String>();
            let (name, label) = match line.rsplit_once(char::is_whitespace) {
                _ if is_wanted(line) => (line, None),
                Some((name, label)) if is_wanted(name.trim_end()) => (name.trim_end(), Some(layout::label(label))),
                _ if options.skip_bad => {
                    skipped.push(shortened());
                    continue;
                }
                _ => {
                    let (path, name) = (path.to_owned(), shortened());
                    return Err(Error::OtherFile { path, name, modality: options.modality });
                }
            };
            let tags = Tags { label, ..Tags::default() };
            let place = Some(place(path, number));
            files.push(Entry { name: name.to_owned(), path: folder.join(name), tags, place });
        }
        if files.is_empty() {
            return Err(Error::NoInputs { path: path.to_owned(), modality: options.modality });
        }
        same_type(files.iter_mut().filter_map(|file| file.tags.label.as_mut()).collect());
        let present = Present::of(files.iter().map(|file| &file.tags));
        let about = About { present, skipped, outline: None };
        Ok(Files { files: files.into_iter(), folder: None, about, options: options.clone() })
    }

    /// One file.
    pub fn single(path: &Path, options: &InputOptions) -> Files {
        let name = layout::readable(path.as_os_str().as_encoded_bytes());
        let file = Entry { name, path: path.to_owned(), tags: Tags::default(), place: None };
        let present = Present { names: true, ..Present::default() };
        let about = About { present, ..About::default() };
        Files { files: vec![file].into_iter(), folder: None, about, options: options.clone() }
    }
}

impl Source for Files {
    fn about(&self) -> &About {
        &self.about
    }

    fn len(&self) -> Option<usize> {
        Some(self.files.len())
    }

    fn next(&mut self) -> Option<Result<Input, Error>> {
        let Entry { name, path, tags, place } = self.files.next()?;
        Some(match place.or_else(|| self.folder.clone()) {
            Some(place) => read_listed(place, name, &path, tags, &self.options),
            None => read(&name, &path, &self.options).map(|data| Input { tags, ..Input::new(name, data) }),
        })
    }
}

/// A line of a table or a list, as messages name it.
pub(super) fn place(path: &Path, line: u64) -> String {
    format!("{}:{line}", path.display())
}

/// Reads a file of a folder, or one that a table or a list names. Errors name the folder or the line as well.
pub(super) fn read_listed(
    place: String,
    name: String,
    path: &Path,
    tags: Tags,
    options: &InputOptions,
) -> Result<Input, Error> {
    let listed = shown(&place, &name);
    let data = read(&listed, path, options).map_err(|error| match error {
        Error::Read { source, .. } => Error::Input { name: listed, reason: format!("it cannot be read: {source}") },
        other => other,
    })?;
    Ok(Input { tags, place: Some(place), ..Input::new(name, data) })
}

/// Reads a file.
pub(super) fn read(name: &str, path: &Path, options: &InputOptions) -> Result<super::Data, Error> {
    // A pipe would wait forever.
    let file = disk::open_through_links(path);
    let file = file.map_err(|error| Error::Read { path: path.to_owned(), source: error.into() })?;
    to_data(name, read_limited(name, file, options.largest)?, options.modality)
}

/// Collects the files below a folder with their names relative to the first one. `within` has the real paths of the
/// folders above: following a link to one of them would never end.
fn walk(
    folder: &Path,
    prefix: &str,
    within: &mut Vec<PathBuf>,
    found: &mut Vec<(Found, PathBuf)>,
) -> Result<(), Error> {
    let failed = |source| Error::Read { path: folder.to_owned(), source };
    if within.len() > DEEPEST {
        return Err(failed(io::Error::other(format!("folders are nested more than {DEEPEST} deep"))));
    }
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let own = path.file_name().map(|name| layout::readable(name.as_encoded_bytes())).unwrap_or_default();
        let name = format!("{prefix}{own}");
        // Follows links. A file that vanished, and a link without a target, are found when they are read.
        let about = fs::metadata(&path).ok();
        let is_folder = about.as_ref().is_some_and(fs::Metadata::is_dir);
        if layout::is_ignored(&own, is_folder) {
            continue;
        }
        if !is_folder {
            let size = about.as_ref().map_or(0, fs::Metadata::len);
            found.push((Found { name, size, modified: about.and_then(|about| about.modified().ok()) }, path));
            continue;
        }
        let real = path.canonicalize().map_err(|source| Error::Read { path: path.clone(), source })?;
        if within.contains(&real) {
            let source = io::Error::other("it is a link to a folder that contains it");
            return Err(Error::Read { path, source });
        }
        within.push(real);
        walk(&path, &format!("{name}/"), within, found)?;
        within.pop();
    }
    Ok(())
}
