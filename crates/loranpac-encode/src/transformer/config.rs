//! Settings in JSON files beside the weights.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::math::Activation;
use crate::error::Error;
use crate::regular;

/// The longest file: the labels of a classifier with many classes are in it.
const LONGEST: u64 = 16 << 20;

/// A JSON file. One that does not exist has no settings.
pub(crate) struct Config {
    path: PathBuf,
    value: Value,
}

impl Config {
    /// Reads a file.
    pub fn read(path: PathBuf) -> Result<Config, Error> {
        let value = match regular::read(&path, LONGEST) {
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                return Err(Error::Config { path, reason: format!("it is longer than {} MiB", LONGEST >> 20) });
            }
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| Error::Config { path: path.clone(), reason: format!("it is not JSON: {error}") })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Value::Null,
            Err(source) => return Err(Error::Read { path, source }),
        };
        Ok(Config { path, value })
    }

    /// `config.json` of a model: in the folder, or beside a file that is called `model.safetensors`.
    pub fn of_model(path: &Path) -> Result<Config, Error> {
        match folder(path) {
            Some(folder) => Config::read(folder.join("config.json")),
            None => Ok(Config { path: path.to_owned(), value: Value::Null }),
        }
    }

    /// The settings below a key, if it is there; otherwise all.
    pub fn within(mut self, key: &str) -> Config {
        if let Some(value) = self.value.get_mut(key) {
            self.value = value.take();
        }
        self
    }

    /// A value by the keys that lead to it.
    pub fn get(&self, keys: &[&str]) -> Option<&Value> {
        keys.iter().try_fold(&self.value, |value, key| value.get(key)).filter(|value| !value.is_null())
    }

    /// The whole file.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// A positive integer.
    pub fn integer(&self, keys: &[&str]) -> Result<Option<usize>, Error> {
        let Some(value) = self.get(keys) else { return Ok(None) };
        match value.as_u64().and_then(|value| usize::try_from(value).ok()) {
            Some(value) if value > 0 => Ok(Some(value)),
            _ => Err(self.refuse(format!("{} is {value} instead of a positive integer", keys.join(".")))),
        }
    }

    /// A text.
    pub fn text(&self, keys: &[&str]) -> Option<&str> {
        self.get(keys).and_then(Value::as_str)
    }

    /// A switch that is off unless it is set.
    pub fn switch(&self, keys: &[&str]) -> bool {
        self.get(keys).and_then(Value::as_bool).unwrap_or(false)
    }

    /// `layer_norm_eps`, or what the family of models has by default.
    pub fn eps(&self, default: f32) -> Result<f32, Error> {
        let Some(value) = self.get(&["layer_norm_eps"]) else { return Ok(default) };
        let usable = |eps: &f32| (0.0..1.0).contains(eps);
        let refuse = || self.refuse(format!("layer_norm_eps is {value} instead of a small positive number"));
        value.as_f64().map(|eps| eps as f32).filter(usable).ok_or_else(refuse)
    }

    /// Refuses a size that the file has under a key, if it has one, and that is not that of the tensors.
    pub fn check_size(&self, key: &str, expected: usize) -> Result<(), Error> {
        match self.get(&[key]).filter(|found| found.is_number()) {
            Some(found) if found.as_u64() != Some(expected as u64) => {
                Err(self.refuse(format!("{key} is {found}, but the tensors have {expected}; it is of another model")))
            }
            _ => Ok(()),
        }
    }

    /// The activation under a key, or the default.
    pub fn activation(&self, keys: &[&str], default: Activation) -> Result<Activation, Error> {
        match self.text(keys) {
            None => Ok(default),
            Some("gelu") => Ok(Activation::Gelu),
            Some("quick_gelu") => Ok(Activation::QuickGelu),
            Some("gelu_new" | "gelu_pytorch_tanh" | "gelu_tanh") => Ok(Activation::TanhGelu),
            Some(other) => Err(self.refuse(format!(
                "{} is {other}; supported are gelu, quick_gelu, gelu_new and gelu_pytorch_tanh",
                keys.join(".")
            ))),
        }
    }

    /// Number of heads of d features in all: the configured one; otherwise heads have 64 features, but for the sizes that timm divides into 16.
    pub fn heads(&self, d: usize) -> Result<usize, Error> {
        let heads = match self.integer(&["num_attention_heads"])?.or(self.integer(&["model_args", "num_heads"])?) {
            Some(heads) => heads,
            None if [1152, 1280, 1408, 1664].contains(&d) => 16,
            None => (d / 64).max(1),
        };
        if d.is_multiple_of(heads) {
            Ok(heads)
        } else {
            Err(self.refuse(format!("{heads} heads do not divide {d} features")))
        }
    }

    /// An error about this file.
    pub fn refuse(&self, reason: String) -> Error {
        Error::Config { path: self.path.clone(), reason }
    }
}

/// The folder of a model that may have more files than its weights.
pub(crate) fn folder(path: &Path) -> Option<&Path> {
    match path.file_name() {
        _ if path.is_dir() => Some(path),
        Some(name) if name == "model.safetensors" => path.parent(),
        _ => None,
    }
}

/// A name for people: the folder's, or the file's without its extension.
pub(crate) fn name(path: &Path) -> String {
    let path = folder(path).unwrap_or(path);
    // A link has its own name; `.` and `..` have none.
    let path = match path.file_name() {
        Some(_) => path.to_owned(),
        None => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
    };
    // Names of weights have dots in them: vit_base_patch16_224.augreg_in21k.
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    name.map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned())
}
