//! Infinite width: the kernel form against dense f64 computations, against the explicit form, and against itself retrained.

mod capped;
#[path = "../common/mod.rs"]
mod common;
mod many;

use common::{DIM, Task, learn, samples};
use faer::prelude::Solve;
use faer::{Mat, Side};
use loranpac::internals::KernelModel;
use loranpac::lift::{self, ArcCosine, LiftSpec};
use loranpac::registry::{self, MethodOptions};
use loranpac::{Config, Error, Features, Filter, Label, Learner, Ridge, Schedule, Truncation};

const HARD: Filter = Filter::Hard { truncation: Truncation::Fraction(0.25), ridge: 0.0 };
const SOFT: Filter = Filter::Soft(Ridge::GeometricMean);

fn model(filter: Filter) -> KernelModel {
    with(Config { filter, ..Config::default() })
}

fn with(config: Config) -> KernelModel {
    KernelModel::new(ArcCosine::new(DIM), config).unwrap()
}

/// The kernel, literally.
fn kernel(x: &[f32], z: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let (a, b) = (dot(x, x).sqrt(), dot(z, z).sqrt());
    if a * b == 0.0 {
        return 0.0;
    }
    let t = (dot(x, z) / (a * b)).clamp(-1.0, 1.0).acos();
    a * b * (t.sin() + (std::f64::consts::PI - t) * t.cos()) / (2.0 * std::f64::consts::PI)
}

fn matrix(a: &[f32], b: &[f32]) -> Mat<f64> {
    let row = |x: &[f32], i: usize| x[i * DIM..(i + 1) * DIM].to_vec();
    Mat::from_fn(a.len() / DIM, b.len() / DIM, |i, j| kernel(&row(a, i), &row(b, j)))
}

fn one_hot(labels: &[Label], classes: &[Label]) -> Mat<f64> {
    Mat::from_fn(classes.len(), labels.len(), |c, i| f64::from(u8::from(labels[i] == classes[c])))
}

fn scores(model: &mut dyn Learner, x: &[f32]) -> Mat<f64> {
    let scores = model.classifier().unwrap().scores(Features::new(x, DIM).unwrap()).unwrap();
    let rows: Vec<&[f32]> = scores.rows().collect();
    Mat::from_fn(rows.len(), rows[0].len(), |i, j| f64::from(rows[i][j]))
}

fn difference(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    (a - b).norm_max() / b.norm_max()
}

fn joined(tasks: &[Task]) -> Task {
    let x = tasks.iter().flat_map(|task| task.0.clone()).collect();
    (x, tasks.iter().flat_map(|task| task.1.clone()).collect())
}

fn tasks() -> [Task; 3] {
    [samples(1, &[1, 2], 14), samples(2, &[3], 9), samples(3, &[2, 4], 11)]
}

#[test]
fn both_filters_are_the_dense_solutions() {
    let (data, test) = (joined(&tasks()), samples(9, &[1, 2, 3, 4], 6).0);
    let k = matrix(&data.0, &data.0);
    let (n, across) = (k.nrows(), matrix(&data.0, &test));
    let eigen = k.self_adjoint_eigen(Side::Lower).unwrap();
    let values: Vec<f64> = eigen.S().column_vector().iter().copied().collect();

    let mut soft = model(SOFT);
    learn(&mut soft, &data);
    let y = one_hot(&data.1, soft.classes().labels());
    let ridge = (values.iter().map(|v| v.ln()).sum::<f64>() / n as f64).exp();
    let shifted = &k + Mat::<f64>::identity(n, n) * ridge;
    let a = shifted.full_piv_lu().solve(y.transpose());
    let expected = across.transpose() * &a;
    assert!(difference(&scores(&mut soft, &test), &expected) < 1e-6);
    let summary = soft.summary();
    assert!((summary.ridge.unwrap() / ridge - 1.0).abs() < 1e-9);
    let residual = a.transpose() * &k - &y;
    let mse = residual.squared_norm_l2() / n as f64;
    assert!((summary.train_mse.unwrap() - mse).abs() < 1e-9 && summary.train_mse == summary.train_mse_upper);
    // What lies outside: the variance of the Gaussian process, as a share.
    let inside = shifted.full_piv_lu().solve(&across);
    let novelty = soft.classifier().unwrap().novelty(Features::new(&test, DIM).unwrap()).unwrap().unwrap();
    for (i, share) in novelty.iter().enumerate() {
        let own = kernel(&test[i * DIM..(i + 1) * DIM], &test[i * DIM..(i + 1) * DIM]);
        let expected = 1.0 - (across.col(i).transpose() * inside.col(i)) / own;
        assert!((share - expected).abs() < 1e-8, "{share} {expected}");
    }

    let mut hard = model(HARD);
    learn(&mut hard, &data);
    let kept = (0.75 * n as f64).ceil() as usize;
    let v = eigen.U().subcols(n - kept, kept);
    let inverse = Mat::from_fn(kept, kept, |i, j| if i == j { 1.0 / values[n - kept + i] } else { 0.0 });
    let a = v * inverse * (v.transpose() * y.transpose());
    assert!(difference(&scores(&mut hard, &test), &(across.transpose() * &a)) < 1e-5);
    let summary = hard.summary();
    assert_eq!((summary.kept_rank, summary.basis_rank, summary.samples), (Some(kept), Some(n), n));
    let mse = (a.transpose() * &k - &y).squared_norm_l2() / n as f64;
    assert!((summary.train_mse.unwrap() - mse).abs() < 1e-9);
    let certificate = summary.certificate.unwrap();
    assert_eq!((certificate.lost, certificate.capped), (0.0, 0));
    assert!((certificate.condition.unwrap() / (values[n - 1] / values[n - kept]) - 1.0).abs() < 1e-6);
    assert!(certificate.bounds.is_some());
    let spectrum = hard.spectrum().unwrap().unwrap();
    assert!(spectrum.iter().zip(values.iter().rev()).all(|(a, b)| (a - b).abs() < 1e-12 * values[n - 1]));
}

#[test]
fn wide_explicit_models_tend_to_it() {
    let (data, test) = (joined(&tasks()), samples(9, &[1, 2, 3, 4], 6).0);
    for method in ["loranpac-soft", "loranpac"] {
        let method = registry::find(method).unwrap();
        let mut limit = method.build(&MethodOptions::new(ArcCosine::new(DIM))).unwrap();
        learn(&mut *limit, &data);
        let expected = scores(&mut *limit, &test);
        let mut errors = Vec::new();
        for width in [500, 8_000, 128_000] {
            let spec = LiftSpec { keep: false, ..LiftSpec::new(DIM, width) };
            let mut wide = method.build(&MethodOptions::new(lift::build("relu-random", spec).unwrap())).unwrap();
            learn(&mut *wide, &data);
            errors.push(difference(&scores(&mut *wide, &test), &expected));
        }
        // Sixteen times the width, a quarter of the error; the hard filter's cut is between close eigenvalues.
        assert!(errors[0] > 2.0 * errors[1] && errors[1] > 2.0 * errors[2] && errors[2] < 0.05, "{errors:?}");
    }
}

#[test]
fn learning_in_tasks_equals_one_batch() {
    for filter in [SOFT, HARD, Filter::Soft(Ridge::LeaveOneOut), Filter::Soft(Ridge::Fixed(0.1))] {
        let (mut steps, mut once) = (model(filter), model(filter));
        for task in &tasks() {
            learn(&mut steps, task);
            steps.classifier().unwrap(); // The kernel matrix is extended, not made anew.
        }
        learn(&mut once, &joined(&tasks()));
        let test = samples(9, &[1, 2, 3, 4], 6).0;
        assert!(difference(&scores(&mut steps, &test), &scores(&mut once, &test)) < 1e-6, "{filter:?}");
        assert_eq!(steps.summary().leave_one_out.is_some(), matches!(filter, Filter::Soft(_)));
    }
}

#[test]
fn merging_equals_learning_together_in_any_order() {
    let tasks = tasks();
    let test = samples(9, &[1, 2, 3, 4], 6).0;
    for filter in [SOFT, HARD] {
        let mut parts: Vec<KernelModel> = tasks.iter().map(|_| model(filter)).collect();
        parts.iter_mut().zip(&tasks).for_each(|(part, task)| learn(part, task));
        let mut together = model(filter);
        learn(&mut together, &joined(&tasks));
        let expected = scores(&mut together, &test);
        for order in [[0, 1, 2], [2, 0, 1]] {
            let mut merged = model(filter);
            for &i in &order {
                merged.merge([&mut parts[i]]).unwrap();
            }
            let found = scores(&mut merged, &test);
            let columns: Vec<usize> =
                together.classes().labels().iter().map(|label| merged.classes().get(label).unwrap()).collect();
            let found = Mat::from_fn(found.nrows(), found.ncols(), |i, c| found[(i, columns[c])]);
            assert!(difference(&found, &expected) < 1e-6, "{filter:?} {order:?}");
        }
    }
}

#[test]
fn leave_one_out_equals_refitting_without_the_sample() {
    // Some of the labels are wrong: many samples are decided by a hair.
    let mut data = samples(1, &[1, 2, 3], 12);
    data.1.iter_mut().step_by(4).for_each(|label| *label = Label::from(2));
    let ridge = 0.05;
    let mut whole = model(Filter::Soft(Ridge::Fixed(ridge)));
    learn(&mut whole, &data);
    whole.classifier().unwrap();
    let mut right = 0;
    for i in 0..data.1.len() {
        let rest = |j: &usize| *j != i;
        let x: Vec<f32> =
            (0..data.1.len()).filter(rest).flat_map(|j| data.0[j * DIM..(j + 1) * DIM].to_vec()).collect();
        let y: Vec<Label> = (0..data.1.len()).filter(rest).map(|j| data.1[j].clone()).collect();
        let mut without = model(Filter::Soft(Ridge::Fixed(ridge)));
        learn(&mut without, &(x, y));
        let one = Features::new(&data.0[i * DIM..(i + 1) * DIM], DIM).unwrap();
        right += usize::from(without.classifier().unwrap().predict(one).unwrap() == data.1[i..=i]);
    }
    let expected = right as f64 / data.1.len() as f64;
    assert!((0.2..0.9).contains(&expected), "{expected}");
    assert_eq!(whole.summary().leave_one_out, Some(expected));
}

#[test]
fn the_ridge_by_leave_one_out_is_the_best_of_its_grid() {
    let data = samples(1, &[1, 2, 3], 15);
    let accuracy = |filter: Filter| {
        let mut model = model(filter);
        learn(&mut model, &data);
        model.classifier().unwrap();
        (model.summary().leave_one_out.unwrap(), model.summary().ridge.unwrap())
    };
    let middle = accuracy(SOFT).1;
    let (chosen, ridge) = accuracy(Filter::Soft(Ridge::LeaveOneOut));
    for decade in -3..=3 {
        let fixed = accuracy(Filter::Soft(Ridge::Fixed(middle * 10f64.powi(decade)))).0;
        assert!(chosen >= fixed, "{chosen} at {ridge}, {fixed} at 10^{decade}");
    }
    assert!((1e-4..1e4).contains(&(ridge / middle)));
}

#[test]
fn forgetting_equals_never_having_seen_the_class() {
    for filter in [SOFT, HARD] {
        let (mut model, mut never) = (model(filter), model(filter));
        learn(&mut model, &samples(1, &[1, 2], 12));
        model.classifier().unwrap();
        learn(&mut model, &samples(2, &[5], 8));
        model.forget(&Label::from(2)).unwrap();
        let first = samples(1, &[1, 2], 12);
        let ones = first.1.iter().filter(|label| **label == Label::from(1)).count();
        let rows = first.1.iter().enumerate().filter(|(_, label)| **label == Label::from(1));
        let x = rows.flat_map(|(i, _)| first.0[i * DIM..(i + 1) * DIM].to_vec()).collect();
        learn(&mut never, &(x, vec![Label::from(1); ones]));
        learn(&mut never, &samples(2, &[5], 8));
        let test = samples(9, &[1, 5], 6).0;
        assert_eq!(model.classes().labels(), [1, 5].map(Label::from));
        assert!(difference(&scores(&mut model, &test), &scores(&mut never, &test)) < 1e-6);
        assert_eq!(model.summary().samples, never.summary().samples);
    }
}

#[test]
fn samples_are_taken_back_relabelled_and_renamed_exactly() {
    let (first, second) = (samples(1, &[1, 2], 12), samples(2, &[3], 8));
    let (mut edited, mut plain) = (model(SOFT), model(SOFT));
    learn(&mut edited, &first);
    learn(&mut edited, &second);
    learn(&mut plain, &first);
    edited.unlearn(Features::new(&second.0, DIM).unwrap(), &second.1).unwrap();
    let test = samples(9, &[1, 2], 6).0;
    assert_eq!(edited.classes().labels(), [1, 2].map(Label::from));
    assert!(difference(&scores(&mut edited, &test), &scores(&mut plain, &test)) < 1e-6);
    let again = edited.unlearn(Features::new(&second.0, DIM).unwrap(), &second.1);
    assert!(matches!(again, Err(Error::UnknownClass { .. })));
    let wrong = edited.unlearn(Features::new(&second.0, DIM).unwrap(), &vec![Label::from(1); 8]);
    assert_eq!(wrong.err(), Some(Error::NeverLearned { row: 0 }));

    let moved = vec![Label::from(9); 12];
    let ones: Vec<usize> = (0..first.1.len()).filter(|i| first.1[*i] == Label::from(1)).collect();
    let x: Vec<f32> = ones.iter().flat_map(|i| first.0[i * DIM..(i + 1) * DIM].to_vec()).collect();
    edited.relabel(Features::new(&x, DIM).unwrap(), &vec![Label::from(1); 12], &moved).unwrap();
    edited.rename(&Label::from(9), Label::from("nine")).unwrap();
    assert_eq!(edited.classes().labels(), [Label::from(2), Label::from("nine")]);
    let swapped = scores(&mut edited, &test);
    let expected = scores(&mut plain, &test);
    let expected = Mat::from_fn(expected.nrows(), 2, |i, c| expected[(i, 1 - c)]);
    assert!(difference(&swapped, &expected) < 1e-6);
}

#[test]
fn duplicates_zero_vectors_and_opposites_do_no_harm() {
    for filter in [SOFT, HARD] {
        let mut data = samples(1, &[1, 2, 3], 12);
        let copies = data.0[..6 * DIM].to_vec();
        data.1.extend_from_within(..6);
        data.0.extend(copies.iter().map(|v| 2.0 * v)); // collinear
        data.0.extend(copies.iter().map(|v| -v));
        data.1.extend_from_within(..6);
        data.0.extend(vec![0.0; 2 * DIM]);
        data.1.extend_from_within(..2);
        let mut model = model(filter);
        learn(&mut model, &data);
        learn(&mut model, &data);
        let test = samples(9, &[1, 2, 3], 20);
        assert!(common::accuracy(&mut model, &test) > 0.8, "{filter:?}");
        let zero = scores(&mut model, &[0.0; DIM]);
        assert!(zero.norm_max() == 0.0);
        let novelty = model.classifier().unwrap().novelty(Features::new(&test.0, DIM).unwrap()).unwrap().unwrap();
        assert!(novelty.iter().all(|share| (0.0..=1.0).contains(share)));
    }
}

/// The geometric mean leaves out directions that are none, as the explicit form does.
#[test]
fn the_geometric_mean_is_that_of_the_eigenvalues_that_are_there() {
    // The second has copies across the blocks of the factorisation, and zeros.
    for (each, copies) in [(10, 5), (150, 250)] {
        let mut data = samples(1, &[1, 2], each);
        let n = data.1.len();
        data.0.extend_from_within(..copies * DIM);
        data.0.extend([0.0; DIM]);
        data.1.extend_from_within(..copies + 1);
        let k = matrix(&data.0, &data.0);
        let eigen = k.self_adjoint_eigen(Side::Lower).unwrap();
        let mut values: Vec<f64> = eigen.S().column_vector().iter().copied().collect();
        values.reverse();
        let expected = (values[..n].iter().map(|v| v.ln()).sum::<f64>() / n as f64).exp();
        let mut model = model(SOFT);
        learn(&mut model, &data);
        model.classifier().unwrap();
        assert!((model.summary().ridge.unwrap() / expected - 1.0).abs() < 1e-5, "{each}");
    }
}

#[test]
fn lengths_do_not_matter_to_who_wins() {
    for scale in [1e-12f32, 1.0, 1e11] {
        let data = samples(1, &[1, 2, 3], 12);
        let test = samples(9, &[1, 2, 3], 12);
        let scaled = |x: &[f32]| x.iter().map(|v| v * scale).collect::<Vec<f32>>();
        for filter in [SOFT, HARD] {
            let (mut plain, mut model) = (model(filter), model(filter));
            learn(&mut plain, &data);
            learn(&mut model, &(scaled(&data.0), data.1.clone()));
            let winners = |m: &mut KernelModel, x: &[f32]| {
                m.classifier().unwrap().predict(Features::new(x, DIM).unwrap()).unwrap()
            };
            assert_eq!(winners(&mut plain, &test.0), winners(&mut model, &scaled(&test.0)), "{scale}");
        }
    }
}

#[test]
fn half_precision_rounds_and_refuses_what_it_cannot_hold() {
    let config = Config { half: true, ..Config::default() };
    let mut half = with(config);
    let data = samples(1, &[1, 2], 12);
    learn(&mut half, &data);
    assert!(half.state().samples.iter().zip(&data.0).any(|(a, b)| a != b));
    assert!(half.state().samples.iter().zip(&data.0).all(|(a, b)| (a - b).abs() <= 1e-3 * b.abs() + 1e-7));
    half.unlearn(Features::new(&data.0[..DIM], DIM).unwrap(), &data.1[..1]).unwrap();
    let huge = vec![1e5; DIM];
    let refused = half.learn(Features::new(&huge, DIM).unwrap(), &[Label::from(1)]);
    assert!(matches!(refused, Err(Error::TooLarge { row: 0, .. })));
    assert_eq!(half.summary().samples, 23);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let paper = KernelModel::new(ArcCosine::new(DIM), Config { schedule: Schedule::Paper, ..Config::default() });
    assert!(paper.err().unwrap().to_string().contains("schedule = paper"));
    let message =
        registry::find("ranpac").unwrap().build(&MethodOptions::new(ArcCosine::new(DIM))).err().unwrap().to_string();
    assert!(message.contains("finite width"), "{message}");
    let explicit = lift::build("relu-random", LiftSpec::new(DIM, 50)).unwrap();
    for (name, value) in [("ridge", "loo"), ("samples", "f16")] {
        let options = MethodOptions {
            settings: vec![(name.to_owned(), value.to_owned())],
            ..MethodOptions::new(explicit.clone())
        };
        let message = registry::find("loranpac-soft").unwrap().build(&options).err().unwrap().to_string();
        assert!(message.contains("`width` infinite"), "{message}");
    }
}
