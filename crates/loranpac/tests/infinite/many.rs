//! More samples than a kernel matrix in double precision is formed for.

use faer::Mat;
use loranpac::internals::{Gram, KernelModel, packs};
use loranpac::lift::ArcCosine;
use loranpac::{Classifier, Config, Features, Label, Learner};
use rayon::prelude::*;

use super::{SOFT, kernel};

const N: usize = 6_200;
const DIM: usize = 24;

/// Samples around the centres of five classes, and their classes.
fn samples(seed: u64, count: usize) -> (Vec<f32>, Vec<usize>) {
    let mut state = 1u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let centres: Vec<f32> = (0..5 * DIM).map(|_| next()).collect();
    for _ in 0..1_000 * seed {
        next();
    }
    let classes: Vec<usize> = (0..count).map(|i| i * 7 % 5).collect();
    let at = classes.iter().flat_map(|class| class * DIM..(class + 1) * DIM);
    let x = at.map(|at| 0.3 + centres[at] + 1.5 * next()).collect();
    (x, classes)
}

fn matrix(a: &[f32], b: &[f32]) -> Mat<f64> {
    let mut k = Mat::zeros(a.len() / DIM, b.len() / DIM);
    k.par_col_iter_mut().zip(b.par_chunks(DIM)).for_each(|(column, z)| {
        column.iter_mut().zip(a.chunks(DIM)).for_each(|(value, x)| *value = kernel(x, z));
    });
    k
}

fn scores(classifier: &Classifier, x: &[f32]) -> Vec<f32> {
    classifier.scores(Features::new(x, DIM).unwrap()).unwrap().rows().flatten().copied().collect()
}

/// Scores, lambda, training error and novelty of a model against a solution in double precision; the same bits on any
/// number of threads, and from a model that was read.
#[test]
fn many_samples_have_the_classifier_of_double_precision() {
    let (x, classes) = samples(1, N);
    let labels: Vec<Label> = classes.iter().map(|class| Label::from(*class as i64)).collect();
    let config = Config { filter: SOFT, ..Config::default() };
    assert!(packs(config.filter, N));
    let mut model = KernelModel::new(ArcCosine::new(DIM), config).unwrap();
    // A classifier in between, which is formed otherwise, leaves no trace.
    for (range, last) in [(0..900, false), (900..N, true)] {
        let part = Features::new(&x[range.start * DIM..range.end * DIM], DIM).unwrap();
        model.learn(part, &labels[range]).unwrap();
        assert!(last || model.classifier().is_ok());
    }
    let classifier = model.classifier().unwrap();
    let facts = *classifier.facts().unwrap();

    let mut gram = Gram::zeros(N);
    gram.set_matrix(matrix(&x, &x).as_ref());
    let ridge = (gram.log_det(0.0).unwrap() / N as f64).exp();
    assert!((facts.ridge / ridge - 1.0).abs() < 1e-5, "{} {ridge}", facts.ridge);
    let places: Vec<usize> = (0..5).map(|c| model.classes().get(&Label::from(c)).unwrap()).collect();
    let mut a = Mat::<f64>::zeros(5, N);
    classes.iter().enumerate().for_each(|(i, class)| a[(places[*class], i)] = 1.0);
    gram.solve(&mut a, ridge).unwrap();
    let mse = ridge * ridge * a.squared_norm_l2() / N as f64;
    assert!((facts.train_mse - mse).abs() < 1e-6, "{} {mse}", facts.train_mse);

    let test = samples(2, 60).0;
    let known = matrix(&x, &test);
    let expected = &a * &known;
    let found = scores(&classifier, &test);
    let error = (0..60).flat_map(|j| (0..5).map(move |c| (j, c)));
    let error = error.map(|(j, c)| (f64::from(found[5 * j + c]) - expected[(c, j)]).abs()).fold(0.0, f64::max);
    assert!(error < 1e-5, "scores are off by {error:e}");

    let mut inside = known.transpose().to_owned();
    gram.solve(&mut inside, ridge).unwrap();
    let shares = classifier.novelty(Features::new(&test, DIM).unwrap()).unwrap().unwrap();
    for (j, share) in shares.into_iter().enumerate() {
        let energy = kernel(&test[j * DIM..(j + 1) * DIM], &test[j * DIM..(j + 1) * DIM]);
        let expected = 1.0 - inside.row(j) * known.col(j) / energy;
        assert!((share - expected).abs() < 1e-5, "{share} {expected}");
    }

    let read = || {
        let parts = (model.classes().clone(), model.state().clone());
        KernelModel::from_parts(ArcCosine::new(DIM), config, parts.0, parts.1).unwrap().unwrap()
    };
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let again = pool.install(|| read().classifier().unwrap());
        assert_eq!(again.facts(), Some(&facts));
        assert_eq!(scores(&again, &test), found);
    }
}
