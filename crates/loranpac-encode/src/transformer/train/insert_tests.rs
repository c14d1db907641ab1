//! Gradients of rows that each sequence has for itself, against finite differences in f64.

use super::insert::{Inserts, Prefix, Tokens};
use super::inserter::{Inserter, Pooled};
use super::network_tests::{NETWORKS, network, texts};
use super::pass::Pass;
use super::tests::{BLOCKS, D, HEADS, INNER, SIZE, stack};
use super::tuning::Tuning;
use crate::tokenize::Sequence;
use crate::transformer::attention;
use crate::transformer::block::tests::{gelu, linear, random_block};
use crate::transformer::block::{Order, Raw};
use crate::transformer::module::Module;
use crate::transformer::network::Given;
use crate::transformer::norm;
use crate::transformer::testing::{close, matrix, random, rows};

/// Tokens of each sequence, without inserted ones.
const LENGTHS: [usize; 2] = [4, 6];
const COUNT: usize = 2;
const LENGTH: usize = 3;

/// The output of all tokens of sequence `i` in f64: rows of the prefixes are appended to queries, keys and values, and dropped after attention.
fn reference(raw: &[Raw], order: Order, mut x: Vec<f64>, inserts: &Inserts, values: &[f64], i: usize) -> Vec<f64> {
    if let Some(Tokens { start, count }) = inserts.tokens {
        x.extend_from_slice(&values[start + i * count * D..][..count * D]);
    }
    for (b, raw) in raw.iter().enumerate() {
        let norm = |x: &[f64], (gain, bias): &(Vec<f32>, Vec<f32>)| norm::tests::naive(x, gain, bias, 1e-6);
        let attend = |x: &[f64]| {
            let mut qkv = linear(x, &raw.qkv, None);
            if let Some(Prefix { start, length }) = inserts.prefix(b) {
                let own = &values[start + 2 * i * length * D..][..2 * length * D];
                for (key, value) in own[..length * D].chunks(D).zip(own[length * D..].chunks(D)) {
                    qkv.extend([0.0; D].iter().chain(key).chain(value));
                }
            }
            let mixed = attention::tests::naive(&qkv, HEADS, SIZE, 1.0 / (SIZE as f64).sqrt());
            linear(&mixed[..x.len()], &raw.project, None)
        };
        let mlp = |x: &[f64]| {
            let inner: Vec<f64> = linear(x, &raw.expand, None).into_iter().map(gelu).collect();
            linear(&inner, &raw.contract, None)
        };
        let add = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x + y).collect::<Vec<f64>>();
        match order {
            Order::Before => {
                x = add(&x, &attend(&norm(&x, &raw.norm1)));
                x = add(&x, &mlp(&norm(&x, &raw.norm2)));
            }
            Order::After => {
                x = norm(&add(&x, &attend(&x)), &raw.norm1);
                x = norm(&add(&x, &mlp(&x)), &raw.norm2);
            }
        }
    }
    x
}

/// Rows for a number of sequences: tokens, prefixes of some blocks, or both; and how many numbers they have.
fn inserts(tokens: bool, prefixed: &[usize], blocks: usize, d: usize, sequences: usize) -> (Inserts, usize) {
    let mut size = 0;
    let mut take = |rows: usize| {
        size += rows * d * sequences;
        size - rows * d * sequences
    };
    let tokens = tokens.then(|| Tokens { start: take(COUNT), count: COUNT });
    let prefix = |b: usize| prefixed.contains(&b).then(|| Prefix { start: take(2 * LENGTH), length: LENGTH });
    let prefixes = (0..blocks).map(prefix).collect();
    (Inserts { tokens, prefixes }, size)
}

#[test]
fn gradients_of_inserted_rows_are_those_of_finite_differences() {
    let cases: [(bool, &[usize]); 4] = [(true, &[]), (false, &[0, 1]), (false, &[1, 2]), (true, &[0, 2])];
    for order in [Order::Before, Order::After] {
        for ((tokens, prefixed), first, most) in cases
            .iter()
            .flat_map(|case| [(None, BLOCKS), (Some(1), 1), (Some(2), 0)].map(|(first, most)| (*case, first, most)))
        {
            let stack = stack(order);
            let (inserts, size) = inserts(tokens, prefixed, BLOCKS, D, 2);
            let values = random(size, 7);
            let room = inserts.room();
            let x = LENGTHS.map(|n| random(n * D, n as u64));
            let with_room = x.each_ref().map(|x| [&x[..], &vec![0.0; room * D]].concat()).concat();
            let ends = [LENGTHS[0] + room, LENGTHS[0] + LENGTHS[1] + 2 * room];
            let (modules, prompts) = ([const { Module::None }; BLOCKS], [const { None }; BLOCKS]);
            let tuning = Tuning {
                modules: &modules,
                prompts: &prompts,
                values: &values,
                inserts: Some(&inserts),
                dropout: None,
            };
            let mut pass = Pass::of(matrix(&with_room, D), ends.to_vec());
            pass.forward(&stack, tuning, first, most);

            let raw: Vec<Raw> = (0..BLOCKS).map(|i| random_block(D, INNER, false, 100 * i as u64)).collect();
            let output = |values: &[f64]| -> Vec<f64> {
                let outputs = (0..2).map(|i| {
                    let x = x[i].iter().map(|x| f64::from(*x)).collect();
                    let mut y = reference(&raw, order, x, &inserts, values, i);
                    y.truncate(first.map_or(y.len(), |first| first * D));
                    y
                });
                outputs.collect::<Vec<_>>().concat()
            };
            let wide: Vec<f64> = values.iter().map(|x| f64::from(*x)).collect();
            let expected = output(&wide);
            close(&rows(&pass.x, D), &expected, 5e-6);
            let mut predicted = Pass::of(matrix(&with_room, D), ends.to_vec());
            predicted.predict(&stack, tuning, first);
            assert_eq!(rows(&predicted.x, D), rows(&pass.x, D));

            let slope = random(expected.len(), 2);
            let mut found = vec![0.0; size];
            pass.backward(&stack, tuning, &mut matrix(&slope, D), false, &mut found);
            let loss = |values: &[f64]| -> f64 {
                output(values).iter().zip(&slope).map(|(y, slope)| y * f64::from(*slope)).sum()
            };
            let at: Vec<usize> = (0..size).step_by(1 + size / 60).collect();
            let slope_at = |i: &usize| {
                let at = |change: f64| {
                    let mut values = wide.clone();
                    values[*i] += change;
                    loss(&values)
                };
                (at(1e-5) - at(-1e-5)) / 2e-5
            };
            let expected: Vec<f64> = at.iter().map(slope_at).collect();
            println!("{order:?} {tokens} {prefixed:?} {first:?} {most}");
            close(&at.iter().map(|i| found[*i]).collect::<Vec<f32>>(), &expected, 1e-4);
        }
    }
}

#[test]
fn features_of_networks_with_inserted_rows_have_the_gradients_of_finite_differences() {
    for name in NETWORKS {
        let network = network(name);
        let (planes, texts) = (random(3 * 108, 9), texts());
        let texts: Vec<&Sequence> = texts.iter().collect();
        let given = if name.starts_with("text") { Given::Texts(&texts) } else { Given::Planes(&planes) };
        let (d, blocks) = (network.stack().shape().d, network.stack().blocks.len());
        for (tokens, prefixed, pooled) in
            [(true, &[][..], Pooled::Inserted), (false, &[0, 1], Pooled::Usual), (true, &[1], Pooled::Usual)]
        {
            let (inserts, size) = inserts(tokens, prefixed, blocks, d, 3);
            let values = random(size, 4);
            let weights = random(3 * network.dim(), 5);
            let loss = |values: &[f32]| -> f64 {
                let features = Inserter::default().forward(&network, given, (&inserts, values), pooled, None);
                features.iter().zip(&weights).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum()
            };
            let (mut inserter, mut gradient) = (Inserter::default(), vec![0.0; size]);
            inserter.forward(&network, given, (&inserts, &values), pooled, Some(1));
            inserter.backward(&network, (&inserts, &values), pooled, &weights, &mut gradient);
            let length = gradient.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
            let at = |change: f64| {
                let moved = values.iter().zip(&gradient).map(|(x, g)| x + (change * f64::from(*g) / length) as f32);
                loss(&moved.collect::<Vec<f32>>())
            };
            let expected = (at(1e-3) - at(-1e-3)) / 2e-3;
            assert!(length > 1e-3, "{name} {pooled:?}: {length}");
            assert!((length - expected).abs() < 0.02 * length + 3e-3, "{name} {pooled:?}: {length} not {expected}");
        }
    }
}
