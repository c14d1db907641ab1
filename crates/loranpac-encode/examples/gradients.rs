//! Gradients of modules and of prompt methods, and steps of training on a fixed batch, for comparisons with other programs:
//!
//! ```text
//! gradients MODEL WHAT INPUT TARGETS OUT RATE STEPS [KEPT]
//! ```
//!
//! WHAT is a module, or one of `l2p`, `dual-prompt` and `coda-prompt` in the second of two tasks. INPUT is a file of f32 (planes of images) or a
//! `.txt` file with a text per line; TARGETS are class numbers with commas between them. Writes `OUT.json` with the names and shapes of tensors, and
//! the losses; `OUT.values` and `OUT.gradients` with their numbers before the first step, as f32 without a header. Prints the seconds of each step.
//! KEPT is the number of blocks that are not computed again [default: all].

use std::error::Error;
use std::time::Instant;
use std::{env, fs};

use loranpac_encode::internals::{Probe, ProbeInput, PromptProbe};
use loranpac_encode::prompt::{PromptKind, PromptSettings};
use loranpac_encode::{ModuleKind, open_transformer};

/// What is trained.
#[expect(clippy::large_enum_variant, reason = "only one exists")]
enum Trained {
    Module(Probe),
    Prompts(PromptProbe),
}

impl Trained {
    fn new(model: &str, what: &str, classes: usize) -> Result<Trained, Box<dyn Error>> {
        let transformer = open_transformer(model, None)?;
        if let Some(kind) = ModuleKind::from_name(what) {
            return Ok(Trained::Module(Probe::new(transformer, kind, classes, 0.02)));
        }
        let kind: PromptKind = serde_json::from_value(what.into())?;
        Ok(Trained::Prompts(PromptProbe::new(transformer, &PromptSettings::new(kind), classes)?))
    }

    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        match self {
            Trained::Module(probe) => probe.tensors(),
            Trained::Prompts(probe) => probe.tensors(),
        }
    }

    fn values(&self) -> Vec<f32> {
        match self {
            Trained::Module(probe) => probe.values().to_vec(),
            Trained::Prompts(probe) => probe.values(),
        }
    }

    /// The loss of a batch and its gradients, before a step.
    fn step(
        &mut self,
        batch: ProbeInput<'_>,
        targets: &[usize],
        rate: f64,
        kept: usize,
    ) -> Result<(f64, Vec<f32>), Box<dyn Error>> {
        Ok(match self {
            Trained::Module(probe) => {
                let (loss, gradients) = probe.gradients(batch, targets, kept)?;
                probe.step(&gradients, rate);
                (loss, gradients)
            }
            Trained::Prompts(probe) => probe.step(batch, targets, rate, kept)?,
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [model, what, input, targets, out, rate, steps, rest @ ..] = &args[..] else {
        return Err("gradients MODEL WHAT INPUT TARGETS OUT RATE STEPS [KEPT]".into());
    };
    let targets: Vec<usize> = targets.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let (rate, steps): (f64, usize) = (rate.parse()?, steps.parse()?);
    let kept: usize = rest.first().map_or(Ok(usize::MAX), |kept| kept.parse())?;
    let classes = targets.iter().max().map_or(0, |most| most + 1);
    let mut trained = Trained::new(model, what, classes)?;

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
    fs::write(format!("{out}.values"), bytes(&trained.values()))?;
    let mut losses = Vec::new();
    for step in 0..steps {
        let start = Instant::now();
        let (loss, gradients) = trained.step(batch, &targets, rate, kept)?;
        println!("{}", start.elapsed().as_secs_f64());
        if step == 0 {
            fs::write(format!("{out}.gradients"), bytes(&gradients))?;
        }
        losses.push(loss);
    }
    let result = serde_json::json!({ "tensors": trained.tensors(), "losses": losses });
    fs::write(format!("{out}.json"), result.to_string())?;
    Ok(())
}
