//! Inputs that a program has in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{About, Data, EMPTY, Input, Present, Source, files};
use crate::error::Error;

/// Inputs without tags, one after the other.
pub(super) struct Given<I> {
    about: About,
    inputs: I,
}

impl<I> Given<I> {
    /// The inputs of an iterator.
    pub fn new(inputs: I) -> Given<I> {
        let present = Present { names: true, ..Present::default() };
        Given { about: About { present, ..About::default() }, inputs }
    }
}

impl<I: Iterator<Item = Result<Input, Error>> + Send> Source for Given<I> {
    fn about(&self) -> &About {
        &self.about
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

/// The lines of a text, each of which is one.
pub(super) struct Lines {
    /// The name of the text in messages.
    path: PathBuf,
    about: About,
    text: Arc<str>,
    /// Where the next line begins, and its number.
    next: (usize, usize),
}

impl Lines {
    /// The lines of a text, without tags.
    pub fn new(name: &str, text: Arc<str>) -> Lines {
        Lines { path: Path::new(name).to_owned(), about: About::default(), text, next: (0, 0) }
    }
}

impl Source for Lines {
    fn about(&self) -> &About {
        &self.about
    }

    fn len(&self) -> Option<usize> {
        None
    }

    fn next(&mut self) -> Option<Result<Input, Error>> {
        let (start, number) = self.next;
        let line = self.text[start..].split_inclusive('\n').next()?;
        self.next = (start + line.len(), number + 1);
        let text = line.lines().next().unwrap_or_default();
        if text.trim().is_empty() {
            let name = files::place(&self.path, number as u64 + 1);
            return Some(Err(Error::Input { name, reason: EMPTY.to_owned() }));
        }
        Some(Ok(Input::new(format!("row {number}"), Data::Text(text.to_owned()))))
    }
}
