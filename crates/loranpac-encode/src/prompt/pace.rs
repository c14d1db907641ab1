//! What training and scoring cost on this machine, measured on made-up inputs.

use super::prompted::PromptedNetwork;
use super::settings::PromptSettings;
use crate::adapt::Pace;
use crate::adapt::pace::{BATCH, TEXT, second};
use crate::encoder::Encoder;
use crate::error::Error;
use crate::transformer::{Given, Inserter, Random, Transformer};

impl PromptSettings {
    /// Makes two training steps of a first task and scores two batches; the first of each is not counted.
    ///
    /// # Errors
    /// If a setting cannot be used.
    pub fn pace(&self, transformer: &Transformer) -> Result<Pace, Error> {
        self.check(1)?;
        match transformer {
            Transformer::Image(encoder) => {
                let (height, width) = encoder.preprocess().size();
                self.measure(transformer, Given::Planes(&vec![0.5; BATCH * 3 * height * width]))
            }
            Transformer::Text(encoder) => {
                let sequences = encoder.sequences(&[TEXT; BATCH])?;
                self.measure(transformer, Given::Texts(&sequences.iter().collect::<Vec<_>>()))
            }
        }
    }

    fn measure(&self, transformer: &Transformer, given: Given<'_>) -> Result<Pace, Error> {
        let mut random = Random::new(1, 0);
        let mut model = PromptedNetwork::new(transformer.network(), self, 1, &mut random);
        model.pool.begin(&mut model.weights.pool.values, 0, &mut random);
        model.grow(BATCH, &mut random);
        let (mut memory, mut inserter) = (model.memory(), Inserter::default());
        let queries: Vec<f32> = (0..BATCH * transformer.dim()).map(|_| random.normal() as f32).collect();
        let (targets, allowed): (Vec<usize>, _) = ((0..BATCH).collect(), [true; BATCH]);
        let train = second(|| {
            let (_, gradients) = model.gradients(given, &queries, (&targets, &allowed), 0, usize::MAX);
            model.step(&gradients, &mut memory, self.rate);
            Ok(())
        })?;
        let encode = second(|| Ok(model.logits(&mut inserter, given, &queries, 0)))?;
        Ok(Pace { train: train / BATCH as f64, encode: encode / BATCH as f64 })
    }
}
