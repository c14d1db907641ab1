//! A transformer block, with normalisation before attention and MLP (ViT) or after them (BERT):
//!
//! ```text
//! before:  x += attention(norm1(x));     x += mlp(norm2(x))
//! after:   x = norm1(x + attention(x));  x = norm2(x + mlp(x))
//! ```
//!
//! LayerScale is part of the weights: the outputs of the last linear layer of each half are scaled when a model is read.

use std::mem;
use std::sync::{Mutex, PoisonError};

use super::attention::{Packed, attend};
use super::linear::{Layout, Linear, Then};
use super::math::Activation;
use super::norm::Norm;
use super::strips::{Strip, Strips};

/// Where a block normalises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Before attention and MLP.
    Before,
    /// After the residual connections.
    After,
}

/// One block. Clones share the weights.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub norm1: Norm,
    pub qkv: Linear,
    pub project: Linear,
    pub norm2: Norm,
    pub expand: Linear,
    pub contract: Linear,
    /// Features inside the MLP.
    pub inner: usize,
    /// A trained bottleneck beside the MLP.
    pub adapter: Option<Bottleneck>,
    /// Trained tokens that replace the last rows of each sequence before the block.
    pub prompts: Vec<Vec<Strip>>,
}

/// The layers of an adapter. The factor of what it adds is part of the second.
#[derive(Debug, Clone)]
pub(crate) struct Bottleneck {
    pub down: Linear,
    pub up: Linear,
}

/// The sizes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Features of a token.
    pub d: usize,
    pub heads: usize,
    /// Features of a head.
    pub size: usize,
    /// Features inside the MLP.
    pub inner: usize,
}

impl Shape {
    /// Where the features of queries, of keys, or of values are.
    pub fn heads_layout(self) -> Layout {
        Layout::heads(self.heads, self.size)
    }

    /// Where the features of keys and values are.
    pub fn kv_layout(self) -> Layout {
        Layout::heads(2 * self.heads, self.size)
    }

    /// Where the features of all three are.
    pub fn qkv_layout(self) -> Layout {
        Layout::heads(3 * self.heads, self.size)
    }

    /// Strips of queries, of keys, or of values.
    pub fn strips(self) -> usize {
        self.heads_layout().strips()
    }

    /// The factor that is part of the weights of queries.
    pub fn query_scale(self) -> f32 {
        1.0 / (self.size as f32).sqrt()
    }
}

/// Blocks of one kind, one after the other. Clones share the weights.
#[derive(Debug, Clone)]
pub(crate) struct Stack {
    pub blocks: Vec<Block>,
    pub order: Order,
    pub heads: usize,
    /// Features of a head.
    pub size: usize,
    pub activation: Activation,
}

impl Stack {
    /// The sizes of its blocks.
    pub fn shape(&self) -> Shape {
        let inner = self.blocks.first().map_or(0, |block| block.inner);
        Shape { d: self.heads * self.size, heads: self.heads, size: self.size, inner }
    }

    /// Rows at the end of each sequence that belong to prompts.
    pub fn room(&self) -> usize {
        self.blocks.iter().map(|block| block.prompts.len()).max().unwrap_or(0)
    }
}

/// Memory of a forward pass, which passes reuse.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    /// Features of all tokens between blocks.
    pub x: Strips,
    /// The row of x after the last of each sequence.
    pub ends: Vec<usize>,
    /// Normalised features, or what attention returns.
    pub y: Strips,
    /// Queries, keys and values, or the MLP's inner features.
    wide: Strips,
    /// The tokens that remain, where not all do: features, then queries; and their ends.
    few: [Strips; 2],
    few_ends: Vec<usize>,
}

/// Memory of passes that have ended, for those to come.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Vec<Workspace>>);

impl Spare {
    /// Runs a function with memory of its own.
    pub fn with<T>(&self, run: impl FnOnce(&mut Workspace) -> T) -> T {
        let spare = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut work = spare().pop().unwrap_or_default();
        let result = run(&mut work);
        spare().push(work);
        result
    }
}

/// A clone has none: memory is not shared.
impl Clone for Spare {
    fn clone(&self) -> Spare {
        Spare::default()
    }
}

/// Which layers are wanted, and which tokens of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub layers: &'a [usize],
    /// The first tokens of each sequence, or all.
    pub first: Option<usize>,
}

impl Stack {
    /// Runs the blocks on `work.x` up to the last wanted layer. Calls `each` after each block with its index.
    ///
    /// After the last block, `work.x` and `work.ends` have the wanted tokens alone. The others have no part in it but their keys and values: a ViT
    /// of 12 layers whose feature is the class token saves 7% of the whole.
    pub fn forward(&self, work: &mut Workspace, wanted: Wanted<'_>, mut each: impl FnMut(usize, &mut Workspace)) {
        let last = wanted.layers.iter().copied().max();
        for (i, block) in self.blocks.iter().enumerate().take_while(|(i, _)| Some(*i) <= last) {
            write_prompts(&block.prompts, &mut work.x, &work.ends);
            self.attend(block, work, wanted.first.filter(|_| Some(i) == last));
            self.transform(block, work);
            each(i, work);
        }
    }

    /// The first half of a block. Keeps the first tokens of each sequence, or all.
    fn attend(&self, block: &Block, work: &mut Workspace, first: Option<usize>) {
        let Workspace { x, ends, y, wide, few: [few, queries], few_ends } = work;
        let (heads, size) = (self.heads, self.size);
        let strips = Layout::heads(heads, size).strips();
        let input = match self.order {
            Order::Before => {
                block.norm1.forward(x, y);
                &*y
            }
            Order::After => &*x,
        };
        match first {
            None => {
                block.qkv.forward(input, wide, Then::Store);
                let from = |strip: usize| Packed { matrix: wide, strip, ends };
                attend(from(0), from(strips), heads, size, y);
            }
            Some(count) => {
                block.qkv.outputs(strips..3 * strips).forward(input, wide, Then::Store);
                input.first_of_each(ends, count, few, few_ends);
                block.qkv.outputs(0..strips).forward(few, queries, Then::Store);
                let packed = |matrix, ends| Packed { matrix, strip: 0, ends };
                attend(packed(queries, few_ends), packed(wide, ends), heads, size, y);
                x.first_of_each(ends, count, few, few_ends);
                mem::swap(x, few);
                mem::swap(ends, few_ends);
            }
        }
        block.project.forward(y, x, Then::Add);
        if self.order == Order::After {
            block.norm1.in_place(x);
        }
    }

    /// The second half of a block.
    fn transform(&self, block: &Block, work: &mut Workspace) {
        let Workspace { x, y, wide, .. } = work;
        let input = match self.order {
            Order::Before => {
                block.norm2.forward(x, y);
                &*y
            }
            Order::After => &*x,
        };
        block.expand.forward(input, wide, Then::Activate(self.activation));
        let adapter = block.adapter.as_ref().inspect(|adapter| {
            adapter.down.forward(x, y, Then::Activate(Activation::Relu));
        });
        block.contract.forward(wide, x, Then::Add);
        if let Some(adapter) = adapter {
            adapter.up.forward(y, x, Then::Add);
        }
        if self.order == Order::After {
            block.norm2.in_place(x);
        }
    }
}

/// Writes tokens over the last rows of each sequence.
pub(crate) fn write_prompts(tokens: &[Vec<Strip>], x: &mut Strips, ends: &[usize]) {
    if tokens.is_empty() {
        return;
    }
    for (s, strip) in x.strips_mut().enumerate() {
        for end in ends {
            let rows = strip[end - tokens.len()..*end].iter_mut();
            rows.zip(tokens).for_each(|(x, token)| *x = token[s]);
        }
    }
}

/// The weights of a block as files have them: matrices of outputs x inputs, row by row.
#[derive(Debug, Default)]
pub(crate) struct Raw {
    pub norm1: (Vec<f32>, Vec<f32>),
    /// Queries, keys and values below each other.
    pub qkv: (Vec<f32>, Vec<f32>),
    pub project: (Vec<f32>, Vec<f32>),
    /// LayerScale of the attention.
    pub scale1: Option<Vec<f32>>,
    pub norm2: (Vec<f32>, Vec<f32>),
    pub expand: (Vec<f32>, Vec<f32>),
    pub contract: (Vec<f32>, Vec<f32>),
    /// LayerScale of the MLP.
    pub scale2: Option<Vec<f32>>,
}

impl Raw {
    /// Brings the weights into the layout of the kernels.
    pub fn pack(mut self, heads: usize, size: usize, eps: f32) -> Block {
        let d = heads * size;
        // Queries are scaled here rather than in each pass.
        let inner = self.expand.1.len();
        let scale = Shape { d, heads, size, inner }.query_scale();
        self.qkv.0[..d * d].iter_mut().for_each(|w| *w *= scale);
        self.qkv.1[..d].iter_mut().for_each(|b| *b *= scale);
        scale_rows(&mut self.project, self.scale1.as_deref());
        scale_rows(&mut self.contract, self.scale2.as_deref());
        let (plain, wide) = (Layout::plain(d), Layout::plain(inner));
        let linear = |(w, b): &(Vec<f32>, Vec<f32>), outputs, inputs| Linear::new(w, Some(b), outputs, inputs);
        Block {
            norm1: Norm::new(&self.norm1.0, &self.norm1.1, eps),
            qkv: linear(&self.qkv, Layout::heads(3 * heads, size), plain),
            project: linear(&self.project, plain, Layout::heads(heads, size)),
            norm2: Norm::new(&self.norm2.0, &self.norm2.1, eps),
            expand: linear(&self.expand, wide, plain),
            contract: linear(&self.contract, plain, wide),
            inner,
            adapter: None,
            prompts: Vec::new(),
        }
    }
}

fn scale_rows((weights, bias): &mut (Vec<f32>, Vec<f32>), scales: Option<&[f32]>) {
    let Some(scales) = scales else { return };
    let inputs = weights.len() / bias.len();
    for ((row, bias), scale) in weights.chunks_exact_mut(inputs).zip(bias).zip(scales) {
        row.iter_mut().for_each(|w| *w *= scale);
        *bias *= scale;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::transformer::testing::{close, matrix, random, rows};
    use crate::transformer::{attention, norm};

    /// Random weights of a block of `heads * size` features and `inner` features in the MLP.
    pub(crate) fn random_block(d: usize, inner: usize, scaled: bool, seed: u64) -> Raw {
        let linear = |n: usize, k: usize, seed| {
            (random(n * k, seed).iter().map(|w| w / (k as f32).sqrt()).collect(), random(n, seed + 50))
        };
        let norm = |seed| (random(d, seed).iter().map(|g| 1.0 + 0.5 * g).collect(), random(d, seed + 50));
        Raw {
            norm1: norm(seed + 1),
            qkv: linear(3 * d, d, seed + 2),
            project: linear(d, d, seed + 3),
            scale1: scaled.then(|| random(d, seed + 4)),
            norm2: norm(seed + 5),
            expand: linear(inner, d, seed + 6),
            contract: linear(d, inner, seed + 7),
            scale2: scaled.then(|| random(d, seed + 8)),
        }
    }

    /// `x W' + b`, each output times a scale, in f64.
    pub(crate) fn linear(x: &[f64], (w, b): &(Vec<f32>, Vec<f32>), scale: Option<&Vec<f32>>) -> Vec<f64> {
        let k = w.len() / b.len();
        let mut y = Vec::new();
        for x in x.chunks(k) {
            for (i, (w, b)) in w.chunks(k).zip(b).enumerate() {
                let sum = x.iter().zip(w).map(|(x, w)| x * f64::from(*w)).sum::<f64>() + f64::from(*b);
                y.push(sum * scale.map_or(1.0, |scale| f64::from(scale[i])));
            }
        }
        y
    }

    /// A block in f64 on one sequence.
    pub(crate) fn naive(
        x: &[f64],
        raw: &Raw,
        (heads, size): (usize, usize),
        order: Order,
        eps: f64,
        activation: &dyn Fn(f64) -> f64,
    ) -> Vec<f64> {
        let norm = |x: &[f64], (gain, bias): &(Vec<f32>, Vec<f32>)| norm::tests::naive(x, gain, bias, eps);
        let attend = |x: &[f64]| {
            let mixed = attention::tests::naive(&linear(x, &raw.qkv, None), heads, size, 1.0 / (size as f64).sqrt());
            linear(&mixed, &raw.project, raw.scale1.as_ref())
        };
        let mlp = |x: &[f64]| {
            let inner: Vec<f64> = linear(x, &raw.expand, None).into_iter().map(activation).collect();
            linear(&inner, &raw.contract, raw.scale2.as_ref())
        };
        let add = |x: &[f64], y: Vec<f64>| x.iter().zip(y).map(|(x, y)| x + y).collect::<Vec<f64>>();
        match order {
            Order::Before => {
                let x = add(x, attend(&norm(x, &raw.norm1)));
                add(&x, mlp(&norm(&x, &raw.norm2)))
            }
            Order::After => {
                let x = norm(&add(x, attend(x)), &raw.norm1);
                norm(&add(&x, mlp(&x)), &raw.norm2)
            }
        }
    }

    /// GELU in f64.
    pub(crate) fn gelu(x: f64) -> f64 {
        0.5 * x * (1.0 + libm::erf(x / 2f64.sqrt()))
    }

    #[test]
    fn a_block_of_either_order_is_that_of_f64() {
        for (heads, size, inner) in [(2, 32, 100), (3, 20, 64), (1, 64, 256)] {
            for (order, scaled) in [(Order::Before, false), (Order::Before, true), (Order::After, false)] {
                let d = heads * size;
                let stack = Stack {
                    blocks: vec![random_block(d, inner, scaled, 10).pack(heads, size, 1e-6)],
                    order,
                    heads,
                    size,
                    activation: Activation::Gelu,
                };
                let x = random(30 * d, 1);
                let input = matrix(&x, d);
                let forward = |first: Option<usize>| {
                    let mut work = Workspace { ends: vec![12, 30], ..Workspace::default() };
                    input.first_of_each(&[30], 30, &mut work.x, &mut Vec::new());
                    stack.forward(&mut work, Wanted { layers: &[0], first }, |_, _| {});
                    work
                };
                let work = forward(None);
                let x: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
                let raw = random_block(d, inner, scaled, 10);
                let run = |x: &[f64]| naive(x, &raw, (heads, size), order, 1e-6, &gelu);
                let expected = [run(&x[..12 * d]), run(&x[12 * d..])].concat();
                close(&rows(&work.x, d), &expected, 3e-6);
                // The first tokens alone are the same to the last bit.
                let (all, few) = (rows(&work.x, d), forward(Some(2)));
                assert_eq!(few.ends, [2, 4]);
                assert_eq!(rows(&few.x, d), [&all[..2 * d], &all[12 * d..14 * d]].concat());
            }
        }
    }
}
