//! Prompts and the classifier that is trained with them: the loss of a batch, its gradients, and logits.

use super::compose::{Sizes, Stage};
use super::pool::Pool;
use super::settings::PromptSettings;
use crate::adapt::{Head, HeadKind, Optimiser, cross_entropy};
use crate::transformer::{Given, Inserter, Network, Parameters, Random};

/// What is trained. A clone is a copy of it.
#[derive(Debug, Clone)]
pub(super) struct PromptWeights {
    /// Prompts, keys and what else a pool has.
    pub pool: Parameters,
    /// The classifier: a row of weights for each class, and a bias for each.
    pub head: Parameters,
}

/// Gradients of the weights.
#[derive(Debug)]
pub(super) struct Gradients {
    pub pool: Vec<f32>,
    pub head: Vec<f32>,
}

/// What Adam remembers.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    pub pool: Vec<f32>,
    pub head: Vec<f32>,
    pub steps: u64,
}

/// A frozen network with trained prompts.
pub(super) struct PromptedNetwork {
    pub network: Network,
    pub pool: Pool,
    pub weights: PromptWeights,
    head: Option<Head>,
    inserter: Inserter,
}

impl PromptedNetwork {
    /// New prompts, and a classifier without classes.
    pub fn new(network: Network, settings: &PromptSettings, tasks: usize, random: &mut Random) -> PromptedNetwork {
        let (shape, blocks) = (network.stack().shape(), network.stack().blocks.len());
        let sizes = Sizes { d: shape.d, dim: network.dim(), blocks, tasks };
        let mut weights = PromptWeights { pool: Parameters::default(), head: Parameters::default() };
        let pool = Pool::add(&mut weights.pool, settings, sizes, random);
        PromptedNetwork { network, pool, weights, head: None, inserter: Inserter::default() }
    }

    /// Number of classes of the classifier.
    pub fn classes(&self) -> usize {
        self.head.as_ref().map_or(0, Head::classes)
    }

    /// Adds classes to the classifier, up to a number.
    pub fn grow(&mut self, classes: usize, random: &mut Random) {
        let (dim, known) = (self.network.dim(), self.classes());
        if classes <= known {
            return;
        }
        let mut grown = Parameters::default();
        let head = Head::add(&mut grown, (HeadKind::Linear, 1.0), dim, classes, random);
        let (weights, biases) = self.weights.head.values.split_at(known * dim);
        grown.values[..known * dim].copy_from_slice(weights);
        grown.values[classes * dim..][..known].copy_from_slice(biases);
        self.weights.head = grown;
        self.head = Some(head);
    }

    /// Replaces the weights by others, whose classifier has a number of classes.
    pub fn restore(&mut self, weights: PromptWeights, classes: usize) {
        let (mut like, random) = (Parameters::default(), &mut Random::new(0, 0));
        self.head =
            (classes > 0).then(|| Head::add(&mut like, (HeadKind::Linear, 1.0), self.network.dim(), classes, random));
        like.values = weights.head.values;
        self.weights = PromptWeights { pool: weights.pool, head: like };
    }

    /// The mean loss of training samples of a task, and its gradients. Classes that are not `allowed` have no part in it. The traces of at most
    /// `most` blocks are kept.
    pub fn gradients(
        &mut self,
        given: Given<'_>,
        queries: &[f32],
        (targets, allowed): (&[usize], &[bool]),
        task: usize,
        most: usize,
    ) -> (f64, Gradients) {
        let PromptedNetwork { network, pool, weights, head, inserter } = self;
        let values = &weights.pool.values;
        let mut found = Gradients { pool: vec![0.0; values.len()], head: vec![0.0; weights.head.values.len()] };
        let Some(head) = head else { return (0.0, found) };
        let composed = pool.compose(values, queries, Stage { task, training: true });
        let rows = (&composed.inserts, &composed.rows[..]);
        let features = inserter.forward(network, given, rows, pool.pooled(), Some(most));
        let logits = head.forward(&weights.head.values, &features);
        let (loss, slopes) = cross_entropy(&logits, targets, head.classes(), Some(allowed));
        let slopes = head.backward(&weights.head.values, &features, &slopes, &mut found.head);
        let mut of_rows = vec![0.0; composed.rows.len()];
        inserter.backward(network, rows, pool.pooled(), &slopes, &mut of_rows);
        let more = pool.gradients((values, queries), &composed, &of_rows, task, &mut found.pool);
        (loss + more, found)
    }

    /// The logits of inputs after a task, a row of `classes` numbers for each.
    pub fn logits(&self, inserter: &mut Inserter, given: Given<'_>, queries: &[f32], task: usize) -> Vec<f32> {
        let Some(head) = &self.head else { return Vec::new() };
        let composed = self.pool.compose(&self.weights.pool.values, queries, Stage { task, training: false });
        let rows = (&composed.inserts, &composed.rows[..]);
        let features = inserter.forward(&self.network, given, rows, self.pool.pooled(), None);
        head.forward(&self.weights.head.values, &features)
    }

    /// Adam's memory before the first step.
    pub fn memory(&self) -> Memory {
        let zeros = |parameters: &Parameters| vec![0.0; parameters.values.len() * Optimiser::ADAM.memory()];
        Memory { pool: zeros(&self.weights.pool), head: zeros(&self.weights.head), steps: 0 }
    }

    /// A step of Adam.
    pub fn step(&mut self, gradients: &Gradients, memory: &mut Memory, rate: f64) {
        memory.steps += 1;
        let PromptWeights { pool, head } = &mut self.weights;
        Optimiser::ADAM.step(&mut pool.values, &gradients.pool, &mut memory.pool, rate, memory.steps);
        Optimiser::ADAM.step(&mut head.values, &gradients.head, &mut memory.head, rate, memory.steps);
    }

    /// Whether all weights are finite.
    pub fn is_finite(&self) -> bool {
        let PromptWeights { pool, head } = &self.weights;
        pool.values.iter().chain(&head.values).all(|x| x.is_finite())
    }
}
