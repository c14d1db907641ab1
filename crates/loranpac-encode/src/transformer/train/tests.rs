//! Gradients of every module in blocks of either order, against finite differences in f64.

use super::pass::Pass;
use super::tuning::{Dropout, Tuning};
use crate::transformer::attention;
use crate::transformer::block::tests::{gelu, linear, random_block};
use crate::transformer::block::{Order, Raw, Stack};
use crate::transformer::math::Activation;
use crate::transformer::module::{Adapter, Lora, Module, Parameters, Prompts, Random, Ssf};
use crate::transformer::norm;
use crate::transformer::strips::Strips;
use crate::transformer::testing::{close, matrix, random};

pub(super) const HEADS: usize = 2;
pub(super) const SIZE: usize = 20;
pub(super) const D: usize = HEADS * SIZE;
pub(super) const INNER: usize = 50;
pub(super) const BLOCKS: usize = 3;
/// Two sequences, with the rows of two prompts at their ends.
const ENDS: [usize; 2] = [6, 13];
const PROMPTS: usize = 2;

/// A stack in f64 that reads the numbers of modules by name.
struct Reference<'a> {
    raw: Vec<Raw>,
    order: Order,
    parameters: &'a Parameters,
}

impl Reference<'_> {
    fn get<'v>(&self, values: &'v [f64], name: &str) -> Option<&'v [f64]> {
        let tensor = self.parameters.tensors().iter().find(|tensor| tensor.name == name)?;
        Some(&values[tensor.range.clone()])
    }

    /// The output of all tokens of a sequence.
    fn forward(&self, values: &[f64], mut x: Vec<f64>) -> Vec<f64> {
        for (i, raw) in self.raw.iter().enumerate() {
            let get = |name: &str| self.get(values, &format!("blocks.{i}.{name}"));
            if let Some(prompts) = get("prompts") {
                let start = x.len() - prompts.len();
                x[start..].copy_from_slice(prompts);
            }
            let affine = |name: &str, x: Vec<f64>| match get(&format!("ssf.{name}.scale")) {
                None => x,
                Some(scale) => {
                    let shift = get(&format!("ssf.{name}.shift")).unwrap();
                    let n = scale.len();
                    x.iter().enumerate().map(|(i, x)| x * scale[i % n] + shift[i % n]).collect()
                }
            };
            let norm = |name: &str, x: &[f64], (gain, bias): &(Vec<f32>, Vec<f32>)| {
                affine(name, norm::tests::naive(x, gain, bias, 1e-6))
            };
            let attend = |x: &[f64]| {
                let mut qkv = affine("qkv", linear(x, &raw.qkv, None));
                for (name, at) in [("queries", 0), ("values", 2 * D)] {
                    let Some(a) = get(&format!("lora.{name}.a")) else { continue };
                    let delta = product(&product(x, a, D), get(&format!("lora.{name}.b")).unwrap(), a.len() / D);
                    for (qkv, delta) in qkv.chunks_mut(3 * D).zip(delta.chunks(D)) {
                        qkv[at..at + D].iter_mut().zip(delta).for_each(|(x, delta)| *x += 0.5 * delta);
                    }
                }
                let mixed = attention::tests::naive(&qkv, HEADS, SIZE, 1.0 / (SIZE as f64).sqrt());
                affine("project", linear(&mixed, &raw.project, None))
            };
            let mlp = |x: &[f64]| {
                let inner = affine("expand", linear(x, &raw.expand, None)).into_iter().map(gelu).collect::<Vec<_>>();
                affine("contract", linear(&inner, &raw.contract, None))
            };
            let beside = |x: &[f64]| match get("adapter.down.weight") {
                None => vec![0.0; x.len()],
                Some(down) => {
                    let part = |name: &str| get(&format!("adapter.{name}")).unwrap();
                    let bias = |x: Vec<f64>, bias: &[f64]| -> Vec<f64> {
                        x.iter().enumerate().map(|(i, x)| x + bias[i % bias.len()]).collect()
                    };
                    let inner = bias(product(x, down, D), part("down.bias"));
                    let inner: Vec<f64> = inner.into_iter().map(|x| x.max(0.0)).collect();
                    let out = bias(product(&inner, part("up.weight"), down.len() / D), part("up.bias"));
                    out.into_iter().map(|x| 0.1 * x).collect()
                }
            };
            let add = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x + y).collect::<Vec<f64>>();
            match self.order {
                Order::Before => {
                    x = add(&x, &attend(&norm("norm1", &x, &raw.norm1)));
                    x = add(&add(&x, &mlp(&norm("norm2", &x, &raw.norm2))), &beside(&x));
                }
                Order::After => {
                    x = norm("norm1", &add(&x, &attend(&x)), &raw.norm1);
                    x = norm("norm2", &add(&add(&x, &mlp(&x)), &beside(&x)), &raw.norm2);
                }
            }
        }
        x
    }
}

/// `x W'`, W of `inputs` columns.
fn product(x: &[f64], w: &[f64], inputs: usize) -> Vec<f64> {
    x.chunks(inputs).flat_map(|x| w.chunks(inputs).map(|w| x.iter().zip(w).map(|(x, w)| x * w).sum())).collect()
}

pub(super) fn stack(order: Order) -> Stack {
    let block = |i| random_block(D, INNER, false, 100 * i as u64).pack(HEADS, SIZE, 1e-6);
    Stack { blocks: (0..BLOCKS).map(block).collect(), order, heads: HEADS, size: SIZE, activation: Activation::Gelu }
}

/// Adds a module of a kind to the blocks from one on, and gives its numbers other values than those at the start.
fn tune(kind: &str, from: usize) -> (Parameters, Vec<Module>, Vec<Option<Prompts>>) {
    let mut parameters = Parameters::default();
    let mut random_numbers = Random::new(1, 0);
    let (mut modules, mut prompts) = (Vec::new(), Vec::new());
    for i in 0..BLOCKS {
        let (to, name, random) = (&mut parameters, format!("blocks.{i}"), &mut random_numbers);
        let trained = i >= from;
        modules.push(match kind {
            "adapter" if trained => Module::Adapter(Adapter::add(to, &name, D, 7, 0.1, random)),
            "lora" if trained => Module::Lora(Lora::add(to, &name, D, 3, 0.5, random)),
            "ssf" if trained => Module::Ssf(Ssf::add(to, &name, D, INNER, random)),
            _ => Module::None,
        });
        let prompted = kind == "vpt-deep" && trained || kind == "vpt-shallow" && i == from;
        prompts.push(prompted.then(|| Prompts::add(to, &name, D, PROMPTS, random)));
    }
    let scale = if kind == "ssf" { 0.1 } else { 0.5 };
    let noise = random(parameters.values.len(), 77);
    parameters.values.iter_mut().zip(noise).for_each(|(x, noise)| *x += scale * noise);
    (parameters, modules, prompts)
}

fn tuning<'a>(
    modules: &'a [Module],
    prompts: &'a [Option<Prompts>],
    parameters: &'a Parameters,
    dropout: Option<Dropout>,
) -> Tuning<'a> {
    Tuning { modules, prompts, values: &parameters.values, inserts: None, dropout }
}

#[test]
fn gradients_of_every_module_are_those_of_finite_differences() {
    for order in [Order::Before, Order::After] {
        for kind in ["adapter", "lora", "ssf", "vpt-deep", "vpt-shallow"] {
            for (from, first, most) in [(0, None, BLOCKS), (0, Some(1), BLOCKS), (1, Some(2), 1), (2, Some(1), 0)] {
                let stack = stack(order);
                let (parameters, modules, prompts) = tune(kind, from);
                let tuning = tuning(&modules, &prompts, &parameters, None);
                let x = random(ENDS[1] * D, 1);
                let mut pass = Pass::of(matrix(&x, D), ENDS.to_vec());
                pass.forward(&stack, tuning, first, most);
                let kept: Vec<usize> = match first {
                    None => (0..ENDS[1]).collect(),
                    Some(count) => (0..count).chain(ENDS[0]..ENDS[0] + count).collect(),
                };
                let slope = random(kept.len() * D, 2);
                let raw = |i| random_block(D, INNER, false, 100 * i as u64);
                let reference = Reference { raw: (0..BLOCKS).map(raw).collect(), order, parameters: &parameters };
                let wide: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
                let output = |values: &[f64]| {
                    let sequences = [&wide[..ENDS[0] * D], &wide[ENDS[0] * D..]];
                    let all = sequences.map(|x| reference.forward(values, x.to_vec())).concat();
                    kept.iter().flat_map(|row| all[row * D..(row + 1) * D].to_vec()).collect::<Vec<f64>>()
                };
                let values: Vec<f64> = parameters.values.iter().map(|x| f64::from(*x)).collect();
                close(&crate::transformer::testing::rows(&pass.x, D), &output(&values), 5e-6);

                let mut dx = matrix(&slope, D);
                let mut found = vec![0.0; values.len()];
                pass.backward(&stack, tuning, &mut dx, false, &mut found);
                let loss = |values: &[f64]| -> f64 {
                    output(values).iter().zip(&slope).map(|(y, slope)| y * f64::from(*slope)).sum()
                };
                for tensor in parameters.tensors() {
                    let step = 1 + tensor.range.len() / 12;
                    let at: Vec<usize> = tensor.range.clone().step_by(step).collect();
                    let expected: Vec<f64> = at
                        .iter()
                        .map(|i| {
                            let at = |change: f64| {
                                let mut values = values.clone();
                                values[*i] += change;
                                loss(&values)
                            };
                            (at(1e-5) - at(-1e-5)) / 2e-5
                        })
                        .collect();
                    let found: Vec<f32> = at.iter().map(|i| found[*i]).collect();
                    println!("{order:?} {kind} {from} {first:?} {}", tensor.name);
                    close(&found, &expected, 1e-4);
                }
            }
        }
    }
}

#[test]
fn blocks_that_are_computed_again_have_the_same_gradients_to_the_last_bit() {
    let stack = stack(Order::Before);
    let (parameters, modules, prompts) = tune("adapter", 0);
    let dropout = Some(Dropout { rate: 0.3, seed: 5, step: 2 });
    let tuning = tuning(&modules, &prompts, &parameters, dropout);
    let run = |most: usize| {
        let mut pass = Pass::of(matrix(&random(ENDS[1] * D, 1), D), ENDS.to_vec());
        pass.forward(&stack, tuning, Some(1), most);
        let mut dx = matrix(&random(2 * D, 2), D);
        let mut out = vec![0.0; parameters.values.len()];
        pass.backward(&stack, tuning, &mut dx, false, &mut out);
        out
    };
    let all = run(BLOCKS);
    assert!(all.iter().any(|x| *x != 0.0));
    assert_eq!(run(1), all);
    assert_eq!(run(0), all);
}

#[test]
fn dropout_drops_its_share_and_keeps_the_mean() {
    let mut x: Strips = matrix(&vec![1.0; 1000 * 64], 64);
    let dropout = Dropout { rate: 0.1, seed: 3, step: 1 };
    dropout.apply(0, &mut x);
    let numbers = crate::transformer::testing::rows(&x, 64);
    let dropped = numbers.iter().filter(|x| **x == 0.0).count();
    assert!((6_000..6_800).contains(&dropped), "{dropped} of 64000");
    assert!(numbers.iter().all(|x| *x == 0.0 || *x == 1.0 / 0.9));
    let mut again = matrix(&vec![1.0; 1000 * 64], 64);
    dropout.apply(1, &mut again);
    assert_ne!(crate::transformer::testing::rows(&again, 64), numbers);
}
