//! Training of modules inside frozen blocks: gradients of inputs and of modules, never those of weights.

mod block;
#[cfg(test)]
mod network_tests;
mod pass;
#[cfg(test)]
mod tests;
mod tuner;
mod tuning;

pub(crate) use tuner::Tuner;
pub(crate) use tuning::Dropout;
