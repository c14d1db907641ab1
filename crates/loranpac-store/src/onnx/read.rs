//! The metadata of an exported model, without reading its numbers.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Cursor, ErrorKind};
use std::path::Path;

use loranpac::Label;

use super::proto::{Fields, Value};
use super::{FORMAT, VERSION};
use crate::error::Error;
use crate::lift::LiftRecord;

/// The known keys; others are ignored.
const KEYS: [&str; 6] = ["format", "format_version", "loranpac_version", "lift", "labels", "temperature"];

/// The `metadata_props` of an exported model.
#[derive(Debug, Clone, PartialEq)]
pub struct OnnxMetadata {
    /// The classes by index.
    pub labels: Vec<Label>,
    /// The feature map.
    pub lift: LiftRecord,
    /// Softmax temperature, if the model has one.
    pub temperature: Option<f64>,
    /// The version of loranpac that wrote the file.
    pub loranpac_version: String,
}

/// Reads labels, lift and version. Everything else is skipped, so that the size of the model does not matter.
pub fn read_metadata(path: &Path) -> Result<OnnxMetadata, Error> {
    let file = File::open(path).map_err(Error::read(path))?;
    let length = file.metadata().map_err(Error::read(path))?.len();
    let mut texts = texts(BufReader::new(file), length).map_err(|source| match source.kind() {
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof => Error::damaged(path, source),
        _ => Error::read(path)(source),
    })?;
    let mut text = |key: &str| texts.remove(key).unwrap_or_default();
    let format = text("format");
    if format != FORMAT {
        let found = format!("its format is {format:?}");
        return Err(Error::Format { path: path.to_owned(), expected: FORMAT, found });
    }
    let version = text("format_version");
    if version != VERSION.to_string() {
        return Err(Error::Version { path: path.to_owned(), found: version, known: VERSION });
    }
    let unreadable =
        |key: &'static str| move |e: serde_json::Error| Error::damaged(path, format!("its {key} cannot be read: {e}"));
    let temperature = match text("temperature").as_str() {
        "" => None,
        number => Some(serde_json::from_str(number).map_err(unreadable("temperature"))?),
    };
    let metadata = OnnxMetadata {
        labels: serde_json::from_str(&text("labels")).map_err(unreadable("labels"))?,
        lift: serde_json::from_str(&text("lift")).map_err(unreadable("lift"))?,
        temperature,
        loranpac_version: text("loranpac_version"),
    };
    if metadata.temperature.is_some_and(|t| !(t.is_finite() && t > 0.0)) {
        return Err(Error::damaged(path, "its temperature is not above 0"));
    }
    Ok(metadata)
}

/// Reads the `metadata_props` of a `ModelProto`.
fn texts(source: BufReader<File>, length: u64) -> io::Result<HashMap<String, String>> {
    let mut texts = HashMap::new();
    let mut fields = Fields::new(source, length);
    while let Some((field, value)) = fields.next()? {
        match (field, value) {
            (14, Value::Bytes(length)) => {
                let (key, value) = entry(&fields.take(length)?)?;
                if KEYS.contains(&key.as_str()) && texts.insert(key.clone(), value).is_some() {
                    return Err(io::Error::new(
                        ErrorKind::InvalidData,
                        format!("it has {key:?} twice in its metadata"),
                    ));
                }
            }
            (_, Value::Bytes(length)) => fields.skip(length)?,
            (_, Value::Number) => {}
        }
    }
    Ok(texts)
}

/// Parses the key and value of a `StringStringEntryProto`.
fn entry(bytes: &[u8]) -> io::Result<(String, String)> {
    let (mut key, mut text) = (String::new(), String::new());
    let mut fields = Fields::new(Cursor::new(bytes), bytes.len() as u64);
    while let Some((field, value)) = fields.next()? {
        let Value::Bytes(length) = value else { continue };
        let bytes = fields.take(length)?;
        let read = || String::from_utf8(bytes).map_err(|e| io::Error::new(ErrorKind::InvalidData, e));
        match field {
            1 => key = read()?,
            2 => text = read()?,
            _ => {}
        }
    }
    Ok((key, text))
}
