"""Small transformers with random weights, as folders."""

import json
import struct

import numpy as np

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "parcel", "late", "song", "play", "alarm", "wake"]


def write(folder, tensors, **files):
    """Writes tensors as safetensors, and other files as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    header, data = {}, b""
    for name, values in tensors.items():
        start, data = len(data), data + values.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [start, len(data)]}
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder


def vit(folder, seed=0, dim=8, side=16, patch=8):
    """A vision transformer of one block."""
    random, hidden = np.random.default_rng(seed), 2 * dim
    shapes = {
        "cls_token": (1, 1, dim),
        "pos_embed": (1, (side // patch) ** 2 + 1, dim),
        "patch_embed.proj.weight": (dim, 3, patch, patch),
        "patch_embed.proj.bias": (dim,),
        "norm.weight": (dim,),
        "norm.bias": (dim,),
    }
    sizes = {"attn.qkv": (3 * dim, dim), "attn.proj": (dim, dim), "mlp.fc1": (hidden, dim), "mlp.fc2": (dim, hidden)}
    for name, size in {**sizes, "norm1": (dim,), "norm2": (dim,)}.items():
        shapes |= {f"blocks.0.{name}.weight": size, f"blocks.0.{name}.bias": size[:1]}
    config = {
        "architecture": "vit_test",
        "num_features": dim,
        "model_args": {"img_size": side, "patch_size": patch, "embed_dim": dim, "depth": 1, "num_heads": 2},
        "pretrained_cfg": {"input_size": [3, side, side], "interpolation": "bicubic", "crop_pct": 1.0, "mean": [0.5] * 3, "std": [0.5] * 3},
    }
    return write(folder, {name: random.uniform(-0.5, 0.5, shape) for name, shape in shapes.items()}, config=config)


def bert(folder, seed=0, dim=8):
    """A BERT of one block that knows six words."""
    random, hidden = np.random.default_rng(seed), 2 * dim
    shapes = {
        "embeddings.word_embeddings.weight": (len(WORDS), dim),
        "embeddings.token_type_embeddings.weight": (2, dim),
        "embeddings.position_embeddings.weight": (8, dim),
    }
    layers = {
        "embeddings.LayerNorm": (dim,),
        **{f"encoder.layer.0.attention.self.{part}": (dim, dim) for part in ("query", "key", "value")},
        "encoder.layer.0.attention.output.dense": (dim, dim),
        "encoder.layer.0.attention.output.LayerNorm": (dim,),
        "encoder.layer.0.intermediate.dense": (hidden, dim),
        "encoder.layer.0.output.dense": (dim, hidden),
        "encoder.layer.0.output.LayerNorm": (dim,),
    }
    for name, size in layers.items():
        shapes |= {f"{name}.weight": size, f"{name}.bias": size[:1]}
    special = {name: {"id": name, "ids": [WORDS.index(name)], "tokens": [name]} for name in ("[CLS]", "[SEP]")}
    template = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    template.append({"SpecialToken": {"id": "[SEP]", "type_id": 0}})
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": template, "pair": [], "special_tokens": special},
        "decoder": None,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {word: number for number, word in enumerate(WORDS)},
        },
    }
    config = {
        "model_type": "bert",
        "hidden_size": dim,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": hidden,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 8,
        "vocab_size": len(WORDS),
    }
    tensors = {name: random.uniform(-0.5, 0.5, shape) for name, shape in shapes.items()}
    return write(folder, tensors, config=config, tokenizer=tokenizer)
