//! Options of commands that encode images and texts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use loranpac_encode::{BUILT_IN, Cache, Embedding, Encoder, OpenOptions, find_adapter, hex};
use loranpac_store::{Identity, Reference};

use crate::say::note;

/// Options of an encoder and its inputs.
#[derive(clap::Args, Clone)]
pub struct Encoding {
    /// Column or key of a table with the texts, or with paths of images [default: text,
    /// sentence, utterance, message or query; path, file, file_name, filename or image]
    #[arg(long, value_name = "NAME", help_heading = "Encoder")]
    pub text: Option<String>,
    /// Preprocessing of images: unit, half, imagenet or clip, or settings such as resize=256,crop=224,filter=bicubic
    /// [default: the encoder's own]
    #[arg(long, value_name = "SETTINGS", help_heading = "Encoder")]
    pub preprocess: Option<String>,
    /// Modules that `adapt` trained in the encoder
    #[arg(long, value_name = "FILE", help_heading = "Encoder")]
    pub adapter: Option<PathBuf>,
    /// Features before and after adaptation, side by side
    #[arg(long, requires = "adapter", help_heading = "Encoder")]
    pub concat: bool,
    /// Skip inputs that cannot be read, and list them
    #[arg(long, help_heading = "Encoder")]
    pub skip_bad: bool,
    /// Folder of features that were computed before [default: LORANPAC_CACHE, or loranpac in the user's cache folder]
    #[arg(long, value_name = "DIR", help_heading = "Encoder", conflicts_with = "no_cache")]
    pub cache: Option<PathBuf>,
    /// Do not use a cache
    #[arg(long, help_heading = "Encoder")]
    pub no_cache: bool,
    /// Time limit of a request to an embedding server
    #[arg(long, value_name = "SECONDS", default_value_t = 60, help_heading = "Encoder")]
    pub timeout: u64,
    /// Whether the user knows that the cache cannot be written.
    #[arg(skip)]
    warned: Arc<AtomicBool>,
}

impl Encoding {
    /// Opens an encoder.
    pub fn open(&self, encoder: &str) -> Result<Arc<dyn Encoder>> {
        Ok(loranpac_encode::open(encoder, &self.options())?.into())
    }

    /// Returns how an encoder is opened.
    fn options(&self) -> OpenOptions {
        OpenOptions {
            preprocess: self.preprocess.clone(),
            adapter: self.adapter.clone(),
            concat: self.concat,
            timeout: Duration::from_secs(self.timeout.clamp(1, 86_400)),
        }
    }

    /// Returns how the encoder of a model is opened: as the model records it, unless the user gives another adapter or
    /// another preprocessing.
    pub fn options_of(&self, recorded: Option<&Reference>, model: &Path) -> OpenOptions {
        let mut options = self.options();
        let Some(recorded) = recorded else { return options };
        options.preprocess = options.preprocess.or_else(|| recorded.preprocess.clone());
        let adapter = recorded.adapter.as_ref().map(|adapter| find_adapter(Path::new(adapter), model));
        options.adapter = options.adapter.or(adapter);
        options.concat |= recorded.concat;
        options
    }

    /// Returns what a model records of an encoder that was opened under a name.
    pub fn identity(&self, encoder: &dyn Encoder, name: &str) -> Result<Identity> {
        let place = Path::new(name);
        let absolute = |place: &Path| -> Result<String> {
            let found = std::path::absolute(place).with_context(|| format!("cannot find {}", place.display()))?;
            Ok(found.to_string_lossy().into_owned())
        };
        let location = match place.exists() && BUILT_IN.iter().all(|built_in| built_in.name != name) {
            true => absolute(place)?,
            false => name.to_owned(),
        };
        let adapter = self.adapter.as_deref().map(absolute).transpose()?;
        let reference = Reference {
            digest: hex(&encoder.digest()),
            location: Some(location),
            preprocess: self.preprocess.clone(),
            adapter,
            concat: self.concat,
        };
        Ok(Identity { name: Some(encoder.name().to_owned()), reference: Some(reference) })
    }

    /// Returns the folder of the cache, if there is to be one.
    pub fn folder(&self) -> Option<PathBuf> {
        if self.no_cache { None } else { self.cache.clone().or_else(default_folder) }
    }

    /// Opens the cache of an encoder.
    pub fn cache(&self, encoder: &dyn Encoder, layers: Option<&[usize]>) -> Result<Option<Cache>> {
        let Some(folder) = self.folder() else { return Ok(None) };
        let row = encoder.dim() * layers.map_or(1, <[usize]>::len);
        let cache = Cache::open(&folder, &Embedding::cache_digest(encoder, layers), row)
            .context("cannot open the cache of features (choose another folder with --cache, or use --no-cache)")?;
        if let Some(reason) = cache.unwritable()
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            note!("warning: the cache {} cannot be written, and is only read: {reason}", folder.display());
        }
        Ok(Some(cache))
    }
}

/// The folder of the cache unless one is given: in the environment, or where the system has such folders.
fn default_folder() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("LORANPAC_CACHE").or_else(|| {
        let home = || {
            folder("HOME")
                .map(|home| if cfg!(target_os = "macos") { home.join("Library/Caches") } else { home.join(".cache") })
        };
        folder("XDG_CACHE_HOME").or_else(|| folder("LOCALAPPDATA")).or_else(home).map(|folder| folder.join("loranpac"))
    })
}
