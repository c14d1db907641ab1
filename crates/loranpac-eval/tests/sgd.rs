//! The joint linear classifiers against PyTorch's accuracy on the same digits (`bench/reference/rivals.py`).

use std::sync::Arc;

use loranpac::Features;
use loranpac::lift::{self, Identity, LiftSpec};
use loranpac::registry::{self, MethodOptions};
use loranpac_eval::embedded::digits;
use serde_json::Value;

/// Points of accuracy that a method may differ from PyTorch, besides PyTorch's own spread over seeds.
const TOLERANCE: f64 = 0.5;

fn golden() -> Value {
    let text = include_str!("../../loranpac/tests/golden/rivals.json");
    serde_json::from_str::<Value>(text).unwrap()["expected"]["sgd"].clone()
}

/// Test accuracy in percent, the mean over three seeds.
fn accuracy(method: &str, options: &MethodOptions, scale: f32, rate: &str) -> f64 {
    let data = digits();
    let scaled = |x: &[f32]| x.iter().map(|v| v * scale).collect::<Vec<f32>>();
    let (train, test) = (scaled(&data.train.x), scaled(&data.test.x));
    let labels = data.labels(&data.train.y);
    let run = |seed: u64| {
        let settings = vec![("rate".to_owned(), rate.to_owned())];
        let options = MethodOptions { seed, settings, ..options.clone() };
        let mut model = registry::find(method).unwrap().build(&options).unwrap();
        model.learn(Features::new(&train, data.dim).unwrap(), &labels).unwrap();
        let winners = model.predict(Features::new(&test, data.dim).unwrap()).unwrap();
        let known = model.classes().labels();
        let hits = winners.iter().zip(&data.test.y).filter(|(w, y)| known[**w] == data.classes[**y]).count();
        100.0 * hits as f64 / data.test.len() as f64
    };
    (0..3).map(run).sum::<f64>() / 3.0
}

fn check(variant: &str, method: &str, options: &MethodOptions, scale: f32) {
    let golden = golden();
    for (rate, expected) in golden[variant].as_object().unwrap() {
        let (expected, spread) = (expected.as_f64().unwrap(), golden["spreads"][variant][rate].as_f64().unwrap());
        let found = accuracy(method, options, scale, rate);
        println!("{variant}, rate {rate}: {found:.2}, PyTorch {expected:.2} (spread {spread:.2})");
        assert!((found - expected).abs() <= TOLERANCE + spread / 2.0, "{variant}, rate {rate}: {found} {expected}");
    }
}

#[test]
fn lc_x_is_as_accurate_as_pytorch() {
    let options = MethodOptions::new(Arc::new(Identity::new(64)));
    check("raw", "lc-x", &options, 1.0);
    check("scaled", "lc-x", &options, 1.0 / 16.0);
}

#[test]
fn lc_h_is_as_accurate_as_pytorch() {
    let lift = lift::build("relu-random", LiftSpec::new(64, 300)).unwrap();
    check("lifted", "lc-h", &MethodOptions::new(lift), 1.0 / 16.0);
}
