//! Data sets as folders and archives of raw inputs: where they are, what they should be, and their feature files.

mod features;
mod find;

pub use features::FeatureFolder;
pub use find::{ImageSet, all, named};
