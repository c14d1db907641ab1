//! Raw inputs and their tags: folders, archives, tables and lists of files.
//!
//! | source | inputs |
//! |---|---|
//! | a folder, a `.tar`, `.tar.gz`, `.tgz` or `.zip` archive | its images (or `.txt` files), tagged by their folders |
//! | `.csv`, `.tsv`, `.jsonl` or `.parquet` | a column of texts, or of paths relative to the table |
//! | `.txt` | one path per line, relative to the list, optionally a blank and a label |
//! | an image or a text file | itself |
//!
//! **Folders** are `CLASS/*`, `SPLIT/CLASS/*`, `DOMAIN/CLASS/*`, `DOMAIN/SPLIT/CLASS/*` or `SPLIT/DOMAIN/CLASS/*`; files
//! that lie directly in the source or in folders of splits have no label. A split is `train`, `val`, `valid`,
//! `validation` or `test` in any case; all but `test` are training samples. All files must lie equally deep. A single
//! folder at the top of an archive is the archive's own and is no tag.
//!
//! **Ignored** are hidden files and folders (`.DS_Store`), `__MACOSX`, `Thumbs.db`, `desktop.ini`, and files called
//! `README`, `LICENSE`, `NOTICE` or `CITATION` with any extension. Every other file that is not of the wanted kind is an
//! error, unless bad inputs are skipped.
//!
//! **Order** is that of the names, byte by byte, for folders and archives, and that of the rows for tables and lists. A
//! compressed tar archive cannot be read in another order than its own.
//!
//! **Links** are followed in folders, but not to a folder that contains them. In archives they are errors: nothing is
//! ever extracted, so they have no target.

mod files;
mod given;
mod layout;
mod outline;
mod table;
mod tape;
mod zipped;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loranpac::Label;
use loranpac_data::{Format, Split};
use sha2::{Digest, Sha256};

use crate::encoder::Image;
use crate::error::Error;
use crate::modality::Modality;

pub use layout::Layout;
pub use outline::Outline;

/// How inputs are read.
#[derive(Debug, Clone)]
pub struct InputOptions {
    /// What to look for.
    pub modality: Modality,
    /// Column of a table with the texts, or with paths. None: a usual name (`text`; `path`, `file`, `image`).
    pub column: Option<String>,
    /// Column of a table with the labels. None: `y`, `labels`, `label`, `class` or `target`.
    pub label: Option<String>,
    /// The split to read, of sources that have splits. None: all.
    pub split: Option<Split>,
    /// What the folders of folders and archives stand for.
    pub layout: Layout,
    /// Whether files of other kinds are skipped rather than refused.
    pub skip_bad: bool,
    /// The most bytes of one file, unpacked.
    pub largest: u64,
}

impl InputOptions {
    /// The usual options: usual names, nothing skipped, files of up to 256 MiB.
    pub fn new(modality: Modality) -> InputOptions {
        InputOptions {
            modality,
            column: None,
            label: None,
            split: None,
            layout: Layout::Usual,
            skip_bad: false,
            largest: 256 << 20,
        }
    }

    /// Whether inputs of a split are read.
    fn takes(&self, split: Option<Split>) -> bool {
        self.split.is_none_or(|wanted| split.is_none_or(|split| split == wanted))
    }
}

/// One raw input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Its path within the source, or the number of its row.
    pub name: String,
    /// Its contents.
    pub data: Data,
    /// Its tags.
    pub tags: Tags,
    /// The folder that contains it, as `photos/`, the archive, or the line of the table or list that names it, as
    /// `list.csv:17`.
    pub place: Option<String>,
    /// Its row in a table, of all splits, or its number among the inputs of other sources, from 0. Those that cannot be read
    /// count. [`Inputs`] sets it.
    pub row: usize,
}

impl Input {
    /// An input that is in memory.
    pub fn new(name: String, data: Data) -> Input {
        Input { name, data, tags: Tags::default(), place: None, row: 0 }
    }

    /// Its name in messages.
    pub(crate) fn shown(&self) -> String {
        match &self.place {
            Some(place) => shown(place, &self.name),
            None => self.name.clone(),
        }
    }
}

/// The contents of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// A file with an image.
    Image(Vec<u8>),
    /// An image that was decoded before.
    Pixels(Image),
    /// A text.
    Text(String),
}

impl Data {
    /// SHA-256 of its contents, with their kind and shape.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let (kind, bytes) = match self {
            Data::Image(bytes) => ("image\n".to_owned(), bytes.as_slice()),
            Data::Pixels(image) => (format!("pixels {} {}\n", image.width, image.height), image.pixels.as_slice()),
            Data::Text(text) => ("texts\n".to_owned(), text.as_bytes()),
        };
        Sha256::new_with_prefix(kind).chain_update(bytes).finalize().into()
    }
}

/// What is known about an input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tags {
    /// Its class.
    pub label: Option<Label>,
    /// Training or test.
    pub split: Option<Split>,
    /// Its domain.
    pub domain: Option<Label>,
}

/// Which tags the inputs of a source have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Present {
    /// Whether they have labels.
    pub labels: bool,
    /// Whether they have splits.
    pub splits: bool,
    /// Whether they have names of their own, rather than numbers of rows.
    pub names: bool,
}

impl Present {
    /// The tags that occur among these.
    fn of<'a>(tags: impl Iterator<Item = &'a Tags>) -> Present {
        tags.fold(Present::default(), |seen, tags| Present {
            labels: seen.labels || tags.label.is_some(),
            splits: seen.splits || tags.split.is_some(),
            names: true,
        })
    }
}

/// Makes all labels texts if one of them is: 1 and "1" are different classes.
pub(crate) fn same_type(labels: Vec<&mut Label>) {
    if labels.iter().any(|label| matches!(label, Label::Text(_))) {
        labels.into_iter().for_each(|label| *label = Label::Text(label.to_string()));
    }
}

/// What is known about a source before its inputs are read.
#[derive(Default)]
struct About {
    /// Which tags the inputs of all splits have.
    present: Present,
    /// Files of other kinds.
    skipped: Vec<String>,
    /// What the listing of a folder or an archive shows.
    outline: Option<Outline>,
}

/// A source of inputs.
trait Source: Send {
    /// What is known before its inputs are read.
    fn about(&self) -> &About;
    /// Number of inputs, if it is known before they are read.
    fn len(&self) -> Option<usize>;
    /// The next input; none at the end. After [`Error::Input`] and [`Error::Read`] the next one can be read.
    fn next(&mut self) -> Option<Result<Input, Error>>;
    /// The row of the input that was returned last, if the source has rows.
    fn row(&self) -> Option<usize> {
        None
    }
}

/// Reads inputs one after the other, from one or several sources.
pub struct Inputs {
    sources: Vec<Box<dyn Source>>,
    at: usize,
    /// Inputs that were returned, with those that could not be read.
    returned: usize,
}

impl Inputs {
    /// Opens sources: folders, archives, tables, lists and single files. Folders and archives are listed at once, so that
    /// a file of the wrong kind is found before hours of work, but no contents are read.
    ///
    /// # Errors
    /// If a source cannot be read, has no inputs, or has folders of another layout.
    pub fn open(paths: &[PathBuf], options: &InputOptions) -> Result<Inputs, Error> {
        let sources = paths.iter().map(|path| open(path, options)).collect::<Result<Vec<_>, Error>>()?;
        Ok(Inputs::from(sources))
    }

    fn from(sources: Vec<Box<dyn Source>>) -> Inputs {
        Inputs { sources, at: 0, returned: 0 }
    }

    /// Opens a table that is in memory, such as standard input. Messages call it `name`, and the paths in it are relative to
    /// the working directory.
    ///
    /// # Errors
    /// If it is damaged, or has no column of texts or paths.
    pub fn table(name: &str, bytes: Arc<[u8]>, format: Format, options: &InputOptions) -> Result<Inputs, Error> {
        let table = table::Table::in_memory(name, bytes, format, options)?;
        Ok(Inputs::from(vec![Box::new(table)]))
    }

    /// Takes the lines of a text, each of which is one. Messages call it `name`.
    pub fn lines(name: &str, text: Arc<str>) -> Inputs {
        Inputs::from(vec![Box::new(given::Lines::new(name, text))])
    }

    /// Takes inputs that are in memory, or that the iterator reads when they are due.
    pub fn of(inputs: impl Iterator<Item = Result<Input, Error>> + Send + 'static) -> Inputs {
        Inputs::from(vec![Box::new(given::Given::new(inputs))])
    }

    /// Which tags the inputs have; some of them, if there are several sources.
    pub fn present(&self) -> Present {
        self.sources.iter().map(|source| source.about().present).fold(Present::default(), |seen, more| Present {
            labels: seen.labels || more.labels,
            splits: seen.splits || more.splits,
            names: seen.names || more.names,
        })
    }

    /// Number of inputs, if it is known before they are read.
    pub fn count_hint(&self) -> Option<usize> {
        self.sources.iter().map(|source| source.len()).sum()
    }

    /// What the listing shows, if there is one source, which is a folder or an archive.
    pub fn outline(&self) -> Option<&Outline> {
        match &self.sources[..] {
            [source] => source.about().outline.as_ref(),
            _ => None,
        }
    }

    /// Files that were skipped because they are of another kind.
    pub fn skipped(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().flat_map(|source| &source.about().skipped).map(String::as_str)
    }
}

/// After an error of a single input ([`Error::concerns_one_input`]) the next one can be read; after every other error the
/// sequence ends.
impl Iterator for Inputs {
    type Item = Result<Input, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(source) = self.sources.get_mut(self.at) {
            match source.next() {
                None => self.at += 1,
                Some(Err(error)) if !error.concerns_one_input() => {
                    self.at = self.sources.len();
                    return Some(Err(error));
                }
                Some(found) => {
                    let row = source.row().unwrap_or(self.returned);
                    self.returned += 1;
                    return Some(found.map(|input| Input { row, ..input }));
                }
            }
        }
        None
    }
}

/// Why a text without words is refused: its features would mean nothing.
const EMPTY: &str = "the text is empty";

/// The longest list of paths.
const LONGEST_LIST: u64 = 256 << 20;

/// Endings of the names of tables, in lower case.
const TABLES: [&str; 5] = [".csv", ".tsv", ".jsonl", ".ndjson", ".parquet"];

/// Endings of the names of archives, in lower case.
const ARCHIVES: [&str; 4] = [".tar", ".tar.gz", ".tgz", ".zip"];

/// The name of a source without what stands for its format: that of a folder, or of a file without its extensions.
pub fn stem(path: &Path) -> String {
    let real = if path.file_name().is_none() { path.canonicalize().ok() } else { None };
    let path = real.as_deref().unwrap_or(path);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if path.is_dir() {
        return name;
    }
    let lower = name.to_ascii_lowercase();
    let packed = ARCHIVES.iter().find(|end| lower.ends_with(*end)).map(|end| name.len() - end.len());
    let length = packed.or(name.rfind('.')).filter(|&length| length > 0).unwrap_or(name.len());
    name[..length].to_owned()
}

/// Whether a path is a folder or an archive, by its name.
pub fn is_folder_or_archive(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    path.is_dir() || ARCHIVES.iter().any(|end| name.ends_with(end))
}

/// What the inputs under a path are, if it is a folder, an archive or a table of raw inputs.
pub fn modality_of(path: &Path) -> Option<Modality> {
    let holds = |modality: &Modality| {
        let options = InputOptions { skip_bad: true, ..InputOptions::new(*modality) };
        matches!(open(path, &options), Ok(_) | Err(Error::Layout { .. }))
    };
    [Modality::Image, Modality::Text].into_iter().find(holds)
}

/// Reads a file. `name` is its name in messages.
///
/// # Errors
/// If it cannot be read, is no regular file or larger than `options.largest`, or (texts) is not valid UTF-8.
pub fn read_file(name: &str, path: &Path, options: &InputOptions) -> Result<Data, Error> {
    files::read(name, path, options)
}

/// Opens one source, by its name.
fn open(path: &Path, options: &InputOptions) -> Result<Box<dyn Source>, Error> {
    let found = std::fs::metadata(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    if found.is_dir() {
        return Ok(Box::new(files::Files::folder(path, options)?));
    }
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    if ends(&[".tar"]) {
        return Ok(Box::new(tape::Tape::open(path, options)?));
    }
    if ends(&[".tar.gz", ".tgz"]) {
        return Ok(Box::new(tape::Packed::open(path, options)?));
    }
    if ends(&[".zip"]) {
        return Ok(Box::new(zipped::Zipped::open(path, options)?));
    }
    if ends(&TABLES) {
        return Ok(Box::new(table::Table::open(path, options)?));
    }
    if options.modality == Modality::Image && ends(&[".txt"]) {
        return Ok(Box::new(files::Files::list(path, options)?));
    }
    if layout::is_wanted(&name, options.modality) {
        return Ok(Box::new(files::Files::single(path, options)));
    }
    Err(Error::UnknownSource { path: path.to_owned() })
}

/// Whether a path looks like raw inputs, rather than a file of features: a folder without arrays, an archive, an image, a
/// list, or a table with a column of texts or paths. `column` is the column that the user names.
pub fn looks_raw(path: &Path, column: Option<&str>) -> bool {
    if path.is_dir() {
        let is_array = |entry: std::fs::DirEntry| entry.path().extension().is_some_and(|e| e == "npy");
        return !std::fs::read_dir(path).into_iter().flatten().flatten().any(is_array);
    }
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    if ends(&TABLES) {
        return table::looks_raw(path, column);
    }
    ends(&ARCHIVES) || ends(&[".txt"]) || layout::is_wanted(&name, Modality::Image)
}

/// The name of an input in messages: its path if it is in a folder.
fn shown(place: &str, name: &str) -> String {
    match place.ends_with(std::path::is_separator) {
        true => format!("{place}{name}"),
        false => format!("{place}: {name}"),
    }
}

/// The contents of a file that was read from anywhere.
fn to_data(name: &str, bytes: Vec<u8>, modality: Modality) -> Result<Data, Error> {
    let refuse = |reason: &str| Error::Input { name: name.to_owned(), reason: reason.to_owned() };
    match modality {
        Modality::Image => Ok(Data::Image(bytes)),
        Modality::Text => match String::from_utf8(bytes) {
            Ok(text) if text.trim().is_empty() => Err(refuse(EMPTY)),
            Ok(text) => Ok(Data::Text(text)),
            Err(_) => Err(refuse("it is not valid UTF-8")),
        },
    }
}

/// Reads at most `largest` bytes; more are an error.
fn read_limited(name: &str, source: impl Read, largest: u64) -> Result<Vec<u8>, Error> {
    let refuse = |reason: String| Error::Input { name: name.to_owned(), reason };
    let mut bytes = Vec::new();
    let read = source.take(largest.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|e| refuse(format!("it cannot be read: {e}")))?;
    if bytes.len() as u64 > largest {
        return Err(refuse(format!("it is larger than the limit of {} MiB", largest >> 20)));
    }
    Ok(bytes)
}
