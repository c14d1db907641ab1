//! From an image to the numbers that an encoder reads: resize, crop, scale and normalise.

mod config;
mod resample;
mod text;

use std::ops::Range;

pub use resample::Filter;

use crate::encoder::Image;

/// Resizes and crops an image, and normalises its pixels: `(value / 255 - mean) / std`.
///
/// Rounding is that of torchvision's `Resize` and `CenterCrop` on images of PIL.
#[derive(Debug, Clone, PartialEq)]
pub struct Preprocess {
    /// The size to which an image is resized.
    pub resize: Resize,
    /// How pixels are interpolated.
    pub filter: Filter,
    /// Height and width of the part that is cut out of the middle. A smaller image is padded with black.
    pub crop: (usize, usize),
    /// Factor from bytes to numbers, before mean and standard deviation: 1/255, but for some models 1.
    pub scale: f32,
    /// Subtracted from each channel after scaling.
    pub mean: [f32; 3],
    /// Divides each channel after the subtraction.
    pub std: [f32; 3],
}

/// The size to which an image is resized before it is cropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resize {
    /// Keeps the size.
    Keep,
    /// The shorter side becomes this long, the longer side in proportion, rounded down.
    Shorter(usize),
    /// Height and width become these, whatever the proportions.
    Exact(usize, usize),
}

/// The largest allowed side after resizing or cropping. It bounds memory, and no known encoder needs more.
const LARGEST_SIDE: usize = 1 << 12;

impl Preprocess {
    /// Height and width of the result.
    pub fn size(&self) -> (usize, usize) {
        self.crop
    }

    /// Writes the planes of red, green and blue, each row by row.
    ///
    /// # Panics
    /// If `out` is not of length `3 * height * width` of [`Preprocess::size`], or the image has no pixels.
    pub fn apply(&self, image: &Image, out: &mut [f32]) {
        let (height, width) = self.crop;
        assert_eq!(out.len(), 3 * height * width, "3 planes of {height} x {width} pixels");
        assert!(image.width > 0 && image.height > 0, "an image of {} x {} pixels", image.width, image.height);
        assert_eq!(image.pixels.len(), 3 * image.width * image.height, "3 bytes per pixel");
        let (full_height, full_width) = self.resize.of(image.height, image.width);
        let (rows, top) = centre(full_height, height);
        let (columns, left) = centre(full_width, width);
        let part = resample::resize(image, self.filter, (full_height, full_width), rows, columns);
        let table = self.table();
        for ((plane, values), channel) in out.chunks_exact_mut(height * width).zip(&table).zip(0..) {
            if part.height < height || part.width < width {
                plane.fill(values[0]);
            }
            let targets = plane.chunks_exact_mut(width).skip(top);
            for (row, target) in part.pixels.chunks_exact(part.width * 3).zip(targets) {
                for (pixel, number) in row.as_chunks::<3>().0.iter().zip(&mut target[left..]) {
                    *number = values[usize::from(pixel[channel])];
                }
            }
        }
    }

    /// The same without the crop: the whole image is resized to the result's size, whatever its proportions.
    ///
    /// # Panics
    /// As [`Preprocess::apply`].
    pub fn apply_whole(&self, image: &Image, out: &mut [f32]) {
        let (height, width) = self.crop;
        Preprocess { resize: Resize::Exact(height, width), ..self.clone() }.apply(image, out);
    }

    /// The number that each byte of each channel becomes.
    fn table(&self) -> [[f32; 256]; 3] {
        // Division by 255 is what other programs do; a multiplication by 1/255 differs in the last bit.
        let scaled = |byte: usize| match self.scale {
            scale if scale == 1.0 / 255.0 => byte as f32 / 255.0,
            scale => byte as f32 * scale,
        };
        let number = |channel: usize, byte: usize| (scaled(byte) - self.mean[channel]) / self.std[channel];
        std::array::from_fn(|channel| std::array::from_fn(|byte| number(channel, byte)))
    }

    /// Refuses sizes and numbers that cannot be used.
    fn check(self) -> Result<Preprocess, String> {
        let sides = match self.resize {
            Resize::Keep => vec![self.crop.0, self.crop.1],
            Resize::Shorter(side) => vec![side, self.crop.0, self.crop.1],
            Resize::Exact(height, width) => vec![height, width, self.crop.0, self.crop.1],
        };
        if let Some(side) = sides.into_iter().find(|&side| side == 0 || side > LARGEST_SIDE) {
            return Err(format!("a side of {side} pixels is not between 1 and {LARGEST_SIDE}"));
        }
        if let Some(std) = self.std.iter().find(|std| !(std.is_finite() && **std > 0.0)) {
            return Err(format!("the standard deviation {std} is not a positive number"));
        }
        let [red, green, blue] = self.mean;
        if let Some(number) = [red, green, blue, self.scale].iter().find(|number| !number.is_finite()) {
            return Err(format!("{number} is not a finite number"));
        }
        match self.table().iter().flatten().all(|number| number.is_finite()) {
            true => Ok(self),
            false => Err("scale, mean and standard deviation make numbers that are not finite".to_owned()),
        }
    }
}

impl Resize {
    /// Height and width after resizing.
    fn of(self, height: usize, width: usize) -> (usize, usize) {
        match self {
            Resize::Keep => (height, width),
            Resize::Exact(height, width) => (height, width),
            Resize::Shorter(side) if height <= width => (side, side * width / height),
            Resize::Shorter(side) => (side * height / width, side),
        }
    }
}

/// The middle of a side: the pixels that are kept, and the padding before them. Halves are rounded to even numbers, as
/// Python's `round` does.
fn centre(full: usize, wanted: usize) -> (Range<usize>, usize) {
    if full < wanted {
        return (0..full, (wanted - full) / 2);
    }
    let spare = full - wanted;
    let start = if spare % 4 == 3 { spare / 2 + 1 } else { spare / 2 };
    (start..start + wanted, 0)
}
