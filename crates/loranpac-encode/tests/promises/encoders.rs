//! Encoders from damaged files. One that opens must encode.

use std::path::Path;

use loranpac_encode::{Batch, Image, Modality, OpenOptions, open};

use crate::made;

/// Files of which [`settings`] replaces one.
const SETTINGS: [&str; 7] = [
    "config.json",
    "tokenizer_config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "modules.json",
    "1_Pooling/config.json",
    "preprocessor_config.json",
];

/// Opens an encoder, and encodes two inputs if it opens.
fn encode(path: &Path) {
    let Ok(encoder) = open(path.to_str().unwrap(), &OpenOptions::default()) else { return };
    let layers: Vec<usize> = (0..encoder.layers()).collect();
    let image = |width: usize, height: usize| Image { width, height, pixels: vec![90; 3 * width * height] };
    let images = [image(3, 2), image(1, 5)];
    let features = match encoder.modality() {
        Modality::Image => encoder.encode(Batch::Images(&images), &layers),
        Modality::Text => encoder.encode(Batch::Texts(&["", "Hello, refunds: a b ab \u{e9} hello hello"]), &layers),
    };
    if let Ok(features) = features {
        assert_eq!(features.len(), 2 * layers.len() * encoder.dim());
    }
}

/// The bytes are the weights, beside the other files of a vision transformer and of a text encoder.
pub fn weights(folder: &Path, data: &[u8]) {
    for (name, write) in [("vit", made::write_vit as fn(&Path)), ("bert", made::write_bert)] {
        let folder = folder.join(name);
        if !folder.exists() {
            write(&folder);
        }
        made::write(&folder, &[("model.safetensors", data)]);
        encode(&folder);
    }
}

/// The first byte is the number of the file that the others replace, in folders that are whole otherwise.
pub fn settings(folder: &Path, data: &[u8]) {
    let Some((number, text)) = data.split_first() else { return };
    let name = SETTINGS[usize::from(*number) % SETTINGS.len()];
    for (model, write) in [("vit-settings", made::write_vit as fn(&Path)), ("bert-settings", made::write_bert)] {
        let folder = folder.join(model);
        let _ = std::fs::remove_dir_all(&folder);
        write(&folder);
        let others = [
            ("modules.json", made::MODULES),
            ("1_Pooling/config.json", made::POOLING),
            ("config_sentence_transformers.json", made::PROMPTS),
            ("preprocessor_config.json", made::PREPROCESSOR),
        ];
        // Without its own, a vision transformer takes the preprocessing of config.json.
        let others = others.iter().filter(|(other, _)| *other != "preprocessor_config.json" || name != "config.json");
        others.for_each(|(other, text)| made::write(&folder, &[(other, text.as_bytes())]));
        made::write(&folder, &[(name, text)]);
        encode(&folder);
    }
}

/// The bytes are `tokenizer.json` of a text encoder.
pub fn tokenizer(folder: &Path, data: &[u8]) {
    let folder = folder.join("bert-tokenizer");
    if !folder.exists() {
        made::write_bert(&folder);
    }
    made::write(&folder, &[("tokenizer.json", data)]);
    encode(&folder);
}

/// The bytes are an ONNX file.
pub fn network(folder: &Path, data: &[u8]) {
    made::write(folder, &[("x.onnx", data)]);
    encode(&folder.join("x.onnx"));
}
