//! Features of prepared inputs, for comparisons with other programs:
//!
//! ```text
//! features MODEL vit SIDE N PLANES.f32 OUT.f32 [REPEAT]    N images of 3 x SIDE x SIDE numbers
//! features MODEL text 0 0 TEXTS.txt OUT.f32 [REPEAT]       a text per line
//! ```
//!
//! Numbers are f32 without a header. Prints the seconds of each repetition, one per line. With `-` for REPEAT, a repetition starts
//! at each line of standard input.

use std::error::Error;
use std::path::Path;
use std::time::Instant;
use std::{env, fs, io};

use loranpac_encode::{Encoder, TextEncoder, Vit};

type Run = Box<dyn Fn() -> Result<Vec<f32>, Box<dyn Error>>>;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [model, kind, side, n, input, output, rest @ ..] = &args[..] else {
        return Err("features MODEL vit|text SIDE N INPUT OUTPUT [REPEAT]".into());
    };
    let run: Run = if kind == "text" {
        let encoder = TextEncoder::open(Path::new(model))?;
        let texts = fs::read_to_string(input)?;
        Box::new(move || {
            let texts: Vec<&str> = texts.split('\n').collect();
            Ok(encoder.features(&texts, &[encoder.layers() - 1])?)
        })
    } else {
        let (vit, n) = (Vit::open(Path::new(model), Some(side.parse()?))?, n.parse()?);
        let planes: Vec<f32> = fs::read(input)?.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        Box::new(move || Ok(vit.features(&planes, n, &[vit.layers() - 1])))
    };
    let mut features = Vec::new();
    let mut timed = || -> Result<(), Box<dyn Error>> {
        let start = Instant::now();
        features = run()?;
        println!("{}", start.elapsed().as_secs_f64());
        Ok(())
    };
    match rest.first().map(String::as_str) {
        Some("-") => io::stdin().lines().try_for_each(|_| timed())?,
        repeat => (0..repeat.unwrap_or("1").parse()?).try_for_each(|_: usize| timed())?,
    }
    fs::write(output, features.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())?;
    Ok(())
}
