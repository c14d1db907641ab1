//! Gradients through frozen blocks: those of inputs and of small modules, never those of weights.

mod attention;
mod block;
mod elementwise;
pub(crate) mod linear;
mod norm;
mod pass;
#[cfg(test)]
mod tests;

pub(crate) use pass::{Dropout, Pass, Tuning};
