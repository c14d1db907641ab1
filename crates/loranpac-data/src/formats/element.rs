//! The types of elements in array files, and their conversion.

use half::{bf16, f16};

use loranpac::memory;

use super::array::Elements;
use crate::error::ArrayProblem;

/// The type of an element, with its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Float(usize),
    /// bfloat16.
    Brain,
    Signed(usize),
    Unsigned(usize),
    /// UTF-32 code points.
    Unicode(usize),
    /// Bytes, taken as UTF-8.
    Bytes(usize),
}

impl Kind {
    /// Bytes of one element in the file.
    pub fn bytes(self) -> usize {
        match self {
            Kind::Float(n) | Kind::Signed(n) | Kind::Unsigned(n) | Kind::Bytes(n) => n.max(1),
            Kind::Brain => 2,
            Kind::Unicode(n) => (4 * n).max(1),
        }
    }

    /// Whether its elements are strings.
    pub fn is_text(self) -> bool {
        matches!(self, Kind::Unicode(_) | Kind::Bytes(_))
    }

    /// An empty vector for its elements.
    pub fn empty(self) -> Elements {
        match self {
            Kind::Float(_) | Kind::Brain => Elements::Float(Vec::new()),
            Kind::Signed(_) | Kind::Unsigned(_) => Elements::Integer(Vec::new()),
            Kind::Unicode(_) | Kind::Bytes(_) => Elements::Text(Vec::new()),
        }
    }

    /// Appends the numbers in `raw` as features. Strings are skipped: the caller has refused them.
    pub fn features(self, raw: &[u8], big: bool, out: &mut Vec<f32>) {
        let items = raw.chunks_exact(self.bytes());
        match self {
            Kind::Float(2) => out.extend(items.map(|b| f16::from_bits(number(b, big) as u16).to_f32())),
            Kind::Float(4) => out.extend(items.map(|b| f32::from_bits(number(b, big) as u32))),
            Kind::Float(_) => out.extend(items.map(|b| f64::from_bits(number(b, big)) as f32)),
            Kind::Brain => out.extend(items.map(|b| bf16::from_bits(number(b, big) as u16).to_f32())),
            Kind::Signed(n) => out.extend(items.map(|b| signed(number(b, big), n) as f32)),
            Kind::Unsigned(_) => out.extend(items.map(|b| number(b, big) as f32)),
            Kind::Unicode(_) | Kind::Bytes(_) => {}
        }
    }

    /// Appends numbers in double precision.
    pub fn numbers(self, raw: &[u8], big: bool, out: &mut Vec<f64>) {
        if self == Kind::Float(8) {
            return out.extend(raw.chunks_exact(8).map(|b| f64::from_bits(number(b, big))));
        }
        let mut single = Vec::new();
        self.features(raw, big, &mut single);
        out.extend(single.into_iter().map(f64::from));
    }

    /// Appends the elements in `raw`.
    pub fn convert(self, raw: &[u8], big: bool, data: &mut Elements) -> Result<(), ArrayProblem> {
        let items = raw.chunks_exact(self.bytes());
        let room = match data {
            Elements::Float(out) => memory::grow(out, items.len()),
            Elements::Integer(out) => memory::grow(out, items.len()),
            Elements::Text(out) => memory::grow(out, items.len()),
        };
        room.map_err(|e| ArrayProblem::Memory(e.to_string()))?;
        match (self, data) {
            (Kind::Float(_) | Kind::Brain, Elements::Float(out)) => self.features(raw, big, out),
            (Kind::Signed(n), Elements::Integer(out)) => out.extend(items.map(|b| signed(number(b, big), n))),
            (Kind::Unsigned(_), Elements::Integer(out)) => {
                for b in items {
                    let value = number(b, big);
                    out.push(i64::try_from(value).map_err(|_| ArrayProblem::Label {
                        row: out.len(),
                        reason: format!("{value} does not fit into a signed integer of 64 bits"),
                    })?);
                }
            }
            (Kind::Unicode(_), Elements::Text(out)) => {
                for b in items {
                    let points = b.chunks_exact(4).map(|p| {
                        let point = number(p, big) as u32;
                        char::from_u32(point).ok_or_else(|| format!("{point:#x} is not a Unicode character"))
                    });
                    let text = points.collect::<Result<String, _>>();
                    let mut text = text.map_err(|reason| ArrayProblem::Label { row: out.len(), reason })?;
                    text.truncate(text.trim_end_matches('\0').len());
                    out.push(text);
                }
            }
            (Kind::Bytes(_), Elements::Text(out)) => {
                for b in items {
                    let end = b.iter().rposition(|&c| c != 0).map_or(0, |last| last + 1);
                    let text = std::str::from_utf8(&b[..end]);
                    let reason = "it is not valid UTF-8".to_owned();
                    out.push(text.map_err(|_| ArrayProblem::Label { row: out.len(), reason })?.to_owned());
                }
            }
            _ => unreachable!("the vector was made by Kind::empty"),
        }
        Ok(())
    }
}

/// Up to eight bytes as a number.
fn number(bytes: &[u8], big: bool) -> u64 {
    let add = |value: u64, byte: &u8| value << 8 | *byte as u64;
    if big { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) }
}

/// A number of `bytes` bytes with a sign.
fn signed(number: u64, bytes: usize) -> i64 {
    let spare = 64 - 8 * bytes as u32;
    ((number << spare) as i64) >> spare
}
