//! A classifier is a value: threads answer with classifiers of earlier versions while the model learns on.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use common::{DIM, samples};
use loranpac::{Classifier, Filter, Model, Ridge, Scores, Truncation, Width};

fn check(width: impl Into<Width>, filter: Filter, max_rank: usize) {
    let mut model = Model::builder(DIM).width(width).filter(filter).max_rank(max_rank).build().unwrap();
    let queries = samples(99, &[1, 2, 3, 4, 5], 8).0;
    let answers = |classifier: &Classifier| -> (Scores, Vec<f64>) {
        (classifier.scores(&queries).unwrap(), classifier.novelty(&queries).unwrap().unwrap())
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut readers = Vec::new();
        for version in 1..=4 {
            let (x, y) = samples(version, &[version as i64, version as i64 + 1], 12);
            model.learn(&x, &y).unwrap();
            let classifier = model.classifier().unwrap();
            let expected = answers(&classifier);
            let (first, started) = mpsc::channel();
            let (stop, answers) = (&stop, &answers);
            readers.push(scope.spawn(move || {
                let mut rounds = 0;
                while !stop.load(Ordering::Relaxed) || rounds == 0 {
                    assert!(answers(&classifier) == expected, "version {version} changed");
                    rounds += 1;
                    let _ = first.send(());
                }
                (classifier.labels().len(), rounds)
            }));
            // The thread answers before the next task is learned.
            started.recv().unwrap();
        }
        for version in 5..12 {
            let (x, y) = samples(version, &[version as i64, 1], 10);
            model.learn(&x, &y).unwrap();
            model.classifier().unwrap();
        }
        model.forget(&1.into()).unwrap();
        stop.store(true, Ordering::Relaxed);
        for (reader, classes) in readers.into_iter().zip(2..) {
            let (labels, rounds) = reader.join().unwrap();
            assert_eq!(labels, classes, "labels are those of the version");
            assert!(rounds > 0);
        }
    });
}

const HARD: Filter = Filter::Hard { truncation: Truncation::Fraction(0.25), ridge: 0.0 };
const SOFT: Filter = Filter::Soft(Ridge::GeometricMean);

#[test]
fn earlier_classifiers_answer_while_an_explicit_model_learns() {
    check(300, SOFT, 10_000);
    check(300, HARD, 10_000);
    // With compressions of the basis that the classifiers share.
    check(300, SOFT, 20);
}

#[test]
fn earlier_classifiers_answer_while_a_model_of_infinite_width_learns() {
    check(Width::Infinite, SOFT, 10_000);
    check(Width::Infinite, HARD, 10_000);
}

#[test]
fn classifiers_are_shared_between_threads() {
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<Classifier>();
}
