//! The kinds of modules, with the sizes that the literature uses.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What adapts a frozen transformer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "module", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ModuleKind {
    /// AdaptFormer: a bottleneck beside the MLP of each block.
    Adapter {
        /// Features of the bottleneck.
        size: usize,
        /// Factor of what it adds.
        scale: f32,
        /// Share of the bottleneck's features that training drops.
        dropout: f32,
    },
    /// LoRA: changes of low rank of the weights of queries and values.
    Lora {
        /// The rank.
        rank: usize,
        /// Factor of the change.
        scale: f32,
    },
    /// Visual prompt tuning with new tokens in front of each block.
    VptDeep {
        /// Tokens per block.
        tokens: usize,
    },
    /// Visual prompt tuning with tokens in front of the first block.
    VptShallow {
        /// Tokens.
        tokens: usize,
    },
    /// A scale and a shift after each operation.
    Ssf,
}

impl ModuleKind {
    /// All kinds, with their usual sizes.
    pub const ALL: &[ModuleKind] = &[
        ModuleKind::Adapter { size: 64, scale: 0.1, dropout: 0.1 },
        ModuleKind::Lora { rank: 8, scale: 1.0 },
        ModuleKind::VptDeep { tokens: 5 },
        ModuleKind::VptShallow { tokens: 5 },
        ModuleKind::Ssf,
    ];

    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            ModuleKind::Adapter { .. } => "adapter",
            ModuleKind::Lora { .. } => "lora",
            ModuleKind::VptDeep { .. } => "vpt-deep",
            ModuleKind::VptShallow { .. } => "vpt-shallow",
            ModuleKind::Ssf => "ssf",
        }
    }

    /// The kind of this name, with its usual sizes.
    pub fn from_name(name: &str) -> Option<ModuleKind> {
        ModuleKind::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// The same kind with another size: features of the bottleneck, rank, or tokens. None for SSF, which has no size.
    pub fn sized(self, size: usize) -> Option<ModuleKind> {
        Some(match self {
            ModuleKind::Adapter { scale, dropout, .. } => ModuleKind::Adapter { size, scale, dropout },
            ModuleKind::Lora { scale, .. } => ModuleKind::Lora { rank: size, scale },
            ModuleKind::VptDeep { .. } => ModuleKind::VptDeep { tokens: size },
            ModuleKind::VptShallow { .. } => ModuleKind::VptShallow { tokens: size },
            ModuleKind::Ssf => return None,
        })
    }

    /// Its size, if it has one.
    pub fn size(self) -> Option<usize> {
        match self {
            ModuleKind::Adapter { size, .. } => Some(size),
            ModuleKind::Lora { rank, .. } => Some(rank),
            ModuleKind::VptDeep { tokens } | ModuleKind::VptShallow { tokens } => Some(tokens),
            ModuleKind::Ssf => None,
        }
    }

    /// Whether sizes and factors can be used with d features.
    pub(crate) fn fits(self, d: usize) -> bool {
        let finite = match self {
            ModuleKind::Adapter { scale, dropout, .. } => scale.is_finite() && (0.0..1.0).contains(&dropout),
            ModuleKind::Lora { scale, .. } => scale.is_finite(),
            _ => true,
        };
        finite && self.size().is_none_or(|size| (1..=d.max(1024)).contains(&size))
    }
}

impl fmt::Display for ModuleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size() {
            Some(size) => write!(f, "{} of size {size}", self.name()),
            None => f.write_str(self.name()),
        }
    }
}
