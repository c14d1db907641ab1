//! Rules for the number of directions to keep.

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The rule that determines k_t. The paper's is [`Truncation::Fraction`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Truncation {
    /// Cut the share zeta of the possible directions: `k = ceil((1 - zeta) min(E, M))` (Algorithms 1 and 4).
    Fraction(f64),
    /// Cut eigenvalues below delta.
    Threshold(f64),
    /// Keep this number of directions.
    Rank(usize),
}

impl Default for Truncation {
    fn default() -> Self {
        Truncation::Fraction(0.25)
    }
}

impl Truncation {
    /// Checks the rule's parameter.
    pub fn validate(self) -> Result<Self, Error> {
        match self {
            Truncation::Fraction(zeta) if !(0.0..1.0).contains(&zeta) => {
                Err(Error::setting("truncate", zeta, "the share that is cut must be in [0, 1)"))
            }
            Truncation::Threshold(delta) if !(delta >= 0.0 && delta.is_finite()) => {
                Err(Error::setting("threshold", delta, "an eigenvalue threshold must be a number >= 0"))
            }
            Truncation::Rank(0) => Err(Error::setting("rank", 0, "at least one direction must be kept")),
            rule => Ok(rule),
        }
    }

    /// Returns k for a spectrum in descending order, after `samples` samples in `width` dimensions, at most `max_rank`.
    pub fn kept(self, values: &[f64], width: usize, samples: usize, max_rank: usize) -> usize {
        let k = match self {
            Truncation::Fraction(zeta) => fraction(zeta, width.min(samples)),
            Truncation::Threshold(delta) => values.iter().take_while(|&&v| v >= delta).count(),
            Truncation::Rank(k) => k,
        };
        k.min(max_rank).min(values.len())
    }
}

/// Computes `ceil((1 - zeta) n)`, correcting for rounding: 0.9 * 10 is slightly more than 9.
fn fraction(zeta: f64, n: usize) -> usize {
    let exact = (1.0 - zeta) * n as f64;
    let nearest = exact.round();
    if (exact - nearest).abs() < 1e-9 * n as f64 { nearest as usize } else { exact.ceil() as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// k_t of Algorithm 1, line "k_t <- ceil((1 - zeta) min(E, M_t))", and of Algorithm 4 with r_max.
    #[test]
    fn algorithm_4_rank() {
        let values = vec![1.0; 1000];
        let k = |zeta, samples, max| Truncation::Fraction(zeta).kept(&values, 500, samples, max);
        assert_eq!(k(0.25, 4, 10_000), 3);
        assert_eq!(k(0.25, 5, 10_000), 4);
        assert_eq!(k(0.1, 10, 10_000), 9);
        assert_eq!(k(0.0, 10, 10_000), 10);
        assert_eq!(k(0.25, 10_000, 10_000), 375, "min(E, M) is E = 500");
        assert_eq!(k(0.25, 400, 100), 100);
    }

    #[test]
    fn threshold_and_rank() {
        let values = [9.0, 4.0, 1.0, 0.5];
        assert_eq!(Truncation::Threshold(1.0).kept(&values, 9, 9, 9), 3);
        assert_eq!(Truncation::Rank(2).kept(&values, 9, 9, 9), 2);
        assert_eq!(Truncation::Rank(7).kept(&values, 9, 9, 9), 4);
    }

    #[test]
    fn zeta_outside_its_range_is_refused() {
        for zeta in [-0.1, 1.0, 1.5, f64::NAN] {
            assert!(Truncation::Fraction(zeta).validate().is_err(), "{zeta}");
        }
        assert!(Truncation::Fraction(0.0).validate().is_ok());
        assert!(Truncation::Threshold(f64::NAN).validate().is_err());
        assert!(Truncation::Rank(0).validate().is_err());
    }
}
