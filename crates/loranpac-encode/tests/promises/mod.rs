//! What every reader of this crate promises, whatever the bytes: no panic, finite features, and no more memory than is
//! stated here. The fuzz targets and the tests share this file.

pub mod adapters;
mod encoders;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use loranpac_encode::image::{Limits, decode};
use loranpac_encode::input::{InputOptions, Inputs};
use loranpac_encode::{Cache, Error, Modality, Preprocess, internals};
use peak_alloc::PeakAlloc;

/// A promise that is checked: its name, and how.
pub struct Promise {
    pub name: &'static str,
    /// Reads the bytes.
    pub read: fn(&Path, &[u8]),
    /// The most memory in MiB, besides `factor` bytes for each of the file. None: not bounded.
    pub memory: Option<usize>,
    pub factor: usize,
}

/// All promises. Each has a fuzz target of its name.
pub const PROMISES: &[Promise] = &[
    // The limit on decoding, tables of the decoders, and the directory of a TIFF file.
    Promise { name: "image", read: image, memory: Some(16 + 4 + 128), factor: 2 },
    Promise { name: "jpeg", read: jpeg, memory: Some(16 + 4), factor: 2 },
    // The largest input, a buffer that grows, and names; one byte of a packed archive can become 1,032.
    Promise { name: "archive", read: archive, memory: Some(8), factor: 1_032 * 4 },
    Promise { name: "table", read: table, memory: Some(40), factor: 1_032 * 16 },
    Promise { name: "list", read: list, memory: Some(1), factor: 256 },
    Promise { name: "weights", read: encoders::weights, memory: Some(256), factor: 256 },
    Promise { name: "settings", read: encoders::settings, memory: Some(256), factor: 256 },
    Promise { name: "tokenizer", read: encoders::tokenizer, memory: Some(256), factor: 256 },
    Promise { name: "adapter", read: adapters::adapter, memory: Some(256), factor: 256 },
    // A network is a program.
    Promise { name: "network", read: encoders::network, memory: None, factor: 0 },
    Promise { name: "answer", read: answer, memory: Some(1), factor: 32 },
    Promise { name: "cache", read: cache, memory: Some(1), factor: 32 },
    Promise { name: "preprocess", read: preprocess, memory: Some(4), factor: 64 },
];

/// Reads bytes as the promise of this name does, with files in `folder`; panics if it is not kept.
pub fn check(memory: &PeakAlloc, folder: &Path, name: &str, data: &[u8]) {
    let promise = PROMISES.iter().find(|promise| promise.name == name).unwrap();
    let before = memory.current_usage();
    memory.reset_peak_usage();
    (promise.read)(folder, data);
    let peak = memory.peak_usage().saturating_sub(before);
    if let Some(limit) = promise.memory {
        let limit = (limit << 20) + data.len() * promise.factor;
        assert!(peak <= limit, "{peak} bytes of memory for {} bytes; at most {limit}", data.len());
    }
}

fn image(_: &Path, data: &[u8]) {
    let limits = Limits { pixels: 1 << 20, bytes: 16 << 20 };
    match decode("x", data, &limits) {
        Ok(image) => {
            assert!(image.width > 0 && image.height > 0 && image.width * image.height <= 1 << 20);
            assert_eq!(image.pixels.len(), 3 * image.width * image.height);
        }
        Err(Error::Image { .. }) => {}
        Err(other) => panic!("{other}"),
    }
}

/// Bytes that begin as JPEG files do; the directory of a TIFF file may need more memory.
fn jpeg(folder: &Path, data: &[u8]) {
    if data.starts_with(&[0xff, 0xd8, 0xff]) {
        image(folder, data);
    }
}

/// A file of this name with the bytes.
fn file(folder: &Path, name: &str, data: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, data).unwrap();
    path
}

/// Reads all inputs of a source. After an error of one input the next is read; another error is the last.
fn inputs(path: &Path, modality: Modality) {
    for skip_bad in [false, true] {
        let options = InputOptions { largest: 1 << 20, skip_bad, ..InputOptions::new(modality) };
        let Ok(mut inputs) = Inputs::open(&[path.to_owned()], &options) else { continue };
        let hint = inputs.count_hint();
        let mut count = 0;
        while let Some(input) = inputs.next() {
            count += 1;
            match input {
                Ok(input) => assert!(!input.name.split('/').any(|part| part == "..") || path.ends_with("x.txt")),
                Err(error) if error.concerns_one_input() => {}
                Err(_) => assert!(inputs.next().is_none(), "the sequence ends with the error"),
            }
        }
        assert!(hint.is_none_or(|hint| count <= hint));
    }
}

fn archive(folder: &Path, data: &[u8]) {
    let name = match data {
        [b'P', b'K', ..] => "x.zip",
        [0x1f, 0x8b, ..] => "x.tar.gz",
        _ => {
            // The same archive, packed: with a correct checksum, fuzzing reaches the code behind it.
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(data).unwrap();
            inputs(&file(folder, "y.tar.gz", &packed.finish().unwrap()), Modality::Image);
            "x.tar"
        }
    };
    inputs(&file(folder, name, data), Modality::Image);
    inputs(&folder.join(name), Modality::Text);
}

fn table(folder: &Path, data: &[u8]) {
    match data {
        [b'P', b'A', b'R', ..] => inputs(&file(folder, "x.parquet", data), Modality::Text),
        [b'{', ..] => inputs(&file(folder, "x.jsonl", data), Modality::Text),
        _ => {
            inputs(&file(folder, "x.csv", data), Modality::Text);
            inputs(&file(folder, "x.tsv", data), Modality::Text);
            inputs(&folder.join("x.csv"), Modality::Image);
        }
    }
}

fn list(folder: &Path, data: &[u8]) {
    inputs(&file(folder, "x.txt", data), Modality::Image);
    inputs(&folder.join("x.txt"), Modality::Text);
}

fn answer(_: &Path, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for (count, dim) in [(1, 0), (1, 2), (2, 0), (2, 2)] {
        if let Ok(features) = internals::server_features(text, count, dim) {
            assert!(!features.is_empty() && features.len() % count == 0 && features.iter().all(|x| x.is_finite()));
            assert!(dim == 0 || features.len() == count * dim);
        }
    }
}

/// Features per input of the cache that is read.
const ROW: usize = 3;

fn cache(folder: &Path, data: &[u8]) {
    let digest = [7; 32];
    let name = "07".repeat(32) + ".rows";
    file(folder, &name, data);
    let keys: Vec<[u8; 32]> = data.chunks(32 + 4 * ROW + 8).filter_map(|r| r.first_chunk()).copied().collect();
    let mut cache = Cache::open(folder, &digest, ROW).unwrap();
    for key in &keys {
        if let Some(features) = cache.get(key).unwrap() {
            assert!(features.len() == ROW && features.iter().all(|x| x.is_finite()));
        }
        cache.put(*key, &[1.0; ROW]);
    }
    cache.flush().unwrap();
    drop(cache);
    // Whatever was damaged is there again.
    let mut cache = Cache::open(folder, &digest, ROW).unwrap();
    assert!(keys.iter().all(|key| cache.get(key).unwrap().is_some()));
}

fn preprocess(_: &Path, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let ways = [text.parse(), Preprocess::from_timm("x", text), Preprocess::from_transformers("x", text)];
    for preprocess in ways.into_iter().flatten() {
        let again: Preprocess = preprocess.to_string().parse().unwrap();
        assert_eq!(again, preprocess);
        let (height, width) = preprocess.size();
        if height * width <= 1 << 14 {
            let image = loranpac_encode::Image { width: 5, height: 2, pixels: (0..30).collect() };
            let mut planes = vec![0.0; 3 * height * width];
            preprocess.apply(&image, &mut planes);
            assert!(planes.iter().all(|x| x.is_finite()));
        }
    }
}
