//! The certificate as text.

use serde::{Deserialize, Serialize};

use super::Certificate;
use crate::words::count;

/// Above this condition number, kept eigenvalues are of the size of the features' own rounding: singular values reach
/// down to a millionth of the largest, and the rounding unit of single precision is a tenth of that.
const ILL_CONDITIONED: f64 = 1e12;

/// The guarantees of a model, as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// One line.
    pub line: String,
    /// Settings that make the guarantee empty, and what to do about them.
    pub warnings: Vec<String>,
}

impl Certificate {
    /// Returns the verdict, given a lower and an upper bound of the training MSE.
    pub fn verdict(&self, train_mse: f64, train_mse_upper: f64) -> Verdict {
        let mut parts = vec![match (train_mse == train_mse_upper, self.assumed) {
            (true, 0) => format!("training MSE {train_mse:.4}, exact"),
            (true, _) => format!("training MSE {train_mse:.4}"),
            (false, _) => format!("training MSE between {train_mse:.4} and {train_mse_upper:.4}"),
        }];
        if self.assumed > 0 {
            parts.push(format!(
                "this holds if {} had been learned under the given labels before being unlearned or relabelled, which \
                 could not be checked",
                count(self.assumed, "sample")
            ));
        }
        parts.push(match (self.cuts, self.loss_share) {
            (0, _) => "nothing was lost in earlier tasks".to_owned(),
            _ if self.keeps_samples => {
                format!("evicted samples have changed H H' by at most {:.2e} in all", self.lost)
            }
            (cuts, Some(share)) => format!(
                "{cuts} earlier {} cost at most {} of the smallest kept eigenvalue",
                if cuts == 1 { "cut has" } else { "cuts have" },
                percent(share)
            ),
            (_, None) => format!("earlier cuts have cost eigenvalues of at most {:.2e} in all", self.lost),
        });
        if let (Some(after), Some(before)) = (self.condition, self.condition_before) {
            parts.push(format!("conditioning {after:.1e} ({before:.1e} uncut)"));
        }
        parts.push(match self.capped {
            0 => "nothing lost to the memory cap".to_owned(),
            capped if self.keeps_samples => {
                format!("{} reduced to projections by the memory cap", count(capped, "sample"))
            }
            capped => format!("{} lost to the memory cap", count(capped, "direction")),
        });
        Verdict { line: parts.join("; "), warnings: self.warnings() }
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let nothing_cut = self.bounds.is_some() && self.largest_cut == 0.0;
        match self.condition {
            Some(condition) if condition > ILL_CONDITIONED => warnings.push(format!(
                "conditioning {condition:.1e}: directions of rounding size are kept, and scores may be noise; \
                 use loranpac with a share to cut (`truncate` 0.25), or loranpac-soft"
            )),
            Some(condition) if nothing_cut => warnings.push(format!(
                "nothing is cut: the smallest eigenvalues are inverted as they are (conditioning {condition:.1e}), and \
                 one near-duplicate sample may ruin the scores; use loranpac with a larger share to cut \
                 (`truncate` 0.25), or loranpac-soft"
            )),
            _ => {}
        }
        if let Some(gamma) = self.gamma.filter(|gamma| *gamma < 1.0) {
            warnings.push(format!(
                "gamma {gamma:.1e} is below 1: eigenvalues larger than the smallest kept were cut before, and the \
                 paper's bounds are vacuous; the late schedule without a cap loses nothing"
            ));
        }
        let share = self.loss_share.unwrap_or(0.0);
        if self.capped > 0 && share > 1.0 {
            warnings.push(format!(
                "the cap is far below the data: it has removed {} and {} of the smallest kept eigenvalue; give it more \
                 room (`max-rank`, `memory`)",
                count(self.capped, if self.keeps_samples { "sample" } else { "direction" }),
                percent(share)
            ));
        }
        warnings
    }
}

fn percent(share: f64) -> String {
    match 100.0 * share {
        percent if percent >= 1e4 => format!("{percent:.1e}%"),
        percent if percent >= 10.0 => format!("{percent:.0}%"),
        percent => format!("{percent:.2}%"),
    }
}
