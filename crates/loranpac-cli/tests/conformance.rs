//! One suite for the methods on images and texts: every one in the registry keeps the promises that the engine's suite checks for methods on features
//! (`crates/loranpac/tests/conformance.rs`), except those that its entry says it cannot make, with the reason.

mod common;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use common::raw::vit;
use loranpac::Label;
use loranpac::registry::{Input, METHODS, Method, Promise};
use loranpac_bench::prompted;
use loranpac_bench::spec::Spec;
use loranpac_encode::adapt::{SampleOptions, Samples};
use loranpac_encode::prompt::{PromptLearner, Queried};
use loranpac_encode::{Data, Encoder, Error, Image, Inputs, Transformer, open_transformer};

static ENCODER: LazyLock<Transformer> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    vit(folder.path(), 1);
    open_transformer(folder.path().to_str().unwrap(), None).unwrap()
});

/// Tasks that learners have room for.
const TASKS: usize = 4;

/// A few samples of some classes, whose numbers are those of their colours; `name` makes labels of them.
fn samples(seed: u32, classes: &[i64], each: usize, name: impl Fn(i64) -> Label) -> Samples {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut draw = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 27) as u8
    };
    let mut inputs = Vec::new();
    for at in 0..each * classes.len() {
        let class = classes[at % classes.len()];
        let colour = [0, 1, 2].map(|channel| ((class * 97 + channel * 61) % 200) as u8);
        let pixels = (0..256).flat_map(|_| colour.map(|x| x + draw())).collect();
        let mut input =
            loranpac_encode::Input::new(at.to_string(), Data::Pixels(Image { width: 16, height: 16, pixels }));
        input.tags.label = Some(name(class));
        inputs.push(Ok(input));
    }
    Samples::read(Inputs::of(inputs.into_iter()), &ENCODER, SampleOptions::default()).unwrap()
}

fn usual(seed: u32, classes: &[i64], each: usize) -> Samples {
    samples(seed, classes, each, Label::from)
}

/// The methods on images and texts.
fn methods() -> impl Iterator<Item = &'static Method> {
    METHODS.iter().filter(|method| method.input == Input::Raw)
}

fn build_with(method: &Method, seed: u32, more: &[(&str, &str)]) -> PromptLearner {
    let few = [("epochs", "3"), ("batch", "4"), ("length", "2"), ("rate", "0.01")];
    let settings: BTreeMap<String, String> =
        few.iter().chain(more).map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let spec = Spec { settings, seed, ..Spec::new(method.name) };
    PromptLearner::new(ENCODER.clone(), prompted::settings(&spec).unwrap(), TASKS, 1 << 20).unwrap()
}

fn build(method: &Method) -> PromptLearner {
    build_with(method, 11, &[])
}

fn learn(learner: &mut PromptLearner, samples: &Samples) {
    let places: Vec<usize> = (0..samples.len()).collect();
    learn_some(learner, samples, &places);
}

fn learn_some(learner: &mut PromptLearner, samples: &Samples, places: &[usize]) {
    let queries = learner.queries(samples, places).unwrap();
    let queried = Queried { samples, places, queries: &queries };
    assert_eq!(learner.learn(queried, &mut |_, _| ControlFlow::Continue(())).unwrap(), ControlFlow::Continue(()));
}

fn logits(learner: &PromptLearner, samples: &Samples) -> Vec<f32> {
    let places: Vec<usize> = (0..samples.len()).collect();
    let queries = learner.queries(samples, &places).unwrap();
    let found = learner.logits(Queried { samples, places: &places, queries: &queries }).unwrap();
    assert!(found.iter().all(|x| x.is_finite()));
    found
}

/// The largest difference, relative to the largest number.
fn difference(a: &[f32], b: &[f32]) -> f32 {
    let size = a.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    a.iter().zip(b).fold(0.0f32, |most, (a, b)| most.max((a - b).abs())) / size
}

/// A promise is kept, or the entry says why not, and then it is really broken: an exemption that is not needed is a mistake.
fn check_promise(promise: Promise, keeps: impl Fn(&Method) -> bool) {
    for method in methods() {
        match method.exemption(promise) {
            Some(reason) => {
                println!("{promise:?}: {} does not promise it: {reason}", method.name);
                assert!(!keeps(method), "{} keeps {promise:?}, and says that it does not", method.name);
            }
            None => assert!(keeps(method), "{} breaks {promise:?}", method.name),
        }
    }
}

#[test]
fn there_are_such_methods_and_each_has_reasons_for_its_exemptions() {
    assert!(methods().count() >= 3);
    for method in methods() {
        assert!(method.continual && method.exemplar_free && !method.summary.is_empty(), "{}", method.name);
        assert!(method.exempt.iter().all(|(_, reason)| reason.len() > 20), "{} owes a reason", method.name);
    }
}

#[test]
fn every_method_learns_classes_that_come_new_again_and_mixed() {
    for method in methods() {
        let mut learner = build_with(method, 11, &[("epochs", "25"), ("rate", "0.02")]);
        learn(&mut learner, &usual(1, &[5, 9], 6));
        learn(&mut learner, &usual(2, &[3], 4));
        learn(&mut learner, &usual(3, &[9, 40], 6)); // 9 comes back, together with a new class
        assert_eq!(learner.labels(), [5, 9, 3, 40].map(Label::from), "{}", method.name);
        assert_eq!((learner.seen(), learner.learned()), (28, 3), "{}", method.name);
        let test = usual(4, &[9, 40], 8);
        let found = logits(&learner, &test);
        let right = |at: &usize| (found[at * 4 + 1] > found[at * 4 + 3]) == (at.is_multiple_of(2));
        let hits = (0..16).filter(right).count();
        assert!(hits >= 12, "{}: {hits} of 16 samples of the last task", method.name);
    }
}

#[test]
fn predicting_is_pure_and_a_samples_scores_do_not_depend_on_its_batch() {
    for method in methods() {
        let mut learner = build(method);
        learn(&mut learner, &usual(1, &[1, 2, 3], 5));
        learn(&mut learner, &usual(2, &[4], 5));
        let (a, b) = (usual(3, &[1, 4], 5), usual(4, &[2, 3], 40));
        let before = logits(&learner, &a);
        logits(&learner, &b);
        assert_eq!(logits(&learner, &a), before, "{}", method.name);
        for at in 0..a.len() {
            assert_eq!(logits(&learner, &a.part(&[at])), before[at * 4..][..4], "{}: sample {at}", method.name);
        }
    }
}

#[test]
fn labels_may_be_any_integers_or_strings() {
    for method in methods() {
        let name = |class: i64| Label::from(format!("class {class} \u{e9}").as_str());
        let (mut numbers, mut words) = (build(method), build(method));
        learn(&mut numbers, &samples(1, &[7, 0, 2], 4, |class| Label::from(i64::MAX - class)));
        learn(&mut words, &samples(1, &[7, 0, 2], 4, name));
        let test = usual(2, &[0, 2], 4);
        assert_eq!(logits(&numbers, &test), logits(&words, &test), "{}", method.name);
        assert_eq!(words.labels(), [7, 0, 2].map(name), "{}", method.name);
    }
}

#[test]
fn the_same_seed_gives_the_same_result_on_any_number_of_threads() {
    for method in methods() {
        let run = |seed: u32, threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut learner = build_with(method, seed, &[]);
                learn(&mut learner, &usual(1, &[1, 2], 5));
                learn(&mut learner, &usual(2, &[3], 5));
                logits(&learner, &usual(3, &[1, 2, 3], 3))
            })
        };
        assert_eq!(run(11, 1), run(11, 3), "{}", method.name);
        assert_ne!(run(11, 1), run(12, 1), "{}: the seed decides nothing", method.name);
    }
}

#[test]
fn the_order_of_samples_inside_a_task_does_not_matter() {
    check_promise(Promise::SampleOrder, |method| {
        let (task, test) = (usual(1, &[1, 2, 3], 6), usual(2, &[1, 2, 3], 4));
        let run = |places: Vec<usize>| {
            let mut learner = build(method);
            learn_some(&mut learner, &task, &places);
            logits(&learner, &test)
        };
        // The first three samples stay, so that the classes keep their numbers.
        difference(&run((0..18).collect()), &run((0..3).chain((3..18).rev()).collect())) < 2e-3
    });
}

#[test]
fn learning_in_two_halves_equals_learning_at_once() {
    check_promise(Promise::Halves, |method| {
        let (task, test) = (usual(5, &[1, 2, 3], 6), usual(6, &[1, 2, 3], 4));
        let places: Vec<usize> = (0..18).collect();
        let run = |at_a_time: usize| {
            let mut learner = build(method);
            places.chunks(at_a_time).for_each(|part| learn_some(&mut learner, &task, part));
            logits(&learner, &test)
        };
        difference(&run(18), &run(9)) < 2e-3
    });
}

/// Stability is that rounding errors stay rounding errors: here those of queries that differ in their last bits.
#[test]
fn rounding_errors_stay_rounding_errors_or_the_entry_says_why_not() {
    for method in methods() {
        let reason = method.exemption(Promise::Stability);
        println!("Stability: {} does not promise it: {reason:?}", method.name);
        assert!(reason.is_some(), "{}: gradient descent cannot promise it", method.name);
    }
}

#[test]
fn what_is_refused_changes_nothing() {
    for method in methods() {
        let mut learner = build(method);
        let (task, test) = (usual(1, &[1, 2], 5), usual(2, &[1, 2], 3));
        let places: Vec<usize> = (0..10).collect();
        let queries = learner.queries(&task, &places).unwrap();
        let error = learner.logits(Queried { samples: &task, places: &places, queries: &queries }).unwrap_err();
        assert!(error.to_string().contains("nothing has been learned"), "{}: {error}", method.name);
        learn(&mut learner, &task);
        let before = logits(&learner, &test);
        let mut refused = |places: &[usize], queries: &[f32]| {
            let queried = Queried { samples: &task, places, queries };
            let error = learner.learn(queried, &mut |_, _| ControlFlow::Continue(())).unwrap_err();
            assert!(matches!(error, Error::Adapt { name: "queries", .. }), "{}: {error}", method.name);
            assert_eq!((learner.labels().len(), learner.seen(), logits(&learner, &test) == before), (2, 10, true));
        };
        refused(&[], &[]);
        refused(&places, &queries[1..]);
        for bad in [f32::NAN, f32::INFINITY] {
            let mut queries = queries.clone();
            queries[3] = bad;
            refused(&places, &queries);
        }
        (1..TASKS as u32).for_each(|task| learn(&mut learner, &usual(task, &[1], 2)));
        let queried = Queried { samples: &task, places: &places, queries: &queries };
        let error = learner.learn(queried, &mut |_, _| ControlFlow::Continue(())).unwrap_err();
        assert!(matches!(error, Error::Adapt { name: "tasks", .. }), "{}: {error}", method.name);
    }
}

#[test]
fn settings_that_are_no_settings_are_refused_by_name() {
    for method in methods() {
        for (name, _) in method.settings {
            let spec = Spec { settings: [(name.to_string(), "seven".to_owned())].into(), ..Spec::new(method.name) };
            let message = prompted::settings(&spec).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains("seven"), "{}: {message}", method.name);
        }
    }
}

#[test]
fn degenerate_data_give_finite_scores() {
    for method in methods() {
        // One sample; the same image in two classes; one class again and again.
        let same = samples(1, &[6, 6], 3, Label::from);
        let mut learner = build(method);
        learn(&mut learner, &usual(1, &[8], 1));
        learn(&mut learner, &same);
        learn(&mut learner, &same);
        assert_eq!(logits(&learner, &usual(2, &[8, 6], 2)).len(), 8, "{}", method.name);
        let zeros = vec![0.0; 6 * ENCODER.dim()];
        let places: Vec<usize> = (0..6).collect();
        let queried = Queried { samples: &same, places: &places, queries: &zeros };
        assert!(learner.learn(queried, &mut |_, _| ControlFlow::Continue(())).unwrap().is_continue());
        assert!(learner.logits(queried).unwrap().iter().all(|x| x.is_finite()), "{}: zeros as queries", method.name);
    }
}

#[test]
fn estimates_of_memory_grow_with_the_batch() {
    let task = usual(1, &[1, 2], 30);
    for method in methods() {
        let bytes = |batch: &str| build_with(method, 11, &[("batch", batch)]).bytes(&task);
        assert!(0 < bytes("1") && bytes("1") < bytes("20"), "{}", method.name);
        assert_eq!(bytes("60"), bytes("6000"), "{}: there are no more samples", method.name);
    }
}
