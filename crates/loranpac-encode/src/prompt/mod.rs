//! Continual learners that train prompts for a frozen transformer, task after task: L2P, DualPrompt and CODA-Prompt.
//!
//! A prompt is a number of trained rows that each input gets for itself: tokens beside its own (L2P), or prefixes of keys and values in the first
//! blocks (DualPrompt, CODA-Prompt). Which ones it gets follows from its query, the feature of the encoder without prompts. A [`PromptLearner`]
//! trains prompts, their keys and a linear classifier of all classes so far on the samples of one task after the other, and keeps no samples.
//!
//! Everything is a function of the samples, the settings and the seed, for any number of threads, and wherever learning was interrupted: a learner
//! can be saved after every epoch.

mod checkpoint;
mod choice;
mod coda;
mod compose;
mod cosine;
mod dual;
mod l2p;
mod learner;
mod orthogonal;
mod pace;
mod pool;
mod probe;
mod prompted;
mod settings;
#[cfg(test)]
mod tests;

pub use learner::{PromptLearner, Queried, TrainedEpoch};
#[doc(hidden)]
pub use probe::PromptProbe;
pub use settings::{PromptKind, PromptSettings};
