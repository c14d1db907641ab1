//! DomainNet: lists `DOMAIN_train.txt` and `DOMAIN_test.txt`, with the path and the label of an image in each line.

use std::collections::HashMap;
use std::path::Path;

use loranpac::Label;
use loranpac_data::Split;

use super::{clean, label};
use crate::error::Error;
use crate::input::Tags;

/// Whether a file is a list, by its name.
pub(super) fn is_list(name: &str) -> bool {
    domain(name).is_some()
}

/// The tags of files that the lists name; none for others. Paths are relative to the folder of their list, or to one
/// above it.
pub(super) fn tags(path: &Path, names: &[&str], lists: &[(&str, Vec<u8>)]) -> Result<Vec<Option<Tags>>, Error> {
    let refuse = |name: &str, reason: String| Error::Layout { path: path.to_owned(), name: name.to_owned(), reason };
    if lists.is_empty() {
        let reason = "there are no lists DOMAIN_train.txt and DOMAIN_test.txt beside the folders of the domains";
        return Err(refuse(names.first().copied().unwrap_or_default(), reason.to_owned()));
    }
    let places: HashMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (*name, at)).collect();
    let mut tags: Vec<Option<Tags>> = vec![None; names.len()];
    for (list, bytes) in lists {
        let Some((domain, split)) = domain(list) else { continue };
        let text = std::str::from_utf8(bytes).map_err(|_| refuse(list, "it is not valid UTF-8".to_owned()))?;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let refuse = |reason: String| refuse(list, format!("line {}: {reason}", number + 1));
            let (image, class) = line
                .trim()
                .rsplit_once(char::is_whitespace)
                .ok_or_else(|| refuse("a path and a label are expected".to_owned()))?;
            let image = clean(image.trim_end().as_bytes());
            let at = find(list, &image, &places).ok_or_else(|| refuse(format!("{image} is not there")))?;
            let known = Tags { label: Some(label(class)), split: Some(split), domain: Some(Label::from(domain)) };
            if tags[at].as_ref().is_some_and(|tags| *tags != known) {
                return Err(refuse(format!("{image} is listed elsewhere with another label, split or domain")));
            }
            tags[at] = Some(known);
        }
    }
    Ok(tags)
}

/// The domain and the split of a list.
fn domain(name: &str) -> Option<(&str, Split)> {
    let own = name.rsplit('/').next()?;
    let (domain, split) = own.strip_suffix(".txt")?.rsplit_once('_')?;
    match split {
        "train" if !domain.is_empty() => Some((domain, Split::Train)),
        "test" if !domain.is_empty() => Some((domain, Split::Test)),
        _ => None,
    }
}

/// The place of an image: below the folder of its list, or below a folder above that.
fn find(list: &str, image: &str, places: &HashMap<&str, usize>) -> Option<usize> {
    let mut folder = list;
    while let Some((above, _)) = folder.rsplit_once('/') {
        if let Some(&at) = places.get(format!("{above}/{image}").as_str()) {
            return Some(at);
        }
        folder = above;
    }
    places.get(image).copied()
}
