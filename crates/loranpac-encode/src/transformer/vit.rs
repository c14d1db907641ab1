//! Vision transformers on planes of pixels.
//!
//! ```text
//! x = [class token, registers, patches W' + b] + positions;  x = norm_pre(x) in CLIP;  blocks;  feature = norm(x)[class token]
//! ```

use rayon::prelude::*;

use super::block::{Spare, Stack, Wanted, Workspace};
use super::linear::{Linear, Then};
use super::norm::Norm;
use super::strips::{Strip, Strips, WIDTH};

/// Tokens of one pass through the blocks: enough for the matrix products, few enough for the memory.
const TOKENS: usize = 2048;

/// A vision transformer. Clones share the weights of its blocks.
#[derive(Debug, Clone)]
pub struct Vit {
    pub(super) name: String,
    pub(super) digest: [u8; 32],
    pub(super) d: usize,
    pub(super) patch: usize,
    /// Pixels of a side of an image.
    pub(super) side: usize,
    pub(super) embed: Linear,
    /// Class token, distillation token and registers, with their positions.
    pub(super) prefix: Vec<Vec<Strip>>,
    /// Positions of the patches, row by row.
    pub(super) positions: Vec<Vec<Strip>>,
    pub(super) norm_pre: Option<Norm>,
    pub(super) stack: Stack,
    pub(super) head: Head,
    pub(super) spare: Spare,
}

/// From the tokens of an image to its feature.
#[derive(Debug, Clone)]
pub(super) struct Head {
    /// Of all tokens.
    pub norm: Option<Norm>,
    pub pool: Pool,
    /// Of the pooled feature.
    pub fc_norm: Option<Norm>,
    /// A matrix of features x d, row by row.
    pub projection: Option<Vec<f32>>,
}

/// Which tokens are averaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pool {
    /// The first ones.
    First(usize),
    /// All patches.
    Patches,
}

impl Vit {
    /// A short name for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Pixels of a side of its images.
    pub fn side(&self) -> usize {
        self.side
    }

    /// Features per image and layer.
    pub fn dim(&self) -> usize {
        self.head.projection.as_ref().map_or(self.d, |projection| projection.len() / self.d)
    }

    /// Number of blocks.
    pub fn layers(&self) -> usize {
        self.stack.blocks.len()
    }

    /// SHA-256 of weights and architecture.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Features of n images: for each a row of `layers.len() * dim()` numbers. A layer's feature is that of its block's output, through the
    /// same normalisation, pooling and projection as the last.
    ///
    /// # Panics
    /// If `planes` does not hold the red, green and blue planes of n images of `side()` x `side()` pixels, or a layer is out of range.
    pub fn features(&self, planes: &[f32], n: usize, layers: &[usize]) -> Vec<f32> {
        let image = 3 * self.side * self.side;
        assert_eq!(planes.len(), n * image, "planes of {n} images");
        assert!(layers.iter().all(|layer| *layer < self.layers()), "layers out of range: {layers:?}");
        let row = layers.len() * self.dim();
        let mut features = vec![0.0; n * row];
        if n == 0 || row == 0 {
            return features;
        }
        // Passes of equal size.
        let most = (TOKENS / (self.tokens() + self.stack.room())).max(1);
        let pass = n.div_ceil(n.div_ceil(most));
        self.spare.with(|work| {
            for (planes, features) in planes.chunks(pass * image).zip(features.chunks_mut(pass * row)) {
                self.pass(planes, features, layers, work);
            }
        });
        features
    }

    /// Tokens of an image, without prompts.
    pub(crate) fn tokens(&self) -> usize {
        self.prefix.len() + self.positions.len()
    }

    /// Which tokens of each image have a part in its feature: the first ones, or all.
    pub(super) fn first(&self) -> Option<usize> {
        match self.head.pool {
            Pool::First(count) => Some(count),
            Pool::Patches => None,
        }
    }

    fn pass(&self, planes: &[f32], features: &mut [f32], layers: &[usize], work: &mut Workspace) {
        let room = self.stack.room();
        self.patches(planes, room, &mut work.y, &mut work.x, &mut work.ends);
        self.place(room, &mut work.x);
        if let Some(norm) = &self.norm_pre {
            norm.in_place(&mut work.x);
        }
        let row = features.len() / work.ends.len();
        self.stack.forward(work, Wanted { layers, first: self.first() }, |block, work| {
            for (slot, _) in layers.iter().enumerate().filter(|(_, layer)| **layer == block) {
                let pooled = self.pooled(&work.x, &work.ends, room);
                for (features, pooled) in features.chunks_mut(row).zip(pooled.chunks(self.dim())) {
                    features[slot * self.dim()..][..self.dim()].copy_from_slice(pooled);
                }
            }
        });
    }

    /// Embedded patches into `x`: a sequence of tokens for each image, with `room` more rows at its end. `y` holds the pixels.
    pub(super) fn patches(&self, planes: &[f32], room: usize, y: &mut Strips, x: &mut Strips, ends: &mut Vec<usize>) {
        let (p, side, tokens, prefix) = (self.patch, self.side, self.tokens() + room, self.prefix.len());
        let (grid, patches) = (side / p, self.positions.len());
        let n = planes.len() / (3 * side * side);
        ends.clear();
        ends.extend((1..=n).map(|image| image * tokens));
        // Where the pixels of a patch are, from its first: planes, rows and columns as in the weights.
        let pixels: Vec<usize> = (0..3 * p * p).map(|k| k / (p * p) * side * side + k / p % p * side + k % p).collect();
        y.reshape(n * tokens, pixels.len().div_ceil(WIDTH));
        let mut strips: Vec<&mut [Strip]> = y.strips_mut().collect();
        strips.par_iter_mut().zip(pixels.par_chunks(WIDTH)).for_each(|(strip, pixels)| {
            for (strip, planes) in strip.chunks_mut(tokens).zip(planes.chunks(3 * side * side)) {
                // Rows of the prefix and of prompts are replaced later.
                strip[..prefix].fill(Strip::ZERO);
                strip[prefix + patches..].fill(Strip::ZERO);
                for (i, strip) in strip[prefix..prefix + patches].iter_mut().enumerate() {
                    let first = &planes[i / grid * p * side + i % grid * p..];
                    *strip = Strip::ZERO;
                    strip.0.iter_mut().zip(pixels).for_each(|(x, pixel)| *x = first[*pixel]);
                }
            }
        });
        self.embed.forward(y, x, Then::Store);
    }

    /// Adds prefix and positions to embedded patches.
    pub(super) fn place(&self, room: usize, x: &mut Strips) {
        let (tokens, prefix) = (self.tokens() + room, self.prefix.len());
        let mut strips: Vec<&mut [Strip]> = x.strips_mut().collect();
        strips.par_iter_mut().enumerate().for_each(|(s, strip)| {
            for image in strip.chunks_mut(tokens) {
                let (first, patches) = image.split_at_mut(prefix);
                first.iter_mut().zip(&self.prefix).for_each(|(x, token)| *x = token[s]);
                for (x, position) in patches.iter_mut().zip(&self.positions) {
                    x.0.iter_mut().zip(&position[s].0).for_each(|(x, position)| *x += position);
                }
            }
        });
    }

    /// The features of all images from their tokens, with `room` rows of prompts at the end of each, unless only the first tokens are left.
    pub(super) fn pooled(&self, x: &Strips, ends: &[usize], room: usize) -> Vec<f32> {
        let Head { norm, pool, fc_norm, projection } = &self.head;
        let mut features = vec![0.0; ends.len() * self.d];
        let add = |features: &mut [f32], x: &Strips, rows: std::ops::Range<usize>, norm: Option<&Norm>| {
            let mut row = vec![0.0; self.d];
            let share = 1.0 / rows.len() as f32;
            for token in rows {
                x.row(token, &mut row);
                if let Some(norm) = norm {
                    norm.row(&mut row);
                }
                features.iter_mut().zip(&row).for_each(|(feature, x)| *feature += x * share);
            }
        };
        let starts = [0].into_iter().chain(ends.iter().copied());
        for (feature, (start, end)) in features.chunks_mut(self.d).zip(starts.zip(ends)) {
            let rows = match pool {
                Pool::First(count) => start..start + count,
                Pool::Patches => start + self.prefix.len()..end - room,
            };
            add(feature, x, rows, norm.as_ref());
            if let Some(norm) = fc_norm {
                norm.row(feature);
            }
        }
        match projection {
            None => features,
            Some(projection) => features
                .chunks(self.d)
                .flat_map(|feature| projection.chunks(self.d).map(|row| dot(row, feature)))
                .collect(),
        }
    }
}

fn dot(x: &[f32], y: &[f32]) -> f32 {
    x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>() as f32
}
