//! Images or texts.

/// What an encoder reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Modality {
    /// Images.
    Image,
    /// Texts.
    Text,
}
