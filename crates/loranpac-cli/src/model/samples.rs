//! Samples of a model: files of features, or images and texts for its encoder.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, anyhow, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use loranpac::{Features, Label, memory};
use loranpac_data::text::escape;
use loranpac_data::{EncodedBy, Options, Reader, Split, formats};
use loranpac_encode::input::looks_raw;
use loranpac_encode::{
    Cache, Encoder, InputOptions, Limits, RawOptions, RawSource, Watch, encoded_by, is_encoder, read_raw,
};
use loranpac_store::{Identity, Manifest, Reference};

use super::{ROWS, find_or_new, raw, shown};
use crate::encoding::Encoding;
use crate::progress::Count;
use crate::say::note;
use crate::words::count;

/// The most bytes of texts from standard input.
const MOST_STDIN: u64 = 256 << 20;

/// How samples are read.
#[derive(clap::Args, Clone)]
pub struct Samples {
    /// Column, key or array with the labels [default: y, labels, label, class or target]
    #[arg(long, value_name = "NAME", help_heading = "Samples")]
    pub label: Option<String>,
    /// Column, key or array with the features [default: x, embeddings, embedding or features]
    #[arg(long, value_name = "NAME", help_heading = "Samples")]
    pub features: Option<String>,
    /// Column, key or array with the weights of samples, from 0 on, in files of features: a sample of weight 2 is learned as if it
    /// were there twice [default: the array weight or weight_train, if there is one]
    #[arg(long, value_name = "NAME", help_heading = "Samples")]
    pub weights: Option<String>,
    /// Format of standard input (file name -), or of files of features with another extension: csv, jsonl, npy, npz,
    /// parquet, ...; standard input can also be txt, a text in each line
    #[arg(long, value_name = "NAME", help_heading = "Samples")]
    pub format: Option<String>,
    /// Which samples to read of a file with x_train and x_test, with a column split, or of a folder with folders train and
    /// test [default: train; predict, eval and calibrate: test]
    #[arg(long, value_name = "SPLIT", help_heading = "Samples",
        value_parser = PossibleValuesParser::new(["train", "test"]).map(|name| match name.as_str() {
            "test" => Split::Test,
            _ => Split::Train,
        }))]
    pub split: Option<Split>,
    /// The encoder: a folder with model.safetensors and config.json, a .safetensors or .onnx file, the address of an
    /// embedding server, or one that is built in (text-ngrams, image-basic); for features, any name [default: the model's]
    #[arg(long, value_name = "ENCODER", help_heading = "Encoder")]
    pub encoder: Option<String>,
    #[command(flatten)]
    pub encoding: Encoding,
}

/// The model that samples are read for.
pub struct Target {
    path: PathBuf,
    dim: usize,
    /// Its encoder.
    pub encoder: Identity,
    /// Labels of its classes, and of the files that it will have learned before the next one.
    pub labels: Vec<Label>,
    /// The class of all samples, which have no labels of their own.
    class: Option<Label>,
    /// Whether the samples are read twice.
    twice: bool,
    /// Whether the progress of encoding is not shown.
    quiet: bool,
    opened: OnceLock<Arc<dyn Encoder>>,
    /// Features that were encoded, for the second time if no cache stores them. The file has no name, so that the system
    /// removes it even if the process is killed.
    interim: OnceLock<File>,
    /// The images or texts of standard input, which can be read only once.
    stdin: OnceLock<RawSource<'static>>,
}

impl Target {
    /// A model with a number of features, an encoder and labels.
    pub fn new(path: &Path, dim: usize, encoder: Identity, labels: &[Label]) -> Target {
        let (path, labels) = (path.to_owned(), labels.to_vec());
        let (opened, interim, stdin) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Target { path, dim, encoder, labels, class: None, twice: false, quiet: false, opened, interim, stdin }
    }

    /// The model with this manifest.
    pub fn of(path: &Path, manifest: &Manifest) -> Target {
        let labels: Vec<Label> = manifest.classes.iter().map(|class| class.label.clone()).collect();
        Target::new(path, manifest.lift.dim, manifest.encoder.identity(), &labels)
    }

    /// The same, for a command that reads samples twice.
    pub fn read_twice(self, quiet: bool) -> Target {
        Target { twice: true, quiet, ..self }
    }

    /// The same, for samples of one class, as the user writes it.
    pub fn of_class(self, class: Option<&str>) -> Result<Target> {
        let class = class.map(|text| find_or_new(&self.labels, text)).transpose()?;
        Ok(Target { class, ..self })
    }

    /// Whether the encoder's place is recorded.
    fn has_encoder(&self) -> bool {
        self.encoder.reference.as_ref().is_some_and(|reference| reference.location.is_some())
    }

    /// A cache for as long as the process runs, above one that stores nothing.
    fn interim(&self, row: usize, below: Option<Cache>) -> Result<Cache> {
        let file = match self.interim.get() {
            Some(file) => file,
            None => {
                let new = tempfile::tempfile().context("cannot create a temporary file")?;
                self.interim.get_or_init(|| new)
            }
        };
        Ok(Cache::temporary(file.try_clone().context("cannot open a temporary file")?, row, below)?)
    }

    /// Refuses another encoder than the model's.
    fn require(&self, encoder: &Identity) -> Result<()> {
        match self.encoder.differs(encoder) {
            Some(difference) => bail!("another encoder: {}", escape(&difference)),
            None => Ok(()),
        }
    }
}

/// The identity of the encoder that a file names.
pub fn identity_of(by: &EncodedBy) -> Identity {
    let reference = Reference { digest: by.digest.clone(), ..Reference::default() };
    Identity { name: Some(by.name.clone()), reference: Some(reference) }
}

impl Samples {
    /// Returns the options; `split` is the default split.
    pub fn options(&self, split: Split) -> Options {
        let (label, features, format) = (self.label.clone(), self.features.clone(), self.format.clone());
        let (split, weights) = (self.split.unwrap_or(split), self.weights.clone());
        Options { split, fallback: false, label, features, weights, format }
    }

    /// Opens the training samples, or all samples, of a file.
    pub fn open(&self, path: &Path, target: &Target) -> Result<Reader> {
        self.read(path, self.options(Split::Train), target)
    }

    /// Opens the test samples, or all samples, of a file, and prints the chosen split if it has two. With `fallback`,
    /// the training samples are read if a file has no others.
    pub fn open_test(&self, path: &Path, target: &Target, fallback: bool) -> Result<Reader> {
        let fallback = fallback && self.split.is_none();
        let reader = self.read(path, Options { fallback, ..self.options(Split::Test) }, target)?;
        if let (Some(split), None) = (reader.split(), self.split) {
            let (read, other) = (split.name(), split.other().name());
            note!("note: {}: reading the {read} split; --split {other} reads the other", shown(path));
        }
        Ok(reader)
    }

    /// Opens the training samples, or all samples, of a file with labels.
    pub fn open_labelled(&self, path: &Path, target: &Target) -> Result<Reader> {
        let reader = self.open(path, target)?;
        match &target.class {
            None => labelled(path, reader),
            Some(_) if reader.has_labels() => {
                bail!("{}: its samples have labels of their own; leave out --class", shown(path))
            }
            Some(class) => Ok(reader.with_class(class.clone())),
        }
    }

    /// Returns the encoder that the user names with --encoder: an encoder that exists, or else a name.
    pub fn named_encoder(&self, target: &Target) -> Result<Option<Identity>> {
        let Some(name) = &self.encoder else { return Ok(None) };
        if !is_encoder(name) {
            return Ok(Some(Identity::named(name)));
        }
        let encoder = self.encoder_of(target)?;
        if encoder.dim() != target.dim {
            let found = count(encoder.dim(), "feature");
            bail!("--encoder {name}: it computes {found}, but the model was made for {}", target.dim);
        }
        Ok(Some(self.encoding.identity(&*encoder, name)?))
    }

    /// Returns whether samples can be read only once: features from standard input. Images and texts are held in memory.
    pub fn read_once(&self, path: &Path) -> bool {
        path.as_os_str() == "-" && self.format.as_deref() != Some("txt") && self.encoding.text.is_none()
    }

    fn read(&self, path: &Path, options: Options, target: &Target) -> Result<Reader> {
        if let Some(named) = self.named_encoder(target)? {
            target.require(&named)?;
        }
        let stdin = path.as_os_str() == "-";
        if stdin && self.format.is_none() && target.has_encoder() {
            bail!("standard input: name its format with --format: txt (a text in each line), csv, jsonl, npy, ...");
        }
        if stdin && self.format.as_deref() == Some("txt") && self.encoding.text.is_some() {
            bail!("standard input: lines of txt have no columns; leave out --text, or name the format of a table");
        }
        let is_raw = match stdin {
            true => !self.read_once(path),
            false => self.features.is_none() && looks_raw(path, self.encoding.text.as_deref()),
        };
        if let (true, Some(_)) = (is_raw, &self.weights) {
            bail!(
                "{0}: --weights is for files of features; encode them first: loranpac embed ENCODER {0} -o FILE.npz, and add the \
                 array weight",
                shown(path)
            );
        }
        if let (true, false, Some(format)) = (is_raw, stdin, &self.format) {
            bail!(
                "{0}: --format is for standard input and for features; leave it out, or read the file as standard input: - \
                 --format {1} < {0}",
                shown(path),
                escape(format)
            );
        }
        let reader = match is_raw {
            false => self.read_features(path, &options, target)?,
            true if stdin => {
                self.check_encoder(path, target)?;
                let source = match target.stdin.get() {
                    Some(source) => source,
                    None => {
                        let read = standard_input(self.format.as_deref().unwrap_or("txt"))?;
                        target.stdin.get_or_init(|| read)
                    }
                };
                self.read_raw(source, path, options, target)?
            }
            true => self.read_raw(&RawSource::Path(path), path, options, target)?,
        };
        if reader.dim() != target.dim {
            let found = count(reader.dim(), "feature");
            bail!("{}: its samples have {found}, but the model was made for {}", shown(path), target.dim);
        }
        if let Some(by) = reader.encoder() {
            target.require(&identity_of(by)).with_context(|| shown(path))?;
        }
        Ok(reader)
    }

    /// Opens features. A table that has other contents may be one of texts whose column has no usual name.
    fn read_features(&self, path: &Path, options: &Options, target: &Target) -> Result<Reader> {
        let table = path.extension().is_some_and(|e| ["csv", "tsv", "jsonl", "parquet"].iter().any(|name| e == *name));
        match Reader::open(path, options) {
            Ok(reader) if !table || !target.has_encoder() || reader.dim() == target.dim => Ok(reader),
            Ok(_) | Err(loranpac_data::Error::Missing { .. }) if table && target.has_encoder() => bail!(
                "{}: neither {} nor a column of texts or image paths with a usual name; name the column with --text, and that \
                 of the labels with --label",
                shown(path),
                count(target.dim, "feature")
            ),
            outcome => Ok(outcome?),
        }
    }

    /// Refuses images and texts if there is no encoder for them.
    fn check_encoder(&self, path: &Path, target: &Target) -> Result<()> {
        if self.encoder.is_none() && target.encoder.place().is_none() {
            let known = match &target.encoder.name {
                Some(name) => format!("the model records only the name of its own ({}), not where it is", escape(name)),
                None => "the model has none".to_owned(),
            };
            bail!(
                "{0}: images and texts need an encoder, and {known}; give --encoder ENCODER, or encode them first: loranpac \
                 embed ENCODER {0} -o FILE.npz",
                shown(path)
            );
        }
        Ok(())
    }

    /// Opens images or texts. `path` is their name.
    fn read_raw(&self, source: &RawSource<'_>, path: &Path, options: Options, target: &Target) -> Result<Reader> {
        self.check_encoder(path, target)?;
        let encoder = self.encoder_of(target)?;
        let inputs = InputOptions {
            column: self.encoding.text.clone(),
            label: options.label,
            split: Some(options.split),
            skip_bad: self.encoding.skip_bad,
            ..InputOptions::new(encoder.modality())
        };
        let mut cache = self.encoding.cache(&*encoder, None)?;
        // Features that are there stay there for the second time, even if a cache has become writable since the first.
        if target.twice && (target.interim.get().is_some() || !cache.as_ref().is_some_and(Cache::stores)) {
            cache = Some(target.interim(encoder.dim(), cache)?);
        }
        let options = RawOptions {
            inputs,
            fallback: options.fallback,
            cache,
            limits: Limits::default(),
            known: target.labels.clone(),
        };
        let (name, quiet) = (raw(path), target.quiet);
        let watch = |total: Option<usize>| -> Option<Watch> {
            let bar = Count::new(&name, total.map(|total| total as u64), quiet);
            Some(Box::new(move |inputs| bar.add(inputs as u64)))
        };
        Ok(read_raw(source, encoder, options, watch)?)
    }

    /// Opens the encoder of raw inputs: the one that the user names, or the model's. It must be the model's.
    fn encoder_of(&self, target: &Target) -> Result<Arc<dyn Encoder>> {
        if let Some(encoder) = target.opened.get() {
            return Ok(encoder.clone());
        }
        let reference = target.encoder.reference.as_ref();
        let options = self.encoding.options_of(reference, &target.path);
        let encoder: Arc<dyn Encoder> = match (&self.encoder, target.encoder.place()) {
            (Some(name), _) => loranpac_encode::open(name, &options)?.into(),
            (None, Some((place, digest))) => loranpac_encode::find(place, digest, &target.path, &options)?.into(),
            (None, None) => bail!("{} has no encoder; give one with --encoder", shown(&target.path)),
        };
        target.require(&identity_of(&encoded_by(&*encoder)))?;
        Ok(target.opened.get_or_init(|| encoder).clone())
    }
}

/// Reads standard input: a table, or lines of text.
fn standard_input(format: &str) -> Result<RawSource<'static>> {
    const NAME: &str = "standard input";
    let table = formats::find(format);
    if table.is_none() && format != "txt" {
        bail!("{NAME}: there is no format {format:?}; texts can be txt, csv, tsv, jsonl or parquet");
    }
    let mut bytes = Vec::new();
    io::stdin().lock().take(MOST_STDIN + 1).read_to_end(&mut bytes).context("cannot read standard input")?;
    if bytes.len() as u64 > MOST_STDIN {
        bail!("{NAME}: more than {} MiB of texts; give a file instead", MOST_STDIN >> 20);
    }
    if let Some(table) = table {
        return Ok(RawSource::Table(NAME, bytes.into(), table));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        anyhow!("{NAME}: line {line} is not valid UTF-8; convert the text to UTF-8")
    })?;
    Ok(RawSource::Lines(NAME, text.into()))
}

/// Refuses samples without labels.
pub fn labelled(path: &Path, reader: Reader) -> Result<Reader> {
    if !reader.has_labels() {
        match path.is_dir() {
            true => bail!(
                "{}: no labels; put the images of each class into a folder, CLASS/*, or learn them with --class NAME",
                shown(path)
            ),
            false => bail!("{}: no labels; name their column, key or array with --label", shown(path)),
        }
    }
    Ok(reader)
}

/// Lists the inputs that were skipped.
pub fn note_skipped(reader: &Reader) {
    reader.skipped().iter().for_each(|reason| note!("skipped: {}", escape(reason)));
}

/// All samples of a file.
pub struct All {
    x: Vec<f32>,
    /// Their labels, if they have any.
    pub labels: Option<Vec<Label>>,
    weights: Option<Vec<f64>>,
}

impl All {
    /// Views them as samples of `dim` features, with their weights.
    pub fn features(&self, dim: usize) -> Result<Features<'_>> {
        weighted(&self.x, dim, self.weights.as_deref())
    }
}

/// Views samples of `dim` features, with their weights.
pub fn weighted<'a>(x: &'a [f32], dim: usize, weights: Option<&'a [f64]>) -> Result<Features<'a>> {
    let x = Features::new(x, dim)?;
    Ok(match weights {
        Some(weights) => x.weighted(weights)?,
        None => x,
    })
}

/// Reads everything in a file: for commands that need all of it at once.
pub fn read_all(path: &Path, mut reader: Reader) -> Result<All> {
    let (mut x, mut labels, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    let labelled = reader.has_labels();
    while let Some(batch) = reader.next(ROWS)? {
        memory::grow(&mut x, batch.x.len())?;
        x.extend(batch.x);
        labels.extend(batch.labels.unwrap_or_default());
        weights.extend(batch.weights.unwrap_or_default());
    }
    note_skipped(&reader);
    if x.is_empty() {
        bail!("{}: there are no samples in it", shown(path));
    }
    let weights = Some(weights).filter(|weights| !weights.is_empty());
    Ok(All { x, labels: labelled.then_some(labels), weights })
}
