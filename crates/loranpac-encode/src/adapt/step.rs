//! One step: the loss of a batch, and the gradients of everything that is trained.

use super::head::{Head, HeadKind};
use super::loss::cross_entropy;
use crate::transformer::{Dropout, Given, ModuleKind, Modules, Network, Random, Tuner};

/// Modules of a network, and the classifier that is trained with them.
pub(crate) struct TunedNetwork {
    pub network: Network,
    pub modules: Modules,
    pub head: Head,
    /// How many numbers belong to modules; those of the classifier follow.
    pub own: usize,
    dropout: f32,
    tuner: Tuner,
}

impl TunedNetwork {
    /// New modules and a new classifier, with the scale of a cosine one.
    pub fn new(
        network: Network,
        kind: ModuleKind,
        head: (HeadKind, f64),
        classes: usize,
        random: &mut Random,
    ) -> TunedNetwork {
        let mut modules = network.modules(kind, random);
        let own = modules.parameters.values.len();
        let head = Head::add(&mut modules.parameters, head, network.dim(), classes, random);
        let dropout = match kind {
            ModuleKind::Adapter { dropout, .. } => dropout,
            _ => 0.0,
        };
        TunedNetwork { network, modules, head, own, dropout, tuner: Tuner::default() }
    }

    /// The mean loss of inputs, and its gradients. `dropout` is a seed and a number of the step. The traces of at most `most` blocks are kept.
    pub fn gradients(
        &mut self,
        given: Given<'_>,
        targets: &[usize],
        dropout: Option<(u64, u64)>,
        most: usize,
    ) -> (f64, Vec<f32>) {
        let TunedNetwork { network, modules, head, tuner, .. } = self;
        let dropout =
            dropout.filter(|_| self.dropout > 0.0).map(|(seed, step)| Dropout { rate: self.dropout, seed, step });
        let features = tuner.forward(network, modules, given, dropout, most);
        let values = &modules.parameters.values;
        let (loss, slopes) = cross_entropy(&head.forward(values, &features), targets, head.classes(), None);
        let mut out = vec![0.0; values.len()];
        let slopes = head.backward(values, &features, &slopes, &mut out);
        tuner.backward(network, modules, &slopes, &mut out);
        (loss, out)
    }
}
