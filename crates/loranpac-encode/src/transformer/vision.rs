//! Reading vision transformers from files of timm and transformers.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::block::Spare;
use super::config::{self, Config};
use super::linear::{Layout, Linear};
use super::math::Activation;
use super::norm::Norm;
use super::positions::resample;
use super::scheme::{Family, Scheme, norm};
use super::strips::Strip;
use super::vit::{Head, Pool, Vit};
use super::weights::Weights;
use crate::error::Error;

/// Most tokens of an image, so that no setting asks for unlimited memory.
const MOST_TOKENS: usize = 20_000;

/// Tensors that have no part in features.
const IGNORED: &[&str] = &[
    "head.",
    "head_dist.",
    "classifier.",
    "pooler.",
    "mask_token",
    "position_ids",
    "text_model.",
    "text_projection.",
    "logit_scale",
];

/// Names of the tensors around the blocks.
struct Names {
    patch: &'static str,
    class: &'static str,
    /// Of the other tokens in front of the patches, those that a file has.
    others: [&'static str; 2],
    positions: &'static str,
    norm_pre: &'static str,
    norm: &'static str,
}

impl Vit {
    /// Reads a model from a folder with `model.safetensors` and `config.json`, or from a safetensors file alone. `side` is the number of
    /// pixels of a side of its images; without it, the configuration's, or that of the position embeddings.
    ///
    /// # Errors
    /// If a file cannot be read, or a tensor or a setting does not fit a supported architecture.
    pub fn open(path: &Path, side: Option<usize>) -> Result<Vit, Error> {
        let weights = Weights::open(path)?;
        let config = Config::of_model(path)?.within("vision_config");
        let (scheme, prefix) = Scheme::recognise(&weights)?;
        let Some(names) = names(scheme.family) else {
            return Err(config.refuse("this is a text encoder, not a vision transformer".to_owned()));
        };
        let name = |part: &str| format!("{prefix}{part}");
        let d = scheme.dim(&weights, &prefix)?;
        let patch_name = name(&format!("{}.weight", names.patch));
        let patch = match weights.shape(&patch_name)? {
            [_, _, patch, _] if *patch > 0 => *patch,
            found => {
                let (expected, found) = (vec![d, 3, 16, 16], found.to_vec());
                return Err(Error::TensorShape { path: weights.path().to_owned(), name: patch_name, expected, found });
            }
        };
        let has_pre = weights.has(&name(&format!("{}.weight", names.norm_pre)));
        let eps = config.eps(default_eps(scheme.family, has_pre))?;
        config.check_size("hidden_size", d)?;
        config.check_size("patch_size", patch)?;
        let heads = config.heads(d)?;
        let activation = activation(&config, scheme.family)?;
        let stack = scheme.blocks(&weights, &prefix, heads, eps, activation)?;
        config.check_size("num_hidden_layers", stack.blocks.len())?;

        let kernel = weights.tensor(&patch_name, &[d, 3, patch, patch])?;
        let bias = name(&format!("{}.bias", names.patch));
        let bias = weights.has(&bias).then(|| weights.tensor(&bias, &[d])).transpose()?;
        let embed = Linear::new(&kernel, bias.as_deref(), Layout::plain(d), Layout::plain(3 * patch * patch));

        let mut prefix_tokens = tokens(&weights, &name(names.class), d)?;
        let classes = 1 + usize::from(weights.has(&name("dist_token")));
        for other in names.others {
            if weights.has(&name(other)) {
                prefix_tokens.extend(tokens(&weights, &name(other), d)?);
            }
        }
        let positions = tokens(&weights, &name(names.positions), d)?;
        let (embedded, from) = grid(&positions, prefix_tokens.len(), classes)
            .ok_or_else(|| shape_of_positions(&weights, name(names.positions), d))?;
        let side = match side {
            Some(side) => side,
            None => configured_side(&config)?.unwrap_or(from * patch),
        };
        let to = side / patch;
        if side % patch != 0 || to == 0 {
            return Err(config.refuse(format!("images of {side} pixels do not consist of patches of {patch}")));
        }
        if to.saturating_mul(to).saturating_add(prefix_tokens.len()) > MOST_TOKENS {
            return Err(config.refuse(format!("images of {side} pixels have more than {MOST_TOKENS} tokens")));
        }
        for (token, position) in prefix_tokens.iter_mut().zip(&positions[..embedded]) {
            token.iter_mut().zip(position).for_each(|(x, position)| *x += position);
        }
        let mut patches = positions[embedded..].concat();
        if from != to {
            // timm and DINOv2 with registers smooth, the others do not.
            let registers = weights.has(&name("embeddings.register_tokens"));
            patches = resample(&patches, d, from, to, scheme.family == Family::Timm || registers);
        }
        let norm_of = |part: &str| -> Result<Option<Norm>, Error> {
            if !weights.has(&name(&format!("{part}.weight"))) {
                return Ok(None);
            }
            norm(&weights, &name(part), d).map(|(gain, bias)| Some(Norm::new(&gain, &bias, eps)))
        };
        let (final_norm, fc_norm) = (norm_of(names.norm)?, norm_of("fc_norm")?);
        if final_norm.is_none() && fc_norm.is_none() {
            return Err(Error::TensorMissing {
                path: weights.path().to_owned(),
                name: name(&format!("{}.weight", names.norm)),
            });
        }
        let pool = match config.text(&["global_pool"]).or(config.text(&["model_args", "global_pool"])) {
            Some("avg") => Pool::Patches,
            None if fc_norm.is_some() => Pool::Patches,
            None | Some("token" | "") => Pool::First(classes),
            Some(other) => return Err(config.refuse(format!("global_pool is {other}; supported are token and avg"))),
        };
        let projection = match weights.shape("visual_projection.weight") {
            Ok([features, _]) if *features > 0 => Some(weights.tensor("visual_projection.weight", &[*features, d])?),
            _ => None,
        };
        let norm_pre = norm_of(names.norm_pre)?;
        weights.finish("vision transformer", IGNORED)?;

        let described = format!("vit 1 {heads} {eps:e} {activation:?} {side} {pool:?}");
        let digest = Sha256::new().chain_update(weights.digest()?).chain_update(&described).finalize();
        Ok(Vit {
            name: config.text(&["architecture"]).map_or_else(|| config::name(path), str::to_owned),
            digest: digest.into(),
            d,
            patch,
            side,
            embed,
            prefix: prefix_tokens.iter().map(|token| Strip::pad(token)).collect(),
            positions: patches.chunks(d).map(Strip::pad).collect(),
            norm_pre,
            stack,
            head: Head { norm: final_norm, pool, fc_norm, projection },
            spare: Spare::default(),
        })
    }
}

fn names(family: Family) -> Option<Names> {
    let hf = Names {
        patch: "embeddings.patch_embeddings.projection",
        class: "embeddings.cls_token",
        others: ["embeddings.distillation_token", "embeddings.register_tokens"],
        positions: "embeddings.position_embeddings",
        norm_pre: "no pre-norm",
        norm: "layernorm",
    };
    match family {
        Family::Bert => None,
        Family::Vit | Family::Dino => Some(hf),
        Family::Timm => Some(Names {
            patch: "patch_embed.proj",
            class: "cls_token",
            others: ["dist_token", "reg_token"],
            positions: "pos_embed",
            norm_pre: "norm_pre",
            norm: "norm",
        }),
        Family::Clip => Some(Names {
            patch: "embeddings.patch_embedding",
            class: "embeddings.class_embedding",
            others: ["", ""],
            positions: "embeddings.position_embedding.weight",
            norm_pre: "pre_layrnorm",
            norm: "post_layernorm",
        }),
    }
}

/// What the libraries use if the configuration has none.
fn default_eps(family: Family, has_pre: bool) -> f32 {
    match family {
        Family::Timm if !has_pre => 1e-6,
        Family::Dino => 1e-6,
        Family::Vit | Family::Bert => 1e-12,
        Family::Timm | Family::Clip => 1e-5,
    }
}

fn activation(config: &Config, family: Family) -> Result<Activation, Error> {
    let quick = config.text(&["architecture"]).is_some_and(|name| name.contains("quickgelu"));
    let default = if quick || family == Family::Clip { Activation::QuickGelu } else { Activation::Gelu };
    let key: &[&str] = if family == Family::Timm { &["model_args", "act_layer"] } else { &["hidden_act"] };
    config.activation(key, default)
}

/// The image size of `config.json`.
fn configured_side(config: &Config) -> Result<Option<usize>, Error> {
    let timm =
        config.get(&["pretrained_cfg", "input_size"]).and_then(|size| size.get(1)).and_then(|side| side.as_u64());
    match timm.and_then(|side| usize::try_from(side).ok()) {
        Some(side) => Ok(Some(side)),
        None => config.integer(&["image_size"]),
    }
}

/// The rows of a tensor whose last axis has d numbers.
fn tokens(weights: &Weights, name: &str, d: usize) -> Result<Vec<Vec<f32>>, Error> {
    let shape = weights.shape(name)?;
    if shape.last() != Some(&d) || shape.iter().product::<usize>() == 0 {
        return Err(shape_of_positions(weights, name.to_owned(), d));
    }
    Ok(weights.read(name)?.chunks(d).map(<[f32]>::to_vec).collect())
}

fn shape_of_positions(weights: &Weights, name: String, d: usize) -> Error {
    let found = weights.shape(&name).unwrap_or_default().to_vec();
    Error::TensorShape { path: weights.path().to_owned(), name, expected: vec![1, 197, d], found }
}

/// How many tokens of the prefix have positions, and the side of the patches' square grid.
fn grid(positions: &[Vec<f32>], prefix: usize, classes: usize) -> Option<(usize, usize)> {
    [0, classes, prefix].into_iter().find_map(|embedded| {
        let patches = positions.len().checked_sub(embedded)?;
        let side = patches.isqrt();
        (side > 0 && side * side == patches).then_some((embedded, side))
    })
}
