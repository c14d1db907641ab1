//! Raw inputs, a small encoder, and a place for both.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use super::stdout;

/// A folder for a test, with a cache of its own.
pub struct Place(TempDir);

impl Place {
    /// An empty folder.
    pub fn new() -> Place {
        Place(TempDir::new().unwrap())
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A path in it, as an argument.
    pub fn at(&self, name: &str) -> String {
        self.path().join(name).display().to_string()
    }

    /// The program with these arguments.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loranpac"));
        command.args(arguments).env("LORANPAC_CACHE", self.path().join("cache")).env_remove("LORANPAC_ENCODERS");
        command
    }

    /// Calls the program.
    pub fn call(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What a command prints, which must succeed.
    #[track_caller]
    pub fn say(&self, arguments: &[&str]) -> String {
        stdout(&self.call(arguments))
    }

    /// Calls a command that must fail with these words, without a panic.
    #[track_caller]
    pub fn refused(&self, arguments: &[&str], words: &[&str]) {
        let output = self.call(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{message}");
        assert!(words.iter().all(|word| message.contains(word)) && !message.contains("panicked"), "{message}");
    }

    /// Calls it with this on standard input.
    pub fn with_input(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// A model of texts that has learned a table.
    pub fn tickets(&self) -> (String, String) {
        let (model, table) = (self.at("tickets.lrp"), texts(self.path(), 150));
        self.say(&["init", &model, "--encoder", "text-ngrams", "--width", "300"]);
        self.say(&["learn", &model, &table]);
        (model, table)
    }
}

/// The cells of an answer.
pub fn lines(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// What a command prints as JSON.
pub fn json_of(place: &Place, arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&place.say(arguments)).unwrap()
}

/// Texts of three classes that share words, as CSV.
pub fn texts(folder: &Path, rows: usize) -> String {
    let words = [["refund", "money", "charge"], ["parcel", "late", "courier"], ["password", "login", "locked"]];
    let mut table = "text,label,split\n".to_owned();
    for row in 0..rows {
        let (class, split) = (row % 3, if row % 5 == 4 { "test" } else { "train" });
        let [a, b, c] = words[class];
        table += &format!(
            "\"{a} {}, {b} and {c} {}\",{},{split}\n",
            row / 3,
            row * 7919 % 1000,
            ["pay", "post", "account"][class]
        );
    }
    let path = folder.join("tickets.csv");
    fs::write(&path, table).unwrap();
    path.display().to_string()
}

/// A bitmap of one colour with a brighter stripe.
pub fn bitmap(path: &Path, colour: [u8; 3], stripe: usize) {
    let side = 24usize;
    let mut bytes = b"BM".to_vec();
    for number in [54 + 3 * side * side, 0, 54, 40, side, side] {
        bytes.extend((number as u32).to_le_bytes());
    }
    bytes.extend([1, 0, 24, 0]);
    bytes.extend([0; 24]);
    for at in 0..side * side {
        bytes.extend(if at % side == stripe { [255; 3] } else { colour });
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

pub fn images(folder: &Path) -> PathBuf {
    let root = folder.join("photos");
    for (class, colour) in [("red", [0, 0, 200]), ("green", [0, 200, 0])] {
        for number in 0..6 {
            let split = if number < 4 { "train" } else { "test" };
            bitmap(&root.join(split).join(class).join(format!("{number}.bmp")), colour, number * 3);
        }
    }
    root
}

/// A folder with a vision transformer of one block: 16 x 16 pixels, patches of 8, 8 features. Its weights depend on `seed`.
pub fn vit(folder: &Path, seed: u32) {
    let (side, patch, dim, hidden) = (16usize, 8usize, 8usize, 16usize);
    let tokens = (side / patch) * (side / patch) + 1;
    let block = |name: &str| format!("blocks.0.{name}");
    let shapes = [
        ("cls_token".to_owned(), vec![1, 1, dim]),
        ("pos_embed".to_owned(), vec![1, tokens, dim]),
        ("patch_embed.proj.weight".to_owned(), vec![dim, 3, patch, patch]),
        ("patch_embed.proj.bias".to_owned(), vec![dim]),
        (block("norm1.weight"), vec![dim]),
        (block("norm1.bias"), vec![dim]),
        (block("attn.qkv.weight"), vec![3 * dim, dim]),
        (block("attn.qkv.bias"), vec![3 * dim]),
        (block("attn.proj.weight"), vec![dim, dim]),
        (block("attn.proj.bias"), vec![dim]),
        (block("norm2.weight"), vec![dim]),
        (block("norm2.bias"), vec![dim]),
        (block("mlp.fc1.weight"), vec![hidden, dim]),
        (block("mlp.fc1.bias"), vec![hidden]),
        (block("mlp.fc2.weight"), vec![dim, hidden]),
        (block("mlp.fc2.bias"), vec![dim]),
        ("norm.weight".to_owned(), vec![dim]),
        ("norm.bias".to_owned(), vec![dim]),
    ];
    let (mut header, mut data, mut state) = (serde_json::Map::new(), Vec::new(), seed | 1);
    for (name, shape) in shapes {
        let start = data.len();
        for _ in 0..shape.iter().product::<usize>() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            data.extend(((state >> 8) as f32 / (1 << 24) as f32 - 0.5).to_le_bytes());
        }
        let entry = serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] });
        header.insert(name, entry);
    }
    let header = serde_json::Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("model.safetensors"), file).unwrap();
    let config = serde_json::json!({
        "architecture": "vit_test", "num_features": dim,
        "model_args": { "img_size": side, "patch_size": patch, "embed_dim": dim, "depth": 1, "num_heads": 2 },
        "pretrained_cfg": {
            "input_size": [3, side, side], "interpolation": "bicubic", "crop_pct": 1.0, "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5],
        },
    });
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
}
