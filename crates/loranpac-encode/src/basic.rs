//! `image-basic`: features of images without weights. It describes where an image has which colours and edges; it knows
//! no objects. A pre-trained image encoder is far better wherever one can be had.
//!
//! The image is resized to 96 x 96 pixels, whatever its proportions. Then, side by side:
//!
//! - **Edges.** For each cell of 8 x 8 pixels a histogram of the directions of gradients (the strongest of the three
//!   channels), weighted by their lengths, and divided by the length of the histograms of the cell and its neighbours.
//! - **Colours.** For each cell of a 4 x 4 grid a histogram of red, green and blue.
//!
//! Each part is replaced by its square roots and scaled to unit length. Only additions, multiplications, divisions and
//! square roots occur, so the features of an image are the same on every machine.

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::encoder::{Batch, Encoder, Image, check_layers};
use crate::error::Error;
use crate::image;
use crate::modality::Modality;
use crate::preprocess::{Filter, Preprocess, Resize};

/// Name of the encoder.
pub const NAME: &str = "image-basic";

/// Pixels per side after resizing.
const SIDE: usize = 96;
/// Pixels per side of a cell of edges.
const CELL: usize = 8;
/// Cells per side.
const CELLS: usize = SIDE / CELL;
/// Directions of edges, over half a turn: an edge from dark to bright is like one from bright to dark.
const DIRECTIONS: usize = 9;
/// Cosine and sine of each direction `i pi / 9`.
const COSINES: [f32; DIRECTIONS] =
    [1.0, 0.939_692_6, 0.766_044_44, 0.5, 0.173_648_18, -0.173_648_18, -0.5, -0.766_044_44, -0.939_692_6];
const SINES: [f32; DIRECTIONS] =
    [0.0, 0.342_020_14, 0.642_787_6, 0.866_025_4, 0.984_807_7, 0.984_807_7, 0.866_025_4, 0.642_787_6, 0.342_020_14];
/// Cells per side of the grid of colours.
const GRID: usize = 4;
/// Steps per channel.
const STEPS: usize = 4;
/// Bins of one histogram of colours.
const COLOURS: usize = STEPS * STEPS * STEPS;

const EDGES: usize = CELLS * CELLS * DIRECTIONS;
const DIM: usize = EDGES + GRID * GRID * COLOURS;

/// The encoder.
#[derive(Debug, Clone, Copy, Default)]
pub struct ImageBasic;

impl Encoder for ImageBasic {
    fn name(&self) -> &str {
        NAME
    }

    fn modality(&self) -> Modality {
        Modality::Image
    }

    fn dim(&self) -> usize {
        DIM
    }

    fn digest(&self) -> [u8; 32] {
        // A change of the features needs another version.
        image::add_version(Sha256::new_with_prefix(b"image-basic, version 1"), image::VERSION).finalize().into()
    }

    fn batch(&self) -> usize {
        64
    }

    fn encode(&self, batch: Batch<'_>, layers: &[usize]) -> Result<Vec<f32>, Error> {
        let images = batch.images(NAME)?;
        check_layers(self, layers)?;
        let mut out = vec![0.0; images.len() * layers.len() * DIM];
        if !layers.is_empty() {
            let rows = out.par_chunks_mut(layers.len() * DIM).zip(images);
            rows.for_each(|(row, image)| row.chunks_mut(DIM).for_each(|part| features(image, part)));
        }
        Ok(out)
    }
}

/// Writes the features of an image.
fn features(image: &Image, out: &mut [f32]) {
    let resize = Preprocess {
        resize: Resize::Exact(SIDE, SIDE),
        filter: Filter::Bilinear,
        crop: (SIDE, SIDE),
        scale: 1.0 / 255.0,
        mean: [0.0; 3],
        std: [1.0; 3],
    };
    let mut planes = vec![0.0; 3 * SIDE * SIDE];
    resize.apply(image, &mut planes);
    let (edge_part, colour_part) = out.split_at_mut(EDGES);
    edges(&planes, edge_part);
    colours(&planes, colour_part);
    finish(edge_part);
    finish(colour_part);
}

/// Adds up the gradients of each cell by direction, and normalises them by those of the neighbours.
fn edges(planes: &[f32], out: &mut [f32]) {
    let mut cells = vec![0.0f32; EDGES];
    for y in 0..SIDE {
        for x in 0..SIDE {
            let (dx, dy) = gradient(planes, x, y);
            let length = (dx * dx + dy * dy).sqrt();
            // Linear interpolation between the four nearest cells: no jump where an edge moves into the next cell.
            for (cell, share) in around(x, y) {
                for direction in 0..DIRECTIONS {
                    // Positive within one step of the direction, with its maximum there.
                    let along = (dx * COSINES[direction] + dy * SINES[direction]).abs();
                    let part = (along - length * COSINES[1]).max(0.0);
                    cells[cell * DIRECTIONS + direction] += share * part;
                }
            }
        }
    }
    let energy: Vec<f32> = cells.chunks_exact(DIRECTIONS).map(|cell| cell.iter().map(|v| v * v).sum()).collect();
    for y in 0..CELLS {
        for x in 0..CELLS {
            let near = |at: usize| at.saturating_sub(1)..(at + 2).min(CELLS);
            let sum: f32 = near(y).flat_map(|y| near(x).map(move |x| (x, y))).map(|(x, y)| energy[y * CELLS + x]).sum();
            // The constant keeps the noise of a plain area small.
            let unit = (sum + 0.01).sqrt().recip();
            let place = (y * CELLS + x) * DIRECTIONS;
            for (out, &value) in out[place..place + DIRECTIONS].iter_mut().zip(&cells[place..]) {
                *out = value * unit;
            }
        }
    }
}

/// The gradient of the channel in which it is longest.
fn gradient(planes: &[f32], x: usize, y: usize) -> (f32, f32) {
    let (left, right) = (x.saturating_sub(1), (x + 1).min(SIDE - 1));
    let (above, below) = (y.saturating_sub(1), (y + 1).min(SIDE - 1));
    let each = planes.chunks_exact(SIDE * SIDE).map(|plane| {
        let at = |x: usize, y: usize| plane[y * SIDE + x];
        (at(right, y) - at(left, y), at(x, below) - at(x, above))
    });
    let squared = |&(dx, dy): &(f32, f32)| dx * dx + dy * dy;
    each.max_by(|a, b| squared(a).total_cmp(&squared(b))).unwrap_or_default()
}

/// The up to four cells around a pixel, and its share in each.
fn around(x: usize, y: usize) -> impl Iterator<Item = (usize, f32)> {
    let split = |at: usize| {
        let place = (at as f32 + 0.5) / CELL as f32 - 0.5;
        let first = place.floor();
        [(first as isize, 1.0 - (place - first)), (first as isize + 1, place - first)]
    };
    let inside = |cell: isize| (0..CELLS as isize).contains(&cell);
    let (across, down) = (split(x), split(y));
    down.into_iter()
        .flat_map(move |(row, a)| across.into_iter().map(move |(column, b)| (row, column, a * b)))
        .filter(move |&(row, column, _)| inside(row) && inside(column))
        .map(|(row, column, share)| (row as usize * CELLS + column as usize, share))
}

/// Counts the colours of each cell of the grid, between the nearest steps of each channel.
fn colours(planes: &[f32], out: &mut [f32]) {
    let size = SIDE * SIDE;
    for at in 0..size {
        let (x, y) = (at % SIDE, at / SIDE);
        let cell = y * GRID / SIDE * GRID + x * GRID / SIDE;
        let split = |channel: usize| {
            let place = planes[channel * size + at] * (STEPS - 1) as f32;
            let first = (place as usize).min(STEPS - 2);
            [(first, 1.0 - (place - first as f32)), (first + 1, place - first as f32)]
        };
        for (red, a) in split(0) {
            for (green, b) in split(1) {
                for (blue, c) in split(2) {
                    out[cell * COLOURS + (red * STEPS + green) * STEPS + blue] += a * b * c;
                }
            }
        }
    }
}

/// Square roots, scaled to unit length.
fn finish(part: &mut [f32]) {
    part.iter_mut().for_each(|value| *value = value.sqrt());
    let norm = part.iter().map(|value| value * value).sum::<f32>().sqrt();
    // A plain image has no edges.
    let unit = if norm > 0.0 { norm.recip() } else { 0.0 };
    part.iter_mut().for_each(|value| *value *= unit);
}
