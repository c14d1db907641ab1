//! All blocks forward and backward.

use std::mem::swap;

use super::block::{Depth, Scratch, Trace, Tuned};
use super::tuning::Tuning;
use crate::transformer::block::{Stack, Wanted, Workspace, write_prompts};
use crate::transformer::module::Module;
use crate::transformer::strips::Strips;

/// Memory of a step, which steps reuse.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    /// Before: the embedded tokens, with rows for prompts at the end of each sequence. After: the output.
    pub x: Strips,
    /// The row after the last of each sequence.
    pub ends: Vec<usize>,
    traces: Vec<Trace>,
    scratch: Scratch,
    /// The first block whose trace is kept.
    kept: usize,
}

impl Pass {
    /// A pass on embedded tokens.
    #[cfg(test)]
    pub fn of(x: Strips, ends: Vec<usize>) -> Pass {
        Pass { x, ends, ..Pass::default() }
    }

    /// Runs the blocks on `x`. Afterwards `x` and `ends` have the first tokens of each sequence, or all. The traces of at most `most` blocks are
    /// kept; those of the others are computed again.
    pub fn forward(&mut self, stack: &Stack, tuning: Tuning<'_>, first: Option<usize>, most: usize) {
        self.kept = stack.blocks.len().saturating_sub(most).max(first_trained(tuning));
        self.run(stack, tuning, first, true);
    }

    /// The same without what the gradients need.
    pub fn predict(&mut self, stack: &Stack, tuning: Tuning<'_>, first: Option<usize>) {
        self.run(stack, tuning, first, false);
    }

    fn run(&mut self, stack: &Stack, tuning: Tuning<'_>, first: Option<usize>, traced: bool) {
        let blocks = stack.blocks.len();
        let start = first_trained(tuning).min(blocks);
        self.frozen(stack, start);
        self.write_tokens(stack, tuning);
        self.traces.resize_with(blocks, Trace::default);
        for index in start..blocks {
            if let Some(prompts) = &tuning.prompts[index] {
                write_prompts(&prompts.pack(tuning.values, stack.shape().d), &mut self.x, &self.ends);
            }
            let first = first.filter(|_| index + 1 == blocks);
            let trace = &mut self.traces[if traced { index } else { 0 }];
            Tuned { stack, tuning, index }.forward(&mut self.x, &mut self.ends, first, trace, &mut self.scratch);
            if traced && index < self.kept {
                trace.forget();
            }
        }
    }

    fn write_tokens(&mut self, stack: &Stack, tuning: Tuning<'_>) {
        if let Some(tokens) = tuning.inserts.and_then(|inserts| inserts.tokens) {
            tokens.write(tuning.values, stack.shape().d, &mut self.x, &self.ends);
        }
    }

    /// Blocks below the first that is trained.
    fn frozen(&mut self, stack: &Stack, count: usize) {
        if count == 0 {
            return;
        }
        let mut work = Workspace::default();
        swap(&mut work.x, &mut self.x);
        swap(&mut work.ends, &mut self.ends);
        stack.forward(&mut work, Wanted { layers: &[count - 1], first: None }, |_, _| {});
        swap(&mut work.x, &mut self.x);
        swap(&mut work.ends, &mut self.ends);
    }

    /// From the gradient of the output to those of everything that is trained, which are added to `out`. If `input` is set, `dx` becomes the
    /// gradient of the embedded tokens.
    pub fn backward(&mut self, stack: &Stack, tuning: Tuning<'_>, dx: &mut Strips, input: bool, out: &mut [f32]) {
        let start = if input { 0 } else { first_trained(tuning) };
        for index in (start..stack.blocks.len()).rev() {
            let tuned = Tuned { stack, tuning, index };
            if index < self.kept {
                tuned.again(&mut self.traces[index], &mut self.scratch);
            }
            let depth = depth(tuning, index, input);
            let trace = &self.traces[index];
            tuned.backward(dx, depth, trace, &mut self.scratch, out);
            if let Some(prompts) = &tuning.prompts[index] {
                prompts.gradients(dx, stack.shape().d, &trace.ends, out);
            }
            if index < self.kept {
                self.traces[index].forget();
            }
        }
        let tokens = tuning.inserts.and_then(|inserts| inserts.tokens);
        if let (Some(tokens), Some(trace)) = (tokens, self.traces.first()) {
            tokens.gradients(dx, stack.shape().d, &trace.ends, out);
        }
    }
}

/// The first block in which something is trained.
fn first_trained(tuning: Tuning<'_>) -> usize {
    if has_tokens(tuning) {
        return 0;
    }
    let trained =
        |i: usize| !matches!(tuning.modules[i], Module::None) || tuning.prompts[i].is_some() || prefixed(tuning, i);
    (0..tuning.modules.len()).find(|i| trained(*i)).unwrap_or(tuning.modules.len())
}

fn has_tokens(tuning: Tuning<'_>) -> bool {
    tuning.inserts.is_some_and(|inserts| inserts.tokens.is_some())
}

fn prefixed(tuning: Tuning<'_>, index: usize) -> bool {
    tuning.inserts.is_some_and(|inserts| inserts.prefix(index).is_some())
}

/// How far back the gradients of a block are needed.
fn depth(tuning: Tuning<'_>, index: usize, input: bool) -> Depth {
    if input || has_tokens(tuning) || tuning.prompts[index].is_some() || first_trained(tuning) < index {
        return Depth::Input;
    }
    let prefixes = if prefixed(tuning, index) { Depth::Attention } else { Depth::Nothing };
    let module = match tuning.modules[index] {
        Module::None => Depth::Nothing,
        Module::Adapter(_) => Depth::Adapter,
        Module::Lora(_) => Depth::Attention,
        Module::Ssf(_) => Depth::Norm,
    };
    module.max(prefixes)
}
