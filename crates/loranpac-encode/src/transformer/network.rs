//! Transformers of both kinds, as training sees them: embed, blocks, pool; and the gradients of the first and the last.

use super::bert::{self, Bert};
use super::block::Stack;
use super::linear::Layout;
use super::module::{ModuleKind, Modules, Random};
use super::norm::Norm;
use super::pooling::Pooling;
use super::strips::{Strip, Strips};
use super::vit::{self, Head, Vit};
use crate::tokenize::Sequence;

/// A transformer without its preprocessing. Clones share the weights.
#[expect(clippy::large_enum_variant, reason = "only a few exist")]
#[derive(Debug, Clone)]
pub(crate) enum Network {
    Vit(Vit),
    Bert(Bert),
}

/// Inputs of a network.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Given<'a> {
    /// The red, green and blue planes of images.
    Planes(&'a [f32]),
    /// The tokens of texts.
    Texts(&'a [&'a Sequence]),
}

/// What the gradients of an embedding need of it.
#[derive(Debug, Default)]
pub(crate) struct Embedded {
    /// Pixels of patches.
    pixels: Strips,
    /// Embedded patches.
    patches: Strips,
    /// Tokens before their normalisation.
    before: Strips,
}

impl Network {
    /// Its blocks.
    pub fn stack(&self) -> &Stack {
        match self {
            Network::Vit(vit) => &vit.stack,
            Network::Bert(bert) => &bert.stack,
        }
    }

    /// Features per input.
    pub fn dim(&self) -> usize {
        match self {
            Network::Vit(vit) => vit.dim(),
            Network::Bert(bert) => bert.d,
        }
    }

    /// Which tokens of each sequence have a part in its feature: the first ones, or all.
    pub fn first(&self) -> Option<usize> {
        match self {
            Network::Vit(vit) => vit.first(),
            Network::Bert(bert) => bert.first(),
        }
    }

    /// Tokens of an input: of images as the network has it, of texts those of the longest.
    pub fn tokens(&self, longest: Option<usize>) -> usize {
        match self {
            Network::Vit(vit) => vit.tokens(),
            Network::Bert(_) => longest.unwrap_or(0),
        }
    }

    /// Bytes of a row of a block's kept trace, and of one that is computed again.
    pub fn bytes_per_row(&self) -> (usize, usize) {
        let shape = self.stack().shape();
        let (d, heads) = (shape.d.next_multiple_of(32), 32 * shape.strips());
        (4 * (6 * d + 3 * heads + shape.inner.next_multiple_of(32)), 4 * d)
    }

    /// Modules for it. Those outside the blocks belong to vision transformers.
    pub fn modules(&self, kind: ModuleKind, random: &mut Random) -> Modules {
        let stack = self.stack();
        Modules::new(kind, (stack.shape(), stack.blocks.len()), matches!(self, Network::Vit(_)), random)
    }

    /// The network with the modules in it.
    pub fn adapted(&self, modules: &Modules) -> Network {
        let stack = modules.apply(self.stack());
        match self.shell(modules) {
            Network::Vit(vit) => Network::Vit(Vit { stack, ..vit }),
            Network::Bert(bert) => Network::Bert(Bert { stack, ..bert }),
        }
    }

    /// The network with the modules that are outside its blocks.
    pub fn shell(&self, modules: &Modules) -> Network {
        let (Network::Vit(vit), Some(embed), Some(norm)) = (self, &modules.embed, &modules.norm) else {
            return self.clone();
        };
        let values = &modules.parameters.values;
        let layout = Layout::plain(vit.d);
        let (scale, shift) = embed.get(values);
        let mut vit = vit.clone();
        vit.embed = vit.embed.scaled(&layout.spread(scale), &layout.spread(shift));
        let Head { norm: last, fc_norm, .. } = &mut vit.head;
        if let Some(last) = last.as_mut().or(fc_norm.as_mut()) {
            *last = norm.norm(values, last);
        }
        Network::Vit(vit)
    }

    /// Tokens of inputs into `x`: a sequence for each, with `room` more rows at its end.
    pub fn embed(&self, given: Given<'_>, room: usize, x: &mut Strips, ends: &mut Vec<usize>, kept: &mut Embedded) {
        match (self, given) {
            (Network::Vit(vit), Given::Planes(planes)) => {
                vit.patches(planes, room, &mut kept.pixels, &mut kept.patches, ends);
                kept.patches.copy_to(x);
                vit.place(room, x);
                if let Some(norm) = &vit.norm_pre {
                    x.copy_to(&mut kept.before);
                    norm.in_place(x);
                }
            }
            (Network::Bert(bert), Given::Texts(texts)) => bert.embed(texts, room, x, ends),
            _ => unreachable!("inputs of the other kind"),
        }
    }

    /// Adds the gradients of what is trained in the embedding, given those of the tokens.
    pub fn embed_backward(&self, modules: &Modules, kept: &Embedded, dx: &mut Strips, out: &mut [f32]) {
        let (Network::Vit(vit), Some(affine)) = (self, &modules.embed) else { return };
        if let Some(norm) = &vit.norm_pre {
            norm.backward(&kept.before, dx);
        }
        let (tokens, prefix) = (vit.tokens() + modules.room(), vit.prefix.len());
        for image in dx.strips_mut().flat_map(|strip| strip.chunks_mut(tokens)) {
            image[..prefix].fill(Strip::ZERO);
            image[vit.tokens()..].fill(Strip::ZERO);
        }
        affine.gradients(&modules.parameters.values, &kept.patches, dx, out);
    }

    /// The features of sequences from their tokens, with `room` rows of prompts at the end of each, unless only the first tokens are left.
    pub fn pooled(&self, x: &Strips, ends: &[usize], room: usize) -> Vec<f32> {
        match self {
            Network::Vit(vit) => vit.pooled(x, ends, room),
            Network::Bert(bert) => {
                let mut features = vec![0.0; ends.len() * bert.d];
                for (i, feature) in features.chunks_mut(bert.d).enumerate() {
                    let start = if i == 0 { 0 } else { ends[i - 1] };
                    bert.pooled(x, start..ends[i], room, feature);
                }
                features
            }
        }
    }

    /// How features are made of tokens.
    pub fn pooling(&self) -> Pooling<'_> {
        match self {
            Network::Vit(vit) => {
                let Head { norm, pool, fc_norm, projection } = &vit.head;
                let skipped = if *pool == vit::Pool::Patches { vit.prefix.len() } else { 0 };
                let first = vit.first();
                Pooling {
                    norm: norm.as_ref(),
                    first,
                    last: None,
                    skipped,
                    fc_norm: fc_norm.as_ref(),
                    projection: projection.as_deref(),
                    unit: false,
                }
            }
            Network::Bert(bert) => {
                let first = (bert.pool == bert::Pool::First).then_some(1);
                let none: Option<&Norm> = None;
                Pooling { norm: none, first, last: None, skipped: 0, fc_norm: none, projection: None, unit: bert.unit }
            }
        }
    }

    /// Features of inputs after the last block.
    pub fn features(&self, given: Given<'_>) -> Vec<f32> {
        match (self, given) {
            (Network::Vit(vit), Given::Planes(planes)) => {
                let n = planes.len() / (3 * vit.side * vit.side);
                vit.features(planes, n, &[vit.layers() - 1])
            }
            (Network::Bert(bert), Given::Texts(texts)) => bert.features(texts, &[bert.stack.blocks.len() - 1]),
            _ => unreachable!("inputs of the other kind"),
        }
    }
}
