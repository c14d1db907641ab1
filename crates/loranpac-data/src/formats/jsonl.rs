//! One JSON object per line: `{"x": [0.5, 1.5], "y": "cat"}`. Other keys and empty lines are ignored.

use std::io::Read;
use std::path::Path;

use super::format::{Format, Opening};
use super::lines::{Keys, Lines};
use super::names;
use super::texts::JsonlTexts;
use crate::error::{Error, LineProblem};
use crate::rows::{Options, Piece, Rows};

/// One JSON object per line.
pub(super) const JSONL: Format = Format {
    name: "jsonl",
    other_names: &["ndjson"],
    opening: Opening::Stream(|path, source, _, options| Ok(Box::new(Jsonl::open(path, source, options)?))),
    texts: Some(|path, shared, options| Ok(Box::new(JsonlTexts::open(path, Box::new(shared.whole()), options)?))),
};

struct Jsonl {
    lines: Lines,
    keys: Keys<Vec<f32>>,
    dim: usize,
    /// Whether the current line is the first sample, which was read to find the keys.
    pending: bool,
}

impl Jsonl {
    pub fn open(path: &Path, source: Box<dyn Read + Send>, options: &Options) -> Result<Jsonl, Error> {
        let lines = Lines::open(path, source)?;
        let names = lines.keys()?;
        let place = names::find(path, &names, options.features.as_deref(), (names::FEATURES, ""), "features key")?;
        let place = place.ok_or_else(|| names::missing_features(path, &names, "features key"))?;
        let tags = names::tags(path, &names, options, "label key")?.map(|tag| tag.map(|at| names[at].clone()));
        let weight = names::weights(path, &names, options, "weights key")?.map(|at| names[at].clone());
        let keys = Keys::new(names[place].clone(), tags).with_weight(weight);
        let mut jsonl = Jsonl { lines, keys, dim: 0, pending: true };
        jsonl.dim = jsonl.lines.parse(&jsonl.keys)?.0.len();
        if jsonl.dim == 0 {
            return Err(jsonl.lines.refuse(LineProblem::Json("has no features".to_owned())));
        }
        Ok(jsonl)
    }
}

impl Rows for Jsonl {
    fn dim(&self) -> usize {
        self.dim
    }

    fn has(&self, tag: usize) -> bool {
        self.keys.has(tag)
    }

    fn read(&mut self, most: usize) -> Result<Piece, Error> {
        let mut piece = Piece::default();
        for _ in 0..most {
            if !std::mem::take(&mut self.pending) && !self.lines.advance()? {
                break;
            }
            let (x, tags, weight) = self.lines.parse(&self.keys)?;
            if x.len() != self.dim {
                return Err(self.lines.refuse(LineProblem::Features { found: x.len(), expected: self.dim }));
            }
            piece.x.extend(x);
            piece.weights.extend(weight);
            for (column, tag) in piece.tags.iter_mut().zip(tags) {
                column.extend(tag);
            }
        }
        Ok(piece)
    }
}
