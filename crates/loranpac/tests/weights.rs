//! Weighted samples: against copies of samples, against closed forms in double precision, and through every edit.

mod common;

use common::{DIM, Random, Task, one_hot, relative_error, samples, stream};
use faer::Mat;
use faer::prelude::Solve;
use loranpac::filter::solve;
use loranpac::internals::{Statistics, Weighted};
use loranpac::registry::{self, Input, METHODS, MethodOptions};
use loranpac::{Config, Error, Features, Filter, Label, Model, Ridge, Truncation, Width};

const SOFT: Filter = Filter::Soft(Ridge::GeometricMean);
const HARD: Filter = Filter::Hard { truncation: Truncation::Rank(20), ridge: 0.0 };

/// Learns lifted samples with weights.
fn absorb(stats: &mut Statistics<f64>, h: &Mat<f64>, y: &[usize], weights: &[f64]) {
    let copies = vec![1; y.len()];
    stats.absorb_weighted(h.clone().as_mut(), y, Some(Weighted { weights, copies: &copies }));
}

/// Columns as often as they are counted.
fn repeated(h: &Mat<f64>, y: &[usize], counts: &[usize]) -> (Mat<f64>, Vec<usize>) {
    let places: Vec<usize> = (0..y.len()).flat_map(|i| std::iter::repeat_n(i, counts[i])).collect();
    (Mat::from_fn(h.nrows(), places.len(), |i, j| h[(i, places[j])]), places.iter().map(|i| y[*i]).collect())
}

fn weights_of(stats: &mut Statistics<f64>, filter: Filter) -> Mat<f64> {
    let solution = solve(stats, filter, 10_000).unwrap();
    stats.expand(solution.coefficients.as_ref())
}

/// More features than samples, as many, and more samples than features: with and without a basis.
#[test]
fn weights_of_two_equal_two_copies_on_computed_features() {
    for (width, size) in [(90, 40), (60, 60), (30, 50)] {
        let tasks = stream(1, width, &[size, size / 2], 4);
        for filter in [SOFT, HARD, Filter::Soft(Ridge::Fixed(0.3))] {
            let (mut weighted, mut copied) = (Statistics::<f64>::new(width, 20.0), Statistics::<f64>::new(width, 20.0));
            for (h, y) in &tasks {
                let counts: Vec<usize> = (0..y.len()).map(|i| 1 + i % 3).collect();
                absorb(&mut weighted, h, y, &counts.iter().map(|count| *count as f64).collect::<Vec<_>>());
                let (h, y) = repeated(h, y, &counts);
                copied.absorb(h.clone().as_mut(), &y);
                for stats in [&mut weighted, &mut copied] {
                    if stats.spans_all(true) {
                        stats.make_whole();
                    }
                }
            }
            let error = relative_error(&weights_of(&mut weighted, filter), &weights_of(&mut copied, filter));
            assert!(error < 1e-6, "E = {width}: {error:e}");
            assert_eq!(weighted.masses(), copied.masses());
            let mse = |stats: &mut Statistics<f64>| solve(stats, filter, 10_000).unwrap().facts.train_mse;
            assert!((mse(&mut weighted) - mse(&mut copied)).abs() < 1e-9);
        }
    }
}

/// `W = Y D H' (H D H' + lambda I)^-1`, and the weighted training error.
#[test]
fn the_classifier_is_the_weighted_ridge_regression() {
    let (width, lambda) = (70, 0.2);
    let tasks = stream(2, width, &[30, 25], 3);
    let (h, y) = common::concat(&tasks);
    let mut random = Random(3);
    let d: Vec<f64> = y.iter().map(|_| 0.01 + 3.0 * random.symmetric().abs()).collect();
    let mut stats = Statistics::<f64>::new(width, 20.0);
    absorb(&mut stats, &tasks[0].0, &tasks[0].1, &d[..30]);
    absorb(&mut stats, &tasks[1].0, &tasks[1].1, &d[30..]);
    let scaled = Mat::from_fn(width, y.len(), |i, j| h[(i, j)] * d[j]);
    let targets = one_hot(&y, 3);
    let left = &scaled * h.transpose() + Mat::<f64>::identity(width, width) * faer::Scale(lambda);
    let expected = left.full_piv_lu().solve(&scaled * targets.transpose());
    let solution = solve(&mut stats, Filter::Soft(Ridge::Fixed(lambda)), 10_000).unwrap();
    assert!(relative_error(&stats.expand(solution.coefficients.as_ref()), &expected) < 1e-9);
    let residual = expected.transpose() * &h - &targets;
    let squares: f64 = (0..y.len()).map(|j| d[j] * residual.col(j).squared_norm_l2()).sum();
    assert!((solution.facts.train_mse - squares / d.iter().sum::<f64>()).abs() < 1e-9);
    let trace: f64 = (0..y.len()).map(|j| d[j] * h.col(j).squared_norm_l2()).sum();
    assert!((stats.gram().trace() / trace - 1.0).abs() < 1e-12);
}

#[test]
fn after_a_compression_weights_still_equal_copies() {
    let tasks = stream(4, 120, &[50, 40], 4);
    let (mut weighted, mut copied) = (Statistics::<f64>::new(120, 20.0), Statistics::<f64>::new(120, 20.0));
    for (h, y) in &tasks {
        absorb(&mut weighted, h, y, &vec![2.0; y.len()]);
        let (h, y) = repeated(h, y, &vec![2; y.len()]);
        copied.absorb(h.clone().as_mut(), &y);
        weighted.compress(30).unwrap();
        copied.compress(30).unwrap();
    }
    assert!(relative_error(&weights_of(&mut weighted, SOFT), &weights_of(&mut copied, SOFT)) < 1e-6);
    assert!((weighted.losses().lost / copied.losses().lost - 1.0).abs() < 1e-9);
}

/// The task with its samples as often as they are counted, in turns.
fn copies((x, y): &Task, counts: &[usize]) -> Task {
    let most = counts.iter().copied().max().unwrap();
    let places: Vec<usize> = (0..most).flat_map(|turn| (0..y.len()).filter(move |i| turn < counts[*i])).collect();
    let x = places.iter().flat_map(|i| x[i * DIM..(i + 1) * DIM].to_vec()).collect();
    (x, places.iter().map(|i| y[*i].clone()).collect())
}

fn model(width: impl Into<Width>, filter: Filter) -> Model {
    Model::builder(DIM).width(width).filter(filter).build().unwrap()
}

/// Every width: basis, no basis, and infinite.
fn models(filter: Filter) -> [Model; 3] {
    [model(400, filter), model(25, filter), model(Width::Infinite, filter)]
}

fn learn(model: &mut Model, (x, y): &Task, weights: &[f64]) {
    model.learn_weighted(x, y, weights).unwrap();
}

fn scores(model: &mut Model) -> Vec<f32> {
    let x = samples(99, &[1, 2, 3, 4], 6).0;
    let scores = model.classifier().unwrap().scores(&x).unwrap();
    scores.rows().flatten().copied().collect()
}

fn largest_difference(a: &mut Model, b: &mut Model) -> f32 {
    scores(a).iter().zip(scores(b)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn some_weights(count: usize) -> Vec<f64> {
    (0..count).map(|i| [0.5, 1.0, 2.5, 4.0][i % 4]).collect()
}

#[test]
fn weights_of_two_equal_two_copies_in_models() {
    let task = samples(1, &[1, 2, 3, 4], 12);
    let counts: Vec<usize> = (0..48).map(|i| 1 + i % 2).collect();
    let weights: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
    for filter in [SOFT, Filter::Soft(Ridge::Fixed(1.0)), HARD] {
        for (mut weighted, mut copied) in models(filter).into_iter().zip(models(filter)) {
            learn(&mut weighted, &task, &weights);
            // In tasks of their own, so that copies are learned separately.
            let (x, y) = copies(&task, &counts);
            for (x, y) in x.chunks(48 * DIM).zip(y.chunks(48)) {
                copied.learn(&x.to_vec(), y).unwrap();
            }
            let finite = weighted.space().width().finite().is_some();
            let difference = largest_difference(&mut weighted, &mut copied);
            assert!(difference < if finite { 2e-4 } else { 1e-6 }, "{finite} {difference:e}");
            let (a, b) = (weighted.summary(), copied.summary());
            assert!((a.train_mse.unwrap() - b.train_mse.unwrap()).abs() < 1e-5);
        }
    }
}

/// Copies in a chunk, and the order of its samples, leave no trace in the last bit.
#[test]
fn copies_in_a_chunk_are_learned_once() {
    let task = samples(2, &[1, 2, 3], 10);
    let counts: Vec<usize> = (0..30).map(|i| i % 4).collect();
    let weights: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
    let (mut weighted, mut copied) = (model(300, SOFT), model(300, SOFT));
    learn(&mut weighted, &task, &weights);
    let (x, y) = copies(&task, &counts);
    copied.learn(&x, &y).unwrap();
    assert_eq!(copied.counts().iter().sum::<usize>(), y.len());
    assert_eq!(weighted.counts().iter().sum::<usize>(), counts.iter().filter(|count| **count > 0).count());
    // Classes have another order.
    let by_label = |model: &mut Model| {
        let classifier = model.classifier().unwrap();
        let columns: Vec<usize> = [1, 2, 3].map(|label| classifier.column(&Label::from(label)).unwrap()).to_vec();
        let scores = classifier.scores(&samples(99, &[1, 2, 3], 6).0).unwrap();
        scores.rows().flat_map(|row| columns.iter().map(|c| row[*c]).collect::<Vec<_>>()).collect::<Vec<f32>>()
    };
    assert_eq!(by_label(&mut weighted), by_label(&mut copied));
}

#[test]
fn weights_of_one_change_no_bit() {
    let task = samples(3, &[1, 2, 3, 4], 12);
    for (mut plain, mut ones) in models(SOFT).into_iter().zip(models(SOFT)) {
        plain.learn(&task.0, &task.1).unwrap();
        learn(&mut ones, &task, &[1.0; 48]);
        assert_eq!(scores(&mut plain), scores(&mut ones));
        assert_eq!(plain.summary().train_mse, ones.summary().train_mse);
    }
}

#[test]
fn a_factor_of_all_weights_changes_no_score() {
    let task = samples(4, &[1, 2, 3, 4], 12);
    let weights = some_weights(48);
    for (mut a, mut b) in models(SOFT).into_iter().zip(models(SOFT)) {
        learn(&mut a, &task, &weights);
        learn(&mut b, &task, &weights.iter().map(|weight| 1000.0 * weight).collect::<Vec<_>>());
        let difference = largest_difference(&mut a, &mut b);
        assert!(difference < 1e-5, "{difference:e}");
        assert!((a.summary().train_mse.unwrap() - b.summary().train_mse.unwrap()).abs() < 1e-6);
    }
}

#[test]
fn samples_of_weight_zero_are_not_learned() {
    let (first, second) = (samples(5, &[1, 2, 3, 4], 10), samples(6, &[1, 2, 3, 4], 5));
    let both: Task = ([first.0.clone(), second.0].concat(), [first.1.clone(), second.1].concat());
    let weights: Vec<f64> = (0..60).map(|i| f64::from(u8::from(i < 40))).collect();
    for (mut zeros, mut absent) in models(SOFT).into_iter().zip(models(SOFT)) {
        learn(&mut zeros, &both, &weights);
        absent.learn(&first.0, &first.1).unwrap();
        assert_eq!(scores(&mut zeros), scores(&mut absent));
        assert_eq!(zeros.counts(), absent.counts());
    }
}

#[test]
fn invalid_weights_change_nothing() {
    let task = samples(7, &[1, 2], 5);
    for mut model in models(SOFT) {
        model.learn(&task.0, &task.1).unwrap();
        let before = scores(&mut model);
        for (bad, row) in [(-1.0, 3), (f64::NAN, 0), (f64::INFINITY, 9), (1e13, 5)] {
            let mut weights = vec![1.0; 10];
            weights[row] = bad;
            let error = model.learn_weighted(&task.0, &task.1, &weights).unwrap_err();
            assert!(matches!(error, Error::Weight { row: found, .. } if found == row), "{error}");
        }
        assert_eq!(model.learn_weighted(&task.0, &task.1, &[0.0; 10]), Err(Error::NoWeight));
        let error = model.learn_weighted(&task.0, &task.1, &[1.0; 9]).unwrap_err();
        assert_eq!(error, Error::WeightCount { samples: 10, weights: 9 });
        assert_eq!((scores(&mut model), model.counts()), (before, &[5, 5][..]));
    }
}

#[test]
fn methods_without_weights_refuse_them() {
    let (x, y) = samples(8, &[1, 2], 10);
    let weighted = Features::new(&x, DIM).unwrap();
    let weights = some_weights(20);
    for method in METHODS.iter().filter(|method| matches!(method.input, Input::Plain | Input::Lifted)) {
        let options = MethodOptions::new(registry_space());
        let Ok(mut learner) = registry::find(method.name).unwrap().build(&options) else { continue };
        if method.config(&options).unwrap().is_some() {
            continue;
        }
        let error = learner.learn(weighted.weighted(&weights).unwrap(), &y).unwrap_err();
        assert!(matches!(error, Error::Setting { name: "sample-weight", .. }), "{}: {error}", method.name);
    }
}

fn registry_space() -> loranpac::FeatureSpace {
    model(60, SOFT).space()
}

#[test]
fn merging_weighted_models_equals_learning_together() {
    let (first, second) = (samples(9, &[1, 2, 3], 12), samples(10, &[2, 3, 4], 9));
    let (own, others) = (some_weights(36), vec![1.0; 27]);
    for ((mut merged, mut other), mut together) in models(SOFT).into_iter().zip(models(SOFT)).zip(models(SOFT)) {
        learn(&mut merged, &first, &own);
        learn(&mut other, &second, &others);
        learn(&mut together, &first, &own);
        learn(&mut together, &second, &others);
        let mut reversed = model(together.space().width(), SOFT);
        reversed.merge([&mut other, &mut merged]).unwrap();
        merged.merge([&mut other]).unwrap();
        assert!(largest_difference(&mut merged, &mut together) < 1e-4);
        let mse = |model: &mut Model| model.classifier().unwrap().facts().unwrap().train_mse;
        assert!((mse(&mut reversed) - mse(&mut together)).abs() < 1e-5);
    }
}

#[test]
fn weighted_samples_are_unlearned_and_relabelled_with_their_weights() {
    let (stay, leave) = (samples(11, &[1, 2, 3, 4], 10), samples(12, &[1, 2, 3, 4], 3));
    let (own, theirs) = (some_weights(40), some_weights(12));
    for ((mut edited, mut never), mut moved) in models(SOFT).into_iter().zip(models(SOFT)).zip(models(SOFT)) {
        learn(&mut edited, &stay, &own);
        learn(&mut edited, &leave, &theirs);
        learn(&mut never, &stay, &own);
        let x = Features::new(&leave.0, DIM).unwrap().weighted(&theirs).unwrap();
        let to = vec![Label::from(2); 12];
        learn(&mut moved, &stay, &own);
        learn(&mut moved, &(leave.0.clone(), to.clone()), &theirs);
        edited.relabel(x, &leave.1, &to).unwrap();
        assert!(largest_difference(&mut edited, &mut moved) < 1e-4);
        // The weights are part of what was learned.
        let wrong = vec![64.0; 12];
        let heavier = Features::new(&leave.0, DIM).unwrap().weighted(&wrong).unwrap();
        assert!(matches!(edited.unlearn(heavier, &to), Err(Error::NeverLearned { .. })));
        edited.unlearn(x, &to).unwrap();
        let difference = largest_difference(&mut edited, &mut never);
        assert!(difference < 1e-3, "{difference:e}");
        assert_eq!(edited.counts(), never.counts());
        let mse = |model: &mut Model| model.classifier().unwrap().facts().unwrap().train_mse;
        assert!((mse(&mut edited) - mse(&mut never)).abs() < 1e-4);
    }
}

/// A model of infinite width that has evicted weighted samples: its training error is the weighted one, within its interval.
#[test]
fn a_capped_model_bounds_the_weighted_training_error() {
    let task = samples(13, &[1, 2, 3], 30);
    let weights = some_weights(90);
    let config = Config { filter: SOFT, max_rank: 30, chunk: 8, ..Config::default() };
    let mut capped = Model::new(model(Width::Infinite, SOFT).space(), config).unwrap();
    for ((x, y), w) in task.0.chunks(30 * DIM).zip(task.1.chunks(30)).zip(weights.chunks(30)) {
        learn(&mut capped, &(x.to_vec(), y.to_vec()), w);
    }
    let Model::Kernel(inner) = &capped else { panic!("an explicit model") };
    assert!(inner.state().evicted.is_some() && inner.state().weighted.as_ref().unwrap().kept.len() == inner.len());
    let classifier = capped.classifier().unwrap();
    let found = classifier.scores(&task.0).unwrap();
    let mut squares = 0.0;
    for ((row, label), weight) in found.rows().zip(&task.1).zip(&weights) {
        let own = classifier.column(label).unwrap();
        let error = |(c, score): (usize, &f32)| (f64::from(*score) - f64::from(u8::from(c == own))).powi(2);
        squares += weight * row.iter().enumerate().map(error).sum::<f64>();
    }
    let mse = squares / weights.iter().sum::<f64>();
    let summary = capped.summary();
    let (low, high) = (summary.train_mse.unwrap(), summary.train_mse_upper.unwrap());
    assert!(low < high && low - 1e-6 <= mse && mse <= high + 1e-6, "{low} {mse} {high}");
}

/// Leave-one-out leaves out the whole sample, whatever its weight, and counts it by its weight.
#[test]
fn leaving_a_weighted_sample_out_leaves_out_all_of_it() {
    let mut task = samples(14, &[1, 2, 3], 9);
    let weights = some_weights(27);
    // Samples of weights 1 and 4 among those of another class.
    task.1.swap(1, 3);
    task.1.swap(11, 13);
    let fixed = Filter::Soft(Ridge::Fixed(0.4));
    let mut all = model(Width::Infinite, fixed);
    learn(&mut all, &task, &weights);
    let found = all.classifier().unwrap().facts().unwrap().leave_one_out.unwrap();
    let mut right = 0.0;
    for i in 0..27 {
        let without: Vec<f64> = (0..27).map(|j| if i == j { 0.0 } else { weights[j] }).collect();
        let mut rest = model(Width::Infinite, fixed);
        learn(&mut rest, &task, &without);
        let winner = rest.classifier().unwrap().predict(&task.0[i * DIM..(i + 1) * DIM]).unwrap();
        right += if winner[0] == task.1[i] { weights[i] } else { 0.0 };
    }
    assert!((found - right / weights.iter().sum::<f64>()).abs() < 1e-12, "{found}");
    assert!(found < 1.0, "the test can fail");
}
