//! Lines of JSON objects, each with one value that is wanted, and labels in any of their JSON forms.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use loranpac::Label;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::names::{DOMAINS, LABELS, SPLIT};
use super::text;
use crate::error::{Error, LineProblem, ReadError};
use crate::rows::TAGS;

/// Reads one line at a time.
pub(super) struct Lines {
    pub path: PathBuf,
    source: BufReader<Box<dyn Read + Send>>,
    /// The current line.
    pub buffer: Vec<u8>,
    line: u64,
}

impl Lines {
    /// Reads the first line.
    pub fn open(path: &Path, source: Box<dyn Read + Send>) -> Result<Lines, Error> {
        let mut lines = Lines { path: path.to_owned(), source: BufReader::new(source), buffer: Vec::new(), line: 0 };
        if !lines.advance()? {
            return Err(Error::Container { path: path.to_owned(), reason: "no samples".to_owned() });
        }
        Ok(lines)
    }

    /// The keys of the current line.
    pub fn keys(&self) -> Result<Vec<String>, Error> {
        let object: BTreeMap<String, IgnoredAny> =
            serde_json::from_slice(&self.buffer).map_err(|e| self.refuse(json(e)))?;
        Ok(object.into_keys().collect())
    }

    /// Reads the next line that is not empty; false at the end.
    pub fn advance(&mut self) -> Result<bool, Error> {
        loop {
            self.buffer.clear();
            let failed = |source| ReadError::new(&self.path, source);
            let mut line = self.source.by_ref().take(text::LONGEST_LINE as u64 + 1);
            if line.read_until(b'\n', &mut self.buffer).map_err(failed)? == 0 {
                return Ok(false);
            }
            self.line += 1;
            // Some programs begin a file of UTF-8 with a byte order mark.
            if self.line == 1 && self.buffer.starts_with(b"\xef\xbb\xbf") {
                self.buffer.drain(..3);
            }
            if self.buffer.len() > text::LONGEST_LINE {
                return Err(self.refuse(LineProblem::TooLong { limit: text::LONGEST_LINE }));
            }
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// The value, the tags and the weight of the current line.
    pub fn parse<T: for<'de> Deserialize<'de>>(&self, keys: &Keys<T>) -> Result<Parsed<T>, Error> {
        let mut reader = serde_json::Deserializer::from_slice(&self.buffer);
        let parsed = keys.deserialize(&mut reader).and_then(|parsed| reader.end().map(|()| parsed));
        parsed.map_err(|e| self.refuse(json(e)))
    }

    /// The number of the current line, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    pub fn refuse(&self, problem: LineProblem) -> Error {
        Error::Line { path: self.path.clone(), line: self.line, problem }
    }
}

/// The parser's message. The parser sees one line at a time, so its line number is always 1.
fn json(error: serde_json::Error) -> LineProblem {
    LineProblem::Json(error.to_string().replace(" at line 1 column ", " at character "))
}

/// Label, split and domain of a line.
pub(super) type Tags = [Option<Label>; TAGS];

/// The value of a line, its tags, and its weight.
pub(super) type Parsed<T> = (T, Tags, Option<f64>);

/// The keys that are read, of which one has a value of type `T`.
pub(super) struct Keys<T> {
    content: String,
    /// Label, split and domain.
    tags: [Option<String>; TAGS],
    /// The key of weights.
    weight: Option<String>,
    kind: PhantomData<fn() -> T>,
}

impl<T> Keys<T> {
    pub fn new(content: String, tags: [Option<String>; TAGS]) -> Keys<T> {
        Keys { content, tags, weight: None, kind: PhantomData }
    }

    /// The same, with a weight of each line.
    pub fn with_weight(self, weight: Option<String>) -> Keys<T> {
        Keys { weight, ..self }
    }

    /// The tag that a key usually gives, if the first line has none of that kind.
    fn absent(&self, key: &str) -> Option<&'static str> {
        let usual = [("label", LABELS), ("split", &[SPLIT][..]), ("domain", DOMAINS)];
        let absent = usual.iter().zip(&self.tags).filter(|(_, tag)| tag.is_none()).map(|(usual, _)| usual);
        let mut named = absent.filter(|(_, names)| names.iter().any(|name| name.eq_ignore_ascii_case(key)));
        named.next().map(|(what, _)| *what)
    }

    /// Whether lines have this tag.
    pub fn has(&self, tag: usize) -> bool {
        self.tags[tag].is_some()
    }
}

/// Parses the value straight into its type: a tree of JSON values would be eight times as large as features.
impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for &Keys<T> {
    type Value = Parsed<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for &Keys<T> {
    type Value = Parsed<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with the key {}", self.content)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut content, mut tags, mut weight) = (None, [const { None }; TAGS], None);
        while let Some(key) = map.next_key::<String>()? {
            let known = self.tags.iter().position(|tag| tag.as_ref() == Some(&key));
            let duplicate = if key == self.content {
                content.replace(map.next_value()?).is_some()
            } else if self.weight.as_ref() == Some(&key) {
                weight.replace(map.next_value()?).is_some()
            } else if let Some(tag) = known {
                tags[tag].replace(map.next_value::<AnyLabel>()?.0).is_some()
            } else if let Some(what) = self.absent(&key) {
                let reason =
                    format!("the key {key} gives a {what}, which the first line does not have; give it in every line");
                return Err(de::Error::custom(reason));
            } else {
                map.next_value::<IgnoredAny>()?;
                false
            };
            if duplicate {
                return Err(de::Error::custom(format!("duplicate key {key}")));
            }
        }
        let missing = |key: &str| de::Error::custom(format!("missing key {key}, which the first line has"));
        let content = content.ok_or_else(|| missing(&self.content))?;
        if let Some(key) = self.weight.as_ref().filter(|_| weight.is_none()) {
            return Err(missing(key));
        }
        match self.tags.iter().zip(&tags).find_map(|(key, tag)| key.as_ref().filter(|_| tag.is_none())) {
            Some(key) => Err(missing(key)),
            None => Ok((content, tags, weight)),
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
        f.write_str("a label: a whole number, a text, true or false")
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
        Ok(AnyLabel(text::truth(value)))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<AnyLabel, E> {
        Ok(AnyLabel(Label::from(value)))
    }
}
