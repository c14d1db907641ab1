//! Errors of encoders.

use std::io;
use std::path::PathBuf;

use crate::modality::Modality;
use crate::problem::{ImageProblem, OnnxProblem, ServerProblem};

/// Why an encoder or an input was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The cache of features cannot be used.
    #[error("cannot use the cache {path}: {source}; delete it, or go on without a cache", path = path.display())]
    Cache {
        /// Its file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The cache has features of other weights.
    #[error(
        "the answers of {encoder} are not those in the cache {path}: its model has changed, or its answers vary; delete that \
         file, or go on without a cache",
        path = path.display()
    )]
    OtherAnswers {
        /// Name of the encoder.
        encoder: String,
        /// File of the cache.
        path: PathBuf,
    },
    /// A server cannot be used.
    #[error("the embedding server {address}: {problem}")]
    Server {
        /// Its address.
        address: String,
        /// What is wrong.
        problem: ServerProblem,
    },
    /// An ONNX file cannot be used.
    #[error("{path}: {problem}", path = path.display())]
    Onnx {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: OnnxProblem,
    },
    /// A source has no inputs of a split.
    #[error("{path}: no input whose split is {split}; read the other split with `split`", path = path.display())]
    NoSplit {
        /// The source.
        path: PathBuf,
        /// The split.
        split: &'static str,
    },
    /// An input has no label, although others have one.
    #[error("{path}: {name}: no label, but other inputs have one", path = path.display())]
    NoLabel {
        /// The source.
        path: PathBuf,
        /// The input.
        name: String,
    },
    /// The encoder of a model is not found.
    #[error(
        "the encoder {location} with the digest {}... is not found (tried: {tried}); give its place, or name a folder \
         that contains it in the environment variable LORANPAC_ENCODERS",
        &digest[..12.min(digest.len())]
    )]
    NotFound {
        /// Where the encoder was.
        location: String,
        /// Its digest.
        digest: String,
        /// Where it was looked for, and what was found there.
        tried: String,
    },
    /// The adapter of a model is not found.
    #[error(
        "the adapter {adapter} of the model is not found; give its place with `adapter`, or name its folder in the environment \
         variable LORANPAC_ENCODERS",
        adapter = adapter.display()
    )]
    AdapterNotFound {
        /// Where the adapter was.
        adapter: PathBuf,
    },
    /// Another adapter than that of a model, or one of another encoder.
    #[error(
        "the adapter {adapter} is not the one of the model, or does not belong to this encoder ({reason}); give the place of \
         the model's own with `adapter`",
        adapter = adapter.display()
    )]
    OtherAdapter {
        /// The adapter.
        adapter: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The address in a model is not contacted unless the user gives it.
    #[error(
        "the encoder of the model is the embedding server {address}; inputs are sent there only if you give that \
         address yourself"
    )]
    ServerInModel {
        /// The address.
        address: String,
    },
    /// There is no such encoder.
    #[error(
        "there is no encoder {name}: give a folder with model.safetensors and config.json, a .safetensors or .onnx file, \
         the address of an embedding server, text-ngrams, or image-basic"
    )]
    UnknownEncoder {
        /// The name.
        name: String,
    },
    /// The encoder has no preprocessing that could be changed.
    #[error("the preprocessing of {encoder} cannot be changed; leave out `preprocess`")]
    NoPreprocess {
        /// The encoder.
        encoder: String,
    },
    /// The encoder reads another kind of input.
    #[error("the encoder {encoder} reads {}, not {}", plural(*wanted), plural(*given))]
    Modality {
        /// Name of the encoder.
        encoder: String,
        /// What it reads.
        wanted: Modality,
        /// What it was given.
        given: Modality,
    },
    /// No layers, the same layer twice, or an encoder without features.
    #[error("the layers of {encoder} cannot be used: name at least one, and each once")]
    Layers {
        /// Name of the encoder.
        encoder: String,
    },
    /// The encoder gave something else than features.
    #[error(
        "the encoder {encoder} gave features that are not finite, above 1e12, or of another number; its weights may be damaged"
    )]
    Features {
        /// Name of the encoder.
        encoder: String,
    },
    /// A layer that the encoder does not have.
    #[error("the encoder {encoder} has layers 0 to {}, not {layer}", layers - 1)]
    Layer {
        /// Name of the encoder.
        encoder: String,
        /// Number of its layers.
        layers: usize,
        /// The layer that was asked for.
        layer: usize,
    },
    /// An image cannot be used.
    #[error("{name}: {problem}")]
    Image {
        /// Its file, or its place in an archive.
        name: String,
        /// What is wrong with it.
        problem: ImageProblem,
    },
    /// One input cannot be used.
    #[error("{name}: {reason}")]
    Input {
        /// Its file, or its place in an archive.
        name: String,
        /// Why.
        reason: String,
    },
    /// A table cannot be used.
    #[error(transparent)]
    Table(#[from] loranpac_data::Error),
    /// An archive cannot be used.
    #[error("{path}: the archive cannot be read: {reason}", path = path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A path is no source of inputs.
    #[error(
        "{path}: not an image, a folder, an archive (tar, tar.gz, tgz, zip), a table (csv, tsv, jsonl, parquet) or a list \
         of paths (txt)",
        path = path.display()
    )]
    UnknownSource {
        /// The path.
        path: PathBuf,
    },
    /// A folder or an archive has none of the wanted files.
    #[error("{path}: no {} in it", plural(*modality), path = path.display())]
    NoInputs {
        /// The folder or archive.
        path: PathBuf,
        /// What was looked for.
        modality: Modality,
    },
    /// A folder or an archive has a file of another kind.
    #[error(
        "{path}: {name} is not {}; remove it, or skip such files with `skip-bad`",
        if *modality == Modality::Image { "an image" } else { "a text (.txt)" },
        path = path.display()
    )]
    OtherFile {
        /// The folder or archive.
        path: PathBuf,
        /// The file.
        name: String,
        /// What was looked for.
        modality: Modality,
    },
    /// A tag that only some inputs have.
    #[error("{name}: no {tag}, but other inputs have one")]
    SomeWithout {
        /// The input without it.
        name: String,
        /// Label, split or domain.
        tag: &'static str,
    },
    /// A label, a domain or a name is too long for a feature file.
    #[error("{name}: a label, a domain or a name is longer than {limit} bytes")]
    LongTag {
        /// The beginning of the input's name.
        name: String,
        /// The most bytes.
        limit: usize,
    },
    /// No input was left.
    #[error("none of the inputs can be used")]
    NothingUsable,
    /// The inputs of an experiment have no splits.
    #[error(
        "the inputs have no splits; an experiment needs training and test samples: folders train and test, or a column \
         split"
    )]
    NoSplits,
    /// The inputs of an experiment have no labels.
    #[error("the inputs have no labels; put them into a folder for each class, or name the column with `label`")]
    NoLabels,
    /// The inputs of an experiment have one split only.
    #[error("there are no {} samples; an experiment needs training and test samples", adjective(split))]
    EmptySplit {
        /// The split without inputs.
        split: &'static str,
    },
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] loranpac::Error),
    /// The folders of a data set have no known meaning.
    #[error("{path}: {name}: {reason}", path = path.display())]
    Layout {
        /// The folder or archive.
        path: PathBuf,
        /// The file that does not fit.
        name: String,
        /// Why.
        reason: String,
    },
    /// A description of preprocessing cannot be used.
    #[error("{place}: {problem}")]
    Preprocess {
        /// The file, or the text on the command line.
        place: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file of weights is damaged.
    #[error("{path}: {reason}", path = path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// No architecture has the names of a file's tensors.
    #[error("{path}: no supported architecture has a tensor {name} (supported are ViT, DeiT, DINOv2, CLIP and BERT)", path = path.display())]
    Architecture {
        /// The file.
        path: PathBuf,
        /// The first of its tensors.
        name: String,
    },
    /// A tensor is missing.
    #[error("{path}: tensor {name} is missing", path = path.display())]
    TensorMissing {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
    },
    /// A tensor has another shape.
    #[error("{path}: tensor {name} has shape {found:?} instead of {expected:?}", path = path.display())]
    TensorShape {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The shape that follows from the other tensors.
        expected: Vec<usize>,
        /// Its shape.
        found: Vec<usize>,
    },
    /// A tensor has a type of element that is not read.
    #[error("{path}: tensor {name} has type {dtype} (convert it to F32, F16 or BF16)", path = path.display())]
    TensorType {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Its type.
        dtype: String,
    },
    /// A tensor has a number that is not finite.
    #[error("{path}: tensor {name} has the number {number}; the file is damaged, or its model has diverged", path = path.display())]
    TensorNumber {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The number.
        number: f32,
    },
    /// A tensor that the architecture does not have: the model would compute something else.
    #[error("{path}: tensor {name} has no place in a {model} that loranpac supports", path = path.display())]
    TensorUnknown {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The architecture that was recognised.
        model: &'static str,
    },
    /// A setting of a model is not supported.
    #[error("{path}: {reason}", path = path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A tokenizer cannot be read, or does not fit its model.
    #[error("{path}: {reason}", path = path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A setting of training cannot be used.
    #[error("`{name}`: {reason}")]
    Adapt {
        /// The setting.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// There is nothing to tell apart.
    #[error(
        "adaptation needs samples of two classes or more, and there {} of {}",
        if *samples == 1 { "is 1 sample".to_owned() } else { format!("are {samples} samples") },
        if *classes == 1 { "1 class".to_owned() } else { format!("{classes} classes") }
    )]
    TooFewClasses {
        /// Number of classes.
        classes: usize,
        /// Number of samples.
        samples: usize,
    },
    /// Training diverged at every rate that was tried.
    #[error("the loss of epoch {epoch} is not finite, even at a rate of {rate:e}; lower `rate`, or check the inputs")]
    Diverged {
        /// The epoch, counted from 1.
        epoch: usize,
        /// The last rate.
        rate: f64,
    },
    /// A file of an adapter cannot be used.
    #[error("{path}: {reason}", path = path.display())]
    Adapter {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// An adapter belongs to another encoder.
    #[error("the adapter belongs to the encoder {adapter}, not to {given}")]
    OtherEncoder {
        /// Name of the adapter's encoder.
        adapter: String,
        /// Name of the encoder that was given.
        given: String,
    },
    /// The encoder is no transformer that modules could be trained in.
    #[error(
        "{encoder} cannot be adapted: only transformers from safetensors files can; give the folder of a ViT or a BERT"
    )]
    NoAdapter {
        /// The encoder.
        encoder: String,
    },
    /// Another thread has stopped the work.
    #[error("stopped")]
    Stopped,
    /// A text cannot be divided into tokens.
    #[error("a text cannot be divided into tokens: {reason}")]
    Tokenize {
        /// What the tokenizer reports.
        reason: String,
    },
}

impl Error {
    /// Whether the error is one of a single input, after which others can be read: what `--skip-bad` skips.
    pub fn concerns_one_input(&self) -> bool {
        matches!(self, Error::Input { .. } | Error::Image { .. } | Error::Read { .. })
    }
}

fn adjective(split: &str) -> &str {
    if split == "train" { "training" } else { split }
}

fn plural(modality: Modality) -> &'static str {
    match modality {
        Modality::Image => "images",
        Modality::Text => "texts",
    }
}
