//! Feature files with named arrays: which arrays hold the samples, and how their rows are read together.

use std::path::{Path, PathBuf};

use loranpac::Label;

use super::names::{self, FEATURES, LABELS, WEIGHTS};
use super::stream::Stream;
use crate::error::{ArrayProblem, Error};
use crate::rows::{EncodedBy, LABEL, Options, Piece, Rows, Split};

/// A file, or a folder, with named arrays.
pub(crate) trait Container: Send {
    /// The names of its arrays.
    fn names(&self) -> Vec<String>;
    /// Opens an array, one of [`Container::names`].
    fn array(&mut self, name: &str) -> Result<Stream, Error>;
}

/// Features and their labels, read together.
pub(crate) struct Pair {
    path: PathBuf,
    x: (String, Stream),
    y: Option<(String, Stream)>,
    weights: Option<(String, Stream)>,
    rows: usize,
    dim: usize,
    row: usize,
    split: Option<Split>,
    encoder: Option<EncodedBy>,
}

/// Finds features and labels: by the names in `options`, else by usual names (`x` and `y`), else by usual names of the
/// split (`x_train` and `y_train`).
pub(super) fn choose(path: &Path, container: &mut dyn Container, options: &Options) -> Result<Pair, Error> {
    let names = container.names();
    let split = options.split;
    let x = match &options.features {
        Some(name) => names::find(path, &names, Some(name), (FEATURES, ""), "array")?.map(|at| names[at].clone()),
        None => match (pick(path, &names, FEATURES, "")?, pick(path, &names, FEATURES, split.suffix())?) {
            (None, None) if options.fallback => pick(path, &names, FEATURES, split.other().suffix())?,
            (plain, of_split) => plain.or(of_split),
        },
    };
    let Some(x) = x else {
        let wanted = format!("x or x{}", split.suffix());
        let advice = match pick(path, &names, FEATURES, split.other().suffix())? {
            Some(_) => "; read the other split with `split`",
            None => names::ADVICE,
        };
        return Err(names::missing(path, &names, wanted, "array", advice));
    };
    // The labels of `x` are `y`, and those of `x_test` are `y_test`.
    let own = [Split::Train, Split::Test].into_iter().find(|split| x.to_ascii_lowercase().ends_with(split.suffix()));
    let y = match &options.label {
        Some(name) => names::find(path, &names, Some(name), (LABELS, ""), "array")?.map(|at| names[at].clone()),
        None => pick(path, &names, LABELS, own.map_or("", Split::suffix))?,
    };
    let weights = match &options.weights {
        Some(name) => names::find(path, &names, Some(name), (WEIGHTS, ""), "array")?.map(|at| names[at].clone()),
        None => pick(path, &names, WEIGHTS, own.map_or("", Split::suffix))?,
    };
    let both = |own: &Split| names.iter().any(|name| names::is_usual(name, FEATURES, own.other().suffix()));
    let x = (x.clone(), container.array(&x)?);
    let y = y.map(|name| container.array(&name).map(|stream| (name, stream))).transpose()?;
    let weights = weights.map(|name| container.array(&name).map(|stream| (name, stream))).transpose()?;
    let pair = Pair::new(path, x, y)?.with_weights(weights)?;
    Ok(Pair { split: own.filter(both), encoder: encoded_by(container), ..pair })
}

/// The encoder that `loranpac embed` recorded: its name and its digest. An array of another shape has another meaning.
pub(crate) fn encoded_by(container: &mut dyn Container) -> Option<EncodedBy> {
    let [name, digest] = texts(container, "encoder")?.try_into().ok()?;
    Some(EncodedBy { name, digest })
}

/// The elements of a short array of texts.
pub(crate) fn texts(container: &mut dyn Container, array: &str) -> Option<Vec<String>> {
    const MOST: usize = 16;
    if !container.names().iter().any(|name| name == array) {
        return None;
    }
    let stream = container.array(array).ok().filter(|stream| matches!(stream.shape[..], [0..=MOST]))?;
    let text = |label| if let Label::Text(text) = label { Some(text) } else { None };
    stream.into_array().ok()?.into_labels().ok()?.into_iter().map(text).collect()
}

/// The array with a usual name and a suffix. The first of the usual names wins; others must be unique.
pub(crate) fn pick(path: &Path, names: &[String], usual: &[&str], suffix: &str) -> Result<Option<String>, Error> {
    let first = format!("{}{suffix}", usual[0]);
    if names.contains(&first) {
        return Ok(Some(first));
    }
    Ok(names::find(path, names, None, (usual, suffix), "array")?.map(|at| names[at].clone()))
}

impl Pair {
    /// Puts features and labels together, which must have the same number of rows.
    pub fn new(path: &Path, x: (String, Stream), y: Option<(String, Stream)>) -> Result<Pair, Error> {
        let refuse = |array: &str, problem| Error::Array { path: path.to_owned(), array: array.to_owned(), problem };
        let (rows, dim) = x.1.feature_shape().map_err(|problem| refuse(&x.0, problem))?;
        if let Some((name, labels)) = &y
            && labels.shape != [rows]
        {
            let expected = format!("({rows},), one per row of {},", x.0);
            return Err(refuse(name, ArrayProblem::Shape { found: labels.shape.clone(), expected }));
        }
        Ok(Pair { path: path.to_owned(), x, y, weights: None, rows, dim, row: 0, split: None, encoder: None })
    }

    /// Adds weights, which must have the same number of rows.
    fn with_weights(self, weights: Option<(String, Stream)>) -> Result<Pair, Error> {
        if let Some((name, stream)) = &weights
            && stream.shape != [self.rows]
        {
            let expected = format!("({},), one per row of {},", self.rows, self.x.0);
            let problem = ArrayProblem::Shape { found: stream.shape.clone(), expected };
            return Err(Error::Array { path: self.path, array: name.clone(), problem });
        }
        Ok(Pair { weights, ..self })
    }
}

impl Rows for Pair {
    fn dim(&self) -> usize {
        self.dim
    }

    fn has(&self, tag: usize) -> bool {
        tag == LABEL && self.y.is_some()
    }

    fn len(&self) -> Option<usize> {
        Some(self.rows)
    }

    fn split(&self) -> Option<Split> {
        self.split
    }

    fn encoder(&self) -> Option<&EncodedBy> {
        self.encoder.as_ref()
    }

    fn read(&mut self, most: usize) -> Result<Piece, Error> {
        let rows = most.min(self.rows - self.row);
        let mut piece = Piece::default();
        if rows == 0 {
            return Ok(piece);
        }
        let path = &self.path;
        let refuse = |array: &str, problem| Error::Array { path: path.clone(), array: array.to_owned(), problem };
        piece.x = self.x.1.features(rows).map_err(|problem| refuse(&self.x.0, problem))?;
        if let Some((name, labels)) = &mut self.y {
            piece.tags[LABEL] = labels.labels(rows).map_err(|problem| refuse(name, problem))?;
        }
        if let Some((name, weights)) = &mut self.weights {
            piece.weights = weights.numbers(rows).map_err(|problem| refuse(name, problem))?;
        }
        self.row += rows;
        Ok(piece)
    }
}
