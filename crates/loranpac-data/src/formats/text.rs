//! What formats with named columns share: which column is which, and what a label is.

use std::path::Path;

use loranpac::Label;

use crate::error::Error;
use crate::text::integer;

/// Names that labels have where nobody says otherwise.
pub(super) const LABELS: &[&str] = &["label", "y", "class"];
/// Names that features have where nobody says otherwise.
pub(super) const FEATURES: &[&str] = &["x", "features", "embedding", "embeddings"];

/// The longest part of a cell that a message shows.
const SHOWN: usize = 40;

/// The place of the column called `wanted`, or of the one that has one of the usual names, in any case. None if there
/// is none of the usual names.
pub(super) fn find<S: AsRef<str>>(
    path: &Path,
    columns: &[S],
    wanted: Option<&str>,
    usual: &[&str],
    what: &'static str,
) -> Result<Option<usize>, Error> {
    if let Some(wanted) = wanted {
        let place = columns.iter().position(|column| column.as_ref() == wanted);
        return place.map(Some).ok_or_else(|| missing(path, columns, wanted.to_owned(), what));
    }
    let is_usual = |column: &str| usual.iter().any(|usual| usual.eq_ignore_ascii_case(column));
    let places: Vec<usize> = (0..columns.len()).filter(|&at| is_usual(columns[at].as_ref())).collect();
    if places.len() > 1 {
        let found = places.iter().map(|&at| columns[at].as_ref()).collect::<Vec<_>>().join(" and ");
        return Err(Error::Ambiguous { path: path.to_owned(), what, found });
    }
    Ok(places.first().copied())
}

/// The error that a column is not there, with those that are.
pub(super) fn missing<S: AsRef<str>>(path: &Path, columns: &[S], column: String, what: &'static str) -> Error {
    const LISTED: usize = 20;
    let mut found = columns.iter().take(LISTED).map(|c| shorten(c.as_ref())).collect::<Vec<_>>().join(", ");
    match columns.len() {
        0 => found.push_str("none at all"),
        n if n > LISTED => found.push_str(&format!(" and {} more", n - LISTED)),
        _ => {}
    }
    Error::MissingColumn { path: path.to_owned(), what, column, found }
}

/// The most bytes of a line of JSON, or of a record of a table, that are read: one without an end must not fill the memory.
pub(super) const LONGEST_LINE: usize = 64 << 20;

/// A whole number is a number if it is written as one, all else is a text, as it stands.
pub(super) fn label(text: &str) -> Label {
    integer(text).map_or_else(|| Label::from(text), Label::Integer)
}

/// A number that should be whole, as a label.
pub(super) fn whole(value: f64) -> Option<Label> {
    (value.fract() == 0.0 && value.abs() < 9e15).then_some(Label::Integer(value as i64))
}

/// As much of a text as a message should show.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
