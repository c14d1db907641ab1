//! From the decoders' colours to 8 bits for each of red, green and blue.

use ::image::DynamicImage;

use crate::problem::ImageProblem;

/// Width, height and RGB pixels.
pub(super) fn to_rgb(image: DynamicImage) -> Result<(u32, u32, Vec<u8>), ImageProblem> {
    let (width, height) = (image.width(), image.height());
    let pixels = match image {
        DynamicImage::ImageRgb8(image) => image.into_raw(),
        DynamicImage::ImageRgba8(image) => colour::<4, u8>(&image, |v| v),
        DynamicImage::ImageRgb16(image) => colour::<3, u16>(&image, upper),
        DynamicImage::ImageRgba16(image) => colour::<4, u16>(&image, upper),
        DynamicImage::ImageLuma8(image) => grey::<1, u8>(&image, |v| v),
        DynamicImage::ImageLumaA8(image) => grey::<2, u8>(&image, |v| v),
        DynamicImage::ImageLuma16(image) => grey::<1, u16>(&image, upper),
        DynamicImage::ImageLumaA16(image) => grey::<2, u16>(&image, upper),
        other => {
            let what = format!("its colours are {:?}; save it with 8 or 16 bits per channel", other.color());
            return Err(ImageProblem::Unsupported(what));
        }
    };
    Ok((width, height, pixels))
}

/// The upper half of 16 bits, as PIL reads colours of 16 bits.
fn upper(value: u16) -> u8 {
    (value >> 8) as u8
}

/// The first three of `N` channels.
fn colour<const N: usize, T: Copy>(samples: &[T], to_byte: impl Fn(T) -> u8) -> Vec<u8> {
    samples.as_chunks::<N>().0.iter().flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).map(to_byte).collect()
}

/// The first of `N` channels, three times.
fn grey<const N: usize, T: Copy>(samples: &[T], to_byte: impl Fn(T) -> u8) -> Vec<u8> {
    samples.as_chunks::<N>().0.iter().flat_map(|pixel| [to_byte(pixel[0]); 3]).collect()
}
