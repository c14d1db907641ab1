//! Odd data and odd requests: what a model makes of samples without a direction of their own, and of models that do not fit.

mod common;

use std::sync::Arc;

use common::{DIM, Random};
use loranpac::internals::Losses;
use loranpac::lift::{self, ArcCosine, FeatureMap, LiftSpec};
use loranpac::registry::{self, MethodOptions};
use loranpac::{Config, Error, FeatureSpace, Features, Filter, Label, Model, Ridge, Width};

fn map(name: &str, width: usize, seed: u64) -> Arc<dyn FeatureMap> {
    lift::build(name, LiftSpec { seed, ..LiftSpec::new(DIM, width) }).unwrap()
}

fn soft() -> Config {
    Config { filter: Filter::Soft(Ridge::GeometricMean), ..Config::default() }
}

fn rows(seed: u64, count: usize) -> Vec<f32> {
    let mut random = Random(seed);
    (0..count * DIM).map(|_| random.symmetric() as f32).collect()
}

/// `count` labels, one of three classes each.
fn labels(count: usize) -> Vec<Label> {
    (0..count).map(|i| Label::from((i % 3) as i64)).collect()
}

fn learn(model: &mut Model, x: &[f32]) {
    model.learn(Features::new(x, DIM).unwrap(), &labels(x.len() / DIM)).unwrap();
}

fn model<S: Into<FeatureSpace>>(space: S) -> Model {
    Model::new(space.into(), soft()).unwrap()
}

fn losses(model: &mut Model) -> Losses {
    match model {
        Model::Explicit(model) => model.statistics().losses(),
        Model::Kernel(_) => panic!("an explicit model is expected"),
    }
}

#[test]
fn samples_without_a_direction_of_their_own_leave_every_number_finite() {
    let (zero, tiny) = (vec![0.0; 3 * DIM], vec![1e-37f32; 3 * DIM]);
    let mut one_hot = vec![0.0; 2 * DIM];
    (one_hot[2], one_hot[DIM + 2]) = (1.0, 1.0);
    for (lift, width) in [("relu-random", 60), ("identity", DIM), ("relu", DIM)] {
        for odd in [&zero, &tiny, &one_hot] {
            let mut model = model(map(lift, width, 0));
            learn(&mut model, &rows(1, 5));
            learn(&mut model, &one_hot[..DIM]);
            // Twice: the second time, nothing at all is new.
            learn(&mut model, odd);
            learn(&mut model, odd);
            let found = losses(&mut model);
            assert!(found.dropped.is_finite() && found.dropped < 1e-3, "{lift}: {found:?}");
            model.classifier().unwrap();
            assert!(model.summary().train_mse.unwrap().is_finite());
        }
    }
}

#[test]
fn merging_models_with_the_same_samples_leaves_every_number_finite() {
    for count in [1, 2, 7, 40] {
        let [mut a, mut b, mut both] = [(); 3].map(|()| model(map("relu-random", 24, 0)));
        learn(&mut a, &rows(1, count));
        learn(&mut b, &rows(1, count));
        both.merge([&mut a, &mut b]).unwrap();
        let found = losses(&mut both);
        assert!(found.dropped.is_finite(), "{count} samples: {found:?}");
    }
}

#[test]
fn lifts_without_a_known_limit_have_no_infinite_width() {
    for entry in lift::LIFTS {
        let space = FeatureSpace::build(entry.name, Width::Infinite, LiftSpec::new(DIM, 0));
        match entry.limit {
            Some(_) => assert!(matches!(space, Ok(FeatureSpace::Kernel(_))), "{}", entry.name),
            None => assert!(matches!(space, Err(Error::Setting { name: "width", .. })), "{}", entry.name),
        }
    }
}

#[test]
fn methods_that_compute_features_take_no_infinite_width() {
    for method in registry::METHODS.iter().filter(|method| !method.infinite) {
        let refused = method.build(&MethodOptions::new(ArcCosine::new(DIM))).map(|_| ());
        assert!(matches!(refused, Err(Error::Setting { name: "width", .. })), "{}: {refused:?}", method.name);
    }
}

#[test]
fn models_with_different_lifts_are_not_merged_and_nothing_changes() {
    let maps = || {
        [
            FeatureSpace::from(map("relu-random", 40, 0)),
            FeatureSpace::from(map("relu-random", 40, 1)),
            FeatureSpace::from(map("relu-random", 48, 0)),
            FeatureSpace::from(map("random", 40, 0)),
            FeatureSpace::from(map("fourier", 40, 0)),
            FeatureSpace::from(map("identity", DIM, 0)),
            ArcCosine::new(DIM).into(),
        ]
    };
    for (i, ours) in maps().into_iter().enumerate() {
        for (j, theirs) in maps().into_iter().enumerate() {
            let [mut a, mut b] = [ours.clone(), theirs].map(model::<FeatureSpace>);
            learn(&mut a, &rows(1, 6));
            learn(&mut b, &rows(2, 6));
            let outcome = a.merge([&mut b]);
            assert_eq!(outcome.is_ok(), i == j, "{i} {j}: {outcome:?}");
            assert_eq!(a.summary().samples, if i == j { 12 } else { 6 });
            if i != j {
                assert!(matches!(outcome, Err(Error::DifferentLifts { .. })), "{outcome:?}");
            }
        }
    }
}

#[test]
fn independent_samples_are_checked_before_they_are_taken_back_or_relabelled() {
    let x = rows(1, 20);
    let some = Features::new(&x[..4 * DIM], DIM).unwrap();
    let mut model = model(map("relu-random", 200, 0));
    learn(&mut model, &x);
    let wrong = vec![Label::from(2); 4];
    assert!(matches!(model.relabel(some, &wrong, &wrong), Err(Error::NeverLearned { row: 0 })));
    assert!(matches!(model.unlearn(some, &wrong), Err(Error::NeverLearned { row: 0 })));
    let moved = vec![Label::from("moved"); 4];
    assert_eq!(model.relabel(some, &labels(4), &moved).unwrap().unchecked, 0);
    assert!(matches!(model.relabel(some, &labels(4), &moved), Err(Error::NeverLearned { row: 0 })));
    assert_eq!(model.unlearn(some, &moved).unwrap().unchecked, 0);
    model.classifier().unwrap();
    let verdict = model.summary().verdict().unwrap();
    assert!(verdict.line.contains("exact"), "{}", verdict.line);
}

#[test]
fn samples_that_would_round_the_others_away_are_not_taken_back() {
    let mut model = model(map("relu-random", 16, 0));
    let small: Vec<f32> = rows(1, 20).iter().map(|v| 5e-4 * v).collect();
    let large = rows(2, 12);
    learn(&mut model, &small);
    learn(&mut model, &large);
    let before = losses(&mut model);
    let refused = model.unlearn(Features::new(&large, DIM).unwrap(), &labels(12));
    assert_eq!(refused.err(), Some(Error::RoundedAway));
    assert_eq!((losses(&mut model), model.summary().samples), (before, 32));
}

#[test]
fn samples_with_more_energy_than_was_learned_are_refused() {
    let mut model = model(map("relu-random", 10, 0));
    learn(&mut model, &rows(1, 60));
    let large: Vec<f32> = rows(2, 2).iter().map(|v| 100.0 * v).collect();
    let large = Features::new(&large, DIM).unwrap();
    assert!(matches!(model.unlearn(large, &labels(2)), Err(Error::NeverLearned { row: 0 })));
    let moved = vec![Label::from("moved"); 2];
    assert!(matches!(model.relabel(large, &labels(2), &moved), Err(Error::NeverLearned { row: 0 })));
}

#[test]
fn samples_that_cannot_be_checked_end_exactness_unless_the_caller_has_a_record() {
    let x = rows(1, 60);
    let strangers = rows(2, 4);
    for (vouched, exact) in [(0, false), (4, true)] {
        let mut model = model(map("relu-random", 10, 0));
        learn(&mut model, &x);
        assert_eq!(model.unlearn(Features::new(&strangers, DIM).unwrap(), &labels(4)).unwrap().unchecked, 4);
        model.vouch(vouched);
        model.classifier().unwrap();
        let verdict = model.summary().verdict().unwrap();
        assert_eq!(verdict.line.contains("exact"), exact, "{}", verdict.line);
        assert_eq!(model.summary().certificate.unwrap().assumed, 4 - vouched);
    }
}

/// Samples that are taken for zero leave nothing behind, so that taking them back removes what was there.
#[test]
fn samples_of_negligible_length_can_be_taken_back() {
    let mut random = Random(5);
    for power in [-28, -29, -30] {
        let scale = 10f32.powi(power);
        // Some are a thousand times shorter than the others: below 1e-30.
        let x: Vec<f32> =
            (0..24).map(|i| scale * random.symmetric() as f32 * if i % 3 == 0 { 1e-3 } else { 1.0 }).collect();
        let (mut model, mut plain) =
            (Model::builder(1).width(49).build().unwrap(), Model::builder(1).width(49).build().unwrap());
        let labels = labels(24);
        model.learn(&x, &labels).unwrap();
        plain.learn(&x[..12], &labels[..12]).unwrap();
        model.unlearn(Features::new(&x[12..], 1).unwrap(), &labels[12..]).unwrap();
        let sums = |model: &Model| match model {
            Model::Explicit(model) => model.statistics().cross().norm_l2(),
            Model::Kernel(_) => panic!("an explicit model is expected"),
        };
        let (found, expected) = (sums(&model), sums(&plain));
        assert!((found - expected).abs() < 1e-5 * expected, "{power}: {found:e} {expected:e}");
    }
}
