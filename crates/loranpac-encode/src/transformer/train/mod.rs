//! Gradients through frozen blocks: those of inputs and of small modules, never those of weights.

mod attention;
mod block;
mod elementwise;
pub(crate) mod linear;
#[cfg(test)]
mod network_tests;
mod norm;
mod pass;
mod pooling;
#[cfg(test)]
mod tests;
mod tuner;

pub(crate) use pass::Dropout;
pub(crate) use pooling::Pooling;
pub(crate) use tuner::Tuner;
