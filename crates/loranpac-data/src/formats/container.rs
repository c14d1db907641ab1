//! Feature files with named arrays: which arrays are the samples, and how their rows are read together.

use std::path::{Path, PathBuf};

use super::stream::Stream;
use crate::error::{ArrayProblem, Error};
use crate::rows::{Options, Piece, Rows, Split};

/// A file, or a folder, with named arrays.
pub(super) trait Container {
    /// The names of its arrays.
    fn names(&self) -> Vec<String>;
    /// Opens an array, one of [`Container::names`].
    fn array(&mut self, name: &str) -> Result<Stream, Error>;
}

/// Features, and labels beside them.
pub(super) struct Pair {
    path: PathBuf,
    x: (String, Stream),
    y: Option<(String, Stream)>,
    rows: usize,
    dim: usize,
    row: usize,
}

/// Finds features and labels: by the names that are asked for, else `x` and `y`, else those of the asked half.
pub(super) fn choose(path: &Path, mut container: impl Container, options: &Options) -> Result<Pair, Error> {
    let names = container.names();
    let there = |name: &str| names.iter().any(|n| n == name);
    let half = match options.split {
        Split::Train => "train",
        Split::Test => "test",
    };
    let missing = |array: String| {
        let found = if names.is_empty() { "none at all".to_owned() } else { names.join(", ") };
        Error::MissingArray { path: path.to_owned(), array, found }
    };
    let x = match &options.features {
        Some(name) if there(name) => name.clone(),
        Some(name) => return Err(missing(name.clone())),
        None => ["x".to_owned(), format!("x_{half}")]
            .into_iter()
            .find(|name| there(name))
            .ok_or_else(|| missing(format!("x or x_{half}")))?,
    };
    let y = match &options.label {
        Some(name) if there(name) => Some(name.clone()),
        Some(name) => return Err(missing(name.clone())),
        // The labels of `x` are `y`, and those of `x_test` are `y_test`.
        None => Some(x.strip_prefix('x').map_or("y".to_owned(), |rest| format!("y{rest}"))).filter(|name| there(name)),
    };
    let x = (x.clone(), container.array(&x)?);
    let y = y.map(|name| container.array(&name).map(|stream| (name, stream))).transpose()?;
    Pair::new(path, x, y)
}

impl Pair {
    /// Puts features and labels together, if they have as many rows.
    pub fn new(path: &Path, x: (String, Stream), y: Option<(String, Stream)>) -> Result<Pair, Error> {
        let refuse = |array: &str, problem| Error::Array { path: path.to_owned(), array: array.to_owned(), problem };
        let (rows, dim) = x.1.feature_shape().map_err(|problem| refuse(&x.0, problem))?;
        if let Some((name, labels)) = &y
            && labels.shape != [rows]
        {
            let expected = format!("({rows},), one per row of {},", x.0);
            return Err(refuse(name, ArrayProblem::Shape { found: labels.shape.clone(), expected }));
        }
        Ok(Pair { path: path.to_owned(), x, y, rows, dim, row: 0 })
    }
}

impl Rows for Pair {
    fn dim(&self) -> usize {
        self.dim
    }

    fn has_labels(&self) -> bool {
        self.y.is_some()
    }

    fn len(&self) -> Option<usize> {
        Some(self.rows)
    }

    fn read(&mut self, most: usize) -> Result<Piece, Error> {
        let rows = most.min(self.rows - self.row);
        if rows == 0 {
            return Ok(Piece::default());
        }
        let path = &self.path;
        let refuse = |array: &str, problem| Error::Array { path: path.clone(), array: array.to_owned(), problem };
        let x = self.x.1.features(rows).map_err(|problem| refuse(&self.x.0, problem))?;
        let labels = match &mut self.y {
            Some((name, labels)) => labels.labels(rows).map_err(|problem| refuse(name, problem))?,
            None => Vec::new(),
        };
        self.row += rows;
        Ok(Piece { x, labels })
    }
}
