//! What the statistics promise whatever the data: orthonormality, degenerate input, compression.

mod common;

use common::*;
use faer::Mat;
use loranpac::filter::solve;
use loranpac::internals::Statistics;
use loranpac::{Filter, Ridge, Truncation};
use proptest::prelude::*;

fn departure(q: &Mat<f64>) -> f64 {
    (q.transpose() * q - Mat::<f64>::identity(q.ncols(), q.ncols())).norm_max()
}

#[test]
fn orthonormality_survives_1000_updates_with_compressions() {
    let width = 600;
    let mut random = Random(11);
    let p = random.matrix(width, 20);
    let mut stats = Statistics::<f32>::new(width, 20.0);
    let mut compressions = 0;
    for update in 0..1000 {
        // Slowly changing, strongly correlated data: the residuals are small, which is the hard case.
        let x = Mat::from_fn(20, 3, |i, _| (i as f64 * 0.1 + update as f64 * 0.01).sin() + 0.05 * random.symmetric());
        let h = &p * x;
        absorb(&mut stats, &Mat::from_fn(width, 3, |i, j| h[(i, j)].max(0.0)), &[0, 1, update % 5]);
        if stats.basis().rank() > 120 {
            stats.compress(90).unwrap();
            compressions += 1;
        }
    }
    assert!(compressions > 20, "{compressions}");
    let departure = departure(&basis(&stats));
    assert!(departure < 1e-5, "max |Q'Q - I| = {departure:e}");
}

#[test]
fn orthonormality_survives_nearly_dependent_tasks() {
    let width = 500;
    let mut random = Random(12);
    let mut stats = Statistics::<f32>::new(width, 20.0);
    let first = random.matrix(width, 40);
    absorb(&mut stats, &first, &[0; 40]);
    // New samples are old ones plus a perturbation of 1e-5: cancellation of five digits.
    let near = Mat::from_fn(width, 40, |i, j| first[(i, j)] + 1e-5 * random.symmetric());
    absorb(&mut stats, &near, &[1; 40]);
    assert_eq!(stats.basis().rank(), 80);
    assert!(departure(&basis(&stats)) < 1e-5);
    let all = concat(&[(first, vec![0; 40]), (near, vec![1; 40])]).0;
    assert!(relative_error(&represented(&mut stats), &(&all * all.transpose())) < 1e-5);
}

/// Rank and Gram matrix after some tasks.
fn check_rank(tasks: &[Mat<f64>], rank: usize) -> Statistics<f32> {
    let mut stats = Statistics::<f32>::new(tasks[0].nrows(), 20.0);
    for h in tasks {
        absorb(&mut stats, h, &vec![0; h.ncols()]);
    }
    assert_eq!(stats.basis().rank(), rank);
    let pairs: Vec<_> = tasks.iter().map(|h| (h.clone(), Vec::new())).collect();
    let all = concat(&pairs).0;
    let exact = &all * all.transpose();
    assert!((represented(&mut stats) - &exact).norm_l2() <= 1e-5 * exact.norm_l2());
    assert!(departure(&basis(&stats)) < 1e-5);
    stats
}

#[test]
fn duplicate_samples_add_no_direction() {
    let h = Random(1).matrix(300, 30);
    check_rank(&[h.clone(), h.clone()], 30);
    let twice = Mat::from_fn(300, 60, |i, j| h[(i, j / 2)]);
    check_rank(&[twice.clone(), h, twice], 30);
}

#[test]
fn constant_and_zero_features_work() {
    check_rank(&[Mat::full(200, 10, 3.0), Mat::full(200, 1, -7.0)], 1);
    let mut nothing = check_rank(&[Mat::zeros(200, 5)], 0);
    for filter in [Filter::default(), Filter::Soft(Ridge::GeometricMean)] {
        let solution = solve(&mut nothing, filter, 100).unwrap();
        assert_eq!((solution.coefficients.ncols(), solution.facts.train_mse), (0, 1.0), "all scores are 0");
    }
    nothing.cut(|_| 3).unwrap();
    let mut stats = check_rank(&[Mat::zeros(200, 5), Random(2).matrix(200, 4), Mat::zeros(200, 1)], 4);
    assert!(solve(&mut stats, Filter::default(), 100).is_ok());
}

#[test]
fn one_sample_per_task_works() {
    let h = Random(3).matrix(120, 50);
    let singles: Vec<Mat<f64>> = (0..50).map(|j| h.subcols(j, 1).to_owned()).collect();
    check_rank(&singles, 50);
}

#[test]
fn a_width_below_the_number_of_samples_works() {
    let mut random = Random(4);
    let tasks: Vec<Mat<f64>> = (0..5).map(|_| random.matrix(40, 17)).collect();
    check_rank(&tasks, 40);
    check_rank(&[random.matrix(40, 170)], 40);
    check_rank(&[random.matrix(1, 3)], 1);
}

#[test]
fn a_task_inside_the_known_span_adds_no_direction() {
    let mut random = Random(5);
    let h = random.matrix(250, 25);
    let inside = &h * random.matrix(25, 60);
    check_rank(&[h, Mat::from_fn(250, 60, |i, j| inside[(i, j)] as f32 as f64)], 25);
}

#[test]
fn without_dropping_null_directions_are_kept() {
    let h = Random(6).matrix(300, 10);
    let mut stats = Statistics::<f32>::new(300, 0.0);
    absorb(&mut stats, &h, &[0; 10]);
    absorb(&mut stats, &h, &[1; 10]);
    assert_eq!(stats.basis().rank(), 20);
    assert!(departure(&basis(&stats)) < 1e-5);
}

#[test]
fn without_dropping_a_full_basis_still_represents_the_data() {
    // 40 samples in 50 dimensions, then 30 more of which the first five are duplicates: only ten directions fit.
    let mut random = Random(7);
    let first = random.matrix(50, 40);
    let second = Mat::from_fn(50, 30, |i, j| if j < 5 { first[(i, j)] } else { random.symmetric() });
    let mut stats = Statistics::<f32>::new(50, 0.0);
    absorb(&mut stats, &first, &[0; 40]);
    absorb(&mut stats, &second, &[1; 30]);
    assert_eq!(stats.basis().rank(), 50);
    let all = concat(&[(first, vec![]), (second, vec![])]).0;
    assert!(relative_error(&represented(&mut stats), &(&all * all.transpose())) < 1e-5);
}

#[test]
fn tiny_and_huge_samples_do_not_poison_the_statistics() {
    let mut h = Random(8).matrix(100, 6);
    for i in 0..100 {
        h[(i, 1)] *= 1e-42;
        h[(i, 2)] *= 1e-25;
        h[(i, 4)] *= 1e15;
    }
    let mut stats = Statistics::<f32>::new(100, 20.0);
    absorb(&mut stats, &h, &[0; 6]);
    assert_eq!(stats.basis().rank(), 5, "the subnormal one counts as zero");
    assert!(departure(&basis(&stats)) < 1e-5);
    assert!(solve(&mut stats, Filter::Soft(Ridge::GeometricMean), 100).unwrap().coefficients.norm_max().is_finite());
}

#[test]
fn compression_keeps_the_leading_directions_and_books_the_loss() {
    let tasks = stream(13, 150, &[40, 40], 5);
    let (h, y) = concat(&tasks);
    let mut stats = Statistics::<f64>::new(150, 20.0);
    absorb(&mut stats, &h, &y);
    stats.compress(30).unwrap();
    let (u, sigma) = truncated_svd(&h, 31);
    let exact = spectral(&u.subcols(0, 30).to_owned(), &sigma[..30], 2);
    assert!(relative_error(&represented(&mut stats), &exact) < 1e-10);
    assert!((stats.losses().lost / sigma[30].powi(2) - 1.0).abs() < 1e-9);
    // J is not truncated: N stays J Q for what comes later, too.
    let (more, labels) = &stream(14, 150, &[20], 5)[0];
    absorb(&mut stats, more, labels);
    let j = Mat::from_fn(stats.counts().len(), 150, |i, k| stats.label_sum(i).unwrap()[k]);
    assert!(relative_error(stats.cross(), &(j * basis(&stats))) < 1e-10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// However samples are divided into tasks, S, N and J represent the same matrices.
    #[test]
    fn the_division_into_tasks_does_not_matter(seed in 0u64..1000, cuts in prop::collection::vec(1usize..25, 1..6)) {
        let tasks = stream(seed, 80, &cuts, 4);
        let (h, y) = concat(&tasks);
        let mut parts = Statistics::<f64>::new(80, 20.0);
        tasks.iter().for_each(|(h, y)| drop(absorb(&mut parts, h, y)));
        let mut whole = Statistics::<f64>::new(80, 20.0);
        absorb(&mut whole, &h, &y);
        prop_assert!(relative_error(&represented(&mut parts), &represented(&mut whole)) < 1e-11);
        prop_assert_eq!(parts.counts(), whole.counts());
        let filter = Filter::Hard { truncation: Truncation::Fraction(0.25), ridge: 1.0 };
        let expand = |s: &mut Statistics<f64>| { let x = solve(s, filter, 1000).unwrap().coefficients; s.expand(x.as_ref()) };
        prop_assert!(relative_error(&expand(&mut parts), &expand(&mut whole)) < 1e-6);
    }
}
