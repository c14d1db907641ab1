//! One suite for everything in the lists: every method and every lift is found in the registry and must keep every
//! promise, except those that its entry says it cannot make, with the reason.

mod common;

use std::sync::Arc;

use common::{DIM, Task, accuracy, learn, samples};
use loranpac::lift::{self, Activation, FeatureMap, LIFTS, LiftSpec, Operation, Projection};
use loranpac::registry::{Input, METHODS, Method, MethodOptions, Promise};
use loranpac::{Error, FeatureSpace, Features, Label, Learner, LiftedSamples, Scores, StreamSizes, Width};

const WIDTH: usize = 150;

const FINITE: Width = Width::Finite(WIDTH);

/// A method with a width: those that have an infinite one are tested with both.
struct Subject {
    method: &'static Method,
    width: Width,
}

impl std::ops::Deref for Subject {
    type Target = Method;

    fn deref(&self) -> &Method {
        self.method
    }
}

fn subjects() -> impl Iterator<Item = Subject> {
    let widths = |method: &Method| if method.infinite { &[FINITE, Width::Infinite][..] } else { &[FINITE] };
    // Methods on images and texts have their learners in another crate; `crates/loranpac-cli/tests/conformance.rs` is their suite.
    let ours = METHODS.iter().filter(|method| method.input != Input::Raw);
    ours.flat_map(move |method| widths(method).iter().map(move |width| Subject { method, width: *width }))
}

fn space(method: &Subject) -> FeatureSpace {
    let spec = LiftSpec { seed: 3, ..LiftSpec::new(DIM, WIDTH) };
    FeatureSpace::build(method.input.lift("relu-random"), method.width, spec).unwrap()
}

fn build(method: &Subject) -> Box<dyn Learner> {
    // Twenty epochs are forty steps on so few samples: gradient descent needs more to get anywhere.
    build_with(method, if method.knows("epochs") { &[("epochs", "200")] } else { &[] })
}

fn build_with(method: &Subject, settings: &[(&str, &str)]) -> Box<dyn Learner> {
    let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    method.build(&MethodOptions { seed: 11, settings, ..MethodOptions::new(space(method)) }).unwrap()
}

fn scores(model: &mut dyn Learner, x: &[f32]) -> Scores {
    model.classifier().unwrap().scores(Features::new(x, DIM).unwrap()).unwrap()
}

/// The largest difference of scores, relative to the largest score.
fn difference(a: &Scores, b: &Scores) -> f32 {
    let size = a.rows().flatten().fold(0.0f32, |most, v| most.max(v.abs()));
    assert_eq!(a.rows().len(), b.rows().len());
    assert!(a.rows().chain(b.rows()).flatten().all(|v| v.is_finite()));
    a.rows().flatten().zip(b.rows().flatten()).fold(0.0f32, |most, (a, b)| most.max((a - b).abs())) / size
}

/// Runs a check on every method.
fn for_every_method(check: impl Fn(&Subject)) {
    subjects().for_each(|subject| check(&subject));
}

/// Runs a check on the methods that promise it, and prints who does not, and why.
fn for_those_who_promise(promise: Promise, check: impl Fn(&Subject)) {
    let mut checked = 0;
    for method in subjects() {
        match method.exemption(promise) {
            Some(reason) => println!("{promise:?}: {} does not promise it: {reason}", method.name),
            None => {
                check(&method);
                checked += 1;
            }
        }
    }
    assert!(checked >= 4, "{promise:?} must mean something");
}

fn slice(task: &Task, rows: impl Iterator<Item = usize>) -> Task {
    let rows: Vec<usize> = rows.collect();
    let x = rows.iter().flat_map(|&row| task.0[row * DIM..(row + 1) * DIM].iter().copied()).collect();
    (x, rows.iter().map(|&row| task.1[row].clone()).collect())
}

#[test]
fn names_are_unique_and_entries_say_something() {
    for (i, method) in METHODS.iter().enumerate() {
        assert!(METHODS[..i].iter().all(|other| other.name != method.name), "{} twice", method.name);
        assert!(!method.summary.is_empty());
        assert!(method.exempt.iter().all(|(_, reason)| reason.len() > 20), "{} owes a reason", method.name);
        assert!(method.continual || !method.exemplar_free, "{}: joint methods keep samples", method.name);
    }
    for method in subjects() {
        assert!(build(&method).settings().is_object(), "{}", method.name);
    }
}

#[test]
fn methods_on_images_and_texts_refuse_features_and_check_settings() {
    for method in METHODS.iter().filter(|method| method.input == Input::Raw) {
        let space = FeatureSpace::build("identity", FINITE, LiftSpec::new(DIM, DIM)).unwrap();
        let build = |settings: &[(&str, &str)]| {
            let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            let options = MethodOptions { settings, ..MethodOptions::new(space.clone()) };
            method.build(&options).map(|_| ()).unwrap_err()
        };
        assert!(build(&[]).to_string().contains("images or texts"), "{}", build(&[]));
        assert!(matches!(build(&[("no-such", "1")]), Error::UnknownSetting { .. }), "{}", method.name);
    }
}

#[test]
fn every_method_learns_classes_that_come_new_again_and_mixed() {
    for_every_method(|method| {
        let mut model = build(method);
        learn(&mut *model, &samples(1, &[5, 9], 15));
        learn(&mut *model, &samples(2, &[-3], 10));
        learn(&mut *model, &samples(3, &[9, 40], 15)); // 9 comes back, together with a new class
        assert_eq!(model.classes().labels(), [5, 9, -3, 40].map(Label::from), "{}", method.name);
        assert_eq!((model.summary().samples, model.summary().classes), (70, 4), "{}", method.name);
        let accuracy = accuracy(&mut *model, &samples(4, &[5, 9, -3, 40], 25));
        let enough = if method.exemption(Promise::Stability).is_some() { 0.5 } else { 0.9 };
        assert!(accuracy > enough, "{}: {accuracy}", method.name);
    });
}

#[test]
fn predicting_is_pure() {
    for_every_method(|method| {
        let mut model = build(method);
        learn(&mut *model, &samples(1, &[1, 2, 3], 12));
        let (a, b) = (samples(2, &[1, 2], 6).0, samples(3, &[3], 400).0);
        let before = scores(&mut *model, &a);
        scores(&mut *model, &b);
        model.classifier().unwrap();
        model.classifier().unwrap().novelty(Features::new(&b, DIM).unwrap()).unwrap();
        assert_eq!(before, scores(&mut *model, &a), "{}", method.name);
        // One sample at a time is the same as together, up to the order of sums.
        let one = scores(&mut *model, &a[..DIM]);
        let together: Vec<f32> = before.row(0).to_vec();
        let size = together.iter().fold(0.0f32, |most, v| most.max(v.abs()));
        assert!(one.row(0).iter().zip(&together).all(|(a, b)| (a - b).abs() <= 1e-3 * size), "{}", method.name);
    });
}

#[test]
fn new_classes_grow_the_output_and_leave_the_meaning_of_old_ones() {
    for_every_method(|method| {
        let mut model = build(method);
        learn(&mut *model, &samples(1, &[7, 8], 15));
        let old = samples(2, &[7, 8], 10);
        assert_eq!(scores(&mut *model, &old.0).row(0).len(), 2, "{}", method.name);
        learn(&mut *model, &samples(3, &[6], 15));
        assert_eq!(scores(&mut *model, &old.0).row(0).len(), 3, "{}", method.name);
        assert_eq!(model.classes().labels()[..2], [7, 8].map(Label::from), "{}", method.name);
        let enough = if method.exemption(Promise::Stability).is_some() { 0.5 } else { 0.9 };
        assert!(accuracy(&mut *model, &old) > enough, "{}: {}", method.name, accuracy(&mut *model, &old));
    });
}

#[test]
fn labels_may_be_any_integers_or_strings() {
    for_every_method(|method| {
        let (mut numbers, mut words) = (build(method), build(method));
        let task = samples(1, &[i64::MIN, 0, i64::MAX], 10);
        let name = |label: &Label| Label::from(format!("class {label} \u{e9}").as_str());
        let named = (task.0.clone(), task.1.iter().map(name).collect());
        learn(&mut *numbers, &task);
        learn(&mut *words, &named);
        let test = samples(2, &[0], 5).0;
        assert_eq!(scores(&mut *numbers, &test), scores(&mut *words, &test), "{}", method.name);
        let expected: Vec<Label> = numbers.classes().labels().iter().map(name).collect();
        assert_eq!(words.classes().labels(), expected, "{}", method.name);
    });
}

#[test]
fn the_same_seed_gives_the_same_result() {
    for_every_method(|method| {
        let run = || {
            let mut model = build(method);
            learn(&mut *model, &samples(1, &[1, 2], 12));
            learn(&mut *model, &samples(2, &[3], 9));
            scores(&mut *model, &samples(3, &[1, 2, 3], 5).0)
        };
        assert_eq!(run(), run(), "{}", method.name);
    });
}

/// The scores after learning a task forwards, and after learning it backwards.
fn order_matters(name: &str, build: &dyn Fn() -> Box<dyn Learner>, each: usize) {
    let task = samples(1, &[1, 2, 3], each);
    let mut forwards = build();
    learn(&mut *forwards, &task);
    let mut backwards = build();
    // The first three samples stay, so that the classes keep their numbers.
    learn(&mut *backwards, &slice(&task, (0..3).chain((3..3 * each).rev())));
    let test = samples(2, &[1, 2, 3], 10).0;
    let off = difference(&scores(&mut *forwards, &test), &scores(&mut *backwards, &test));
    assert!(off < 2e-3, "{name}: order changes scores by {off}");
}

/// The scores after learning a task at once, and after learning it in two parts that cut through every class.
fn division_matters(name: &str, build: &dyn Fn() -> Box<dyn Learner>, each: usize) {
    let task = samples(5, &[1, 2, 3], each);
    let mut together = build();
    learn(&mut *together, &task);
    let mut apart = build();
    let part = 3 * each * 4 / 9 + 2;
    learn(&mut *apart, &slice(&task, 0..part));
    learn(&mut *apart, &slice(&task, part..3 * each));
    let test = samples(6, &[1, 2, 3], 10).0;
    let off = difference(&scores(&mut *together, &test), &scores(&mut *apart, &test));
    assert!(off < 2e-3, "{name}: division changes scores by {off}");
}

#[test]
fn the_order_of_samples_inside_a_task_does_not_matter() {
    for_those_who_promise(Promise::SampleOrder, |method| order_matters(method.name, &|| build(method), 20));
}

#[test]
fn learning_in_two_halves_equals_learning_at_once() {
    for_those_who_promise(Promise::Halves, |method| {
        division_matters(method.name, &|| build(method), 20);
    });
}

/// Tasks of 600 samples are learned in chunks, and there are four times as many samples as lifted features.
#[test]
fn large_tasks_keep_the_same_promises() {
    for method in &subjects().filter(|method| !method.knows("epochs")).collect::<Vec<_>>() {
        if method.exemption(Promise::SampleOrder).is_none() {
            order_matters(method.name, &|| build(method), 200);
        }
        if method.exemption(Promise::Halves).is_none() {
            division_matters(method.name, &|| build(method), 200);
        }
    }
}

/// Methods that choose lambda on held-out samples owe these promises as soon as it is fixed.
#[test]
fn with_a_fixed_ridge_neither_order_nor_division_matters() {
    let mut checked = 0;
    for method in &subjects().filter(|method| method.knows("ridge")).collect::<Vec<_>>() {
        let settings: &[_] =
            if method.knows("precision") { &[("ridge", "1"), ("precision", "64")] } else { &[("ridge", "1")] };
        for each in [20, 200] {
            order_matters(method.name, &|| build_with(method, settings), each);
            division_matters(method.name, &|| build_with(method, settings), each);
        }
        checked += 1;
    }
    assert!(checked >= 6);
}

/// Learning `bad` after a good task is refused, and predictions stay what they were to the last bit.
#[track_caller]
fn check_refused(x: &[f32], dim: usize, labels: usize, expected: impl Fn(&Error) -> bool) {
    for_every_method(|method| {
        let mut model = build(method);
        learn(&mut *model, &samples(1, &[1, 2], 10));
        let test = samples(2, &[1, 2], 5).0;
        let before = scores(&mut *model, &test);
        let error = model.learn(Features::new(x, dim).unwrap(), &vec![Label::from(77); labels]).unwrap_err();
        assert!(expected(&error), "{}: {error}", method.name);
        assert_eq!((model.classes().len(), model.summary().samples), (2, 20), "{}", method.name);
        assert_eq!(scores(&mut *model, &test), before, "{}", method.name);
        if labels == x.len() / dim && labels > 0 {
            let error = model.classifier().unwrap().scores(Features::new(x, dim).unwrap()).unwrap_err();
            assert!(expected(&error), "{}: {error}", method.name);
        }
    });
}

#[test]
fn nan_and_infinity_are_refused_by_row() {
    let mut x = vec![0.5; 3 * DIM];
    x[DIM + 2] = f32::NAN;
    check_refused(&x, DIM, 3, |e| matches!(e, Error::NotFinite { row: 1, column: 2, .. }));
    x[DIM + 2] = f32::NEG_INFINITY;
    check_refused(&x, DIM, 3, |e| matches!(e, Error::NotFinite { row: 1, column: 2, .. }));
    x[DIM + 2] = 1e30;
    check_refused(&x, DIM, 3, |e| matches!(e, Error::TooLarge { row: 1, .. }));
}

#[test]
fn a_wrong_width_is_refused() {
    check_refused(&[0.0; 10], 5, 2, |e| matches!(e, Error::Dimension { expected: DIM, found: 5 }));
}

#[test]
fn labels_and_rows_that_differ_in_number_are_refused() {
    check_refused(&[0.0; 3 * DIM], DIM, 2, |e| *e == Error::LabelCount { samples: 3, labels: 2 });
}

#[test]
fn an_empty_task_is_refused() {
    check_refused(&[], DIM, 0, |e| *e == Error::EmptyTask);
}

#[test]
fn predicting_before_learning_is_refused() {
    for_every_method(|method| {
        let x = [0.0; DIM];
        let answer =
            build(method).classifier().and_then(|classifier| classifier.predict(Features::new(&x, DIM).unwrap()));
        assert_eq!(answer, Err(Error::NothingLearned), "{}", method.name);
    });
}

#[test]
fn settings_that_are_not_theirs_are_refused_with_those_that_are() {
    for_every_method(|method| {
        let with = |name: &str, value: &str| {
            let settings = vec![(name.to_owned(), value.to_owned())];
            method.build(&MethodOptions { settings, ..MethodOptions::new(space(method)) }).err()
        };
        let message = with("rdge", "1").expect("refused").to_string();
        assert!(message.contains("rdge") && message.contains(method.name), "{message}");
        for (name, _) in method.settings {
            let message = with(name, "seven").expect("refused").to_string();
            assert!(message.contains(name) && message.contains("seven"), "{}: {message}", method.name);
            assert!(with(name, "-1").is_some(), "{}: {name} = -1 is accepted", method.name);
        }
    });
}

/// One sample per task, duplicates, constant and zero features, more samples than the width.
#[test]
fn degenerate_data_gives_finite_scores() {
    for_those_who_promise(Promise::Stability, |method| {
        let mut model = build(method);
        let check = |model: &mut dyn Learner, what: &str| {
            let scores = scores(model, &samples(9, &[1, 2], 3).0);
            let finite = scores.rows().flatten().all(|v| v.is_finite());
            assert!(finite, "{}: {what}: {:?}", method.name, scores.row(0));
        };
        learn(&mut *model, &samples(1, &[1], 1));
        check(&mut *model, "one sample");
        let task = samples(1, &[1, 2], 4);
        learn(&mut *model, &task);
        learn(&mut *model, &task);
        check(&mut *model, "duplicates");
        learn(&mut *model, &(vec![0.0; 3 * DIM], vec![Label::from(1), Label::from(2), Label::from(2)]));
        learn(&mut *model, &(vec![0.7; 2 * DIM], vec![Label::from(1), Label::from(2)]));
        check(&mut *model, "zeros and constants");
        learn(&mut *model, &samples(3, &[1, 2], WIDTH));
        check(&mut *model, "more samples than the width");
    });
}

#[test]
fn estimates_of_memory_grow_with_the_stream_and_never_overflow() {
    for_every_method(|method| {
        let model = build(method);
        let sizes = |samples| StreamSizes { samples, largest_task: samples, classes: 3 };
        let estimate = model.peak_bytes(&sizes(60));
        assert!(model.peak_bytes(&sizes(100_000)) >= estimate, "{}", method.name);
        let absurd = StreamSizes { samples: usize::MAX, largest_task: usize::MAX, classes: usize::MAX };
        assert!(model.peak_bytes(&absurd) > estimate, "{}: no overflow", method.name);
    });
}

fn lifts(dim: usize, width: usize, keep: bool) -> Vec<Arc<dyn FeatureMap>> {
    LIFTS
        .iter()
        .map(|e| lift::build(e.name, LiftSpec { keep, seed: 5, ..LiftSpec::new(dim, width) }).unwrap())
        .collect()
}

fn lifted(map: &dyn FeatureMap, x: &[f32], dim: usize) -> faer::Mat<f32> {
    let x = Features::new(x, dim).unwrap();
    let mut h = faer::Mat::<f32>::zeros(map.width(), x.len());
    map.lift(x.as_matrix(), h.as_mut());
    h
}

#[test]
fn lifts_keep_their_word_on_names_sizes_and_memory() {
    for (entry, map) in LIFTS.iter().zip(lifts(DIM, 1237, true)) {
        assert_eq!(map.name(), entry.name);
        let expected = if entry.projection == lift::Rows::None { DIM } else { 1237 };
        assert_eq!((map.dim(), map.width()), (DIM, expected), "{}", entry.name);
        assert_eq!(map.bytes(), 4 * DIM * entry.projection.count(DIM, 1237), "{}", entry.name);
        let spec = LiftSpec::new(DIM, 0);
        assert!(entry.projection == lift::Rows::None || lift::build(entry.name, spec).is_err(), "{}", entry.name);
    }
}

#[test]
fn lifting_together_alone_kept_or_regenerated_on_any_number_of_threads_is_the_same() {
    let x = samples(1, &[1, 2, 3], 7).0;
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for (kept, regenerated) in lifts(DIM, 1237, true).iter().zip(lifts(DIM, 1237, false)) {
        let together = lifted(&**kept, &x, DIM);
        assert_eq!(together, lifted(&*regenerated, &x, DIM), "{}", kept.name());
        assert_eq!(together, one.install(|| lifted(&**kept, &x, DIM)), "{}", kept.name());
        let last = lifted(&**kept, &x[20 * DIM..], DIM);
        let off = (together.as_ref().subcols(20, 1) - &last).norm_max();
        assert!(off < 1e-5, "{}: {off}", kept.name());
    }
}

#[test]
fn zero_tiny_and_huge_samples_lift_to_finite_features() {
    for map in lifts(DIM, 300, true) {
        let x: Vec<f32> = [0.0f32, 1e-40, 1e-38, 1e-20, 1e12].iter().flat_map(|&v| [v; DIM]).collect();
        assert!(lifted(&*map, &x, DIM).is_all_finite(), "{}", map.name());
    }
}

#[test]
fn a_samples_scores_do_not_depend_on_its_batch() {
    for_every_method(|method| {
        let mut model = build(method);
        learn(&mut *model, &samples(1, &[0, 1, 2, 3, 4, 5], 12));
        let (x, _) = samples(2, &[0, 1, 2, 3, 4, 5], 70);
        let whole = scores(&mut *model, &x);
        for count in [1, 2, 3, 5, 7, 8, 9, 33, 385] {
            let part = scores(&mut *model, &x[..count * DIM]);
            for row in 0..count {
                assert_eq!(part.row(row), whole.row(row), "{}: row {row} of {count}", method.name);
            }
        }
    });
}

#[test]
fn samples_that_were_lifted_before_score_as_they_do_afresh() {
    let lifting = std::cell::Cell::new(0);
    for_every_method(|method| {
        let mut model = build(method);
        let (x, _) = samples(2, &[0, 1, 2, 3, 4, 5], 70);
        let mut lifted = None;
        for (t, last) in [3, 10, 11, 400, 420].into_iter().enumerate() {
            learn(&mut *model, &samples(t as u64, &[t as i64 % 3, 3], 12));
            let classifier = model.classifier().unwrap();
            lifted = lifted.or_else(|| LiftedSamples::of(&classifier));
            let Some(lifted) = &mut lifted else { return };
            lifted.push(Features::new(&x[lifted.len() * DIM..last * DIM], DIM).unwrap()).unwrap();
            let afresh = classifier.scores(Features::new(&x[..last * DIM], DIM).unwrap()).unwrap();
            assert_eq!(classifier.scores_of(lifted).unwrap(), afresh, "{}", method.name);
            lifting.set(lifting.get() + 1);
        }
    });
    assert!(lifting.get() > 50, "{}", lifting.get());
}

/// Computes the operations of a map one after the other, in f64.
fn interpret(map: &dyn FeatureMap, projection: &[f32], x: &[f32]) -> Vec<f64> {
    let sample: Vec<f64> = x.iter().map(|v| f64::from(*v)).collect();
    let mut z = sample.clone();
    for operation in map.operations() {
        z = match operation {
            Operation::Unit => {
                let length = z.iter().map(|v| v * v).sum::<f64>().sqrt();
                z.iter().map(|v| if length > 0.0 { v / length } else { 0.0 }).collect()
            }
            Operation::Project { scale } => {
                let row =
                    |row: &[f32]| row.iter().zip(&z).map(|(p, z)| f64::from(*p) * z).sum::<f64>() * f64::from(scale);
                projection.chunks_exact(x.len()).map(row).collect()
            }
            Operation::Activate(Activation::Relu) => z.iter().map(|v| v.max(0.0)).collect(),
            Operation::Absolute => z.iter().map(|v| v.abs()).collect(),
            Operation::Activate(Activation::Sigmoid) => z.iter().map(|v| 1.0 / (1.0 + (-v).exp())).collect(),
            Operation::Activate(Activation::Linear) => z,
            Operation::CosinesAndSines => z.iter().flat_map(|v| [v.cos(), v.sin()]).take(map.width()).collect(),
            Operation::PrependSample => sample.iter().copied().chain(z).collect(),
            Operation::Scale(factor) => z.iter().map(|v| v * f64::from(factor)).collect(),
            other => panic!("{other:?} is not computed here"),
        };
    }
    z
}

#[test]
fn the_operations_of_every_lift_compute_it() {
    let width = 41;
    let task = samples(8, &[1, 2], 3).0;
    for entry in LIFTS {
        let map = lift::build(entry.name, LiftSpec { seed: 5, ..LiftSpec::new(DIM, width) }).unwrap();
        let rows = entry.projection.count(DIM, map.width());
        let (p, mut scratch) = (Projection::from_seed(rows.max(1), DIM, 5, true), Vec::new());
        let projection = p.rows(0, rows.max(1), &mut scratch);
        for x in task.chunks_exact(DIM) {
            let expected = lift::lifted(&*map, Features::new(x, DIM).unwrap());
            let found = interpret(&*map, projection, x);
            assert_eq!(found.len(), expected.len(), "{}", entry.name);
            assert!(found.iter().zip(&expected).all(|(a, b)| (a - f64::from(*b)).abs() < 1e-4), "{}", entry.name);
        }
    }
}
