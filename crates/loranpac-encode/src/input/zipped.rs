//! Zip archives, read in the order of their names. Nothing is extracted to disk.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use zip::ZipArchive;

use super::layout::{self, Listing};
use super::outline::Found;
use super::{About, Input, InputOptions, LONGEST_LIST, Source, Tags, read_limited, shown, to_data};
use crate::error::Error;
use crate::regular;

pub(super) struct Zipped {
    /// Its path in messages.
    path: String,
    archive: ZipArchive<BufReader<File>>,
    /// Name, place in the archive and tags of each input.
    entries: std::vec::IntoIter<(String, usize, Tags)>,
    about: About,
    options: InputOptions,
}

impl Zipped {
    pub fn open(path: &Path, options: &InputOptions) -> Result<Zipped, Error> {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        let file = regular::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        let (length, modified) = (about.len(), about.modified().ok());
        let refuse = |reason: String| Error::Archive { path: path.to_owned(), reason };
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|e| refuse(e.to_string()))?;
        if archive.has_duplicate_names() {
            return Err(refuse("it has two files of one name; pack each file once".to_owned()));
        }
        let (mut found, mut packed) = (Vec::new(), 0u64);
        for at in 0..archive.len() {
            let entry = archive.by_index_data(at).map_err(|e| refuse(e.to_string()))?;
            let name = layout::clean(entry.name_raw());
            if entry.is_dir() {
                continue;
            }
            if entry.is_symlink() {
                return Err(refuse(format!("{name} is a link; pack the files themselves")));
            }
            packed = packed.saturating_add(entry.compressed_size());
            found.push((Found { name, size: entry.size(), modified }, at));
        }
        // Otherwise a few bytes could unpack to any number of files.
        if packed > length {
            return Err(refuse("its files overlap".to_owned()));
        }
        found.sort_by(|a, b| (&a.0.name, a.1).cmp(&(&b.0.name, b.1)));
        let (found, places): (Vec<Found>, Vec<usize>) = found.into_iter().unzip();
        let name = path.display().to_string();
        let read_list = |at: usize| read(&mut archive, &shown(&name, &found[at].name), places[at], LONGEST_LIST);
        let Listing { inputs, about } = layout::list(path, &found, options, true, read_list)?;
        let entries = inputs.into_iter().map(|(at, tags)| (found[at].name.clone(), places[at], tags));
        let entries = entries.collect::<Vec<_>>().into_iter();
        Ok(Zipped { path: name, archive, entries, about, options: options.clone() })
    }
}

/// The contents of an entry. The archive compares the checksum at the end. A false size in the directory cannot exceed
/// the limit.
fn read(archive: &mut ZipArchive<BufReader<File>>, name: &str, at: usize, largest: u64) -> Result<Vec<u8>, Error> {
    let entry = archive.by_index(at);
    let entry = entry.map_err(|e| Error::Input { name: name.to_owned(), reason: e.to_string() })?;
    read_limited(name, entry, largest)
}

impl Source for Zipped {
    fn about(&self) -> &About {
        &self.about
    }

    fn len(&self) -> Option<usize> {
        Some(self.entries.len())
    }

    fn next(&mut self) -> Option<Result<Input, Error>> {
        let (name, at, tags) = self.entries.next()?;
        let entry = shown(&self.path, &name);
        let bytes = read(&mut self.archive, &entry, at, self.options.largest);
        let data = bytes.and_then(|bytes| to_data(&entry, bytes, self.options.modality));
        Some(data.map(|data| Input { tags, place: Some(self.path.clone()), ..Input::new(name, data) }))
    }
}
