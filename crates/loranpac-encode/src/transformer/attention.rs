//! Attention of each token to all tokens of its own sequence:
//!
//! ```text
//! O = softmax(Q K') V        for each sequence and head; Q is scaled by 1 / sqrt(head size) in its weights
//! ```
//!
//! Sequences of different lengths lie behind each other without padding. Scores exist for [`BLOCK`] tokens of one head at a time.
//! Cost: `4 n² h` flops for a sequence of n tokens and a head of size h.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::kernel::{ROWS, product};
use super::math::exp;
use super::strips::{Left, Strip, Strips, WIDTH};

/// Tokens whose scores are computed together: a multiple of the rows of a tile.
const BLOCK: usize = 4 * ROWS;

/// Some features of the tokens of sequences that lie behind each other.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'a> {
    pub matrix: &'a Strips,
    /// The first strip of the features.
    pub strip: usize,
    /// The row after the last of each sequence.
    pub ends: &'a [usize],
}

impl Packed<'_> {
    /// The rows of a sequence.
    pub fn sequence(&self, i: usize) -> Range<usize> {
        (if i == 0 { 0 } else { self.ends[i - 1] })..self.ends[i]
    }
}

/// Attends within each sequence: the tokens of `queries` to those of `keys`, whose features are the keys of all heads and then the values. Each
/// head has whole strips, and `size` features.
pub(crate) fn attend(queries: Packed<'_>, keys: Packed<'_>, heads: usize, size: usize, out: &mut Strips) {
    let strips = size.div_ceil(WIDTH);
    assert_eq!(queries.ends.len(), keys.ends.len(), "sequences of an attention");
    out.reshape(queries.matrix.rows(), heads * strips);
    let pieces = out.cut(queries.ends.iter().copied());
    pieces.into_par_iter().chunks(strips).enumerate().for_each_init(Vec::new, |scratch, (i, mut out)| {
        let (sequence, head) = (i / heads, i % heads);
        let given = Given::of(queries, keys, (sequence, head), (heads, size));
        if !given.asking.is_empty() && !given.asked.is_empty() {
            Arch::new().dispatch(Head { given, scratch, out: &mut out });
        }
    });
}

/// Queries, keys and values of one head of one sequence.
pub(crate) struct Given<'a> {
    pub queries: Left<'a>,
    /// Rows of the queries.
    pub asking: Range<usize>,
    pub keys: Left<'a>,
    pub values: Left<'a>,
    /// Rows of keys and values.
    pub asked: Range<usize>,
    pub size: usize,
}

impl<'a> Given<'a> {
    /// Those of a head of a sequence, of `heads` heads of `size` features.
    pub fn of(
        queries: Packed<'a>,
        keys: Packed<'a>,
        (sequence, head): (usize, usize),
        (heads, size): (usize, usize),
    ) -> Given<'a> {
        let strips = size.div_ceil(WIDTH);
        let key = keys.strip + head * strips;
        Given {
            queries: queries.matrix.from(queries.strip + head * strips),
            asking: queries.sequence(sequence),
            keys: keys.matrix.from(key),
            values: keys.matrix.from(key + heads * strips),
            asked: keys.sequence(sequence),
            size,
        }
    }
}

/// One head of one sequence.
struct Head<'a, 'b> {
    given: Given<'a>,
    scratch: &'a mut Vec<Strip>,
    out: &'a mut [&'b mut [Strip]],
}

impl WithSimd for Head<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Head { given: Given { queries, asking, keys: given, values, asked, size }, scratch, out } = self;
        let n = asked.len();
        let groups = n.div_ceil(WIDTH);
        // Rows past a block are read by the last tile, and their results are dropped.
        let stride = BLOCK + ROWS;
        if scratch.len() < groups * (size + stride) {
            scratch.resize(groups * (size + stride), Strip::ZERO);
        }
        let (keys, scores) = scratch.split_at_mut(groups * size);
        for (s, keys_at) in (0..size).step_by(WIDTH).enumerate() {
            transpose(&given.data[s * given.stride..][asked.clone()], keys, size, keys_at);
        }
        for first in (0..asking.len()).step_by(BLOCK) {
            let rows = BLOCK.min(asking.len() - first);
            for (g, keys) in keys.chunks_exact(size).take(groups).enumerate() {
                let scores = &mut scores[g * stride..][..rows];
                product(simd, queries, asking.start + first, rows, keys, |row, tile| {
                    scores[row..][..tile.len()].copy_from_slice(tile);
                });
            }
            let mut scales = [0.0; BLOCK];
            for (row, scale) in scales[..rows].iter_mut().enumerate() {
                *scale = 1.0 / exponentials(simd, &mut scores[row..], stride, n);
            }
            let weights = Left { data: scores, stride };
            for (s, out) in out.iter_mut().enumerate() {
                let values = &values.data[s * values.stride..][asked.clone()];
                let out = &mut out[first..][..rows];
                product(simd, weights, 0, rows, values, |row, tile| {
                    for ((out, strip), scale) in out[row..].iter_mut().zip(tile.iter()).zip(&scales[row..]) {
                        let scale = simd.splat_f32s(*scale);
                        let x = strip.vectors::<S>();
                        for (out, x) in out.vectors_mut::<S>().iter_mut().zip(x) {
                            *out = simd.mul_f32s(*x, scale);
                        }
                    }
                });
            }
        }
    }
}

/// Writes keys as the right factor of a product: for each 32 tokens, a strip of them for each feature. Features of one strip are written from
/// `at` on; tokens past the last are zero.
#[inline(always)]
pub(crate) fn transpose(source: &[Strip], keys: &mut [Strip], size: usize, at: usize) {
    for (group, keys) in source.chunks(WIDTH).zip(keys.chunks_exact_mut(size)) {
        let keys = &mut keys[at..];
        for (i, token) in group.iter().enumerate() {
            keys.iter_mut().zip(&token.0).for_each(|(strip, x)| strip.0[i % WIDTH] = *x);
        }
        if group.len() < WIDTH {
            keys.iter_mut().take(WIDTH).for_each(|strip| strip.0[group.len()..].fill(0.0));
        }
    }
}

/// Replaces the n scores of a token by `exp(score - largest score)`. Returns their sum.
#[inline(always)]
pub(crate) fn exponentials<S: Simd>(simd: S, scores: &mut [Strip], stride: usize, n: usize) -> f32 {
    let groups = n.div_ceil(WIDTH);
    let unused = groups * WIDTH - n;
    scores[(groups - 1) * stride].0[WIDTH - unused..].fill(f32::NEG_INFINITY);
    let mut largest = simd.splat_f32s(f32::NEG_INFINITY);
    for strip in scores.iter().step_by(stride).take(groups) {
        for x in strip.vectors::<S>() {
            largest = simd.max_f32s(largest, *x);
        }
    }
    let largest = simd.splat_f32s(simd.reduce_max_f32s(largest));
    let mut sum = simd.splat_f32s(0.0);
    for strip in scores.iter_mut().step_by(stride).take(groups) {
        for x in strip.vectors_mut::<S>() {
            *x = exp(simd, simd.sub_f32s(*x, largest));
            sum = simd.add_f32s(sum, *x);
        }
    }
    simd.reduce_sum_f32s(sum)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::transformer::testing::{close, random, rows};

    /// Attention in f64 of one sequence: rows of queries, keys and values, `heads * size` of each.
    pub(crate) fn naive(qkv: &[f64], heads: usize, size: usize, scale: f64) -> Vec<f64> {
        let d = heads * size;
        let tokens: Vec<&[f64]> = qkv.chunks(3 * d).collect();
        let mut out = vec![0.0; tokens.len() * d];
        for head in 0..heads {
            let at = |part: usize| part * d + head * size..part * d + (head + 1) * size;
            for (q, out) in tokens.iter().zip(out.chunks_mut(d)) {
                let score = |k: &&[f64]| q[at(0)].iter().zip(&k[at(1)]).map(|(q, k)| q * k).sum::<f64>() * scale;
                let weights: Vec<f64> = tokens.iter().map(|k| score(k).exp()).collect();
                let sum: f64 = weights.iter().sum();
                for (token, weight) in tokens.iter().zip(&weights) {
                    for (out, v) in out[head * size..][..size].iter_mut().zip(&token[at(2)]) {
                        *out += weight / sum * v;
                    }
                }
            }
        }
        out
    }

    /// Rows in strips, each group of `size` features in strips of its own.
    pub(crate) fn grouped(x: &[f32], features: usize, size: usize) -> Strips {
        let strips = size.div_ceil(WIDTH);
        let mut matrix = Strips::default();
        matrix.reshape(x.len() / features, features / size * strips);
        for (s, strip) in matrix.strips_mut().enumerate() {
            for (strip, row) in strip.iter_mut().zip(x.chunks(features)) {
                *strip = Strip::pad(&row[s / strips * size..][..size])[s % strips];
            }
        }
        matrix
    }

    /// All tokens attend: queries, keys and values lie in one matrix.
    fn attend_all(qkv: &Strips, ends: &[usize], heads: usize, size: usize, out: &mut Strips) {
        let from = |strip: usize| Packed { matrix: qkv, strip, ends };
        attend(from(0), from(heads * size.div_ceil(WIDTH)), heads, size, out);
    }

    #[test]
    fn attention_of_packed_sequences_is_that_of_f64() {
        for (heads, size) in [(2, 64), (3, 32), (2, 40), (1, 5)] {
            let d = heads * size;
            let ends = [1, 1, 11, 44, 141];
            let x: Vec<f32> = random(141 * 3 * d, 1).iter().map(|x| 2.0 * x).collect();
            let mut out = Strips::default();
            attend_all(&grouped(&x, 3 * d, size), &ends, heads, size, &mut out);
            let mut expected = Vec::new();
            let mut start = 0;
            for end in ends {
                let part: Vec<f64> = x[start * 3 * d..end * 3 * d].iter().map(|x| f64::from(*x)).collect();
                expected.extend(naive(&part, heads, size, 1.0));
                start = end;
            }
            let padded = size.next_multiple_of(WIDTH);
            let found: Vec<f32> = rows(&out, heads * padded)
                .chunks(padded)
                .flat_map(|head| {
                    assert!(head[size..].iter().all(|x| *x == 0.0), "padding of a head");
                    head[..size].to_vec()
                })
                .collect();
            close(&found, &expected, 1e-5);
        }
    }

    #[test]
    fn large_scores_do_not_overflow() {
        let mut x = vec![0.0; 3 * 3];
        (x[0], x[1], x[2]) = (300.0, 300.0, 1.0);
        (x[3], x[4], x[5]) = (300.0, -300.0, 2.0);
        let mut out = Strips::default();
        attend_all(&grouped(&x, 3, 1), &[3], 1, 1, &mut out);
        // The first two tokens attend to the first; the third sees equal scores.
        close(&rows(&out, 1), &[1.0, 1.0, 1.0], 1e-6);
    }
}
