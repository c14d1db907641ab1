//! A whole network forward and backward.

use super::pass::Pass;
use super::tuning::{Dropout, Tuning};
use crate::transformer::module::Modules;
use crate::transformer::network::{Embedded, Given, Network};

/// Memory of a step, which steps reuse.
#[derive(Debug, Default)]
pub(crate) struct Tuner {
    pass: Pass,
    embedded: Embedded,
    /// The network with what is trained outside its blocks, as it was in the last forward pass.
    shell: Option<Network>,
    dropout: Option<Dropout>,
}

impl Tuner {
    /// Features of inputs, with what the gradients need. The traces of at most `most` blocks are kept; those of the others are computed again.
    pub fn forward(
        &mut self,
        network: &Network,
        modules: &Modules,
        given: Given<'_>,
        dropout: Option<Dropout>,
        most: usize,
    ) -> Vec<f32> {
        let shell = network.shell(modules);
        let Pass { x, ends, .. } = &mut self.pass;
        shell.embed(given, modules.room(), x, ends, &mut self.embedded);
        self.dropout = dropout;
        self.pass.forward(network.stack(), tuning(modules, dropout), network.first(), most);
        let features = shell.pooled(&self.pass.x, &self.pass.ends, modules.room());
        self.shell = Some(shell);
        features
    }

    /// Adds the gradients of everything that is trained to `out`, given those of the features of the last forward pass.
    pub fn backward(&mut self, network: &Network, modules: &Modules, slopes: &[f32], out: &mut [f32]) {
        let Some(shell) = self.shell.take() else { return };
        let (d, values) = (network.stack().shape().d, modules.parameters.values.as_slice());
        let last = modules.norm.as_ref().map(|affine| (affine, values));
        let tokens = (&self.pass.x, self.pass.ends.as_slice(), modules.room());
        let mut dx = shell.pooling().backward(tokens, d, slopes, last, out);
        let input = modules.embed.is_some();
        self.pass.backward(network.stack(), tuning(modules, self.dropout), &mut dx, input, out);
        shell.embed_backward(modules, &self.embedded, &mut dx, out);
    }
}

fn tuning(modules: &Modules, dropout: Option<Dropout>) -> Tuning<'_> {
    let Modules { blocks, prompts, parameters, .. } = modules;
    Tuning { modules: blocks, prompts, values: &parameters.values, inserts: None, dropout }
}
