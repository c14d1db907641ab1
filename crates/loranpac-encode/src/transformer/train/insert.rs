//! Trained rows that each sequence of a batch has for itself: tokens at its end, and prefixes of its keys and values in some blocks.
//!
//! ```text
//! tokens:    x = [x; P]  in front of the first block           prefixes:  softmax(Q [K; P_K]') [V; P_V]  in a block
//! ```
//!
//! Attention does not depend on the order of keys, so that the rows may lie behind those of the sequence.

use crate::transformer::block::Shape;
use crate::transformer::strips::{Strip, Strips, WIDTH};

/// Where the inserted rows of a batch are among the numbers of a pass.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inserts {
    /// In front of the first block.
    pub tokens: Option<Tokens>,
    /// Of each block.
    pub prefixes: Vec<Option<Prefix>>,
}

/// Tokens: `count` rows of d numbers for each sequence, from `start` on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens {
    pub start: usize,
    pub count: usize,
}

/// Prefixes: `length` rows of d numbers for keys and as many for values, for each sequence, from `start` on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prefix {
    pub start: usize,
    pub length: usize,
}

impl Inserts {
    /// The prefixes of a block.
    pub fn prefix(&self, block: usize) -> Option<Prefix> {
        self.prefixes.get(block).copied().flatten()
    }

    /// Rows at the end of each sequence that belong to tokens.
    pub fn room(&self) -> usize {
        self.tokens.map_or(0, |tokens| tokens.count)
    }
}

impl Tokens {
    /// Writes the tokens over the last rows of each sequence.
    pub fn write(self, values: &[f32], d: usize, x: &mut Strips, ends: &[usize]) {
        let rows: Vec<Vec<Strip>> = self.rows(values, d, ends.len()).chunks_exact(d).map(Strip::pad).collect();
        for (s, strip) in x.strips_mut().enumerate() {
            for (end, rows) in ends.iter().zip(rows.chunks(self.count)) {
                strip[end - self.count..*end].iter_mut().zip(rows).for_each(|(x, row)| *x = row[s]);
            }
        }
    }

    /// Adds the gradients of the tokens, given those of the first block's input.
    pub fn gradients(self, dx: &Strips, d: usize, ends: &[usize], out: &mut [f32]) {
        let size = self.count * d * ends.len();
        let out = &mut out[self.start..self.start + size];
        let rows = ends.iter().flat_map(|end| end - self.count..*end);
        let mut found = vec![0.0; d];
        for (row, out) in rows.zip(out.chunks_exact_mut(d)) {
            dx.row(row, &mut found);
            out.iter_mut().zip(&found).for_each(|(out, x)| *out += x);
        }
    }

    fn rows(self, values: &[f32], d: usize, sequences: usize) -> &[f32] {
        &values[self.start..self.start + self.count * d * sequences]
    }
}

impl Prefix {
    /// Keys and values with those of the prefixes behind the rows of each sequence.
    pub fn join(
        self,
        values: &[f32],
        shape: Shape,
        (kv, ends): (&Strips, &[usize]),
        joined: &mut Strips,
        joined_ends: &mut Vec<usize>,
    ) {
        joined_ends.clear();
        joined_ends.extend(ends.iter().enumerate().map(|(i, end)| end + (i + 1) * self.length));
        joined.reshape(kv.rows() + ends.len() * self.length, kv.strips());
        let (half, layout) = (self.length * shape.d, shape.heads_layout());
        let spread = |rows: &[f32]| -> Vec<Vec<Strip>> { rows.chunks(shape.d).map(|row| layout.spread(row)).collect() };
        // Of each sequence: the keys and the values of its rows, in strips.
        let prefixes: Vec<[Vec<Vec<Strip>>; 2]> = values[self.start..][..2 * half * ends.len()]
            .chunks(2 * half)
            .map(|rows| [spread(&rows[..half]), spread(&rows[half..])])
            .collect();
        for (s, joined) in joined.strips_mut().enumerate() {
            let (part, own) = (s / layout.strips(), s % layout.strips());
            for (i, end) in ends.iter().enumerate() {
                let start = if i == 0 { 0 } else { ends[i - 1] };
                let place = &mut joined[start + i * self.length..end + (i + 1) * self.length];
                let (rows, inserted) = place.split_at_mut(end - start);
                rows.copy_from_slice(&kv.strip(s)[start..*end]);
                inserted.iter_mut().zip(&prefixes[i][part]).for_each(|(x, row)| *x = row[own]);
            }
        }
    }

    /// The gradients of keys and values without those of prefixes, which are added to `out`.
    pub fn split(self, shape: Shape, (joined, ends): (&Strips, &[usize]), dkv: &mut Strips, out: &mut [f32]) {
        dkv.reshape(joined.rows() - ends.len() * self.length, joined.strips());
        for (s, dkv) in dkv.strips_mut().enumerate() {
            for (i, end) in ends.iter().enumerate() {
                let start = if i == 0 { 0 } else { ends[i - 1] };
                dkv[start..*end].copy_from_slice(&joined.strip(s)[start + i * self.length..end + i * self.length]);
            }
        }
        let (d, layout) = (shape.d, shape.heads_layout());
        let out = &mut out[self.start..][..2 * self.length * d * ends.len()];
        for (i, end) in ends.iter().enumerate() {
            for part in 0..2 {
                for row in 0..self.length {
                    let place = end + i * self.length + row;
                    let out = &mut out[((2 * i + part) * self.length + row) * d..][..d];
                    for (feature, out) in out.iter_mut().enumerate() {
                        let at = layout.place(feature);
                        *out += joined.strip(part * layout.strips() + at / WIDTH)[place].0[at % WIDTH];
                    }
                }
            }
        }
    }
}
