//! A small model of every lift, and samples for it.

#![allow(dead_code, reason = "every test file uses a part of this")]

#[path = "../common/random.rs"]
mod random;

pub mod python;

use std::path::Path;

use loranpac::{Classifier, Config, Error, Features, Label, Model, Scores, Width};
use loranpac_store::{Inference, LiftRecord};

use random::Random;

/// A model with random weights of a usual size. The width is odd, which is a case of its own for Fourier features.
pub fn model(lift: &str, dim: usize, width: usize) -> Inference {
    let width = if matches!(lift, "identity" | "relu") { dim } else { width };
    let mut random = Random(7);
    let lift = LiftRecord { name: lift.to_owned(), dim, width: Width::Finite(width), seed: 3, gamma: 0.7 };
    with_weights(lift, &labels(), |_, _| 1e-5 * random.symmetric())
}

pub fn labels() -> [Label; 5] {
    [Label::from(5), Label::from("a \"bird\""), Label::from(-1), Label::from("5"), Label::from("Eule ä")]
}

/// A model with these weights, by label and feature.
pub fn with_weights(lift: LiftRecord, labels: &[Label], mut weight: impl FnMut(usize, usize) -> f32) -> Inference {
    let space = lift.build(true).unwrap();
    let classifier = Classifier::linear(space, labels, |class, column| -> Result<(), Error> {
        column.iter_mut().enumerate().for_each(|(i, value)| *value = weight(class, i));
        Ok(())
    });
    Inference { lift, encoder: Default::default(), classifier: classifier.unwrap().with_temperature(Some(0.1)) }
}

/// A model that has learned five clusters, and what prediction needs of it.
pub fn learned(dim: usize, width: usize) -> (Model, Inference) {
    let Inference { lift, .. } = model("relu-random", dim, width);
    let mut learner = Model::new(lift.build(true).unwrap(), Config::default()).unwrap();
    let mut random = Random(5);
    for label in &labels() {
        let centre: Vec<f32> = (0..dim).map(|_| random.symmetric()).collect();
        let x: Vec<f32> = (0..40 * dim).map(|at| centre[at % dim] + 0.5 * random.symmetric()).collect();
        learner.learn(Features::new(&x, dim).unwrap(), &vec![label.clone(); 40]).unwrap();
    }
    let classifier = learner.classifier().unwrap().with_temperature(Some(0.1));
    (learner, Inference { lift, encoder: Default::default(), classifier })
}

/// Samples of different lengths, among them zero and `longest`.
pub fn samples(n: usize, dim: usize, longest: f32) -> Vec<f32> {
    let mut random = Random(11);
    let size = |row: usize| [1.0, 1e-6, 30.0, 0.0, longest][row % 5];
    (0..n * dim).map(|at| size(at / dim) * random.symmetric()).collect()
}

/// The engine's scores.
pub fn scores(model: &Inference, x: &[f32]) -> Scores {
    model.classifier.scores(Features::new(x, model.lift.dim).unwrap()).unwrap()
}

/// Changes a file in 2,000 ways, one after the other, and reads each.
pub fn mutate(path: &Path, mut read: impl FnMut(&Path)) {
    let whole = std::fs::read(path).unwrap();
    let changed = path.with_extension("changed");
    let mut random = Random(1);
    for _ in 0..2000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.below(3) {
            // Most of what can go wrong is at the beginning.
            let within = if random.below(2) == 0 { bytes.len().min(600) } else { bytes.len() };
            let at = random.below(within.max(1));
            match random.below(5) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at.min(bytes.len()), random.next() as u8),
                2 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
                3 if at < bytes.len() => bytes[at] = b"0123456789\"{}[],:\xff"[random.below(18)],
                _ => drop(bytes.drain(at.min(bytes.len())..(at + random.below(9)).min(bytes.len()))),
            }
        }
        std::fs::write(&changed, &bytes).unwrap();
        read(&changed);
    }
}
