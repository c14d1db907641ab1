//! Numbers in owned memory, or in shared memory such as a mapped file.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Shared memory that outlives its views.
pub type Source<T> = Arc<dyn AsRef<[T]> + Send + Sync>;

/// A run of numbers that is read in place, and copied on the first write.
#[derive(Clone)]
pub enum Buffer<T> {
    /// Owned memory, shared with clones until one of them changes.
    Owned(Arc<Vec<T>>),
    /// A range of shared memory.
    Shared(Source<T>, Range<usize>),
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(numbers: Vec<T>) -> Self {
        Buffer::Owned(Arc::new(numbers))
    }
}

impl<T: Clone> Buffer<T> {
    /// Creates a view of a range of shared memory; returns None if the range is out of bounds.
    pub fn shared(source: Source<T>, range: Range<usize>) -> Option<Self> {
        (*source).as_ref().get(range.clone())?;
        Some(Buffer::Shared(source, range))
    }

    /// Returns the numbers for writing; shared numbers are copied first.
    pub fn to_mut(&mut self) -> &mut Vec<T> {
        if let Buffer::Shared(..) = self {
            *self = Buffer::from(self.to_vec());
        }
        match self {
            Buffer::Owned(own) => Arc::make_mut(own),
            Buffer::Shared(..) => unreachable!("copied above"),
        }
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match self {
            Buffer::Owned(own) => own,
            Buffer::Shared(source, range) => &(**source).as_ref()[range.clone()],
        }
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = if matches!(self, Buffer::Owned(_)) { "owned" } else { "shared" };
        write!(f, "{} numbers, {whose}", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_is_copied_when_it_is_changed() {
        let source: Source<f32> = Arc::new(vec![1.0, 2.0, 3.0, 4.0]);
        let mut part = Buffer::shared(source.clone(), 1..3).unwrap();
        assert_eq!(*part, [2.0, 3.0]);
        part.to_mut()[0] = 7.0;
        assert_eq!((&*part, (*source).as_ref()), (&[7.0, 3.0][..], &[1.0, 2.0, 3.0, 4.0][..]));
        assert!(Buffer::shared(source, 3..5).is_none());
    }
}
