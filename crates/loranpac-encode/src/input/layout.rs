//! Tags from the names of files, and which files are ignored.

use std::collections::HashSet;
use std::path::Path;

use loranpac::Label;
use loranpac_data::{Split, text};

use super::{InputOptions, Tags};
use crate::error::Error;
use crate::image;
use crate::modality::Modality;

/// What a message says about the layouts.
const LAYOUTS: &str = "CLASS/*, train|test/CLASS/*, DOMAIN/CLASS/* or DOMAIN/train|test/CLASS/*";

/// The longest name of a file in an archive, in bytes.
const LONGEST_NAME: usize = 4096;

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
pub(super) fn clean(name: &str) -> String {
    name.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".").collect::<Vec<_>>().join("/")
}

/// Divides the names of files into wanted ones, as indices, and those to skip. A file of another kind is an error unless
/// bad inputs are skipped.
pub(super) fn choose(
    path: &Path,
    names: &[String],
    options: &InputOptions,
) -> Result<(Vec<usize>, Vec<String>), Error> {
    let (mut wanted, mut skipped) = (Vec::new(), Vec::new());
    for (at, name) in names.iter().enumerate() {
        let (folders, own) = name.rsplit_once('/').unwrap_or(("", name));
        if is_ignored(own, false) || folders.split('/').any(|folder| is_ignored(folder, true)) {
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
            return refuse(name, "its name leads out of the archive; pack the files with their paths within one folder");
        }
        if !seen.insert(name) {
            return refuse(name, "there are two files of this name; pack each file once");
        }
    }
    Ok(())
}

/// The tags of files, by their names. The first folder of an archive is left out if all files share it.
pub(super) fn tags(path: &Path, names: &[&str], archive: bool) -> Result<Vec<Tags>, Error> {
    if archive {
        check_names(path, names)?;
    }
    let mut folders: Vec<Vec<&str>> = names.iter().map(|name| above(name)).collect();
    let top = folders.first().and_then(|folder| folder.first()).copied();
    if archive
        && top.is_some_and(|top| Split::from_name(top).is_none())
        && folders.iter().all(|folder| folder.first().copied() == top)
    {
        folders.iter_mut().for_each(|folder| *folder = folder.split_off(1));
    }
    let refuse = |at: usize, reason: String| {
        let (path, name) = (path.to_owned(), names[at].to_owned());
        Error::Layout { path, name, reason: format!("{reason}; layouts are {LAYOUTS}") }
    };
    let depth = folders.first().map_or(0, Vec::len);
    if let Some(at) = folders.iter().position(|folder| folder.len() != depth) {
        return Err(refuse(
            at,
            format!("it lies {} folders deep, but {} lies {depth} deep", folders[at].len(), names[0]),
        ));
    }
    // Whether all names at a level are splits; the first that is not, if only some are.
    let level = |level: usize| {
        let is = |at: usize| Split::from_name(folders[at][level]).is_some();
        let other = (0..folders.len()).find(|&at| !is(at));
        (other.is_none(), other.filter(|_| (0..folders.len()).any(is)))
    };
    let roles: &[Role] = match depth {
        0 => &[],
        1 if level(0).0 => &[Role::Split],
        1 => &[Role::Class],
        2 => match level(0) {
            (true, _) => &[Role::Split, Role::Class],
            (false, Some(at)) => {
                let reason = format!("{:?} is neither train, val nor test, as other folders beside it", folders[at][0]);
                return Err(refuse(at, reason));
            }
            (false, None) => &[Role::Domain, Role::Class],
        },
        3 if level(1).0 => &[Role::Domain, Role::Split, Role::Class],
        3 if level(0).0 => &[Role::Split, Role::Domain, Role::Class],
        _ => return Err(refuse(0, format!("its {depth} folders have no meaning"))),
    };
    Ok(folders.iter().map(|folder| assign(roles, folder)).collect())
}

/// The meaning of a folder.
#[derive(Clone, Copy)]
enum Role {
    Class,
    Split,
    Domain,
}

fn assign(roles: &[Role], folder: &[&str]) -> Tags {
    let mut tags = Tags::default();
    for (role, name) in roles.iter().zip(folder) {
        match role {
            Role::Class => tags.label = Some(label(name)),
            Role::Split => tags.split = Split::from_name(name),
            Role::Domain => tags.domain = Some(label(name)),
        }
    }
    tags
}

/// A name as a label: an integer if it is written as one.
pub(super) fn label(name: &str) -> Label {
    text::integer(name).map_or_else(|| Label::from(name), Label::Integer)
}

/// The folders above a file.
fn above(name: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = name.split('/').collect();
    parts.pop();
    parts
}
