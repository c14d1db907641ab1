//! Features of sequences from their tokens, and from the gradients of the former to those of the latter:
//!
//! ```text
//! p = mean of norm(x) over the pooled tokens;   feature = unit(projection fc_norm(p))
//! ```

use std::ops::Range;

use crate::transformer::module::Affine;
use crate::transformer::norm::Norm;
use crate::transformer::strips::{Strip, Strips, WIDTH};

/// How the features of sequences are made of their tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pooling<'a> {
    /// Of all tokens.
    pub norm: Option<&'a Norm>,
    /// How many tokens are averaged, from the first; none: all but those that are skipped and those of prompts.
    pub first: Option<usize>,
    /// How many tokens are averaged, up to the last; none: as `first` and `skipped` have it.
    pub last: Option<usize>,
    /// Tokens in front of those that are averaged.
    pub skipped: usize,
    /// Of the average.
    pub fc_norm: Option<&'a Norm>,
    /// A matrix of features x d, row by row.
    pub projection: Option<&'a [f32]>,
    /// Whether features have unit length.
    pub unit: bool,
}

impl Pooling<'_> {
    /// The features of sequences, a row for each, before they are brought to unit length. `room` rows at the end of each belong to prompts.
    pub fn forward(&self, (x, ends, room): (&Strips, &[usize], usize), d: usize) -> Vec<f32> {
        let mut normed = Strips::default();
        if let Some(norm) = self.norm {
            norm.forward(x, &mut normed);
        }
        let tokens = if self.norm.is_some() { &normed } else { x };
        let mut features = averages(tokens, &self.ranges(ends, room), d);
        if let Some(norm) = self.fc_norm {
            features.chunks_mut(d).for_each(|row| norm.row(row));
        }
        if let Some(projection) = self.projection {
            let project = |row: &[f32]| projection.chunks(d).map(|w| dot(w, row) as f32).collect::<Vec<f32>>();
            features = features.chunks(d).flat_map(project).collect();
        }
        features
    }

    /// The rows that are averaged.
    fn ranges(&self, ends: &[usize], room: usize) -> Vec<Range<usize>> {
        let range = |i: usize| {
            let start = if i == 0 { 0 } else { ends[i - 1] };
            match (self.last, self.first) {
                (Some(count), _) => ends[i] - count..ends[i],
                (None, Some(count)) => start..ends[i].min(start + count),
                (None, None) => start + self.skipped..ends[i] - room,
            }
        };
        (0..ends.len()).map(range).collect()
    }

    /// The gradient of the tokens x, given that of the features. `last` is what is trained after the last normalisation, with all trained
    /// numbers; its gradients are added to `out`.
    pub fn backward(
        &self,
        (x, ends, room): (&Strips, &[usize], usize),
        d: usize,
        slopes: &[f32],
        last: Option<(&Affine, &[f32])>,
        out: &mut [f32],
    ) -> Strips {
        let ranges = self.ranges(ends, room);
        let mut normed = Strips::default();
        if let Some(norm) = self.norm {
            norm.forward(x, &mut normed);
        }
        let tokens = if self.norm.is_some() { &normed } else { x };
        let pooled = averages(tokens, &ranges, d);
        // Gradients of the averages.
        let mut slopes = slopes.to_vec();
        if self.unit {
            slopes.chunks_mut(d).zip(pooled.chunks(d)).for_each(|(slope, pooled)| unit_backward(pooled, slope));
        }
        if let Some(projection) = self.projection {
            slopes = slopes.chunks(projection.len() / d).flat_map(|slope| times(slope, projection, d)).collect();
        }
        if let Some(norm) = self.fc_norm {
            if let (None, Some((affine, values))) = (self.norm, last) {
                let mut outputs = pooled.clone();
                outputs.chunks_mut(d).for_each(|row| norm.row(row));
                affine.gradients(values, &matrix(&outputs, d), &matrix(&slopes, d), out);
            }
            slopes.chunks_mut(d).zip(pooled.chunks(d)).for_each(|(slope, pooled)| norm.backward_row(pooled, slope));
        }
        let mut dx = Strips::default();
        dx.reshape(x.rows(), x.strips());
        let shares: Vec<Vec<Strip>> = slopes
            .chunks(d)
            .zip(&ranges)
            .map(|(slope, range)| {
                let share = 1.0 / range.len().max(1) as f32;
                Strip::pad(&slope.iter().map(|x| x * share).collect::<Vec<f32>>())
            })
            .collect();
        for (s, strip) in dx.strips_mut().enumerate() {
            strip.fill(Strip::ZERO);
            for (share, range) in shares.iter().zip(&ranges) {
                strip[range.clone()].fill(share[s]);
            }
        }
        if let Some(norm) = self.norm {
            if let Some((affine, values)) = last {
                affine.gradients(values, &normed, &dx, out);
            }
            norm.backward(x, &mut dx);
        }
        dx
    }
}

/// The mean of some rows of each sequence.
fn averages(tokens: &Strips, ranges: &[Range<usize>], d: usize) -> Vec<f32> {
    let mut averages = vec![0.0; ranges.len() * d];
    let mut row = vec![0.0; d];
    for (average, range) in averages.chunks_mut(d).zip(ranges) {
        let share = 1.0 / range.len().max(1) as f32;
        for token in range.clone() {
            tokens.row(token, &mut row);
            average.iter_mut().zip(&row).for_each(|(sum, x)| *sum += x * share);
        }
    }
    averages
}

fn dot(x: &[f32], y: &[f32]) -> f64 {
    x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

/// Replaces the gradient of x / |x| by that of x.
fn unit_backward(x: &[f32], slope: &mut [f32]) {
    let length = dot(x, x).sqrt().max(1e-12);
    let along = dot(x, slope) / (length * length);
    slope
        .iter_mut()
        .zip(x)
        .for_each(|(slope, x)| *slope = ((f64::from(*slope) - along * f64::from(*x)) / length) as f32);
}

/// `slope projection`: the gradient of what a matrix of features x d was multiplied with.
fn times(slope: &[f32], projection: &[f32], d: usize) -> Vec<f32> {
    let mut sums = vec![0.0f64; d];
    for (slope, row) in slope.iter().zip(projection.chunks(d)) {
        sums.iter_mut().zip(row).for_each(|(sum, weight)| *sum += f64::from(*slope) * f64::from(*weight));
    }
    sums.into_iter().map(|sum| sum as f32).collect()
}

/// Rows as a matrix of strips.
fn matrix(rows: &[f32], d: usize) -> Strips {
    let mut matrix = Strips::default();
    matrix.reshape(rows.len() / d, d.div_ceil(WIDTH));
    let padded: Vec<Vec<Strip>> = rows.chunks(d).map(Strip::pad).collect();
    for (s, strip) in matrix.strips_mut().enumerate() {
        strip.iter_mut().zip(&padded).for_each(|(strip, row)| *strip = row[s]);
    }
    matrix
}
