//! Preprocessing as a text, for command lines and for records: `resize=256,crop=224,filter=bicubic,mean=0,std=1`.
//!
//! A text is a list of settings, each of which changes one part of another preprocessing, usually the encoder's own. It
//! can begin with the name of a preset:
//!
//! | preset | resize | crop | filter | mean and standard deviation |
//! |---|---|---|---|---|
//! | `unit` | 256 | 224 | bicubic | none: numbers from 0 to 1 |
//! | `half` | 248 | 224 | bicubic | 0.5 |
//! | `imagenet` | 256 | 224 | bicubic | of ImageNet |
//! | `clip` | 224 | 224 | bicubic | of CLIP |
//!
//! `resize=256` is the shorter side, `resize=256x320` is height and width, and `resize=keep` does not resize. `crop=224`
//! is square, and `crop=224x288` is height and width. `mean` and `std` are one number or three, as in `0.5/0.5/0.5`.

use std::fmt;
use std::str::FromStr;

use super::config::{IMAGENET, Normalisation};
use super::{Filter, Preprocess, Resize};
use crate::error::Error;

/// Mean and standard deviation of the pixels that CLIP was trained on.
const CLIP: Normalisation = ([0.481_454_66, 0.457_827_5, 0.408_210_73], [0.268_629_54, 0.261_302_6, 0.275_777_1]);

/// The presets: name, shorter side before a crop of 224, mean and standard deviation.
const PRESETS: &[(&str, usize, Normalisation)] = &[
    ("unit", 256, ([0.0; 3], [1.0; 3])),
    ("half", 248, ([0.5; 3], [0.5; 3])),
    ("imagenet", 256, IMAGENET),
    ("clip", 224, CLIP),
];

impl Preprocess {
    /// The preset of this name: `unit`, `half`, `imagenet` or `clip`.
    pub fn preset(name: &str) -> Option<Preprocess> {
        let &(_, shorter, (mean, std)) = PRESETS.iter().find(|preset| preset.0 == name)?;
        let (resize, filter) = (Resize::Shorter(shorter), Filter::Bicubic);
        Some(Preprocess { resize, filter, crop: (224, 224), scale: 1.0 / 255.0, mean, std })
    }

    /// Changes the parts that a text names, such as `unit` or `resize=256,filter=bilinear`.
    ///
    /// # Errors
    /// [`Error::Preprocess`] if the text names an unknown setting or value.
    pub fn with(&self, text: &str) -> Result<Preprocess, Error> {
        let mut changed = self.clone();
        let mut parse = || {
            for (place, setting) in text.split(',').map(str::trim).enumerate() {
                match setting.split_once('=') {
                    Some((key, value)) => changed.set(key.trim(), value.trim())?,
                    None if place == 0 => changed = Preprocess::preset(setting).ok_or_else(|| unknown(setting))?,
                    None => return Err(unknown(setting)),
                }
            }
            changed.clone().check()
        };
        parse().map_err(|problem| Error::Preprocess { place: format!("preprocessing {text:?}"), problem })
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let bad = |expected: &str| format!("{key}={value}: {expected}");
        match key {
            "resize" if value == "keep" => self.resize = Resize::Keep,
            "resize" => {
                let expected = "256 (the shorter side), 256x256 (height and width) or keep is expected";
                self.resize = match sides(value).ok_or_else(|| bad(expected))? {
                    (shorter, None) => Resize::Shorter(shorter),
                    (height, Some(width)) => Resize::Exact(height, width),
                };
            }
            "crop" => {
                let (height, width) =
                    sides(value).ok_or_else(|| bad("224 or 224x224 (height and width) is expected"))?;
                self.crop = (height, width.unwrap_or(height));
            }
            "filter" => {
                let names: Vec<&str> = Filter::ALL.iter().map(|filter| filter.name()).collect();
                let expected = || bad(&format!("one of {} is expected", names.join(", ")));
                self.filter = Filter::from_name(value).ok_or_else(expected)?;
            }
            "scale" => self.scale = value.parse().map_err(|_| bad("a number is expected"))?,
            "mean" => self.mean = three(value).ok_or_else(|| bad("0.5 or 0.5/0.5/0.5 is expected"))?,
            "std" => self.std = three(value).ok_or_else(|| bad("0.5 or 0.5/0.5/0.5 is expected"))?,
            _ => return Err(unknown(key)),
        }
        Ok(())
    }
}

/// Parses a whole description, as [`fmt::Display`] writes it. Settings that are left out are those of the preset `unit`.
impl FromStr for Preprocess {
    type Err = Error;

    fn from_str(text: &str) -> Result<Preprocess, Error> {
        let (_, shorter, (mean, std)) = PRESETS[0];
        let (resize, filter) = (Resize::Shorter(shorter), Filter::Bicubic);
        Preprocess { resize, filter, crop: (224, 224), scale: 1.0 / 255.0, mean, std }.with(text)
    }
}

/// All settings, in a text that [`Preprocess::with`] parses to the same value.
impl fmt::Display for Preprocess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.resize {
            Resize::Keep => write!(f, "resize=keep")?,
            Resize::Shorter(side) => write!(f, "resize={side}")?,
            Resize::Exact(height, width) => write!(f, "resize={height}x{width}")?,
        }
        let list = |numbers: [f32; 3]| numbers.map(|number| number.to_string()).join("/");
        let ((height, width), filter) = (self.crop, self.filter.name());
        write!(f, ",crop={height}x{width},filter={filter},scale={}", self.scale)?;
        write!(f, ",mean={},std={}", list(self.mean), list(self.std))
    }
}

/// `256` or `256x192`.
fn sides(text: &str) -> Option<(usize, Option<usize>)> {
    match text.split_once('x') {
        Some((height, width)) => Some((height.trim().parse().ok()?, Some(width.trim().parse().ok()?))),
        None => Some((text.parse().ok()?, None)),
    }
}

/// One number for all channels, or three.
fn three(text: &str) -> Option<[f32; 3]> {
    let numbers: Option<Vec<f32>> = text.split('/').map(|number| number.trim().parse().ok()).collect();
    match numbers?[..] {
        [one] => Some([one; 3]),
        [red, green, blue] => Some([red, green, blue]),
        _ => None,
    }
}

fn unknown(setting: &str) -> String {
    let presets: Vec<&str> = PRESETS.iter().map(|preset| preset.0).collect();
    format!(
        "{setting:?} is neither a preset ({}) nor a setting (resize, crop, filter, scale, mean, std)",
        presets.join(", ")
    )
}
