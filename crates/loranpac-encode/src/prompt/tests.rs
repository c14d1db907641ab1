//! Learning from end to end, on small encoders.

use std::ops::ControlFlow;

use super::model::Model;
use super::{Part, PromptKind, PromptLearner, PromptSettings, Trained};
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
        let part = Part { samples: &samples, places: &places, queries: &queries };
        let done = learner.learn(part, &mut |trained: Trained| {
            losses.push(trained.loss);
            ControlFlow::Continue(())
        });
        assert_eq!(done.unwrap(), ControlFlow::Continue(()));
    }
    let all: Vec<usize> = (0..24).collect();
    let queries = learner.queries(&samples, &all).unwrap();
    let logits = learner.logits(Part { samples: &samples, places: &all, queries: &queries }).unwrap();
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
                learner.logits(Part { samples: &samples, places, queries }).unwrap()
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
        let part = Part { samples: &samples, places: &all, queries: &queries };
        let stopped = learner.learn(part, &mut |_| ControlFlow::Break(())).unwrap();
        assert_eq!(stopped, ControlFlow::Break(()));
        assert_eq!(learner.logits(part).unwrap(), before);

        learner.settings.rate = 1e38;
        let failed = learner.learn(part, &mut |_| ControlFlow::Continue(()));
        assert!(matches!(failed, Err(Error::Diverged { .. })), "{kind:?}: {failed:?}");
        assert_eq!(learner.logits(part).unwrap(), before);

        let damaged = vec![f32::NAN; queries.len()];
        let other = Part { queries: &damaged, ..part };
        assert!(matches!(learner.logits(other), Err(Error::Adapt { name: "queries", .. })));
        let short = Part { queries: &queries[1..], ..part };
        assert!(matches!(learner.logits(short), Err(Error::Adapt { name: "queries", .. })));
        learner.settings.rate = 0.01;
        assert_eq!(learner.learn(part, &mut |_| ControlFlow::Continue(())).unwrap(), ControlFlow::Continue(()));
        let more = learner.learn(part, &mut |_| ControlFlow::Continue(()));
        assert!(matches!(more, Err(Error::Adapt { name: "tasks", .. })), "{more:?}");
    }
    let nothing = PromptLearner::new(transformer, settings(PromptKind::L2p), 2, 0).unwrap();
    let queries = nothing.queries(&samples, &[0]).unwrap();
    let error = nothing.logits(Part { samples: &samples, places: &[0], queries: &queries }).unwrap_err();
    assert!(error.to_string().contains("nothing has been learned"), "{error}");
}

#[test]
fn gradients_of_each_method_are_the_slopes_of_its_loss() {
    for text in [true, false] {
        for kind in KINDS {
            let transformer = shared(text);
            let samples = samples(&transformer, 5);
            let mut random = Random::new(4, 0);
            let mut model = Model::new(transformer.network(), &settings(kind), 2, &mut random);
            for task in 0..2 {
                model.pool.begin(&mut model.weights.pool.values, task, &mut random);
            }
            model.grow(4, &mut random);
            let places: Vec<usize> = (0..5).collect();
            let queries = samples.features(&transformer, &places, |_| {}).unwrap();
            let targets: [usize; 5] = [2, 3, 2, 2, 3];
            let allowed = [false, true, true, true];
            let gradients = |model: &mut Model| {
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
    let part = Part { samples: &samples, places: &places, queries: &queries };
    assert!(first.learn(part, &mut |_| ControlFlow::Continue(())).unwrap().is_continue());
    for tensor in trained.tensors() {
        let [after, before] = [&trained, &first.model.weights.pool].map(|p| &p.values[tensor.range.clone()]);
        let half = after.len() / 2;
        assert_eq!(after[..half], before[..half], "{}", tensor.name);
        assert_ne!(after[half..], before[half..], "{}", tensor.name);
    }
}
