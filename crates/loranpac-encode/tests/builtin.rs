//! The encoders without weights.

use loranpac_encode::{Batch, Encoder, Error, Image, ImageBasic, TextNgrams};

fn texts(texts: &[&str]) -> Vec<Vec<f32>> {
    let x = TextNgrams.encode(Batch::Texts(texts), &[0]).unwrap();
    x.chunks_exact(TextNgrams.dim()).map(<[f32]>::to_vec).collect()
}

fn images(images: &[Image]) -> Vec<Vec<f32>> {
    let x = ImageBasic.encode(Batch::Images(images), &[0]).unwrap();
    x.chunks_exact(ImageBasic.dim()).map(<[f32]>::to_vec).collect()
}

fn product(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

fn painted(width: usize, height: usize, colour: impl Fn(usize, usize) -> [u8; 3]) -> Image {
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).flat_map(|(x, y)| colour(x, y)).collect();
    Image { width, height, pixels }
}

/// Non-zero features of `text-ngrams` from a program in Python, with its own hash map, splitting and logarithm:
/// `bench/reference/ngrams.py`.
#[test]
fn features_of_texts_equal_an_independent_computation() {
    let golden: serde_json::Value = serde_json::from_str(include_str!("golden/ngrams.json")).unwrap();
    for case in golden.as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let mut expected = vec![0.0; TextNgrams.dim()];
        for pair in case["features"].as_array().unwrap() {
            expected[pair[0].as_u64().unwrap() as usize] = pair[1].as_f64().unwrap();
        }
        for (at, (found, expected)) in texts(&[text])[0].iter().zip(&expected).enumerate() {
            assert!((f64::from(*found) - expected).abs() < 1e-7, "{text:?}, feature {at}: {found} {expected}");
        }
    }
}

#[test]
fn texts_have_unit_length_even_without_words() {
    let long = "a long text ".repeat(100_000);
    for (text, x) in ["hello", "", "?!", "naïve Ünïcode 日本語", &long].iter().zip(texts(&[
        "hello",
        "",
        "?!",
        "naïve Ünïcode 日本語",
        &long,
    ])) {
        let length = product(&x, &x).sqrt();
        assert!((length - 1.0).abs() < 1e-5, "{:?}: {length}", text.get(..20));
    }
}

#[test]
fn similar_spellings_have_similar_features() {
    let x = texts(&[
        "please book a table for two",
        "BOOK a table, for two please!",
        "book the tables",
        "what is the weather",
    ]);
    let (reordered, inflected, other) = (product(&x[0], &x[1]), product(&x[0], &x[2]), product(&x[0], &x[3]));
    assert!(reordered > 0.9 && inflected > 0.2 && other < 0.15, "{reordered} {inflected} {other}");
}

#[test]
fn features_do_not_depend_on_the_batch() {
    let all = texts(&["one", "two words", "three words here"]);
    assert_eq!(texts(&["two words"])[0], all[1]);
    let pictures = [painted(9, 5, |x, y| [x as u8 * 20, y as u8 * 40, 7]), painted(100, 130, |x, _| [x as u8; 3])];
    assert_eq!(images(&pictures[1..])[0], images(&pictures)[1]);
    let twice = TextNgrams.encode(Batch::Texts(&["one"]), &[0, 0]).unwrap();
    assert_eq!(twice, [all[0].clone(), all[0].clone()].concat());
}

#[test]
fn edges_and_colours_are_told_apart() {
    let stripes = |vertical: bool, colour: [u8; 3]| {
        painted(96, 96, move |x, y| if (if vertical { x } else { y }) / 12 % 2 == 0 { colour } else { [20; 3] })
    };
    let red = [200, 30, 30];
    let x = images(&[
        stripes(true, red),
        stripes(true, red.map(|v| v - 10)),
        stripes(false, red),
        stripes(true, [30, 30, 200]),
    ]);
    let (same, turned, recoloured) = (product(&x[0], &x[1]), product(&x[0], &x[2]), product(&x[0], &x[3]));
    let whole = product(&x[0], &x[0]);
    assert!(
        same > 0.9 * whole && turned < 0.75 * whole && recoloured < 0.9 * whole,
        "{whole}: {same} {turned} {recoloured}"
    );
}

#[test]
fn plain_and_tiny_images_have_finite_features() {
    for image in [painted(1, 1, |_, _| [0; 3]), painted(500, 2, |_, _| [255; 3]), painted(3, 400, |_, y| [y as u8; 3])]
    {
        let x = &images(&[image])[0];
        assert!(x.iter().all(|value| value.is_finite()) && product(x, x) > 0.5);
    }
}

#[test]
fn the_other_modality_and_other_layers_are_refused() {
    let image = [painted(1, 1, |_, _| [0; 3])];
    assert!(matches!(TextNgrams.encode(Batch::Images(&image), &[0]), Err(Error::Modality { .. })));
    assert!(matches!(ImageBasic.encode(Batch::Texts(&["x"]), &[0]), Err(Error::Modality { .. })));
    assert!(matches!(ImageBasic.encode(Batch::Images(&image), &[1]), Err(Error::Layer { layer: 1, .. })));
    assert_ne!(TextNgrams.digest(), ImageBasic.digest());
}
