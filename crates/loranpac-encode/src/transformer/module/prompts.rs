//! Visual prompt tuning: tokens after those of each sequence, in front of the first block (shallow) or new ones in front of each (deep).

use std::ops::Range;

use super::parameters::{Parameters, Random, Start};
use crate::transformer::strips::{Strip, Strips, WIDTH};

/// Where the prompts of a block are.
#[derive(Debug, Clone)]
pub(crate) struct Prompts {
    /// Tokens per sequence.
    pub count: usize,
    range: Range<usize>,
}

impl Prompts {
    /// Adds the tensor of a block's prompts.
    pub fn add(to: &mut Parameters, block: &str, d: usize, count: usize, random: &mut Random) -> Prompts {
        Prompts { count, range: to.add(format!("{block}.prompts"), &[count, d], Start::Constant(0.0), random) }
    }

    /// Its tokens.
    pub fn pack(&self, values: &[f32], d: usize) -> Vec<Vec<Strip>> {
        values[self.range.clone()].chunks_exact(d).map(Strip::pad).collect()
    }

    /// Adds the gradients, given those of the block's input, whose rows of prompts become zero.
    pub fn gradients(&self, dx: &mut Strips, d: usize, ends: &[usize], out: &mut [f32]) {
        let out = &mut out[self.range.clone()];
        for (s, strip) in dx.strips_mut().enumerate() {
            let columns = s * WIDTH..d.min((s + 1) * WIDTH);
            for end in ends {
                for (out, dx) in out.chunks_exact_mut(d).zip(&mut strip[end - self.count..*end]) {
                    out[columns.clone()].iter_mut().zip(&dx.0).for_each(|(out, dx)| *out += dx);
                    *dx = Strip::ZERO;
                }
            }
        }
    }
}
