//! The width of a model, where the user does not choose one.
//!
//! Least squares is least accurate where E is close to the number of samples M: the smallest eigenvalues of the Gram matrix are then
//! noise. [`choose`] keeps clear of that: E is at least 3 M, or infinite. Accuracy still grows beyond, so that E is 5 M as long as that
//! is cheap (up to 30,000). Where 3 M is out of reach it takes the widest, because a wider model was never less accurate with the soft
//! filter, on either side of M. `docs/decisions.md` has the measurements.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::width::Width;
use crate::words::count;

/// Widths are multiples of this.
const STEP: usize = 1_000;
/// The smallest width, if memory allows it: that of models of few samples.
const FLOOR: usize = 10_000;
/// The largest width: the cost grows in proportion to it, and accuracy levels off.
const CEILING: usize = 100_000;
/// E over M as long as E is not large.
const PLENTY: usize = 5;
/// The largest width that is more than three times the samples, unless it is the smallest.
const CHEAP: usize = 30_000;
/// E over M below which least squares loses accuracy, down to its inverse.
const CLEARANCE: usize = 3;
/// The most samples for which an infinite width is chosen: its classifier costs `M^3 / 3` flops and `4 M^2` bytes.
const KEPT: usize = 20_000;

/// What is known before a width is chosen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Expected {
    /// The samples that the model will learn, if their number is known.
    pub samples: Option<usize>,
    /// Whether the model may keep them.
    pub may_keep: bool,
    /// Whether infinitely many lifted features are possible: the lift and the method have such a limit.
    pub has_limit: bool,
    /// Features that are themselves part of the width.
    pub inside: usize,
}

/// A width that was chosen, and what for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// E.
    pub width: Width,
    /// The samples that were expected, if their number was known.
    pub samples: Option<usize>,
    /// What decided.
    pub reason: Reason,
}

/// What decided a width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Samples may be kept.
    Kept,
    /// It is at least three times the samples.
    Samples,
    /// The number of samples is not known.
    Unknown,
    /// No width is larger, and it is less than three times the samples.
    Ceiling,
    /// Memory, which allows no larger one, and it is less than three times the samples.
    Memory,
}

/// Chooses a width. `fits` is whether memory suffices for one; a smaller width never needs more. Where nothing fits, the choice is the
/// smallest width, which the check before learning then refuses with its needs.
///
/// The width never decreases if more samples are expected, or if more memory is available.
pub fn choose(expected: Expected, fits: impl Fn(Width) -> bool) -> Choice {
    let Expected { samples, may_keep, has_limit, inside } = expected;
    let chosen = |width: Width, reason| Choice { width, samples, reason };
    if may_keep && has_limit && samples.is_none_or(|samples| samples <= KEPT) && fits(Width::Infinite) {
        return chosen(Width::Infinite, Reason::Kept);
    }
    let steps = |width: usize| width.div_ceil(STEP);
    // Half of the width is random at least.
    let least = steps(inside.saturating_mul(2)).max(1);
    let floor = steps(FLOOR).max(least);
    let wanted_for = |samples: usize| {
        let plenty = samples.saturating_mul(PLENTY).min(CHEAP);
        steps(samples.saturating_mul(CLEARANCE).max(plenty)).max(floor)
    };
    let width = |steps: usize| Width::Finite(steps * STEP);
    let wanted = samples.map_or(floor, wanted_for);
    let mut most = wanted.min(steps(CEILING).max(least));
    let limit = if fits(width(most)) { Reason::Ceiling } else { Reason::Memory };
    if limit == Reason::Memory {
        let mut fitting = least;
        while most - fitting > 1 {
            let middle = fitting + (most - fitting) / 2;
            if fits(width(middle)) { fitting = middle } else { most = middle }
        }
        most = fitting;
    }
    let reason = match samples {
        Some(samples) if most * STEP >= samples.saturating_mul(CLEARANCE) => Reason::Samples,
        None if most == wanted => Reason::Unknown,
        _ => limit,
    };
    chosen(width(most), reason)
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Choice { width, samples, reason } = self;
        let samples = samples.map(|samples| count(samples, "sample"));
        let expected = samples.as_deref().unwrap_or("an unknown number of samples");
        write!(f, "width {width}, chosen for {expected}: ")?;
        match reason {
            Reason::Kept => write!(f, "they may be kept"),
            Reason::Samples => write!(f, "at least {CLEARANCE} times as many"),
            Reason::Unknown => write!(f, "enough for {}", count(width.finite().unwrap_or(0) / CLEARANCE, "sample")),
            Reason::Ceiling => write!(f, "the widest that is chosen, less than {CLEARANCE} times as many"),
            Reason::Memory => write!(f, "the widest that fits into memory"),
        }
    }
}

/// Returns a warning, with its remedy, if E is within a factor of three of the number of samples learned.
pub fn warning(width: Width, samples: usize) -> Option<String> {
    let width = width.finite()?;
    let close = samples.saturating_mul(CLEARANCE) > width && samples < width.saturating_mul(CLEARANCE);
    close.then(|| {
        let expected = Expected { samples: Some(samples), ..Expected::default() };
        let remedy = match choose(expected, |_| true).width.finite() {
            Some(wider) if wider > width => format!("a new model with `width` {wider} or more, or"),
            _ => "a new model with".to_owned(),
        };
        format!(
            "width {width} is close to the number of samples ({samples}), where least squares is least accurate; {remedy} `width` \
             infinite (if samples may be kept), is more accurate"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finite(samples: impl Into<Option<usize>>, largest: usize) -> (usize, Reason) {
        let expected = Expected { samples: samples.into(), ..Expected::default() };
        let choice = choose(expected, |width| width.finite().is_some_and(|width| width <= largest));
        (choice.width.finite().unwrap(), choice.reason)
    }

    #[test]
    fn the_width_is_five_to_three_times_the_samples_between_a_floor_and_a_ceiling() {
        let any = usize::MAX;
        assert_eq!(finite(None, any), (10_000, Reason::Unknown));
        for (samples, width) in [
            (0, 10_000),
            (2_000, 10_000),
            (2_001, 11_000),
            (5_994, 30_000),
            (10_000, 30_000),
            (10_001, 31_000),
            (33_333, 100_000),
        ] {
            assert_eq!(finite(samples, any), (width, Reason::Samples), "{samples}");
        }
        assert_eq!(finite(33_334, any), (100_000, Reason::Ceiling));
        assert_eq!(finite(usize::MAX, any), (100_000, Reason::Ceiling));
    }

    #[test]
    fn memory_limits_the_width() {
        assert_eq!(finite(5_994, 17_999), (17_000, Reason::Memory));
        assert_eq!(finite(5_994, 18_000), (18_000, Reason::Samples), "still clear of the samples");
        assert_eq!(finite(60_000, 50_500), (50_000, Reason::Memory));
        assert_eq!(finite(None, 2_500), (2_000, Reason::Memory));
        assert_eq!(finite(500, 0), (1_000, Reason::Memory), "nothing fits");
    }

    #[test]
    fn more_samples_or_more_memory_never_make_it_narrower() {
        let samples = || (0..200_000).step_by(777);
        for largest in [1_000, 9_000, 12_345, 54_321, 200_000] {
            let widths: Vec<usize> = samples().map(|samples| finite(samples, largest).0).collect();
            assert!(widths.is_sorted(), "{largest}: {widths:?}");
        }
        for samples in samples() {
            let widths: Vec<usize> = (0..150_000).step_by(999).map(|most| finite(samples, most).0).collect();
            assert!(widths.is_sorted(), "{samples}: {widths:?}");
            assert!(widths.iter().all(|width| width % 1_000 == 0 && (1_000..=100_000).contains(width)));
        }
    }

    #[test]
    fn what_fits_is_chosen_if_anything_does() {
        for largest in (1_000..120_000).step_by(313) {
            for samples in [None, Some(10), Some(4_000), Some(90_000)] {
                assert!(finite(samples, largest).0 <= largest);
            }
        }
    }

    #[test]
    fn infinite_where_samples_may_be_kept_are_few_and_fit() {
        let all = Expected { samples: Some(9_000), may_keep: true, has_limit: true, inside: 0 };
        let width = |expected, fits: bool| choose(expected, |width| fits || !width.is_infinite()).width;
        assert_eq!(width(all, true), Width::Infinite);
        assert_eq!(width(Expected { samples: None, ..all }, true), Width::Infinite);
        for other in [Expected { may_keep: false, ..all }, Expected { has_limit: false, ..all }] {
            assert_eq!(width(other, true), Width::Finite(30_000));
        }
        assert_eq!(width(all, false), Width::Finite(30_000));
        assert_eq!(width(Expected { samples: Some(20_001), ..all }, true), Width::Finite(61_000));
    }

    #[test]
    fn features_that_are_part_of_the_width_leave_room_for_as_many_random_ones() {
        let width = |inside| choose(Expected { inside, ..Expected::default() }, |_| true).width;
        assert_eq!([500, 5_000, 5_001].map(width), [10_000, 10_000, 11_000].map(Width::Finite));
        assert_eq!(width(70_000), Width::Finite(140_000));
    }

    #[test]
    fn a_choice_says_what_decided() {
        let words = |samples, largest: usize| {
            let expected = Expected { samples, ..Expected::default() };
            choose(expected, |width| width.finite().is_some_and(|width| width <= largest)).to_string()
        };
        assert_eq!(words(Some(5_994), usize::MAX), "width 30000, chosen for 5994 samples: at least 3 times as many");
        assert!(words(None, usize::MAX).ends_with("an unknown number of samples: enough for 3333 samples"));
        assert!(words(Some(5_994), 8_000).ends_with("the widest that fits into memory"));
    }

    #[test]
    fn a_width_close_to_the_samples_is_warned_of_on_both_sides() {
        for (width, samples, close) in [
            (10_000, 3_333, false),
            (10_000, 3_334, true),
            (10_000, 29_999, true),
            (10_000, 30_000, false),
            (10, 0, false),
        ] {
            assert_eq!(warning(Width::Finite(width), samples).is_some(), close, "{width} {samples}");
        }
        assert_eq!(warning(Width::Infinite, 5), None);
        let words = warning(Width::Finite(10_000), 8_144).unwrap();
        assert!(words.contains("`width` 30000 or more"), "{words}");
        assert!(!warning(Width::Finite(100_000), 40_000).unwrap().contains("or more"));
    }
}
