//! The layout of activations and weights: matrices of strips.
//!
//! A [`Strip`] holds 32 neighbouring features of one token. [`Strips`] holds a matrix of tokens x features with all tokens of the
//! first 32 features first, then all tokens of the next 32:
//!
//! ```text
//! strip 0: token 0, token 1, … | strip 1: token 0, token 1, … | …
//! ```
//!
//! A tile of a matrix product (some tokens x 32 features) is therefore one contiguous piece of memory, for reading as for writing:
//! nothing is ever packed between two layers, and threads write disjoint slices.

use pulp::Simd;

/// Features per strip.
pub(crate) const WIDTH: usize = 32;

/// Rows that a kernel may read past the last token.
pub(crate) const SLACK: usize = 12;

/// 32 neighbouring features of a token, or of an input of a linear layer 32 neighbouring outputs' weights.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Strip(pub [f32; WIDTH]);

impl Strip {
    /// Zeros.
    pub const ZERO: Strip = Strip([0.0; WIDTH]);

    /// Features, padded with zeros to whole strips.
    pub fn pad(features: &[f32]) -> Vec<Strip> {
        let pad = |chunk: &[f32]| {
            let mut strip = Strip::ZERO;
            strip.0[..chunk.len()].copy_from_slice(chunk);
            strip
        };
        features.chunks(WIDTH).map(pad).collect()
    }

    /// The features as vectors.
    #[inline(always)]
    pub fn vectors<S: Simd>(&self) -> &[S::f32s] {
        S::as_simd_f32s(&self.0).0
    }

    /// The features as vectors.
    #[inline(always)]
    pub fn vectors_mut<S: Simd>(&mut self) -> &mut [S::f32s] {
        S::as_mut_simd_f32s(&mut self.0).0
    }
}

/// A matrix of `rows` tokens x `strips * 32` features. Features beyond the true number are zero.
#[derive(Debug, Default)]
pub(crate) struct Strips {
    rows: usize,
    strips: usize,
    stride: usize,
    data: Vec<Strip>,
}

impl Strips {
    /// Changes the shape. The contents are unspecified afterwards. Memory grows to the largest shape so far and stays.
    pub fn reshape(&mut self, rows: usize, strips: usize) {
        self.rows = rows;
        self.strips = strips;
        self.stride = stride(rows);
        if self.data.len() < self.stride * strips {
            self.data.resize(self.stride * strips, Strip::ZERO);
        }
    }

    /// Number of tokens.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of strips per token.
    pub fn strips(&self) -> usize {
        self.strips
    }

    /// The strips from one on, as the left factor of a product.
    pub fn from(&self, strip: usize) -> Left<'_> {
        Left { data: &self.data[strip * self.stride..], stride: self.stride }
    }

    /// One strip of all tokens, and of the slack after them.
    pub fn strip(&self, strip: usize) -> &[Strip] {
        &self.data[strip * self.stride..][..self.stride]
    }

    /// Each strip of all tokens.
    pub fn strips_mut(&mut self) -> impl Iterator<Item = &mut [Strip]> {
        self.data.chunks_exact_mut(self.stride).take(self.strips).map(|strip| &mut strip[..self.rows])
    }

    /// The features of a token, without padding.
    pub fn row(&self, row: usize, features: &mut [f32]) {
        for (s, chunk) in features.chunks_mut(WIDTH).enumerate() {
            chunk.copy_from_slice(&self.strip(s)[row].0[..chunk.len()]);
        }
    }

    /// Copies the first rows of each group of rows, at most `count`. Groups are given by the row after their last, and so are those of the result.
    pub fn first_of_each(&self, ends: &[usize], count: usize, out: &mut Strips, out_ends: &mut Vec<usize>) {
        let starts = [0].into_iter().chain(ends.iter().copied());
        let kept = || starts.clone().zip(ends).map(|(start, end)| start..*end.min(&(start + count)));
        out_ends.clear();
        out_ends.extend(kept().scan(0, |rows, kept| {
            *rows += kept.len();
            Some(*rows)
        }));
        out.reshape(out_ends.last().copied().unwrap_or(0), self.strips);
        for (s, out) in out.strips_mut().enumerate() {
            out.iter_mut().zip(kept().flatten()).for_each(|(out, row)| *out = self.strip(s)[row]);
        }
    }

    /// Adds the rows of each group to the first rows of each group of `out`. Groups are given by the row after their last.
    pub fn add_to_first_of_each(&self, ends: &[usize], out: &mut Strips, out_ends: &[usize]) {
        assert_eq!(ends.len(), out_ends.len(), "groups of rows");
        let start_of = |ends: &[usize], i: usize| if i == 0 { 0 } else { ends[i - 1] };
        for (s, out) in out.strips_mut().enumerate() {
            for (i, end) in ends.iter().enumerate() {
                let rows = &self.strip(s)[start_of(ends, i)..*end];
                for (out, x) in out[start_of(out_ends, i)..].iter_mut().zip(rows) {
                    out.0.iter_mut().zip(&x.0).for_each(|(out, x)| *out += x);
                }
            }
        }
    }

    /// Copies all rows.
    pub fn copy_to(&self, out: &mut Strips) {
        self.strips_from(0, out);
    }

    /// Copies the strips from one on.
    pub fn strips_from(&self, strip: usize, out: &mut Strips) {
        out.reshape(self.rows, self.strips - strip);
        for (s, out) in out.strips_mut().enumerate() {
            out.copy_from_slice(&self.strip(strip + s)[..self.rows]);
        }
    }

    /// Cuts the rows into groups that end at the given rows. Returns all strips of the first group, then of the next.
    pub fn cut(&mut self, ends: impl Iterator<Item = usize>) -> Vec<&mut [Strip]> {
        let mut rest: Vec<&mut [Strip]> = self.strips_mut().collect();
        let mut pieces = Vec::new();
        let mut start = 0;
        for end in ends {
            for strip in &mut rest {
                let (piece, after) = std::mem::take(strip).split_at_mut(end - start);
                *strip = after;
                pieces.push(piece);
            }
            start = end;
        }
        pieces
    }

    /// Cuts the rows into groups of a size; the last may be smaller.
    pub fn cut_evenly(&mut self, rows: usize) -> Vec<&mut [Strip]> {
        let total = self.rows;
        self.cut((0..total.div_ceil(rows)).map(|group| total.min((group + 1) * rows)))
    }
}

/// The left factor of a product: strips that are a stride apart.
#[derive(Clone, Copy)]
pub(crate) struct Left<'a> {
    pub data: &'a [Strip],
    pub stride: usize,
}

/// Distance of strips. A strip is 128 bytes, so multiples of 1,024 rows would map all strips of a token to the same sets of a
/// level-2 cache (8 x 128 KiB); 633 is 1,024 times the golden ratio, which spreads them evenly.
fn stride(rows: usize) -> usize {
    let least = rows + SLACK;
    // Small matrices fit the cache in any layout.
    if least <= 128 { least } else { least + (633 + 1024 - least % 1024) % 1024 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_disjoint_and_cover_all_rows() {
        let mut matrix = Strips::default();
        matrix.reshape(7, 3);
        for (i, piece) in matrix.cut([2, 2, 7].into_iter()).into_iter().enumerate() {
            piece.fill(Strip([i as f32; WIDTH]));
        }
        for s in 0..3 {
            for t in 0..7 {
                let expected = if t < 2 { s } else { 6 + s };
                assert_eq!(matrix.strip(s)[t].0[0], expected as f32);
            }
        }
        assert_eq!(
            matrix.cut_evenly(3).iter().map(|piece| piece.len()).collect::<Vec<_>>(),
            [3, 3, 3, 3, 3, 3, 1, 1, 1]
        );
    }

    #[test]
    fn the_first_rows_of_each_group_are_copied() {
        let mut matrix = Strips::default();
        matrix.reshape(7, 2);
        for strip in matrix.strips_mut() {
            strip.iter_mut().enumerate().for_each(|(t, strip)| strip.0[0] = t as f32);
        }
        let (mut first, mut ends) = (Strips::default(), Vec::new());
        matrix.first_of_each(&[1, 1, 4, 7], 2, &mut first, &mut ends);
        assert_eq!(ends, [1, 1, 3, 5]);
        assert_eq!(first.strip(1)[..5].iter().map(|strip| strip.0[0]).collect::<Vec<_>>(), [0., 1., 2., 4., 5.]);
    }

    #[test]
    fn a_stride_has_slack_and_no_power_of_two() {
        for rows in [1, 117, 200, 1000, 1024, 1576, 2048, 6304] {
            let stride = stride(rows);
            assert!(stride >= rows + SLACK && stride <= rows + 1024 + SLACK, "{rows}: {stride}");
            assert!(stride < 256 || stride % 1024 == 633, "{rows}: {stride}");
        }
    }
}
