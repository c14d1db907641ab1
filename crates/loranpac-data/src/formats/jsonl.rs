//! One JSON object per line: `{"x": [0.5, 1.5], "y": "cat"}`. Other keys and empty lines are ignored.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use loranpac::Label;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, de};

use super::format::{Format, Opening};
use super::{names, text};
use crate::error::{Error, LineProblem, ReadError};
use crate::rows::{Options, Piece, Rows, TAGS};

/// One JSON object per line.
pub(super) const JSONL: Format = Format {
    name: "jsonl",
    other_names: &["ndjson"],
    opening: Opening::Stream(|path, source, _, options| Ok(Box::new(Jsonl::open(path, source, options)?))),
};

/// Features and tags of one line.
type Sample = (Vec<f32>, [Option<Label>; TAGS]);

struct Jsonl {
    path: PathBuf,
    source: BufReader<Box<dyn Read + Send>>,
    keys: Keys,
    dim: usize,
    buffer: Vec<u8>,
    line: u64,
    /// Whether `buffer` holds the first sample, which was read to find the keys.
    pending: bool,
}

/// The keys that are read.
struct Keys {
    features: String,
    /// Label, split and domain.
    tags: [Option<String>; TAGS],
}

impl Jsonl {
    pub fn open(path: &Path, source: Box<dyn Read + Send>, options: &Options) -> Result<Jsonl, Error> {
        let keys = Keys { features: String::new(), tags: Default::default() };
        let source = BufReader::new(source);
        let mut jsonl =
            Jsonl { path: path.to_owned(), source, keys, dim: 0, buffer: Vec::new(), line: 0, pending: false };
        jsonl.pending = jsonl.advance()?;
        if !jsonl.pending {
            return Err(Error::Container { path: path.to_owned(), reason: "no samples".to_owned() });
        }
        let first: BTreeMap<String, IgnoredAny> =
            serde_json::from_slice(&jsonl.buffer).map_err(|e| jsonl.refuse(json(e)))?;
        let names: Vec<String> = first.into_keys().collect();
        let place = names::find(path, &names, options.features.as_deref(), (names::FEATURES, ""), "features key")?;
        let place = place.ok_or_else(|| names::missing_features(path, &names, "features key"))?;
        let tags = names::tags(path, &names, options, "label key")?.map(|tag| tag.map(|at| names[at].clone()));
        jsonl.keys = Keys { features: names[place].clone(), tags };
        jsonl.dim = jsonl.sample()?.0.len();
        if jsonl.dim == 0 {
            return Err(jsonl.refuse(LineProblem::Json("has no features".to_owned())));
        }
        Ok(jsonl)
    }

    /// Reads the next line that is not empty; false at the end.
    fn advance(&mut self) -> Result<bool, Error> {
        if std::mem::take(&mut self.pending) {
            return Ok(true);
        }
        loop {
            self.buffer.clear();
            let failed = |source| ReadError::new(&self.path, source);
            let mut line = self.source.by_ref().take(text::LONGEST_LINE as u64 + 1);
            if line.read_until(b'\n', &mut self.buffer).map_err(failed)? == 0 {
                return Ok(false);
            }
            self.line += 1;
            if self.buffer.len() > text::LONGEST_LINE {
                return Err(self.refuse(LineProblem::TooLong { limit: text::LONGEST_LINE }));
            }
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// The sample in `buffer`.
    fn sample(&self) -> Result<Sample, Error> {
        let mut reader = serde_json::Deserializer::from_slice(&self.buffer);
        let sample = self.keys.deserialize(&mut reader).and_then(|sample| reader.end().map(|()| sample));
        sample.map_err(|e| self.refuse(json(e)))
    }

    fn refuse(&self, problem: LineProblem) -> Error {
        Error::Line { path: self.path.clone(), line: self.line, problem }
    }
}

impl Rows for Jsonl {
    fn dim(&self) -> usize {
        self.dim
    }

    fn has(&self, tag: usize) -> bool {
        self.keys.tags[tag].is_some()
    }

    fn read(&mut self, most: usize) -> Result<Piece, Error> {
        let mut piece = Piece::default();
        while piece.x.len() / self.dim < most && self.advance()? {
            let (x, tags) = self.sample()?;
            if x.len() != self.dim {
                return Err(self.refuse(LineProblem::Features { found: x.len(), expected: self.dim }));
            }
            piece.x.extend(x);
            for (column, tag) in piece.tags.iter_mut().zip(tags) {
                column.extend(tag);
            }
        }
        Ok(piece)
    }
}

/// The parser's message. The parser sees one line at a time, so its line number is always 1.
fn json(error: serde_json::Error) -> LineProblem {
    LineProblem::Json(error.to_string().replace(" at line 1 column ", " at character "))
}

/// Parses features straight into a vector: a tree of JSON values would be eight times as large.
impl<'de> DeserializeSeed<'de> for &Keys {
    type Value = Sample;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &Keys {
    type Value = Sample;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with the key {}", self.features)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut features, mut tags) = (None, [const { None }; TAGS]);
        while let Some(key) = map.next_key::<String>()? {
            let known = self.tags.iter().position(|tag| tag.as_ref() == Some(&key));
            let duplicate = if key == self.features {
                features.replace(map.next_value()?).is_some()
            } else if let Some(tag) = known {
                tags[tag].replace(map.next_value::<AnyLabel>()?.0).is_some()
            } else {
                map.next_value::<IgnoredAny>()?;
                false
            };
            if duplicate {
                return Err(de::Error::custom(format!("duplicate key {key}")));
            }
        }
        let missing = |key: &str| de::Error::custom(format!("missing key {key}, which the first line has"));
        let features = features.ok_or_else(|| missing(&self.features))?;
        match self.tags.iter().zip(&tags).find_map(|(key, tag)| key.as_ref().filter(|_| tag.is_none())) {
            Some(key) => Err(missing(key)),
            None => Ok((features, tags)),
        }
    }
}

/// A label in any of its JSON forms.
struct AnyLabel(Label);

impl<'de> Deserialize<'de> for AnyLabel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AnyLabel, D::Error> {
        deserializer.deserialize_any(LabelVisitor)
    }
}

struct LabelVisitor;

impl Visitor<'_> for LabelVisitor {
    type Value = AnyLabel;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a label: a whole number or a text")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<AnyLabel, E> {
        Ok(AnyLabel(Label::Integer(value)))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<AnyLabel, E> {
        let number =
            i64::try_from(value).map_err(|_| E::custom(format!("the label {value} does not fit into 64 bits")))?;
        Ok(AnyLabel(Label::Integer(number)))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<AnyLabel, E> {
        let label = text::whole(value).ok_or_else(|| E::custom(format!("the label {value} is not a whole number")))?;
        Ok(AnyLabel(label))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<AnyLabel, E> {
        Ok(AnyLabel(Label::Integer(value.into())))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<AnyLabel, E> {
        Ok(AnyLabel(Label::from(value)))
    }
}
