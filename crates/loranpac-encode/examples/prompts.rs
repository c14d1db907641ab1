//! Gradients of prompt methods, and steps of training on a fixed batch, for comparisons with other programs:
//!
//! ```text
//! prompts MODEL METHOD INPUT TARGETS OUT RATE STEPS [KEPT]
//! ```
//!
//! METHOD is `l2p`, `dual-prompt` or `coda-prompt`, in the second of two tasks. INPUT is a file of f32 (planes of images) or a `.txt` file with a
//! text per line; TARGETS are class numbers with commas between them, and there is one class before the first of them that no sample has. Writes
//! `OUT.json` with the names and shapes of tensors, and the losses; `OUT.values` and `OUT.gradients` with their numbers before the first step, as
//! f32 without a header. KEPT is the number of blocks that are not computed again [default: all].

use std::error::Error;
use std::{env, fs};

use loranpac_encode::internals::{ProbeInput, PromptProbe};
use loranpac_encode::open_transformer;
use loranpac_encode::prompt::{PromptKind, PromptSettings};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [model, method, input, targets, out, rate, steps, rest @ ..] = &args[..] else {
        return Err("prompts MODEL METHOD INPUT TARGETS OUT RATE STEPS [KEPT]".into());
    };
    let kind: PromptKind = serde_json::from_value(method.as_str().into())?;
    let targets: Vec<usize> = targets.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let (rate, steps): (f64, usize) = (rate.parse()?, steps.parse()?);
    let kept: usize = rest.first().map_or(Ok(usize::MAX), |kept| kept.parse())?;
    let classes = targets.iter().max().map_or(0, |most| most + 1);
    let mut probe = PromptProbe::new(open_transformer(model, None)?, &PromptSettings::new(kind), classes)?;

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
    let write = |part: &str, numbers: &[f32]| {
        fs::write(format!("{out}.{part}"), numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
    };
    write("values", &probe.values())?;
    let mut losses = Vec::new();
    for step in 0..steps {
        let (loss, gradients) = probe.step(batch, &targets, rate, kept)?;
        if step == 0 {
            write("gradients", &gradients)?;
        }
        losses.push(loss);
    }
    let result = serde_json::json!({ "tensors": probe.tensors(), "losses": losses });
    fs::write(format!("{out}.json"), result.to_string())?;
    Ok(())
}
