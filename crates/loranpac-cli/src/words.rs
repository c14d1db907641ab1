//! Values as text.

pub use loranpac::internals::count;
use loranpac::{Schedule, Truncation};

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
