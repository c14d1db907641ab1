//! The joint linear classifiers against PyTorch's accuracy on the same digits (`bench/reference/rivals.py`).

use std::sync::Arc;

use loranpac::Features;
use loranpac::lift::{self, Identity, LiftSpec};
use loranpac::registry::{self, MethodOptions};
use loranpac_data::embedded::digits;
use serde_json::Value;

/// Points of accuracy by which means over seeds may differ.
const TOLERANCE: f64 = 0.5;
/// Seeds on either side.
const SEEDS: u64 = 10;

fn golden() -> Value {
    let text = include_str!("../../loranpac/tests/golden/rivals.json");
    serde_json::from_str::<Value>(text).unwrap()["expected"]["sgd"].clone()
}

/// Test accuracy in percent, the mean over the seeds.
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
        let winners = model.classifier().unwrap().predict(Features::new(&test, data.dim).unwrap()).unwrap();
        let hits = winners.iter().zip(&data.test.y).filter(|(winner, y)| **winner == data.classes[**y]).count();
        100.0 * hits as f64 / data.test.len() as f64
    };
    (0..SEEDS).map(run).sum::<f64>() / SEEDS as f64
}

fn check(variant: &str, method: &str, options: &MethodOptions, scale: f32) {
    let golden = golden();
    for (rate, expected) in golden[variant].as_object().unwrap() {
        let expected = expected.as_f64().unwrap();
        let found = accuracy(method, options, scale, rate);
        println!("{variant}, rate {rate}: {found:.2}, PyTorch {expected:.2}");
        assert!((found - expected).abs() <= TOLERANCE, "{variant}, rate {rate}: {found} {expected}");
    }
}

#[test]
fn lc_x_is_as_accurate_as_pytorch() {
    let options = MethodOptions::new(Arc::new(Identity::new(64)));
    check("raw", "lc-x", &options, 1.0);
    check("scaled", "lc-x", &options, 1.0 / 16.0);
}

/// The rate that held-out samples choose is about as good as the best of the five.
#[test]
fn the_rate_is_chosen_well() {
    let data = digits();
    let options = MethodOptions::new(Arc::new(Identity::new(64)));
    let mut model = registry::find("lc-x").unwrap().build(&options).unwrap();
    model.learn(data.train.features(64).unwrap(), &data.labels(&data.train.y)).unwrap();
    let winners = model.classifier().unwrap().predict(data.test.features(64).unwrap()).unwrap();
    let hits = winners.iter().zip(&data.test.y).filter(|(winner, y)| **winner == data.classes[**y]).count();
    let accuracy = 100.0 * hits as f64 / data.test.len() as f64;
    let best = golden()["raw"].as_object().unwrap().values().map(|v| v.as_f64().unwrap()).fold(0.0, f64::max);
    assert!(accuracy > best - 2.0 * TOLERANCE, "{accuracy} against {best}: {}", model.settings());
    assert!(model.settings()["chosen_rate"].as_f64().is_some());
}

#[test]
fn lc_h_is_as_accurate_as_pytorch() {
    let lift = lift::build("relu-random", LiftSpec::new(64, 300)).unwrap();
    check("lifted", "lc-h", &MethodOptions::new(lift), 1.0 / 16.0);
}
