//! Data sets from files: the splits of a file with named arrays, or of a table with a column `split`.

use std::collections::BTreeMap;
use std::path::Path;

use loranpac::internals::count;
use loranpac::{Label, memory};

use crate::dataset::{Dataset, Part};
use crate::error::{ArrayProblem, Error};
use crate::formats::{self, Container, DOMAINS, FEATURES, LABELS, Pair, encoded_by, missing, pick, texts};
use crate::reader::{check_features, format_of, is_folder, open_rows, open_shared, splits};
use crate::rows::{DOMAIN, LABEL, Options, Rows, SPLIT, Split};

/// Rows of a table that are read at a time.
const ROWS: usize = 4096;

/// Features, labels and the number of features of one split.
type Half = (Part, Vec<Label>, usize);

impl Dataset {
    /// Reads training and test samples from a file or a folder of `.npy` files.
    ///
    /// A file with named arrays has `x_train`, `y_train`, `x_test` and `y_test` (or other usual names of features and
    /// labels), and optionally `domain_train` and `domain_test`, `x_train_layer*` with `x_test_layer*`, and `encoder` with
    /// the name and the digest of the encoder. A table has
    /// a column `split` (`train`, `val` and `valid` count as training; `test`) and optionally a column `domain`.
    pub fn open(path: &Path) -> Result<Dataset, Error> {
        let options = Options::default();
        let arrays = match is_folder(path)? {
            true => Some(formats::open_folder_arrays(path)),
            false => format_of(path, &options, "")?.open_arrays(path, open_shared)?,
        };
        let mut encoder = None;
        let halves = match arrays {
            Some(mut container) => {
                let names = container.names();
                encoder = encoded_by(&mut *container);
                let mut half = |split| half(path, &mut *container, &names, split);
                [half(Split::Train)?, half(Split::Test)?]
            }
            None => table(path, open_rows(path, &options)?)?,
        };
        let [(train, train_labels, dim), (test, test_labels, test_dim)] = halves;
        if dim != test_dim {
            let expected = format!("(samples, {dim}), as x_train,");
            let problem = ArrayProblem::Shape { found: vec![test_labels.len(), test_dim], expected };
            return Err(Error::Array { path: path.to_owned(), array: "x_test".to_owned(), problem });
        }
        let same = |(name, (dim, _)): (&String, &(usize, Vec<f32>))| test.layers.get(name).is_some_and(|t| t.0 == *dim);
        if train.layers.len() != test.layers.len() || !train.layers.iter().all(same) {
            let names = |part: &Part, split: Split| {
                let name = |(layer, (dim, _)): (&String, &(usize, _))| {
                    format!("x{}_{layer} ({})", split.suffix(), count(*dim, "feature"))
                };
                part.layers.iter().map(name).collect::<Vec<_>>().join(", ")
            };
            let (train, test) = (names(&train, Split::Train), names(&test, Split::Test));
            return Err(Error::Layers { path: path.to_owned(), train, test });
        }
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let dataset = Dataset::new(name, dim, (train, train_labels), (test, test_labels));
        Ok(Dataset { encoder, ..dataset })
    }

    /// The texts in an array that describes a file. None if there is no such array, or it cannot be read.
    pub fn texts(path: &Path, array: &str) -> Option<Vec<String>> {
        let container = format_of(path, &Options::default(), "").ok()?.open_arrays(path, open_shared).ok()?;
        texts(&mut *container?, array)
    }
}

/// One split of a file with named arrays.
fn half(path: &Path, container: &mut dyn Container, names: &[String], split: Split) -> Result<Half, Error> {
    let suffix = split.suffix();
    let name = |usual: &[&str]| {
        let advice = "; an experiment needs x_train, y_train, x_test and y_test";
        pick(path, names, usual, suffix)?
            .ok_or_else(|| missing(path, names, format!("{}{suffix}", usual[0]), "array", advice))
    };
    let (x_name, y_name) = (name(FEATURES)?, name(LABELS)?);
    let y = (y_name.clone(), container.array(&y_name)?);
    let (dim, x, labels) = whole(path, container, &x_name, Some(y))?;
    let rows = labels.len();
    let refuse = |array: &str, problem| Error::Array { path: path.to_owned(), array: array.to_owned(), problem };
    let check_length = |name: &str, length: usize| {
        let expected = format!("({rows},), one per row of {x_name},");
        let problem = ArrayProblem::Shape { found: vec![length], expected };
        if length == rows { Ok(()) } else { Err(refuse(name, problem)) }
    };
    let mut domain = None;
    if let Some(name) = pick(path, names, DOMAINS, suffix)? {
        let labels = container.array(&name)?.into_array().and_then(|array| array.into_labels());
        let labels = labels.map_err(|problem| refuse(&name, problem))?;
        check_length(&name, labels.len())?;
        domain = Some(labels);
    }
    let mut layers = BTreeMap::new();
    let prefix = format!("x{suffix}_layer");
    for name in names.iter().filter(|name| name.to_ascii_lowercase().starts_with(&prefix)) {
        let (dim, x, _) = whole(path, container, name, None)?;
        check_length(name, x.len() / dim)?;
        layers.insert(name[suffix.len() + 2..].to_owned(), (dim, x));
    }
    Ok((Part { x, y: Vec::new(), domain, layers }, labels, dim))
}

/// All features of an array, which must be finite, and their labels: (features per sample, features, labels).
fn whole(
    path: &Path,
    container: &mut dyn Container,
    name: &str,
    labels: Option<(String, formats::Stream)>,
) -> Result<(usize, Vec<f32>, Vec<Label>), Error> {
    let refuse = |problem| Error::Array { path: path.to_owned(), array: name.to_owned(), problem };
    let x = container.array(name)?;
    if x.shape.first() == Some(&0) {
        let expected = "at least one sample".to_owned();
        return Err(refuse(ArrayProblem::Shape { found: x.shape, expected }));
    }
    let mut pair = Pair::new(path, (name.to_owned(), x), labels)?;
    let dim = pair.dim();
    let mut piece = pair.read(usize::MAX)?;
    check_features(path, &piece.x, dim, 0).map_err(|error| match error {
        Error::Feature { source, .. } => refuse(ArrayProblem::Feature(Box::new(source))),
        other => other,
    })?;
    Ok((dim, piece.x, std::mem::take(&mut piece.tags[LABEL])))
}

/// Both splits of a table.
fn table(path: &Path, mut rows: Box<dyn Rows>) -> Result<[Half; 2], Error> {
    if !rows.has(SPLIT) {
        return Err(Error::NoSplit { path: path.to_owned() });
    }
    if !rows.has(LABEL) {
        return Err(Error::NoLabels { path: path.to_owned() });
    }
    let dim = rows.dim();
    let mut halves = [(Part::default(), Vec::new(), dim), (Part::default(), Vec::new(), dim)];
    let mut first = 0;
    loop {
        let piece = rows.read(ROWS)?;
        if piece.x.is_empty() {
            break;
        }
        check_features(path, &piece.x, dim, first)?;
        let splits = splits(path, &piece, first)?.unwrap_or_default();
        let [labels, _, domains] = piece.tags;
        let mut domains = domains.into_iter();
        for ((split, label), x) in splits.into_iter().zip(labels).zip(piece.x.chunks_exact(dim)) {
            let (part, labels, _) = &mut halves[usize::from(split == Split::Test)];
            memory::grow(&mut part.x, dim)?;
            part.x.extend_from_slice(x);
            labels.push(label);
            if let Some(domain) = domains.next() {
                part.domain.get_or_insert_default().push(domain);
            }
            first += 1;
        }
    }
    for (half, split) in halves.iter().zip([Split::Train, Split::Test]) {
        if half.1.is_empty() {
            return Err(Error::EmptySplit { path: path.to_owned(), split: split.name(), advice: "" });
        }
    }
    debug_assert!(halves.iter().all(|half| half.0.domain.is_some() == rows.has(DOMAIN)));
    Ok(halves)
}
