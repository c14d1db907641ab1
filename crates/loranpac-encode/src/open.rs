//! The encoder that a name, a path or an address stands for.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::adapt::{Adapter, SideBySide};
use crate::basic::ImageBasic;
use crate::encoder::Encoder;
use crate::error::Error;
use crate::ngrams::TextNgrams;
use crate::onnx::Onnx;
use crate::server::Server;
use crate::transformer::{self, Transformer};

/// How an encoder is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Changes of the preprocessing of images, such as `unit` or `resize=256,crop=224`.
    pub preprocess: Option<String>,
    /// A file of modules that were trained in the encoder.
    pub adapter: Option<PathBuf>,
    /// Whether features before and after adaptation stand side by side.
    pub concat: bool,
    /// Time limit of a request to a server.
    pub timeout: Duration,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions { preprocess: None, adapter: None, concat: false, timeout: Duration::from_secs(60) }
    }
}

/// An encoder that needs no weights.
pub struct BuiltIn {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub summary: &'static str,
    make: fn() -> Box<dyn Encoder>,
}

/// The encoders that need no weights.
pub const BUILT_IN: &[BuiltIn] = &[
    BuiltIn {
        name: "text-ngrams",
        summary: "hashed n-grams of words and characters; synonyms are unrelated",
        make: || Box::new(TextNgrams),
    },
    BuiltIn {
        name: "image-basic",
        summary: "histograms of colours and gradients; does not recognise objects",
        make: || Box::new(ImageBasic),
    },
];

/// Opens an encoder: one that is built in, the address of an embedding server, a `.onnx` file, or a folder or file of
/// safetensors.
///
/// # Errors
/// If there is no such encoder, or it cannot be used.
pub fn open(name: &str, options: &OpenOptions) -> Result<Box<dyn Encoder>, Error> {
    let changes = options.preprocess.as_deref();
    let fixed = |encoder: Box<dyn Encoder>| match options.adapter {
        None => Ok(encoder),
        Some(_) => Err(Error::NoAdapter { encoder: name.to_owned() }),
    };
    let unchanged = |encoder: Box<dyn Encoder>| match changes {
        None => fixed(encoder),
        Some(_) => Err(Error::NoPreprocess { encoder: name.to_owned() }),
    };
    if let Some(built_in) = BUILT_IN.iter().find(|built_in| built_in.name == name) {
        return unchanged((built_in.make)());
    }
    if Server::is_address(name) {
        return unchanged(Box::new(Server::connect(name, options.timeout)?));
    }
    let path = Path::new(name);
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("onnx")) {
        return fixed(Box::new(Onnx::open(path, changes)?));
    }
    let frozen = open_transformer(name, changes)?;
    let Some(adapter) = &options.adapter else { return Ok(Box::new(frozen)) };
    let adapted = Adapter::read(adapter, &frozen)?.apply(&frozen)?;
    match options.concat {
        false => Ok(Box::new(adapted)),
        true => Ok(Box::new(SideBySide::new(frozen, adapted))),
    }
}

/// Opens an encoder that can be adapted: a folder or file of safetensors. `preprocess` changes the preprocessing of images.
///
/// # Errors
/// If there is no such encoder, it cannot be used, or it is of another kind.
pub fn open_transformer(name: &str, preprocess: Option<&str>) -> Result<Transformer, Error> {
    let path = Path::new(name);
    let other = BUILT_IN.iter().any(|built_in| built_in.name == name) || Server::is_address(name);
    if other || path.extension().is_some_and(|e| e.eq_ignore_ascii_case("onnx")) {
        return Err(Error::NoAdapter { encoder: name.to_owned() });
    }
    if !path.exists() {
        return Err(Error::UnknownEncoder { name: name.to_owned() });
    }
    transformer::open(path, preprocess)
}

/// Returns whether a name stands for an encoder, rather than being one that a user has chosen: it is built in, an
/// address, a path that exists, or looks like a path.
pub fn is_encoder(name: &str) -> bool {
    let path = Path::new(name);
    let file = path.extension().is_some_and(|e| e == "onnx" || e == "safetensors");
    let built_in = BUILT_IN.iter().any(|built_in| built_in.name == name);
    built_in || file || path.exists() || name.contains("://") || name.contains(std::path::MAIN_SEPARATOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Modality;

    #[test]
    fn built_in_encoders_are_found_by_name_and_have_different_digests() {
        let digests: Vec<[u8; 32]> = BUILT_IN
            .iter()
            .map(|BuiltIn { name, .. }| {
                let encoder = open(name, &OpenOptions::default()).unwrap();
                assert_eq!(encoder.name(), *name);
                assert_eq!(name.starts_with("text"), encoder.modality() == Modality::Text);
                encoder.digest()
            })
            .collect();
        assert_ne!(digests[0], digests[1]);
    }

    #[test]
    fn a_name_that_a_user_chose_is_not_an_encoder() {
        for name in ["text-ngrams", "http://localhost/v1", "minilm/", "vit.onnx", "absent/vit.safetensors", "."] {
            assert!(is_encoder(name), "{name}");
        }
        for name in ["all-MiniLM-L6-v2", "text-magic", "vit-b16 (timm 1.0)", ""] {
            assert!(!is_encoder(name), "{name}");
        }
    }

    #[test]
    fn an_unknown_encoder_is_refused_with_what_there_is() {
        let error = open("text-magic", &OpenOptions::default()).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("text-magic") && error.contains("text-ngrams"), "{error}");
        let options = OpenOptions { preprocess: Some("unit".to_owned()), ..OpenOptions::default() };
        let error = open("text-ngrams", &options).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("preprocess"), "{error}");
    }
}
