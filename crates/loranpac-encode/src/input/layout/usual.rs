//! The usual layouts: folders of classes, of splits and of domains.

use std::path::Path;

use loranpac_data::Split;

use super::{above, label};
use crate::error::Error;
use crate::input::Tags;

/// What a message says about the layouts.
const LAYOUTS: &str = "CLASS/*, train|test/CLASS/*, DOMAIN/CLASS/* or DOMAIN/train|test/CLASS/*";

/// The tags of files, by their names. The first folder of an archive is left out if all files share it.
pub(super) fn tags(path: &Path, names: &[&str], archive: bool) -> Result<Vec<Tags>, Error> {
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
