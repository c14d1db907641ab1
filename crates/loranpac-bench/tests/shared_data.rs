//! Real features, where they are: `../shared/data` beside the repository. Elsewhere these tests are skipped.

#[path = "../../loranpac/tests/skip/mod.rs"]
mod skip;

use std::ops::ControlFlow;
use std::path::PathBuf;

use loranpac::{Schedule, Truncation};
use loranpac_bench::maps::Maps;
use loranpac_bench::plan::{Plan, Resources};
use loranpac_bench::run::Run;
use loranpac_bench::spec::{Scenario, Spec, When};
use loranpac_data::Dataset;

/// The data set; none, and the test noted as skipped, where it is not there.
fn clinc(test: &str, per_class: usize) -> Option<Dataset> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/clinc150-minilm.npz");
    if !path.exists() {
        skip::skipped("../shared/data", test, "there is no clinc150-minilm.npz");
        return None;
    }
    let mut data = Dataset::open(&path).unwrap();
    assert_eq!((data.dim, data.classes.len(), data.train.len(), data.test.len()), (384, 150, 18_000, 4_500));
    data.limit_per_class(per_class);
    Some(data)
}

fn run(data: &Dataset, method: &str, schedule: Schedule, truncation: Option<Truncation>) -> Run {
    let scenario = Scenario::Class { base: 0, increment: 50 };
    let spec = Spec { width: 2000, scenario, eval: When::Final, truncation, schedule, ..Spec::new(method) };
    let mut maps = Maps::default();
    let mut plan = Plan::new(&mut maps, data.clone(), vec![spec], Resources::threads(1)).unwrap();
    plan.run(0, &mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn intents_are_learned_by_both_filters_and_schedules() {
    let Some(data) = clinc("intents_are_learned_by_both_filters_and_schedules", 5) else { return };
    let accuracy = |method, schedule| run(&data, method, schedule, None).final_accuracy.unwrap();
    let late = accuracy("loranpac", Schedule::Late);
    let paper = accuracy("loranpac", Schedule::Paper);
    let soft = accuracy("loranpac-soft", Schedule::Late);
    assert!(late > 70.0 && soft > 70.0, "late {late}, soft {soft}");
    assert!((late - paper).abs() < 1.5, "late {late}, paper {paper}");
}

/// The file has an exact duplicate among its first 30 samples per class; keeping its null direction is fatal.
#[test]
fn one_duplicate_collapses_min_norm_and_nothing_else() {
    let Some(mut data) = clinc("one_duplicate_collapses_min_norm_and_nothing_else", 30) else { return };
    // The duplicate alone, among 40 classes or so: enough samples to see it, few enough for a test.
    let row =
        |data: &Dataset, i: usize| data.train.x[i * 384..(i + 1) * 384].iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    let mut seen = std::collections::HashMap::new();
    let pair = (0..data.train.len()).find_map(|i| seen.insert(row(&data, i), i).map(|first| (first, i)));
    let (first, second) = pair.expect("the duplicate pair");
    let keep: Vec<usize> = (0..data.train.len()).filter(|&i| i == first || i == second || i % 6 == 0).collect();
    let (x, y) = data.train.gather(&keep, 384);
    (data.train.x, data.train.y) = (x, y);
    let zeta = Some(Truncation::Fraction(0.0));
    let kept = run(&data, "min-norm", Schedule::Late, None).final_accuracy.unwrap();
    let dropped = run(&data, "loranpac", Schedule::Late, zeta);
    assert!(kept < 20.0, "{kept}");
    assert!(dropped.final_accuracy.unwrap() > 70.0, "{:?}", dropped.final_accuracy);
    assert_eq!(dropped.tasks.last().unwrap().basis_rank, Some(data.train.len() - 1));
}
