//! The corpora of the fuzz targets: target, name and contents of each file.

use crate::archives::{gzip, tar, zip};
use crate::changes;
use crate::made;
use crate::promises::adapters::World;
use loranpac_encode::ModuleKind;

/// Adapters of each kind, and checkpoints, of the encoders that the target has.
fn adapters() -> Vec<(String, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.safetensors");
    let mut all = Vec::new();
    for (world, of) in World::all(folder.path()).iter().zip(["vit", "bert"]) {
        for module in ModuleKind::ALL {
            let mut trainer = world.trainer(*module);
            trainer.epoch(|_| {}).unwrap();
            trainer.save(&out).unwrap();
            let checkpoint = std::fs::read(folder.path().join(".x.safetensors.checkpoint")).unwrap();
            all.push((format!("checkpoint-{}-{of}", module.name()), checkpoint));
            trainer.finish().write(&out).unwrap();
            all.push((format!("{}-{of}", module.name()), std::fs::read(&out).unwrap()));
        }
    }
    all
}

/// All files, but those of images.
pub fn all() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut add = |target: &'static str, name: &str, bytes: Vec<u8>| all.push((target, name.to_owned(), bytes));
    let image = std::fs::read(changes::fuzz().join("corpus/image/png-bits")).unwrap();
    let files: [(&str, &[u8]); 3] =
        [("set/train/cat/a.png", &image), ("set/test/dog/b.png", &image), ("set/README.md", b"about")];
    let texts: [(&str, &[u8]); 2] = [("1/a.txt", b"hello"), ("2/b.txt", "\u{e9}".as_bytes())];
    for (name, files) in [("images", &files[..]), ("texts", &texts)] {
        add("archive", &format!("{name}-tar"), tar(files));
        add("archive", &format!("{name}-gzip"), gzip(&tar(files)));
        add("archive", &format!("{name}-zip"), zip(files));
    }
    add("archive", "long-names-tar", tar(&[(&format!("{}/a.png", "long".repeat(40)), b"x")]));
    add("table", "csv", b"text,label,split\n\"book, a \"\"table\"\"\",dinner,train\nhello,greeting,test\n".to_vec());
    add("table", "tabs", b"text\ty\tdomain\nhello\t1\tmail\na \"b\"\t2\tchat\n".to_vec());
    add("table", "paths", b"path,label\nx.csv,1\nmissing.png,2\n".to_vec());
    add(
        "table",
        "lines",
        b"{\"text\": \"hello \\u00e9\", \"label\": 3}\n{\"text\": \"\", \"label\": \"x\"}\n".to_vec(),
    );
    add("list", "labels", b"a.png 1\nfolder/b c.jpg cat\n\nlast.tif\n".to_vec());
    add("list", "empty", b"\n".to_vec());
    add("weights", "vit", made::safetensors(&made::vit()));
    add("weights", "bert", made::safetensors(&made::bert()));
    for (name, bytes) in adapters() {
        add("adapter", &name, bytes);
    }
    let settings = [
        ("config-bert", 0, made::BERT_CONFIG),
        ("config-vit", 0, made::VIT_CONFIG),
        ("tokenizer-config", 1, "{\"model_max_length\": 6}"),
        ("sentence", 2, "{\"max_seq_length\": 7, \"do_lower_case\": true}"),
        ("prompts", 3, made::PROMPTS),
        ("modules", 4, made::MODULES),
        ("pooling", 5, made::POOLING),
        ("preprocessor", 6, made::PREPROCESSOR),
    ];
    for (name, number, text) in settings {
        add("settings", name, [&[number], text.as_bytes()].concat());
    }
    for (name, text) in [("words", made::TOKENIZER), ("pairs", made::BYTE_PAIRS), ("pieces", made::UNIGRAM)] {
        add("tokenizer", name, text.as_bytes().to_vec());
    }
    add("network", "average", made::average(&[-1, 3, 8, 8]));
    add("network", "average-open", made::average(&[-1, 3, -1, -1]));
    add("network", "convolution", made::convolution());
    add("answer", "one", b"{\"object\": \"list\", \"data\": [{\"index\": 0, \"embedding\": [0.5, -1e-3]}]}".to_vec());
    let two =
        b"{\"data\": [{\"index\": 1, \"embedding\": [1, 2]}, {\"embedding\": [3, 4], \"index\": 0}], \"model\": \"m\"}";
    add("answer", "two", two.to_vec());
    add("cache", "records", records());
    for (name, text) in [
        ("preset", "unit"),
        ("settings", "resize=256x300,crop=12,filter=lanczos,mean=0.5/0.1/0,std=2"),
        ("keep", "clip,resize=keep,crop=3x4,scale=1"),
        ("timm", made::VIT_CONFIG),
        ("transformers", made::PREPROCESSOR),
        ("convnext", "{\"size\": {\"shortest_edge\": 8}, \"crop_pct\": 0.875, \"resample\": 2}"),
    ] {
        add("preprocess", name, text.as_bytes().to_vec());
    }
    all
}

/// Two records of a cache with three features.
fn records() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let mut cache = loranpac_encode::Cache::open(folder.path(), &[7; 32], 3).unwrap();
    cache.put([1; 32], &[1.0, 2.0, 3.0]);
    cache.put([2; 32], &[-1.0, 0.0, 0.5]);
    cache.flush().unwrap();
    let path = folder.path().read_dir().unwrap().next().unwrap().unwrap().path();
    std::fs::read(path).unwrap()
}
