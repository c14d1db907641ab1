//! Small images of all formats.
#![allow(dead_code, reason = "each test uses some of them")]

mod png;

use std::io::Cursor;

use image::{DynamicImage, ImageBuffer, ImageFormat, Rgb};
pub use png::png_header;

/// An image in a format.
pub fn bytes(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// A colourful picture.
pub fn picture(width: u32, height: u32) -> DynamicImage {
    let value = |x: u32, y: u32| Rgb([(x * 7) as u8, (y * 5) as u8, (x * y) as u8]);
    DynamicImage::ImageRgb8(ImageBuffer::from_fn(width, height, value))
}

/// The picture in every format, with the format's extension.
pub fn all(width: u32, height: u32) -> Vec<(&'static str, Vec<u8>)> {
    let image = picture(width, height);
    let formats = [
        ("jpg", ImageFormat::Jpeg),
        ("png", ImageFormat::Png),
        ("webp", ImageFormat::WebP),
        ("bmp", ImageFormat::Bmp),
        ("gif", ImageFormat::Gif),
        ("tif", ImageFormat::Tiff),
    ];
    formats.map(|(extension, format)| (extension, bytes(&image, format))).into()
}

/// A JPEG file, and the pixels that libjpeg decodes from it.
pub struct Jpeg {
    pub name: String,
    pub file: Vec<u8>,
    pub width: usize,
    pub height: usize,
    pub pixels: Vec<u8>,
}

/// JPEG files of all kinds, from `bench/reference/jpeg.py`.
pub fn jpegs() -> Vec<Jpeg> {
    let golden: serde_json::Value = serde_json::from_str(include_str!("../golden/jpeg.json")).unwrap();
    let decoded = |hex: &serde_json::Value| -> Vec<u8> {
        let digits = hex.as_str().unwrap().as_bytes().as_chunks::<2>().0;
        digits.iter().map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    };
    let side = |number: &serde_json::Value| number.as_u64().unwrap() as usize;
    let case = |case: &serde_json::Value| Jpeg {
        name: case["name"].as_str().unwrap().to_owned(),
        file: decoded(&case["file"]),
        width: side(&case["width"]),
        height: side(&case["height"]),
        pixels: decoded(&case["pixels"]),
    };
    golden["cases"].as_array().unwrap().iter().map(case).collect()
}

/// A JPEG file whose metadata has an orientation from 1 to 8.
pub fn jpeg_with_orientation(image: &DynamicImage, number: u8) -> Vec<u8> {
    let plain = bytes(image, ImageFormat::Jpeg);
    // A TIFF header, one entry (tag 0x112, type short, one value), no next directory.
    let mut exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([number, 0, 0, 0, 0, 0, 0]);
    let length = (exif.len() as u16 + 2).to_be_bytes();
    [&plain[..2], b"\xff\xe1", &length, &exif, &plain[2..]].concat()
}
