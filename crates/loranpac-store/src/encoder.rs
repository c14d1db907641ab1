//! The source of features: the encoder's name, where it is found, and statistics of the features.

use loranpac::Features;
use serde::{Deserialize, Serialize};

/// The minimum numbers of samples and classes for a comparison. On real features, two single classes differ as much as
/// two encoders do; a class and ten others do not.
const MIN_SAMPLES_AND_CLASSES: (usize, usize) = (20, 10);
/// The maximum ratio of the lengths of features from the same encoder.
const MAX_RATIO: f64 = 3.0;
/// The minimum correlation of feature profiles from the same encoder, in standard errors of two unrelated profiles
/// (`d^-1/2` each): 0.10 for d = 384, where 60 unseen intents, 30 samples each, gave 0.14 to 0.5.
const MIN_CORRELATION: f64 = 2.0;

/// Which encoder computes the features of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The encoder itself, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
}

impl Identity {
    /// An encoder of which only the name is known.
    pub fn named(name: impl Into<String>) -> Identity {
        Identity { name: Some(name.into()), reference: None }
    }

    /// Returns whether nothing is known about the encoder.
    pub fn is_unknown(&self) -> bool {
        *self == Identity::default()
    }

    /// Where to look for the encoder, and its digest: its recorded place or, if only its features were seen, its name.
    pub fn place(&self) -> Option<(&str, &str)> {
        let reference = self.reference.as_ref()?;
        let place = reference.location.as_deref().or(self.name.as_deref())?;
        Some((place, reference.digest.as_str()))
    }

    /// Checks what was read from a file.
    pub(crate) fn check(&self) -> Result<(), String> {
        let hex = |text: &str| text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        match self.reference.as_ref().is_none_or(|reference| hex(&reference.digest)) {
            true => Ok(()),
            false => Err("the digest of its encoder is not valid".to_owned()),
        }
    }

    /// Returns how another encoder differs; None if it is the same, or if that is not known. Digests decide; names do
    /// where a digest is missing.
    pub fn differs(&self, other: &Identity) -> Option<String> {
        let differ = match (&self.reference, &other.reference) {
            (Some(ours), Some(theirs)) => ours.digest != theirs.digest,
            _ => self.name.as_ref().zip(other.name.as_ref()).is_some_and(|(ours, theirs)| ours != theirs),
        };
        let same_name = self.name.is_some() && self.name == other.name;
        let advice = match same_name {
            true => ". Another adapter or preprocessing makes another encoder: give those of the model",
            false => "",
        };
        differ.then(|| format!("{other}, but the model was trained with {self}{advice}"))
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name.as_deref().unwrap_or("an encoder without a name"))?;
        match &self.reference {
            Some(reference) => write!(f, " (digest {}...)", reference.digest.get(..12).unwrap_or_default()),
            None => Ok(()),
        }
    }
}

/// A reference to an encoder, whose weights are not part of the model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// SHA-256 of its weights, architecture and preprocessing, and of its adapter, in hexadecimal.
    pub digest: String,
    /// The path, the address or the name under which it was opened. None if only its features were seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Changes of its preprocessing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preprocess: Option<String>,
    /// The path of the adapter with which it was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
    /// Whether features before and after adaptation stand side by side.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub concat: bool,
}

/// The fingerprint of an encoder.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Encoder {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The encoder itself, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
    /// Number of samples behind the statistics.
    pub samples: usize,
    /// Mean of each feature.
    pub mean: Vec<f64>,
    /// Sum of squared deviations of each feature from its mean.
    pub squares: Vec<f64>,
}

impl Encoder {
    /// Creates an encoder without statistics.
    pub fn new(identity: Identity) -> Self {
        let Identity { name, reference } = identity;
        Encoder { name, reference, ..Encoder::default() }
    }

    /// Returns which encoder it is.
    pub fn identity(&self) -> Identity {
        Identity { name: self.name.clone(), reference: self.reference.clone() }
    }

    /// Records which encoder it is, where that is not recorded yet.
    pub fn identify(&mut self, identity: &Identity) {
        if self.name.is_none() {
            self.name.clone_from(&identity.name);
        }
        match (&mut self.reference, &identity.reference) {
            (Some(known), Some(new)) if known.location.is_none() => known.clone_from(new),
            (known @ None, new) => known.clone_from(new),
            _ => {}
        }
    }

    /// Computes the statistics of some features.
    pub fn of(x: Features<'_>) -> Self {
        let mut encoder = Encoder::default();
        encoder.add(x);
        encoder
    }

    /// Adds samples (Chan's formula for two groups).
    pub fn add(&mut self, x: Features<'_>) {
        if x.is_empty() {
            return;
        }
        let (dim, count) = (x.dim(), x.len() as f64);
        let column = |j: usize| (0..x.len()).map(move |i| f64::from(x.row(i)[j]));
        let mean: Vec<f64> = (0..dim).map(|j| column(j).sum::<f64>() / count).collect();
        let squares = (0..dim).map(|j| column(j).map(|v| (v - mean[j]).powi(2)).sum()).collect();
        self.join(&Encoder { samples: x.len(), mean, squares, ..Encoder::default() });
    }

    /// Adds the statistics of another fingerprint.
    pub fn join(&mut self, other: &Encoder) {
        let dim = other.mean.len();
        if self.samples == 0 {
            (self.mean, self.squares) = (vec![0.0; dim], vec![0.0; dim]);
        }
        let (before, count) = (self.samples as f64, other.samples as f64);
        let all = before + count;
        for j in 0..dim.min(self.mean.len()) {
            let shift = other.mean[j] - self.mean[j];
            self.mean[j] += shift * count / all;
            self.squares[j] += other.squares[j] + shift * shift * before * count / all;
        }
        self.samples += other.samples;
    }

    /// Removes samples that were added before.
    pub fn remove(&mut self, x: Features<'_>) {
        let removed = Encoder::of(x);
        let (all, count) = (self.samples as f64, removed.samples as f64);
        if removed.samples >= self.samples || removed.mean.len() != self.mean.len() {
            *self = Encoder::new(self.identity());
            return;
        }
        let left = all - count;
        for j in 0..self.mean.len() {
            let mean = (self.mean[j] * all - removed.mean[j] * count) / left;
            let shift = removed.mean[j] - mean;
            self.squares[j] = (self.squares[j] - removed.squares[j] - shift * shift * left * count / all).max(0.0);
            self.mean[j] = mean;
        }
        self.samples -= removed.samples;
    }

    /// Returns why features look unlike those of this encoder, which cover `classes` classes; None if they agree.
    pub fn unlike(&self, other: &Encoder, classes: usize) -> Option<String> {
        let dim = self.mean.len();
        if self.samples.min(other.samples) < MIN_SAMPLES_AND_CLASSES.0
            || classes < MIN_SAMPLES_AND_CLASSES.1
            || dim != other.mean.len()
        {
            return None;
        }
        let ratio = other.length() / self.length();
        if !(MAX_RATIO.recip()..=MAX_RATIO).contains(&ratio) {
            return Some(format!("they are {ratio:.2} times as long as the samples of the model"));
        }
        let correlation = correlation(&self.profile(), &other.profile());
        (correlation < MIN_CORRELATION / (dim as f64).sqrt())
            .then(|| format!("their feature profiles do not match (correlation {correlation:.2})"))
    }

    /// Returns the root mean square length of a sample.
    fn length(&self) -> f64 {
        let mean: f64 = self.mean.iter().map(|m| m * m).sum();
        (mean + self.squares.iter().sum::<f64>() / self.samples as f64).sqrt()
    }

    /// Returns the root mean square of each feature.
    fn profile(&self) -> Vec<f64> {
        let count = self.samples as f64;
        self.mean.iter().zip(&self.squares).map(|(mean, squares)| (mean * mean + squares / count).sqrt()).collect()
    }
}

/// Returns the correlation of two lists; 1 if one of them is constant.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let centred = |v: &[f64]| {
        let mean = v.iter().sum::<f64>() / v.len() as f64;
        v.iter().map(|x| x - mean).collect::<Vec<_>>()
    };
    let (a, b) = (centred(a), centred(b));
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let scale = (dot(&a, &a) * dot(&b, &b)).sqrt();
    if scale > 0.0 { dot(&a, &b) / scale } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_decide_which_encoder_it_is_and_names_where_there_are_none() {
        let reference = |digest: &str, location: Option<&str>| {
            let (digest, location) = (digest.to_owned(), location.map(str::to_owned));
            Some(Reference { digest, location, ..Reference::default() })
        };
        let of = |name: &str, reference| Identity { name: Some(name.to_owned()), reference };
        let mut encoder = Encoder::default();
        assert_eq!(encoder.identity().differs(&Identity::named("a")), None);
        encoder.identify(&Identity::named("a"));
        assert!(encoder.identity().differs(&Identity::named("b")).unwrap().contains("trained with a"));
        assert!(encoder.identity().differs(&of("b", reference("11", None))).is_some());
        encoder.identify(&of("a", reference("11", None)));
        assert_eq!(encoder.identity().differs(&of("b", reference("11", None))), None, "a digest decides");
        assert!(encoder.identity().differs(&of("a", reference("22", None))).is_some());
        encoder.identify(&of("b", reference("11", Some("place"))));
        encoder.identify(&of("b", reference("11", Some("elsewhere"))));
        assert_eq!(encoder.reference, reference("11", Some("place")));
    }

    #[test]
    fn what_is_taken_out_leaves_what_was_there_before() {
        let x: Vec<f32> = (0..60).map(|i| ((i * 37) % 17) as f32 / 8.0 - 1.0).collect();
        let (first, second) = x.split_at(36);
        let [first, second] = [first, second].map(|x| Features::new(x, 3).unwrap());
        let before = Encoder::of(first);
        let mut both = before.clone();
        both.add(second);
        both.remove(second);
        assert_eq!(both.samples, before.samples);
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(close(&both.mean, &before.mean) && close(&both.squares, &before.squares), "{both:?} {before:?}");
    }
}
