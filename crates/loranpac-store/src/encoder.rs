//! Where features come from: a name that the user gives, and what the features look like.

use loranpac::Features;
use serde::{Deserialize, Serialize};

/// Fewer samples than this say too little about their encoder, and so do fewer classes: on real features, single classes
/// are no more alike than encoders are, but a class and ten others are.
const ENOUGH: (usize, usize) = (20, 10);
/// Features of the same encoder have about the same length; one of another scale is another encoder.
const SCALE: f64 = 3.0;
/// Features of the same encoder are alike in size, feature by feature. Correlations below this many standard errors of two
/// unrelated profiles (`d^-1/2` each) are not: 0.10 for d = 384, where 60 unseen intents, 30 samples each, gave 0.14 to 0.5.
const ALIKE: f64 = 2.0;

/// A fingerprint of an encoder.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Encoder {
    /// What the user calls it.
    pub name: Option<String>,
    /// Samples that the statistics are of.
    pub samples: usize,
    /// Mean of each feature.
    pub mean: Vec<f64>,
    /// Sum of squared departures of each feature from its mean.
    pub squares: Vec<f64>,
}

impl Encoder {
    /// An encoder of which nothing but its name is known.
    pub fn named(name: Option<String>) -> Self {
        Encoder { name, ..Encoder::default() }
    }

    /// What some features look like.
    pub fn of(x: Features<'_>) -> Self {
        let mut encoder = Encoder::default();
        encoder.add(x);
        encoder
    }

    /// Takes samples in (Chan's formula for two groups).
    pub fn add(&mut self, x: Features<'_>) {
        if x.is_empty() {
            return;
        }
        let (dim, count) = (x.dim(), x.len() as f64);
        let column = |j: usize| (0..x.len()).map(move |i| f64::from(x.row(i)[j]));
        let mean: Vec<f64> = (0..dim).map(|j| column(j).sum::<f64>() / count).collect();
        let squares = (0..dim).map(|j| column(j).map(|v| (v - mean[j]).powi(2)).sum()).collect();
        self.join(&Encoder { name: None, samples: x.len(), mean, squares });
    }

    /// Takes in what another fingerprint has seen.
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

    /// Takes samples out that had been taken in.
    pub fn remove(&mut self, x: Features<'_>) {
        let gone = Encoder::of(x);
        let (all, count) = (self.samples as f64, gone.samples as f64);
        if gone.samples >= self.samples || gone.mean.len() != self.mean.len() {
            *self = Encoder::named(self.name.take());
            return;
        }
        let left = all - count;
        for j in 0..self.mean.len() {
            let mean = (self.mean[j] * all - gone.mean[j] * count) / left;
            let shift = gone.mean[j] - mean;
            self.squares[j] = (self.squares[j] - gone.squares[j] - shift * shift * left * count / all).max(0.0);
            self.mean[j] = mean;
        }
        self.samples -= gone.samples;
    }

    /// Why features look like another encoder's than those of the `classes` classes that this one has seen, if they do.
    pub fn unlike(&self, other: &Encoder, classes: usize) -> Option<String> {
        if let (Some(ours), Some(theirs)) = (&self.name, &other.name)
            && ours != theirs
        {
            return Some(format!("they are said to come from {theirs}, but the model was taught with {ours}"));
        }
        let dim = self.mean.len();
        if self.samples.min(other.samples) < ENOUGH.0 || classes < ENOUGH.1 || dim != other.mean.len() {
            return None;
        }
        let ratio = other.length() / self.length();
        if !(SCALE.recip()..=SCALE).contains(&ratio) {
            return Some(format!("they are {ratio:.2} times as long as those that the model was taught with"));
        }
        let alike = correlation(&self.profile(), &other.profile());
        (alike < ALIKE / (dim as f64).sqrt())
            .then(|| format!("their sizes, feature by feature, have nothing in common (correlation {alike:.2})"))
    }

    /// Root mean square length of a sample.
    fn length(&self) -> f64 {
        let mean: f64 = self.mean.iter().map(|m| m * m).sum();
        (mean + self.squares.iter().sum::<f64>() / self.samples as f64).sqrt()
    }

    /// Root mean square of each feature.
    fn profile(&self) -> Vec<f64> {
        let count = self.samples as f64;
        self.mean.iter().zip(&self.squares).map(|(mean, squares)| (mean * mean + squares / count).sqrt()).collect()
    }
}

/// Correlation of two lists; 1 if one of them does not vary.
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
