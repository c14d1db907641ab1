//! Values as text.

use std::path::Path;

pub use loranpac::internals::count;
use loranpac::{Label, Schedule, Truncation};
use loranpac_data::text::escape;

/// Describes what a rule cuts.
pub fn truncation(rule: Truncation) -> String {
    match rule {
        Truncation::Fraction(zeta) => format!("{}% of the directions cut", (zeta * 1e8).round() / 1e6),
        Truncation::Threshold(delta) => format!("eigenvalues below {delta} cut"),
        Truncation::Rank(k) => format!("{} kept", count(k, "direction")),
    }
}

/// Returns the name of a schedule.
pub fn schedule(schedule: Schedule) -> &'static str {
    match schedule {
        Schedule::Late => "late",
        Schedule::Paper => "paper",
    }
}

/// Formats a path for messages: on one line, and without control characters.
pub fn shown(path: &Path) -> String {
    if path.as_os_str() == "-" {
        return "standard input".to_owned();
    }
    escape(&raw(path)).into_owned()
}

/// Formats a path for JSON and records.
pub fn raw(path: &Path) -> String {
    path.display().to_string()
}

/// Formats a label for messages, like [`shown`].
pub fn named(label: &Label) -> String {
    escape(&label.to_string()).into_owned()
}
