//! What a user of a learner can rely on.

mod common;

use std::sync::Arc;

use common::{DIM, Random, accuracy, learn, samples};
use loranpac::internals::ExplicitModel;
use loranpac::lift::{self, FeatureMap, LiftSpec};
use loranpac::registry::{self, MethodOptions};
use loranpac::{Config, Features, Filter, Label, Learner, Model, Ridge, Schedule, Truncation};

fn map(name: &str, width: usize) -> Arc<dyn FeatureMap> {
    lift::build(name, LiftSpec { seed: 3, ..LiftSpec::new(DIM, width) }).unwrap()
}

fn model(config: Config) -> ExplicitModel {
    ExplicitModel::new(map("relu-random", 300), config).unwrap()
}

fn soft() -> Config {
    Config { filter: Filter::Soft(Ridge::GeometricMean), ..Config::default() }
}

#[test]
fn classes_may_come_new_again_and_mixed() {
    for config in [Config::default(), soft(), Config { schedule: Schedule::Paper, ..Config::default() }] {
        let mut model = model(config);
        learn(&mut model, &samples(1, &[5, 9], 15));
        learn(&mut model, &samples(2, &[-3], 10));
        learn(&mut model, &samples(3, &[9, 40], 15)); // 9 comes back, together with a new class
        assert_eq!(model.classes().labels(), [5, 9, -3, 40].map(Label::from));
        assert_eq!(model.statistics().counts(), [15, 30, 10, 15]);
        let accuracy = accuracy(&mut model, &samples(4, &[5, 9, -3, 40], 50));
        assert!(accuracy > 0.95, "{config:?}: {accuracy}");
    }
}

#[test]
fn a_class_in_two_tasks_is_the_same_as_in_one() {
    let all = samples(5, &[1, 2, 3], 20);
    let mut together = model(soft());
    learn(&mut together, &all);
    let mut apart = model(soft());
    let half = 30; // cuts through every class
    learn(&mut apart, &(all.0[..half * DIM].to_vec(), all.1[..half].to_vec()));
    learn(&mut apart, &(all.0[half * DIM..].to_vec(), all.1[half..].to_vec()));
    let test = samples(6, &[1, 2, 3], 10).0;
    let a = together.classifier().unwrap().scores(Features::new(&test, DIM).unwrap()).unwrap();
    let b = apart.classifier().unwrap().scores(Features::new(&test, DIM).unwrap()).unwrap();
    let difference = a.rows().flatten().zip(b.rows().flatten()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(difference < 1e-4, "{difference}");
}

#[test]
fn chunks_change_nothing_beyond_rounding_and_repeats_nothing_at_all() {
    let (train, test) = (samples(7, &[1, 2, 3, 4], 40), samples(8, &[1, 2, 3, 4], 5).0);
    let scores = |chunk: usize, config: Config| {
        let mut model = model(Config { chunk, ..config });
        learn(&mut model, &train);
        model.classifier().unwrap().scores(Features::new(&test, DIM).unwrap()).unwrap()
    };
    for config in [Config::default(), soft()] {
        let reference = scores(1000, config);
        assert_eq!(reference, scores(1000, config), "bit for bit");
        assert_eq!(scores(37, config), scores(37, config), "bit for bit");
        for chunk in [1, 7, 64] {
            let other = scores(chunk, config);
            let pairs = reference.rows().flatten().zip(other.rows().flatten());
            let difference = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(difference < 5e-3, "chunk {chunk}: {difference}");
        }
    }
}

#[test]
fn a_capped_basis_stays_within_its_slack_and_keeps_learning() {
    let mut model = model(Config { max_rank: 40, chunk: 16, ..soft() });
    for t in 0..30 {
        learn(&mut model, &samples(100 + t, &[1, 2, 3], 5));
        assert!(model.statistics().basis().rank() <= loranpac::plan::basis_with_slack(40, 16));
    }
    model.classifier().unwrap();
    let summary = model.summary();
    let certificate = summary.certificate.unwrap();
    assert!(certificate.cuts > 0 && certificate.lost > 0.0);
    assert!(summary.train_mse_upper > summary.train_mse);
    assert!(accuracy(&mut model, &samples(9, &[1, 2, 3], 30)) > 0.95);
}

#[test]
fn novelty_is_low_for_known_samples_and_high_for_foreign_ones() {
    for config in [Config::default(), soft()] {
        let mut model = ExplicitModel::new(map("identity", 0), config).unwrap();
        // Samples in the plane of the first two axes.
        let plane = |seed| {
            let mut random = Random(seed);
            (0..20)
                .flat_map(|_| {
                    let (a, b) = (random.symmetric() as f32, random.symmetric() as f32);
                    [a, b, 0., 0., 0., 0., 0., 0.]
                })
                .collect::<Vec<f32>>()
        };
        learn(&mut model, &(plane(1), vec![Label::from(0); 20]));
        let known = model.classifier().unwrap().novelty(Features::new(&plane(2), DIM).unwrap()).unwrap().unwrap();
        let foreign = model
            .classifier()
            .unwrap()
            .novelty(Features::new(&[0., 0., 1., 0., 0., 0., 0., 0.], DIM).unwrap())
            .unwrap()
            .unwrap();
        assert!(foreign[0] > 0.999, "{foreign:?}");
        assert!(
            known.iter().all(|n| *n < if matches!(config.filter, Filter::Soft(_)) { 0.7 } else { 1e-4 }),
            "{known:?}"
        );
    }
}

fn options(lift: &str, width: usize) -> MethodOptions {
    MethodOptions::new(map(lift, width))
}

#[test]
fn impossible_settings_are_refused_with_their_name() {
    let check = |config: Config, name: &str| {
        let error = ExplicitModel::new(map("relu", 0), config).err().expect("refused").to_string();
        assert!(error.contains(name), "{error}");
    };
    let hard = |truncation| Filter::Hard { truncation, ridge: 0.0 };
    check(Config { filter: hard(Truncation::Fraction(1.0)), ..Config::default() }, "truncate = 1");
    check(Config { filter: hard(Truncation::Fraction(-0.1)), ..Config::default() }, "truncate = -0.1");
    check(Config { filter: hard(Truncation::Rank(0)), ..Config::default() }, "rank = 0");
    check(Config { filter: Filter::Soft(Ridge::Fixed(-1.0)), ..Config::default() }, "ridge = -1");
    check(Config { filter: Filter::Soft(Ridge::Fixed(f64::NAN)), ..Config::default() }, "ridge = NaN");
    check(Config { max_rank: 0, ..Config::default() }, "max-rank = 0");
    check(Config { chunk: 0, ..Config::default() }, "chunk = 0");
    check(Config { drop: -1.0, ..Config::default() }, "drop = -1");
    check(Config { schedule: Schedule::Paper, ..soft() }, "schedule = paper");
    let spec = LiftSpec::new(3, 0);
    assert!(lift::build("relu-random", spec.clone()).err().unwrap().to_string().contains("width = 0"));
    assert!(lift::build("cosine", spec).err().unwrap().to_string().contains("relu-random, abs-random, random"));
    assert!(registry::find("loranpack").err().unwrap().to_string().contains("loranpac-soft"));
}

#[test]
fn every_lift_learns() {
    for entry in lift::LIFTS {
        let mut model = Model::new(map(entry.name, 200).into(), soft()).unwrap();
        assert_eq!(map(entry.name, 200).name(), entry.name);
        learn(&mut model, &samples(1, &[1, 2, 3], 20));
        let accuracy = accuracy(&mut model, &samples(2, &[1, 2, 3], 20));
        assert!(accuracy > 0.9, "{}: {accuracy}", entry.name);
    }
}

#[test]
fn min_norm_interpolates_and_loranpac_does_not_have_to() {
    let data = samples(3, &[1, 2, 3], 20);
    let mut exact = registry::find("min-norm").unwrap().build(&options("relu-random", 300)).unwrap();
    learn(&mut *exact, &data);
    exact.classifier().unwrap();
    assert!(exact.summary().train_mse.unwrap() < 1e-6);
    let mut truncated = registry::find("loranpac").unwrap().build(&options("relu-random", 300)).unwrap();
    learn(&mut *truncated, &data);
    truncated.classifier().unwrap();
    let summary = truncated.summary();
    assert_eq!(summary.kept_rank, Some(45));
    assert!(summary.train_mse.unwrap() > 1e-6 && summary.train_mse.unwrap() < 0.2);
}

/// Algorithm 4 with r_max through the learner, in small chunks, and its certificate: a_t and gamma_t from literal spectra.
#[test]
fn algorithm_4_with_a_cap_and_its_certificate() {
    use common::{incremental_truncated_svd, truncated_svd};
    let (zeta, max_rank, sizes) = (0.25, 12, [10usize, 9, 15, 20]);
    let config = Config {
        filter: Filter::Hard { truncation: Truncation::Fraction(zeta), ridge: 0.0 },
        schedule: Schedule::Paper,
        max_rank,
        chunk: 4,
        ..Config::default()
    };
    let lift = map("relu-random", 60);
    let mut model = ExplicitModel::new(lift.clone(), config).unwrap();
    let (mut u, mut sigma) = (faer::Mat::<f64>::zeros(60, 0), Vec::<f64>::new());
    let (mut seen, mut cuts) = (0, Vec::<f64>::new());
    for (t, &size) in sizes.iter().enumerate() {
        let (x, y) = samples(50 + t as u64, &[t as i64], size);
        learn(&mut model, &(x.clone(), y));
        let mut h = faer::Mat::<f32>::zeros(60, size);
        lift.lift(Features::new(&x, DIM).unwrap().as_matrix(), h.as_mut());
        let h = faer::Mat::from_fn(60, size, |i, j| h[(i, j)] as f64);
        seen += size;
        let k = max_rank.min(((1.0 - zeta) * 60.0f64.min(seen as f64)).ceil() as usize);
        // One more singular value than is kept, to see what is cut.
        let (full, values) =
            if t == 0 { truncated_svd(&h, k + 1) } else { incremental_truncated_svd(&u, &sigma, &h, k + 1) };
        cuts.push(values.get(k).map_or(0.0, |s| s * s));
        (u, sigma) = (full.subcols(0, k).to_owned(), values[..k].to_vec());

        model.classifier().unwrap();
        let certificate = model.summary().certificate.unwrap();
        let past = &cuts[..t];
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-4 * b.abs() + 1e-9;
        assert!(close(certificate.lost, past.iter().sum()), "task {t}: {} {past:?}", certificate.lost);
        assert!(close(certificate.accumulative_error, cuts.iter().sum()), "task {t}: a_t");
        assert_eq!(certificate.cuts, t);
        let gamma = (t > 0).then(|| sigma[k - 1].powi(2) / past.iter().copied().fold(0.0, f64::max));
        assert!(certificate.gamma.is_some() == gamma.is_some());
        assert!(certificate.gamma.zip(gamma).is_none_or(|(a, b)| close(a, b)), "task {t}: gamma");
    }
    assert!(model.statistics().basis().rank() <= max_rank + 4, "compressed after the cut");
}
