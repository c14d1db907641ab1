//! What is learned task by task in single precision is the offline solution, computed in f64 from all samples at once.

mod common;

use common::*;
use faer::{Mat, Side};
use loranpac::filter::solve;
use loranpac::internals::Statistics;
use loranpac::{Filter, Ridge, Truncation};

const CLASSES: usize = 6;
const SOFT: Filter = Filter::Soft(Ridge::GeometricMean);

fn hard(zeta: f64) -> Filter {
    Filter::Hard { truncation: Truncation::Fraction(zeta), ridge: 0.0 }
}

/// W of the offline solution, E x c: from the eigendecomposition of H' H.
fn offline(h: &Mat<f64>, y: &[usize], filter: Filter) -> Mat<f64> {
    let eigen = (h.transpose() * h).self_adjoint_eigen(Side::Lower).unwrap();
    let (mu, v) = (eigen.S().column_vector().iter().rev().copied().collect::<Vec<_>>(), eigen.U().reverse_cols());
    let rank = mu.iter().take_while(|value| **value > 1e-11 * mu[0]).count();
    let weight: Vec<f64> = match filter {
        Filter::Hard { truncation, .. } => {
            let kept = truncation.kept(&mu, h.nrows(), h.ncols(), usize::MAX).min(rank);
            (0..mu.len()).map(|j| if j < kept { 1.0 / mu[j] } else { 0.0 }).collect()
        }
        Filter::Soft(_) => {
            let ridge = (mu[..rank].iter().map(|value| value.ln()).sum::<f64>() / rank as f64).exp();
            mu.iter().map(|value| 1.0 / (value + ridge)).collect()
        }
    };
    let turned = v.transpose() * one_hot(y, CLASSES).transpose();
    h * (v * Mat::from_fn(turned.nrows(), CLASSES, |i, j| turned[(i, j)] * weight[i]))
}

/// Learns the tasks; from the first moment on at which Q spans everything, without a basis.
fn learned(tasks: &[(Mat<f64>, Vec<usize>)]) -> Statistics<f32> {
    let mut stats = Statistics::<f32>::new(tasks[0].0.nrows(), 20.0);
    for (h, y) in tasks {
        let rank = stats.basis().rank();
        absorb(&mut stats, h, y);
        if stats.spans_all(stats.basis().rank() > rank) {
            stats.make_whole();
        }
    }
    stats
}

/// Learns the tasks, and compares the scores of fresh samples by every filter with those of the offline solution.
fn check(name: &str, tasks: &[(Mat<f64>, Vec<usize>)], fresh: &Mat<f64>, tolerance: f64) {
    let (h, y) = concat(tasks);
    let mut stats = learned(tasks);
    for filter in [SOFT, hard(0.25), hard(0.5)] {
        let exact = offline(&h, &y, filter);
        let solution = solve(&mut stats, filter, usize::MAX).unwrap();
        let w = stats.expand(solution.coefficients.as_ref());
        let w = Mat::from_fn(w.nrows(), CLASSES, |i, j| if j < w.ncols() { w[(i, j)] as f64 } else { 0.0 });
        let scores = exact.transpose() * fresh;
        let apart = (w.transpose() * fresh - &scores).norm_max() / scores.norm_max();
        println!("{name}, {filter:?}: r = {}, {apart:.1e}, W {:.1e}", stats.basis().rank(), relative_error(&w, &exact));
        assert!(apart < tolerance, "{name}, {filter:?}: scores are off by {apart:e}");
    }
}

fn fresh(seed: u64, width: usize) -> Mat<f64> {
    stream(seed, width, &[60], CLASSES).remove(0).0
}

#[test]
fn tasks_of_any_size_give_the_offline_solution() {
    for sizes in [vec![150], vec![40, 1, 70, 3, 36], vec![1; 60]] {
        check(&format!("{sizes:?}"), &stream(1, 400, &sizes, CLASSES), &fresh(1, 400), 1e-4);
    }
}

#[test]
fn exact_duplicates_change_nothing() {
    let mut tasks = stream(2, 400, &[50, 60, 40], CLASSES);
    let (first, labels) = tasks[0].clone();
    tasks.push((first.subcols(0, 20).to_owned(), labels[..20].to_vec()));
    let (last, labels) = tasks[2].clone();
    let twice = Mat::from_fn(400, 20, |i, j| last[(i, j / 2)]);
    tasks.push((twice, (0..20).map(|j| labels[j / 2]).collect()));
    check("duplicates", &tasks, &fresh(2, 400), 1e-4);
}

#[test]
fn widths_close_to_the_number_of_samples_work() {
    for width in [140, 150, 160] {
        check(&format!("E = {width}, M = 150"), &stream(3, width, &[30; 5], CLASSES), &fresh(3, width), 1e-4);
    }
}

#[test]
fn features_of_any_scale_work() {
    for scale in [1e-12, 1e12] {
        let mut tasks = stream(4, 300, &[40, 40, 40], CLASSES);
        let times = |h: &Mat<f64>| Mat::from_fn(h.nrows(), h.ncols(), |i, j| (h[(i, j)] * scale) as f32 as f64);
        tasks.iter_mut().for_each(|(h, _)| *h = times(h));
        check(&format!("scale {scale:e}"), &tasks, &times(&fresh(4, 300)), 1e-4);
    }
}

#[test]
fn zero_samples_are_learned_as_zeros() {
    let mut tasks = stream(5, 300, &[30, 50], CLASSES);
    tasks.insert(0, (Mat::zeros(300, 2), vec![0, 1]));
    tasks[1].0.col_mut(7).fill(0.0);
    check("zeros", &tasks, &fresh(5, 300), 1e-4);
}

#[test]
fn more_samples_than_features_give_the_offline_solution() {
    for sizes in [vec![90, 60, 1, 200, 33], vec![500], vec![7; 50]] {
        let tasks = stream(7, 120, &sizes, CLASSES);
        assert!(sizes.len() == 1 || learned(&tasks).basis().is_whole());
        check(&format!("{sizes:?}"), &tasks, &fresh(7, 120), 1e-4);
    }
}

#[test]
fn features_that_are_never_active_are_no_directions() {
    let mut tasks = stream(8, 130, &[90, 60, 150, 200, 33], CLASSES);
    for dead in [0, 17, 129] {
        tasks.iter_mut().for_each(|(h, _)| h.row_mut(dead).fill(0.0));
    }
    let stats = learned(&tasks[..4]);
    assert!(stats.basis().is_whole() && stats.basis().rank() == 130);
    check("dead features", &tasks, &fresh(8, 130), 1e-4);
    // One of them comes alive.
    (0..33).for_each(|j| tasks[4].0[(17, j)] = 0.25 + j as f64 / 64.0);
    check("a feature wakes up", &tasks, &fresh(8, 130), 1e-4);
}

#[test]
fn models_without_a_basis_are_merged_and_edited() {
    let tasks = stream(9, 100, &[70, 80, 60, 40], CLASSES);
    let fresh = fresh(9, 100);
    let scores = |stats: &mut Statistics<f32>, filter| {
        let solution = solve(stats, filter, usize::MAX).unwrap();
        let w = stats.expand(solution.coefficients.as_ref());
        Mat::from_fn(w.nrows(), w.ncols(), |i, j| w[(i, j)] as f64).transpose() * &fresh
    };
    let same: Vec<usize> = (0..CLASSES).collect();
    let near = |a: &mut Statistics<f32>, b: &mut Statistics<f32>, filter| {
        let (a, b) = (scores(a, filter), scores(b, filter));
        let apart = (&a - &b).norm_max() / b.norm_max();
        assert!(apart < 1e-4, "{filter:?}: {apart:e}");
    };
    let mut together = learned(&tasks);
    assert!(together.basis().is_whole());
    for at in [1, 2, 3] {
        let [mut left, mut right] = [learned(&tasks[..at]), learned(&tasks[at..])];
        left.merge(&mut right, &same);
        assert!(left.basis().is_whole());
        assert_eq!((left.samples(), left.counts()), (together.samples(), together.counts()));
        [SOFT, hard(0.25)].into_iter().for_each(|filter| near(&mut left, &mut together, filter));
    }
    // Samples are taken back.
    let mut taken = learned(&tasks);
    let (h, y) = &tasks[3];
    let mut gone = Mat::<f32>::from_fn(100, h.ncols(), |i, j| h[(i, j)] as f32);
    taken.unlearn(gone.as_mut(), y).unwrap();
    assert!(taken.basis().is_whole());
    [SOFT, hard(0.25)].into_iter().for_each(|filter| near(&mut taken, &mut learned(&tasks[..3]), filter));
    // And it can be compressed.
    let mut small = learned(&tasks);
    let values = small.eigenvalues().unwrap();
    small.compress(60).unwrap();
    assert_eq!((small.basis().rank(), small.basis().is_whole()), (60, false));
    let kept = small.eigenvalues().unwrap();
    assert!(kept.iter().zip(&values).all(|(a, b)| (a - b).abs() < 1e-5 * values[0]));
}

#[test]
fn directions_of_rounding_size_keep_the_basis_orthonormal() {
    // Lifted points of the plane: the spectrum falls to rounding, and rounding along the mean is as large as the rest.
    let mut random = Random(10);
    let p = Mat::from_fn(300, 2, |_, _| random.symmetric());
    let x = Mat::from_fn(2, 200, |_, j| random.symmetric() + if j % 2 == 0 { 1.0 } else { -1.0 });
    let h = Mat::from_fn(300, 200, |i, j| (p[(i, 0)] * x[(0, j)] + p[(i, 1)] * x[(1, j)]).max(0.0) as f32 as f64);
    let y: Vec<usize> = (0..200).map(|j| j % 2).collect();
    for sizes in [vec![200], vec![50; 4], vec![1; 200]] {
        let mut stats = Statistics::<f32>::new(300, 20.0);
        let mut first = 0;
        for size in sizes {
            absorb(&mut stats, &h.subcols(first, size).to_owned(), &y[first..first + size]);
            first += size;
        }
        let rank = stats.basis().rank();
        let apart = (stats.basis().gram() - Mat::<f64>::identity(rank, rank)).norm_max();
        assert!(rank > 40 && apart < 1e-4, "r = {rank}: {apart:e}");
        let solution = solve(&mut stats, hard(0.05), usize::MAX).unwrap();
        let w = stats.expand(solution.coefficients.as_ref());
        let scores = Mat::from_fn(2, 300, |c, i| w[(i, c)] as f64) * &h;
        let right = (0..200).filter(|&j| (scores[(1, j)] > scores[(0, j)]) == (y[j] == 1)).count();
        println!("r = {rank}, {apart:.1e}, {right} of 200, scores to {:.2}", scores.norm_max());
        assert!(right > 180, "{right} of 200 are classified as they were learned");
    }
}

#[test]
fn two_thousand_tasks_of_three_give_the_offline_solution() {
    // Combinations of 150 samples: the offline solution has a small rank, and most of each task is known.
    let source = stream(6, 300, &[150], CLASSES).remove(0).0;
    let mut random = Random(6);
    let combinations = |random: &mut Random, columns: usize| {
        let weights =
            Mat::from_fn(150, columns, |_, _| if random.below(30) == 0 { random.symmetric().abs() } else { 0.0 });
        let h = &source * weights;
        Mat::from_fn(300, columns, |i, j| h[(i, j)] as f32 as f64)
    };
    let tasks: Vec<_> =
        (0..2000).map(|t| (combinations(&mut random, 3), vec![t % 6, (t + 1) % 6, (t * t) % 6])).collect();
    let fresh = combinations(&mut random, 60);
    let (h, y) = concat(&tasks);
    let mut stats = Statistics::<f32>::new(300, 20.0);
    tasks.iter().for_each(|(h, y)| drop(absorb(&mut stats, h, y)));
    assert!(stats.basis().rank() <= 300);
    // The offline solution by the normal equations: E is smaller than M.
    for ridge in [1.0, 1e-2] {
        let scale = ridge * h.squared_norm_l2() / 6000.0;
        let mut a = &h * h.transpose();
        (0..300).for_each(|i| a[(i, i)] += scale);
        let exact = faer::prelude::Solve::solve(&a.llt(Side::Lower).unwrap(), &h * one_hot(&y, CLASSES).transpose());
        let solution = solve(&mut stats, Filter::Soft(Ridge::Fixed(scale)), usize::MAX).unwrap();
        let w = stats.expand(solution.coefficients.as_ref());
        let w = Mat::from_fn(300, CLASSES, |i, j| w[(i, j)] as f64);
        let scores = exact.transpose() * &fresh;
        let apart = (w.transpose() * &fresh - &scores).norm_max() / scores.norm_max();
        println!("ridge {ridge}: r = {}, {apart:.1e}", stats.basis().rank());
        assert!(apart < 1e-4, "ridge {ridge}: scores are off by {apart:e}");
    }
}
