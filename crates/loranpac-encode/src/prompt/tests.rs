//! Learning from end to end, on small encoders.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use super::prompted::PromptedNetwork;
use super::{PromptKind, PromptLearner, PromptSettings, Queried, TrainedEpoch};
use crate::adapt::tests::{input, shared};
use crate::adapt::{SampleOptions, Samples};
use crate::encoder::Image;
use crate::error::Error;
use crate::input::{Data, Inputs};
use crate::transformer::{Random, Transformer};

const KINDS: [PromptKind; 3] = [PromptKind::L2p, PromptKind::DualPrompt, PromptKind::CodaPrompt];

fn settings(kind: PromptKind) -> PromptSettings {
    let (pool, length) = if kind == PromptKind::CodaPrompt { (6, 4) } else { (4, 2) };
    let rate = 0.02;
    PromptSettings { rate, epochs: 6, batch: 5, pool, length, top: 2, augment: false, ..PromptSettings::new(kind) }
}

/// Samples of the classes a to d in turn, which words or colours tell apart.
fn samples(transformer: &Transformer, n: usize) -> Samples {
    let text = matches!(transformer, Transformer::Text(_));
    let sample = move |i: usize| {
        let class = i % 4;
        let data = match text {
            true => {
                Data::Text([["red red", "green", "greener", "other"][class], ["red", "green"][i / 4 % 2]].join(" "))
            }
            false => {
                let colour = [[200, 20, 20], [20, 200, 20], [20, 20, 200], [200, 200, 200]][class];
                let pixel = |at: usize| colour.map(|x: u8| x + ((i * 31 + at * 17) % 40) as u8);
                Data::Pixels(Image { width: 8, height: 8, pixels: (0..64).flat_map(pixel).collect() })
            }
        };
        input(i, ["a", "b", "c", "d"][class], data)
    };
    Samples::read(Inputs::of((0..n).map(sample)), transformer, SampleOptions::default()).unwrap()
}

/// The places of the classes of a task: a and b, then c and d.
fn places(n: usize, task: usize) -> Vec<usize> {
    (0..n).filter(|i| i % 4 / 2 == task).collect()
}

/// Learns both tasks. Returns the losses of all epochs, and the logits of all samples.
fn run(text: bool, settings: PromptSettings, tasks: usize, memory: usize) -> (PromptLearner, Vec<f64>, Vec<f32>) {
    let transformer = shared(text);
    let samples = samples(&transformer, 24);
    let mut learner = PromptLearner::new(transformer, settings, tasks, memory).unwrap();
    let mut losses = Vec::new();
    for task in 0..2 {
        let places = places(24, task);
        let queries = learner.queries(&samples, &places).unwrap();
        let part = Queried { samples: &samples, places: &places, queries: &queries };
        let done = learner.learn(part, &mut |_, trained: TrainedEpoch| {
            losses.push(trained.loss);
            ControlFlow::Continue(())
        });
        assert_eq!(done.unwrap(), ControlFlow::Continue(()));
    }
    let all: Vec<usize> = (0..24).collect();
    let queries = learner.queries(&samples, &all).unwrap();
    let logits = learner.logits(Queried { samples: &samples, places: &all, queries: &queries }).unwrap();
    (learner, losses, logits)
}

#[test]
fn both_tasks_are_learned_and_the_loss_falls() {
    for text in [true, false] {
        for kind in KINDS {
            let settings = PromptSettings { epochs: 25, ..settings(kind) };
            let (learner, losses, logits) = run(text, settings, 2, 1 << 20);
            assert_eq!(learner.labels().len(), 4);
            assert_eq!((learner.seen(), logits.len()), (24, 24 * 4));
            for losses in losses.chunks(25) {
                assert!(losses[24] < losses[0], "{kind:?} {text}: {losses:?}");
            }
            // Classes of the last task are told apart among themselves.
            let right = |i: &usize| logits[i * 4 + i % 4] > logits[i * 4 + 2 + (i % 4 + 1) % 2];
            let last = places(24, 1);
            let hits = last.iter().filter(|i| right(i)).count();
            assert!(hits >= 10, "{kind:?} {text}: {hits} of 12");
        }
    }
}

#[test]
fn logits_are_the_same_for_any_threads_and_memory() {
    for kind in KINDS {
        let on = |threads: usize, memory: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let settings = PromptSettings { augment: true, epochs: 2, ..settings(kind) };
            pool.install(|| run(false, settings, 2, memory).2)
        };
        let one = on(1, 1 << 30);
        assert!(on(3, 0) == one, "{kind:?}");
    }
}

#[test]
fn logits_depend_on_the_batch_only_if_prompts_are_selected_batchwise() {
    let samples = samples(&shared(true), 24);
    let places: Vec<usize> = (0..24).collect();
    for kind in KINDS {
        for batchwise in [false, true] {
            let settings = PromptSettings { batchwise, top: 1, batch: 24, ..settings(kind) };
            let (learner, ..) = run(true, settings, 2, 1 << 20);
            // Queries in all directions, so that prompts of both tasks are selected.
            let mut random = Random::new(9, 0);
            let dim = learner.model.network.dim();
            let queries: Vec<f32> = (0..24 * dim).map(|_| random.normal() as f32).collect();
            let logits = |places: &[usize], queries: &[f32]| {
                learner.logits(Queried { samples: &samples, places, queries }).unwrap()
            };
            let all = logits(&places, &queries);
            let alone = |at: usize| logits(&places[at..=at], &queries[at * dim..(at + 1) * dim]);
            let same = (0..24).all(|at| alone(at) == all[at * 4..(at + 1) * 4]);
            // The tiny encoder has no block for prompts of one task.
            assert_eq!(same, !batchwise || kind != PromptKind::L2p, "{kind:?} {batchwise}");
        }
    }
}

#[test]
fn an_interruption_and_an_error_leave_the_learner_as_it_was() {
    let transformer = shared(true);
    let samples = samples(&transformer, 24);
    for kind in KINDS {
        let (mut learner, _, before) = run(true, settings(kind), 3, 1 << 20);
        let all: Vec<usize> = (0..24).collect();
        let queries = learner.queries(&samples, &all).unwrap();
        let part = Queried { samples: &samples, places: &all, queries: &queries };
        let stopped = learner.learn(part, &mut |_, _| ControlFlow::Break(())).unwrap();
        assert_eq!(stopped, ControlFlow::Break(()));
        assert_eq!(learner.logits(part).unwrap(), before);

        learner.settings.rate = 1e38;
        let failed = learner.learn(part, &mut |_, _| ControlFlow::Continue(()));
        assert!(matches!(failed, Err(Error::Diverged { .. })), "{kind:?}: {failed:?}");
        assert_eq!(learner.logits(part).unwrap(), before);

        let damaged = vec![f32::NAN; queries.len()];
        let other = Queried { queries: &damaged, ..part };
        assert!(matches!(learner.logits(other), Err(Error::Adapt { name: "queries", .. })));
        let short = Queried { queries: &queries[1..], ..part };
        assert!(matches!(learner.logits(short), Err(Error::Adapt { name: "queries", .. })));
        learner.settings.rate = 0.01;
        assert_eq!(learner.learn(part, &mut |_, _| ControlFlow::Continue(())).unwrap(), ControlFlow::Continue(()));
        let more = learner.learn(part, &mut |_, _| ControlFlow::Continue(()));
        assert!(matches!(more, Err(Error::Adapt { name: "tasks", .. })), "{more:?}");
    }
    let nothing = PromptLearner::new(transformer, settings(PromptKind::L2p), 2, 0).unwrap();
    let queries = nothing.queries(&samples, &[0]).unwrap();
    let error = nothing.logits(Queried { samples: &samples, places: &[0], queries: &queries }).unwrap_err();
    assert!(error.to_string().contains("nothing has been learned"), "{error}");
}

#[test]
fn gradients_of_each_method_are_the_slopes_of_its_loss() {
    for text in [true, false] {
        for kind in KINDS {
            let transformer = shared(text);
            let samples = samples(&transformer, 5);
            let mut random = Random::new(4, 0);
            let mut model = PromptedNetwork::new(transformer.network(), &settings(kind), 2, &mut random);
            for task in 0..2 {
                model.pool.begin(&mut model.weights.pool.values, task, &mut random);
            }
            model.grow(4, &mut random);
            let places: Vec<usize> = (0..5).collect();
            let queries = samples.features(&transformer, &places, |_| {}).unwrap();
            let targets: [usize; 5] = [2, 3, 2, 2, 3];
            let allowed = [false, true, true, true];
            let gradients = |model: &mut PromptedNetwork| {
                let labels = (&targets[..], &allowed[..]);
                samples.with(&places, None, |given| model.gradients(given, &queries, labels, 1, 1)).unwrap()
            };
            let (_, found) = gradients(&mut model);
            let weights = model.weights.clone();
            let (pool, head) = (weights.pool.tensors().to_vec(), weights.head.tensors().to_vec());
            for (part, tensor) in pool.iter().map(|t| (0, t)).chain(head.iter().map(|t| (1, t))) {
                let gradient = &[&found.pool, &found.head][part][tensor.range.clone()];
                let length = gradient.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
                let mut at = |change: f64| {
                    model.weights = weights.clone();
                    let parameters = [&mut model.weights.pool, &mut model.weights.head].into_iter().nth(part).unwrap();
                    for (x, g) in parameters.values[tensor.range.clone()].iter_mut().zip(gradient) {
                        *x += (change * f64::from(*g) / length.max(1e-30)) as f32;
                    }
                    gradients(&mut model).0
                };
                let expected = (at(1e-2) - at(-1e-2)) / 2e-2;
                let close = (length - expected).abs() < 0.02 * length + 1e-4;
                assert!(close, "{kind:?} {text} {}: {length} instead of {expected}", tensor.name);
            }
            assert!(found.pool.iter().any(|x| x.abs() > 1e-5), "{kind:?} {text}");
        }
    }
}

#[test]
fn components_of_earlier_tasks_are_used_and_not_trained() {
    let (learner, ..) = run(true, settings(PromptKind::CodaPrompt), 2, 1 << 20);
    let trained = learner.model.weights.pool.clone();
    let mut first = PromptLearner::new(shared(true), settings(PromptKind::CodaPrompt), 2, 1 << 20).unwrap();
    let samples = samples(&shared(true), 24);
    let places = places(24, 0);
    let queries = first.queries(&samples, &places).unwrap();
    let part = Queried { samples: &samples, places: &places, queries: &queries };
    assert!(first.learn(part, &mut |_, _| ControlFlow::Continue(())).unwrap().is_continue());
    for tensor in trained.tensors() {
        let [after, before] = [&trained, &first.model.weights.pool].map(|p| &p.values[tensor.range.clone()]);
        let half = after.len() / 2;
        assert_eq!(after[..half], before[..half], "{}", tensor.name);
        assert_ne!(after[half..], before[half..], "{}", tensor.name);
    }
}

/// Learns both tasks, saving after every epoch, until an epoch of a task after which learning is stopped. Returns what was learned if it was not.
fn until(file: &Path, settings: PromptSettings, stop: Option<(usize, usize)>) -> Option<(PromptLearner, Vec<f32>)> {
    let transformer = shared(true);
    let samples = samples(&transformer, 24);
    let mut learner = PromptLearner::new(transformer, settings, 2, 1 << 20).unwrap();
    let identity = learner.identity(&[&samples], "two tasks");
    let found = learner.resume(file, &identity, |note, _| Some(note.to_owned()));
    assert_eq!(found.as_deref(), file.exists().then_some("a note"));
    for task in learner.learned()..2 {
        let places = places(24, task);
        let queries = learner.queries(&samples, &places).unwrap();
        let queried = Queried { samples: &samples, places: &places, queries: &queries };
        let done = learner.learn(queried, &mut |learner, trained| {
            learner.save(file, &identity, "a note").unwrap();
            if stop == Some((task, trained.epoch)) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if done.unwrap().is_break() || stop == Some((task, learner.settings().epochs)) {
            return None;
        }
        learner.save(file, &identity, "a note").unwrap();
        if stop == Some((task, learner.settings().epochs + 1)) {
            return None;
        }
    }
    let all: Vec<usize> = (0..24).collect();
    let queries = learner.queries(&samples, &all).unwrap();
    let logits = learner.logits(Queried { samples: &samples, places: &all, queries: &queries }).unwrap();
    Some((learner, logits))
}

#[test]
fn a_learner_that_was_stopped_anywhere_learns_the_same_to_the_last_bit() {
    let folder = tempfile::tempdir().unwrap();
    for kind in KINDS {
        let settings = PromptSettings { epochs: 3, augment: true, ..settings(kind) };
        let at = |name: &str| folder.path().join(format!("{kind:?}-{name}"));
        let (whole, expected) = until(&at("whole"), settings.clone(), None).unwrap();
        for task in 0..2 {
            // After each epoch, and after what is done between two tasks.
            for epoch in 1..=4 {
                let file = at(&format!("{task}-{epoch}"));
                assert!(until(&file, settings.clone(), Some((task, epoch))).is_none());
                let (found, logits) = until(&file, settings.clone(), None).unwrap();
                assert!(logits == expected, "{kind:?}: task {task}, epoch {epoch}");
                assert_eq!((found.labels(), found.seen()), (whole.labels(), whole.seen()));
                assert!(fs::read(&file).unwrap() == fs::read(at("whole")).unwrap(), "{kind:?} {task} {epoch}");
            }
        }
        // Everywhere, one epoch in each process.
        let file = at("often");
        let stops = (0..2).flat_map(|task| (1..=4).map(move |epoch| (task, epoch)));
        stops.for_each(|stop| assert!(until(&file, settings.clone(), Some(stop)).is_none()));
        assert!(until(&file, settings, None).unwrap().1 == expected, "{kind:?}");
    }
}

#[test]
fn a_damaged_or_foreign_checkpoint_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    let settings = PromptSettings { epochs: 2, pool: 2, length: 1, top: 1, ..settings(PromptKind::L2p) };
    assert!(until(&file, settings.clone(), Some((1, 1))).is_none());
    let bytes = fs::read(&file).unwrap();
    let transformer = shared(true);
    let samples = samples(&transformer, 24);
    let fresh = |settings: &PromptSettings, tasks| {
        PromptLearner::new(transformer.clone(), settings.clone(), tasks, 1 << 20).unwrap()
    };
    let identity = fresh(&settings, 2).identity(&[&samples], "two tasks");
    let refused = |settings: &PromptSettings, tasks: usize, identity: &str| {
        let mut learner = fresh(settings, tasks);
        let before = learner.model.weights.pool.clone();
        learner.resume(&file, identity, |_, _| Some(())).is_none()
            && learner.model.weights.pool == before
            && learner.learned() == 0
    };
    assert!(!refused(&settings, 2, &identity));
    let step = bytes.len().div_ceil(400);
    for at in (0..bytes.len()).step_by(step) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&file, &damaged).unwrap();
        let mut learner = fresh(&settings, 2);
        if learner.resume(&file, &identity, |_, _| Some(())).is_some() {
            // The bit had no meaning, such as one of the padding.
            learner.save(&file, &identity, "a note").unwrap();
            assert!(fs::read(&file).unwrap() == bytes, "byte {at}");
        }
    }
    for damaged in [&bytes[..bytes.len() / 2], b"", b"not a checkpoint"] {
        fs::write(&file, damaged).unwrap();
        assert!(refused(&settings, 2, &identity));
    }
    fs::write(&file, &bytes).unwrap();
    let others = [
        fresh(&PromptSettings { rate: 0.03, ..settings.clone() }, 2).identity(&[&samples], "two tasks"),
        fresh(&settings, 3).identity(&[&samples], "two tasks"),
        fresh(&settings, 2).identity(&[&samples.part(&[0, 1, 2])], "two tasks"),
        fresh(&settings, 2).identity(&[&samples], "other tasks"),
    ];
    others.iter().for_each(|other| assert!(refused(&settings, 2, other)));
    // Sizes that are not those of the learner, whatever the identity says.
    assert!(refused(&PromptSettings { pool: 3, ..settings.clone() }, 2, &identity));
    assert!(refused(&settings, 1, &identity));
    assert!(fresh(&settings, 2).resume(&file, &identity, |_, _| None::<()>).is_none());
}
