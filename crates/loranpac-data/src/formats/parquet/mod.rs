//! Parquet: a column of lists with the features, and optional columns for label, split and domain.
//!
//! Supported compressions are those implemented in Rust: none, snappy, gzip and LZ4. Zstandard and Brotli need a C
//! compiler, and are refused with advice.

mod claims;
mod texts;
mod thrift;
mod values;

use std::io::BufReader;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::schema::types::ColumnDescPtr;

use super::format::{Format, Opening};
use super::names::{self, FEATURES};
use super::source::{Shared, Window};
use crate::error::Error;
use crate::rows::{DOMAIN, Options, Piece, Rows, TAGS};

pub(super) use texts::ParquetTexts;
use values::decoded;

/// A larger number of features is accepted only if the file has as many bytes: a few bytes can claim any number.
const BELIEVED: usize = 1 << 16;
/// Values that are read at a time.
const BLOCK: usize = 1 << 18;

/// A table with a column of lists.
pub(super) const PARQUET: Format = Format {
    name: "parquet",
    other_names: &[],
    opening: Opening::Table(|path, shared, options| Ok(Box::new(Parquet::open(path, shared, options)?))),
    texts: Some(|path, shared, options| Ok(Box::new(ParquetTexts::open(path, shared, options)?))),
};

struct Parquet {
    path: PathBuf,
    shared: Shared,
    file: SerializedFileReader<Shared>,
    features: Column,
    /// Label, split and domain.
    tags: [Option<Column>; TAGS],
    weights: Option<Column>,
    dim: usize,
    rows: usize,
    /// The row group to open next.
    group: usize,
    /// Rows that the open group still has, and its columns.
    left: usize,
    open: Option<(ColumnReader, [Option<ColumnReader>; TAGS], Option<ColumnReader>)>,
    /// Rows that were read.
    row: usize,
}

/// A column that is read.
#[derive(Clone)]
struct Column {
    /// Its number.
    leaf: usize,
    name: String,
    about: ColumnDescPtr,
}

impl Parquet {
    pub fn open(path: &Path, shared: Shared, options: &Options) -> Result<Parquet, Error> {
        let (file, columns) = open_file(path, &shared)?;
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let column = |at: usize| columns[at].clone();
        let place = names::find(path, &names, options.features.as_deref(), (FEATURES, ""), "features column")?;
        let place = place.ok_or_else(|| names::missing_features(path, &names, "features column"))?;
        let features = column(place);
        let tags = names::tags(path, &names, options, "label column")?.map(|tag| tag.map(column));
        values::check_features(&features.about).map_err(|reason| refuse(path, &features, reason))?;
        let tags = usable(path, tags)?;
        let weights = names::weights(path, &names, options, "weights column")?.map(column);
        let (rows, dim) =
            shape(&file, features.leaf, shared.length()).map_err(|reason| refuse(path, &features, reason))?;
        let path = path.to_owned();
        Ok(Parquet { path, shared, file, features, tags, weights, dim, rows, group: 0, left: 0, open: None, row: 0 })
    }

    /// Opens the next row group; false if there is none.
    fn next_group(&mut self) -> Result<bool, Error> {
        let group = self.group;
        if group >= self.file.num_row_groups() {
            return Ok(false);
        }
        self.group += 1;
        let about = self.file.metadata().row_group(group);
        // The sum of these was checked when the file was opened.
        self.left = usize::try_from(about.num_rows()).unwrap_or(0);
        let reader = |column: &Column, nested: bool, values: Option<usize>| {
            let each = format!("{} features", self.dim);
            let reader = open_column(&self.file, &self.shared, group, column, (nested, values, &each));
            reader.map_err(|reason| refuse(&self.path, column, reason))
        };
        let features = reader(&self.features, true, self.left.checked_mul(self.dim))?;
        let mut tags = [const { None }; TAGS];
        for (open, tag) in tags.iter_mut().zip(&self.tags) {
            *open = tag.as_ref().map(|tag| reader(tag, false, Some(self.left))).transpose()?;
        }
        let weights = self.weights.as_ref().map(|column| reader(column, false, Some(self.left))).transpose()?;
        self.open = Some((features, tags, weights));
        Ok(true)
    }
}

impl Rows for Parquet {
    fn dim(&self) -> usize {
        self.dim
    }

    fn has(&self, tag: usize) -> bool {
        self.tags[tag].is_some()
    }

    fn len(&self) -> Option<usize> {
        Some(self.rows)
    }

    fn read(&mut self, most: usize) -> Result<Piece, Error> {
        let mut piece = Piece::default();
        let mut wanted = most;
        while wanted > 0 {
            if self.left == 0 {
                if !self.next_group()? {
                    break;
                }
                continue;
            }
            let rows = wanted.min(self.left).min((BLOCK / self.dim).max(1));
            let Some((features, tags, weights)) = &mut self.open else { break };
            let read = values::read_features(features, &self.features.about, (self.row, rows, self.dim), &mut piece.x);
            read.map_err(|reason| refuse(&self.path, &self.features, reason))?;
            for (at, tag) in self.tags.iter().enumerate() {
                if let (Some(reader), Some(tag)) = (&mut tags[at], tag) {
                    let read = values::read_labels(reader, &tag.about, (self.row, rows), &mut piece.tags[at]);
                    read.map_err(|reason| refuse(&self.path, tag, reason))?;
                }
            }
            if let (Some(reader), Some(column)) = (weights, &self.weights) {
                let read = values::read_weights(reader, &column.about, (self.row, rows), &mut piece.weights);
                read.map_err(|reason| refuse(&self.path, column, reason))?;
            }
            self.left -= rows;
            self.row += rows;
            wanted -= rows;
        }
        Ok(piece)
    }
}

/// Opens a file, and lists its columns.
fn open_file(path: &Path, shared: &Shared) -> Result<(SerializedFileReader<Shared>, Vec<Column>), Error> {
    let damaged = |reason: String| Error::Container { path: path.to_owned(), reason };
    claims::check_footer(shared).map_err(damaged)?;
    let file = decoded(|| SerializedFileReader::new(shared.clone())).map_err(damaged)?;
    let schema = file.metadata().file_metadata().schema_descr();
    let column = |leaf: usize| {
        let (name, about) = (schema.get_column_root(leaf).name().to_owned(), schema.column(leaf));
        Column { leaf, name, about }
    };
    let columns = (0..schema.num_columns()).map(column).collect();
    Ok((file, columns))
}

/// Refuses tags of types that cannot be labels.
fn usable(path: &Path, mut tags: [Option<Column>; TAGS]) -> Result<[Option<Column>; TAGS], Error> {
    // A column `domain` of another type has another meaning.
    tags[DOMAIN] = tags[DOMAIN].take().filter(|column| values::check_label(&column.about).is_ok());
    for tag in tags.iter().flatten() {
        values::check_label(&tag.about).map_err(|reason| refuse(path, tag, reason))?;
    }
    Ok(tags)
}

/// A column of a row group, after a check of its claims: whether it has lists, its number of values, and what each row
/// has of them.
fn open_column(
    file: &SerializedFileReader<Shared>,
    shared: &Shared,
    group: usize,
    column: &Column,
    (nested, values, each): (bool, Option<usize>, &str),
) -> Result<ColumnReader, String> {
    let about = file.metadata().row_group(group);
    let chunk = about.columns().get(column.leaf).ok_or("it is not in every row group")?;
    check_compression(chunk.compression())?;
    if values != usize::try_from(chunk.num_values()).ok() {
        return Err(format!("row group {group} does not have {each} in each row"));
    }
    claims::check_pages(shared, chunk, nested)?;
    decoded(|| file.get_row_group(group)?.get_column_reader(column.leaf))
}

fn refuse(path: &Path, column: &Column, reason: String) -> Error {
    Error::Column { path: path.to_owned(), column: column.name.clone(), reason }
}

/// Rows of the file, and features of each.
fn shape(file: &SerializedFileReader<Shared>, leaf: usize, length: u64) -> Result<(usize, usize), String> {
    let mut rows = 0usize;
    let mut dim = None;
    for group in file.metadata().row_groups() {
        let count = usize::try_from(group.num_rows()).ok();
        rows = count.and_then(|count| rows.checked_add(count)).ok_or("the number of rows is out of range")?;
        if let (None, Some(count @ 1..), Some(chunk)) = (dim, count, group.columns().get(leaf)) {
            let values = usize::try_from(chunk.num_values()).map_err(|_| "the number of values is out of range")?;
            if values % count != 0 {
                return Err(format!("{values} values cannot be {count} rows of the same number of features"));
            }
            dim = Some(values / count);
        }
    }
    match dim {
        None => Err("the file has no rows".to_owned()),
        Some(0) => Err("rows have no features".to_owned()),
        Some(dim) if dim > BELIEVED && dim as u64 > length => {
            Err(format!("{dim} features in each row do not fit into a file of {length} bytes"))
        }
        Some(dim) => Ok((rows, dim)),
    }
}

fn check_compression(compression: Compression) -> Result<(), String> {
    let name = match compression {
        Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::GZIP(_) | Compression::LZ4 => return Ok(()),
        Compression::LZ4_RAW => return Ok(()),
        Compression::ZSTD(_) => "zstd",
        Compression::BROTLI(_) => "brotli",
        Compression::LZO => "lzo",
    };
    Err(format!("it is compressed with {name}, which is not supported; write it with snappy, gzip, lz4 or none"))
}

impl Length for Shared {
    fn len(&self) -> u64 {
        self.length()
    }
}

impl ChunkReader for Shared {
    type T = BufReader<Window>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.window(start, u64::MAX))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let bytes = self.copy(start, length as u64)?;
        if bytes.len() < length {
            return Err(ParquetError::EOF("the file is truncated".to_owned()));
        }
        Ok(bytes.into())
    }
}
