//! The pixels, numbers and features of a few tiny images, to the last bit. Whoever changes them changes
//! `image::VERSION`, by which cached features are found.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use loranpac_encode::image::{self, Limits};
use loranpac_encode::{Batch, Encoder, ImageBasic, Preprocess, hex};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Filters without trigonometric functions, whose last bits depend on the machine.
const SETTINGS: [&str; 3] =
    ["resize=7,crop=5,filter=bicubic", "half,resize=20x31,crop=24,filter=bilinear", "clip,resize=keep,crop=8,filter=box"];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/pixels.json")
}

/// A digest of everything that is computed from each image of the fuzzers' corpora.
fn digests() -> BTreeMap<String, String> {
    let mut digests = BTreeMap::new();
    for kind in ["image", "jpeg"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(kind);
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = format!("{kind}/{}", path.file_name().unwrap().to_str().unwrap());
            // Some kinds of TIFF are refused.
            let Ok(image) = image::decode(&name, &fs::read(&path).unwrap(), &Limits::default()) else { continue };
            let mut digest = Sha256::new();
            digest.update(format!("{} {}\n", image.width, image.height));
            digest.update(&image.pixels);
            let mut add = |numbers: &[f32]| numbers.iter().for_each(|number| digest.update(number.to_le_bytes()));
            for settings in SETTINGS {
                let preprocess: Preprocess = settings.parse().unwrap();
                let (height, width) = preprocess.size();
                let mut planes = vec![0.0; 3 * height * width];
                preprocess.apply(&image, &mut planes);
                add(&planes);
            }
            add(&ImageBasic.encode(Batch::Images(&[image]), &[0]).unwrap());
            digests.insert(name, hex(&digest.finalize().into())[..16].to_owned());
        }
    }
    digests
}

#[test]
fn a_change_of_pixels_needs_another_version() {
    let expected: Value = serde_json::from_str(&fs::read_to_string(golden()).unwrap()).unwrap();
    assert_eq!(expected["version"], image::VERSION, "write the file anew, as below");
    let found = digests();
    assert!(found.len() > 35, "{}", found.len());
    for (name, digest) in &found {
        let expected = expected["images"][name].as_str();
        assert_eq!(
            expected,
            Some(digest.as_str()),
            "{name} has other pixels or features: increase image::VERSION (and the version of image-basic if its \
             features are others), so that cached features are not used, and write the file anew"
        );
    }
}

/// `cargo test -p loranpac-encode --test pinned -- --ignored`
#[test]
#[ignore = "writes a file"]
fn write_the_digests() {
    let text = serde_json::to_string_pretty(&json!({ "version": image::VERSION, "images": digests() })).unwrap();
    fs::write(golden(), text + "\n").unwrap();
}
