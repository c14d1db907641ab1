//! What happens to a model besides learning: merging, forgetting, relabelling, taking back, and being written down.

mod common;

use std::collections::BTreeMap;

use common::*;
use faer::Mat;
use loranpac::filter::solve;
use loranpac::internals::{Basis, Buffer, Delta, Factor, Grid, Rows, Scalar, State, Statistics, Step};
use loranpac::{Error, Filter, Ridge, Truncation};
use proptest::prelude::*;

const WIDTH: usize = 260;
const CLASSES: usize = 6;
const SOFT: Filter = Filter::Soft(Ridge::GeometricMean);
const HARD: Filter = Filter::Hard { truncation: Truncation::Fraction(0.25), ridge: 0.0 };

/// Scores of fresh samples, one column per sample, by class.
fn scores<T: Scalar>(stats: &mut Statistics<T>, filter: Filter, h: &Mat<f64>) -> Mat<f64> {
    let solution = solve(stats, filter, 10_000).unwrap();
    let w = stats.expand(solution.coefficients.as_ref());
    Mat::from_fn(w.ncols(), w.nrows(), |i, j| w[(j, i)].to_f64()) * h
}

/// The largest difference of scores, as a share of the largest score.
fn distance(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    (a - b).norm_max() / b.norm_max()
}

fn learned<T: Scalar>(tasks: &[(Mat<f64>, Vec<usize>)]) -> Statistics<T> {
    let mut stats = Statistics::new(WIDTH, 20.0);
    tasks.iter().for_each(|(h, y)| drop(absorb(&mut stats, h, y)));
    stats
}

/// Shards are merged two at a time, in an order and a tree that `random` chooses, until one is left.
fn merged<T: Scalar>(mut shards: Vec<Statistics<T>>, random: &mut Random) -> Statistics<T> {
    while shards.len() > 1 {
        let mut other = shards.remove(random.below(shards.len()));
        let at = random.below(shards.len());
        let same: Vec<usize> = (0..other.counts().len()).collect();
        shards[at].merge(&mut other, &same);
    }
    shards.remove(0)
}

fn check_merge<T: Scalar>(seed: u64, shards: usize, filter: Filter, tolerance: f64) {
    let mut random = Random(seed);
    let sizes: Vec<usize> = (0..shards).map(|_| 3 + random.below(120 / shards)).collect();
    let tasks = stream(seed, WIDTH, &sizes, CLASSES);
    let fresh = stream(seed, WIDTH, &[40], CLASSES).remove(0).0;
    let parts = tasks.iter().map(|task| learned::<T>(std::slice::from_ref(task))).collect();
    let mut together = learned::<T>(&tasks);
    let mut merged = merged(parts, &mut random);
    assert_eq!(merged.basis().rank(), together.basis().rank());
    assert_eq!((merged.samples(), merged.counts()), (together.samples(), together.counts()));
    let apart = distance(&scores(&mut merged, filter, &fresh), &scores(&mut together, filter, &fresh));
    assert!(apart < tolerance, "seed {seed}, {shards} shards, {filter:?}: {apart:e}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn merging_equals_learning_together_in_any_order_and_tree(seed in 0u64..1_000_000, shards in 2usize..=16) {
        for filter in [SOFT, HARD] {
            check_merge::<f32>(seed, shards, filter, 1e-4);
            check_merge::<f64>(seed, shards, filter, 1e-9);
        }
    }

    #[test]
    fn unlearning_equals_never_having_learned(seed in 0u64..1_000_000, gone in 1usize..40) {
        let tasks = stream(seed, WIDTH, &[60, gone, 30], CLASSES);
        let fresh = stream(seed, WIDTH, &[40], CLASSES).remove(0).0;
        let mut never = learned::<f32>(&[tasks[0].clone(), tasks[2].clone()]);
        let mut taken = learned::<f32>(&tasks);
        let (h, y) = &tasks[1];
        let mut h = Mat::<f32>::from_fn(WIDTH, h.ncols(), |i, j| h[(i, j)] as f32);
        taken.unlearn(h.as_mut(), y).unwrap();
        assert_eq!((taken.samples(), taken.counts()), (never.samples(), never.counts()));
        assert_eq!(taken.basis().rank(), never.basis().rank());
        for filter in [SOFT, HARD] {
            let apart = distance(&scores(&mut taken, filter, &fresh), &scores(&mut never, filter, &fresh));
            assert!(apart < 1e-3, "seed {seed}, {filter:?}: {apart:e}");
        }
    }
}

#[test]
fn relabelling_equals_having_learned_under_the_other_label() {
    let tasks = stream(5, WIDTH, &[50, 20], CLASSES);
    let (h, y) = &tasks[1];
    let others: Vec<usize> = y.iter().map(|class| (class + 1) % CLASSES).collect();
    let mut right = learned::<f32>(&[tasks[0].clone(), (h.clone(), others.clone())]);
    let mut moved = learned::<f32>(&tasks);
    let work = || Mat::<f32>::from_fn(WIDTH, h.ncols(), |i, j| h[(i, j)] as f32);
    moved.relabel(work().as_mut(), y, &others).unwrap();
    assert_eq!(moved.counts(), right.counts());
    let fresh = stream(5, WIDTH, &[40], CLASSES).remove(0).0;
    assert!(distance(&scores(&mut moved, SOFT, &fresh), &scores(&mut right, SOFT, &fresh)) < 1e-5);
}

#[test]
fn what_was_never_learned_cannot_be_taken_back_or_moved() {
    let tasks = stream(6, WIDTH, &[50, 5], CLASSES);
    let mut stats = learned::<f32>(&tasks[..1]);
    let before = scores(&mut stats, SOFT, &tasks[1].0);
    let (h, y) = &tasks[1];
    let work = || Mat::<f32>::from_fn(WIDTH, h.ncols(), |i, j| h[(i, j)] as f32);
    assert!(matches!(stats.unlearn(work().as_mut(), y), Err(Error::NeverLearned { row: 0 })));
    assert!(matches!(stats.relabel(work().as_mut(), y, y), Err(Error::NeverLearned { row: 0 })));
    assert_eq!(scores(&mut stats, SOFT, &tasks[1].0), before, "a refusal changes nothing");
    // Once the basis has everything, strangers are noticed by what they leave.
    let many = stream(6, WIDTH, &[2 * WIDTH], CLASSES).remove(0);
    let mut full = learned::<f32>(std::slice::from_ref(&many));
    let mut stranger = Mat::<f32>::from_fn(WIDTH, 1, |i, _| 30.0 * ((i * 37) % 11) as f32);
    assert!(matches!(full.unlearn(stranger.as_mut(), &[0]), Err(Error::NeverLearned { row: 0 })));
    stats.compress(20).unwrap();
    assert!(matches!(stats.unlearn(work().as_mut(), y), Err(Error::NotExact { cuts: 1 })));
}

#[test]
fn a_forgotten_class_is_gone_and_the_others_score_as_before() {
    let tasks = stream(7, WIDTH, &[80], CLASSES);
    let mut stats = learned::<f32>(&tasks);
    let before = scores(&mut stats, HARD, &tasks[0].0);
    stats.forget(2);
    let after = scores(&mut stats, HARD, &tasks[0].0);
    assert_eq!(after.nrows(), CLASSES - 1);
    for (now, then) in [(0, 0), (1, 1), (2, 3), (3, 4), (4, 5)] {
        assert_eq!(after.row(now), before.row(then), "classes are independent");
    }
    // The error without data still is the error on the data: the samples of that class have no label now.
    let y = &tasks[0].1;
    let one_hot = Mat::from_fn(CLASSES - 1, y.len(), |i, j| if y[j] == i + usize::from(i >= 2) { 1.0 } else { 0.0 });
    let measured = (after - one_hot).squared_norm_l2();
    let known = solve(&mut stats, HARD, 10_000).unwrap().facts.train_mse * stats.samples() as f64;
    assert!((known - measured).abs() < 1e-4 * known, "{known} {measured}");
}

/// Statistics written down as a store does it: what has changed after every task, one step after the other.
#[derive(Default)]
struct Diary {
    columns: Vec<f32>,
    rows: Vec<Rows>,
    steps: Vec<Step>,
    sums: BTreeMap<usize, Vec<f32>>,
    cross: BTreeMap<usize, Vec<f64>>,
}

impl Diary {
    fn write(&mut self, stats: &mut Statistics<f32>, changes: Delta) {
        if changes.basis {
            self.columns.clear();
            self.rows.clear();
        }
        let (width, whole) = (stats.basis().width(), stats.basis().is_whole());
        let known = self.columns.len() / width;
        if !whole {
            let count = stats.basis().rank() - known;
            self.rows.push(Rows { count, packed: stats.basis().rows(known).map(Buffer::from) });
        }
        stats.basis().columns(known).for_each(|run| self.columns.extend_from_slice(run));
        if changes.gram {
            self.steps = vec![match stats.gram().to_grid() {
                Some(Grid { diagonal, numbers }) => Step::Grid { diagonal: diagonal.into(), numbers: numbers.into() },
                None => Step::Whole { rank: stats.basis().rank(), upper: Buffer::from(stats.gram().to_packed()) },
            }];
        }
        // Numbers in single precision are written as such.
        let kept = |factor: Factor| match factor.single() {
            Some(single) => Factor::from_single(factor.rows(), factor.matrix().ncols(), &single).unwrap(),
            None => factor,
        };
        self.steps.extend(changes.factors.into_iter().map(|factor| Step::Grow(kept(factor))));
        for class in changes.sums {
            self.sums.extend(stats.label_sum(class).map(|sum| (class, sum.to_vec())));
        }
        if whole {
            self.sums.clear();
        }
        for class in changes.cross {
            self.cross.insert(class, stats.cross().row(class).iter().copied().collect());
        }
    }

    fn read(&self, like: &Statistics<f32>) -> Statistics<f32> {
        let width = like.basis().width();
        let columns = self.columns.len() / width;
        let rank = if like.basis().is_whole() { width } else { columns };
        let blocks = Basis::<f32>::blocks_for(columns);
        let cross = |i: usize, j: usize| self.cross[&i].get(j).copied().unwrap_or(0.0);
        let state = State {
            width,
            rank,
            basis: blocks.map(|b| Buffer::from(self.columns[b.start * width..b.end * width].to_vec())).collect(),
            rows: self.rows.clone(),
            gram: self.steps.clone(),
            cross: Mat::from_fn(self.cross.len(), rank, cross),
            sums: self.sums.values().cloned().map(Buffer::from).collect(),
            counts: like.counts().to_vec(),
            samples: like.samples(),
            masses: None,
            losses: like.losses(),
            latest_cut: like.latest_cut(),
            outside: like.outside(),
            drop: 20.0,
        };
        Statistics::from_state(state).unwrap()
    }
}

/// Reads the model back after every task and goes on with what was read; it must be the same as one that never stopped.
fn check_resumption(finish: fn(&mut Statistics<f32>, usize) -> Option<Delta>) {
    check_resumption_at(WIDTH, &[40, 7, 90, 1, 30, 60], finish);
}

fn check_resumption_at(width: usize, sizes: &[usize], finish: fn(&mut Statistics<f32>, usize) -> Option<Delta>) {
    let tasks = stream(8, width, sizes, CLASSES);
    let mut whole = Statistics::<f32>::new(width, 20.0);
    let (mut diary, mut other) = (Diary::default(), whole.clone());
    for (t, (h, y)) in tasks.iter().enumerate() {
        let [_, changed] = [&mut whole, &mut other].map(|stats| {
            let mut delta = absorb(stats, h, y);
            finish(stats, t).into_iter().for_each(|later| delta.append(later));
            delta
        });
        diary.write(&mut other, changed);
        other = diary.read(&other);
    }
    assert_eq!(basis(&other), basis(&whole));
    assert_eq!(other.gram().to_matrix(), whole.gram().to_matrix());
    assert_eq!(other.cross(), whole.cross());
    let fresh = stream(8, width, &[40], CLASSES).remove(0).0;
    assert_eq!(scores(&mut other, HARD, &fresh), scores(&mut whole, HARD, &fresh));
}

/// Replaces Q by the identity as soon as it spans everything.
fn without_basis(stats: &mut Statistics<f32>, _: usize) -> Option<Delta> {
    stats.spans_all(stats.basis().rank() < stats.basis().width()).then(|| stats.make_whole())
}

#[test]
fn a_model_that_was_written_down_goes_on_bit_for_bit() {
    check_resumption(|_, _| None);
    // With a classifier formed now and then, with compressions, and with the paper's cuts.
    check_resumption(|stats, t| {
        if t % 2 == 0 {
            solve(stats, SOFT, 10_000).unwrap();
        }
        None
    });
    check_resumption(|stats, _| (stats.basis().rank() > 80).then(|| stats.compress(50).unwrap()));
    check_resumption(|stats, _| Some(stats.cut(|values| values.len() * 3 / 4).unwrap()));
}

#[test]
fn a_model_without_a_basis_goes_on_bit_for_bit() {
    // S becomes fixed point in a small task, in a large one, and at once; factors follow.
    for sizes in [[90, 40, 2, 3, 1, 3], [90, 30, 7, 3, 50, 2], [150, 3, 1, 40, 3, 2]] {
        check_resumption_at(100, &sizes, without_basis);
        check_resumption_at(100, &sizes, |stats, t| {
            let delta = without_basis(stats, t);
            solve(stats, SOFT, 10_000).unwrap();
            delta
        });
    }
    // Past cuts: S is no fixed point.
    check_resumption_at(100, &[90, 40, 2, 3, 50, 3], |stats, t| {
        without_basis(stats, t);
        stats.cut(|values| values.len() * 3 / 4).unwrap();
        Some(Delta::everything(CLASSES))
    });
}

#[test]
fn fixed_point_costs_no_accuracy() {
    // Of 1,100 samples in chunks of all sizes, against S in f64.
    let sizes = [90, 60, 1, 2, 3, 200, 1, 3, 240, 400, 100];
    let tasks = stream(12, 100, &sizes, CLASSES);
    let fresh = stream(12, 100, &[40], CLASSES).remove(0).0;
    let mut fixed = Statistics::<f32>::new(100, 20.0);
    for (t, (h, y)) in tasks.iter().enumerate() {
        absorb(&mut fixed, h, y);
        without_basis(&mut fixed, t);
    }
    let (h, _) = concat(&tasks);
    let exact = &h * h.transpose();
    let mut double = fixed.clone();
    assert!(fixed.gram().is_on_grid());
    assert!((fixed.gram().to_matrix() - &exact).norm_max() < 1e-6 * exact.norm_max());
    double.gram().set_matrix(exact.as_ref());
    assert!(!double.gram().is_on_grid());
    for filter in [SOFT, HARD, Filter::Soft(Ridge::Fixed(1e-3))] {
        let apart = distance(&scores(&mut fixed, filter, &fresh), &scores(&mut double, filter, &fresh));
        println!("{filter:?}: {apart:.1e}");
        assert!(apart < 1e-5, "{filter:?}: {apart:e}");
    }
}

#[test]
fn samples_far_longer_than_others_leave_s_in_double_precision() {
    let mut tasks = stream(13, 100, &[90, 60, 40, 3, 30, 2], CLASSES);
    let longer =
        |h: &Mat<f64>| Mat::from_fn(h.nrows(), h.ncols(), |i, j| if j == 1 { 1e6 * h[(i, j)] } else { h[(i, j)] });
    let state = |tasks: &[(Mat<f64>, Vec<usize>)]| {
        let mut stats = Statistics::<f32>::new(100, 20.0);
        for (t, (h, y)) in tasks.iter().enumerate() {
            absorb(&mut stats, h, y);
            without_basis(&mut stats, t);
        }
        stats
    };
    assert!(state(&tasks).gram().is_on_grid());
    let fresh = stream(13, 100, &[40], CLASSES).remove(0).0;
    // In a small task, in a large one, and before the basis was full.
    for place in [3, 4, 0] {
        let even = tasks[place].0.clone();
        tasks[place].0 = longer(&even);
        let mut stats = state(&tasks);
        assert!(!stats.gram().is_on_grid(), "{place}");
        // All other samples still count.
        let (h, y) = concat(&tasks);
        let mut exact = &h * h.transpose();
        let ridge = 1e-3 * even.squared_norm_l2();
        (0..100).for_each(|i| exact[(i, i)] += ridge);
        let w =
            faer::prelude::Solve::solve(&exact.llt(faer::Side::Lower).unwrap(), &h * one_hot(&y, CLASSES).transpose());
        let apart = distance(&scores(&mut stats, Filter::Soft(Ridge::Fixed(ridge)), &fresh), &(w.transpose() * &fresh));
        assert!(apart < 1e-3, "{place}: {apart:e}");
        tasks[place].0 = even;
    }
}

#[test]
fn a_model_whose_columns_are_orthonormal_themselves_learns_on() {
    // As models of format 1 and 2 are: Q itself is stored, without a factor.
    let tasks = stream(10, WIDTH, &[50, 40, 30], CLASSES);
    let mut old = learned::<f32>(&tasks[..2]);
    let (q, rank) = (basis(&old), old.basis().rank());
    let block = |b: std::ops::Range<usize>| -> Buffer<f32> {
        b.flat_map(|j| q.col(j).iter().map(|v| *v as f32).collect::<Vec<_>>()).collect::<Vec<_>>().into()
    };
    let state = State {
        width: WIDTH,
        rank,
        basis: Basis::<f32>::blocks_for(rank).map(block).collect(),
        rows: vec![Rows { count: rank, packed: None }],
        gram: vec![Step::Whole { rank, upper: Buffer::from(old.gram().to_packed()) }],
        cross: old.cross().clone(),
        sums: (0..old.counts().len()).map(|class| Buffer::from(old.label_sum(class).unwrap().to_vec())).collect(),
        counts: old.counts().to_vec(),
        samples: old.samples(),
        masses: None,
        losses: old.losses(),
        latest_cut: old.latest_cut(),
        outside: old.outside(),
        drop: 20.0,
    };
    let mut old = Statistics::<f32>::from_state(state).unwrap();
    absorb(&mut old, &tasks[2].0, &tasks[2].1);
    let (mut whole, mut parts) = (learned::<f32>(&tasks), [learned::<f32>(&tasks[..1]), old.clone()]);
    let fresh = stream(10, WIDTH, &[40], CLASSES).remove(0).0;
    for filter in [SOFT, HARD] {
        assert!(distance(&scores(&mut old, filter, &fresh), &scores(&mut whole, filter, &fresh)) < 1e-4);
    }
    // And it can be merged, in both directions.
    let same: Vec<usize> = (0..CLASSES).collect();
    let [new, old] = &mut parts;
    let mut both = new.clone();
    both.merge(old, &same);
    old.merge(new, &same);
    assert!(distance(&scores(&mut both, SOFT, &fresh), &scores(old, SOFT, &fresh)) < 1e-4);
}

#[test]
fn a_factor_that_does_not_fit_is_refused() {
    let rows = |packed: &[f64]| [Rows { count: 2, packed: Some(Buffer::from(packed.to_vec())) }];
    let refused = |rows: &[Rows]| Basis::<f32>::from_parts(3, 2, vec![Buffer::from(vec![1.0; 6])], rows).is_none();
    assert!(!refused(&rows(&[1.0, 0.5, 1.0])));
    for wrong in [&[1.0, 0.5][..], &[1.0, 0.5, 0.0], &[1.0, f64::NAN, 1.0], &[1.0, 0.5, 1.0, 1.0]] {
        assert!(refused(&rows(wrong)), "{wrong:?}");
    }
    assert!(refused(&[Rows { count: 1, packed: None }]));
    assert!(refused(&vec![Rows { count: usize::MAX, packed: None }; 2]));
}

#[test]
fn the_factor_of_a_task_does_not_hold_its_samples() {
    let (h, y) = stream(9, WIDTH, &[10], CLASSES).remove(0);
    let mut stats = Statistics::<f64>::new(WIDTH, 20.0);
    let factor = absorb(&mut stats, &h, &y).factors.remove(0);
    let back = basis(&stats) * factor.matrix();
    assert!(relative_error(&(&back * back.transpose()), &(&h * h.transpose())) < 1e-12, "it is the increment of H H'");
    for sample in 0..10 {
        let nearest = (0..10).map(|j| (back.col(j) - h.col(sample)).norm_l2() / h.col(sample).norm_l2());
        // The first row of a triangular factor alone is a sample's share; none of them is the sample.
        assert!(nearest.fold(f64::MAX, f64::min) > 0.05, "sample {sample}");
    }
}
