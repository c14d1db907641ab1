//! Gradients of modules, and steps of training on a fixed batch, for comparisons with other programs:
//!
//! ```text
//! gradients MODEL MODULE INPUT TARGETS OUT RATE STEPS [KEPT]
//! ```
//!
//! INPUT is a file of f32 (planes of images) or a `.txt` file with a text per line; TARGETS are class numbers with commas between them. Writes
//! `OUT.json` with the names and shapes of tensors, and the losses; `OUT.values` and `OUT.gradients` with their numbers before the first step, as
//! f32 without a header. Prints the seconds of each step. KEPT is the number of blocks that are not computed again [default: all].

use std::error::Error;
use std::time::Instant;
use std::{env, fs};

use loranpac_encode::internals::{Probe, ProbeInput};
use loranpac_encode::{ModuleKind, open_transformer};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [model, module, input, targets, out, rate, steps, rest @ ..] = &args[..] else {
        return Err("gradients MODEL MODULE INPUT TARGETS OUT RATE STEPS [KEPT]".into());
    };
    let kind = ModuleKind::from_name(module).ok_or("no such module")?;
    let targets: Vec<usize> = targets.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let (rate, steps): (f64, usize) = (rate.parse()?, steps.parse()?);
    let kept: usize = rest.first().map_or(Ok(usize::MAX), |kept| kept.parse())?;
    let classes = targets.iter().max().map_or(0, |most| most + 1);
    let mut probe = Probe::new(open_transformer(model, None)?, kind, classes, 0.02);

    let (text, planes): (String, Vec<f32>);
    let lines: Vec<&str>;
    let batch = if input.ends_with(".txt") {
        text = fs::read_to_string(input)?;
        lines = text.split('\n').collect();
        ProbeInput::Texts(&lines)
    } else {
        planes = fs::read(input)?.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        ProbeInput::Planes(&planes)
    };
    let bytes = |numbers: &[f32]| numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    fs::write(format!("{out}.values"), bytes(probe.values()))?;
    let mut losses = Vec::new();
    for step in 0..steps {
        let start = Instant::now();
        let (loss, gradients) = probe.gradients(batch, &targets, kept)?;
        if step == 0 {
            fs::write(format!("{out}.gradients"), bytes(&gradients))?;
        }
        probe.step(&gradients, rate);
        println!("{}", start.elapsed().as_secs_f64());
        losses.push(loss);
    }
    let result = serde_json::json!({ "tensors": probe.tensors(), "losses": losses });
    fs::write(format!("{out}.json"), result.to_string())?;
    Ok(())
}
