//! Tiny encoders: files of a vision transformer, of a text encoder, and networks in ONNX.
#![allow(dead_code, reason = "each test uses some of them")]

use std::fs;
use std::path::Path;

use loranpac_data::safetensors::{TensorInfo, header};

/// Features of a token.
pub const D: usize = 8;

/// A tensor of float32.
#[derive(Debug, Clone)]
pub struct Tensor {
    pub name: String,
    pub shape: Vec<usize>,
    pub data: Vec<f32>,
}

/// A tensor with small numbers.
pub fn tensor(name: impl Into<String>, shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let data = (0..count).map(|at| (at * 37 % 17) as f32 / 16.0 - 0.5).collect();
    Tensor { name: name.into(), shape: shape.to_vec(), data }
}

/// Weight and bias of a layer.
fn layer(tensors: &mut Vec<Tensor>, name: &str, shape: &[usize]) {
    tensors.push(tensor(format!("{name}.weight"), shape));
    tensors.push(tensor(format!("{name}.bias"), &shape[..1]));
}

/// A vision transformer with the names of timm: one block, 2 x 2 patches of 2 x 2 pixels.
pub fn vit() -> Vec<Tensor> {
    let mut tensors = vec![tensor("cls_token", &[1, 1, D]), tensor("pos_embed", &[1, 5, D])];
    layer(&mut tensors, "patch_embed.proj", &[D, 3, 2, 2]);
    for (name, shape) in [
        ("norm1", &[D][..]),
        ("attn.qkv", &[3 * D, D]),
        ("attn.proj", &[D, D]),
        ("norm2", &[D]),
        ("mlp.fc1", &[2 * D, D]),
        ("mlp.fc2", &[D, 2 * D]),
    ] {
        layer(&mut tensors, &format!("blocks.0.{name}"), shape);
    }
    layer(&mut tensors, "norm", &[D]);
    tensors
}

/// The configuration of [`vit`], with timm's keys.
pub const VIT_CONFIG: &str = r#"{"architecture": "tiny", "model_args": {"num_heads": 2},
 "pretrained_cfg": {"input_size": [3, 4, 4], "crop_pct": 1.0, "interpolation": "bicubic", "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}}"#;

/// A configuration of preprocessing that fits [`vit`].
pub const PREPROCESSOR: &str = r#"{"do_resize": true, "size": {"height": 4, "width": 4}, "resample": 3, "do_normalize": true,
 "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "rescale_factor": 0.00392156862745098}"#;

/// A text encoder with the names of transformers: one block, 12 tokens, texts of up to 8.
pub fn bert() -> Vec<Tensor> {
    let mut tensors = vec![
        tensor("embeddings.word_embeddings.weight", &[12, D]),
        tensor("embeddings.token_type_embeddings.weight", &[2, D]),
        tensor("embeddings.position_embeddings.weight", &[8, D]),
    ];
    layer(&mut tensors, "embeddings.LayerNorm", &[D]);
    for (name, shape) in [
        ("attention.self.query", &[D, D][..]),
        ("attention.self.key", &[D, D]),
        ("attention.self.value", &[D, D]),
        ("attention.output.dense", &[D, D]),
        ("attention.output.LayerNorm", &[D]),
        ("intermediate.dense", &[2 * D, D]),
        ("output.dense", &[D, 2 * D]),
        ("output.LayerNorm", &[D]),
    ] {
        layer(&mut tensors, &format!("encoder.layer.0.{name}"), shape);
    }
    tensors
}

/// The configuration of [`bert`].
pub const BERT_CONFIG: &str = r#"{"model_type": "bert", "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "hidden_act": "gelu"}"#;

/// The tokenizer of [`bert`]: words in lower case.
pub const TOKENIZER: &str = r###"{"version": "1.0", "truncation": null, "padding": null,
 "added_tokens": [{"id": 0, "content": "[PAD]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
 "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
 "pre_tokenizer": {"type": "BertPreTokenizer"},
 "post_processor": {"type": "TemplateProcessing",
  "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
  "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
  "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}, "[SEP]": {"id": "[SEP]", "ids": [2], "tokens": ["[SEP]"]}}},
 "decoder": null,
 "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
  "vocab": {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3, "a": 4, "b": 5, "##a": 6, "##b": 7, "hello": 8, ",": 9, "refund": 10, "##s": 11}}}"###;

/// A tokenizer with the parts that the other has not: byte pairs, a regular expression, a sequence of normalizers.
pub const BYTE_PAIRS: &str = r#"{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
 "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": "(?i)x+"}, "content": "a"}, {"type": "Strip", "strip_left": true, "strip_right": true}]},
 "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "\\s+(?!\\S)|\\s+"}, "behavior": "Isolated", "invert": false}, {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]},
 "post_processor": {"type": "RobertaProcessing", "sep": ["b", 2], "cls": ["a", 1], "trim_offsets": true, "add_prefix_space": true},
 "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
 "model": {"type": "BPE", "dropout": null, "unk_token": "u", "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
  "vocab": {"u": 0, "a": 1, "b": 2, "c": 3, "ab": 4, "abc": 5}, "merges": [["a", "b"], ["ab", "c"]]}}"#;

/// A tokenizer of pieces with their probabilities.
pub const UNIGRAM: &str = r#"{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": {"type": "Lowercase"},
 "pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "always", "split": true}, "post_processor": null, "decoder": null,
 "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["_", -1.0], ["a", -1.5], ["ab", -2.0], ["hello", -3.0]], "byte_fallback": false}}"#;

/// Modules as sentence-transformers writes them, and the pooling.
pub const MODULES: &str = r#"[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
 {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
 {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]"#;
/// A pooling of all tokens.
pub const POOLING: &str =
    r#"{"word_embedding_dimension": 8, "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}"#;
/// A prompt in front of each text.
pub const PROMPTS: &str = r#"{"prompts": {"query": "hello, "}, "default_prompt_name": "query"}"#;

/// Tensors as a safetensors file.
pub fn safetensors(tensors: &[Tensor]) -> Vec<u8> {
    let infos =
        tensors.iter().map(|t| TensorInfo { name: &t.name, dtype: "F32", shape: &t.shape, bytes: 4 * t.data.len() });
    let mut bytes = header(infos, None);
    bytes.extend(tensors.iter().flat_map(|tensor| &tensor.data).flat_map(|number| number.to_le_bytes()));
    bytes
}

/// Writes files into a folder, and the folders of their names.
pub fn write(folder: &Path, files: &[(&str, &[u8])]) {
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Writes [`vit`] with its configuration.
pub fn write_vit(folder: &Path) {
    write(folder, &[("model.safetensors", &safetensors(&vit())), ("config.json", VIT_CONFIG.as_bytes())]);
}

/// Writes [`bert`] with its configuration and tokenizer.
pub fn write_bert(folder: &Path) {
    let files =
        [("config.json", BERT_CONFIG), ("tokenizer.json", TOKENIZER)].map(|(name, text)| (name, text.as_bytes()));
    write(folder, &[("model.safetensors", &safetensors(&bert()))]);
    write(folder, &files);
}

/// A field of a message in ONNX: bytes, which may be a message.
pub fn bytes(number: u64, value: &[u8]) -> Vec<u8> {
    let mut field = varint(number << 3 | 2);
    field.extend(varint(value.len() as u64));
    field.extend(value);
    field
}

/// A field of a message in ONNX: a number.
pub fn integer(number: u64, value: i64) -> Vec<u8> {
    [varint(number << 3), varint(value as u64)].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 128 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A node of a graph in ONNX, with the fields of its attributes.
pub fn node(operator: &str, inputs: &[&str], output: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut node: Vec<u8> = inputs.iter().flat_map(|input| bytes(1, input.as_bytes())).collect();
    node.extend(bytes(2, output.as_bytes()));
    node.extend(bytes(4, operator.as_bytes()));
    node.extend(attributes.iter().flat_map(|attribute| bytes(5, attribute)));
    bytes(1, &node)
}

/// An attribute of integers.
pub fn integers(name: &str, values: &[i64]) -> Vec<u8> {
    let values = values.iter().flat_map(|value| integer(8, *value));
    [bytes(1, name.as_bytes()), values.collect(), integer(20, 7)].concat()
}

/// An initialiser of 64-bit integers.
pub fn constant(name: &str, values: &[i64]) -> Vec<u8> {
    let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    bytes(5, &[integer(1, values.len() as i64), integer(2, 7), bytes(8, name.as_bytes()), bytes(9, &raw)].concat())
}

/// An initialiser of float32.
pub fn weights(tensor: &Tensor) -> Vec<u8> {
    let raw: Vec<u8> = tensor.data.iter().flat_map(|value| value.to_le_bytes()).collect();
    let shape = tensor.shape.iter().flat_map(|side| integer(1, *side as i64));
    let rest = [integer(2, 1), bytes(8, tensor.name.as_bytes()), bytes(9, &raw)].concat();
    bytes(5, &[shape.collect(), rest].concat())
}

/// An ONNX file: the sides of its input `x` (negative ones are open), and nodes and initialisers that make `y` of it.
pub fn network(sides: &[i64], parts: &[Vec<u8>]) -> Vec<u8> {
    let side = |side: &i64| match *side {
        ..0 => bytes(1, &bytes(2, b"n")),
        side => bytes(1, &integer(1, side)),
    };
    let shape: Vec<u8> = sides.iter().flat_map(side).collect();
    let value = |name: &[u8], shape: &[u8]| {
        let kind = bytes(1, &[integer(1, 1), bytes(2, shape)].concat());
        [bytes(1, name), bytes(2, &kind)].concat()
    };
    let graph =
        [parts.concat(), bytes(2, b"g"), bytes(11, &value(b"x", &shape)), bytes(12, &value(b"y", &[]))].concat();
    [integer(1, 8), bytes(7, &graph), bytes(8, &integer(2, 17))].concat()
}

/// A network that averages each channel: three features.
pub fn average(sides: &[i64]) -> Vec<u8> {
    network(sides, &[node("GlobalAveragePool", &["x"], "a", &[]), node("Flatten", &["a"], "y", &[])])
}

/// A network with weights: a convolution of 2 x 2 pixels, a ReLU, and the average.
pub fn convolution() -> Vec<u8> {
    let parts = [
        weights(&tensor("w", &[4, 3, 2, 2])),
        node("Conv", &["x", "w"], "c", &[integers("strides", &[2, 2])]),
        node("Relu", &["c"], "r", &[]),
        node("GlobalAveragePool", &["r"], "a", &[]),
        node("Flatten", &["a"], "y", &[]),
    ];
    network(&[-1, 3, 8, 8], &parts)
}
