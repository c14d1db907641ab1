//! Inference files: the data that prediction needs, in a single file.
//!
//! A safetensors file with one tensor, `weights` (`c x E`, F32 or F16), and in its `__metadata__` the texts `format`,
//! `version`, `model` and `sha256`. `model` is JSON: lift, encoder, labels, temperature, digest of the weights, and the k of the
//! power of two `2^k` by which weights in half precision are multiplied. P is not stored: the lift's seed is. `sha256`
//! is the digest of `model`, so that every changed byte of the file is detected. Version 1 has no such digest, and is
//! still read.

use std::collections::HashSet;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use loranpac::internals::count;
use loranpac::{Classifier, Label, Weights, Width};
use loranpac_data::safetensors::{HeaderError, TensorInfo, header, read_header};
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::disk::{Disk, RealDisk, open_through_links};
use crate::encoder::Identity;
use crate::error::Error;
use crate::lift::{LiftRecord, hex};
use crate::output;
use crate::precision::{Encoding, LARGEST_EXPONENT, Precision};

/// The value of `format`.
pub const FORMAT: &str = "loranpac-inference";
/// The version that is written; version 1 is read as well.
pub const VERSION: u32 = 2;

/// The maximum number of features per sample: far above any encoder, and a limit on what a damaged file can allocate.
const LARGEST_DIM: usize = 1 << 24;

/// A linear classifier with the record of its lift, from which P is generated: the contents of an inference file or an
/// ONNX file.
#[derive(Debug, Clone)]
pub struct Inference {
    /// The lift.
    pub lift: LiftRecord,
    /// The encoder of the features.
    pub encoder: Identity,
    /// The classifier.
    pub classifier: Classifier,
}

/// The text `model` of the file's metadata.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    lift: LiftRecord,
    #[serde(default, skip_serializing_if = "Identity::is_unknown")]
    encoder: Identity,
    labels: Vec<Label>,
    temperature: Option<f64>,
    exponent: i32,
    sha256: String,
}

impl Inference {
    /// Returns W, transposed: E x c.
    pub(crate) fn weights(&self) -> Result<Weights<'_>, Error> {
        self.classifier.weights().ok_or(Error::InfiniteWidth)
    }

    pub(crate) fn labels(&self) -> &[Label] {
        self.classifier.labels()
    }

    /// Writes the model atomically. Half precision halves the file and refuses weights beyond 65504.
    pub fn save(&self, path: &Path, precision: Precision) -> Result<(), Error> {
        self.save_on(Box::new(RealDisk), path, precision)
    }

    /// Like [`Inference::save`], on any disk.
    pub fn save_on(&self, disk: Box<dyn Disk>, path: &Path, precision: Precision) -> Result<(), Error> {
        self.check()?;
        let weights = self.weights()?;
        let encoding = Encoding::of_weights(weights.columns(), self.labels(), precision)?;
        let (mut hash, mut bytes) = (Sha256::new(), Vec::new());
        // The digest precedes the weights, so they are converted twice rather than held twice.
        for column in weights.columns() {
            encoding.encode(&column, &mut bytes);
            hash.update(&bytes);
        }
        let header = self.header(weights, encoding, hex(&hash.finalize())).map_err(|e| Error::write(path)(e.into()))?;
        let mut file = output::create_on(disk, path)?;
        file.write_all(&header).map_err(Error::write(path))?;
        for column in weights.columns() {
            encoding.encode(&column, &mut bytes);
            file.write_all(&bytes).map_err(Error::write(path))?;
        }
        file.replace().map_err(Error::write(path))
    }

    /// Reads a model and checks all of it. The sizes in the header are compared with the file's length before anything
    /// of these sizes is allocated.
    pub fn load(path: &Path) -> Result<Inference, Error> {
        let damaged = |reason: &dyn ToString| Error::damaged(path, reason.to_string());
        let file = open_through_links(path)?;
        let length = file.metadata().map_err(Error::read(path))?.len();
        let mut file = BufReader::with_capacity(1 << 18, file);
        let (metadata, _) = read_header(&mut file, length).map_err(|error| match error {
            HeaderError::Read(source) => Error::read(path)(source),
            HeaderError::Damaged(reason) => damaged(&reason),
        })?;
        let record = read_record(&metadata, path)?;
        let tensor = match (metadata.info("weights"), metadata.offset_keys().len()) {
            (Some(tensor), 1) => tensor,
            _ => return Err(damaged(&"it should hold one tensor, weights")),
        };
        let precision = match tensor.dtype {
            Dtype::F32 => Precision::F32,
            Dtype::F16 => Precision::F16,
            other => return Err(damaged(&format!("its weights are {other:?}, not F32 or F16"))),
        };
        let largest = if precision == Precision::F16 { LARGEST_EXPONENT } else { 0 };
        if !(0..=largest).contains(&record.exponent) {
            return Err(damaged(&format!("its exponent is {}, not from 0 to {largest}", record.exponent)));
        }
        let Record { lift, encoder, labels, temperature, exponent, sha256 } = record;
        let &[classes, width] = tensor.shape.as_slice() else {
            return Err(damaged(&format!("its weights have {} axes instead of 2", tensor.shape.len())));
        };
        check_parts(&lift, &labels, temperature, (width, classes)).map_err(|reason| damaged(&reason))?;
        encoder.check().map_err(|reason| damaged(&reason))?;

        let (mut hash, mut bytes) = (Sha256::new(), vec![0; width * precision.bytes()]);
        let fill = |class: usize, column: &mut [f32]| -> Result<(), Error> {
            file.read_exact(&mut bytes).map_err(Error::read(path))?;
            hash.update(&bytes);
            Encoding { precision, exponent }.decode(&bytes, column);
            check_values(column, &labels[class]).map_err(|reason| damaged(&reason))
        };
        let classifier = Classifier::linear(lift.build_lazily()?, &labels, fill);
        // Weights that are not finite are damage as well, but the checksum is the more precise error.
        let found = hex(&hash.finalize());
        if classifier.is_ok() && found != sha256 {
            return Err(Error::Digest { path: path.to_owned(), expected: sha256, found });
        }
        Ok(Inference { lift, encoder, classifier: classifier?.with_temperature(temperature) })
    }

    /// Checks that the parts fit together.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let weights = self.weights()?;
        let temperature = self.classifier.temperature();
        check_parts(&self.lift, self.labels(), temperature, (weights.width(), weights.classes()))
            .and_then(|()| {
                weights.columns().zip(self.labels()).try_for_each(|(column, label)| check_values(&column, label))
            })
            .map_err(|reason| Error::Unwritable { reason })
    }

    /// Returns the length and the JSON header, padded so that the weights begin at a multiple of 8.
    fn header(&self, weights: Weights<'_>, encoding: Encoding, sha256: String) -> Result<Vec<u8>, serde_json::Error> {
        let record = Record {
            lift: self.lift.clone(),
            encoder: self.encoder.clone(),
            labels: self.labels().to_vec(),
            temperature: self.classifier.temperature(),
            exponent: encoding.exponent,
            sha256,
        };
        let (dtype, size) = match encoding.precision {
            Precision::F32 => ("F32", 4),
            Precision::F16 => ("F16", 2),
        };
        let (shape, bytes) = ([weights.classes(), weights.width()], weights.width() * weights.classes() * size);
        let model = serde_json::to_string(&record)?;
        let metadata = serde_json::json!({
            "format": FORMAT, "version": VERSION.to_string(), "sha256": hex(&Sha256::digest(&model)), "model": model,
        });
        Ok(header([TensorInfo { name: "weights", dtype, shape: &shape, bytes }], Some(metadata)))
    }
}

/// Reads format, version, and the model's text, in this order: a newer version may have another text.
fn read_record(metadata: &Metadata, path: &Path) -> Result<Record, Error> {
    let text = |key: &str| metadata.metadata().as_ref().and_then(|texts| texts.get(key)).map(String::as_str);
    let format = text("format").unwrap_or_default();
    if format != FORMAT {
        let found = format!("its format is {format:?}");
        return Err(Error::Format { path: path.to_owned(), expected: FORMAT, found });
    }
    let version = text("version").unwrap_or_default();
    let number = version.parse::<u32>().ok().filter(|number| number.to_string() == version && *number > 0);
    let expected: &[&str] = match number {
        None => return Err(Error::damaged(path, format!("its version is {version:?}, not a number"))),
        Some(1) => &["format", "model", "version"],
        Some(VERSION) => &["format", "model", "sha256", "version"],
        Some(_) => return Err(Error::Version { path: path.to_owned(), found: version.to_owned(), known: VERSION }),
    };
    let mut keys: Vec<&str> = metadata.metadata().iter().flatten().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    if keys != expected {
        return Err(Error::damaged(
            path,
            format!("its metadata are {} instead of {}", keys.join(", "), expected.join(", ")),
        ));
    }
    let model = text("model").unwrap_or_default();
    if text("sha256").is_some_and(|digest| digest != hex(&Sha256::digest(model))) {
        return Err(Error::damaged(path, "its metadata do not agree with their checksum"));
    }
    serde_json::from_str(model).map_err(|e| Error::damaged(path, format!("its metadata cannot be read: {e}")))
}

/// Checks that lift, labels and temperature are valid and fit weights of E x c.
fn check_parts(
    lift: &LiftRecord,
    labels: &[Label],
    temperature: Option<f64>,
    (width, classes): (usize, usize),
) -> Result<(), String> {
    if lift.dim > LARGEST_DIM {
        return Err(format!("{} features per sample are too many", lift.dim));
    }
    let made = lift.build(false).map_err(|e| e.to_string())?.width();
    if made != lift.width || lift.width != Width::Finite(width) {
        return Err(format!(
            "its lift has width {} and computes {made} features, but its weights have {width}",
            lift.width
        ));
    }
    if classes == 0 || labels.len() != classes {
        return Err(format!("it has {} for {}", count(labels.len(), "label"), count(classes, "class")));
    }
    let mut seen = HashSet::new();
    if let Some(twice) = labels.iter().find(|label| !seen.insert(*label)) {
        return Err(format!("it has two classes {twice}"));
    }
    match temperature {
        Some(t) if !(t.is_finite() && t > 0.0) => Err(format!("its temperature is {t}, which should be above 0")),
        _ => Ok(()),
    }
}

/// Checks that the weights of a label are finite.
fn check_values(column: &[f32], label: &Label) -> Result<(), String> {
    match column.iter().find(|v| !v.is_finite()) {
        Some(bad) => Err(format!("class {label} has the weight {bad}")),
        None => Ok(()),
    }
}
