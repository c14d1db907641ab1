//! Training of modules inside frozen blocks: gradients of inputs and of modules, never those of weights.

mod block;
mod insert;
#[cfg(test)]
mod insert_tests;
mod inserter;
#[cfg(test)]
mod network_tests;
mod pass;
#[cfg(test)]
mod tests;
mod tuner;
mod tuning;

pub(crate) use insert::{Inserts, Prefix, Tokens};
pub(crate) use inserter::{Inserter, Pooled};
pub(crate) use tuner::Tuner;
pub(crate) use tuning::Dropout;
