//! From samples to pixels: components of fewer samples are interpolated, and colours converted to RGB.
//!
//! Triangle filters and fixed-point colours are those of libjpeg, which PIL uses; results are equal to the last bit.

use super::frame::{Component, Frame};

/// What the components are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colours {
    Grey,
    Rgb,
    YCbCr,
    Cmyk,
    Ycck,
}

/// RGB pixels of the whole image.
pub(super) fn pixels(frame: &Frame, colours: Colours) -> Vec<u8> {
    let mut pixels = vec![0; frame.width * frame.height * 3];
    let table = Table::new();
    // Interpolation writes an even number of samples.
    let mut rows: Vec<Vec<u8>> = frame.components.iter().map(|c| vec![0; c.blocks.0 * 8 * frame.most.0]).collect();
    let mut sums = vec![0; frame.units.0 * 8 * frame.most.0];
    for (y, out) in pixels.chunks_exact_mut(frame.width * 3).enumerate() {
        for (component, row) in frame.components.iter().zip(&mut rows) {
            interpolate(component, frame.most, y, &mut sums, row);
        }
        for (x, out) in out.as_chunks_mut::<3>().0.iter_mut().enumerate() {
            let sample = |at: usize| rows[at][x];
            *out = match colours {
                Colours::Grey => [sample(0); 3],
                Colours::Rgb => [sample(0), sample(1), sample(2)],
                Colours::YCbCr => table.rgb(sample(0), sample(1), sample(2)),
                Colours::Cmyk => without_black([sample(0), sample(1), sample(2)], sample(3)),
                // The three are those of the complement of the inks, and the inks are stored inverted.
                Colours::Ycck => {
                    let inks = table.rgb(sample(0), sample(1), sample(2)).map(|v| 255 - v);
                    without_black(inks, sample(3))
                }
            };
        }
    }
    pixels
}

/// Row `y` of the image from a component.
fn interpolate(component: &Component, most: (usize, usize), y: usize, sums: &mut [i32], out: &mut [u8]) {
    let (across, down) = (most.0 / component.across, most.1 / component.down);
    let stride = component.blocks.0 * 8;
    let row = |at: usize| &component.samples[at * stride..][..component.width];
    let near = row(y / down);
    // The neighbour of a row in half the height, by the half of it in which `y` lies.
    let far = || match y % 2 {
        0 => row((y / 2).saturating_sub(1)),
        _ => row((y / 2 + 1).min(component.height - 1)),
    };
    let smooth = component.width > 2;
    match (across, down) {
        (1, 1) => out[..near.len()].copy_from_slice(near),
        (2, 1) if smooth => {
            let sums = &mut sums[..near.len()];
            sums.iter_mut().zip(near).for_each(|(sum, &value)| *sum = value.into());
            triangle(sums, (1, 2, 2), out);
        }
        (2, 2) if smooth => {
            let sums = &mut sums[..near.len()];
            let pairs = near.iter().zip(far());
            sums.iter_mut().zip(pairs).for_each(|(sum, (&a, &b))| *sum = 3 * i32::from(a) + i32::from(b));
            triangle(sums, (8, 7, 4), out);
        }
        (1, 2) => {
            let bias = 1 + (y % 2) as i32;
            for (out, (&a, &b)) in out.iter_mut().zip(near.iter().zip(far())) {
                *out = ((3 * i32::from(a) + i32::from(b) + bias) >> 2) as u8;
            }
        }
        _ => out.iter_mut().enumerate().for_each(|(x, out)| *out = near[(x / across).min(near.len() - 1)]),
    }
}

/// Twice as many samples: three quarters of the nearer one and a quarter of the other. Roundings of the left and right
/// half of a sample, and the bits to drop.
fn triangle(sums: &[i32], (left, right, shift): (i32, i32, u32), out: &mut [u8]) {
    let last = sums.len() - 1;
    for (at, out) in out.as_chunks_mut::<2>().0.iter_mut().take(sums.len()).enumerate() {
        let (before, own, after) = (sums[at.saturating_sub(1)], sums[at], sums[(at + 1).min(last)]);
        *out = [((3 * own + before + left) >> shift) as u8, ((3 * own + after + right) >> shift) as u8];
    }
}

/// Colour differences as parts of red, green and blue, with 16 fractional bits.
struct Table {
    red: [i32; 256],
    blue: [i32; 256],
    green_red: [i32; 256],
    green_blue: [i32; 256],
}

impl Table {
    fn new() -> Table {
        let fixed = |factor: f64| (factor * 65_536.0 + 0.5) as i32;
        let half = 1 << 15;
        let each = |number: &dyn Fn(i32) -> i32| std::array::from_fn(|at| number(at as i32 - 128));
        Table {
            red: each(&|x| (fixed(1.402) * x + half) >> 16),
            blue: each(&|x| (fixed(1.772) * x + half) >> 16),
            green_red: each(&|x| -fixed(0.714_14) * x),
            green_blue: each(&|x| -fixed(0.344_14) * x + half),
        }
    }

    fn rgb(&self, y: u8, cb: u8, cr: u8) -> [u8; 3] {
        let (y, cb, cr) = (i32::from(y), usize::from(cb), usize::from(cr));
        let green = (self.green_blue[cb] + self.green_red[cr]) >> 16;
        [y + self.red[cr], y + green, y + self.blue[cb]].map(|value| value.clamp(0, 255) as u8)
    }
}

/// RGB from inks that are stored inverted, as Adobe's programs do: `(1 - c) (1 - k)`, rounded like PIL.
fn without_black(inks: [u8; 3], black: u8) -> [u8; 3] {
    let white = i32::from(black);
    inks.map(|ink| {
        let product = (255 - i32::from(ink)) * white + 128;
        (white - ((product + (product >> 8)) >> 8)).clamp(0, 255) as u8
    })
}
