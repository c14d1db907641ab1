//! A whole network with rows that each input has for itself, forward and backward.

use super::insert::Inserts;
use super::pass::Pass;
use super::tuning::Tuning;
use crate::transformer::module::{Module, Prompts};
use crate::transformer::network::{Embedded, Given, Network};
use crate::transformer::pooling::Pooling;

/// Memory of a step, which steps reuse.
#[derive(Debug, Default)]
pub(crate) struct Inserter {
    pass: Pass,
    embedded: Embedded,
    /// No module in any block.
    modules: Vec<Module>,
    prompts: Vec<Option<Prompts>>,
}

/// The tokens that features are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pooled {
    /// Those of the network's own features.
    Usual,
    /// The inserted ones: their mean, after the last normalisation.
    Inserted,
}

impl Inserter {
    /// Features of inputs, before they are brought to unit length, if the network does so. `values` has the inserted rows. With `most`, what the
    /// gradients need is kept: the traces of at most this many blocks, the others are computed again.
    pub fn forward(
        &mut self,
        network: &Network,
        given: Given<'_>,
        (inserts, values): (&Inserts, &[f32]),
        pooled: Pooled,
        most: Option<usize>,
    ) -> Vec<f32> {
        let (stack, room) = (network.stack(), inserts.room());
        self.modules.resize_with(stack.blocks.len(), || Module::None);
        self.prompts.resize_with(stack.blocks.len(), || None);
        let Inserter { pass, embedded, modules, prompts } = self;
        network.embed(given, room, &mut pass.x, &mut pass.ends, embedded);
        let tuning = Tuning { modules, prompts, values, inserts: Some(inserts), dropout: None };
        let first = network.first().filter(|_| pooled == Pooled::Usual);
        match most {
            Some(most) => pass.forward(stack, tuning, first, most),
            None => pass.predict(stack, tuning, first),
        }
        pooling(network, inserts, pooled).forward((&pass.x, &pass.ends, room), stack.shape().d)
    }

    /// Adds the gradients of the inserted rows to `out`, given those of the features of the last forward pass, which had the same arguments.
    pub fn backward(
        &mut self,
        network: &Network,
        (inserts, values): (&Inserts, &[f32]),
        pooled: Pooled,
        slopes: &[f32],
        out: &mut [f32],
    ) {
        let Inserter { pass, modules, prompts, .. } = self;
        let tuning = Tuning { modules, prompts, values, inserts: Some(inserts), dropout: None };
        let tokens = (&pass.x, pass.ends.as_slice(), inserts.room());
        let (d, none) = (network.stack().shape().d, &mut []);
        let mut dx = pooling(network, inserts, pooled).backward(tokens, d, slopes, None, none);
        pass.backward(network.stack(), tuning, &mut dx, false, out);
    }
}

fn pooling<'a>(network: &'a Network, inserts: &Inserts, pooled: Pooled) -> Pooling<'a> {
    let last = (pooled == Pooled::Inserted).then(|| inserts.room());
    Pooling { last, unit: false, ..network.pooling() }
}
