//! Decoding: kinds of pixels, orientation, limits, and files that are damaged or false.

mod samples;

use ::image::{DynamicImage, ImageBuffer, ImageFormat, Luma, LumaA, Rgb, Rgba};
use loranpac_encode::image::{Limits, decode, has_image_extension};
use loranpac_encode::{Error, Image, ImageProblem};
use samples::{Jpeg, bytes, jpeg_with_orientation, jpegs, png_header};

/// Red, green and blue of pixel (x, y) of the test picture.
fn value(x: u32, y: u32) -> [u8; 3] {
    [(x * 20) as u8, (y * 30) as u8, (255 - x * 7 - y * 5) as u8]
}

fn decoded(image: &DynamicImage, format: ImageFormat) -> Image {
    decode("picture", &bytes(image, format), &Limits::default()).unwrap()
}

fn problem(bytes: &[u8], limits: &Limits) -> ImageProblem {
    match decode("folder/x.png", bytes, limits) {
        Err(Error::Image { name, problem }) => {
            assert_eq!(name, "folder/x.png");
            problem
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn lossless_formats_give_the_pixels_that_were_saved() {
    let rgb = DynamicImage::ImageRgb8(ImageBuffer::from_fn(7, 5, |x, y| Rgb(value(x, y))));
    let expected: Vec<u8> = (0..5).flat_map(|y| (0..7).flat_map(move |x| value(x, y))).collect();
    for format in [ImageFormat::Png, ImageFormat::Bmp, ImageFormat::Tiff, ImageFormat::WebP] {
        let found = decoded(&rgb, format);
        assert_eq!((found.width, found.height), (7, 5));
        assert_eq!(found.pixels, expected, "{format:?}");
    }
}

#[test]
fn every_kind_of_pixel_becomes_rgb_of_eight_bits() {
    // Alpha is dropped, not blended; of 16 bits the upper 8 are kept; grey is repeated.
    let wide = |v: u8| u16::from(v) << 8 | 0xab;
    let colour: Vec<u8> = (0..5).flat_map(|y| (0..7).flat_map(move |x| value(x, y))).collect();
    let grey: Vec<u8> = (0..5).flat_map(|y| (0..7).flat_map(move |x| [value(x, y)[0]; 3])).collect();
    let alpha = |x: u32| (x * 36) as u8;
    let with_alpha = ImageBuffer::from_fn(7, 5, |x, y| {
        let [r, g, b] = value(x, y);
        Rgba([r, g, b, alpha(x)])
    });
    let check = |image: DynamicImage, expected: &[u8]| {
        for format in [ImageFormat::Png, ImageFormat::Tiff] {
            if format == ImageFormat::Tiff && image.color().has_alpha() && !image.color().has_color() {
                continue; // The encoder of the tests cannot write these.
            }
            assert_eq!(decoded(&image, format).pixels, expected, "{:?} {format:?}", image.color());
        }
    };
    check(DynamicImage::ImageRgba8(with_alpha), &colour);
    check(DynamicImage::ImageRgb16(ImageBuffer::from_fn(7, 5, |x, y| Rgb(value(x, y).map(wide)))), &colour);
    check(DynamicImage::ImageLuma8(ImageBuffer::from_fn(7, 5, |x, y| Luma([value(x, y)[0]]))), &grey);
    check(DynamicImage::ImageLumaA8(ImageBuffer::from_fn(7, 5, |x, y| LumaA([value(x, y)[0], alpha(x)]))), &grey);
    check(DynamicImage::ImageLuma16(ImageBuffer::from_fn(7, 5, |x, y| Luma([wide(value(x, y)[0])]))), &grey);
}

#[test]
fn of_a_gif_the_first_frame_is_read() {
    use ::image::codecs::gif::GifEncoder;
    let plain = |colour| ::image::Frame::new(ImageBuffer::from_pixel(4, 3, Rgba(colour)));
    let mut gif = Vec::new();
    GifEncoder::new(&mut gif).encode_frames([plain([255, 0, 0, 255]), plain([0, 0, 255, 255])]).unwrap();
    let found = decode("a.gif", &gif, &Limits::default()).unwrap();
    assert_eq!((found.width, found.height), (4, 3));
    assert_eq!(found.pixels, [255, 0, 0].repeat(12));
}

#[test]
fn the_orientation_in_the_metadata_is_applied() {
    // Left half dark, right half bright, 32 x 16 pixels.
    let image = ImageBuffer::from_fn(32, 16, |x, _| Luma([if x < 16 { 20 } else { 230 }]));
    let image = DynamicImage::ImageLuma8(image);
    let dark = |image: &Image, x: usize, y: usize| image.pixels[(y * image.width + x) * 3] < 128;
    for number in 1..=8 {
        let found = decode("a.jpg", &jpeg_with_orientation(&image, number), &Limits::default()).unwrap();
        let turned = number >= 5;
        assert_eq!((found.width, found.height), if turned { (16, 32) } else { (32, 16) }, "orientation {number}");
        // Where the left half of the file lies when the image is upright.
        let (width, height) = (found.width, found.height);
        let (first, last) = match turned {
            false => (dark(&found, 4, 8), dark(&found, width - 4, 8)),
            true => (dark(&found, 8, 4), dark(&found, 8, height - 4)),
        };
        let expected = matches!(number, 1 | 4 | 5 | 6);
        assert_eq!((first, last), (expected, !expected), "orientation {number}");
    }
}

#[test]
fn a_huge_image_in_a_small_file_is_refused_by_its_header() {
    let limits = Limits::default();
    let huge = png_header(50_000, 50_000);
    let expected = ImageProblem::TooLarge { width: 50_000, height: 50_000, limit: limits.pixels };
    assert_eq!(problem(&huge, &limits), expected);
    let message = expected.to_string();
    assert_eq!(message, "the image has 50000 x 50000 pixels, more than the limit of 100 million");
    let wide = png_header(9_000, 11_000);
    let small = Limits { bytes: 100 << 20, ..limits };
    assert!(matches!(problem(&wide, &small), ImageProblem::Memory { width: 9_000, height: 11_000, .. }));
}

#[test]
fn what_is_no_image_is_refused() {
    let limits = Limits::default();
    assert_eq!(problem(b"", &limits), ImageProblem::Empty);
    assert_eq!(problem(b"PK\x03\x04 not an image", &limits), ImageProblem::UnknownFormat);
    assert_eq!(problem(b"<svg></svg>", &limits), ImageProblem::UnknownFormat);
    // A page of HTML that was saved as a picture.
    assert_eq!(problem(b"<!DOCTYPE html>", &limits), ImageProblem::UnknownFormat);
}

#[test]
fn jpeg_files_have_the_pixels_of_libjpeg_to_the_last_bit() {
    let cases = jpegs();
    assert_eq!(cases.len(), 13);
    for Jpeg { name, file, width, height, pixels } in cases {
        let found = decode(&name, &file, &Limits::default()).unwrap();
        assert_eq!((found.width, found.height), (width, height), "{name}");
        assert_eq!(found.pixels, pixels, "{name}");
    }
}

#[test]
fn a_truncated_jpeg_is_an_error_and_not_grey() {
    let image = ImageBuffer::from_fn(64, 48, |x, y| Rgb(value(x % 12, y % 8)));
    let whole = bytes(&DynamicImage::ImageRgb8(image), ImageFormat::Jpeg);
    assert!(decode("x.jpg", &whole, &Limits::default()).is_ok());
    for length in (3..whole.len()).step_by(7) {
        let problem = problem(&whole[..length], &Limits::default());
        assert!(matches!(problem, ImageProblem::Truncated | ImageProblem::Damaged(_)), "{length}: {problem:?}");
    }
}

#[test]
fn images_are_known_by_their_extensions() {
    assert!(["a.jpg", "b/c.JPEG", "x.y.png", "z.TIFF", "q.webp"].into_iter().all(has_image_extension));
    assert!(!["jpg", "a.txt", "png/a", "b.jpg.bak", ""].into_iter().any(has_image_extension));
}
