//! Opens a transformer of either kind.

use std::path::Path;

use super::config;
use super::image::ImageEncoder;
use super::model::Transformer;
use super::scheme::{Family, Scheme};
use super::text::TextEncoder;
use super::vit::Vit;
use super::weights::Weights;
use crate::error::Error;
use crate::preprocess::Preprocess;

/// Opens a folder with `model.safetensors`, or a safetensors file: a text encoder or a vision transformer, whichever its
/// tensors belong to.
///
/// The preprocessing of images is that of the configuration beside the weights; without one, the usual one of the
/// architecture. `changes` changes parts of it.
///
/// # Errors
/// If a file cannot be read, or a tensor or a setting does not fit a supported architecture.
pub fn open(path: &Path, changes: Option<&str>) -> Result<Transformer, Error> {
    let family = Scheme::recognise(&Weights::open(path)?)?.0.family;
    if family == Family::Bert {
        if changes.is_some() {
            return Err(Error::NoPreprocess { encoder: config::name(path) });
        }
        return Ok(Transformer::Text(TextEncoder::open(path)?));
    }
    let given = config::folder(path).map_or(Ok(None), Preprocess::from_folder)?;
    let usual = || {
        let side = Vit::open(path, None)?.side();
        let preset: Preprocess = usual(family).parse()?;
        preset.with(&format!("resize={},crop={side}", side * 8 / 7))
    };
    let preprocess = given.map_or_else(usual, Ok)?;
    let preprocess = changes.map_or(Ok(preprocess.clone()), |changes| preprocess.with(changes))?;
    let (height, width) = preprocess.size();
    if height != width {
        let problem = format!("images of {height} x {width} pixels; a vision transformer takes squares");
        return Err(Error::Preprocess { place: path.display().to_string(), problem });
    }
    Ok(Transformer::Image(ImageEncoder::new(Vit::open(path, Some(height))?, preprocess)))
}

/// The preset of preprocessing with which models of an architecture are usually trained.
fn usual(family: Family) -> &'static str {
    match family {
        Family::Timm | Family::Vit | Family::Bert => "half",
        Family::Dino => "imagenet",
        Family::Clip => "clip",
    }
}
