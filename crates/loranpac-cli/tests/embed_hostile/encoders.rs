//! Encoders whose weights or settings do not fit.

use crate::made::{self, D, Tensor};
use crate::world::{World, seed};

/// A vision transformer with other tensors.
fn vit(change: impl FnOnce(&mut Vec<Tensor>)) -> World {
    let world = World::new();
    made::write_vit(&world.at("vit"));
    world.write("a.png", seed("image/png-rgb"));
    let mut tensors = made::vit();
    change(&mut tensors);
    world.write("vit/model.safetensors", made::safetensors(&tensors));
    world
}

/// A text encoder, with one other file.
fn bert(name: &str, text: &str) -> World {
    let world = World::new();
    made::write_bert(&world.at("bert"));
    world.write("t.csv", "text,label\nhello a,1\n");
    world.write(&format!("bert/{name}"), text);
    world
}

fn named<'t>(tensors: &'t mut [Tensor], name: &str) -> &'t mut Tensor {
    tensors.iter_mut().find(|tensor| tensor.name == name).unwrap()
}

#[test]
fn weights_that_do_not_fit_are_refused_by_name() {
    let refused = |change: &dyn Fn(&mut Vec<Tensor>), words: &[&str]| {
        vit(|tensors| change(tensors)).refused("vit", "a.png", words);
    };
    vit(|_| {}).accepted("vit", "a.png", &[]);
    refused(&|t| t.retain(|t| t.name != "blocks.0.attn.proj.weight"), &["blocks.0.attn.proj.weight is missing"]);
    refused(&|t| named(t, "blocks.0.mlp.fc1.bias").shape = vec![1, 2 * D], &["blocks.0.mlp.fc1.bias", "[1, 16]"]);
    refused(&|t| named(t, "blocks.0.mlp.fc1.weight").data[3] = f32::NAN, &["blocks.0.mlp.fc1.weight", "NaN"]);
    refused(&|t| named(t, "pos_embed").data[0] = f32::INFINITY, &["pos_embed", "inf"]);
    refused(&|t| *named(t, "norm.weight") = made::tensor("norm.weight", &[0]), &["norm.weight", "[0]"]);
    refused(
        &|t| *named(t, "blocks.0.norm1.weight") = made::tensor("blocks.0.norm1.weight", &[0]),
        &["blocks.0.norm1.weight"],
    );
    refused(
        &|t| *named(t, "patch_embed.proj.weight") = made::tensor("patch_embed.proj.weight", &[D, 3, 0, 2]),
        &["patch_embed.proj.weight"],
    );
    refused(&|t| t.push(made::tensor("blocks.0.extra", &[1])), &["blocks.0.extra", "no place"]);
    refused(&|t| t.push(made::tensor("reg_token", &[1, 30_000, D])), &["more than 20000 tokens"]);
    refused(&|t| t.clear(), &["no supported architecture"]);
    // Large numbers overflow.
    refused(&|t| named(t, "blocks.0.mlp.fc2.weight").data.fill(f32::MAX), &["not finite"]);
}

#[test]
fn damaged_headers_are_refused_before_memory_is_allocated() {
    let world = vit(|_| {});
    let whole = made::safetensors(&made::vit());
    let refused = |bytes: &[u8], words: &[&str]| {
        world.write("vit/model.safetensors", bytes);
        world.refused("vit", "a.png", &[&["model.safetensors"], words].concat());
    };
    refused(&[], &["shorter than a header"]);
    refused(&whole[..whole.len() / 2], &["bytes"]);
    let mut claims = whole.clone();
    claims[..8].copy_from_slice(&(1u64 << 60).to_le_bytes());
    refused(&claims, &["1152921504606846976 bytes"]);
    let replaced = |from: &str, to: &str| {
        let length = u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
        let header = std::str::from_utf8(&whole[8..8 + length]).unwrap();
        assert!(header.contains(from), "{header}");
        let header = header.replacen(from, to, 1);
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &whole[8 + length..]].concat()
    };
    let huge = r#""cls_token":{"data_offsets":[0,1152921504606846976]"#;
    refused(&replaced(r#""cls_token":{"data_offsets":[0,32]"#, huge), &["header cannot be read"]);
    refused(&replaced("[32,192]", "[16,192]"), &["header cannot be read"]);
    refused(&replaced("\"shape\":[1,1,8]", "\"shape\":[4294967296,4294967296,8]"), &["header cannot be read"]);
    refused(&replaced("\"F32\"", "\"F64\""), &["header cannot be read"]);
}

#[test]
fn absurd_settings_are_refused_by_name() {
    for (from, to, words) in [
        ("\"num_heads\": 2", "\"num_heads\": 0", "num_heads"),
        ("\"num_heads\": 2", "\"num_heads\": 3", "3 heads do not divide 8"),
        ("\"num_heads\": 2", "\"num_heads\": -1e300", "num_heads"),
        ("[3, 4, 4]", "[3, 1000000000, 1000000000]", "1000000000"),
        ("[3, 4, 4]", "[3, 0, 0]", "0 pixels"),
        ("[3, 4, 4]", "[3, 5, 5]", "patches of 2"),
        ("\"crop_pct\": 1.0", "\"crop_pct\": 1e-300", "side of"),
        ("\"std\": [0.5", "\"std\": [0.0", "standard deviation"),
        ("\"std\": [0.5", "\"std\": [1e-44", "not finite"),
        ("\"architecture\"", "\"layer_norm_eps\": 1e300, \"architecture\"", "layer_norm_eps"),
        ("\"architecture\"", "\"hidden_size\": 1000000000, \"architecture\"", "hidden_size is 1000000000"),
        ("\"architecture\"", "\"patch_size\": 0, \"architecture\"", "patch_size is 0"),
        ("\"architecture\"", "\"num_hidden_layers\": 12, \"architecture\"", "num_hidden_layers is 12"),
        ("{\"architecture\"", "", "JSON"),
    ] {
        let world = vit(|_| {});
        let config = made::VIT_CONFIG.replacen(from, to, 1);
        assert_ne!(config, made::VIT_CONFIG);
        world.write("vit/config.json", config);
        world.refused("vit", "a.png", &["config.json", words]);
    }
    let world = vit(|_| {});
    world.write("vit/config.json", "{\"image_size\": 1000000000}");
    world.refused("vit", "a.png", &["config.json", "1000000000"]);
    world.write("vit/config.json", made::VIT_CONFIG);
    world.write("vit/preprocessor_config.json", made::PREPROCESSOR.replace("\"width\": 4", "\"width\": 1000000000"));
    world.refused("vit", "a.png", &["preprocessor_config.json", "1000000000"]);
}

#[test]
fn settings_and_tokenizers_of_text_encoders_are_refused_by_name() {
    bert("about.txt", "").accepted("bert", "t.csv", &[]);
    let refused = |name: &str, text: &str, words: &[&str]| {
        bert(name, text).refused("bert", "t.csv", &[&[name], words].concat());
    };
    refused("config.json", &made::BERT_CONFIG.replace("heads\": 2", "heads\": 0"), &["num_attention_heads is 0"]);
    refused("config.json", &made::BERT_CONFIG.replace("size\": 8", "size\": 1000000000"), &["hidden_size"]);
    refused("tokenizer.json", "", &["no tokenizer"]);
    refused("tokenizer.json", &made::TOKENIZER[..made::TOKENIZER.len() / 2], &["no tokenizer"]);
    refused("tokenizer.json", &made::TOKENIZER.replace("\"##s\": 11", "\"##s\": 12"), &["token 12 has no embedding"]);
    refused("tokenizer.json", &made::TOKENIZER.replace("\"##s\": 11", "\"##s\": 4294967295"), &["no embedding"]);
    refused("sentence_bert_config.json", "{\"max_seq_length\": 0}", &["max_seq_length"]);
    refused("modules.json", "{\"0\": 1}", &["not a list"]);
    refused("modules.json", "[{\"type\": \"Dense\", \"path\": \"../..\"}]", &["is not supported"]);
    refused("config_sentence_transformers.json", "{\"default_prompt_name\": \"q\"}", &["default_prompt_name is q"]);
    let long = format!("{{\"default_prompt_name\": \"q\", \"prompts\": {{\"q\": \"{}\"}}}}", "a".repeat(1 << 17));
    refused("config_sentence_transformers.json", &long, &["longer than 65536 bytes"]);
    // A template with a token that the model does not have, or more of them than fit into a text.
    let world = bert("tokenizer.json", &made::TOKENIZER.replace("\"ids\": [1]", "\"ids\": [99]"));
    world.refused("bert", "t.csv", &["tokenizer.json"]);
    let many = "1, ".repeat(20) + "1";
    let world = bert("tokenizer.json", &made::TOKENIZER.replace("\"ids\": [1]", &format!("\"ids\": [{many}]")));
    world.refused("bert", "t.csv", &["token"]);
}

#[test]
fn a_prompt_that_pooling_leaves_out_is_refused() {
    let world = bert("config_sentence_transformers.json", made::PROMPTS);
    world.write("bert/modules.json", made::MODULES);
    world.write("bert/1_Pooling/config.json", made::POOLING);
    world.accepted("bert", "t.csv", &[]);
    world.write("bert/1_Pooling/config.json", made::POOLING.replacen('{', "{\"include_prompt\": false, ", 1));
    world.refused("bert", "t.csv", &["config_sentence_transformers.json", "include_prompt"]);
    world.write("bert/config_sentence_transformers.json", "{}");
    world.accepted("bert", "t.csv", &[]);
}

#[test]
fn settings_of_preprocessing_are_refused_by_name() {
    let world = vit(|_| {});
    for (setting, words) in [
        ("resize=0", "side of 0"),
        ("crop=999999999999999999999", "crop="),
        ("crop=4096", "tokens"),
        ("crop=4x6", "squares"),
        ("filter=magic", "bicubic"),
        ("std=0", "standard deviation"),
        ("mean=nan", "finite"),
        ("scale=1e38,mean=0,std=1e-30", "not finite"),
        ("", "neither a preset"),
        ("unit,unit", "neither a preset"),
        ("==,=", "neither a preset"),
    ] {
        let output = world.embed("vit", "a.png", &["--preprocess", setting]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{setting}: {message}");
        assert!(message.contains(words), "{setting}: {message}");
    }
}
