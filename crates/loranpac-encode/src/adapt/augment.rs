//! Random parts of images, as torchvision's `RandomResizedCrop` and `RandomHorizontalFlip` draw them.

use crate::transformer::Random;

/// The share of an image's pixels in a part, and its ratio of width to height.
const SCALE: (f64, f64) = (0.05, 1.0);
const RATIO: (f64, f64) = (3.0 / 4.0, 4.0 / 3.0);
const TRIES: usize = 10;

/// A part of an image, and whether it is mirrored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Crop {
    /// The first row.
    pub top: usize,
    /// The first column.
    pub left: usize,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Whether left and right are exchanged.
    pub mirrored: bool,
}

impl Crop {
    /// Draws a part of an image of this size: between 5% and all of its pixels, with sides in ratios of 3:4 to 4:3.
    pub fn draw(height: usize, width: usize, random: &mut Random) -> Crop {
        let mirrored = random.uniform() < 0.5;
        let between = |(low, high): (f64, f64), share: f64| low + (high - low) * share;
        for _ in 0..TRIES {
            let area = between(SCALE, random.uniform()) * (height * width) as f64;
            let ratio = libm::exp(between((libm::log(RATIO.0), libm::log(RATIO.1)), random.uniform()));
            let (wide, high) = (libm::sqrt(area * ratio).round() as usize, libm::sqrt(area / ratio).round() as usize);
            if (1..=width).contains(&wide) && (1..=height).contains(&high) {
                let (top, left) = (random.below(height - high + 1), random.below(width - wide + 1));
                return Crop { top, left, height: high, width: wide, mirrored };
            }
        }
        // The largest part in the middle whose ratio is allowed.
        let ratio = width as f64 / height as f64;
        let wide = if ratio > RATIO.1 { (height as f64 * RATIO.1).round() as usize } else { width };
        let high = if ratio < RATIO.0 { (width as f64 / RATIO.0).round() as usize } else { height };
        let (wide, high) = (wide.clamp(1, width), high.clamp(1, height));
        Crop { top: (height - high) / 2, left: (width - wide) / 2, height: high, width: wide, mirrored }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_in_the_image_and_have_allowed_sizes() {
        let mut random = Random::new(3, 0);
        for (height, width) in [(1, 1), (100, 100), (40, 200), (200, 40), (3, 1000), (224, 160)] {
            let mut mirrored = 0;
            for _ in 0..500 {
                let crop = Crop::draw(height, width, &mut random);
                assert!(crop.height >= 1 && crop.top + crop.height <= height, "{crop:?}");
                assert!(crop.width >= 1 && crop.left + crop.width <= width, "{crop:?}");
                mirrored += usize::from(crop.mirrored);
                if height.min(width) >= 100 {
                    let ratio = crop.width as f64 / crop.height as f64;
                    assert!((0.7..1.43).contains(&ratio), "{crop:?}");
                    assert!((crop.width * crop.height) as f64 >= 0.045 * (height * width) as f64, "{crop:?}");
                }
            }
            assert!((190..310).contains(&mirrored), "{mirrored} of 500 are mirrored");
        }
    }
}
