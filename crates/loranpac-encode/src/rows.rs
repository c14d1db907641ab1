//! Samples from raw inputs: what `learn` and `predict` read if the model has an encoder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loranpac::Label;
use loranpac_data::{EncodedBy, Format, LABEL, Options, Piece, Reader, Rows, Split};

use crate::cache::Cache;
use crate::embedding::{Embedding, EmbeddingOptions, Encoded};
use crate::encoder::{Encoder, encoded_by};
use crate::error::Error;
use crate::image::Limits;
use crate::input::{InputOptions, Inputs, Present};

/// How raw inputs become samples.
pub struct RawOptions {
    /// How inputs are read. `split` is the split to read.
    pub inputs: InputOptions,
    /// Whether to read the other split where a source lacks that one.
    pub fallback: bool,
    /// Features that were computed before.
    pub cache: Option<Cache>,
    /// Limits on images.
    pub limits: Limits,
    /// Labels that exist already. The name of a folder is the one of them that is written in the same way: 1 or "1".
    pub known: Vec<Label>,
}

/// A function that is called with the number of inputs of each batch that was encoded.
pub type Watch = Box<dyn FnMut(usize) + Send>;

/// Where raw inputs are.
pub enum RawSource<'a> {
    /// Everything that [`Inputs::open`] opens.
    Path(&'a Path),
    /// A table in memory ([`Inputs::table`]): its name in messages, its contents and their format.
    Table(&'a str, Arc<[u8]>, Format),
    /// A text whose lines are the inputs ([`Inputs::lines`]): its name in messages, and its contents.
    Lines(&'a str, Arc<str>),
}

impl RawSource<'_> {
    fn open(&self, options: &InputOptions) -> Result<Inputs, Error> {
        match self {
            RawSource::Path(path) => Inputs::open(&[path.to_path_buf()], options),
            RawSource::Table(name, bytes, format) => Inputs::table(name, bytes.clone(), *format, options),
            RawSource::Lines(name, text) => Ok(Inputs::lines(name, text.clone())),
        }
    }

    fn path(&self) -> &Path {
        match self {
            RawSource::Path(path) => path,
            RawSource::Table(name, ..) | RawSource::Lines(name, _) => Path::new(name),
        }
    }
}

/// Opens raw inputs as samples. `watch` is made for the number of inputs, if that is known, and dropped after the last
/// batch.
///
/// # Errors
/// If the source cannot be read, or has no input of the split.
pub fn read_raw(
    source: &RawSource<'_>,
    encoder: Arc<dyn Encoder>,
    options: RawOptions,
    watch: impl FnOnce(Option<usize>) -> Option<Watch>,
) -> Result<Reader, Error> {
    let RawOptions { inputs: input_options, fallback, cache, limits, known } = options;
    let (mut split, skip_bad) = (input_options.split, input_options.skip_bad);
    let inputs = match source.open(&input_options) {
        Err(Error::NoSplit { .. }) if fallback => {
            let other = split.take().map(Split::other);
            source.open(&InputOptions { split: other, ..input_options })?
        }
        inputs => inputs?,
    };
    let present = inputs.present();
    let watch = watch(inputs.count_hint());
    let options = EmbeddingOptions { layers: None, skip_bad, limits };
    let by = encoded_by(&*encoder);
    let embedding = Embedding::new(inputs, encoder, cache, options)?;
    let split = split.filter(|_| present.splits);
    // Of two that are written in the same way, the first: in any order of commands it is the older one.
    let known = known.into_iter().rev().map(|label| (label.to_string(), label)).collect();
    let ready = Piece::default();
    let path = source.path();
    let rows = EncodedRows { path: path.to_owned(), embedding, by, present, split, watch, known, ready };
    Ok(Reader::new(path, Box::new(rows), &Options::default()))
}

/// The rows of an embedding.
struct EncodedRows {
    path: PathBuf,
    embedding: Embedding,
    by: EncodedBy,
    present: Present,
    /// The split that is read, of a source that has splits.
    split: Option<Split>,
    watch: Option<Watch>,
    /// Labels that exist already, by how they are written.
    known: HashMap<String, Label>,
    /// Encoded, but not yet returned.
    ready: Piece,
}

impl EncodedRows {
    fn add(&mut self, encoded: Encoded) -> Result<(), Error> {
        if let Some(watch) = &mut self.watch {
            watch(encoded.names.len());
        }
        for (name, tags) in encoded.names.iter().zip(encoded.tags) {
            match tags.label {
                Some(label) => {
                    let known = self.known.get(&label.to_string()).filter(|_| self.present.names);
                    self.ready.tags[LABEL].push(known.cloned().unwrap_or(label));
                }
                None if self.present.labels => {
                    return Err(Error::NoLabel { path: self.path.clone(), name: name.clone() });
                }
                None => {}
            }
        }
        self.ready.x.extend(encoded.features);
        self.ready.rows.extend(encoded.rows);
        self.ready.names.extend(encoded.names);
        Ok(())
    }
}

impl Rows for EncodedRows {
    fn dim(&self) -> usize {
        self.embedding.row()
    }

    fn has(&self, tag: usize) -> bool {
        tag == LABEL && self.present.labels
    }

    fn len(&self) -> Option<usize> {
        self.embedding.count_hint()
    }

    fn split(&self) -> Option<Split> {
        self.split
    }

    fn encoder(&self) -> Option<&EncodedBy> {
        Some(&self.by)
    }

    fn has_names(&self) -> bool {
        self.present.names
    }

    fn skipped(&self) -> Vec<String> {
        self.embedding.skipped()
    }

    fn read(&mut self, most: usize) -> Result<Piece, loranpac_data::Error> {
        let failed = |error: Error| loranpac_data::Error::Source(Box::new(error));
        while self.ready.names.len() < most {
            match self.embedding.next_batch().map_err(failed)? {
                Some(encoded) => self.add(encoded).map_err(failed)?,
                None => {
                    self.watch = None;
                    break;
                }
            }
        }
        let count = most.min(self.ready.names.len());
        let mut piece = Piece { x: front(&mut self.ready.x, count * self.embedding.row()), ..Piece::default() };
        piece.names = front(&mut self.ready.names, count);
        piece.rows = front(&mut self.ready.rows, count);
        if self.present.labels {
            piece.tags[LABEL] = front(&mut self.ready.tags[LABEL], count);
        }
        Ok(piece)
    }
}

/// Takes the first elements of a list.
fn front<T>(list: &mut Vec<T>, count: usize) -> Vec<T> {
    let rest = list.split_off(count);
    std::mem::replace(list, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modality::Modality;
    use crate::ngrams::TextNgrams;

    fn open(table: &str, split: Option<Split>, fallback: bool) -> Result<Reader, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, table).unwrap();
        let inputs = InputOptions { split, ..InputOptions::new(Modality::Text) };
        let options = RawOptions { inputs, fallback, cache: None, limits: Limits::default(), known: Vec::new() };
        read_raw(&RawSource::Path(&path), Arc::new(TextNgrams), options, |_| None)
    }

    #[test]
    fn samples_have_features_labels_and_names_of_the_split() {
        let table = "text,label,split\nred,a,train\ngreen,b,test\nblue,c,train\npink,d,train\n";
        let mut reader = open(table, Some(Split::Train), false).unwrap();
        let by = reader.encoder().unwrap();
        assert_eq!((by.name.as_str(), by.digest.len(), reader.split()), ("text-ngrams", 64, Some(Split::Train)));
        let first = reader.next(2).unwrap().unwrap();
        let second = reader.next(2).unwrap().unwrap();
        assert_eq!(first.names.unwrap(), ["row 0", "row 2"]);
        assert_eq!(second.labels.unwrap(), ["d".into()]);
        assert_eq!((first.x.len(), second.x.len()), (2 * reader.dim(), reader.dim()));
        assert_eq!((first.rows, second.rows), (vec![0, 2], vec![3]));
        assert!(reader.next(2).unwrap().is_none());
    }

    #[test]
    fn the_other_split_is_read_only_where_that_is_wanted() {
        let table = "text,split\nred,train\n";
        assert!(matches!(open(table, Some(Split::Test), false), Err(Error::NoSplit { split: "test", .. })));
        let mut reader = open(table, Some(Split::Test), true).unwrap();
        assert_eq!((reader.split(), reader.next(9).unwrap().unwrap().names.unwrap().len()), (None, 1));
    }
}
