//! Gradients of attention, for each sequence and head:
//!
//! ```text
//! P = softmax(Q K'),  O = P V:    dV = P' dO;   dP = dO V';   dS = P ∘ (dP - rowsum(P ∘ dP));   dQ = dS K;   dK = dS' Q
//! ```
//!
//! Scores are computed again rather than kept. They exist for [`BLOCK`] tokens of one head at a time. Cost: `10 n² h` flops for a sequence of n
//! tokens and a head of size h.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::transformer::attention::{Given, Packed, exponentials, transpose};
use crate::transformer::kernel::{ROWS, outer, product};
use crate::transformer::strips::{Left, Strip, Strips, WIDTH};

/// Tokens whose scores are computed together: a multiple of the rows of a tile.
const BLOCK: usize = 20 * ROWS;

/// From the gradient of what `attend` returned to those of the queries, and of the keys of all heads and then the values.
pub(crate) fn attend_backward(
    queries: Packed<'_>,
    keys: Packed<'_>,
    (heads, size): (usize, usize),
    dout: &Strips,
    dq: &mut Strips,
    dkv: &mut Strips,
) {
    let strips = size.div_ceil(WIDTH);
    dq.reshape(queries.matrix.rows(), heads * strips);
    dkv.reshape(keys.matrix.rows(), 2 * heads * strips);
    let mut dq = dq.cut(queries.ends.iter().copied()).into_iter();
    let mut dkv = dkv.cut(keys.ends.iter().copied()).into_iter();
    let mut tasks = Vec::new();
    for sequence in 0..queries.ends.len() {
        let dq: Vec<_> = dq.by_ref().take(heads * strips).collect();
        let dk: Vec<_> = dkv.by_ref().take(heads * strips).collect();
        let dv: Vec<_> = dkv.by_ref().take(heads * strips).collect();
        let [mut dq, mut dk, mut dv] = [dq, dk, dv].map(Vec::into_iter);
        for head in 0..heads {
            let [dq, dk, dv] = [&mut dq, &mut dk, &mut dv].map(|pieces| pieces.take(strips).collect::<Vec<_>>());
            tasks.push((sequence, head, dq, dk, dv));
        }
    }
    tasks.into_par_iter().for_each_init(Vec::new, |scratch, (sequence, head, mut dq, mut dk, mut dv)| {
        let given = Given::of(queries, keys, (sequence, head), (heads, size));
        let dout = dout.from(head * strips);
        let head = Head { given, dout, scratch, dq: &mut dq, dk: &mut dk, dv: &mut dv };
        if head.given.asked.is_empty() {
            head.dq.iter_mut().for_each(|strip| strip.fill(Strip::ZERO));
        } else {
            Arch::new().dispatch(head);
        }
    });
}

/// One head of one sequence.
struct Head<'a, 'b> {
    given: Given<'a>,
    dout: Left<'a>,
    scratch: &'a mut Vec<Strip>,
    dq: &'a mut [&'b mut [Strip]],
    dk: &'a mut [&'b mut [Strip]],
    dv: &'a mut [&'b mut [Strip]],
}

impl WithSimd for Head<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Head { given: Given { queries, asking, keys, values, asked, size }, dout, scratch, dq, dk, dv } = self;
        let n = asked.len();
        let groups = n.div_ceil(WIDTH);
        // Rows past a block are read by the last tile, and their results are dropped.
        let stride = BLOCK + ROWS;
        let needed = 2 * groups * (size + stride);
        if scratch.len() < needed {
            scratch.resize(needed, Strip::ZERO);
        }
        let (packed, scores) = scratch[..needed].split_at_mut(2 * groups * size);
        let (packed_keys, packed_values) = packed.split_at_mut(groups * size);
        let (weights, slopes) = scores.split_at_mut(groups * stride);
        for (s, at) in (0..size).step_by(WIDTH).enumerate() {
            transpose(&keys.data[s * keys.stride..][asked.clone()], packed_keys, size, at);
            transpose(&values.data[s * values.stride..][asked.clone()], packed_values, size, at);
        }
        dk.iter_mut().chain(dv.iter_mut()).for_each(|strip| strip.fill(Strip::ZERO));
        for first in (0..asking.len()).step_by(BLOCK) {
            let rows = BLOCK.min(asking.len() - first);
            let start = asking.start + first;
            for (left, packed, out) in [(queries, &*packed_keys, &mut *weights), (dout, &*packed_values, &mut *slopes)]
            {
                for (g, right) in packed.chunks_exact(size).enumerate() {
                    let out = &mut out[g * stride..][..rows];
                    product(simd, left, start, rows, right, |row, tile| {
                        out[row..][..tile.len()].copy_from_slice(tile);
                    });
                }
            }
            for row in 0..rows {
                let scale = 1.0 / exponentials(simd, &mut weights[row..], stride, n);
                softmax_backward(simd, &mut weights[row..], &mut slopes[row..], (stride, groups), scale);
            }
            for (s, dq) in dq.iter_mut().enumerate() {
                let keys = &keys.data[s * keys.stride..][asked.clone()];
                let dq = &mut dq[first..][..rows];
                product(simd, Left { data: slopes, stride }, 0, rows, keys, |row, tile| {
                    dq[row..][..tile.len()].copy_from_slice(tile);
                });
            }
            for (left, right, out) in [(&*slopes, queries, &mut *dk), (&*weights, dout, &mut *dv)] {
                for (s, out) in out.iter_mut().enumerate() {
                    let right = &right.data[s * right.stride + start..][..rows];
                    for (left, out) in left.chunks_exact(stride).zip(out.chunks_mut(WIDTH)) {
                        let mut tile = [Strip::ZERO; WIDTH];
                        outer(simd, &left[..rows], right, &mut tile);
                        for (out, tile) in out.iter_mut().zip(&tile) {
                            for (out, x) in out.vectors_mut::<S>().iter_mut().zip(tile.vectors::<S>()) {
                                *out = simd.add_f32s(*out, *x);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Of one token: scales the exponentials to weights P, and replaces dP by dS.
#[inline(always)]
fn softmax_backward<S: Simd>(
    simd: S,
    weights: &mut [Strip],
    slopes: &mut [Strip],
    (stride, groups): (usize, usize),
    scale: f32,
) {
    let scale = simd.splat_f32s(scale);
    let mut sum = simd.splat_f32s(0.0);
    for (weights, slopes) in weights.iter_mut().step_by(stride).zip(slopes.iter().step_by(stride)).take(groups) {
        for (weight, slope) in weights.vectors_mut::<S>().iter_mut().zip(slopes.vectors::<S>()) {
            *weight = simd.mul_f32s(*weight, scale);
            sum = simd.mul_add_e_f32s(*weight, *slope, sum);
        }
    }
    let sum = simd.splat_f32s(simd.reduce_sum_f32s(sum));
    for (weights, slopes) in weights.iter().step_by(stride).zip(slopes.iter_mut().step_by(stride)).take(groups) {
        for (weight, slope) in weights.vectors::<S>().iter().zip(slopes.vectors_mut::<S>()) {
            *slope = simd.mul_f32s(*weight, simd.sub_f32s(*slope, sum));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transformer::attention::tests::{grouped, naive};
    use crate::transformer::testing::{close, random, rows};

    /// The numbers of each group of `size` features, without padding.
    fn ungrouped(matrix: &Strips, features: usize, size: usize) -> Vec<f32> {
        let padded = size.next_multiple_of(WIDTH);
        let all = rows(matrix, features / size * padded);
        all.chunks(padded)
            .flat_map(|group| {
                assert!(group[size..].iter().all(|x| *x == 0.0), "padding of a head");
                group[..size].to_vec()
            })
            .collect()
    }

    #[test]
    fn gradients_of_attention_are_those_of_finite_differences() {
        for (heads, size, ends) in [(2, 20, vec![1, 1, 8]), (1, 40, vec![5]), (1, 3, vec![250, 253])] {
            let (d, n) = (heads * size, *ends.last().unwrap());
            let x: Vec<f32> = random(n * 3 * d, 1).iter().map(|x| 1.5 * x).collect();
            let dout = random(n * d, 2);
            let wide: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
            let loss = |x: &[f64]| -> f64 {
                let mut start = 0;
                let mut sum = 0.0;
                for end in &ends {
                    let out = naive(&x[start * 3 * d..end * 3 * d], heads, size, 1.0);
                    sum += out.iter().zip(&dout[start * d..]).map(|(x, dy)| x * f64::from(*dy)).sum::<f64>();
                    start = *end;
                }
                sum
            };
            let matrix = grouped(&x, 3 * d, size);
            let from = |strip: usize| Packed { matrix: &matrix, strip, ends: &ends };
            let (mut dq, mut dkv) = (Strips::default(), Strips::default());
            let strips = heads * size.div_ceil(WIDTH);
            attend_backward(from(0), from(strips), (heads, size), &grouped(&dout, d, size), &mut dq, &mut dkv);
            let (dq, dkv) = (ungrouped(&dq, d, size), ungrouped(&dkv, 2 * d, size));
            let mut found = Vec::new();
            let mut expected = Vec::new();
            // Some of many numbers, as each takes two passes.
            for i in (0..n * 3 * d).step_by(1 + n * 3 * d / 400) {
                let (row, column) = (i / (3 * d), i % (3 * d));
                found.push(if column < d { dq[row * d + column] } else { dkv[row * 2 * d + column - d] });
                let at = |step: f64| {
                    let mut x = wide.clone();
                    x[i] += step;
                    loss(&x)
                };
                expected.push((at(1e-5) - at(-1e-5)) / 2e-5);
            }
            close(&found, &expected, 2e-5);
        }
    }
}
