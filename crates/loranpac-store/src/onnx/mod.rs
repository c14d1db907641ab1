//! Models as ONNX graphs, for any runtime.
//!
//! Input `x` (float, batch x d); outputs `scores` (float, batch x c), `label_index` (int64, batch: the first of the
//! highest scores) and, if asked for, `probabilities` (float, batch x c). Labels, lift and versions are in the model's
//! `metadata_props`. Opset 17, IR version 8.
//!
//! In half precision P and `2^k W` are stored as float16 and cast to float32 before they are used (`Gemm`'s alpha takes
//! `2^k` back); input, products and outputs are float32. The file is half as large; speed and memory are the same.

mod graph;
mod proto;
mod read;
mod tensor;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use loranpac_data::AtomicFile;

pub use read::{OnnxMetadata, read_metadata};

use crate::error::Error;
use crate::inference::Inference;
use crate::output;
use crate::precision::{Encoding, Precision};
use proto::Message;
use tensor::Tensor;

/// The value of `format` in the metadata.
pub const FORMAT: &str = "loranpac-onnx";
/// The version that is written and read.
pub const VERSION: u32 = 1;

/// Protobuf messages are limited to 2^31 - 1 bytes; the rest is for the graph and the labels.
const LARGEST_MODEL: u64 = 2_000_000_000;
/// External tensors begin at multiples of this, so that runtimes can map them: pages of 4 KiB, and Windows' 64 KiB.
const ALIGNMENT: u64 = 1 << 16;

/// Options of an export.
#[derive(Debug, Clone)]
pub struct OnnxOptions {
    /// How P and W are stored.
    pub precision: Precision,
    /// Adds the output `probabilities`, the softmax of `scores / temperature`; the model must have a temperature.
    pub probabilities: bool,
    /// If P and W together have more bytes than this, they are written to a separate file, `NAME.onnx.data`.
    pub embed_limit: u64,
}

impl Default for OnnxOptions {
    fn default() -> Self {
        OnnxOptions { precision: Precision::F32, probabilities: false, embed_limit: LARGEST_MODEL }
    }
}

/// The files that were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The model.
    pub model: PathBuf,
    /// P and W, if they are not in the model; the model refers to this file by name, in its own folder.
    pub data: Option<PathBuf>,
    /// Bytes of both files.
    pub bytes: u64,
}

/// Writes a model as an ONNX graph. P is generated and written in strips; there is never a partial file at the
/// destination.
pub fn export(model: &Inference, path: &Path, options: &OnnxOptions) -> Result<Exported, Error> {
    model.check()?;
    let encoding = Encoding::of_weights(model.weights()?.columns(), model.labels(), options.precision)?;
    let graph = graph::build(model, encoding, options.probabilities)?.message(model.lift.dim);
    let tensors = tensor::tensors(model, encoding)?;
    let head = head(model, options.precision).map_err(|e| Error::write(path)(e.into()))?;
    let bytes = tensors.iter().map(|tensor| tensor.bytes).fold(0, u64::saturating_add);
    if bytes > options.embed_limit.min(LARGEST_MODEL) {
        outside(path, head, graph, &tensors)
    } else {
        inside(path, head, graph, &tensors)
    }
}

/// Writes P and W into the model.
fn inside(path: &Path, mut model: Message, graph: Message, tensors: &[Tensor<'_>]) -> Result<Exported, Error> {
    // Lengths precede contents in protobuf, so they are summed from the inside out.
    let mut length = graph.as_ref().len() as u64;
    let mut heads = Vec::new();
    for tensor in tensors {
        let mut head = tensor.head();
        head.begin(9, tensor.bytes);
        let mut framed = Message::default();
        framed.begin(5, head.as_ref().len() as u64 + tensor.bytes);
        let framed = [framed.as_ref(), head.as_ref()].concat();
        length += framed.len() as u64 + tensor.bytes;
        heads.push(framed);
    }
    model.begin(7, length);
    let bytes = model.as_ref().len() as u64 + length;
    let mut file = output::create(path)?;
    let write = |file: &mut AtomicFile| -> io::Result<()> {
        file.write_all(model.as_ref())?;
        file.write_all(graph.as_ref())?;
        for (head, tensor) in heads.iter().zip(tensors) {
            file.write_all(head)?;
            tensor.write(file)?;
        }
        Ok(())
    };
    write(&mut file).map_err(Error::write(path))?;
    file.replace().map_err(Error::write(path))?;
    Ok(Exported { model: path.to_owned(), data: None, bytes })
}

/// Writes P and W to a file next to the model.
fn outside(path: &Path, model: Message, graph: Message, tensors: &[Tensor<'_>]) -> Result<Exported, Error> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()).map(|name| format!("{name}.data")) else {
        return Err(Error::OnnxName { path: path.to_owned() });
    };
    let data_path = path.with_file_name(&name);
    let (mut offset, mut graph) = (0u64, graph);
    let mut data = output::create(&data_path)?;
    for tensor in tensors {
        let padding = offset.next_multiple_of(ALIGNMENT) - offset;
        let written = io::copy(&mut io::Read::take(io::repeat(0), padding), &mut data);
        written.and_then(|_| tensor.write(&mut data)).map_err(Error::write(&data_path))?;
        offset += padding;
        let place = [("location", name.clone()), ("offset", offset.to_string()), ("length", tensor.bytes.to_string())];
        // `data_location` 1 means external.
        let head = tensor.head().repeat(13, place.iter().map(|(key, value)| entry(key, value))).int(14, 1);
        graph = graph.bytes(5, head);
        offset += tensor.bytes;
    }
    data.sync().map_err(Error::write(&data_path))?;
    let model = model.bytes(7, graph);
    let mut file = output::create(path)?;
    file.write_all(model.as_ref()).map_err(Error::write(path))?;
    file.sync().map_err(Error::write(path))?;
    // An existing model may refer to existing data. It is removed first: a concurrent reader finds no model rather than
    // one with the wrong weights.
    if data_path.exists() {
        match fs::remove_file(path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(Error::write(path)(source)),
            _ => {}
        }
    }
    data.replace().map_err(Error::write(&data_path))?;
    file.replace().map_err(Error::write(path))?;
    let bytes = offset + model.as_ref().len() as u64;
    Ok(Exported { model: path.to_owned(), data: Some(data_path), bytes })
}

/// Returns the `ModelProto` before its graph.
fn head(model: &Inference, precision: Precision) -> Result<Message, serde_json::Error> {
    let mut texts = vec![
        ("format", FORMAT.to_owned()),
        ("format_version", VERSION.to_string()),
        ("loranpac_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("lift", serde_json::to_string(&model.lift)?),
        ("labels", serde_json::to_string(model.labels())?),
    ];
    if let Some(temperature) = model.classifier.temperature() {
        texts.push(("temperature", serde_json::to_string(&temperature)?));
    }
    let doc = match precision {
        Precision::F32 => "All numbers are float32.",
        Precision::F16 => "Initialisers are float16 and cast to float32 before use; everything else is float32.",
    };
    let opset = Message::default().bytes(1, "").int(2, 17);
    let head = Message::default().int(1, 8).bytes(2, "loranpac").bytes(3, env!("CARGO_PKG_VERSION"));
    Ok(head.bytes(6, doc).bytes(8, opset).repeat(14, texts.iter().map(|(key, value)| entry(key, value))))
}

/// Creates a `StringStringEntryProto`.
fn entry(key: &str, value: &str) -> Message {
    Message::default().bytes(1, key).bytes(2, value)
}
