//! Texts to tokens, by `tokenizer.json`.

use std::path::{Path, PathBuf};

use loranpac_data::fence::fenced;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use tokenizers::{Tokenizer, TruncationParams};

use crate::error::Error;
use crate::regular;

/// Fewest tokens of a text: room for the special tokens around it.
const FEWEST: usize = 4;

/// The longest file. That of 250,000 tokens has 17 MB.
const LONGEST: u64 = 256 << 20;

/// A tokenizer with the model's limit on tokens.
pub(crate) struct Tokens {
    tokenizer: Tokenizer,
    digest: [u8; 32],
}

/// A text as numbers: tokens, and the segment of each.
#[derive(Debug)]
pub(crate) struct Sequence {
    pub tokens: Vec<u32>,
    pub types: Vec<u32>,
}

impl Tokens {
    /// Reads `tokenizer.json` in a folder. Texts are cut to `most` tokens, special tokens included, whatever limit and padding the file has.
    pub fn read(folder: &Path, most: usize) -> Result<Tokens, Error> {
        let path: PathBuf = folder.join("tokenizer.json");
        let failed = |source| Error::Read { path: path.clone(), source };
        let bytes = regular::read(&path, LONGEST).map_err(failed)?;
        let refuse = |reason: String| Error::Tokenizer { path: path.clone(), reason };
        if most < FEWEST {
            return Err(refuse(format!("texts of at most {most} tokens have no room for content")));
        }
        let truncation = TruncationParams { max_length: most, ..TruncationParams::default() };
        let parsed = fenced(|| {
            let mut tokenizer = Tokenizer::from_bytes(&bytes)?;
            tokenizer.with_truncation(Some(truncation))?;
            tokenizer.with_padding(None);
            Ok::<Tokenizer, tokenizers::Error>(tokenizer)
        });
        let parsed = parsed.unwrap_or_else(|_| Err("its parts do not fit together".into()));
        let tokenizer = parsed.map_err(|error| refuse(format!("it is no tokenizer: {error}")))?;
        let digest = Sha256::new().chain_update(&bytes).chain_update(most.to_le_bytes()).finalize().into();
        Ok(Tokens { tokenizer, digest })
    }

    /// SHA-256 of all that determines the tokens.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The file's largest token.
    pub fn largest(&self) -> u32 {
        self.tokenizer.get_vocab(true).into_values().max().unwrap_or(0)
    }

    /// Divides texts into tokens, on all cores.
    pub fn encode(&self, texts: &[String]) -> Result<Vec<Sequence>, Error> {
        let sequence = |text: &String| {
            let encoding = fenced(|| self.tokenizer.encode_fast(text.as_str(), true));
            let encoding = encoding.unwrap_or_else(|_| Err("tokenizer.json is damaged".into()));
            let encoding = encoding.map_err(|error| Error::Tokenize { reason: error.to_string() })?;
            Ok(Sequence { tokens: encoding.get_ids().to_vec(), types: encoding.get_type_ids().to_vec() })
        };
        texts.par_iter().map(sequence).collect()
    }
}
