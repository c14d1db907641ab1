//! Finished runs on disk. A run that is in the cache is not run again.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use loranpac_data::dataset::Digest;

use crate::error::Error;
use crate::record::{Data, Record};
use crate::run::SCHEMA;
use crate::spec::Spec;

/// A folder with one file per finished run. Recipes with runs in common share them.
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// Runs under `folder`, which is created if it does not exist.
    pub fn open(folder: PathBuf) -> Result<Cache, Error> {
        std::fs::create_dir_all(&folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
        Ok(Cache { folder })
    }

    fn path(&self, data: &Data, spec: &Spec, threads: usize) -> PathBuf {
        // Sums over threads are rounded in an order that depends on their number.
        let identity = serde_json::json!([data.digest, spec, threads, env!("CARGO_PKG_VERSION")]).to_string();
        let mut digest = Digest::default();
        identity.bytes().for_each(|byte| digest.add(byte.into()));
        self.folder.join(format!("{}_{}_{:016x}.json", data.file, spec.method, digest.0))
    }

    /// A finished run of the same configuration on the same data; none if its file is missing or damaged.
    pub fn load(&self, data: &Data, spec: &Spec, threads: usize) -> Option<Record> {
        let text = std::fs::read_to_string(self.path(data, spec, threads)).ok()?;
        let record: Record = serde_json::from_str(&text).ok()?;
        let same = record.schema == SCHEMA && record.data.digest == data.digest && record.run.config.spec == *spec;
        same.then(|| Record { data: data.clone(), ..record })
    }

    /// Writes a run, all or nothing.
    pub fn save(&self, record: &Record) -> Result<(), Error> {
        let path = self.path(&record.data, &record.run.config.spec, record.run.config.threads);
        let text = serde_json::to_string(record).map_err(|e| Error::Write { path: path.clone(), source: e.into() })?;
        write_atomically(&path, text.as_bytes())
    }
}

/// Replaces a file in one step: the bytes are written and synced under another name, which is then renamed.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let beside = path.with_extension(format!("tmp{}", std::process::id()));
    let write = || {
        let mut file = File::create(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        drop(file);
        std::fs::rename(&beside, path)
    };
    write().map_err(|source| {
        let _ = std::fs::remove_file(&beside);
        Error::Write { path: path.to_owned(), source }
    })
}
