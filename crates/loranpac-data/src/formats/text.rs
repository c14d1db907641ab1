//! Cells of formats that are text: labels, and what a message shows of them.

use loranpac::Label;

use crate::text::integer;

/// The longest part of a cell that a message shows.
const SHOWN: usize = 40;

/// The most bytes of a line of JSON, or of a record of a table. A line without an end must not fill the memory.
pub(super) const LONGEST_LINE: usize = 64 << 20;

/// The label in a cell: an integer if it is written as one, else the text as it stands.
pub(super) fn label(text: &str) -> Label {
    integer(text).map_or_else(|| Label::from(text), Label::Integer)
}

/// A float as a label, if it is a whole number.
pub(super) fn whole(value: f64) -> Option<Label> {
    (value.fract() == 0.0 && value.abs() < 9e15).then_some(Label::Integer(value as i64))
}

/// A boolean as a label: the text that it is in CSV. 1 and 0 would be other classes there.
pub(super) fn truth(value: bool) -> Label {
    Label::from(if value { "true" } else { "false" })
}

/// The start of a text, as long as a message should show.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
