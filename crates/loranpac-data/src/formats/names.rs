//! The usual names of arrays, columns and keys. Case is ignored.

use std::path::Path;

use super::text::shorten;
use crate::error::Error;
use crate::rows::{Options, TAGS};

/// Usual names of features.
pub(crate) const FEATURES: &[&str] = &["x", "embeddings", "embedding", "features"];
/// Usual names of labels.
pub(crate) const LABELS: &[&str] = &["y", "labels", "label", "class", "target"];
/// The usual name of weights, in files of arrays.
pub(crate) const WEIGHTS: &[&str] = &["weight"];
/// The name of the column that divides a table into training and test samples.
pub(super) const SPLIT: &str = "split";
/// Usual names of the domains of samples.
pub(crate) const DOMAINS: &[&str] = &["domain"];

/// What to do about features without a usual name.
pub(super) const ADVICE: &str = "; name the features with `features`";

/// The place of the column or array called `wanted`, else of the one with a usual name followed by `suffix`. None if
/// no usual name occurs. Several columns of that name are refused.
pub(super) fn find<S: AsRef<str>>(
    path: &Path,
    names: &[S],
    wanted: Option<&str>,
    (usual, suffix): (&[&str], &str),
    what: &'static str,
) -> Result<Option<usize>, Error> {
    let fits = |name: &str| wanted.map_or_else(|| is_usual(name, usual, suffix), |wanted| name == wanted);
    let places: Vec<usize> = (0..names.len()).filter(|&at| fits(names[at].as_ref())).collect();
    if let (Some(wanted), []) = (wanted, &places[..]) {
        return Err(missing(path, names, wanted.to_owned(), what, ""));
    }
    if let [first, second, ..] = places[..] {
        let name = names[first].as_ref();
        if name == names[second].as_ref() {
            let reason = "several columns have this name; rename all but one".to_owned();
            return Err(Error::Column { path: path.to_owned(), column: shorten(name), reason });
        }
        let found = places.iter().map(|&at| names[at].as_ref()).collect::<Vec<_>>().join(" and ");
        return Err(Error::Ambiguous { path: path.to_owned(), what, found });
    }
    Ok(places.first().copied())
}

/// The places of label, split and domain among the columns of a table; see [`TAGS`].
pub(super) fn tags<S: AsRef<str>>(
    path: &Path,
    names: &[S],
    options: &Options,
    what: &'static str,
) -> Result<[Option<usize>; TAGS], Error> {
    let label = find(path, names, options.label.as_deref(), (LABELS, ""), what)?;
    let [split, domain] = parts(path, names)?;
    let free = |place: Option<usize>| place.filter(|_| place != label);
    Ok([label, free(split), free(domain)])
}

/// The place of the column of weights, if the options name one.
pub(super) fn weights<S: AsRef<str>>(
    path: &Path,
    names: &[S],
    options: &Options,
    what: &'static str,
) -> Result<Option<usize>, Error> {
    match &options.weights {
        Some(wanted) => find(path, names, Some(wanted), (WEIGHTS, ""), what),
        None => Ok(None),
    }
}

/// The places of split and domain among the columns of a table.
pub(super) fn parts<S: AsRef<str>>(path: &Path, names: &[S]) -> Result<[Option<usize>; 2], Error> {
    let split = find(path, names, None, (&[SPLIT], ""), "split column")?;
    Ok([split, find(path, names, None, (DOMAINS, ""), "domain column")?])
}

/// Whether a name is one of the usual ones, followed by `suffix`.
pub(super) fn is_usual(name: &str, usual: &[&str], suffix: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.strip_suffix(suffix).is_some_and(|stem| usual.contains(&stem))
}

/// The error for a missing column or array. It lists the existing ones.
pub(crate) fn missing<S: AsRef<str>>(
    path: &Path,
    names: &[S],
    name: String,
    what: &'static str,
    advice: &'static str,
) -> Error {
    const LISTED: usize = 20;
    let mut found = names.iter().take(LISTED).map(|name| shorten(name.as_ref())).collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => found.push_str("no arrays"),
        n if n > LISTED => found.push_str(&format!(" and {} more", n - LISTED)),
        _ => {}
    }
    Error::Missing { path: path.to_owned(), what, name, found, advice }
}

/// The error for features without a usual name.
pub(super) fn missing_features<S: AsRef<str>>(path: &Path, names: &[S], what: &'static str) -> Error {
    missing(path, names, FEATURES.join(" or "), what, ADVICE)
}
