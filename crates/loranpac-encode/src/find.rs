//! The encoder of a model, found again by its digest.

use std::path::{Path, PathBuf};

use crate::encoder::Encoder;
use crate::error::Error;
use crate::hex::hex;
use crate::open::{BUILT_IN, OpenOptions, open, open_transformer};
use crate::server::Server;

/// The environment variable with further folders of encoders.
const VARIABLE: &str = "LORANPAC_ENCODERS";

/// Finds the encoder with a digest: in its recorded place, beside the model, or in the folders of the environment
/// variable `LORANPAC_ENCODERS`, under its own name or any other. `model` is the path of the model. Its adapter is looked for
/// in the same places under its own name.
///
/// An address is not contacted: a model from elsewhere could send inputs anywhere.
///
/// # Errors
/// If the encoder or its adapter is not found, the adapter is another one, or the encoder is a server.
pub fn find(location: &str, digest: &str, model: &Path, options: &OpenOptions) -> Result<Box<dyn Encoder>, Error> {
    if Server::is_address(location) {
        return Err(Error::ServerInModel { address: location.to_owned() });
    }
    let adapters: Vec<Option<PathBuf>> = match &options.adapter {
        None => vec![None],
        Some(adapter) => files(named(adapter, model, &folders())).map(Some).collect(),
    };
    if let (Some(adapter), []) = (&options.adapter, &adapters[..]) {
        return Err(Error::AdapterNotFound { adapter: adapter.clone() });
    }
    let places: Vec<String> = match BUILT_IN.iter().any(|built_in| built_in.name == location) {
        true => vec![location.to_owned()],
        false => places(Path::new(location), model).iter().map(|place| place.to_string_lossy().into_owned()).collect(),
    };
    let mut tried = Vec::new();
    for adapter in &adapters {
        let options = OpenOptions { adapter: adapter.clone(), ..options.clone() };
        for place in &places {
            if let Some(encoder) = attempt(place, digest, &options, &mut tried) {
                return Ok(encoder);
            }
        }
    }
    // An encoder in one of the places can be opened by itself.
    let fits = |(place, _): &&(String, String)| open_transformer(place, options.preprocess.as_deref()).is_ok();
    if let (Some(adapter), Some((_, reason))) = (&options.adapter, tried.iter().find(fits)) {
        return Err(Error::OtherAdapter { adapter: adapter.clone(), reason: reason.clone() });
    }
    let tried: Vec<String> = tried.into_iter().map(|(_, reason)| reason).collect();
    let tried = if tried.is_empty() { format!("no encoder in {location}") } else { tried.join("; ") };
    Err(Error::NotFound { location: location.to_owned(), digest: digest.to_owned(), tried })
}

/// Where the adapter of a model is: in its recorded place, beside the model, or in the folders of the environment variable
/// `LORANPAC_ENCODERS`, under its own name. Returns the recorded place if there is no file in any of them.
pub fn find_adapter(recorded: &Path, model: &Path) -> PathBuf {
    files(named(recorded, model, &folders())).next().unwrap_or_else(|| recorded.to_owned())
}

fn files(places: Vec<PathBuf>) -> impl Iterator<Item = PathBuf> {
    places.into_iter().filter(|place| place.is_file())
}

/// The encoder at a place, if it has the digest. Otherwise the place and the reason are added to `tried`.
fn attempt(
    place: &str,
    digest: &str,
    options: &OpenOptions,
    tried: &mut Vec<(String, String)>,
) -> Option<Box<dyn Encoder>> {
    let reason = match open(place, options) {
        Ok(encoder) if hex(&encoder.digest()) == digest => return Some(encoder),
        Ok(encoder) => {
            let with = options.adapter.as_ref().map(|adapter| format!(" with the adapter {}", adapter.display()));
            format!("{place}{} has the digest {}...", with.unwrap_or_default(), &hex(&encoder.digest())[..12])
        }
        Err(error) => format!("{place}: {error}"),
    };
    tried.push((place.to_owned(), reason));
    None
}

/// Where an encoder may be, the most likely place first. Only folders and regular files count.
fn places(location: &Path, model: &Path) -> Vec<PathBuf> {
    let folders = folders();
    let mut places = named(location, model, &folders);
    for folder in folders {
        let mut inside: Vec<PathBuf> =
            std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        inside.sort();
        places.push(folder);
        places.extend(inside);
    }
    let mut seen = Vec::new();
    places.retain(|place| {
        let new = is_encoder(place) && !seen.contains(place);
        seen.push(place.clone());
        new
    });
    places
}

/// The recorded place of a file or folder, and the places where it has the same name: beside the model, and in folders.
fn named(location: &Path, model: &Path, folders: &[PathBuf]) -> Vec<PathBuf> {
    let beside = model.parent().map(Path::to_owned);
    let inside = |folder: &PathBuf| location.file_name().map(|name| folder.join(name));
    std::iter::once(location.to_owned()).chain(beside.iter().chain(folders).filter_map(inside)).collect()
}

/// The folders of the environment variable.
fn folders() -> Vec<PathBuf> {
    std::env::var_os(VARIABLE).map(|list| std::env::split_paths(&list).collect()).unwrap_or_default()
}

/// Whether a path can be an encoder, by its kind and name.
fn is_encoder(path: &Path) -> bool {
    let extension = |name: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(name));
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => path.join("model.safetensors").is_file(),
        Ok(found) => found.is_file() && (extension("onnx") || extension("safetensors")),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_in_encoder_is_found_by_its_digest_alone() {
        let options = OpenOptions::default();
        let digest = hex(&open("text-ngrams", &options).unwrap().digest());
        let model = Path::new("m.lrp");
        assert_eq!(find("text-ngrams", &digest, model, &options).unwrap().name(), "text-ngrams");
        let error = find("text-ngrams", &"0".repeat(64), model, &options).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(&digest[..12]) && error.contains("000000000000..."), "{error}");
    }

    #[test]
    fn the_address_in_a_model_is_not_contacted() {
        let address = "http://127.0.0.1:9/v1/embeddings?model=m";
        let error = find(address, "", Path::new("m.lrp"), &OpenOptions::default()).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::ServerInModel { .. }), "{error}");
    }
}
