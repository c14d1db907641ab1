//! How libraries name the tensors of a model, and the reading of blocks.

use super::block::{Order, Raw, Stack};
use super::math::Activation;
use super::weights::Weights;
use crate::error::Error;

/// The names of the tensors of blocks.
#[derive(Debug)]
pub(crate) struct Scheme {
    pub family: Family,
    /// In front of the number of a block.
    blocks: &'static str,
    pub order: Order,
    norm1: &'static str,
    qkv: Qkv,
    project: &'static str,
    norm2: &'static str,
    expand: &'static str,
    contract: &'static str,
    /// LayerScale of attention and MLP, which a model may lack.
    scales: Option<[&'static str; 2]>,
}

/// A kind of model, by the library that names its tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// timm's `VisionTransformer`.
    Timm,
    /// `ViTModel` of transformers.
    Vit,
    /// `Dinov2Model` and `Dinov2WithRegistersModel` of transformers.
    Dino,
    /// The vision tower of `CLIPModel` of transformers.
    Clip,
    /// `BertModel`, `XLMRobertaModel` and alike of transformers.
    Bert,
}

#[derive(Debug)]
enum Qkv {
    Together(&'static str),
    Apart([&'static str; 3]),
}

const HF_VIT_QKV: Qkv =
    Qkv::Apart(["attention.attention.query", "attention.attention.key", "attention.attention.value"]);

/// All schemes.
const SCHEMES: [Scheme; 5] = [
    Scheme {
        family: Family::Timm,
        blocks: "blocks.",
        order: Order::Before,
        norm1: "norm1",
        qkv: Qkv::Together("attn.qkv"),
        project: "attn.proj",
        norm2: "norm2",
        expand: "mlp.fc1",
        contract: "mlp.fc2",
        scales: Some(["ls1.gamma", "ls2.gamma"]),
    },
    Scheme {
        family: Family::Bert,
        blocks: "encoder.layer.",
        order: Order::After,
        norm1: "attention.output.LayerNorm",
        qkv: Qkv::Apart(["attention.self.query", "attention.self.key", "attention.self.value"]),
        project: "attention.output.dense",
        norm2: "output.LayerNorm",
        expand: "intermediate.dense",
        contract: "output.dense",
        scales: None,
    },
    Scheme {
        family: Family::Vit,
        blocks: "encoder.layer.",
        order: Order::Before,
        norm1: "layernorm_before",
        qkv: HF_VIT_QKV,
        project: "attention.output.dense",
        norm2: "layernorm_after",
        expand: "intermediate.dense",
        contract: "output.dense",
        scales: None,
    },
    Scheme {
        family: Family::Dino,
        blocks: "encoder.layer.",
        order: Order::Before,
        norm1: "norm1",
        qkv: HF_VIT_QKV,
        project: "attention.output.dense",
        norm2: "norm2",
        expand: "mlp.fc1",
        contract: "mlp.fc2",
        scales: Some(["layer_scale1.lambda1", "layer_scale2.lambda1"]),
    },
    Scheme {
        family: Family::Clip,
        blocks: "encoder.layers.",
        order: Order::Before,
        norm1: "layer_norm1",
        qkv: Qkv::Apart(["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]),
        project: "self_attn.out_proj",
        norm2: "layer_norm2",
        expand: "mlp.fc1",
        contract: "mlp.fc2",
        scales: None,
    },
];

impl Scheme {
    /// The scheme of a file, and what stands in front of all names (such as `bert.`).
    pub fn recognise(weights: &Weights) -> Result<(&'static Scheme, String), Error> {
        let names = weights.names();
        for scheme in &SCHEMES {
            let (Qkv::Together(first) | Qkv::Apart([first, ..])) = scheme.qkv;
            let marks = [scheme.norm1, first].map(|name| format!("{}0.{name}.weight", scheme.blocks));
            // The text tower of a CLIP model has the same names behind another prefix.
            let prefix = names
                .iter()
                .filter_map(|name| name.strip_suffix(&marks[0]))
                .find(|prefix| !prefix.contains("text_model") && weights.has(&format!("{prefix}{}", marks[1])));
            if let Some(prefix) = prefix {
                return Ok((scheme, prefix.to_owned()));
            }
        }
        let name = names.first().cloned().unwrap_or_default();
        Err(Error::Architecture { path: weights.path().to_owned(), name })
    }

    /// Features of a token.
    pub fn dim(&self, weights: &Weights, prefix: &str) -> Result<usize, Error> {
        let name = format!("{prefix}{}0.{}.weight", self.blocks, self.norm1);
        let shape = weights.shape(&name)?;
        match shape {
            [d] if *d > 0 => Ok(*d),
            _ => {
                let found = shape.to_vec();
                Err(Error::TensorShape { path: weights.path().to_owned(), name, expected: vec![1], found })
            }
        }
    }

    /// Reads all blocks. `heads` divides their features.
    pub fn blocks(
        &self,
        weights: &Weights,
        prefix: &str,
        heads: usize,
        eps: f32,
        activation: Activation,
    ) -> Result<Stack, Error> {
        let d = self.dim(weights, prefix)?;
        let size = d / heads;
        let mut blocks = Vec::new();
        loop {
            let block = format!("{prefix}{}{}.", self.blocks, blocks.len());
            if !weights.has(&format!("{block}{}.weight", self.norm1)) {
                break;
            }
            blocks.push(self.block(weights, &block, d)?.pack(heads, size, eps));
        }
        Ok(Stack { blocks, order: self.order, heads, size, activation })
    }

    fn block(&self, weights: &Weights, block: &str, d: usize) -> Result<Raw, Error> {
        let name = |part: &str| format!("{block}{part}");
        let inner = match weights.shape(&name(&format!("{}.weight", self.expand)))? {
            [inner, _] if *inner > 0 => *inner,
            _ => 4 * d,
        };
        let qkv = match &self.qkv {
            Qkv::Together(part) => linear(weights, &name(part), 3 * d, d)?,
            Qkv::Apart(parts) => {
                let [q, k, v] = parts.map(|part| linear(weights, &name(part), d, d));
                let (q, k, v) = (q?, k?, v?);
                ([q.0, k.0, v.0].concat(), [q.1, k.1, v.1].concat())
            }
        };
        let [scale1, scale2] = match self.scales {
            Some(names) if weights.has(&name(names[0])) => {
                let [first, second] = names.map(|part| weights.tensor(&name(part), &[d]));
                [Some(first?), Some(second?)]
            }
            _ => [None, None],
        };
        Ok(Raw {
            norm1: norm(weights, &name(self.norm1), d)?,
            qkv,
            project: linear(weights, &name(self.project), d, d)?,
            scale1,
            norm2: norm(weights, &name(self.norm2), d)?,
            expand: linear(weights, &name(self.expand), inner, d)?,
            contract: linear(weights, &name(self.contract), d, inner)?,
            scale2,
        })
    }
}

/// Gain and bias of a normalisation.
pub(crate) fn norm(weights: &Weights, name: &str, d: usize) -> Result<(Vec<f32>, Vec<f32>), Error> {
    Ok((weights.tensor(&format!("{name}.weight"), &[d])?, weights.tensor(&format!("{name}.bias"), &[d])?))
}

/// Weights and bias of a linear layer. One without bias has zeros.
fn linear(weights: &Weights, name: &str, outputs: usize, inputs: usize) -> Result<(Vec<f32>, Vec<f32>), Error> {
    let matrix = weights.tensor(&format!("{name}.weight"), &[outputs, inputs])?;
    let bias = format!("{name}.bias");
    let bias = if weights.has(&bias) { weights.tensor(&bias, &[outputs])? } else { vec![0.0; outputs] };
    Ok((matrix, bias))
}
