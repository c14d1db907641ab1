//! Text encoders as sentence-transformers and transformers write them.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::bert::{Bert, Pool};
use super::block::Spare;
use super::config::{self, Config};
use super::math::Activation;
use super::norm::Norm;
use super::scheme::{Family, Scheme, norm};
use super::weights::Weights;
use crate::encoder::{Batch, Encoder};
use crate::error::Error;
use crate::modality::Modality;
use crate::tokenize::{Sequence, Tokens};

/// Tensors that have no part in features.
const IGNORED: &[&str] =
    &["pooler.", "position_ids", "cls.predictions", "cls.seq_relationship", "lm_head.", "classifier."];

/// Characters of a text that are read, far beyond the length of any encoder: a tokenizer needs many bytes for each.
const LONGEST: usize = 1 << 18;

/// The longest prompt, in bytes.
const LONGEST_PROMPT: usize = 1 << 16;

/// A BERT-like text encoder with its tokenizer. Clones share the weights.
#[derive(Clone)]
pub struct TextEncoder {
    name: String,
    digest: [u8; 32],
    bert: Bert,
    tokens: Arc<Tokens>,
    /// What is put in front of each text.
    prompt: String,
    lowercase: bool,
}

impl TextEncoder {
    /// Reads a folder with `model.safetensors`, `config.json` and `tokenizer.json`. The pooling is that of `modules.json`; without it, the mean
    /// of the tokens, not scaled to unit length.
    ///
    /// # Errors
    /// If a file cannot be read, or a tensor or a setting does not fit a supported architecture.
    pub fn open(path: &Path) -> Result<TextEncoder, Error> {
        let weights = Weights::open(path)?;
        let config = Config::of_model(path)?;
        let (scheme, prefix) = Scheme::recognise(&weights)?;
        let Some(folder) = config::folder(path).filter(|_| scheme.family == Family::Bert) else {
            let reason = "a text encoder is a folder with model.safetensors of a BERT, config.json and tokenizer.json";
            return Err(config.refuse(reason.to_owned()));
        };
        if let Some(kind) = config.text(&["position_embedding_type"]).filter(|kind| *kind != "absolute") {
            return Err(config.refuse(format!("position_embedding_type is {kind}; supported is absolute")));
        }
        let name = |part: &str| format!("{prefix}{part}");
        let d = scheme.dim(&weights, &prefix)?;
        let eps = config.eps(1e-12)?;
        config.check_size("hidden_size", d)?;
        if config.integer(&["num_attention_heads"])?.is_none() {
            return Err(
                config.refuse("num_attention_heads is missing: a text encoder needs its config.json".to_owned())
            );
        }
        let heads = config.heads(d)?;
        let activation = config.activation(&["hidden_act"], Activation::Gelu)?;
        let stack = scheme.blocks(&weights, &prefix, heads, eps, activation)?;
        config.check_size("num_hidden_layers", stack.blocks.len())?;
        let words = table(&weights, &name("embeddings.word_embeddings.weight"), d)?;
        let types = table(&weights, &name("embeddings.token_type_embeddings.weight"), d)?;
        let mut positions = table(&weights, &name("embeddings.position_embeddings.weight"), d)?;
        // RoBERTa counts positions from the one after the padding's.
        let mut unused = 0;
        if matches!(config.text(&["model_type"]), Some("roberta" | "xlm-roberta" | "camembert" | "data2vec-text")) {
            unused = config.integer(&["pad_token_id"])?.unwrap_or(1).saturating_add(1);
            positions.drain(..unused.saturating_mul(d).min(positions.len()));
        }
        let (gain, bias) = norm(&weights, &name("embeddings.LayerNorm"), d)?;
        weights.finish("text encoder", IGNORED)?;

        let Sentence { pool, unit, most, prompt, lowercase } = Sentence::read(folder)?;
        let most = most.unwrap_or(usize::MAX).min(positions.len() / d);
        let tokens = Tokens::read(folder, most)?;
        if tokens.largest() as usize >= words.len() / d {
            let path = folder.join("tokenizer.json");
            let reason = format!("token {} has no embedding: the model has {}", tokens.largest(), words.len() / d);
            return Err(Error::Tokenizer { path, reason });
        }
        let described = format!("bert 1 {unused} {heads} {eps:e} {activation:?} {pool:?} {unit} {lowercase} {prompt}");
        let hash = Sha256::new().chain_update(weights.digest()?).chain_update(tokens.digest());
        let digest = hash.chain_update(&described).finalize().into();
        let norm = Norm::new(&gain, &bias, eps);
        let [words, types, positions] = [words, types, positions].map(Arc::new);
        let tokens = Arc::new(tokens);
        let bert = Bert { d, words, types, positions, norm, stack, pool, unit, spare: Spare::default() };
        Ok(TextEncoder { name: config::name(path), digest, bert, tokens, prompt, lowercase })
    }

    /// Features of texts: for each a row of `layers.len() * dim()` numbers.
    ///
    /// # Errors
    /// If the tokenizer reports one.
    pub fn features(&self, texts: &[&str], layers: &[usize]) -> Result<Vec<f32>, Error> {
        let sequences = self.sequences(texts)?;
        Ok(self.bert.features(&sequences.iter().collect::<Vec<_>>(), layers))
    }

    /// The network.
    pub(super) fn bert(&self) -> &Bert {
        &self.bert
    }

    /// The same tokenizer with another network of the same sizes. `digest` is that of the result.
    pub(super) fn with(&self, bert: Bert, digest: [u8; 32]) -> TextEncoder {
        TextEncoder { bert, digest, ..self.clone() }
    }

    /// The tokens of texts.
    pub(crate) fn sequences(&self, texts: &[&str]) -> Result<Vec<Sequence>, Error> {
        let prepare = |text: &&str| {
            let end = text.char_indices().nth(LONGEST).map_or(text.len(), |(end, _)| end);
            let text = &text[..end];
            let text = if self.lowercase { text.to_lowercase() } else { text.to_owned() };
            format!("{}{}", self.prompt, text.trim())
        };
        let texts: Vec<String> = texts.iter().map(prepare).collect();
        let mut sequences = self.tokens.encode(&texts)?;
        let (words, places) = (self.bert.words.len() / self.bert.d, self.bert.positions.len() / self.bert.d);
        let fits = |sequence: &Sequence| {
            sequence.tokens.len() <= places && sequence.tokens.iter().all(|&token| (token as usize) < words)
        };
        if !sequences.iter().all(fits) {
            let reason = "tokenizer.json gives tokens that the model does not have, or more than it takes";
            return Err(Error::Tokenize { reason: reason.to_owned() });
        }
        // A template can give segments that the model does not have.
        let segments = (self.bert.types.len() / self.bert.d) as u32;
        for kind in sequences.iter_mut().flat_map(|sequence| &mut sequence.types) {
            *kind = (*kind).min(segments - 1);
        }
        Ok(sequences)
    }
}

impl Encoder for TextEncoder {
    fn name(&self) -> &str {
        &self.name
    }

    fn modality(&self) -> Modality {
        Modality::Text
    }

    fn dim(&self) -> usize {
        self.bert.d
    }

    fn layers(&self) -> usize {
        self.bert.stack.blocks.len()
    }

    fn digest(&self) -> [u8; 32] {
        self.digest
    }

    fn batch(&self) -> usize {
        256
    }

    fn encode(&self, batch: Batch<'_>, layers: &[usize]) -> Result<Vec<f32>, Error> {
        if let Some(layer) = layers.iter().find(|layer| **layer >= self.layers()) {
            return Err(Error::Layer { encoder: self.name.clone(), layers: self.layers(), layer: *layer });
        }
        match batch {
            Batch::Texts(texts) => self.features(texts, layers),
            Batch::Images(_) => {
                let (encoder, wanted) = (self.name.clone(), Modality::Text);
                Err(Error::Modality { encoder, wanted, given: Modality::Image })
            }
        }
    }
}

/// What sentence-transformers does around a model.
struct Sentence {
    pool: Pool,
    unit: bool,
    /// Most tokens of a text.
    most: Option<usize>,
    prompt: String,
    lowercase: bool,
}

impl Sentence {
    fn read(folder: &Path) -> Result<Sentence, Error> {
        let mut sentence =
            Sentence { pool: Pool::Mean, unit: false, most: None, prompt: String::new(), lowercase: false };
        let settings = Config::read(folder.join("sentence_bert_config.json"))?;
        // Without a limit, that of the tokenizer holds, which can be too large for an integer.
        let tokenizer = Config::read(folder.join("tokenizer_config.json"))?;
        let limit = tokenizer.get(&["model_max_length"]).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        sentence.most = settings.integer(&["max_seq_length"])?.or(limit);
        sentence.lowercase = settings.switch(&["do_lower_case"]);
        let modules = Config::read(folder.join("modules.json"))?;
        let list = match modules.value() {
            Value::Null => &[][..],
            value => value.as_array().ok_or_else(|| modules.refuse("it is not a list of modules".to_owned()))?,
        };
        let mut includes_prompt = true;
        for module in list {
            let text = |key: &str| module.get(key).and_then(Value::as_str).unwrap_or_default();
            match text("type").rsplit('.').next().unwrap_or_default() {
                "Transformer" if text("path").is_empty() => {}
                "Pooling" if plain(text("path")) => {
                    let config = Config::read(folder.join(text("path")).join("config.json"))?;
                    sentence.pool = pooling(&config)?;
                    includes_prompt = config.get(&["include_prompt"]) != Some(&Value::Bool(false));
                }
                "Normalize" => sentence.unit = true,
                _ => return Err(modules.refuse(format!("module {module} is not supported"))),
            }
        }
        let prompts = Config::read(folder.join("config_sentence_transformers.json"))?;
        if let Some(name) = prompts.text(&["default_prompt_name"]) {
            let prompt = prompts.text(&["prompts", name]);
            let missing = || prompts.refuse(format!("default_prompt_name is {name}, but prompts has no such entry"));
            sentence.prompt = prompt.ok_or_else(missing)?.to_owned();
        }
        if sentence.prompt.len() > LONGEST_PROMPT {
            return Err(prompts.refuse(format!("the default prompt is longer than {LONGEST_PROMPT} bytes")));
        }
        if !includes_prompt && !sentence.prompt.is_empty() {
            let reason = "it has a default prompt, but the pooling has include_prompt false, which is not supported";
            return Err(prompts.refuse(reason.to_owned()));
        }
        Ok(sentence)
    }
}

/// Whether a path is the name of a folder, and leads nowhere else.
fn plain(path: &str) -> bool {
    !path.is_empty() && !path.contains(['/', '\\']) && path != ".."
}

/// The pooling of `1_Pooling/config.json`, in either of its forms.
fn pooling(config: &Config) -> Result<Pool, Error> {
    let chosen: Vec<&str> = match config.text(&["pooling_mode"]) {
        Some(mode) => vec![mode],
        None => config
            .value()
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, on)| **on == Value::Bool(true))
            .filter_map(|(key, _)| key.strip_prefix("pooling_mode_"))
            .collect(),
    };
    match chosen[..] {
        ["mean" | "mean_tokens"] => Ok(Pool::Mean),
        ["cls" | "cls_token"] => Ok(Pool::First),
        [] => Err(config.refuse("it is missing, or names no pooling; supported are mean and cls".to_owned())),
        _ => Err(config.refuse(format!("pooling is {}; supported are mean and cls", chosen.join(" and ")))),
    }
}

/// A table of vectors of d numbers, at least one.
fn table(weights: &Weights, name: &str, d: usize) -> Result<Vec<f32>, Error> {
    match weights.shape(name)? {
        [rows, _] if *rows > 0 => weights.tensor(name, &[*rows, d]),
        found => {
            let (expected, found) = (vec![1, d], found.to_vec());
            Err(Error::TensorShape { path: weights.path().to_owned(), name: name.to_owned(), expected, found })
        }
    }
}
