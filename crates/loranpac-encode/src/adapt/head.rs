//! Classifiers that are trained with modules, and dropped afterwards:
//!
//! ```text
//! cosine:  logits = scale * (f / |f|) (w / |w|)'        linear:  logits = f W' + b
//! ```

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::transformer::{Parameters, Random, Start};

/// The smallest length that vectors are divided by.
const SHORTEST: f64 = 1e-12;

/// The kind of a classifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadKind {
    /// The cosine of features and the weights of each class, times a scale that is trained.
    Cosine,
    /// A linear layer.
    Linear,
}

/// Where the numbers of a classifier are.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    kind: HeadKind,
    d: usize,
    weights: Range<usize>,
    /// The scale, or a bias for each class.
    rest: Range<usize>,
}

impl Head {
    /// Adds the tensors of a classifier. A cosine one starts with a scale.
    pub fn add(
        to: &mut Parameters,
        (kind, scale): (HeadKind, f64),
        d: usize,
        classes: usize,
        random: &mut Random,
    ) -> Head {
        let start = Start::Uniform(1.0 / (d as f32).sqrt());
        let weights = to.add("head.weight".to_owned(), &[classes, d], start, random);
        let rest = match kind {
            HeadKind::Cosine => to.add("head.scale".to_owned(), &[1], Start::Constant(scale as f32), random),
            HeadKind::Linear => to.add("head.bias".to_owned(), &[classes], start, random),
        };
        Head { kind, d, weights, rest }
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.weights.len() / self.d
    }

    /// The logits of features, a row for each.
    pub fn forward(&self, values: &[f32], features: &[f32]) -> Vec<f32> {
        let (weights, rest) = (&values[self.weights.clone()], &values[self.rest.clone()]);
        let mut logits = Vec::with_capacity(features.len() / self.d * self.classes());
        let lengths: Vec<f64> = weights.chunks(self.d).map(length).collect();
        for feature in features.chunks(self.d) {
            let own = length(feature);
            for (class, row) in weights.chunks(self.d).enumerate() {
                let product = dot(feature, row);
                logits.push(match self.kind {
                    HeadKind::Cosine => (f64::from(rest[0]) * product / (own * lengths[class])) as f32,
                    HeadKind::Linear => (product + f64::from(rest[class])) as f32,
                });
            }
        }
        logits
    }

    /// The gradients of features, given those of the logits. Adds those of its own numbers to `out`.
    pub fn backward(&self, values: &[f32], features: &[f32], slopes: &[f32], out: &mut [f32]) -> Vec<f32> {
        let (d, classes) = (self.d, self.classes());
        let (weights, rest) = (&values[self.weights.clone()], &values[self.rest.clone()]);
        let lengths: Vec<f64> = weights.chunks(d).map(length).collect();
        let mut own = vec![0.0f64; weights.len()];
        let mut others = vec![0.0f64; rest.len()];
        let mut found = Vec::with_capacity(features.len());
        for (feature, slopes) in features.chunks(d).zip(slopes.chunks(classes)) {
            let mut slope_of_feature = vec![0.0f64; d];
            let length = length(feature);
            for (class, (row, slope)) in weights.chunks(d).zip(slopes).enumerate() {
                let slope = f64::from(*slope);
                let own = &mut own[class * d..][..d];
                match self.kind {
                    HeadKind::Linear => {
                        others[class] += slope;
                        add(own, feature, slope);
                        add(&mut slope_of_feature, row, slope);
                    }
                    HeadKind::Cosine => {
                        // d cos / d f = (w / |w| - cos f / |f|) / |f|, and the same for w.
                        let cosine = dot(feature, row) / (length * lengths[class]);
                        others[0] += slope * cosine;
                        let slope = slope * f64::from(rest[0]);
                        let both = slope / (length * lengths[class]);
                        add(own, feature, both);
                        add(own, row, -slope * cosine / (lengths[class] * lengths[class]));
                        add(&mut slope_of_feature, row, both);
                        add(&mut slope_of_feature, feature, -slope * cosine / (length * length));
                    }
                }
            }
            found.extend(slope_of_feature.iter().map(|x| *x as f32));
        }
        out[self.weights.clone()].iter_mut().zip(&own).for_each(|(out, x)| *out += *x as f32);
        out[self.rest.clone()].iter_mut().zip(&others).for_each(|(out, x)| *out += *x as f32);
        found
    }
}

fn dot(x: &[f32], y: &[f32]) -> f64 {
    x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

fn length(x: &[f32]) -> f64 {
    dot(x, x).sqrt().max(SHORTEST)
}

fn add(sum: &mut [f64], x: &[f32], factor: f64) {
    sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += factor * f64::from(*x));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapt::loss::cross_entropy;

    #[test]
    fn gradients_of_both_heads_are_those_of_finite_differences() {
        for kind in [HeadKind::Cosine, HeadKind::Linear] {
            let (mut parameters, mut random) = (Parameters::default(), Random::new(1, 0));
            let head = Head::add(&mut parameters, (kind, 1.5), 5, 3, &mut random);
            parameters.values.iter_mut().for_each(|x| *x *= 2.0);
            let features: Vec<f32> = (0..20).map(|_| random.normal() as f32).collect();
            let targets = [0, 2, 1, 2];
            let loss =
                |values: &[f32], features: &[f32]| cross_entropy(&head.forward(values, features), &targets, 3, None);
            let values = &parameters.values;
            let mut out = vec![0.0; values.len()];
            let found = head.backward(values, &features, &loss(values, &features).1, &mut out);
            let check = |found: f32, at: &dyn Fn(f32) -> f64| {
                let expected = (at(1e-2) - at(-1e-2)) / 2e-2;
                assert!((f64::from(found) - expected).abs() < 1e-4, "{kind:?}: {found} instead of {expected}");
            };
            for (i, found) in out.iter().enumerate() {
                check(*found, &|change| {
                    let mut values = values.clone();
                    values[i] += change;
                    loss(&values, &features).0
                });
            }
            for (i, found) in found.iter().enumerate() {
                check(*found, &|change| {
                    let mut features = features.clone();
                    features[i] += change;
                    loss(values, &features).0
                });
            }
        }
    }
}
