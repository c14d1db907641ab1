//! The number of lifted features: finite or infinite.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The width E of a feature space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Width {
    /// E features, which are computed.
    Finite(usize),
    /// The limit of random ReLU features: inner products are computed by a kernel, and samples are kept.
    Infinite,
}

impl Width {
    /// Returns E, if it is finite.
    pub fn finite(self) -> Option<usize> {
        match self {
            Width::Finite(width) => Some(width),
            Width::Infinite => None,
        }
    }

    /// Returns whether the width is infinite.
    pub fn is_infinite(self) -> bool {
        self == Width::Infinite
    }
}

impl From<usize> for Width {
    fn from(width: usize) -> Self {
        Width::Finite(width)
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Width::Finite(width) => write!(f, "{width}"),
            Width::Infinite => write!(f, "infinite"),
        }
    }
}

impl FromStr for Width {
    type Err = String;

    /// Parses `infinite`, `inf`, or a whole number of at least 1, which may be written as `1e4`.
    fn from_str(text: &str) -> Result<Self, String> {
        if ["infinite", "inf"].contains(&text) {
            return Ok(Width::Infinite);
        }
        let whole = |number: f64| (number.fract() == 0.0 && (0.0..1e15).contains(&number)).then_some(number as usize);
        let width = text.parse::<usize>().ok().or_else(|| text.parse::<f64>().ok().and_then(whole));
        match width {
            None => Err("expected a whole number, or the word infinite".to_owned()),
            Some(0) => Err("E must be at least 1 (10000 is a good start)".to_owned()),
            Some(width) => Ok(Width::Finite(width)),
        }
    }
}

/// A number, or the text `infinite`.
impl Serialize for Width {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Width::Finite(width) => to.serialize_u64(*width as u64),
            Width::Infinite => to.serialize_str("infinite"),
        }
    }
}

impl<'de> Deserialize<'de> for Width {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(usize),
            Word(String),
        }
        match Either::deserialize(from)? {
            Either::Number(width) => Ok(Width::Finite(width)),
            Either::Word(word) => word.parse().map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_numbers_or_infinite() {
        assert_eq!(
            ["10000", "1e4", "inf"].map(|text| text.parse::<Width>().unwrap()),
            [Width::Finite(10_000), Width::Finite(10_000), Width::Infinite]
        );
        for wrong in ["0", "-1", "1.5", "1e99", "nan", "", "wide"] {
            assert!(wrong.parse::<Width>().is_err(), "{wrong}");
        }
        for width in [Width::Finite(7), Width::Infinite] {
            let text = serde_json::to_string(&width).unwrap();
            assert_eq!(serde_json::from_str::<Width>(&text).unwrap(), width);
            assert_eq!(width.to_string().parse::<Width>().unwrap(), width);
        }
    }
}
