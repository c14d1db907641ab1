//! The prior of a model: it is stored, applied when a classifier is asked for, and part of exported weights.

mod common;

use std::fs;

use common::{DIM, Task, created, infinite, learn, scores, scores_of, small, soft, tasks};
use loranpac::{Classifier, Error as Engine, Features, Label, Prior};
use loranpac_store::onnx::{self, OnnxOptions};
use loranpac_store::{Error, Inference, Precision, Session, Settings, merge};

fn with(prior: Prior, settings: Settings) -> Settings {
    Settings { prior, ..settings }
}

fn table(entries: &[(&str, f64)]) -> Prior {
    Prior::table(entries.iter().map(|(label, weight)| (label.to_string(), *weight))).unwrap()
}

/// Scores of a session, and the same without its prior, times the factors of the equation.
fn both(session: &mut Session, prior: &Prior) -> (Vec<f32>, Vec<f32>) {
    let ours = scores_of(&session.classifier().unwrap());
    session.set_prior(Prior::None).unwrap();
    let plain = session.classifier().unwrap();
    session.set_prior(prior.clone()).unwrap();
    let counts = session.manifest().class_sizes();
    let power = if *prior == Prior::Train { -0.25 } else { -0.4 };
    let raw: Vec<f64> = counts.iter().map(|n| n.powf(power)).collect();
    let mean = raw.iter().map(|f| f.ln()).sum::<f64>() / raw.len() as f64;
    let plain = scores_of(&plain);
    let scaled =
        plain.chunks(raw.len()).flat_map(|row| row.iter().zip(&raw).map(|(s, f)| s * (f.ln() - mean).exp() as f32));
    let scaled: Vec<f32> = scaled.collect();
    (ours, scaled)
}

fn assert_close(a: &[f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    let largest = a.iter().fold(0.0f32, |most, v| most.max(v.abs()));
    assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-6 * largest), "{a:?}\n{b:?}");
}

#[test]
fn scores_are_those_of_least_squares_times_the_factors_in_every_form() {
    for settings in [small(), soft(), infinite(soft().config)] {
        for prior in [Prior::Train, Prior::Uniform] {
            let (_folder, path, mut model) = created(&with(prior.clone(), settings.clone()));
            tasks(3).iter().for_each(|task| learn(&mut model, task));
            let (ours, expected) = both(&mut model, &prior);
            assert_close(&ours, &expected);
            assert_eq!(scores(&path), ours, "what is read from the disk decides the same, to the last bit");
            let stored = Session::open(&path).unwrap().predictor().unwrap();
            assert_eq!(scores_of(&stored), ours);
        }
    }
}

#[test]
fn classes_of_equal_size_have_the_same_scores_with_any_prior_to_the_last_bit() {
    let (x, y): Task = tasks(1).remove(0);
    let scores = |prior: Prior| {
        let (_folder, _, mut model) = created(&with(prior, soft()));
        learn(&mut model, &(x.clone(), y.clone()));
        scores_of(&model.classifier().unwrap())
    };
    let plain = scores(Prior::None);
    assert!(
        [Prior::Train, Prior::Uniform, table(&[("0", 2.0), ("c1", 2.0), ("2", 2.0)])]
            .map(scores)
            .iter()
            .all(|s| *s == plain)
    );
}

#[test]
fn a_prior_survives_saving_unlearning_and_rollback_and_follows_the_class_sizes() {
    let (_folder, path, mut model) = created(&with(Prior::Uniform, soft()));
    let all = tasks(3);
    all.iter().for_each(|task| learn(&mut model, task));
    let before = scores(&path);
    let (x, y) = &all[2];
    let _ = model.unlearn(Features::new(x, DIM).unwrap(), y, false).unwrap();
    model.commit().unwrap();
    drop(model);
    let mut model = Session::open(&path).unwrap();
    assert_eq!(model.manifest().prior, Prior::Uniform);
    let (ours, expected) = both(&mut model, &Prior::Uniform);
    assert_close(&ours, &expected);
    let mut model = Session::open_to_write(&path).unwrap();
    model.set_prior(Prior::Train).unwrap();
    model.commit().unwrap();
    assert_eq!(Session::open(&path).unwrap().manifest().prior, Prior::Train);
    let _ = model.rollback(None).unwrap();
    assert_eq!(Session::open(&path).unwrap().manifest().prior, Prior::Uniform);
    drop(model);
    assert_ne!(scores(&path), before, "the third task was unlearned");
}

#[test]
fn stored_weights_do_not_depend_on_the_prior() {
    let weights = |prior: Prior| {
        let (_folder, path, mut model) = created(&with(prior, soft()));
        tasks(3).iter().for_each(|task| learn(&mut model, task));
        model.prepared().unwrap();
        model.commit().unwrap();
        let entry = model.manifest().weights.clone().unwrap();
        (fs::read(path.join(&entry.file)).unwrap(), entry.facts)
    };
    assert_eq!(weights(Prior::None), weights(Prior::Uniform));
}

#[test]
fn exported_files_have_the_scores_of_the_prior() {
    let (folder, _, mut model) = created(&with(Prior::Uniform, soft()));
    tasks(3).iter().for_each(|task| learn(&mut model, task));
    let classifier = model.classifier().unwrap();
    let lift = model.manifest().lift.clone();
    let of = |classifier: Classifier| Inference { lift: lift.clone(), encoder: Default::default(), classifier };
    let path = folder.path().join("m.safetensors");
    of(classifier.clone()).save(&path, Precision::F32).unwrap();
    let read = Inference::load(&path).unwrap().classifier;
    assert_close(&scores_of(&read), &scores_of(&classifier));
    // The ONNX file of a model with a prior is that of a model whose own weights are the ones with the factors.
    let weights: Vec<_> = classifier.weights().unwrap().columns().collect();
    let fill = |class: usize, column: &mut [f32]| -> Result<(), Engine> {
        column.copy_from_slice(&weights[class]);
        Ok(())
    };
    let folded = Classifier::linear(classifier.space().clone(), classifier.labels(), fill).unwrap();
    assert!(classifier.factors().is_some() && folded.factors().is_none());
    let onnx = |classifier: Classifier| {
        let path = folder.path().join("m.onnx");
        onnx::export(&of(classifier), &path, &OnnxOptions::default()).unwrap();
        fs::read(path).unwrap()
    };
    assert_eq!(onnx(classifier.clone()), onnx(folded.clone()));
    assert_close(&scores_of(&folded), &scores_of(&classifier));
    let plain = {
        model.set_prior(Prior::None).unwrap();
        model.classifier().unwrap()
    };
    assert_ne!(onnx(plain), onnx(classifier));
}

#[test]
fn a_merger_has_the_prior_of_the_first_and_warns_if_another_differs() {
    let of = |prior: Prior, number: usize| {
        let (folder, _, mut model) = created(&with(prior, soft()));
        learn(&mut model, &tasks(2)[number]);
        (folder, model)
    };
    let ((_a, mut first), (_b, mut same), (_c, mut other)) =
        (of(Prior::Uniform, 0), of(Prior::Uniform, 1), of(Prior::None, 1));
    let merged = merge(vec![("a".to_owned(), &mut first), ("b".to_owned(), &mut same)], false).unwrap();
    assert_eq!((merged.session.manifest().prior.clone(), merged.warnings.len()), (Prior::Uniform, 0));
    let merged = merge(vec![("a".to_owned(), &mut first), ("c".to_owned(), &mut other)], false).unwrap();
    assert_eq!((merged.session.manifest().prior.clone(), merged.warnings.len()), (Prior::Uniform, 1));
}

#[test]
fn a_table_must_list_every_class_and_follows_a_new_name() {
    let listed = table(&[("0", 1.0), ("c1", 2.0), ("2", 3.0)]);
    let (_folder, path, mut model) = created(&with(listed, soft()));
    learn(&mut model, &tasks(1)[0]);
    let before = scores_of(&model.classifier().unwrap());
    let _ = model.rename(&Label::from("c1"), &Label::from("one")).unwrap();
    assert_eq!(scores_of(&model.classifier().unwrap()), before);
    learn(&mut model, &tasks(2)[1]);
    match model.classifier().unwrap_err() {
        Error::Engine(Engine::PriorTable { missing }) => assert_eq!(missing, ["c3", "4"]),
        other => panic!("{other}"),
    }
    assert!(model.set_prior(Prior::Table([("0".to_owned(), -1.0)].into())).is_err());
    let manifest = Session::open(&path).unwrap().manifest().clone();
    assert_eq!(manifest.prior, table(&[("0", 1.0), ("one", 2.0), ("2", 3.0)]));
    assert_eq!(manifest.unequal_classes(), None);
}

#[test]
fn a_new_prior_outdates_the_temperature() {
    let (_folder, _, mut model) = created(&soft());
    learn(&mut model, &tasks(1)[0]);
    let held_out = loranpac_store::Fingerprint::of(Features::new(&tasks(2)[1].0, DIM).unwrap(), &tasks(2)[1].1);
    model.calibrate(0.2, &held_out);
    model.commit().unwrap();
    assert!(model.manifest().calibrated_on(&held_out).is_some());
    model.set_prior(Prior::None).unwrap();
    assert!(model.manifest().calibrated_on(&held_out).is_some());
    model.set_prior(Prior::Uniform).unwrap();
    assert!(model.manifest().calibrated_on(&held_out).is_none());
}
