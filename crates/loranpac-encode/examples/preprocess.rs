//! Writes what an encoder would read of images: `preprocess SETTINGS OUT.npz` with the names of image files on standard
//! input, one per line. `bench/preprocess_parity.py` compares the result with PIL and torchvision.

use std::error::Error;
use std::io::stdin;

use loranpac_data::formats::{Column, to_npz};
use loranpac_encode::{Preprocess, image};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [settings, out] = &arguments[..] else { return Err("usage: preprocess SETTINGS OUT.npz < NAMES".into()) };
    let preprocess: Preprocess = settings.parse()?;
    let (height, width) = preprocess.size();
    let mut rows = Vec::new();
    for name in stdin().lines() {
        let name = name?;
        let decoded = image::decode(&name, &std::fs::read(&name)?, &image::Limits::default())?;
        let start = rows.len();
        rows.resize(start + 3 * height * width, 0.0);
        preprocess.apply(&decoded, &mut rows[start..]);
    }
    std::fs::write(out, to_npz(&[("x", Column::Matrix(3 * height * width, rows))])?)?;
    Ok(())
}
