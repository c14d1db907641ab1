//! `text-ngrams`: features of texts without weights. It compares spellings, not meanings: texts are similar if they share
//! words, pairs of words, or parts of words. A pre-trained text encoder is better wherever one can be had.
//!
//! With the counts `n(g)` of the n-grams of a text, a hash `h(g)` to `0..D` and a sign `s(g)`,
//!
//! ```text
//! x[h(g)] += s(g) (1 + ln n(g)),    x <- x / |x|
//! ```
//!
//! which keeps inner products up to an error of about `1 / sqrt(D)`. N-grams are one or two words, and three to five
//! characters of a word with a blank on both sides. Words are runs of letters and digits in lower case, as Unicode
//! defines them; composed and decomposed accents are different characters. The features of a text are the same on every
//! machine.

use std::collections::HashMap;

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::encoder::{Batch, Encoder, check_layers};
use crate::error::Error;
use crate::modality::Modality;

/// Name of the encoder.
pub const NAME: &str = "text-ngrams";

/// Features per text.
const DIM: usize = 2048;
/// Characters of a text that are read. A message or a ticket is far shorter; a book would only cost time.
const LONGEST: usize = 1 << 16;
/// Words in a row, from one.
const WORDS: usize = 2;
/// Characters in a row, within a word that has a blank on both sides.
const CHARACTERS: std::ops::RangeInclusive<usize> = 3..=5;

/// The encoder.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextNgrams;

impl Encoder for TextNgrams {
    fn name(&self) -> &str {
        NAME
    }

    fn modality(&self) -> Modality {
        Modality::Text
    }

    fn dim(&self) -> usize {
        DIM
    }

    fn digest(&self) -> [u8; 32] {
        // A change of the features needs another version.
        Sha256::digest(b"text-ngrams, version 1").into()
    }

    fn batch(&self) -> usize {
        256
    }

    fn encode(&self, batch: Batch<'_>, layers: &[usize]) -> Result<Vec<f32>, Error> {
        let texts = batch.texts(NAME)?;
        check_layers(self, layers)?;
        let mut out = vec![0.0; texts.len() * layers.len() * DIM];
        if !layers.is_empty() {
            let rows = out.par_chunks_mut(layers.len() * DIM).zip(texts);
            rows.for_each(|(row, text)| row.chunks_mut(DIM).for_each(|part| features(text, part)));
        }
        Ok(out)
    }
}

/// Writes the features of a text.
fn features(text: &str, out: &mut [f32]) {
    let mut counts: HashMap<u64, u32> = HashMap::new();
    let mut add = |hash: u64| *counts.entry(hash).or_default() += 1;
    // Lower case can be longer than upper case, so the limit holds for the result, too.
    let end = text.char_indices().nth(LONGEST).map_or(text.len(), |(end, _)| end);
    let lower = text[..end].to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    // A text without words has the n-gram of no words, so that its features have a length.
    if words.is_empty() {
        add(hash(Kind::Words, [].into_iter()));
    }
    for count in 1..=WORDS {
        for gram in words.windows(count) {
            add(hash(Kind::Words, gram.iter().flat_map(|word| word.bytes().chain([b' ']))));
        }
    }
    for word in &words {
        let padded = format!(" {word} ");
        let places: Vec<usize> = padded.char_indices().map(|(at, _)| at).chain([padded.len()]).collect();
        for count in CHARACTERS {
            for ends in places.windows(count + 1) {
                add(hash(Kind::Characters, padded[ends[0]..ends[count]].bytes()));
            }
        }
    }
    // Sums of floating-point numbers depend on their order, and a hash map has a random one.
    let mut counts: Vec<(u64, u32)> = counts.into_iter().collect();
    counts.sort_unstable();
    let mut sums = vec![0.0f64; DIM];
    for (hash, count) in counts {
        // The lowest bit of the hash is the kind, the next the sign, and the highest are the place.
        let sign = if hash & 2 == 0 { 1.0 } else { -1.0 };
        sums[(hash >> (64 - DIM.ilog2())) as usize] += sign * (1.0 + libm::log(f64::from(count)));
    }
    let length = sums.iter().map(|sum| sum * sum).sum::<f64>().sqrt();
    // All n-grams could cancel one another in theory.
    let unit = if length > 0.0 { length.recip() } else { 0.0 };
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = (sum * unit) as f32;
    }
}

/// The kinds of n-grams, which never share a hash.
#[derive(Clone, Copy)]
enum Kind {
    Words = 0,
    Characters = 1,
}

/// FNV-1a of the bytes, mixed so that all bits depend on all bytes; the lowest bit is the kind.
fn hash(kind: Kind, bytes: impl Iterator<Item = u8>) -> u64 {
    let seed = 0xcbf2_9ce4_8422_2325 ^ kind as u64;
    let mut h = bytes.fold(seed, |h, byte| (h ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    // The finaliser of SplitMix64.
    h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (h ^ (h >> 31)) & !1 | kind as u64
}
