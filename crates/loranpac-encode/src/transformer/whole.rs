//! Whole models, written by the test as files, against f64.

use std::fs;
use std::path::Path;

use super::block::tests::{gelu, naive, random_block};
use super::block::{Order, Raw};
use super::testing::{close, random};
use super::weights::tests::write;
use super::{TextEncoder, Vit, norm};
use crate::encoder::{Batch, Encoder, Image};
use crate::error::Error;

type Tensors = Vec<(String, Vec<usize>, Vec<f32>)>;

fn put(tensors: &mut Tensors, name: impl Into<String>, shape: &[usize], data: &[f32]) {
    tensors.push((name.into(), shape.to_vec(), data.to_vec()));
}

fn put_layer(tensors: &mut Tensors, name: String, (weight, bias): &(Vec<f32>, Vec<f32>)) {
    let inputs = weight.len() / bias.len();
    let shape = if weight.len() == bias.len() { vec![bias.len()] } else { vec![bias.len(), inputs] };
    put(tensors, format!("{name}.weight"), &shape, weight);
    put(tensors, format!("{name}.bias"), &[bias.len()], bias);
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|x| f64::from(*x)).collect()
}

/// A ViT: d features in 3 heads, 2 blocks, 3 x 3 patches of 2 x 2 pixels.
struct Sample {
    d: usize,
    blocks: Vec<Raw>,
    kernel: (Vec<f32>, Vec<f32>),
    class: Vec<f32>,
    registers: Vec<f32>,
    positions: Vec<f32>,
    norm: (Vec<f32>, Vec<f32>),
}

impl Sample {
    fn new(d: usize, scaled: bool, registers: usize) -> Sample {
        Sample {
            d,
            blocks: (0..2).map(|i| random_block(d, 40, scaled, 100 * i)).collect(),
            kernel: (random(d * 12, 1), random(d, 2)),
            class: random(d, 3),
            registers: random(registers * d, 4),
            positions: random(10 * d, 5),
            norm: (random(d, 6), random(d, 7)),
        }
    }

    /// The tokens of an image of 6 x 6 pixels, in f64.
    fn tokens(&self, planes: &[f32], bias: bool) -> Vec<f64> {
        let d = self.d;
        let mut tokens = wide(&self.class);
        tokens.iter_mut().zip(&self.positions).for_each(|(x, p)| *x += f64::from(*p));
        tokens.extend(wide(&self.registers));
        for patch in 0..9 {
            let (top, left) = (patch / 3 * 2, patch % 3 * 2);
            for feature in 0..d {
                let mut sum = f64::from(self.positions[(1 + patch) * d + feature]);
                sum += if bias { f64::from(self.kernel.1[feature]) } else { 0.0 };
                for (i, w) in self.kernel.0[feature * 12..][..12].iter().enumerate() {
                    let (plane, y, x) = (i / 4, top + i / 2 % 2, left + i % 2);
                    sum += f64::from(*w) * f64::from(planes[plane * 36 + y * 6 + x]);
                }
                tokens.push(sum);
            }
        }
        tokens
    }

    /// With the names of timm.
    fn timm(&self) -> Tensors {
        let (d, mut t) = (self.d, Tensors::new());
        put(&mut t, "cls_token", &[1, 1, d], &self.class);
        if !self.registers.is_empty() {
            put(&mut t, "reg_token", &[1, self.registers.len() / d, d], &self.registers);
        }
        put(&mut t, "pos_embed", &[1, 10, d], &self.positions);
        put(&mut t, "patch_embed.proj.weight", &[d, 3, 2, 2], &self.kernel.0);
        put(&mut t, "patch_embed.proj.bias", &[d], &self.kernel.1);
        for (i, raw) in self.blocks.iter().enumerate() {
            let layers = [
                ("norm1", &raw.norm1),
                ("attn.qkv", &raw.qkv),
                ("attn.proj", &raw.project),
                ("norm2", &raw.norm2),
                ("mlp.fc1", &raw.expand),
                ("mlp.fc2", &raw.contract),
            ];
            layers.into_iter().for_each(|(name, layer)| put_layer(&mut t, format!("blocks.{i}.{name}"), layer));
            for (name, scale) in [("ls1", &raw.scale1), ("ls2", &raw.scale2)] {
                scale.iter().for_each(|scale| put(&mut t, format!("blocks.{i}.{name}.gamma"), &[d], scale));
            }
        }
        put_layer(&mut t, "norm".into(), &self.norm);
        put(&mut t, "head.weight", &[5, d], &vec![0.0; 5 * d]);
        t
    }

    /// With the names of CLIP in transformers: no bias of patches, a norm before the blocks, a projection to 5.
    fn clip(&self, before: &(Vec<f32>, Vec<f32>), projection: &[f32]) -> Tensors {
        let (d, mut t) = (self.d, Tensors::new());
        let name = |part: &str| format!("vision_model.{part}");
        put(&mut t, name("embeddings.class_embedding"), &[d], &self.class);
        put(&mut t, name("embeddings.position_embedding.weight"), &[10, d], &self.positions);
        put(&mut t, name("embeddings.patch_embedding.weight"), &[d, 3, 2, 2], &self.kernel.0);
        put_layer(&mut t, name("pre_layrnorm"), before);
        for (i, raw) in self.blocks.iter().enumerate() {
            for (part, letter) in ["q", "k", "v"].into_iter().enumerate() {
                let weight = raw.qkv.0[part * d * d..][..d * d].to_vec();
                let layer = (weight, raw.qkv.1[part * d..][..d].to_vec());
                put_layer(&mut t, name(&format!("encoder.layers.{i}.self_attn.{letter}_proj")), &layer);
            }
            let layers = [
                ("layer_norm1", &raw.norm1),
                ("self_attn.out_proj", &raw.project),
                ("layer_norm2", &raw.norm2),
                ("mlp.fc1", &raw.expand),
                ("mlp.fc2", &raw.contract),
            ];
            for (part, layer) in layers {
                put_layer(&mut t, name(&format!("encoder.layers.{i}.{part}")), layer);
            }
        }
        put_layer(&mut t, name("post_layernorm"), &self.norm);
        put(&mut t, "visual_projection.weight", &[5, d], projection);
        put(&mut t, "text_model.encoder.layers.0.layer_norm1.weight", &[d], &self.class);
        put(&mut t, "logit_scale", &[], &[1.0]);
        t
    }

    /// The class token after each block and the last norm, in f64.
    fn features(&self, mut x: Vec<f64>, eps: f64, activation: &dyn Fn(f64) -> f64) -> Vec<Vec<f64>> {
        let mut features = Vec::new();
        for raw in &self.blocks {
            x = naive(&x, raw, (3, self.d / 3), Order::Before, eps, activation);
            features.push(norm::tests::naive(&x[..self.d], &self.norm.0, &self.norm.1, eps));
        }
        features
    }
}

fn folder(tensors: &Tensors, config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("model.safetensors"), tensors);
    fs::write(folder.path().join("config.json"), config).unwrap();
    folder
}

const TIMM: &str = r#"{"architecture": "vit_test", "global_pool": "token", "model_args": {"num_heads": 3}}"#;

#[test]
fn a_vit_of_timm_is_that_of_f64_at_each_layer() {
    for (scaled, registers) in [(false, 0), (true, 4)] {
        let sample = Sample::new(12, scaled, registers);
        let folder = folder(&sample.timm(), TIMM);
        let vit = Vit::open(folder.path(), None).unwrap();
        assert_eq!((vit.name(), vit.side(), vit.dim(), vit.layers()), ("vit_test", 6, 12, 2));
        let planes = random(2 * 108, 9);
        let mut expected = Vec::new();
        for planes in planes.chunks(108) {
            let features = sample.features(sample.tokens(planes, true), 1e-6, &gelu);
            expected.extend([features[1].clone(), features[0].clone()].concat());
        }
        let found = vit.features(&planes, 2, &[1, 0]);
        close(&found, &expected, 1e-5);
        // An image alone has the same features, to the last bit.
        assert_eq!(vit.features(&planes[108..], 1, &[1, 0]), found[24..]);
        assert!(vit.features(&[], 0, &[1]).is_empty());
    }
}

#[test]
fn clips_vision_tower_is_that_of_f64() {
    let sample = Sample::new(12, false, 0);
    let (before, projection) = ((random(12, 20), random(12, 21)), random(60, 22));
    let config = r#"{"vision_config": {"num_attention_heads": 3, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "image_size": 6}}"#;
    let folder = folder(&sample.clip(&before, &projection), config);
    let vit = Vit::open(folder.path(), None).unwrap();
    assert_eq!(vit.dim(), 5);
    let planes = random(108, 9);
    let x = norm::tests::naive(&sample.tokens(&planes, false), &before.0, &before.1, 1e-5);
    let feature = &sample.features(x, 1e-5, &|x| x / (1.0 + (-1.702 * x).exp()))[1];
    let dot = |row: &[f32]| row.iter().zip(feature).map(|(w, x)| f64::from(*w) * x).sum();
    let expected: Vec<f64> = projection.chunks(12).map(dot).collect();
    close(&vit.features(&planes, 1, &[1]), &expected, 1e-5);
}

#[test]
fn models_that_do_not_fit_are_refused_by_name() {
    let check = |change: &dyn Fn(&mut Tensors), config: &str, expected: &str| {
        let mut tensors = Sample::new(12, false, 0).timm();
        change(&mut tensors);
        let folder = folder(&tensors, config);
        let error = Vit::open(folder.path(), None).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let find = |t: &Tensors, name: &str| t.iter().position(|(found, _, _)| found == name).unwrap();
    let same = |_: &mut Tensors| {};
    check(&|t| t.retain(|(name, _, _)| name != "blocks.1.norm2.bias"), TIMM, "tensor blocks.1.norm2.bias is missing");
    check(
        &|t| put(t, "blocks.0.attn.q_norm.weight", &[4], &[1.0; 4]),
        TIMM,
        "tensor blocks.0.attn.q_norm.weight has no place in a vision transformer",
    );
    check(
        &|t| {
            let i = find(t, "blocks.1.attn.proj.weight");
            t[i].1 = vec![6, 24];
        },
        TIMM,
        "tensor blocks.1.attn.proj.weight has shape [6, 24] instead of [12, 12]",
    );
    check(
        &|t| t.retain(|(name, _, _)| !name.starts_with("blocks.")),
        TIMM,
        "no supported architecture has a tensor cls_token",
    );
    check(&same, r#"{"model_args": {"num_heads": 5}}"#, "5 heads do not divide 12 features");
    check(
        &same,
        r#"{"model_args": {"num_heads": "3"}}"#,
        "model_args.num_heads is \"3\" instead of a positive integer",
    );
    check(
        &same,
        r#"{"pretrained_cfg": {"input_size": [3, 7, 7]}}"#,
        "images of 7 pixels do not consist of patches of 2",
    );
    check(&same, r#"{"pretrained_cfg": {"input_size": [3, 20000, 20000]}}"#, "more than 20000 tokens");
    check(&same, r#"{"global_pool": "map"}"#, "global_pool is map; supported are token and avg");
    check(&same, "{", "config.json: it is not JSON");
    let text = TextEncoder::open(folder(&Sample::new(12, false, 0).timm(), TIMM).path()).map(|_| ()).unwrap_err();
    assert!(text.to_string().contains("a text encoder is a folder"), "{text}");
}

/// A folder with a vision transformer of 6 x 6 pixels: of timm with the class token or the mean of the patches, or of CLIP.
pub(crate) fn vision_folder(kind: &str) -> tempfile::TempDir {
    let sample = Sample::new(12, false, 0);
    match kind {
        "clip" => {
            let config = r#"{"vision_config": {"num_attention_heads": 3, "image_size": 6}}"#;
            folder(&sample.clip(&(random(12, 20), random(12, 21)), &random(60, 22)), config)
        }
        "mean" => {
            let mut tensors = sample.timm();
            let last = tensors.iter_mut().filter(|(name, ..)| name.starts_with("norm."));
            last.for_each(|(name, ..)| *name = format!("fc_{name}"));
            folder(&tensors, &TIMM.replace("token", "avg"))
        }
        _ => folder(&sample.timm(), TIMM),
    }
}

/// A folder with a text encoder of the words red, green and greener.
pub(crate) fn text_folder(pooling: &str, unit: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    TextSample::new().write(folder.path(), "", &format!(r#"{{"pooling_mode": "{pooling}"}}"#), unit);
    folder
}

const TOKENIZER: &str = r#"{"version": "1.0", "truncation": null, "padding": {"strategy": {"Fixed": 9}, "direction": "Right",
  "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}, "added_tokens": [],
  "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
    "pair": [], "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}, "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
  "decoder": null,
  "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "\u0023\u0023", "max_input_chars_per_word": 100,
    "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "red": 4, "green": 5, "\u0023\u0023er": 6}}}"#;

/// A BERT: d features in 2 heads, 2 blocks, 7 tokens, 6 positions.
struct TextSample {
    words: Vec<f32>,
    types: Vec<f32>,
    positions: Vec<f32>,
    norm: (Vec<f32>, Vec<f32>),
    blocks: Vec<Raw>,
}

const D: usize = 40;

impl TextSample {
    fn new() -> TextSample {
        TextSample {
            words: random(7 * D, 1),
            types: random(2 * D, 2),
            positions: random(6 * D, 3),
            norm: (random(D, 4), random(D, 5)),
            blocks: (0..2).map(|i| random_block(D, 50, false, 100 * i)).collect(),
        }
    }

    fn write(&self, folder: &Path, prefix: &str, pooling: &str, unit: bool) {
        let mut t = Tensors::new();
        let name = |part: &str| format!("{prefix}{part}");
        put(&mut t, name("embeddings.word_embeddings.weight"), &[7, D], &self.words);
        put(&mut t, name("embeddings.token_type_embeddings.weight"), &[2, D], &self.types);
        put(&mut t, name("embeddings.position_embeddings.weight"), &[6, D], &self.positions);
        put_layer(&mut t, name("embeddings.LayerNorm"), &self.norm);
        for (i, raw) in self.blocks.iter().enumerate() {
            for (part, word) in ["query", "key", "value"].into_iter().enumerate() {
                let layer = (raw.qkv.0[part * D * D..][..D * D].to_vec(), raw.qkv.1[part * D..][..D].to_vec());
                put_layer(&mut t, name(&format!("encoder.layer.{i}.attention.self.{word}")), &layer);
            }
            let layers = [
                ("attention.output.dense", &raw.project),
                ("attention.output.LayerNorm", &raw.norm1),
                ("intermediate.dense", &raw.expand),
                ("output.dense", &raw.contract),
                ("output.LayerNorm", &raw.norm2),
            ];
            for (part, layer) in layers {
                put_layer(&mut t, name(&format!("encoder.layer.{i}.{part}")), layer);
            }
        }
        put(&mut t, name("pooler.dense.bias"), &[D], &self.types[..D]);
        write(&folder.join("model.safetensors"), &t);
        let file = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        file("config.json", r#"{"model_type": "bert", "num_attention_heads": 2, "hidden_act": "gelu"}"#);
        file("tokenizer.json", TOKENIZER);
        file("sentence_bert_config.json", r#"{"max_seq_length": 5}"#);
        fs::create_dir_all(folder.join("1_Pooling")).unwrap();
        file("1_Pooling/config.json", pooling);
        let normalize =
            if unit { r#", {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}"# } else { "" };
        file(
            "modules.json",
            &format!(
                r#"[{{"path": "", "type": "sentence_transformers.models.Transformer"}}, {{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}}{normalize}]"#
            ),
        );
    }

    /// The tokens' features in f64 after the last block.
    fn tokens(&self, tokens: &[usize]) -> Vec<f64> {
        let mut x = Vec::new();
        for (position, token) in tokens.iter().enumerate() {
            let row = |table: &[f32], i: usize| wide(&table[i * D..(i + 1) * D]);
            let (word, kind, place) = (row(&self.words, *token), row(&self.types, 0), row(&self.positions, position));
            x.extend((0..D).map(|i| word[i] + kind[i] + place[i]));
        }
        let mut x = norm::tests::naive(&x, &self.norm.0, &self.norm.1, 1e-12);
        for raw in &self.blocks {
            x = naive(&x, raw, (2, D / 2), Order::After, 1e-12, &gelu);
        }
        x
    }
}

fn mean(x: &[f64]) -> Vec<f64> {
    (0..D).map(|i| x.iter().skip(i).step_by(D).sum::<f64>() / (x.len() / D) as f64).collect()
}

fn unit(x: Vec<f64>) -> Vec<f64> {
    let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
    x.into_iter().map(|x| x / length).collect()
}

#[test]
fn a_text_encoder_is_that_of_f64_for_empty_short_and_cut_texts() {
    let sample = TextSample::new();
    let texts = ["", "Red greener", "  green red red red red", "blue"];
    let tokens = [&[2, 3][..], &[2, 4, 5, 6, 3], &[2, 5, 4, 4, 3], &[2, 1, 3]];
    let old = r#"{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}"#;
    for (prefix, pooling, scaled) in [
        ("", old, true),
        ("bert.", r#"{"pooling_mode": "mean"}"#, false),
        ("0.auto_model.", r#"{"pooling_mode": "cls"}"#, true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        sample.write(folder.path(), prefix, pooling, scaled);
        let encoder = TextEncoder::open(folder.path()).unwrap();
        let found = encoder.encode(Batch::Texts(&texts), &[1]).unwrap();
        for (i, tokens) in tokens.iter().enumerate() {
            let x = sample.tokens(tokens);
            let pooled = if pooling.contains("cls\"") { x[..D].to_vec() } else { mean(&x) };
            let expected = if scaled { unit(pooled) } else { pooled };
            close(&found[i * D..(i + 1) * D], &expected, 1e-5);
            let alone = encoder.encode(Batch::Texts(&texts[i..=i]), &[1]).unwrap();
            assert_eq!(alone, found[i * D..(i + 1) * D], "text {i} alone");
        }
    }
}

#[test]
fn text_encoders_that_do_not_fit_are_refused() {
    let check = |file: &str, text: &str, expected: &str| {
        let folder = tempfile::tempdir().unwrap();
        TextSample::new().write(folder.path(), "", r#"{"pooling_mode": "mean"}"#, false);
        fs::write(folder.path().join(file), text).unwrap();
        let error = TextEncoder::open(folder.path()).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("tokenizer.json", "{}", "tokenizer.json: it is no tokenizer");
    check("tokenizer.json", &TOKENIZER.replace(": 6}", ": 7}"), "token 7 has no embedding: the model has 7");
    check("1_Pooling/config.json", r#"{"pooling_mode": "max"}"#, "pooling is max; supported are mean and cls");
    check("sentence_bert_config.json", r#"{"max_seq_length": 2}"#, "at most 2 tokens");
    check("modules.json", r#"[{"path": "2_Dense", "type": "x.Dense"}]"#, "Dense");
    check("modules.json", r#"[{"path": "../x", "type": "x.Pooling"}]"#, "is not supported");
    check(
        "config.json",
        r#"{"hidden_act": "relu", "num_attention_heads": 2}"#,
        "hidden_act is relu; supported are gelu",
    );
    check("config.json", r#"{"position_embedding_type": "relative_key"}"#, "position_embedding_type is relative_key");
    check("config_sentence_transformers.json", r#"{"default_prompt_name": "query"}"#, "prompts has no such entry");
}

#[test]
fn the_wrong_modality_or_layer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    TextSample::new().write(folder.path(), "", r#"{"pooling_mode": "mean"}"#, false);
    let encoder = TextEncoder::open(folder.path()).unwrap();
    let image = Image { width: 1, height: 1, pixels: vec![0; 3] };
    assert!(matches!(encoder.encode(Batch::Images(&[image]), &[1]), Err(Error::Modality { .. })));
    assert!(matches!(encoder.encode(Batch::Texts(&["red"]), &[2]), Err(Error::Layer { layers: 2, layer: 2, .. })));
}

#[test]
fn a_prompt_is_put_in_front_and_changes_the_digest() {
    let folder = tempfile::tempdir().unwrap();
    TextSample::new().write(folder.path(), "", r#"{"pooling_mode": "mean"}"#, false);
    let plain = TextEncoder::open(folder.path()).unwrap();
    let settings = r#"{"prompts": {"query": "red "}, "default_prompt_name": "query"}"#;
    fs::write(folder.path().join("config_sentence_transformers.json"), settings).unwrap();
    let prompted = TextEncoder::open(folder.path()).unwrap();
    assert_eq!(prompted.features(&["green"], &[1]).unwrap(), plain.features(&["red green"], &[1]).unwrap());
    assert_ne!(prompted.digest(), plain.digest());
}
