//! What a pass trains.

use super::insert::Inserts;
use crate::transformer::module::{Module, Prompts, Random};
use crate::transformer::strips::Strips;

/// What is trained, and its numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning<'a> {
    /// Of each block.
    pub modules: &'a [Module],
    /// Of each block.
    pub prompts: &'a [Option<Prompts>],
    pub values: &'a [f32],
    /// Rows that each sequence has for itself.
    pub inserts: Option<&'a Inserts>,
    /// Of the adapters' inner features.
    pub dropout: Option<Dropout>,
}

/// Which numbers are dropped. The same in every pass of a step, so that blocks can be computed again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dropout {
    pub rate: f32,
    pub seed: u64,
    pub step: u64,
}

impl Dropout {
    /// What the others are multiplied with.
    pub fn factor(self) -> f32 {
        1.0 / (1.0 - self.rate)
    }

    /// Drops numbers of a block's features.
    pub fn apply(self, block: usize, x: &mut Strips) {
        let limit = (f64::from(self.rate) * f64::from(u32::MAX)) as u32;
        let mut random = Random::new(self.seed, (self.step << 16) + block as u64);
        for strip in x.strips_mut() {
            for x in strip.iter_mut().flat_map(|strip| &mut strip.0) {
                *x *= if random.bits() < limit { 0.0 } else { self.factor() };
            }
        }
    }
}
