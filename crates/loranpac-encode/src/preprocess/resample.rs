//! Resizing as PIL does it: the filter is stretched by the scale when an image shrinks, weights have 22 fractional bits,
//! and each of two passes rounds to 8 bits. The passes go across and then down, but the other way round if the height
//! shrinks by more than twice as many pixels as the width (found by experiment with PIL 13; earlier versions always begin
//! across). Results equal PIL's to the last bit.
//!
//! Output pixel `i` lies at `c = (i + 1/2) n / m` for `n` input and `m` output pixels. Input pixel `j` has the weight
//! `f((j + 1/2 - c) / s)` with `s = max(n / m, 1)`, divided by the sum of all weights.

use std::f64::consts::PI;
use std::ops::Range;

use crate::encoder::Image;

/// Fractional bits of weights: 32 less 8 for a pixel and 2 for sums beyond its range.
const BITS: u32 = 22;

/// The weights of input pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// The nearest pixel.
    Nearest,
    /// The mean of the pixels that an output pixel covers.
    Box,
    /// Linear interpolation.
    Bilinear,
    /// A raised cosine window of the width of linear interpolation.
    Hamming,
    /// Cubic convolution with a = -1/2.
    Bicubic,
    /// A windowed sinc of three lobes.
    Lanczos,
}

impl Filter {
    /// All filters.
    pub const ALL: &[Filter] =
        &[Filter::Nearest, Filter::Box, Filter::Bilinear, Filter::Hamming, Filter::Bicubic, Filter::Lanczos];

    /// Its name, as timm and PIL write it in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Filter::Nearest => "nearest",
            Filter::Box => "box",
            Filter::Bilinear => "bilinear",
            Filter::Hamming => "hamming",
            Filter::Bicubic => "bicubic",
            Filter::Lanczos => "lanczos",
        }
    }

    /// The filter of this name.
    pub fn from_name(name: &str) -> Option<Filter> {
        Filter::ALL.iter().copied().find(|filter| filter.name().eq_ignore_ascii_case(name))
    }

    /// The filter with PIL's number, which `preprocessor_config.json` has under `resample`.
    pub fn from_pil(number: u64) -> Option<Filter> {
        use Filter::{Bicubic, Bilinear, Box, Hamming, Lanczos, Nearest};
        [Nearest, Lanczos, Bilinear, Bicubic, Box, Hamming].get(usize::try_from(number).ok()?).copied()
    }

    /// Half the width of the filter, in output pixels where an image shrinks.
    fn support(self) -> f64 {
        match self {
            Filter::Nearest | Filter::Box => 0.5,
            Filter::Bilinear | Filter::Hamming => 1.0,
            Filter::Bicubic => 2.0,
            Filter::Lanczos => 3.0,
        }
    }

    fn weight(self, x: f64) -> f64 {
        let distance = x.abs();
        let sinc = |x: f64| if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) };
        match self {
            Filter::Nearest | Filter::Box => f64::from(x > -0.5 && x <= 0.5),
            Filter::Bilinear => (1.0 - distance).max(0.0),
            Filter::Hamming if distance >= 1.0 => 0.0,
            Filter::Hamming => sinc(distance) * (0.54 + 0.46 * (PI * distance).cos()),
            Filter::Bicubic if distance < 1.0 => (1.5 * distance - 2.5) * distance * distance + 1.0,
            Filter::Bicubic if distance < 2.0 => -0.5 * (((distance - 5.0) * distance + 8.0) * distance - 4.0),
            Filter::Bicubic => 0.0,
            Filter::Lanczos if distance < 3.0 => sinc(distance) * sinc(distance / 3.0),
            Filter::Lanczos => 0.0,
        }
    }
}

/// The part `rows` x `columns` of an image that is resized to `height` x `width`. Other parts are not computed: an image
/// of 1 x 100,000 pixels whose shorter side becomes 256 would have 6.5 billion.
pub(super) fn resize(
    image: &Image,
    filter: Filter,
    (height, width): (usize, usize),
    rows: Range<usize>,
    columns: Range<usize>,
) -> Image {
    let across = Taps::new(filter, image.width, width, columns);
    let down = Taps::new(filter, image.height, height, rows);
    // Only the pixels that the second pass reads are computed in the first.
    let (wide, high) = (across.span(), down.span());
    let shrinks = |from: usize, to: usize| from as i128 - to as i128;
    let rows_first = height < image.height && shrinks(image.height, height) > 2 * shrinks(image.width, width);
    if rows_first {
        across.columns(&down.rows(image, 0, wide.clone()), wide.start, 0..down.each.len())
    } else {
        down.rows(&across.columns(image, 0, high.clone()), high.start, 0..across.each.len())
    }
}

/// The weights of one pass.
struct Taps {
    each: Vec<Tap>,
    weights: Vec<i32>,
}

/// The input pixels of one output pixel: `count` from `start` on, with the weights from `weight` on.
struct Tap {
    start: usize,
    count: usize,
    weight: usize,
}

impl Taps {
    /// The weights of the output pixels `wanted` of `output`, from `input` pixels.
    fn new(filter: Filter, input: usize, output: usize, wanted: Range<usize>) -> Taps {
        let mut taps = Taps { each: Vec::with_capacity(wanted.len()), weights: Vec::new() };
        let scale = input as f64 / output as f64;
        if input == output || filter == Filter::Nearest {
            for (weight, place) in nearest(scale, wanted).enumerate() {
                taps.each.push(Tap { start: place.min(input - 1), count: 1, weight });
                taps.weights.push(1 << BITS);
            }
            return taps;
        }
        for at in wanted {
            let centre = (at as f64 + 0.5) * scale;
            let weight = taps.weights.len();
            let stretch = scale.max(1.0);
            let support = filter.support() * stretch;
            let start = (centre - support + 0.5).max(0.0) as usize;
            let end = ((centre + support + 0.5) as usize).min(input);
            // Products with reciprocals, like PIL's: quotients would differ in the last bit.
            let exact = |j: usize| filter.weight((j as f64 - centre + 0.5) * stretch.recip());
            let sum: f64 = (start..end).map(exact).sum();
            let unit = if sum == 0.0 { 1.0 } else { sum.recip() };
            let fixed = |weight: f64| (weight * unit * f64::from(1 << BITS)).round() as i32;
            taps.weights.extend((start..end).map(exact).map(fixed));
            taps.each.push(Tap { start, count: end - start, weight });
        }
        taps
    }

    fn weights_of(&self, tap: &Tap) -> &[i32] {
        &self.weights[tap.weight..tap.weight + tap.count]
    }

    /// The input pixels that occur.
    fn span(&self) -> Range<usize> {
        let start = self.each.iter().map(|tap| tap.start).min().unwrap_or(0);
        start..self.each.iter().map(|tap| tap.start + tap.count).max().unwrap_or(start)
    }

    /// Resizes some rows of an image across. The image begins with column `offset` of the input.
    fn columns(&self, image: &Image, offset: usize, rows: Range<usize>) -> Image {
        let mut pixels = vec![0; rows.len() * self.each.len() * 3];
        let sources = image.pixels.chunks_exact(image.width * 3).skip(rows.start);
        for (source, target) in sources.zip(pixels.chunks_exact_mut(self.each.len() * 3)) {
            let source = source.as_chunks::<3>().0;
            for (tap, out) in self.each.iter().zip(target.as_chunks_mut::<3>().0) {
                let mut sums = [HALF; 3];
                for (pixel, &weight) in source[tap.start - offset..][..tap.count].iter().zip(self.weights_of(tap)) {
                    for (sum, &value) in sums.iter_mut().zip(pixel) {
                        *sum += i32::from(value) * weight;
                    }
                }
                *out = sums.map(to_byte);
            }
        }
        Image { width: self.each.len(), height: rows.len(), pixels }
    }

    /// Resizes some columns of an image down: sums of whole rows. The image begins with row `offset` of the input.
    fn rows(&self, image: &Image, offset: usize, columns: Range<usize>) -> Image {
        let stride = columns.len() * 3;
        let mut pixels = vec![0; self.each.len() * stride];
        let mut sums = vec![0; stride];
        for (tap, target) in self.each.iter().zip(pixels.chunks_exact_mut(stride)) {
            sums.fill(HALF);
            let sources = image.pixels.chunks_exact(image.width * 3).skip(tap.start - offset);
            for (source, &weight) in sources.zip(self.weights_of(tap)) {
                for (sum, &value) in sums.iter_mut().zip(&source[columns.start * 3..][..stride]) {
                    *sum += i32::from(value) * weight;
                }
            }
            for (out, &sum) in target.iter_mut().zip(&sums) {
                *out = to_byte(sum);
            }
        }
        Image { width: columns.len(), height: self.each.len(), pixels }
    }
}

/// The nearest input pixels. PIL adds the scale up, which decides where a pixel lies between two others; far behind the
/// beginning, where that would take long, this multiplies.
fn nearest(scale: f64, wanted: Range<usize>) -> impl Iterator<Item = usize> {
    const FAR: usize = 1 << 20;
    let mut centre = match wanted.start {
        start @ ..FAR => (0..start).fold(0.5 * scale, |centre, _| centre + scale),
        start => (start as f64 + 0.5) * scale,
    };
    wanted.map(move |_| {
        let place = centre as usize;
        centre += scale;
        place
    })
}

/// One half, which makes the shift in [`to_byte`] round.
const HALF: i32 = 1 << (BITS - 1);

fn to_byte(sum: i32) -> u8 {
    (sum >> BITS).clamp(0, 255) as u8
}
