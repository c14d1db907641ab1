//! One block forward, with what the gradients need, and backward.

use std::mem::take;

use crate::transformer::attention::{Packed, attend};
use crate::transformer::block::{Block, Order, Stack};
use crate::transformer::gradient::{Each, Transposed, attend_backward};
use crate::transformer::linear::{Linear, Then};
use crate::transformer::math::Activation;
use crate::transformer::module::{Affine, Module};
use crate::transformer::strips::Strips;

use super::insert::{Inserts, Prefix};
use super::tuning::Tuning;

/// What a block's gradients need of its forward pass. Normalised features and activations are computed again.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// The input, and the row after the last of each sequence.
    pub x: Strips,
    pub ends: Vec<usize>,
    q: Strips,
    kv: Strips,
    /// Keys and values with those of prefixes, and the row after the last of each sequence.
    joined: Strips,
    joined_ends: Vec<usize>,
    /// The sequences of queries: all tokens, or the first ones of each sequence.
    few_ends: Vec<usize>,
    first: Option<usize>,
    /// Attention and residual, before their normalisation (blocks that normalise after).
    sum1: Strips,
    middle: Strips,
    inner: Strips,
    /// Inner features of the adapter after ReLU and dropout.
    bottleneck: Strips,
    sum2: Strips,
    /// Outputs of the last layers of both halves, for SSF.
    project: Strips,
    contract: Strips,
}

impl Trace {
    /// Queries, and keys and values with or without prefixes.
    fn packed(&self, joined: bool) -> (Packed<'_>, Packed<'_>) {
        let packed = |matrix, ends| Packed { matrix, strip: 0, ends };
        let keys = if joined { packed(&self.joined, &self.joined_ends) } else { packed(&self.kv, &self.ends) };
        (packed(&self.q, &self.few_ends), keys)
    }

    /// Frees everything but the input.
    pub fn forget(&mut self) {
        let (x, ends, first) = (take(&mut self.x), take(&mut self.ends), self.first);
        *self = Trace { x, ends, first, ..Trace::default() };
    }
}

/// Memory that blocks share.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    y: Strips,
    wide: Strips,
    few: Strips,
    dq: Strips,
    dkv: Strips,
    dz: Strips,
    transposed: Transposed,
}

/// How far back the gradients of a block are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    /// Nothing in it or below it is trained.
    Nothing,
    /// Up to what is added beside the MLP.
    Adapter,
    /// Up to queries, keys and values.
    Attention,
    /// Up to the output of the first normalisation.
    Norm,
    /// Up to its input.
    Input,
}

/// A block with its module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuned<'a> {
    pub stack: &'a Stack,
    pub tuning: Tuning<'a>,
    pub index: usize,
}

impl Tuned<'_> {
    fn module(&self) -> &Module {
        &self.tuning.modules[self.index]
    }

    /// What each sequence has in front of its keys and values.
    fn prefix(&self) -> Option<Prefix> {
        self.tuning.inserts.and_then(|inserts: &Inserts| inserts.prefix(self.index))
    }

    fn block(&self) -> Block {
        self.module().apply(self.tuning.values, &self.stack.blocks[self.index], self.stack.shape())
    }

    /// Computes the block's output from its input `x`. Keeps the first tokens of each sequence, or all.
    pub fn forward(
        &self,
        x: &mut Strips,
        ends: &mut Vec<usize>,
        first: Option<usize>,
        t: &mut Trace,
        work: &mut Scratch,
    ) {
        let block = self.block();
        self.begin(&block, x, ends, first, t, work);
        self.finish(&block, x, t, work);
    }

    /// Computes again what [`Trace::forget`] has freed. The output is not among it, which saves the last layer of the MLP, unless a
    /// normalisation or SSF needs what comes after it.
    pub fn again(&self, t: &mut Trace, work: &mut Scratch) {
        let block = self.block();
        let (mut x, mut ends, first) = (take(&mut t.x), t.ends.clone(), t.first);
        self.begin(&block, &mut x, &mut ends, first, t, work);
        if self.stack.order == Order::After || matches!(self.module(), Module::Ssf(_)) {
            self.finish(&block, &mut x, t, work);
        }
    }

    /// Everything up to the inner features of MLP and adapter. Adds the attention to `x`.
    fn begin(
        &self,
        block: &Block,
        x: &mut Strips,
        ends: &mut Vec<usize>,
        first: Option<usize>,
        t: &mut Trace,
        work: &mut Scratch,
    ) {
        let order = self.stack.order;
        let (heads, size, strips) = (self.stack.heads, self.stack.size, self.stack.shape().strips());
        let ssf = matches!(self.module(), Module::Ssf(_));
        Each::Copy.apply(x, &mut t.x);
        t.ends.clone_from(ends);
        t.first = first;
        if order == Order::Before {
            block.norm1.forward(&t.x, &mut work.y);
        }
        let input = if order == Order::Before { &work.y } else { &t.x };
        block.qkv.outputs(strips..3 * strips).forward(input, &mut t.kv, Then::Store);
        match first {
            None => {
                block.qkv.outputs(0..strips).forward(input, &mut t.q, Then::Store);
                t.few_ends.clone_from(ends);
            }
            Some(count) => {
                input.first_of_each(ends, count, &mut work.few, &mut t.few_ends);
                block.qkv.outputs(0..strips).forward(&work.few, &mut t.q, Then::Store);
                t.x.first_of_each(ends, count, x, &mut t.few_ends);
                ends.clone_from(&t.few_ends);
            }
        }
        if let Some(prefix) = self.prefix() {
            let shape = self.stack.shape();
            prefix.join(self.tuning.values, shape, (&t.kv, &t.ends), &mut t.joined, &mut t.joined_ends);
        }
        let (queries, keys) = t.packed(self.prefix().is_some());
        attend(queries, keys, heads, size, &mut work.y);
        add(&block.project, &work.y, x, ssf.then_some(&mut t.project));
        if order == Order::After {
            Each::Copy.apply(x, &mut t.sum1);
            block.norm1.in_place(x);
        }
        Each::Copy.apply(x, &mut t.middle);
        if order == Order::Before {
            block.norm2.forward(&t.middle, &mut work.y);
        }
        let input = if order == Order::Before { &work.y } else { &t.middle };
        block.expand.forward(input, &mut t.inner, Then::Store);
        if let Some(adapter) = &block.adapter {
            adapter.down.forward(&t.middle, &mut t.bottleneck, Then::Activate(Activation::Relu));
            if let Some(dropout) = self.tuning.dropout {
                dropout.apply(self.index, &mut t.bottleneck);
            }
        }
    }

    /// Adds MLP and adapter to `x`.
    fn finish(&self, block: &Block, x: &mut Strips, t: &mut Trace, work: &mut Scratch) {
        let ssf = matches!(self.module(), Module::Ssf(_));
        Each::Activate(self.stack.activation).apply(&t.inner, &mut work.wide);
        add(&block.contract, &work.wide, x, ssf.then_some(&mut t.contract));
        if let Some(adapter) = &block.adapter {
            adapter.up.forward(&t.bottleneck, x, Then::Add);
        }
        if self.stack.order == Order::After {
            Each::Copy.apply(x, &mut t.sum2);
            block.norm2.in_place(x);
        }
    }

    /// Replaces the gradient of the output by that of the input, as far as `depth` says, and adds those of the module to `out`.
    pub fn backward(&self, dx: &mut Strips, depth: Depth, t: &Trace, work: &mut Scratch, out: &mut [f32]) {
        let (block, order) = (self.block(), self.stack.order);
        let (shape, values) = (self.stack.shape(), self.tuning.values);
        let ssf = match self.module() {
            Module::Ssf(ssf) => Some(ssf),
            _ => None,
        };
        let Scratch { y, wide, few, dq, dkv, dz, transposed } = work;
        let affine = |affine: Option<&Affine>, y: &Strips, dy: &Strips, out: &mut [f32]| {
            affine.into_iter().for_each(|affine| affine.gradients(values, y, dy, out));
        };
        if order == Order::After {
            if let Some(ssf) = ssf {
                block.norm2.forward(&t.sum2, y);
                affine(Some(&ssf.norm2), y, dx, out);
            }
            block.norm2.backward(&t.sum2, dx);
        }
        // dx is the gradient of the sum of middle, MLP and adapter.
        if let (Some(bottleneck), Module::Adapter(adapter)) = (&block.adapter, self.module()) {
            transposed.backward(&bottleneck.up, dx, dz, Then::Store);
            Each::Positive(self.tuning.dropout.map_or(1.0, |dropout| dropout.factor())).apply(&t.bottleneck, dz);
            adapter.gradients(&t.middle, &t.bottleneck, dx, dz, shape.d, out);
        }
        if depth <= Depth::Adapter {
            return;
        }
        affine(ssf.map(|ssf| &ssf.contract), &t.contract, dx, out);
        transposed.backward(&block.contract, dx, wide, Then::Store);
        Each::Slope(self.stack.activation).apply(&t.inner, wide);
        affine(ssf.map(|ssf| &ssf.expand), &t.inner, wide, out);
        match order {
            Order::Before => {
                transposed.backward(&block.expand, wide, y, Then::Store);
                if let Some(ssf) = ssf {
                    block.norm2.forward(&t.middle, few);
                    affine(Some(&ssf.norm2), few, y, out);
                }
                block.norm2.backward(&t.middle, y);
                Each::Add.apply(y, dx);
            }
            Order::After => transposed.backward(&block.expand, wide, dx, Then::Add),
        }
        if let Some(bottleneck) = &block.adapter {
            transposed.backward(&bottleneck.down, dz, dx, Then::Add);
        }
        if order == Order::After {
            if let Some(ssf) = ssf {
                block.norm1.forward(&t.sum1, y);
                affine(Some(&ssf.norm1), y, dx, out);
            }
            block.norm1.backward(&t.sum1, dx);
        }
        // dx is the gradient of the sum of input and attention.
        affine(ssf.map(|ssf| &ssf.project), &t.project, dx, out);
        transposed.backward(&block.project, dx, y, Then::Store);
        let (queries, keys) = t.packed(self.prefix().is_some());
        match self.prefix() {
            None => attend_backward(queries, keys, (shape.heads, shape.size), y, dq, dkv),
            Some(prefix) => {
                attend_backward(queries, keys, (shape.heads, shape.size), y, dq, wide);
                prefix.split(shape, (wide, &t.ends), dkv, out);
            }
        }
        if let Some(ssf) = ssf {
            let scale = shape.query_scale();
            ssf.qkv.gradients_of(values, (0, shape.heads_layout(), scale), &t.q, dq, out);
            ssf.qkv.gradients_of(values, (shape.d, shape.kv_layout(), 1.0), &t.kv, dkv, out);
        }
        if let Module::Lora(lora) = self.module() {
            let input = if order == Order::Before {
                block.norm1.forward(&t.x, y);
                &*y
            } else {
                &t.x
            };
            let asking = match t.first {
                None => input,
                Some(count) => {
                    input.first_of_each(&t.ends, count, few, &mut Vec::new());
                    &*few
                }
            };
            dkv.strips_from(shape.strips(), dz);
            lora.gradients(values, shape, (input, asking), (dq, dz), out);
        }
        if depth <= Depth::Attention {
            return;
        }
        let strips = shape.strips();
        transposed.backward_of(&block.qkv, strips..3 * strips, dkv, y, Then::Store);
        if t.first.is_none() {
            transposed.backward_of(&block.qkv, 0..strips, dq, y, Then::Add);
        } else {
            transposed.backward_of(&block.qkv, 0..strips, dq, few, Then::Store);
            few.add_to_first_of_each(&t.few_ends, y, &t.ends);
        }
        if order == Order::Before {
            if let Some(ssf) = ssf {
                block.norm1.forward(&t.x, wide);
                affine(Some(&ssf.norm1), wide, y, out);
            }
            if depth <= Depth::Norm {
                return;
            }
            block.norm1.backward(&t.x, y);
        }
        dx.add_to_first_of_each(&t.few_ends, y, &t.ends);
        std::mem::swap(dx, y);
    }
}

/// `x += layer(y)`; the summand is kept where it is wanted.
fn add(layer: &Linear, y: &Strips, x: &mut Strips, kept: Option<&mut Strips>) {
    match kept {
        None => layer.forward(y, x, Then::Add),
        Some(kept) => {
            layer.forward(y, kept, Then::Store);
            Each::Add.apply(kept, x);
        }
    }
}
