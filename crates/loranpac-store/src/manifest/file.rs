//! The manifest file: a line with the format and a checksum, then JSON.

use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::{FORMAT, Manifest};
use crate::disk::open_regular;
use crate::error::Error;
use crate::lift::hex;

/// The beginning of the first line.
pub(crate) const MAGIC: &str = "loranpac-model";
/// The maximum size of a manifest: a model of 100,000 classes stays below.
const LARGEST: u64 = 256 << 20;
/// The value of `losses.dropped` where it is unknown: version 0.1.0 wrote `null` after samples without a residual.
const UNKNOWN_LOSS: f64 = 1e300;

impl Manifest {
    /// Serialises the manifest: a line with the format and the digest of the rest, then JSON. The result is read back:
    /// a manifest that its own reader refuses, or reads differently, is never written.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let refused = |reason: String| Error::Unwritable { reason };
        let json = serde_json::to_vec_pretty(self).map_err(|e| refused(e.to_string()))?;
        let mut bytes = format!("{MAGIC} {} {}\n", self.format(), hex(&Sha256::digest(&json))).into_bytes();
        bytes.extend(json);
        if bytes.len() as u64 > LARGEST {
            return Err(Error::ManifestSize { bytes: bytes.len() });
        }
        match Manifest::from_bytes(&bytes, Path::new("its manifest")) {
            Ok(read) if read == *self => Ok(bytes),
            Ok(_) => Err(refused("its manifest would be read back differently".to_owned())),
            Err(error) => Err(refused(error.to_string())),
        }
    }

    /// Reads and checks the output of [`Manifest::to_bytes`]. `path` is for messages.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Manifest, Error> {
        let damaged = |reason: String| Error::Damaged { path: path.to_owned(), reason };
        let end = bytes.iter().take(128).position(|byte| *byte == b'\n');
        let end = end.ok_or_else(|| damaged("its first line is missing".to_owned()))?;
        let line = std::str::from_utf8(&bytes[..end]).map_err(|_| damaged("its first line is not text".to_owned()))?;
        let words: Vec<&str> = line.split(' ').collect();
        let [MAGIC, format, digest] = words[..] else {
            return Err(damaged(format!("it does not begin with {MAGIC}")));
        };
        let number = format.parse::<u32>().ok().filter(|number| number.to_string() == format && *number > 0);
        match number {
            None => return Err(damaged("the number of its format is not a number".to_owned())),
            Some(number) if number > FORMAT => {
                return Err(Error::Version { path: path.to_owned(), found: format.to_owned(), known: FORMAT });
            }
            Some(_) => {}
        }
        let json = &bytes[end + 1..];
        if hex(&Sha256::digest(json)) != digest {
            return Err(damaged("it does not agree with its own checksum".to_owned()));
        }
        let manifest: Manifest = match serde_json::from_slice(json) {
            Err(_) if number == Some(1) => without_null(json),
            outcome => outcome,
        }
        .map_err(|e| damaged(e.to_string()))?;
        manifest.check().map_err(damaged)?;
        Ok(manifest)
    }

    /// Reads a manifest from a file.
    pub fn read(path: &Path) -> Result<Manifest, Error> {
        let failed = Error::read(path);
        let file = open_regular(path)?;
        let length = file.metadata().map_err(&failed)?.len();
        if length > LARGEST {
            let reason = format!("{length} bytes are too many for a manifest");
            return Err(Error::Damaged { path: path.to_owned(), reason });
        }
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes).map_err(failed)?;
        Manifest::from_bytes(&bytes, path)
    }

    /// Reads the manifest of an earlier version, which must match the version in its name.
    pub(crate) fn read_kept(path: &Path, version: u64) -> Result<Manifest, Error> {
        let manifest = Manifest::read(path)?;
        match manifest.version == version {
            true => Ok(manifest),
            false => Err(Error::damaged(path, format!("it is the manifest of version {}", manifest.version))),
        }
    }
}

/// Parses a manifest of version 0.1.0 without the bound on dropped residuals.
fn without_null(json: &[u8]) -> serde_json::Result<Manifest> {
    let mut value: serde_json::Value = serde_json::from_slice(json)?;
    if let Some(dropped) = value.pointer_mut("/losses/dropped").filter(|dropped| dropped.is_null()) {
        *dropped = UNKNOWN_LOSS.into();
    }
    serde_json::from_value(value)
}
