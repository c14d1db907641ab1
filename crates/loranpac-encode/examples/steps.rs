//! Steps of training on a fixed batch of images, for comparisons of time and memory:
//!
//! ```text
//! steps MODEL MODULE PLANES TARGETS [KEPT]
//! ```
//!
//! PLANES is a file of f32; TARGETS are class numbers with commas between them. Prints a line when it is ready. Makes a step, with dropout, for
//! each line of standard input, and prints its seconds and its loss. KEPT is the number of blocks that are not computed again [default: all].

use std::error::Error;
use std::time::Instant;
use std::{env, fs, io};

use loranpac_encode::internals::{Probe, ProbeInput};
use loranpac_encode::{ModuleKind, open_transformer};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [model, module, planes, targets, rest @ ..] = &args[..] else {
        return Err("steps MODEL MODULE PLANES TARGETS [KEPT]".into());
    };
    let kind = ModuleKind::from_name(module).ok_or("no such module")?;
    let targets: Vec<usize> = targets.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let kept: usize = rest.first().map_or(Ok(usize::MAX), |kept| kept.parse())?;
    let classes = targets.iter().max().map_or(0, |most| most + 1);
    let mut probe = Probe::new(open_transformer(model, None)?, kind, classes, 0.0);
    let planes: Vec<f32> = fs::read(planes)?.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    println!("ready");
    for _ in io::stdin().lines() {
        let start = Instant::now();
        let loss = probe.train(ProbeInput::Planes(&planes), &targets, 0.01, kept)?;
        println!("{} {loss}", start.elapsed().as_secs_f64());
    }
    Ok(())
}
