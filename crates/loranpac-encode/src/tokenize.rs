//! Texts to tokens, by `tokenizer.json`.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tokenizers::{Tokenizer, TruncationParams};

use crate::error::Error;

/// Fewest tokens of a text: room for the special tokens around it.
const FEWEST: usize = 4;

/// A tokenizer with the model's limit on tokens.
pub(crate) struct Tokens {
    tokenizer: Tokenizer,
    digest: [u8; 32],
}

/// A text as numbers: tokens, and the segment of each.
pub(crate) struct Sequence {
    pub tokens: Vec<u32>,
    pub types: Vec<u32>,
}

impl Tokens {
    /// Reads `tokenizer.json` in a folder. Texts are cut to `most` tokens, special tokens included, whatever limit and padding the file has.
    pub fn read(folder: &Path, most: usize) -> Result<Tokens, Error> {
        let path: PathBuf = folder.join("tokenizer.json");
        let bytes = fs::read(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
        let refuse = |reason: String| Error::Tokenizer { path: path.clone(), reason };
        if most < FEWEST {
            return Err(refuse(format!("texts of at most {most} tokens have no room for content")));
        }
        let mut tokenizer = Tokenizer::from_bytes(&bytes).map_err(|error| refuse(format!("no tokenizer: {error}")))?;
        let truncation = TruncationParams { max_length: most, ..TruncationParams::default() };
        tokenizer.with_truncation(Some(truncation)).map_err(|error| refuse(error.to_string()))?;
        tokenizer.with_padding(None);
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
        let inputs: Vec<&str> = texts.iter().map(String::as_str).collect();
        let encoded = self.tokenizer.encode_batch_fast(inputs, true);
        let encoded = encoded.map_err(|error| Error::Tokenize { reason: error.to_string() })?;
        let sequence = |encoding: &tokenizers::Encoding| Sequence {
            tokens: encoding.get_ids().to_vec(),
            types: encoding.get_type_ids().to_vec(),
        };
        Ok(encoded.iter().map(sequence).collect())
    }
}
