//! What was learned, in one number: the same samples in another file have the same digest.

use loranpac::{Features, Label};
use sha2::{Digest, Sha256};

use crate::lift::hex;

/// SHA-256 of features and labels, in the order in which they come.
#[derive(Clone, Default)]
pub struct TaskDigest {
    hash: Sha256,
    samples: usize,
}

impl TaskDigest {
    /// Takes samples in.
    pub fn add(&mut self, x: Features<'_>, labels: &[Label]) {
        for (row, label) in labels.iter().enumerate() {
            self.hash.update(bytemuck::cast_slice(x.row(row)));
            // A text cannot be taken for a number, nor the end of one label for the start of another.
            let (kind, text) = match label {
                Label::Integer(number) => (b'i', number.to_string()),
                Label::Text(text) => (b't', text.clone()),
            };
            self.hash.update([kind]);
            self.hash.update((text.len() as u64).to_le_bytes());
            self.hash.update(text);
        }
        self.samples += labels.len();
    }

    /// Samples so far.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// The digest, in hexadecimal digits.
    pub fn finish(self) -> String {
        hex(&self.hash.finalize())
    }
}
