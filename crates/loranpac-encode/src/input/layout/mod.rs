//! Which files of a folder or an archive are inputs, and which tags their names stand for.

mod forgeries;
mod lists;
mod sessions;
mod usual;

use std::collections::HashSet;
use std::path::Path;

use loranpac::Label;
use loranpac_data::text;
use serde::Deserialize;

use super::outline::{Found, Outline};
use super::{About, InputOptions, Present, Tags, same_type};
use crate::error::Error;
use crate::image;
use crate::modality::Modality;

/// What the folders of a data set stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// `CLASS/*`, `SPLIT/CLASS/*`, `DOMAIN/CLASS/*`, `DOMAIN/SPLIT/CLASS/*` or `SPLIT/DOMAIN/CLASS/*`.
    #[default]
    Usual,
    /// CORe50: `sN/OBJECT/*`. A session is a domain, and sessions 3, 7 and 10 are tested.
    Sessions,
    /// CDDB-Hard: `GENERATOR/SPLIT/0_real/*` and `GENERATOR/SPLIT/1_fake/*` of five generators, optionally with a folder
    /// for each kind of object between split and class. `val` is tested where there is no `test`.
    Forgeries,
    /// DomainNet: lists `DOMAIN_train.txt` and `DOMAIN_test.txt` with a path and a label in each line.
    Lists,
}

impl Layout {
    /// Whether the contents of a file are needed to list the inputs.
    pub(super) fn reads(self, name: &str) -> bool {
        self == Layout::Lists && lists::is_list(name)
    }

    /// Whether a file is part of the data set, whatever its kind.
    fn concerns(self, name: &str, modality: Modality) -> bool {
        match self {
            Layout::Usual | Layout::Sessions => true,
            Layout::Forgeries => forgeries::concerns(name),
            Layout::Lists => is_wanted(name, modality),
        }
    }
}

/// The inputs among the files of a folder or an archive.
pub(super) struct Listing {
    /// The place among the files, and the tags, of each input.
    pub inputs: Vec<(usize, Tags)>,
    pub about: About,
}

/// Lists the inputs among some files. `read` returns the contents of those that the layout reads.
pub(super) fn list(
    path: &Path,
    files: &[Found],
    options: &InputOptions,
    archive: bool,
    mut read: impl FnMut(usize) -> Result<Vec<u8>, Error>,
) -> Result<Listing, Error> {
    let (wanted, skipped) = choose(path, files, options)?;
    let names: Vec<&str> = wanted.iter().map(|&at| files[at].name.as_str()).collect();
    if archive {
        check_names(path, &names)?;
    }
    let tags: Vec<Option<Tags>> = match options.layout {
        Layout::Usual => usual::tags(path, &names, archive)?.into_iter().map(Some).collect(),
        Layout::Sessions => sessions::tags(path, &names)?.into_iter().map(Some).collect(),
        Layout::Forgeries => forgeries::tags(path, &names)?.into_iter().map(Some).collect(),
        Layout::Lists => {
            let mut lists = Vec::new();
            for at in (0..files.len()).filter(|&at| options.layout.reads(&files[at].name)) {
                lists.push((files[at].name.as_str(), read(at)?));
            }
            lists::tags(path, &names, &lists)?
        }
    };
    let mut inputs: Vec<(usize, Tags)> =
        wanted.into_iter().zip(tags).filter_map(|(at, tags)| Some((at, tags?))).collect();
    if inputs.is_empty() {
        return Err(Error::NoInputs { path: path.to_owned(), modality: options.modality });
    }
    same_type(inputs.iter_mut().filter_map(|(_, tags)| tags.label.as_mut()).collect());
    same_type(inputs.iter_mut().filter_map(|(_, tags)| tags.domain.as_mut()).collect());
    let outline = Outline::new(inputs.iter().map(|(at, tags)| (&files[*at], tags)));
    let present = Present::of(inputs.iter().map(|(_, tags)| tags));
    inputs.retain(|(_, tags)| options.takes(tags.split));
    match options.split.filter(|_| inputs.is_empty()) {
        Some(split) => Err(Error::NoSplit { path: path.to_owned(), split: split.name() }),
        None => Ok(Listing { inputs, about: About { present, skipped, outline: Some(outline) } }),
    }
}

/// The longest name of a file in an archive, in bytes.
const LONGEST_NAME: usize = 4096;

/// Refuses names of an archive's files that are ambiguous, or would lead out of it.
fn check_names(path: &Path, names: &[&str]) -> Result<(), Error> {
    let refuse = |name: &str, reason: &str| {
        let name: String = name.chars().take(80).collect();
        Err(Error::Archive { path: path.to_owned(), reason: format!("{name}: {reason}") })
    };
    let mut seen = HashSet::with_capacity(names.len());
    for name in names {
        if name.len() > LONGEST_NAME {
            return refuse(name, &format!("its name is longer than {LONGEST_NAME} bytes"));
        }
        if name.split('/').any(|part| part == "..") {
            return refuse(
                name,
                "its name leads out of the archive; pack the files with their paths within one folder",
            );
        }
        if !seen.insert(name) {
            return refuse(name, "there are two files of this name; pack each file once");
        }
    }
    Ok(())
}

/// Files that some systems and many data sets have besides their contents, in lower case.
const STEMS: &[&str] = &["readme", "license", "licence", "notice", "citation"];
const NAMES: &[&str] = &["thumbs.db", "desktop.ini", "__macosx"];

/// Whether a file is of the wanted kind, by its extension.
pub(super) fn is_wanted(name: &str, modality: Modality) -> bool {
    match modality {
        Modality::Image => image::has_image_extension(name),
        Modality::Text => name.to_ascii_lowercase().ends_with(".txt"),
    }
}

/// Whether a file or folder is ignored, by its name without the folders above it.
pub(super) fn is_ignored(name: &str, folder: bool) -> bool {
    let name = name.to_ascii_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    name.starts_with('.') && name != ".."
        || NAMES.contains(&name.as_str())
        || (!folder && !image::has_image_extension(&name) && STEMS.contains(&stem))
}

/// The name of an entry of an archive, without what means the same place.
pub(super) fn clean(name: &[u8]) -> String {
    let parts = name.split(|byte| matches!(byte, b'/' | b'\\')).filter(|part| !matches!(*part, b"" | b"."));
    parts.map(readable).collect::<Vec<_>>().join("/")
}

/// A name as a text. Bytes that are not UTF-8 become `\xNN`, so that different names stay different.
pub(super) fn readable(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

/// A name as a label: an integer if it is written as one.
pub(super) fn label(name: &str) -> Label {
    text::integer(name).map_or_else(|| Label::from(name), Label::Integer)
}

/// Divides files into wanted ones, as indices, and the names of those to skip. A file of another kind is an error unless
/// bad inputs are skipped.
fn choose(path: &Path, files: &[Found], options: &InputOptions) -> Result<(Vec<usize>, Vec<String>), Error> {
    let (mut wanted, mut skipped) = (Vec::new(), Vec::new());
    for (at, Found { name, .. }) in files.iter().enumerate() {
        let (folders, own) = name.rsplit_once('/').unwrap_or(("", name));
        let ignored = is_ignored(own, false) || folders.split('/').any(|folder| is_ignored(folder, true));
        if ignored || !options.layout.concerns(name, options.modality) {
            continue;
        }
        if is_wanted(name, options.modality) {
            wanted.push(at);
        } else if options.skip_bad {
            skipped.push(name.clone());
        } else {
            let (path, name) = (path.to_owned(), name.clone());
            return Err(Error::OtherFile { path, name, modality: options.modality });
        }
    }
    match wanted.is_empty() {
        true => Err(Error::NoInputs { path: path.to_owned(), modality: options.modality }),
        false => Ok((wanted, skipped)),
    }
}

/// The folders above a file.
fn above(name: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = name.split('/').collect();
    parts.pop();
    parts
}
