//! What was learned, in one number: the same samples in another file have the same digest.

use loranpac::{Features, Label};
use sha2::{Digest, Sha256};

use crate::lift::hex;

/// SHA-256 of features and labels, in the order in which they come.
#[derive(Clone, Default)]
pub struct TaskDigest {
    hash: Sha256,
    features: Sha256,
    samples: usize,
}

/// What identifies samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// Digest of features and labels, in hexadecimal digits.
    pub digest: String,
    /// Digest of the features alone.
    pub features: String,
    /// How many samples there are.
    pub samples: usize,
}

impl TaskDigest {
    /// Takes samples in.
    pub fn add(&mut self, x: Features<'_>, labels: &[Label]) {
        for (row, label) in labels.iter().enumerate() {
            let bytes = bytemuck::cast_slice(x.row(row));
            self.features.update(bytes);
            self.hash.update(bytes);
            add_label(&mut self.hash, label);
        }
        self.samples += labels.len();
    }

    /// Samples so far.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// The digests.
    pub fn finish(self) -> Fingerprint {
        let [digest, features] = [self.hash, self.features].map(|hash| hex(&hash.finalize()));
        Fingerprint { digest, features, samples: self.samples }
    }
}

impl Fingerprint {
    /// Of samples that are all at hand.
    pub fn of(x: Features<'_>, labels: &[Label]) -> Self {
        let mut digest = TaskDigest::default();
        digest.add(x, labels);
        digest.finish()
    }
}

/// Digest of a few labels.
pub(crate) fn of_labels(labels: &[&Label]) -> String {
    let mut hash = Sha256::new();
    labels.iter().for_each(|label| add_label(&mut hash, label));
    hex(&hash.finalize())
}

/// A text cannot be taken for a number, nor the end of one label for the start of another.
fn add_label(hash: &mut Sha256, label: &Label) {
    let (kind, text) = match label {
        Label::Integer(number) => (b'i', number.to_string()),
        Label::Text(text) => (b't', text.clone()),
    };
    hash.update([kind]);
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
}
