//! The bytes that images become, by a digest that belongs to a version.

use std::path::Path;

use loranpac_encode::image::{VERSION, decode};
use loranpac_encode::{Encoder, ImageBasic, Limits, Preprocess, hex};
use sha2::{Digest, Sha256};

/// An image of every kind, in the corpora of the fuzz targets.
const IMAGES: [&str; 32] = [
    "image/bmp-bits",
    "image/bmp-palette",
    "image/bmp-rgb",
    "image/bmp-rgba",
    "image/bmp-runs",
    "image/gif-interlaced",
    "image/gif-moving",
    "image/gif-still",
    "image/png-bits",
    "image/png-grey",
    "image/png-interlaced",
    "image/png-palette",
    "image/png-rgb",
    "image/png-rgba",
    "image/png-rotated",
    "image/png-sixteen",
    "image/tiff-deflate",
    "image/tiff-grey",
    "image/tiff-lzw",
    "image/tiff-plain",
    "image/tiff-rotated",
    "image/webp-lossless",
    "image/webp-lossy",
    "image/webp-lossy-alpha",
    "image/webp-moving",
    "image/webp-rotated",
    "jpeg/cmyk",
    "jpeg/full",
    "jpeg/grey",
    "jpeg/half",
    "jpeg/progressive",
    "jpeg/rotated",
];

/// Every filter, enlarging, reducing, cropping and padding.
const SETTINGS: [&str; 8] = [
    "unit",
    "half",
    "imagenet,resize=8,crop=6",
    "clip,resize=7x9,crop=7x9,filter=nearest",
    "unit,resize=30,crop=20,filter=box",
    "unit,resize=11,crop=11,filter=bilinear",
    "unit,resize=5x40,crop=12,filter=hamming",
    "unit,resize=keep,crop=16,filter=lanczos",
];

/// The version of pixels, and the digest of what it makes of the images. If this test fails, decoding, resizing or
/// normalising has changed, and with it the features of every image encoder: raise `image::VERSION`, and write the new
/// digest here. Models then refuse their encoders, because their features are others.
const PINNED: (u32, &str) = (1, "adc6f168b88155245f3dfa90435371a4b515257d9ac4aca04a627b96838116e3");

#[test]
fn the_bytes_of_images_belong_to_their_version() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut digest = Sha256::new();
    for name in IMAGES {
        let bytes = std::fs::read(corpus.join(name)).unwrap();
        let image = decode(name, &bytes, &Limits::default()).unwrap();
        digest.update(format!("{name} {} {}\n", image.width, image.height));
        digest.update(&image.pixels);
        for settings in SETTINGS {
            let preprocess: Preprocess = settings.parse().unwrap();
            let (height, width) = preprocess.size();
            let mut planes = vec![f32::NAN; 3 * height * width];
            preprocess.apply(&image, &mut planes);
            planes.iter().for_each(|value| digest.update(value.to_le_bytes()));
        }
    }
    assert_eq!((VERSION, hex(&digest.finalize().into()).as_str()), PINNED);
}

#[test]
fn the_digest_of_an_encoder_that_models_record_does_not_change() {
    let recorded = "23783cd779bbad2df83f56077aceb662d1e513fee3e76ae270451f988d2637ed";
    assert_eq!(hex(&ImageBasic.digest()), recorded);
}
