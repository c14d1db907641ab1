//! All modules of a network, and their numbers.

use super::kind::ModuleKind;
use super::{Adapter, Affine, Lora, Module, Parameters, Prompts, Random, Ssf};
use crate::transformer::block::{Shape, Stack};

/// The modules of a network.
#[derive(Debug, Clone)]
pub(crate) struct Modules {
    /// Their numbers, and those of whatever else is trained with them.
    pub parameters: Parameters,
    /// Of each block.
    pub blocks: Vec<Module>,
    /// Of each block.
    pub prompts: Vec<Option<Prompts>>,
    /// After the embedding of patches.
    pub embed: Option<Affine>,
    /// After the last normalisation.
    pub norm: Option<Affine>,
}

impl Modules {
    /// Adds a module to each block; and where `outer` is set, what belongs to the embedding and the last normalisation.
    pub fn new(kind: ModuleKind, (shape, blocks): (Shape, usize), outer: bool, random: &mut Random) -> Modules {
        let mut parameters = Parameters::default();
        let to = &mut parameters;
        let (d, outer) = (shape.d, outer && kind == ModuleKind::Ssf);
        let (mut modules, mut prompts) = (Vec::new(), Vec::new());
        let embed = outer.then(|| Affine::add(to, "embed.ssf", d, random));
        for i in 0..blocks {
            let name = format!("blocks.{i}");
            modules.push(match kind {
                ModuleKind::Adapter { size, scale, .. } => {
                    Module::Adapter(Adapter::add(to, &name, d, size, scale, random))
                }
                ModuleKind::Lora { rank, scale } => Module::Lora(Lora::add(to, &name, d, rank, scale, random)),
                ModuleKind::Ssf => Module::Ssf(Ssf::add(to, &name, d, shape.inner, random)),
                ModuleKind::VptDeep { .. } | ModuleKind::VptShallow { .. } => Module::None,
            });
            prompts.push(match kind {
                ModuleKind::VptDeep { tokens } => Some(Prompts::add(to, &name, d, tokens, random)),
                ModuleKind::VptShallow { tokens } if i == 0 => Some(Prompts::add(to, &name, d, tokens, random)),
                _ => None,
            });
        }
        let norm = outer.then(|| Affine::add(to, "norm.ssf", d, random));
        Modules { parameters, blocks: modules, prompts, embed, norm }
    }

    /// Rows at the end of each sequence that belong to prompts.
    pub fn room(&self) -> usize {
        self.prompts.iter().flatten().map(|prompts| prompts.count).max().unwrap_or(0)
    }

    /// The blocks with the modules in them.
    pub fn apply(&self, stack: &Stack) -> Stack {
        let (shape, values) = (stack.shape(), &self.parameters.values);
        let parts = stack.blocks.iter().zip(&self.blocks).zip(&self.prompts);
        let blocks = parts.map(|((block, module), prompts)| {
            let mut block = module.apply(values, block, shape);
            block.prompts = prompts.as_ref().map(|prompts| prompts.pack(values, shape.d)).unwrap_or_default();
            block
        });
        Stack { blocks: blocks.collect(), ..stack.clone() }
    }
}
