//! Features of prepared inputs, for comparisons with other programs:
//!
//! ```text
//! features MODEL vit SIDE N PLANES.f32 OUT.f32 [REPEAT]    N images of 3 x SIDE x SIDE numbers
//! features MODEL text 0 0 TEXTS.txt OUT.f32 [REPEAT]       a text per line
//! ```
//!
//! Numbers are f32 without a header. Prints the seconds of each repetition, one per line.

use std::error::Error;
use std::path::Path;
use std::time::Instant;
use std::{env, fs};

use loranpac_encode::{Encoder, TextEncoder, Vit};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [model, kind, side, n, input, output, rest @ ..] = &args[..] else {
        return Err("features MODEL vit|text SIDE N INPUT OUTPUT [REPEAT]".into());
    };
    let repeat: usize = rest.first().map_or(Ok(1), |repeat| repeat.parse())?;
    let mut features = Vec::new();
    let mut time = |run: &mut dyn FnMut() -> Result<Vec<f32>, Box<dyn Error>>| -> Result<(), Box<dyn Error>> {
        for _ in 0..repeat {
            let start = Instant::now();
            features = run()?;
            println!("{}", start.elapsed().as_secs_f64());
        }
        Ok(())
    };
    if kind == "text" {
        let encoder = TextEncoder::open(Path::new(model))?;
        let texts = fs::read_to_string(input)?;
        let texts: Vec<&str> = texts.split('\n').collect();
        let last = encoder.layers() - 1;
        time(&mut || Ok(encoder.features(&texts, &[last])?))?;
    } else {
        let vit = Vit::open(Path::new(model), Some(side.parse()?))?;
        let planes: Vec<f32> = fs::read(input)?.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        time(&mut || Ok(vit.features(&planes, n.parse()?, &[vit.layers() - 1])))?;
    }
    fs::write(output, features.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())?;
    Ok(())
}
