//! Values as text.

use loranpac::{Schedule, Truncation};

/// Formats a number with its noun: `1 task`, `2 tasks`, `3 classes`.
pub fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ if noun.ends_with('s') => format!("{number} {noun}es"),
        _ => format!("{number} {noun}s"),
    }
}

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
