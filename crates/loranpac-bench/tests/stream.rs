//! Streams and runs on the embedded digits.

use std::ops::ControlFlow;

use loranpac::Label;
use loranpac_bench::maps::Maps;
use loranpac_bench::plan::{Plan, Resources};
use loranpac_bench::run::{Progress, Run};
use loranpac_bench::spec::{Scenario, Spec, When};
use loranpac_bench::stream;
use loranpac_data::embedded::digits;

fn sizes(scenario: Scenario) -> Vec<usize> {
    let data = digits();
    let order = stream::class_order(&data, 1993);
    let tasks = stream::tasks(&data, scenario, &order).unwrap();
    assert_eq!(tasks.iter().map(|t| t.train.len()).sum::<usize>(), data.train.len());
    assert_eq!(tasks.iter().map(|t| t.test.len()).sum::<usize>(), data.test.len());
    let classes = |rows: &[usize]| {
        let mut seen: Vec<usize> = rows.iter().map(|&row| data.train.y[row]).collect();
        seen.sort_unstable();
        seen.dedup();
        seen.len()
    };
    tasks.iter().map(|t| classes(&t.train)).collect()
}

#[test]
fn base_and_increment_divide_the_classes_and_the_last_task_takes_what_remains() {
    assert_eq!(sizes(Scenario::Class { base: 0, increment: 3 }), [3, 3, 3, 1]);
    assert_eq!(sizes(Scenario::Class { base: 4, increment: 3 }), [4, 3, 3]);
    assert_eq!(sizes(Scenario::Class { base: 0, increment: 1 }), [1; 10]);
    assert_eq!(sizes(Scenario::Class { base: 0, increment: 99 }), [10]);
    assert_eq!(sizes(Scenario::Joint), [10]);
}

#[test]
fn domains_become_tasks_with_all_their_classes() {
    let mut data = digits();
    let order = stream::class_order(&data, 0);
    assert_eq!(stream::tasks(&data, Scenario::Domain, &order).unwrap().len(), 3, "the digits have three");
    data.test.domain = None;
    assert!(stream::tasks(&data, Scenario::Domain, &order).is_err());
    let name = |row: usize| Label::from(["b", "a", "c"][row % 3]);
    data.train.domain = Some((0..data.train.len()).map(name).collect());
    data.test.domain = Some((0..data.test.len()).map(name).collect());
    let tasks = stream::tasks(&data, Scenario::Domain, &order).unwrap();
    assert_eq!(tasks.len(), 3);
    assert!(tasks[0].train.iter().all(|row| row % 3 == 1), "sorted by name: a is first");
}

#[test]
fn an_order_must_name_every_class_once() {
    let data = digits();
    let order = |labels: &str| {
        let labels: Vec<String> = labels.split(' ').map(str::to_owned).collect();
        stream::order_by_labels(&data, &labels).map_err(|e| e.to_string())
    };
    assert_eq!(order("3 1 2 0 4 5 6 7 8 9"), Ok(vec![3, 1, 2, 0, 4, 5, 6, 7, 8, 9]));
    assert_eq!(order("3 1 2 0 4 5 6 7 8"), Err("the class order does not name class 9".to_owned()));
    assert_eq!(order("3 1 2 0 4 5 6 7 8 8"), Err("class order, entry 10: \"8\" is named twice".to_owned()));
    assert_eq!(order("3 x"), Err("class order, entry 2: \"x\" is not a class of the data".to_owned()));
}

fn run(method: &str, eval: When, increment: usize) -> Run {
    let spec = Spec { width: 800, scenario: Scenario::Class { base: 0, increment }, eval, ..Spec::new(method) };
    let mut maps = Maps::default();
    let mut plan = Plan::new(&mut maps, digits(), vec![spec], Resources::threads(1)).unwrap();
    let mut shares = Vec::new();
    let mut watch = |progress: Progress<'_>| {
        shares.push(progress.share);
        ControlFlow::Continue(())
    };
    let run = plan.run(0, &mut watch).unwrap();
    assert!(shares.is_sorted() && *shares.last().unwrap() == 1.0);
    run
}

#[test]
fn a_run_learns_the_digits_one_class_at_a_time() {
    let run = run("loranpac", When::Every, 1);
    assert!(run.final_accuracy.unwrap() > 95.0, "{:?}", run.final_accuracy);
    assert_eq!(run.accuracy_matrix.get(0, 0), Some(100.0), "one class is always right");
    assert_eq!(run.tasks.last().unwrap().samples_seen, run.dataset.train);
    assert_eq!(run.tasks.iter().map(|t| t.classes_seen).collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
    assert!(run.total_accuracy.unwrap() > run.final_accuracy.unwrap());
    // The late schedule does not depend on the division into tasks: the classifier at the end is the joint one.
    let joint = self::run("loranpac", When::Final, 10);
    assert!((joint.final_accuracy_samples.unwrap() - run.final_accuracy_samples.unwrap()).abs() < 0.5);
}

#[test]
fn the_json_has_what_other_programs_rely_on() {
    let run = run("loranpac-soft", When::Final, 5);
    let json = serde_json::to_value(&run).unwrap();
    for key in [
        "method",
        "seed",
        "config",
        "dataset",
        "accuracy_matrix",
        "final_accuracy",
        "total_accuracy",
        "final_accuracy_samples",
        "average_incremental_accuracy",
        "forgetting",
        "tasks",
        "peak_rss_bytes",
    ] {
        assert!(json.get(key).is_some(), "{key}");
    }
    for key in [
        "classes_seen",
        "samples_seen",
        "basis_rank",
        "kept_rank",
        "learn_seconds",
        "weights_seconds",
        "eval_seconds",
        "train_mse",
        "certificate",
    ] {
        assert!(json["tasks"][1].get(key).is_some(), "{key}");
    }
    assert!(json["accuracy_matrix"][0][0].is_null() && json["accuracy_matrix"][0][1].is_number());
    assert!(json["total_accuracy"].is_null(), "not every task was evaluated");
    assert!(json["tasks"][1]["certificate"]["gamma"].is_null(), "nothing was cut: infinite");
    for key in ["name", "dim", "train", "test", "classes"] {
        assert!(json["dataset"].get(key).is_some(), "{key}");
    }
}
