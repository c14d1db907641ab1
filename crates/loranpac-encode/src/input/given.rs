//! Inputs that a program has in memory.

use super::{Input, Present, Source};
use crate::error::Error;

/// Inputs without tags, one after the other.
pub(super) struct Given<I> {
    inputs: I,
}

impl<I> Given<I> {
    /// The inputs of an iterator.
    pub fn new(inputs: I) -> Given<I> {
        Given { inputs }
    }
}

impl<I: Iterator<Item = Result<Input, Error>> + Send> Source for Given<I> {
    fn present(&self) -> Present {
        Present { names: true, ..Present::default() }
    }

    fn len(&self) -> Option<usize> {
        match self.inputs.size_hint() {
            (least, Some(most)) if least == most => Some(most),
            _ => None,
        }
    }

    fn next(&mut self) -> Option<Result<Input, Error>> {
        self.inputs.next()
    }
}
