//! Digests of learned samples: the same samples in another file have the same digest.

use loranpac::{Features, Label};
use sha2::{Digest, Sha256};

use crate::lift::hex;

/// An incremental SHA-256 of features and labels, in order.
#[derive(Clone, Default)]
pub struct TaskDigest {
    hash: Sha256,
    features: Sha256,
    samples: usize,
}

/// Identification of samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// Digest of features and labels, in hexadecimal digits.
    pub digest: String,
    /// Digest of the features alone.
    pub features: String,
    /// Number of samples.
    pub samples: usize,
}

impl TaskDigest {
    /// Adds samples. Weights other than 1 are part of the digest.
    pub fn add(&mut self, x: Features<'_>, labels: &[Label]) {
        let rows = || (0..labels.len()).map(|row| bytemuck::cast_slice::<f32, u8>(x.row(row)));
        let (features, hash) = (&mut self.features, &mut self.hash);
        rayon::join(
            || rows().for_each(|bytes| features.update(bytes)),
            || {
                for (row, (bytes, label)) in rows().zip(labels).enumerate() {
                    hash.update(bytes);
                    add_label(hash, label);
                    // A tag keeps a weight apart from the features of the next sample.
                    if let Some(weight) = x.weights().map(|weights| weights[row]).filter(|weight| *weight != 1.0) {
                        hash.update(b"w");
                        hash.update(weight.to_le_bytes());
                    }
                }
            },
        );
        self.samples += labels.len();
    }

    /// Returns the number of samples so far.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Returns the digests.
    pub fn finish(self) -> Fingerprint {
        let [digest, features] = [self.hash, self.features].map(|hash| hex(&hash.finalize()));
        Fingerprint { digest, features, samples: self.samples }
    }
}

impl Fingerprint {
    /// Computes the fingerprint of samples in memory.
    pub fn of(x: Features<'_>, labels: &[Label]) -> Self {
        let mut digest = TaskDigest::default();
        digest.add(x, labels);
        digest.finish()
    }
}

/// Returns the digest of a few labels.
pub(crate) fn of_labels(labels: &[&Label]) -> String {
    let mut hash = Sha256::new();
    labels.iter().for_each(|label| add_label(&mut hash, label));
    hex(&hash.finalize())
}

/// Adds a label, with its type and length: texts differ from numbers, and adjacent labels do not run together.
fn add_label(hash: &mut Sha256, label: &Label) {
    let (kind, text) = match label {
        Label::Integer(number) => (b'i', number.to_string()),
        Label::Text(text) => (b't', text.clone()),
    };
    hash.update([kind]);
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
}
