//! Whole networks with modules: features, and the slope of a loss along each tensor's gradient.

use super::Tuner;
use crate::tokenize::Sequence;
use crate::transformer::module::{ModuleKind, Modules, Random};
use crate::transformer::network::{Given, Network};
use crate::transformer::testing::random;
use crate::transformer::whole::{text_folder, vision_folder};
use crate::transformer::{Transformer, open};

pub(super) fn network(kind: &str) -> Network {
    let folder = match kind {
        "text mean" => text_folder("mean", true),
        "text first" => text_folder("cls", false),
        kind => vision_folder(kind),
    };
    open(folder.path(), None).map(|transformer: Transformer| transformer.network()).unwrap()
}

pub(super) fn texts() -> Vec<Sequence> {
    [&[2, 4, 5, 3][..], &[2, 3], &[2, 5, 6, 1, 3]]
        .map(|tokens| Sequence { tokens: tokens.to_vec(), types: vec![0; tokens.len()] })
        .into()
}

pub(super) const NETWORKS: [&str; 5] = ["class", "mean", "clip", "text mean", "text first"];

/// Modules with other numbers than those at the start.
fn modules(network: &Network, kind: ModuleKind) -> Modules {
    let kind = kind.sized(3).unwrap_or(kind);
    let mut modules = network.modules(kind, &mut Random::new(1, 0));
    let scale = if kind == ModuleKind::Ssf { 0.1 } else { 0.3 };
    let noise = random(modules.parameters.values.len(), 77);
    modules.parameters.values.iter_mut().zip(noise).for_each(|(x, noise)| *x += scale * noise);
    modules
}

#[test]
fn the_gradient_of_each_tensor_is_the_slope_of_the_loss_along_it() {
    for name in NETWORKS {
        let network = network(name);
        let (planes, texts) = (random(3 * 108, 9), texts());
        let texts: Vec<&Sequence> = texts.iter().collect();
        let given = if name.starts_with("text") { Given::Texts(&texts) } else { Given::Planes(&planes) };
        for kind in ModuleKind::ALL {
            let modules = modules(&network, *kind);
            let weights = random(3 * network.dim(), 5);
            let loss = |modules: &Modules| -> f64 {
                let features = network.adapted(modules).features(given);
                features.iter().zip(&weights).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum()
            };
            let mut tuner = Tuner::default();
            let features = tuner.forward(&network, &modules, given, None, 1);
            let predicted = network.adapted(&modules).features(given);
            let error = features.iter().zip(&predicted).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
            assert!(error < 2e-6, "{name} {kind}: features of training differ by {error:e}");
            let mut out = vec![0.0; modules.parameters.values.len()];
            tuner.backward(&network, &modules, &weights, &mut out);
            for tensor in modules.parameters.tensors() {
                let gradient = &out[tensor.range.clone()];
                let length = gradient.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
                let at = |change: f64| {
                    let mut moved = modules.clone();
                    for (x, g) in moved.parameters.values[tensor.range.clone()].iter_mut().zip(gradient) {
                        *x += (change * f64::from(*g) / length.max(1e-30)) as f32;
                    }
                    loss(&moved)
                };
                // Small steps: ReLU has kinks.
                let expected = (at(1e-3) - at(-1e-3)) / 2e-3;
                let tolerance = 0.02 * length + 3e-3;
                let close = (length - expected).abs() < tolerance;
                assert!(close, "{name} {kind} {}: {length} instead of {expected}", tensor.name);
            }
            assert!(out.iter().any(|x| x.abs() > 1e-3), "{name} {kind}");
        }
    }
}

#[test]
fn adapted_features_do_not_depend_on_the_batch() {
    for name in NETWORKS {
        let network = network(name);
        let (planes, texts) = (random(3 * 108, 9), texts());
        let texts: Vec<&Sequence> = texts.iter().collect();
        for kind in ModuleKind::ALL {
            let adapted = network.adapted(&modules(&network, *kind));
            let (all, alone) = match name.starts_with("text") {
                true => (adapted.features(Given::Texts(&texts)), adapted.features(Given::Texts(&texts[2..]))),
                false => (adapted.features(Given::Planes(&planes)), adapted.features(Given::Planes(&planes[216..]))),
            };
            assert_eq!(all[2 * network.dim()..], alone, "{name} {kind}");
            let frozen = match name.starts_with("text") {
                true => network.features(Given::Texts(&texts)),
                false => network.features(Given::Planes(&planes)),
            };
            assert_ne!(frozen, all, "{name} {kind}");
        }
    }
}
