//! Weighted samples on disk.

mod common;

use std::fs;
use std::path::Path;

use common::{DIM, Task, created, every_kind, scores, scores_of, tasks};
use loranpac::{Features, Label};
use loranpac_store::{Edited, Error, Fingerprint, Session, merge};

fn weights((_, y): &Task) -> Vec<f64> {
    (0..y.len()).map(|i| [0.5, 1.0, 3.0][i % 3]).collect()
}

/// Learns a task with weights, and commits it.
fn learn(model: &mut Session, task: &Task, weights: &[f64]) {
    let x = Features::new(&task.0, DIM).unwrap().weighted(weights).unwrap();
    model.learn(x, &task.1).unwrap();
    model.note("task", &Fingerprint::of(x, &task.1));
    model.commit().unwrap();
}

fn format(folder: &Path) -> String {
    let bytes = fs::read(folder.join("MANIFEST")).unwrap();
    String::from_utf8_lossy(&bytes).split(' ').nth(1).unwrap().to_owned()
}

/// The same bits after every reading, whether the first samples or later ones have weights; models without weights stay in
/// the format of before.
#[test]
fn weights_survive_a_round_trip_and_learning_continues() {
    let tasks = tasks(4);
    for settings in every_kind() {
        for first in [0, 1] {
            let (_folder, path, mut model) = created(&settings);
            let mut memory = Session::in_memory(&settings).unwrap();
            for (number, task) in tasks.iter().enumerate() {
                let ones = vec![1.0; task.1.len()];
                let weights = if number >= first { weights(task) } else { ones };
                learn(&mut model, task, &weights);
                assert_eq!(format(&path), if number >= first { "5" } else { "4" });
                let x = Features::new(&task.0, DIM).unwrap().weighted(&weights).unwrap();
                memory.learn(x, &task.1).unwrap();
                drop(model);
                assert_eq!(scores(&path), scores_of(&memory.classifier().unwrap()));
                model = Session::open_to_write(&path).unwrap();
            }
            let summary = |session: &mut Session| session.prepared().unwrap().summary().train_mse;
            assert_eq!(summary(&mut model), summary(&mut memory));
            let mass: f64 = tasks
                .iter()
                .enumerate()
                .map(|(i, task)| if i >= first { weights(task).iter().sum() } else { task.1.len() as f64 })
                .sum();
            assert!((model.manifest().mass.unwrap() / mass - 1.0).abs() < 1e-12);
        }
    }
}

/// The digest of a task has its weights: only the samples with their weights are recognised, and taken back without doubt.
#[test]
fn a_task_is_recognised_by_its_weights() {
    let (first, second) = (&tasks(2)[0], &tasks(2)[1]);
    for settings in [common::soft(), common::infinite(common::soft().config)] {
        let (_folder, _path, mut model) = created(&settings);
        learn(&mut model, first, &vec![1.0; first.1.len()]);
        let before = scores_of(&model.classifier().unwrap());
        let weights = weights(second);
        learn(&mut model, second, &weights);
        let plain = Features::new(&second.0, DIM).unwrap();
        let weighted = plain.weighted(&weights).unwrap();
        assert_ne!(Fingerprint::of(plain, &second.1).digest, Fingerprint::of(weighted, &second.1).digest);
        assert_eq!(Fingerprint::of(plain, &second.1).features, Fingerprint::of(weighted, &second.1).features);
        assert_eq!(model.unlearn(weighted, &second.1, false).unwrap(), Edited::Done { unchecked: 0 });
        let left = scores_of(&model.classifier().unwrap());
        let difference = before.iter().zip(&left).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(difference < 1e-3, "{difference:e}");
        let zeros = plain.weighted(&[0.0; 1000][..second.1.len()]).unwrap();
        let refused = model.unlearn(zeros, &second.1, false);
        assert!(matches!(refused, Err(Error::Engine(loranpac::Error::NoWeight))));
        // A batch without any weight is a part of a task that may have some.
        model.learn(zeros, &second.1).unwrap();
        assert_eq!(scores_of(&model.classifier().unwrap()), left);
    }
}

#[test]
fn weighted_models_merge_on_disk() {
    let tasks = tasks(3);
    for settings in [common::soft(), common::whole(), common::infinite(common::soft().config)] {
        let mut parts: Vec<_> = tasks
            .iter()
            .map(|task| {
                let (folder, path, mut model) = created(&settings);
                learn(&mut model, task, &weights(task));
                (folder, path, model)
            })
            .collect();
        let mut together = Session::in_memory(&settings).unwrap();
        for task in &tasks {
            let weights = weights(task);
            together.learn(Features::new(&task.0, DIM).unwrap().weighted(&weights).unwrap(), &task.1).unwrap();
        }
        let named = parts.iter_mut().enumerate().map(|(i, (.., model))| (i.to_string(), model)).collect();
        let mut merged = merge(named, false).unwrap().session;
        let (classifier, expected) = (merged.classifier().unwrap(), together.classifier().unwrap());
        let columns = |labels: &[Label]| labels.to_vec();
        assert_eq!(columns(classifier.labels()), columns(expected.labels()));
        let pairs = scores_of(&classifier).into_iter().zip(scores_of(&expected));
        let difference = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(difference < 1e-3, "{difference:e}");
    }
}
