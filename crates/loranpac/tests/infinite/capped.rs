//! Models of infinite width beyond their cap: evicted samples leave their projections.

use loranpac::internals::KernelModel;
use loranpac::lift::ArcCosine;
use loranpac::{Config, Error, Features, Filter, Label, Learner, Ridge};

use super::common::{DIM, accuracy, learn, samples};
use super::{HARD, SOFT, difference, joined, model, one_hot, scores, with};

/// Beyond its cap the model keeps as many samples as it reports, and its training error lies in the reported interval.
#[test]
fn a_capped_model_stays_within_its_reported_loss() {
    for filter in [SOFT, HARD] {
        let mut capped = with(Config { filter, max_rank: 30, chunk: 8, ..Config::default() });
        let mut whole = model(filter);
        let stream = [samples(1, &[1, 2], 20), samples(2, &[3, 4], 20), samples(3, &[1, 5], 25)];
        for task in &stream {
            learn(&mut capped, task);
            learn(&mut whole, task);
            capped.classifier().unwrap();
            let summary = capped.summary();
            assert!(capped.len() <= 38 && summary.samples == whole.summary().samples);
            let seen = joined(&stream[..=stream.iter().position(|other| std::ptr::eq(other, task)).unwrap()]);
            let y = one_hot(&seen.1, capped.classes().labels());
            let found = scores(&mut capped, &seen.0);
            let mse = (found.transpose() - y).squared_norm_l2() / seen.1.len() as f64;
            let (low, high) = (summary.train_mse.unwrap(), summary.train_mse_upper.unwrap());
            assert!(low - 1e-6 <= mse && mse <= high + 1e-6, "{low} {mse} {high}");
        }
        let certificate = capped.summary().certificate.unwrap();
        assert!(certificate.capped > 60 && certificate.lost > 0.0 && certificate.bounds.is_none());
        let test = samples(9, &[1, 2, 3, 4, 5], 20);
        let (a, b) = (accuracy(&mut capped, &test), accuracy(&mut whole, &test));
        assert!(a > b - 0.1, "{a} {b}");
        // Edits of kept samples are exact; edits of evicted samples are refused.
        capped.forget(&Label::from(2)).unwrap();
        assert_eq!(capped.summary().samples, {
            let own: usize = capped.counts().iter().sum();
            own + capped.state().evicted.as_ref().unwrap().unlabelled
        });
        assert_eq!(scores(&mut capped, &test.0).ncols(), 4);
        let first = Features::new(&stream[0].0, DIM).unwrap();
        let labels = vec![Label::from(1); first.len()];
        assert!(matches!(capped.unlearn(first, &labels), Err(Error::NotExact { .. } | Error::NothingLeft { .. })));
    }
}

/// A model that has evicted samples cuts, merges, measures novelty and takes edits.
#[test]
fn a_capped_model_goes_on() {
    let config = |filter| Config { filter, max_rank: 30, chunk: 8, ..Config::default() };
    let stream = [samples(1, &[1, 2], 20), samples(2, &[3, 4], 20), samples(3, &[1, 5], 25)];
    let test = samples(9, &[1, 2, 3, 4, 5], 20);
    let mut hard = with(config(HARD));
    stream.iter().for_each(|task| learn(&mut hard, task));
    hard.classifier().unwrap();
    let kept = hard.summary().kept_rank.unwrap();
    assert_eq!(kept, (0.75 * hard.len() as f64).ceil() as usize, "a share of the kept samples is cut");
    assert_eq!(hard.spectrum().unwrap().unwrap().len(), hard.len());
    let line = hard.summary().verdict().unwrap().line;
    assert!(
        line.contains("samples reduced to projections by the memory cap") && !line.contains("directions"),
        "{line}"
    );
    let foreign: Vec<f32> = test.0.iter().map(|v| -v).collect();
    let mean = |model: &mut KernelModel, x: &[f32]| {
        let shares = model.classifier().unwrap().novelty(Features::new(x, DIM).unwrap()).unwrap().unwrap();
        shares.iter().sum::<f64>() / shares.len() as f64
    };
    assert!(mean(&mut hard, &foreign) > 2.0 * mean(&mut hard, &test.0));

    // Evicted samples cannot be left out.
    let mut loo = with(config(Filter::Soft(Ridge::LeaveOneOut)));
    let mut soft = with(config(SOFT));
    for task in &stream {
        learn(&mut loo, task);
        learn(&mut soft, task);
    }
    assert_eq!(scores(&mut loo, &test.0), scores(&mut soft, &test.0));
    assert_eq!(loo.summary().leave_one_out, None);

    // Models merge after evictions on both sides; the training error lies in the reported interval.
    let mut parts: Vec<KernelModel> = stream.iter().map(|_| with(config(SOFT))).collect();
    parts.iter_mut().zip(&stream).for_each(|(part, task)| learn(part, task));
    assert!(parts.iter().all(|part| part.state().evicted.is_some()));
    let mut merged = with(config(SOFT));
    merged.merge(&mut parts).unwrap();
    let seen = joined(&stream);
    for _ in 0..2 {
        let found = scores(&mut merged, &seen.0);
        let y = one_hot(&seen.1, merged.classes().labels());
        let mse = (found.transpose() - y).squared_norm_l2() / seen.1.len() as f64;
        let summary = merged.summary();
        assert_eq!(summary.samples, seen.1.len());
        let (low, high) = (summary.train_mse.unwrap(), summary.train_mse_upper.unwrap());
        assert!(low - 1e-6 <= mse && mse <= high + 1e-6, "{low} {mse} {high}");
        // A model that is built from the same parts is equal.
        let (space, config) = (ArcCosine::new(DIM), *merged.config());
        merged =
            KernelModel::from_parts(space, config, merged.classes().clone(), merged.state().clone()).unwrap().unwrap();
    }
    assert!(accuracy(&mut merged, &test) > 0.85);
    // Kept samples can be unlearned or relabelled.
    let (x, class) = (merged.state().samples[..DIM].to_vec(), merged.state().classes[0]);
    let label = merged.classes().labels()[class].clone();
    let x = Features::new(&x, DIM).unwrap();
    merged.relabel(x, std::slice::from_ref(&label), &[Label::from("moved")]).unwrap();
    merged.unlearn(x, &[Label::from("moved")]).unwrap();
    assert_eq!(merged.summary().samples, seen.1.len() - 1);
    assert!(scores(&mut merged, &test.0).norm_max().is_finite());
}

/// Right after an eviction, the part of the samples that is lost lies outside all directions that the classifier uses.
#[test]
fn the_training_error_is_exact_until_new_samples_come() {
    let mut capped = with(Config { filter: SOFT, max_rank: 30, chunk: 10, ..Config::default() });
    let data = samples(1, &[1, 2, 3], 14);
    learn(&mut capped, &data);
    assert!(capped.len() == 30 && capped.state().evicted.is_some());
    let y = one_hot(&data.1, capped.classes().labels());
    let mse = (scores(&mut capped, &data.0).transpose() - y).squared_norm_l2() / data.1.len() as f64;
    let summary = capped.summary();
    assert_eq!(summary.train_mse, summary.train_mse_upper);
    assert!((summary.train_mse.unwrap() - mse).abs() < 1e-6, "{summary:?} {mse}");
    assert!(summary.certificate.unwrap().lost > 0.0);
}

#[test]
fn features_that_are_all_zero_do_not_stop_a_capped_model() {
    let mut model = with(Config { max_rank: 5, chunk: 5, filter: SOFT, ..Config::default() });
    for _ in 0..4 {
        learn(&mut model, &(vec![0.0; 6 * DIM], vec![Label::from(1); 6]));
    }
    assert_eq!(model.summary().samples, 24);
    assert_eq!(scores(&mut model, &[1.0; DIM]).norm_max(), 0.0);
}

/// If only duplicates exceed the cap, nothing is lost.
#[test]
fn duplicates_cost_a_capped_model_nothing() {
    let data = samples(1, &[1, 2, 3], 10);
    let config = Config { filter: Filter::Soft(Ridge::Fixed(0.3)), max_rank: 30, chunk: 10, ..Config::default() };
    let (mut capped, mut whole) = (with(config), model(config.filter));
    for _ in 0..4 {
        learn(&mut capped, &data);
        learn(&mut whole, &data);
    }
    assert!(capped.len() < 60 && whole.len() == 120);
    let test = samples(9, &[1, 2, 3], 10).0;
    assert!(difference(&scores(&mut capped, &test), &scores(&mut whole, &test)) < 1e-5);
    let (a, b) = (capped.summary(), whole.summary());
    assert!((a.train_mse.unwrap() - b.train_mse.unwrap()).abs() < 1e-5);
    assert!(a.train_mse_upper.unwrap() - a.train_mse.unwrap() < 1e-4);
}
