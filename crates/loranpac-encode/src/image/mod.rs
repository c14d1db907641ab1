//! Images from bytes: JPEG, PNG, WebP, BMP, GIF (the first frame) and TIFF.
//!
//! The result has 8 bits per channel and is upright: the orientation in the file's metadata is applied. Alpha is
//! dropped, not blended. Of 16 bits the upper 8 are kept. Colour profiles are ignored. This is what PIL's
//! `ImageOps.exif_transpose(image).convert("RGB")` does, with one exception: PIL clips grey images of 16 bits at 255,
//! which makes most of them white.

mod colour;
mod jpeg;
mod png;
mod tiff;
mod webp;

use std::borrow::Cow;
use std::io::Cursor;

use ::image::{
    DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits as DecoderLimits, RgbImage,
    metadata::Orientation,
};

use loranpac_data::fence::fenced;
use sha2::{Digest, Sha256};

use crate::encoder::Image;
use crate::error::Error;
use crate::problem::ImageProblem;

/// Version of the pixels that [`decode`] gives and of the numbers that [`Preprocess`](crate::Preprocess) makes of them. A
/// change of either needs another version: it is part of the digests of image encoders and of their caches.
pub const VERSION: u32 = 1;

/// Adds the version of pixels to the digest of an image encoder. The first version adds nothing: the digests that models
/// record were formed without it.
pub(crate) fn add_version(digest: Sha256, version: u32) -> Sha256 {
    if version == 1 { digest } else { digest.chain_update(format!("pixels {version}\n")) }
}

/// Extensions of the formats that can be decoded, in lower case.
pub const EXTENSIONS: &[&str] = &["jpg", "jpeg", "jpe", "jfif", "png", "apng", "webp", "bmp", "gif", "tif", "tiff"];

/// The largest image that is decoded. Both limits are compared with the header before memory is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Pixels.
    pub pixels: u64,
    /// Bytes of memory that decoding may need, besides the file (twice, if it is a PNG file with a colour profile) and up to
    /// 128 MiB for the directory of a TIFF file.
    pub bytes: u64,
}

impl Default for Limits {
    /// 100 million pixels and 1 GiB.
    fn default() -> Limits {
        Limits { pixels: 100_000_000, bytes: 1 << 30 }
    }
}

/// Whether a file is an image, by its extension.
pub fn has_image_extension(name: &str) -> bool {
    let extension = name.rsplit('/').next().unwrap_or(name).rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|found| EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(found)))
}

/// Decodes an image. The contents determine the format; `name` is for messages only.
///
/// # Errors
/// [`Error::Image`] if the bytes are no image of a supported format, are truncated or damaged, or exceed `limits`.
pub fn decode(name: &str, bytes: &[u8], limits: &Limits) -> Result<Image, Error> {
    pixels(bytes, limits).map_err(|problem| Error::Image { name: name.to_owned(), problem })
}

/// The number of pixels that the header claims; 0 if it cannot be read.
pub(crate) fn claimed_pixels(bytes: &[u8]) -> u64 {
    let size = match format(bytes) {
        Ok(ImageFormat::Jpeg) => jpeg::size(bytes),
        Ok(ImageFormat::Tiff) if tiff::check_directory(bytes).is_err() => None,
        Ok(format) => fenced(|| {
            let bytes = without_profiles(bytes, format);
            let decoder = ImageReader::with_format(Cursor::new(bytes), format).into_decoder();
            decoder.ok().map(|decoder| decoder.dimensions())
        })
        .unwrap_or(None),
        Err(_) => None,
    };
    size.map_or(0, |(width, height)| u64::from(width) * u64::from(height))
}

/// An image of pixels that were decoded elsewhere: red, green and blue of each, row by row.
///
/// # Errors
/// [`Error::Image`] if there are no pixels, more than `limits` allow, or another number than the sides require.
pub fn from_pixels(
    name: &str,
    (width, height): (usize, usize),
    pixels: Vec<u8>,
    limits: &Limits,
) -> Result<Image, Error> {
    let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
    let other = ImageProblem::Damaged(format!("{} bytes are not 3 x {width} x {height}", pixels.len()));
    let fits = width.checked_mul(height).and_then(|count| count.checked_mul(3)) == Some(pixels.len());
    check_size(side(width), side(height), pixels.len() as u64, limits)
        .and(if fits { Ok(Image { width, height, pixels }) } else { Err(other) })
        .map_err(|problem| Error::Image { name: name.to_owned(), problem })
}

fn pixels(bytes: &[u8], limits: &Limits) -> Result<Image, ImageProblem> {
    match format(bytes)? {
        ImageFormat::Jpeg => {
            let (width, height, pixels, orientation) = jpeg::decode(bytes, limits)?;
            upright(width, height, pixels, orientation)
        }
        // The decoders of other crates may panic.
        format => fenced(|| other(&without_profiles(bytes, format), format, limits))
            .unwrap_or_else(|e| Err(ImageProblem::Damaged(e.to_string()))),
    }
}

/// The format, by the first bytes.
fn format(bytes: &[u8]) -> Result<ImageFormat, ImageProblem> {
    use ImageFormat::{Bmp, Gif, Jpeg, Png, Tiff, WebP};
    let format = ::image::guess_format(bytes).ok().filter(|f| [Jpeg, Png, WebP, Bmp, Gif, Tiff].contains(f));
    format.ok_or(match bytes.is_empty() {
        true => ImageProblem::Empty,
        false => ImageProblem::UnknownFormat,
    })
}

/// A file without colour profiles that its decoder would unpack.
fn without_profiles(bytes: &[u8], format: ImageFormat) -> Cow<'_, [u8]> {
    if format == ImageFormat::Png { png::without_profiles(bytes) } else { Cow::Borrowed(bytes) }
}

/// Decodes every format but JPEG.
fn other(bytes: &[u8], format: ImageFormat, limits: &Limits) -> Result<Image, ImageProblem> {
    if format == ImageFormat::Tiff {
        tiff::check_directory(bytes)?;
    }
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut own = DecoderLimits::default();
    own.max_alloc = Some(limits.bytes);
    reader.limits(own);
    let mut decoder = reader.into_decoder().map_err(problem)?;
    let (width, height) = decoder.dimensions();
    // The decoder's output and the RGB image exist together, or the RGB image and its rotated copy.
    let others = (3 + WORKING).saturating_mul(u64::from(width) * u64::from(height));
    check_size(width, height, decoder.total_bytes().saturating_add(others), limits)?;
    if format == ImageFormat::WebP {
        webp::check_frames(bytes, (width, height))?;
    }
    // Damaged metadata is no reason to refuse the pixels.
    let orientation = match format {
        ImageFormat::WebP if !webp::chunks_fit(bytes) => Orientation::NoTransforms,
        _ => decoder.orientation().unwrap_or(Orientation::NoTransforms),
    };
    let decoded = DynamicImage::from_decoder(decoder).map_err(problem)?;
    let (width, height, pixels) = colour::to_rgb(decoded)?;
    upright(width, height, pixels, orientation)
}

/// Bytes per pixel that decoders need besides their output: planes of brightness and colour in WebP, one frame in GIF.
const WORKING: u64 = 4;

/// The longest side: resizing needs memory in proportion to it.
const LONGEST_SIDE: u32 = 1 << 20;

/// Compares the header of an image with the limits.
fn check_size(width: u32, height: u32, needed: u64, limits: &Limits) -> Result<(), ImageProblem> {
    match u64::from(width) * u64::from(height) {
        0 => Err(ImageProblem::NoPixels { width, height }),
        count if count > limits.pixels => Err(ImageProblem::TooLarge { width, height, limit: limits.pixels }),
        _ if width.max(height) > LONGEST_SIDE => {
            Err(ImageProblem::Unsupported(format!("a side of {} pixels", width.max(height))))
        }
        _ if needed > limits.bytes => Err(ImageProblem::Memory { width, height, needed, limit: limits.bytes }),
        _ => Ok(()),
    }
}

/// Applies the orientation.
fn upright(width: u32, height: u32, pixels: Vec<u8>, orientation: Orientation) -> Result<Image, ImageProblem> {
    let pixels = match orientation {
        Orientation::NoTransforms => return Ok(Image { width: width as usize, height: height as usize, pixels }),
        _ => RgbImage::from_raw(width, height, pixels),
    };
    let pixels =
        pixels.ok_or_else(|| ImageProblem::Damaged("it has fewer pixels than its header claims".to_owned()))?;
    let mut image = DynamicImage::ImageRgb8(pixels);
    image.apply_orientation(orientation);
    let (width, height) = (image.width() as usize, image.height() as usize);
    Ok(Image { width, height, pixels: image.into_bytes() })
}

/// The decoder's error in our words. Truncated data is an input/output error in some decoders.
fn problem(error: ImageError) -> ImageProblem {
    match error {
        ImageError::Limits(_) => ImageProblem::DecoderMemory,
        ImageError::Unsupported(what) => ImageProblem::Unsupported(what.to_string()),
        ImageError::IoError(source) if source.kind() == std::io::ErrorKind::UnexpectedEof => ImageProblem::Truncated,
        other => ImageProblem::Damaged(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_of_pixels_is_another_encoder_and_the_first_adds_nothing() {
        let digest = |version| add_version(Sha256::new_with_prefix(b"weights"), version).finalize();
        assert_eq!(digest(1), Sha256::digest(b"weights"));
        assert!(digest(2) != digest(1) && digest(3) != digest(2));
    }

    #[test]
    fn pixels_in_memory_must_fit_their_sides_and_the_limits() {
        let limits = Limits { pixels: 20, bytes: 1 << 20 };
        let problem = |sides: (usize, usize), bytes: usize| match from_pixels("a", sides, vec![0; bytes], &limits) {
            Ok(image) => panic!("{} x {}", image.width, image.height),
            Err(Error::Image { problem, .. }) => problem,
            Err(other) => panic!("{other}"),
        };
        assert!(from_pixels("a", (4, 5), vec![0; 60], &limits).is_ok());
        assert!(matches!(problem((4, 6), 72), ImageProblem::TooLarge { .. }));
        assert!(matches!(problem((0, 6), 0), ImageProblem::NoPixels { .. }));
        assert!(matches!(problem((4, 5), 59), ImageProblem::Damaged(_)));
        assert!(matches!(problem((usize::MAX, usize::MAX), 3), ImageProblem::TooLarge { .. }));
    }
}
