//! Random sequences of every operation on a model, against a list of its samples and a solution in double precision.
//!
//! After every step the model opens and verifies, its scores are those of the list, a training error that is called exact is
//! the one that is measured, and the folder holds no file that is not needed. Operations are repeated, and killed in
//! between. A sequence that fails is shrunk to the shortest one that does.
//!
//! 200 sequences by default; `LORANPAC_SEQUENCES=20000 cargo test --release -p loranpac-cli --test sequences -- --nocapture`
//! for more.

mod change;
mod data;
#[allow(dead_code)]
#[path = "../../../loranpac-store/tests/common/faulty.rs"]
mod faulty;
#[path = "../../../loranpac-store/tests/common/random.rs"]
mod random;
mod reference;
mod world;

use change::Seen;
use data::Data;
use loranpac::{Config, Filter, Prior, Ridge, Schedule, Truncation, Width};
use loranpac_store::{LiftRecord, Settings};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use world::World;

/// An operation. Seeds choose samples and classes among those that the model has at the time.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Learn {
        data: Data,
        count: usize,
        seed: u64,
    },
    Forget(u64),
    Rename(u64),
    Relabel {
        count: usize,
        seed: u64,
    },
    Unlearn {
        count: usize,
        seed: u64,
    },
    /// Samples that were never learned.
    UnlearnUnknown(u64),
    RelabelUnknown(u64),
    Calibrate(u64),
    Merge {
        data: Data,
        count: usize,
        seed: u64,
    },
    Rollback,
    Export,
    /// The last change again: nothing may happen.
    Repeat,
}

fn data() -> impl Strategy<Value = Data> {
    prop_oneof![
        4 => Just(Data::Clusters),
        1 => Just(Data::Zeros),
        2 => Just(Data::Duplicates),
        1 => Just(Data::OneClass),
        1 => Just(Data::Constant),
        1 => Just(Data::OneHot),
        1 => Just(Data::SomeZeros),
        2 => (-30i8..=15).prop_map(Data::Scaled),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let seed = || 0u64..1000;
    prop_oneof![
        6 => (data(), 0usize..=50, seed()).prop_map(|(data, count, seed)| Step::Learn { data, count, seed }),
        2 => seed().prop_map(Step::Forget),
        1 => seed().prop_map(Step::Rename),
        3 => (1usize..=20, seed()).prop_map(|(count, seed)| Step::Relabel { count, seed }),
        3 => (1usize..=20, seed()).prop_map(|(count, seed)| Step::Unlearn { count, seed }),
        1 => seed().prop_map(Step::UnlearnUnknown),
        1 => seed().prop_map(Step::RelabelUnknown),
        1 => seed().prop_map(Step::Calibrate),
        1 => (data(), 1usize..=30, seed()).prop_map(|(data, count, seed)| Step::Merge { data, count, seed }),
        2 => Just(Step::Rollback),
        1 => Just(Step::Export),
        3 => Just(Step::Repeat),
    ]
}

/// A step, and the call to the disk at which the process is killed, if it is.
fn steps() -> impl Strategy<Value = Vec<(Step, Option<usize>)>> {
    let killed = prop_oneof![2 => Just(None), 1 => (0usize..40).prop_map(Some)];
    prop::collection::vec((step(), killed), 1..14)
}

/// Stands for the limit of random ReLU features among the lifts.
const LIMIT: &str = "infinite";

fn settings() -> impl Strategy<Value = Settings> {
    let lift = prop_oneof![
        4 => Just("relu-random"),
        1 => Just("random"),
        1 => Just("rvfl"),
        1 => Just("abs-random"),
        1 => Just("fourier"),
        1 => Just("identity"),
        1 => Just("relu"),
        3 => Just(LIMIT),
    ];
    let width = prop_oneof![2 => 1usize..=40, 2 => 41usize..=150, 1 => Just(64usize)];
    let filter = prop_oneof![
        4 => Just(Filter::Soft(Ridge::GeometricMean)),
        1 => Just(Filter::Soft(Ridge::Fixed(0.5))),
        1 => Just(Filter::Soft(Ridge::Eigenvalue(Truncation::Fraction(0.5)))),
        1 => Just(Filter::Soft(Ridge::LeaveOneOut)),
        3 => Just(Filter::Hard { truncation: Truncation::Fraction(0.25), ridge: 0.0 }),
        1 => Just(Filter::Hard { truncation: Truncation::Rank(5), ridge: 0.1 }),
        1 => Just(Filter::Hard { truncation: Truncation::Threshold(1.0), ridge: 0.0 }),
    ];
    let capped = prop_oneof![4 => Just(None), 1 => (1usize..20).prop_map(Some)];
    let chunk = prop_oneof![2 => Just(256usize), 1 => 1usize..20];
    (lift, 1usize..=9, width, filter, (capped, chunk, any::<bool>(), any::<bool>()), 0usize..=2).prop_map(
        |(lift, dim, width, filter, (cap, chunk, paper, half), keep)| {
            let infinite = lift == LIMIT;
            let hard = matches!(filter, Filter::Hard { .. });
            let config = Config {
                filter: match filter {
                    Filter::Soft(Ridge::LeaveOneOut) if !infinite => Filter::Soft(Ridge::GeometricMean),
                    other => other,
                },
                max_rank: cap.unwrap_or(10_000),
                schedule: if paper && hard && !infinite { Schedule::Paper } else { Schedule::Late },
                chunk,
                half: half && infinite,
                ..Config::default()
            };
            let width = if ["rvfl", "abs-random"].contains(&lift) { width + dim } else { width };
            let lift = match infinite {
                true => LiftRecord::infinite(dim),
                false => LiftRecord::new(lift, dim, Width::Finite(width), 3, 0.1).unwrap(),
            };
            Settings { lift, config, keep, width_choice: None, encoder: None, prior: Prior::None }
        },
    )
}

#[test]
fn every_sequence_of_operations_keeps_every_promise() {
    let cases = std::env::var("LORANPAC_SEQUENCES").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let config =
        ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 3000, ..ProptestConfig::default() };
    let seen = std::cell::RefCell::new(Seen::default());
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&(settings(), steps()), |(settings, steps)| {
        let mut world = World::new(settings);
        for (step, killed) in steps {
            world.step(&step, killed);
        }
        world.other_process();
        seen.borrow_mut().add(&world.seen);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let seen = seen.into_inner();
    println!("{cases} sequences, 0 failures: {seen:?}");
    assert!(seen.compared > seen.checked / 4, "scores were hardly ever compared: {seen:?}");
    assert!(seen.exact > 0 && seen.killed > 0 && seen.repeated > 0, "{seen:?}");
}
