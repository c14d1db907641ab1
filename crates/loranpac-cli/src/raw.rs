//! Raw data that a command encodes before it uses them.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use loranpac_bench::raw::RawPlace;
use loranpac_data::text::escape;
use loranpac_encode::{Embedding, EmbeddingOptions, Encoder, FeatureSet, InputOptions, Inputs, Limits, Needs};

use crate::encoding::Encoding;
use crate::progress::Count;
use crate::say::note;

/// The encoder of raw data, in commands that read features without one.
#[derive(clap::Args)]
pub struct RawArgs {
    /// Encode raw images or texts: a folder with model.safetensors and config.json, a .safetensors or .onnx file, the
    /// address of an embedding server, or one that is built in (text-ngrams, image-basic)
    #[arg(long, value_name = "ENCODER", help_heading = "Encoder")]
    pub encoder: Option<String>,
    /// Layers of the encoder, counted from 0 and separated by commas, for methods on several; the features are the last
    /// of the list [default: the last layer]
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "encoder", help_heading = "Encoder")]
    layers: Option<Vec<usize>>,
    #[command(flatten)]
    pub encoding: Encoding,
}

impl RawArgs {
    /// Opens the encoder, if there is one. Without it, options of encoders are refused.
    pub fn open(&self, quiet: bool) -> Result<Option<Raw<'_>>> {
        if let Some(encoder) = &self.encoder {
            return Raw::open(encoder, self.layers.as_deref(), &self.encoding, quiet).map(Some);
        }
        let Encoding { text, preprocess, adapter, skip_bad, cache, no_cache, .. } = &self.encoding;
        let given = [
            (text.is_some(), "--text"),
            (preprocess.is_some(), "--preprocess"),
            (adapter.is_some(), "--adapter"),
            (*skip_bad, "--skip-bad"),
            (cache.is_some(), "--cache"),
            (*no_cache, "--no-cache"),
        ];
        if let Some((_, flag)) = given.iter().find(|(given, _)| *given) {
            bail!("{flag} has no effect without --encoder");
        }
        Ok(None)
    }

    /// The options that encode the same data again.
    pub fn words(&self) -> Vec<String> {
        let layers =
            self.layers.as_ref().map(|layers| layers.iter().map(usize::to_string).collect::<Vec<_>>().join(","));
        let given = [
            ("--encoder", self.encoder.clone()),
            ("--layers", layers),
            ("--text", self.encoding.text.clone()),
            ("--preprocess", self.encoding.preprocess.clone()),
            ("--adapter", self.encoding.adapter.as_ref().map(|path| path.to_string_lossy().into_owned())),
        ];
        let words = given.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?])).flatten();
        let words = words.chain(self.encoding.concat.then(|| "--concat".to_owned()));
        words.chain(self.encoding.skip_bad.then(|| "--skip-bad".to_owned())).collect()
    }
}

/// An open encoder, and how inputs are encoded.
pub struct Raw<'a> {
    pub encoder: Arc<dyn Encoder>,
    /// As it was typed.
    name: &'a str,
    pub layers: Option<&'a [usize]>,
    pub encoding: &'a Encoding,
    quiet: bool,
}

impl<'a> Raw<'a> {
    /// Opens an encoder.
    pub fn open(name: &'a str, layers: Option<&'a [usize]>, encoding: &'a Encoding, quiet: bool) -> Result<Raw<'a>> {
        Ok(Raw { encoder: encoding.open(name)?, name, layers, encoding, quiet })
    }

    /// Returns how inputs are read.
    pub fn inputs(&self, label: Option<&str>) -> InputOptions {
        InputOptions {
            column: self.encoding.text.clone(),
            label: label.map(str::to_owned),
            skip_bad: self.encoding.skip_bad,
            ..InputOptions::new(self.encoder.modality())
        }
    }

    /// The inputs for methods that adapt the encoder; none if it is not a transformer, or adapted already. Adapters are kept beside the cache.
    pub fn place(&self, inputs: Vec<PathBuf>, options: InputOptions) -> Option<RawPlace> {
        let preprocess = self.encoding.preprocess.clone();
        let adapters = self.encoding.folder().map(|folder| folder.join("adapters"));
        let place = RawPlace { encoder: self.name.to_owned(), preprocess, inputs, options, adapters };
        place.fits(&*self.encoder).then_some(place)
    }

    /// Encodes inputs, with a progress bar, and lists those that were skipped.
    pub fn gather(&self, inputs: Inputs, needs: Needs) -> Result<FeatureSet> {
        let cache = self.encoding.cache(&*self.encoder, self.layers)?;
        let layers = self.layers.map(<[usize]>::to_vec);
        let options = EmbeddingOptions { layers, skip_bad: self.encoding.skip_bad, limits: Limits::default() };
        let embedding = Embedding::new(inputs, self.encoder.clone(), cache, options)?;
        let bar = Count::new(self.name, embedding.count_hint().map(|count| count as u64), self.quiet);
        let features = FeatureSet::gather(embedding, needs, |samples| bar.add(samples as u64))?;
        drop(bar);
        features.skipped().iter().for_each(|reason| note!("skipped: {}", escape(reason)));
        Ok(features)
    }
}
