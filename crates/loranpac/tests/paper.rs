//! The paper's algorithms and identities, each against a literal f64 computation.

mod common;

use common::*;
use faer::Mat;
use loranpac::filter::{Solution, solve};
use loranpac::internals::{Scalar, Statistics};
use loranpac::{Filter, Ridge, Truncation};

const WIDTH: usize = 220;
const CLASSES: usize = 7;
const MAX_RANK: usize = 10_000;

fn kept(zeta: f64, samples: usize) -> usize {
    ((1.0 - zeta) * WIDTH.min(samples) as f64).ceil() as usize
}

/// Our statistics and the literal (U, Sigma) after every task of a stream under the paper's schedule.
fn check_paper_schedule<T: Scalar>(seed: u64, zeta: f64, sizes: &[usize], tolerance: f64) {
    let tasks = stream(seed, WIDTH, sizes, CLASSES);
    let mut stats = Statistics::<T>::new(WIDTH, 20.0);
    let (mut u, mut sigma) = (Mat::zeros(WIDTH, 0), Vec::new());
    let mut j = Mat::<f64>::zeros(CLASSES, WIDTH);
    let mut samples = 0;
    for (t, (h, y)) in tasks.iter().enumerate() {
        samples += h.ncols();
        let k = kept(zeta, samples);
        (u, sigma) = if t == 0 { truncated_svd(h, k) } else { incremental_truncated_svd(&u, &sigma, h, k) };
        j = &j + one_hot(y, CLASSES) * h.transpose();
        absorb(&mut stats, h, y);
        stats.cut(|mu| Truncation::Fraction(zeta).kept(mu, WIDTH, samples, MAX_RANK)).unwrap();

        let error = relative_error(&represented(&mut stats), &spectral(&u, &sigma, 2));
        assert!(error < tolerance, "task {t}: U Sigma^2 U' differs by {error:e}");
    }
    // Algorithm 4's last line: W = J U Sigma^-2 U'.
    let literal = &j * spectral(&u, &sigma, -2);
    let filter = Filter::Hard { truncation: Truncation::Fraction(zeta), ridge: 0.0 };
    let error = relative_error(&weights(&mut stats, filter), &literal);
    assert!(error < tolerance, "W differs by {error:e}");
}

fn weights<T: Scalar>(stats: &mut Statistics<T>, filter: Filter) -> Mat<f64> {
    let Solution { coefficients, .. } = solve(stats, filter, MAX_RANK).unwrap();
    let w = stats.expand(coefficients.as_ref());
    Mat::from_fn(w.ncols(), w.nrows(), |i, j| w[(j, i)].to_f64())
}

#[test]
fn algorithm_2_incremental_truncated_svd_f64() {
    for zeta in [0.1, 0.25, 0.5] {
        check_paper_schedule::<f64>(1, zeta, &[20, 15, 30, 1, 25, 20], 1e-8);
    }
}

#[test]
fn algorithm_2_incremental_truncated_svd_f32() {
    for zeta in [0.25, 0.5] {
        check_paper_schedule::<f32>(2, zeta, &[20, 15, 30, 1, 25, 20], 1e-4);
    }
}

#[test]
fn algorithm_3_truncated_svd() {
    // t = 1: no past, the plain truncated SVD of the first task.
    check_paper_schedule::<f64>(3, 0.25, &[40], 1e-8);
    check_paper_schedule::<f32>(3, 0.25, &[40], 1e-4);
}

#[test]
fn algorithm_4_continual_solver() {
    // More samples than dimensions: min(E, M_t) stops growing.
    check_paper_schedule::<f64>(4, 0.25, &[60; 6], 1e-8);
    check_paper_schedule::<f32>(4, 0.5, &[60; 6], 1e-4);
}

#[test]
fn algorithm_5_label_feature_covariance() {
    let tasks = stream(5, WIDTH, &[20, 3, 40], CLASSES);
    let mut stats = Statistics::<f32>::new(WIDTH, 20.0);
    tasks.iter().for_each(|(h, y)| drop(absorb(&mut stats, h, y)));
    let (h, y) = concat(&tasks);
    let exact = one_hot(&y, CLASSES) * h.transpose();
    let ours = Mat::from_fn(stats.counts().len(), WIDTH, |i, j| stats.label_sum(i).unwrap()[j] as f64);
    assert!(relative_error(&ours, &exact.subrows(0, ours.nrows()).to_owned()) < 1e-6);
    // N = J Q holds although N is never computed from J.
    let n = &ours * basis(&stats);
    assert!(relative_error(stats.cross(), &n) < 1e-5);
}

/// H H' - U Sigma^2 U' = sum over tasks of (B_i B_i' - tau_k(B_i B_i')).
#[test]
fn lemma_truncation_equality() {
    let tasks = stream(6, 90, &[20, 10, 25, 30, 15], CLASSES);
    let mut stats = Statistics::<f64>::new(90, 20.0);
    let mut cut_away = Mat::<f64>::zeros(90, 90);
    let mut cuts = Vec::new();
    for (h, y) in &tasks {
        absorb(&mut stats, h, y);
        let before = represented(&mut stats); // B_i B_i'
        let k = Truncation::Fraction(0.3).kept(&vec![1.0; 1000], 90, stats.samples(), MAX_RANK);
        let spectrum = before.self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
        let removed = spectrum[90 - 1 - k]; // mu_{k+1}: ascending order
        stats.cut(|_| k).unwrap();
        cut_away = &cut_away + (&before - represented(&mut stats));
        cuts.push(removed);
    }
    let (h, _) = concat(&tasks);
    let exact = &h * h.transpose();
    let left = &exact - represented(&mut stats);
    assert!(relative_error(&left, &cut_away) < 1e-9);
    // ... and the books agree with the spectra: a_{t-1}, a_t, and the largest eigenvalue removed before task t.
    let (books, latest) = (stats.losses(), stats.latest_cut().largest);
    let close = |a: f64, b: f64| (a - b).abs() < 1e-9 * b;
    assert!(close(books.lost, cuts[..4].iter().sum()) && close(latest, cuts[4]));
    assert!(close(books.largest, cuts[..4].iter().copied().fold(0.0, f64::max)));
    assert_eq!(books.cuts, 4);
}

/// Equation closed-form-solution-ICL: with the late schedule, W is the offline solution.
#[test]
fn late_schedule_equals_the_offline_closed_form() {
    fn check<T: Scalar>(sizes: &[usize], zeta: f64, tolerance: f64) {
        let tasks = stream(7, WIDTH, sizes, CLASSES);
        let mut stats = Statistics::<T>::new(WIDTH, 20.0);
        tasks.iter().for_each(|(h, y)| drop(absorb(&mut stats, h, y)));
        let (h, y) = concat(&tasks);
        let k = kept(zeta, h.ncols());
        let svd = h.thin_svd().unwrap();
        let s = svd.S().column_vector();
        // Y V_k Sigma_k^-1 U_k'
        let yv = one_hot(&y, CLASSES) * svd.V().subcols(0, k);
        let scaled = Mat::from_fn(CLASSES, k, |i, j| yv[(i, j)] / s[j]);
        let offline = scaled * svd.U().subcols(0, k).transpose();
        let ours = weights(&mut stats, Filter::Hard { truncation: Truncation::Fraction(zeta), ridge: 0.0 });
        let error = relative_error(&ours, &offline);
        assert!(error < tolerance, "{error:e} at condition {:e}", (s[0] / s[k - 1]).powi(2));
        assert!(relative_error(&represented(&mut stats), &(&h * h.transpose())) < tolerance);
        assert_eq!(stats.losses().lost, 0.0);
    }
    check::<f64>(&[20, 15, 30, 1, 25, 20], 0.25, 1e-8);
    check::<f64>(&[100, 200, 150], 0.5, 1e-7); // E < M
    check::<f32>(&[20, 15, 30, 1, 25, 20], 0.5, 1e-3);
}

/// Ridge with truncation, J U (Sigma^2 + lambda I)^-1 U', and the soft filter, J (H H' + lambda I)^-1.
#[test]
fn both_filters_equal_their_formulas() {
    let tasks = stream(8, WIDTH, &[30, 30, 30], CLASSES);
    let mut stats = Statistics::<f64>::new(WIDTH, 20.0);
    tasks.iter().for_each(|(h, y)| drop(absorb(&mut stats, h, y)));
    let (h, y) = concat(&tasks);
    let j = one_hot(&y, CLASSES) * h.transpose();
    let (u, sigma) = truncated_svd(&h, 60);
    let lambda = 37.5;
    let inverse: Vec<f64> = sigma.iter().map(|s| (s * s + lambda).sqrt()).collect();
    let literal = &j * spectral(&u, &inverse, -2);
    let ours = weights(&mut stats, Filter::Hard { truncation: Truncation::Rank(60), ridge: lambda });
    assert!(relative_error(&ours, &literal) < 1e-9);

    let mut regularised = &h * h.transpose();
    (0..WIDTH).for_each(|i| regularised[(i, i)] += lambda);
    use faer::prelude::Solve;
    let literal = regularised.llt(faer::Side::Lower).unwrap().solve(j.transpose()).transpose().to_owned();
    let ours = weights(&mut stats, Filter::Soft(Ridge::Fixed(lambda)));
    assert!(relative_error(&ours, &literal) < 1e-9);

    // lambda = det(S)^(1/r), from the singular values of all of H.
    let (_, sigma) = truncated_svd(&h, 90);
    let mean = (sigma.iter().map(|s| 2.0 * s.ln()).sum::<f64>() / 90.0).exp();
    let facts = solve(&mut stats, Filter::Soft(Ridge::GeometricMean), MAX_RANK).unwrap().facts;
    assert!((facts.ridge / mean - 1.0).abs() < 1e-6, "{} and {mean}", facts.ridge);
    // lambda = mu_k
    let facts = solve(&mut stats, Filter::Soft(Ridge::Eigenvalue(Truncation::Rank(50))), MAX_RANK).unwrap().facts;
    assert!((facts.ridge / sigma[49].powi(2) - 1.0).abs() < 1e-9);
}

/// The training error is known without data: exactly while nothing was lost, within its interval afterwards.
#[test]
fn training_mse_without_data() {
    let tasks = stream(9, WIDTH, &[30, 30, 30], CLASSES);
    let (h, y) = concat(&tasks);
    let target = one_hot(&y, CLASSES);
    let filters = [
        Filter::Hard { truncation: Truncation::Fraction(0.25), ridge: 0.0 },
        Filter::Hard { truncation: Truncation::Fraction(0.5), ridge: 3.0 },
        Filter::Soft(Ridge::GeometricMean),
    ];
    for filter in filters {
        let mut stats = Statistics::<f64>::new(WIDTH, 20.0);
        tasks.iter().for_each(|(h, y)| drop(absorb(&mut stats, h, y)));
        let facts = solve(&mut stats, filter, MAX_RANK).unwrap().facts;
        let measured = (weights(&mut stats, filter) * &h - &target).squared_norm_l2() / y.len() as f64;
        assert!((facts.train_mse - measured).abs() < 1e-9, "{filter:?}: {} and {measured}", facts.train_mse);
        assert_eq!(facts.train_mse, facts.train_mse_upper);

        // A compression in the middle loses something; the truth lies in the interval.
        let mut stats = Statistics::<f64>::new(WIDTH, 20.0);
        for (h, y) in &tasks {
            absorb(&mut stats, h, y);
            stats.compress(40).unwrap();
        }
        let facts = solve(&mut stats, filter, MAX_RANK).unwrap().facts;
        let measured = (weights(&mut stats, filter) * &h - &target).squared_norm_l2() / y.len() as f64;
        assert!(stats.losses().lost > 0.0 && facts.train_mse_upper > facts.train_mse);
        assert!(measured > facts.train_mse - 1e-9 && measured < facts.train_mse_upper + 1e-9, "{filter:?}: {measured}");
    }
}
