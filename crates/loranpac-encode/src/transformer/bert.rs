//! BERT on tokens.
//!
//! ```text
//! x = norm(words[token] + types[segment] + positions[place]);  blocks;  feature = mean of the tokens, or the first
//! ```

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::block::{Spare, Stack, Wanted, Workspace};
use super::norm::Norm;
use super::strips::{Strip, Strips, WIDTH};
use crate::tokenize::Sequence;

/// Tokens of one pass through the blocks.
const TOKENS: usize = 2048;

/// A text encoder without its tokenizer. Clones share the weights.
#[derive(Debug, Clone)]
pub(crate) struct Bert {
    pub d: usize,
    /// Embeddings row by row: of tokens, segments, and positions from the first that is used.
    pub words: Arc<Vec<f32>>,
    pub types: Arc<Vec<f32>>,
    pub positions: Arc<Vec<f32>>,
    pub norm: Norm,
    pub stack: Stack,
    pub pool: Pool,
    /// Whether features have unit length.
    pub unit: bool,
    pub spare: Spare,
}

/// How the tokens of a text become one feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pool {
    /// The mean of all tokens.
    Mean,
    /// The first token.
    First,
}

impl Bert {
    /// Features of texts: for each a row of `layers.len() * d` numbers. Tokens, segments and lengths must be in range. Texts lie behind each other
    /// without padding.
    pub fn features(&self, texts: &[&Sequence], layers: &[usize]) -> Vec<f32> {
        let row = layers.len() * self.d;
        let mut features = vec![0.0; texts.len() * row];
        if row == 0 {
            return features;
        }
        self.spare.with(|work| {
            for texts_of_pass in passes(texts) {
                let features = &mut features[texts_of_pass.start * row..texts_of_pass.end * row];
                self.pass(&texts[texts_of_pass], features, layers, work);
            }
        });
        features
    }

    /// Which tokens of each text have a part in its feature: the first ones, or all.
    pub fn first(&self) -> Option<usize> {
        (self.pool == Pool::First).then_some(1)
    }

    fn pass(&self, texts: &[&Sequence], features: &mut [f32], layers: &[usize], work: &mut Workspace) {
        let room = self.stack.room();
        self.embed(texts, room, &mut work.x, &mut work.ends);
        if work.x.rows() == 0 {
            return;
        }
        let row = features.len() / texts.len();
        self.stack.forward(work, Wanted { layers, first: self.first() }, |block, work| {
            for (slot, _) in layers.iter().enumerate().filter(|(_, layer)| **layer == block) {
                features.par_chunks_mut(row).enumerate().for_each(|(i, features)| {
                    let start = if i == 0 { 0 } else { work.ends[i - 1] };
                    self.pooled(&work.x, start..work.ends[i], room, &mut features[slot * self.d..][..self.d]);
                });
            }
        });
    }

    /// The tokens of texts into `x`: a sequence for each, with `room` more rows at its end.
    pub fn embed(&self, texts: &[&Sequence], room: usize, x: &mut Strips, ends: &mut Vec<usize>) {
        ends.clear();
        ends.extend(texts.iter().scan(0, |rows, text| {
            *rows += text.tokens.len() + room;
            Some(*rows)
        }));
        x.reshape(ends.last().copied().unwrap_or(0), self.d.div_ceil(WIDTH));
        let mut strips: Vec<&mut [Strip]> = x.strips_mut().collect();
        strips.par_iter_mut().enumerate().for_each(|(s, strip)| {
            let columns = s * WIDTH..self.d.min((s + 1) * WIDTH);
            let part = |row: usize| row * self.d + columns.start..row * self.d + columns.end;
            strip.fill(Strip::ZERO);
            let tokens = texts.iter().zip(&*ends).flat_map(|(text, end)| {
                let start = end - room - text.tokens.len();
                text.tokens.iter().zip(&text.types).enumerate().map(move |(place, token)| (start + place, place, token))
            });
            for (row, position, (token, kind)) in tokens {
                let strip = &mut strip[row];
                let words = &self.words[part(*token as usize)];
                let types = &self.types[part(*kind as usize)];
                let positions = &self.positions[part(position)];
                for (((x, word), kind), position) in strip.0.iter_mut().zip(words).zip(types).zip(positions) {
                    *x = word + kind + position;
                }
            }
        });
        self.norm.in_place(x);
    }

    /// The feature of a text from its tokens, with `room` rows of prompts at their end, unless only the first is left.
    pub fn pooled(&self, x: &Strips, tokens: Range<usize>, room: usize, feature: &mut [f32]) {
        let tokens = match self.pool {
            Pool::First => tokens.start..tokens.end.min(tokens.start + 1),
            Pool::Mean => tokens.start..tokens.end - room,
        };
        // A text without any token has zeros.
        let share = 1.0 / tokens.len().max(1) as f32;
        for (s, feature) in feature.chunks_mut(WIDTH).enumerate() {
            let mut sum = Strip::ZERO;
            for strip in &x.strip(s)[tokens.clone()] {
                sum.0.iter_mut().zip(&strip.0).for_each(|(sum, x)| *sum += x);
            }
            feature.iter_mut().zip(&sum.0).for_each(|(feature, sum)| *feature = sum * share);
        }
        if self.unit {
            let length = feature.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
            let scale = 1.0 / length.max(1e-12) as f32;
            feature.iter_mut().for_each(|x| *x *= scale);
        }
    }
}

/// Divides texts, in order, into passes of about [`TOKENS`] tokens.
fn passes(texts: &[&Sequence]) -> Vec<Range<usize>> {
    let mut passes = Vec::new();
    let (mut start, mut tokens) = (0, 0);
    for (i, text) in texts.iter().enumerate() {
        if i > start && tokens + text.tokens.len() > TOKENS {
            passes.push(start..i);
            (start, tokens) = (i, 0);
        }
        tokens += text.tokens.len();
    }
    if start < texts.len() {
        passes.push(start..texts.len());
    }
    passes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_cover_all_texts_in_order() {
        let text = |n: usize| Sequence { tokens: vec![0; n], types: vec![0; n] };
        let texts = [text(2000), text(48), text(1), text(5000), text(3)];
        assert_eq!(passes(&texts.each_ref()), [0..2, 2..3, 3..4, 4..5]);
        assert!(passes(&[]).is_empty());
    }
}
