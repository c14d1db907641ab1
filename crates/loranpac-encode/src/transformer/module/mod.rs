//! Small modules that adapt a frozen transformer: a file for each kind.
//!
//! A module changes a block ([`Module::apply`]), in training as in prediction, and knows the gradients of its own numbers. Those of a
//! block's weights are never computed.

mod adapter;
mod kind;
mod lora;
mod modules;
mod parameters;
mod prompts;
mod ssf;

pub(crate) use adapter::Adapter;
pub use kind::ModuleKind;
pub(crate) use lora::Lora;
pub(crate) use modules::Modules;
pub use parameters::{Parameters, Random, Start, Tensor};
pub(crate) use prompts::Prompts;
pub(crate) use ssf::{Affine, Ssf};

use super::block::{Block, Shape};

/// What is trained inside a block.
#[derive(Debug, Clone)]
pub(crate) enum Module {
    /// Nothing.
    None,
    /// A bottleneck beside the MLP.
    Adapter(Adapter),
    /// Low-rank changes of queries and values.
    Lora(Lora),
    /// A scale and a shift after each operation.
    Ssf(Ssf),
}

impl Module {
    /// The block with the module in it. What the module does not change is shared.
    pub fn apply(&self, values: &[f32], block: &Block, shape: Shape) -> Block {
        match self {
            Module::None => block.clone(),
            Module::Adapter(adapter) => Block { adapter: Some(adapter.pack(values, shape.d)), ..block.clone() },
            Module::Lora(lora) => lora.apply(values, block, shape),
            Module::Ssf(ssf) => ssf.apply(values, block, shape),
        }
    }
}
