//! Preprocessing against PIL and torchvision (numbers that they printed), and against a resampler in f64.

use std::f64::consts::PI;

use loranpac_encode::{Filter, Image, Preprocess, Resize};
use serde_json::Value;

/// The picture of `bench/reference/resize.py`.
fn picture(width: usize, height: usize) -> Image {
    let value = |x: usize, y: usize, c: usize| ((x * 37 + y * 59 + c * 101 + x * y * 7) % 256) as u8;
    let pixels = (0..height).flat_map(|y| (0..width).flat_map(move |x| (0..3).map(move |c| value(x, y, c)))).collect();
    Image { width, height, pixels }
}

/// The result as bytes, pixel by pixel.
fn bytes(preprocess: &Preprocess, image: &Image) -> Vec<u8> {
    let (height, width) = preprocess.size();
    let mut planes = vec![f32::NAN; 3 * height * width];
    preprocess.apply(image, &mut planes);
    let byte = |at: usize, channel: usize| planes[channel * height * width + at] * 255.0;
    let byte = |at, channel| {
        let value: f32 = byte(at, channel);
        assert!((value - value.round()).abs() < 1e-4, "{value} is not a whole number");
        value.round() as u8
    };
    (0..height * width).flat_map(|at| (0..3).map(move |channel| byte(at, channel))).collect()
}

#[test]
fn resizing_and_cropping_equal_pil_and_torchvision_to_the_last_bit() {
    let golden: Value = serde_json::from_str(include_str!("golden/resize.json")).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 8 * Filter::ALL.len());
    for case in cases {
        let side = |key: &str| case[key].as_u64().unwrap() as usize;
        let settings = case["settings"].as_str().unwrap();
        let expected: Vec<u8> = case["pixels"].as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u8).collect();
        let found = bytes(&settings.parse().unwrap(), &picture(side("width"), side("height")));
        assert_eq!(found, expected, "{settings} of {} x {}", side("width"), side("height"));
    }
}

/// Weights from the definitions of the filters, in f64, without rounding between the passes.
fn naive(image: &Image, filter: Filter, (height, width): (usize, usize)) -> Vec<f64> {
    let sinc = |x: f64| if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) };
    let weight = |x: f64| match filter {
        Filter::Box => f64::from(x > -0.5 && x <= 0.5),
        Filter::Bilinear => (1.0 - x.abs()).max(0.0),
        Filter::Hamming if x.abs() < 1.0 => sinc(x) * (0.54 + 0.46 * (PI * x).cos()),
        Filter::Lanczos if x.abs() < 3.0 => sinc(x) * sinc(x / 3.0),
        Filter::Bicubic => match x.abs() {
            x @ ..1.0 => 1.5 * x.powi(3) - 2.5 * x.powi(2) + 1.0,
            x @ ..2.0 => -0.5 * x.powi(3) + 2.5 * x.powi(2) - 4.0 * x + 2.0,
            _ => 0.0,
        },
        _ => 0.0,
    };
    let weights = |input: usize, output: usize, at: usize| {
        let scale = input as f64 / output as f64;
        let centre = (at as f64 + 0.5) * scale;
        let raw: Vec<f64> = (0..input).map(|j| weight((j as f64 + 0.5 - centre) / scale.max(1.0))).collect();
        let sum: f64 = raw.iter().sum();
        raw.into_iter().map(|w| w / sum).collect::<Vec<_>>()
    };
    let mut out = Vec::new();
    for y in 0..height {
        let down = weights(image.height, height, y);
        for x in 0..width {
            let across = weights(image.width, width, x);
            for channel in 0..3 {
                let pixel = |i: usize, j: usize| f64::from(image.pixels[(i * image.width + j) * 3 + channel]);
                let row = |i: usize| across.iter().enumerate().map(|(j, w)| w * pixel(i, j)).sum::<f64>();
                out.push(down.iter().enumerate().map(|(i, w)| w * row(i)).sum());
            }
        }
    }
    out
}

#[test]
fn resizing_equals_the_definition_of_the_filters() {
    // A smooth picture: clipping between the passes, which the definition lacks, does not occur.
    let smooth = |width: usize, height: usize| {
        let value = |x: usize, y: usize, c: usize| {
            127.0 + 60.0 * (x as f64 * 0.3 + c as f64).sin() + 50.0 * (y as f64 * 0.2 - c as f64).cos()
        };
        let pixels = (0..height).flat_map(|y| (0..width).flat_map(move |x| (0..3).map(move |c| value(x, y, c) as u8)));
        Image { width, height, pixels: pixels.collect() }
    };
    for filter in Filter::ALL.iter().copied().filter(|&filter| filter != Filter::Nearest) {
        for (from, to) in [((40, 60), (23, 31)), ((20, 11), (37, 45)), ((33, 33), (33, 12)), ((7, 50), (50, 7))] {
            let image = smooth(from.1, from.0);
            let preprocess: Preprocess = format!("resize={0}x{1},crop={0}x{1}", to.0, to.1).parse().unwrap();
            let found = bytes(&Preprocess { filter, ..preprocess }, &image);
            let expected = naive(&image, filter, to);
            for (found, expected) in found.iter().zip(&expected) {
                // Half a step in each pass.
                assert!(
                    (f64::from(*found) - expected).abs() < 1.3,
                    "{filter:?} {from:?} -> {to:?}: {found} {expected}"
                );
            }
        }
    }
}

#[test]
fn a_long_image_needs_no_more_memory_than_its_middle() {
    // The whole resized image would have 256 x 25,600,000 pixels.
    let long = Image { width: 1, height: 100_000, pixels: vec![7; 300_000] };
    let preprocess: Preprocess = "unit".parse().unwrap();
    assert!(bytes(&preprocess, &long).iter().all(|&byte| byte == 7));
    let wide = Image { width: 100_000, height: 1, pixels: vec![9; 300_000] };
    assert!(bytes(&preprocess, &wide).iter().all(|&byte| byte == 9));
}

#[test]
fn pixels_are_scaled_and_normalised() {
    let image = Image { width: 1, height: 1, pixels: vec![0, 51, 255] };
    let settings = "resize=1x1,crop=1,mean=0.1/0.2/0.3,std=0.5/0.25/2";
    let preprocess: Preprocess = settings.parse().unwrap();
    let mut out = [0.0; 3];
    preprocess.apply(&image, &mut out);
    assert_eq!(out, [-0.1 / 0.5, (51.0 / 255.0 - 0.2) / 0.25, (1.0 - 0.3) / 2.0]);
    preprocess.with("scale=1,mean=0,std=1").unwrap().apply(&image, &mut out);
    assert_eq!(out, [0.0, 51.0, 255.0]);
}

#[test]
fn padding_is_black_before_normalisation() {
    let image = Image { width: 1, height: 1, pixels: vec![255; 3] };
    let preprocess: Preprocess = "resize=keep,crop=3,mean=0.5,std=0.5".parse().unwrap();
    let mut out = [9.0; 27];
    preprocess.apply(&image, &mut out);
    let plane = [-1.0, -1.0, -1.0, -1.0, 1.0, -1.0, -1.0, -1.0, -1.0];
    assert_eq!(out, [plane, plane, plane].concat()[..]);
}

#[test]
fn texts_change_what_they_name_and_nothing_else() {
    let half = Preprocess::preset("half").unwrap();
    let changed = half.with("resize=300x200, filter=box").unwrap();
    assert_eq!(changed, Preprocess { resize: Resize::Exact(300, 200), filter: Filter::Box, ..half.clone() });
    assert_eq!(half.with("unit").unwrap(), Preprocess::preset("unit").unwrap());
    assert_eq!(half.with("clip,crop=128x96").unwrap().size(), (128, 96));
    for name in ["unit", "half", "imagenet", "clip"] {
        let preset = Preprocess::preset(name).unwrap();
        assert_eq!(half.with(&preset.to_string()).unwrap(), preset, "{preset}");
        assert_eq!(preset.to_string().parse::<Preprocess>().unwrap(), preset, "{preset}");
    }
}

#[test]
fn bad_texts_are_refused_with_what_is_expected() {
    let check = |text: &str, expected: &str| {
        let message = text.parse::<Preprocess>().unwrap_err().to_string();
        assert!(message.contains(expected) && message.contains(text), "{text}: {message}");
    };
    check("vgg", "neither a preset (unit, half, imagenet, clip) nor a setting");
    check("crop=224,unit", "\"unit\" is neither");
    check("size=224", "\"size\" is neither");
    check("resize=big", "256 (the shorter side)");
    check("crop=0", "a side of 0 pixels is not between 1 and 4096");
    check("resize=1x99999", "99999");
    check("filter=sharp", "one of nearest, box, bilinear, hamming, bicubic, lanczos");
    check("mean=1/2", "0.5 or 0.5/0.5/0.5");
    check("std=0", "not a positive number");
    check("mean=nan", "not a finite number");
}
