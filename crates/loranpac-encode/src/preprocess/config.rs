//! Preprocessing from the files beside a model's weights: timm's `config.json` and transformers'
//! `preprocessor_config.json`.

use std::io;
use std::path::Path;

use serde_json::{Map, Value};

use super::{Filter, Preprocess, Resize};
use crate::error::Error;
use crate::regular;

/// Mean and standard deviation of each channel.
pub(super) type Normalisation = ([f32; 3], [f32; 3]);

/// Mean and standard deviation of ImageNet's pixels, timm's default.
pub(super) const IMAGENET: Normalisation = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);

/// The longest configuration that is read.
const LONGEST: u64 = 1 << 20;

impl Preprocess {
    /// Reads `preprocessor_config.json`, else `config.json` if it is timm's, in the folder of a model. None if neither
    /// describes preprocessing.
    ///
    /// # Errors
    /// If a file cannot be read, or asks for something that is not supported.
    pub fn from_folder(folder: &Path) -> Result<Option<Preprocess>, Error> {
        let place = folder.join("preprocessor_config.json");
        if let Some(text) = read(&place)? {
            return Preprocess::from_transformers(&place.display().to_string(), &text).map(Some);
        }
        let place = folder.join("config.json");
        let timm = read(&place)?.filter(|text| {
            let value: Result<Value, _> = serde_json::from_str(text);
            value.is_ok_and(|value| value.get("pretrained_cfg").is_some())
        });
        timm.map(|text| Preprocess::from_timm(&place.display().to_string(), &text)).transpose()
    }

    /// Parses timm's `config.json`: the keys `input_size`, `crop_pct`, `crop_mode`, `interpolation`, `mean` and `std`
    /// of `pretrained_cfg`, with timm's defaults. `place` is for messages.
    ///
    /// # Errors
    /// [`Error::Preprocess`] if it is no such file, or asks for something that is not supported.
    pub fn from_timm(place: &str, json: &str) -> Result<Preprocess, Error> {
        object(json).and_then(timm).map_err(|problem| Error::Preprocess { place: place.to_owned(), problem })
    }

    /// Parses transformers' `preprocessor_config.json`: the keys `size`, `crop_size`, `resample`, `rescale_factor`,
    /// `image_mean`, `image_std` and `do_*`. `place` is for messages.
    ///
    /// # Errors
    /// [`Error::Preprocess`] if it is no such file, or asks for something that is not supported.
    pub fn from_transformers(place: &str, json: &str) -> Result<Preprocess, Error> {
        object(json).and_then(transformers).map_err(|problem| Error::Preprocess { place: place.to_owned(), problem })
    }
}

type Object = Map<String, Value>;

fn timm(mut config: Object) -> Result<Preprocess, String> {
    if let Some(inner) = config.remove("pretrained_cfg") {
        let Value::Object(inner) = inner else { return Err("pretrained_cfg is not an object".to_owned()) };
        config = inner;
    }
    let (height, width) = match given(&config, "input_size") {
        None => (224, 224),
        Some(value) => match value.as_array().map(Vec::as_slice) {
            Some([channels, height, width]) if channels.as_u64() == Some(3) => (side(height)?, side(width)?),
            _ => return Err(format!("input_size is {value}, but [3, height, width] is needed")),
        },
    };
    let part = number(&config, "crop_pct")?.unwrap_or(0.875);
    if !(part > 0.0 && part <= 1.0) {
        return Err(format!("crop_pct is {part}, but a number above 0 and up to 1 is needed"));
    }
    let before = |side: usize| (side as f64 / part) as usize;
    let resize = match given(&config, "crop_mode").map_or(Some("center"), Value::as_str) {
        Some("center") if height == width => Resize::Shorter(before(height)),
        Some("center") => return Err("input_size is not square, which crop_mode center needs here".to_owned()),
        Some("squash") => Resize::Exact(before(height), before(width)),
        _ => return Err(format!("crop_mode is {}; center and squash are supported", config["crop_mode"])),
    };
    let filter = match given(&config, "interpolation").map_or(Some("bicubic"), Value::as_str) {
        // Of training, where timm chooses one; its evaluation uses bilinear.
        Some("random") => Filter::Bilinear,
        name => name.and_then(Filter::from_name).ok_or_else(|| unknown_filter(&config["interpolation"]))?,
    };
    let mean = channels(&config, "mean")?.unwrap_or(IMAGENET.0);
    let std = channels(&config, "std")?.unwrap_or(IMAGENET.1);
    Preprocess { resize, filter, crop: (height, width), scale: 1.0 / 255.0, mean, std }.check()
}

fn transformers(config: Object) -> Result<Preprocess, String> {
    for key in ["do_pad", "do_flip_channel_order", "do_reduce_labels"] {
        if given(&config, key).is_some_and(|value| *value == Value::Bool(true)) {
            return Err(format!("{key} is not supported"));
        }
    }
    let on = |key: &str, otherwise: bool| match given(&config, key) {
        None => Ok(otherwise),
        Some(value) => value.as_bool().ok_or_else(|| format!("{key} is {value}, but true or false is needed")),
    };
    let resized = on("do_resize", true)?;
    let mut resize = if resized { size(&config)? } else { Resize::Keep };
    let mut crop = match given(&config, "crop_size") {
        Some(value) if on("do_center_crop", true)? => Some(square(value).ok_or_else(|| odd("crop_size", value))?),
        _ => None,
    };
    // ConvNeXt: below 384 pixels the size is that after cropping, and from there on proportions are not kept.
    if let (Some(part), Resize::Shorter(shorter)) = (number(&config, "crop_pct")?, resize) {
        (resize, crop) = match shorter {
            ..384 if part > 0.0 => (Resize::Shorter((shorter as f64 / part) as usize), Some((shorter, shorter))),
            _ => (Resize::Exact(shorter, shorter), None),
        };
    }
    let crop = match (crop, resize) {
        (Some(crop), _) => crop,
        (None, Resize::Exact(height, width)) => (height, width),
        (None, _) => return Err("the result has no fixed size: give crop_size, or height and width in size".to_owned()),
    };
    let filter = match given(&config, "resample") {
        Some(value) => value.as_u64().and_then(Filter::from_pil).ok_or_else(|| unknown_filter(value))?,
        None if resized => return Err("no key resample".to_owned()),
        None => Filter::Bilinear,
    };
    let scale = if on("do_rescale", true)? { number(&config, "rescale_factor")?.unwrap_or(1.0 / 255.0) } else { 1.0 };
    let (mean, std) = if on("do_normalize", given(&config, "image_mean").is_some())? {
        let need = |key: &str| channels(&config, key)?.ok_or_else(|| format!("no key {key}"));
        (need("image_mean")?, need("image_std")?)
    } else {
        ([0.0; 3], [1.0; 3])
    };
    Preprocess { resize, filter, crop, scale: scale as f32, mean, std }.check()
}

/// The size before cropping. A single number is the shorter side for CLIP and ConvNeXt, and both sides for others.
fn size(config: &Object) -> Result<Resize, String> {
    let value = given(config, "size").ok_or("no key size")?;
    if let Some(shorter) = value.get("shortest_edge") {
        return Ok(Resize::Shorter(side(shorter)?));
    }
    let kind = ["image_processor_type", "feature_extractor_type"].iter().find_map(|key| given(config, key));
    let kind = kind.and_then(Value::as_str).unwrap_or_default();
    if value.is_number() && ["CLIP", "ConvNext"].iter().any(|name| kind.starts_with(name)) {
        return Ok(Resize::Shorter(side(value)?));
    }
    let (height, width) = square(value).ok_or_else(|| odd("size", value))?;
    Ok(Resize::Exact(height, width))
}

/// Height and width from one number, a list of two, or an object with `height` and `width`.
fn square(value: &Value) -> Option<(usize, usize)> {
    let (height, width) = match value {
        Value::Array(sides) => (sides.first()?, sides.get(1).filter(|_| sides.len() == 2)?),
        Value::Object(sides) => (sides.get("height")?, sides.get("width")?),
        side => (side, side),
    };
    Some((side(height).ok()?, side(width).ok()?))
}

fn side(value: &Value) -> Result<usize, String> {
    let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| format!("{value} is not a number of pixels"))
}

fn odd(key: &str, value: &Value) -> String {
    format!("{key} is {value}, but a number or height and width are needed")
}

fn unknown_filter(value: &Value) -> String {
    let names: Vec<&str> = Filter::ALL.iter().map(|filter| filter.name()).collect();
    format!("the interpolation {value} is unknown; known are {}", names.join(", "))
}

/// Returns a value unless it is missing or null.
fn given<'a>(config: &'a Object, key: &str) -> Option<&'a Value> {
    config.get(key).filter(|value| !value.is_null())
}

fn number(config: &Object, key: &str) -> Result<Option<f64>, String> {
    let parse = |value: &Value| value.as_f64().ok_or_else(|| format!("{key} is {value}, but a number is needed"));
    given(config, key).map(parse).transpose()
}

/// Three numbers, one per channel.
fn channels(config: &Object, key: &str) -> Result<Option<[f32; 3]>, String> {
    let Some(value) = given(config, key) else { return Ok(None) };
    let numbers: Option<Vec<f32>> =
        value.as_array().and_then(|list| list.iter().map(|v| v.as_f64().map(|v| v as f32)).collect());
    let three = numbers.and_then(|numbers| <[f32; 3]>::try_from(numbers).ok());
    three.map(Some).ok_or_else(|| format!("{key} is {value}, but three numbers are needed"))
}

fn object(json: &str) -> Result<Object, String> {
    serde_json::from_str(json).map_err(|e| format!("not a JSON object: {e}"))
}

/// The text of a file. None if there is no such file.
fn read(place: &Path) -> Result<Option<String>, Error> {
    let failed = |source| Error::Read { path: place.to_owned(), source };
    match regular::read(place, LONGEST) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(failed(e)),
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|e| failed(io::Error::other(e))),
    }
}
