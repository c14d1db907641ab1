//! The file of an adapter: the tensors of modules, and what they belong to.

use std::collections::HashMap;
use std::path::Path;

use loranpac_data::atomic;
use loranpac_data::safetensors::{TensorInfo, header};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::settings::Settings;
use crate::encoder::Encoder;
use crate::error::Error;
use crate::hex::hex;
use crate::transformer::{Modules, Parameters, Random, Tensor, Transformer, Weights};

/// The version of the format.
const VERSION: u32 = 1;

/// Keys of the metadata, besides format, version and digest.
const KEYS: [&str; 5] = ["encoder", "encoder_digest", "module", "settings", "outcome"];

/// What came of training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Epochs that were trained.
    pub epochs: usize,
    /// The epoch whose numbers were kept, counted from 1.
    pub best: usize,
    /// Classes.
    pub classes: usize,
    /// Samples that were trained on.
    pub trained: usize,
    /// Samples that were held out.
    pub held_out: usize,
    /// Accuracy of held-out samples by the nearest class mean before training, in percent.
    pub frozen: Option<f64>,
    /// The same after training.
    pub adapted: Option<f64>,
}

impl Outcome {
    /// Whether held-out samples are classified better than before. None if none were held out.
    pub fn helps(&self) -> Option<bool> {
        Some(self.adapted? > self.frozen?)
    }
}

/// Trained modules for one encoder.
#[derive(Debug, Clone, PartialEq)]
pub struct Adapter {
    /// Name of its encoder.
    pub encoder: String,
    /// Digest of its encoder, in hexadecimal digits.
    pub digest: String,
    /// How it was trained.
    pub settings: Settings,
    /// What came of it.
    pub outcome: Outcome,
    tensors: Vec<Tensor>,
    values: Vec<f32>,
}

impl Adapter {
    /// The first `own` numbers of modules that were trained in an encoder.
    pub(super) fn new(
        encoder: &Transformer,
        settings: Settings,
        outcome: Outcome,
        parameters: &Parameters,
        own: usize,
    ) -> Adapter {
        let tensors = parameters.tensors().iter().filter(|tensor| tensor.range.end <= own).cloned().collect();
        let values = parameters.values[..own].to_vec();
        let (digest, encoder) = (hex(&encoder.digest()), encoder.name().to_owned());
        Adapter { encoder, digest, settings, outcome, tensors, values }
    }

    /// Trained numbers.
    pub fn parameters(&self) -> usize {
        self.values.len()
    }

    /// SHA-256 of the module and its numbers.
    fn own_digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new_with_prefix(format!("adapter {VERSION} {:?}\n", self.settings.module));
        self.values.iter().for_each(|x| hash.update(x.to_le_bytes()));
        hash.finalize().into()
    }

    /// Writes the file, atomically.
    ///
    /// # Errors
    /// If the system reports one.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        atomic::write(path, &self.bytes()).map_err(|source| Error::Write { path: path.to_owned(), source })
    }

    /// The contents of the file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let infos = self.tensors.iter().map(|Tensor { name, shape, range }| TensorInfo {
            name,
            dtype: "F32",
            shape,
            bytes: 4 * range.len(),
        });
        let texts = [
            self.encoder.clone(),
            self.digest.clone(),
            self.settings.module.name().to_owned(),
            text(&self.settings),
            text(&self.outcome),
        ];
        let mut metadata = json!({
            "format": "loranpac-adapter",
            "version": VERSION.to_string(),
            "digest": seal(texts.each_ref().map(String::as_str), &self.values),
        });
        for (key, text) in KEYS.iter().zip(texts) {
            metadata[*key] = text.into();
        }
        let mut bytes = header(infos, Some(metadata));
        bytes.extend(self.values.iter().flat_map(|x| x.to_le_bytes()));
        bytes
    }

    /// Reads the adapter of an encoder, and checks every byte of it.
    ///
    /// # Errors
    /// If the file is damaged, of a newer version, no adapter, or that of another encoder.
    pub fn read(path: &Path, encoder: &Transformer) -> Result<Adapter, Error> {
        Adapter::read_as(path, encoder, true)
    }

    /// The same; without `sealed`, whatever digests the file has: a fuzzer cannot compute them.
    pub(super) fn read_as(path: &Path, encoder: &Transformer, sealed: bool) -> Result<Adapter, Error> {
        let refuse = |reason: String| Error::Adapter { path: path.to_owned(), reason };
        let weights = Weights::open(path)?;
        let empty = HashMap::new();
        let metadata = weights.metadata().unwrap_or(&empty);
        let get = |key: &str| metadata.get(key).map(String::as_str).unwrap_or_default();
        if get("format") != "loranpac-adapter" {
            return Err(refuse("it is no adapter; `loranpac adapt` writes them".to_owned()));
        }
        if get("version") != VERSION.to_string() {
            let found = get("version").to_owned();
            return Err(refuse(format!("it has version {found:?}, this program reads {VERSION}; update the program")));
        }
        let digest = hex(&encoder.digest());
        if sealed && get("encoder_digest") != digest {
            let (short, own) = (get("encoder_digest").chars().take(12).collect::<String>(), &digest[..12]);
            return Err(refuse(format!(
                "it belongs to the encoder {} with the digest {short}..., not to {} with {own}...; another preprocessing \
                 is another encoder",
                get("encoder"),
                encoder.name(),
            )));
        }
        let parse = |error: serde_json::Error| refuse(format!("its metadata cannot be read: {error}"));
        let settings: Settings = serde_json::from_str(get("settings")).map_err(parse)?;
        let outcome: Outcome = serde_json::from_str(get("outcome")).map_err(parse)?;
        let network = encoder.network();
        if !settings.module.fits(network.stack().shape().d) {
            return Err(refuse(format!("the module {} does not fit the encoder", settings.module)));
        }
        let modules = network.modules(settings.module, &mut Random::new(0, 0));
        let mut values = Vec::with_capacity(modules.parameters.values.len());
        for Tensor { name, shape, .. } in modules.parameters.tensors() {
            values.extend(weights.tensor(name, shape)?);
        }
        weights.finish("adapter", &[])?;
        let tensors = modules.parameters.tensors().to_vec();
        if sealed && get("digest") != seal(KEYS.map(get), &values) {
            return Err(refuse("its contents do not have the recorded digest: the file is damaged".to_owned()));
        }
        Ok(Adapter { encoder: encoder.name().to_owned(), digest, settings, outcome, tensors, values })
    }

    /// The encoder with the modules in it.
    ///
    /// # Errors
    /// If the adapter belongs to another encoder.
    pub fn apply(&self, encoder: &Transformer) -> Result<Transformer, Error> {
        if self.digest != hex(&encoder.digest()) {
            let (adapter, given) = (self.encoder.clone(), encoder.name().to_owned());
            return Err(Error::OtherEncoder { adapter, given });
        }
        let network = encoder.network();
        let mut modules: Modules = network.modules(self.settings.module, &mut Random::new(0, 0));
        modules.parameters.values.copy_from_slice(&self.values);
        Ok(encoder.adapted(&modules, self.own_digest()))
    }
}

/// SHA-256 of everything in a file: the texts of its metadata and its numbers.
fn seal(texts: [&str; 5], values: &[f32]) -> String {
    let mut hash = Sha256::new_with_prefix(format!("file of an adapter {VERSION}\n"));
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    values.iter().for_each(|x| hash.update(x.to_le_bytes()));
    hex(&hash.finalize().into())
}

/// A value as JSON. Numbers of f32 have no more digits than they need.
pub(super) fn text(value: &impl Serialize) -> String {
    // Only maps with other keys than texts, and writers that fail, are errors.
    serde_json::to_string(value).unwrap_or_default()
}
