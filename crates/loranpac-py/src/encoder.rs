//! Encoders of images and texts.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loranpac::internals::count;
use loranpac::memory::product;
use loranpac_encode::{Cache, Embedding, EmbeddingOptions, Inputs, Modality, OpenOptions, hex};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use crate::errors;
use crate::inputs::{Failure, PyInputs};
use crate::state::ensure;
use crate::threads::detached;

/// An encoder that was opened.
#[pyclass(frozen, module = "loranpac._engine")]
pub struct Encoder {
    encoder: Arc<dyn loranpac_encode::Encoder>,
    /// The cache of the latest call, while no call uses it. Opening one reads all of its keys.
    idle: Mutex<Option<Idle>>,
}

/// A cache that is open.
struct Idle {
    /// A forked process must not write to the file of its parent.
    process: u32,
    folder: PathBuf,
    digest: [u8; 32],
    cache: Cache,
}

#[pymethods]
impl Encoder {
    /// Opens an encoder: one that is built in, an address, a folder or a file.
    #[staticmethod]
    fn open(py: Python<'_>, name: String, options: Options, threads: usize) -> PyResult<Encoder> {
        let options = options.open(None)?;
        let encoder = detached(py, threads, || loranpac_encode::open(&name, &options))?;
        Ok(Encoder::new(encoder.map_err(errors::encode)?))
    }

    /// Finds the encoder with a digest, and its adapter, in their recorded places or elsewhere. `model` is the path of
    /// its model.
    #[staticmethod]
    fn find(
        py: Python<'_>,
        location: String,
        digest: String,
        model: PathBuf,
        options: Options,
        threads: usize,
    ) -> PyResult<Encoder> {
        let options = options.open(Some(&model))?;
        let encoder = detached(py, threads, || loranpac_encode::find(&location, &digest, &model, &options))?;
        Ok(Encoder::new(encoder.map_err(errors::encode)?))
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.encoder.name()
    }

    /// Features of an input.
    #[getter]
    fn dim(&self) -> usize {
        self.encoder.dim()
    }

    /// What it reads: "image" or "text".
    #[getter]
    fn modality(&self) -> &'static str {
        name_of(self.encoder.modality())
    }

    /// Number of layers.
    #[getter]
    fn layers(&self) -> usize {
        self.encoder.layers()
    }

    /// Digest of weights, architecture and preprocessing, in hexadecimal.
    #[getter]
    fn digest(&self) -> String {
        hex(&self.encoder.digest())
    }

    /// Features of inputs, a row for each, the layers side by side. The iterator gives texts, or (images) paths as texts,
    /// files as bytes, and arrays of pixels; it runs on the calling thread. `length` is their number, if it is known, and
    /// `what` stands for the inputs in messages. `progress` is called with the number of inputs that were encoded after
    /// each batch; an interrupt between batches ends the work.
    #[pyo3(signature = (inputs, length, what, layers, cache, threads, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        inputs: Bound<'py, PyIterator>,
        length: Option<usize>,
        what: String,
        layers: Option<Vec<usize>>,
        cache: Option<PathBuf>,
        threads: usize,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let row = product(&[self.encoder.dim(), layers.as_ref().map_or(1, Vec::len)]);
        let length = length.unwrap_or(0);
        if length > 0 {
            let what = format!("the features of {}", count(length, "input"));
            ensure(product(&[4, length, row]), &what, "encode fewer inputs at a time")?;
        }
        let failure = Failure::default();
        let inputs = PyInputs::new(inputs, what, self.encoder.modality(), failure.clone());
        let cache = cache.map(|folder| self.take_cache(py, folder, layers.as_deref())).transpose()?;
        let (kept, cache) = cache.map(|idle| ((idle.process, idle.folder, idle.digest), idle.cache)).unzip();
        let options = EmbeddingOptions { layers, ..EmbeddingOptions::default() };
        let embedding = Embedding::new(Inputs::of(inputs), self.encoder.clone(), cache, options);
        let mut embedding = embedding.map_err(errors::encode)?;
        let mut values = Vec::with_capacity(length * row);
        loop {
            // Inputs are read on the calling thread, where Python's objects belong, and encoded on all of them.
            let interrupted = |error| interrupted(py, error, values.len() / row, length);
            let batch = py.check_signals().map_err(interrupted).and_then(|()| {
                embedding.take().map_err(|error| failure.take().map_or_else(|| errors::encode(error), interrupted))
            })?;
            if batch.is_empty() {
                break;
            }
            let encoded = detached(py, threads, || embedding.encode(batch))?.map_err(errors::encode)?;
            values.extend(encoded.features);
            if let Some(progress) = &progress {
                progress.call1((values.len() / row,))?;
            }
        }
        if let (Some(cache), Some((process, folder, digest))) = (embedding.into_cache(), kept) {
            *self.idle() = Some(Idle { process, folder, digest, cache });
        }
        let rows = values.len() / row;
        PyArray1::from_vec(py, values).reshape([rows, row])
    }
}

impl Encoder {
    fn new(encoder: Box<dyn loranpac_encode::Encoder>) -> Encoder {
        Encoder { encoder: encoder.into(), idle: Mutex::default() }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Option<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cache in a folder: the one of the latest call, or a new one if another call uses that.
    fn take_cache(&self, py: Python<'_>, folder: PathBuf, layers: Option<&[usize]>) -> PyResult<Idle> {
        let (process, digest) = (std::process::id(), Embedding::cache_digest(&*self.encoder, layers));
        let same = |idle: &Idle| (idle.process, &*idle.folder, idle.digest) == (process, Path::new(&folder), digest);
        let idle = self.idle().take();
        if let Some(idle) = idle.filter(same) {
            return Ok(idle);
        }
        let row = self.encoder.dim() * layers.map_or(1, <[usize]>::len);
        let cache = py.detach(|| Cache::open(&folder, &digest, row)).map_err(errors::encode)?;
        if let Some(reason) = cache.unwritable() {
            let words = format!("the cache {} cannot be written, and is only read: {reason}", folder.display());
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(words)?, 2)?;
        }
        Ok(Idle { process, folder, digest, cache })
    }
}

/// The name of what an encoder reads.
pub fn name_of(modality: Modality) -> &'static str {
    match modality {
        Modality::Image => "image",
        Modality::Text => "text",
    }
}

/// Returns whether a name stands for an encoder, rather than being one that a user has chosen.
#[pyfunction]
pub fn is_encoder(name: &str) -> bool {
    loranpac_encode::is_encoder(name)
}

/// Where the adapter of a model is.
#[pyfunction]
pub fn find_adapter(recorded: PathBuf, model: PathBuf) -> PathBuf {
    loranpac_encode::find_adapter(&recorded, &model)
}

/// How an encoder is opened: the keys of a dictionary, of which others are ignored.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Options {
    preprocess: Option<String>,
    timeout: f64,
    adapter: Option<PathBuf>,
    concat: bool,
}

impl Options {
    /// The options of the engine. The adapter of a model is looked for where encoders are.
    fn open(self, model: Option<&Path>) -> PyResult<OpenOptions> {
        let Options { preprocess, timeout, adapter, concat } = self;
        let refused = |_| errors::value(format!("timeout: a number of seconds above 0 is expected, not {timeout}"));
        let timeout = Duration::try_from_secs_f64(timeout).map_err(refused)?;
        let adapter = adapter
            .map(|place| model.map_or_else(|| place.clone(), |model| loranpac_encode::find_adapter(&place, model)));
        Ok(OpenOptions { preprocess, adapter, concat, timeout })
    }
}

/// An interrupt with the number of inputs that were encoded; other errors unchanged.
fn interrupted(py: Python<'_>, error: PyErr, done: usize, length: usize) -> PyErr {
    let all = if length > 0 { format!(" of {length}") } else { String::new() };
    errors::interrupt(py, error, || format!("interrupted after {done}{all} inputs were encoded"))
}
