//! Images or texts of a data set, and the encoder that is trained with them.

use std::path::PathBuf;

use loranpac_data::{Dataset, Split};
use loranpac_encode::adapt::{SampleOptions, Samples};
use loranpac_encode::{Encoder, InputOptions, Inputs, Limits, Transformer, open_transformer};

use crate::error::Error;

/// Where images or texts are, and what encodes them.
#[derive(Debug, Clone)]
pub struct RawPlace {
    /// The encoder, as users name it.
    pub encoder: String,
    /// Its preprocessing, if it is not its own.
    pub preprocess: Option<String>,
    /// The inputs.
    pub inputs: Vec<PathBuf>,
    /// How they are read.
    pub options: InputOptions,
    /// Where adapters and checkpoints are kept, if anywhere.
    pub adapters: Option<PathBuf>,
}

impl RawPlace {
    /// Whether the encoder that computed the features is the one that would be adapted.
    pub fn fits(&self, encoder: &dyn Encoder) -> bool {
        self.transformer().is_ok_and(|transformer| transformer.digest() == encoder.digest())
    }

    /// The options of `loranpac run` that encode the same inputs.
    pub(crate) fn words(&self) -> Vec<String> {
        let given = [
            ("--encoder", Some(&self.encoder)),
            ("--preprocess", self.preprocess.as_ref()),
            ("--text", self.options.column.as_ref()),
        ];
        let words = given.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?.clone()])).flatten();
        words.chain(self.options.skip_bad.then(|| "--skip-bad".to_owned())).collect()
    }

    /// Opens the encoder.
    pub(crate) fn transformer(&self) -> Result<Transformer, Error> {
        Ok(open_transformer(&self.encoder, self.preprocess.as_deref())?)
    }
}

/// An encoder and all samples in memory.
pub(crate) struct RawSamples {
    pub transformer: Transformer,
    pub train: Samples,
    pub test: Samples,
}

impl RawSamples {
    /// Reads samples, which must be those of a data set.
    pub fn read(place: &RawPlace, dataset: &Dataset) -> Result<RawSamples, Error> {
        let transformer = place.transformer()?;
        let read = |split: Split| -> Result<Samples, Error> {
            let options = InputOptions { split: Some(split), ..place.options.clone() };
            let skip = SampleOptions { classes: None, skip_bad: options.skip_bad, limits: Limits::default() };
            Ok(Samples::read(Inputs::open(&place.inputs, &options)?, &transformer, skip)?)
        };
        let (train, test) = (read(Split::Train)?, read(Split::Test)?);
        for (part, samples) in [(&dataset.train, &train), (&dataset.test, &test)] {
            let is_same =
                |(at, class): (usize, &usize)| samples.label(at).to_string() == dataset.classes[*class].to_string();
            if samples.len() != part.len() || !part.y.iter().enumerate().all(is_same) {
                let message =
                    "the images or texts are not those that the features were computed from; run the command again";
                return Err(Error::Experiment(message.to_owned()));
            }
        }
        Ok(RawSamples { transformer, train, test })
    }
}
