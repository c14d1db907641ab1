//! What training and encoding cost on this machine, measured on made-up inputs.

use std::time::Instant;

use super::probe::{Probe, ProbeInput};
use crate::encoder::{Batch, Encoder, Image};
use crate::error::Error;
use crate::transformer::{ModuleKind, Transformer};

/// Inputs of a measurement.
pub(crate) const BATCH: usize = 8;
/// The words of a made-up text.
pub(crate) const TEXT: &str = "please tell me how much money is left in my account at the end of this month";

/// Seconds per sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Of a training step.
    pub train: f64,
    /// Of encoding.
    pub encode: f64,
}

impl Pace {
    /// Makes two training steps and encodes two batches; the first of each is not counted.
    ///
    /// # Errors
    /// If the encoder does.
    pub fn measure(transformer: &Transformer, module: ModuleKind) -> Result<Pace, Error> {
        let targets: Vec<usize> = (0..BATCH).collect();
        let mut probe = Probe::new(transformer.clone(), module, BATCH, 0.0);
        let (train, encode) = match transformer {
            Transformer::Image(encoder) => {
                let (height, width) = encoder.preprocess().size();
                let planes = vec![0.5; BATCH * 3 * height * width];
                let image = Image { width, height, pixels: vec![128; 3 * height * width] };
                let images = vec![image; BATCH];
                let train = second(|| probe.train(ProbeInput::Planes(&planes), &targets, 0.01, usize::MAX))?;
                (train, second(|| transformer.encode(Batch::Images(&images), &[transformer.layers() - 1]))?)
            }
            Transformer::Text(_) => {
                let texts = [TEXT; BATCH];
                let train = second(|| probe.train(ProbeInput::Texts(&texts), &targets, 0.01, usize::MAX))?;
                (train, second(|| transformer.encode(Batch::Texts(&texts), &[transformer.layers() - 1]))?)
            }
        };
        Ok(Pace { train: train / BATCH as f64, encode: encode / BATCH as f64 })
    }
}

/// The seconds of the second call of two.
pub(crate) fn second<T>(mut call: impl FnMut() -> Result<T, Error>) -> Result<f64, Error> {
    call()?;
    let started = Instant::now();
    call()?;
    Ok(started.elapsed().as_secs_f64())
}
