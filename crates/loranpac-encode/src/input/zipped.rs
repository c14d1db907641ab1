//! Zip archives, read in the order of their names. Nothing is extracted to disk.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use zip::ZipArchive;

use super::{Input, InputOptions, Source, Tags, layout, read_limited, to_data};
use crate::error::Error;

pub(super) struct Zipped {
    archive: ZipArchive<BufReader<File>>,
    /// Name, place in the archive and tags of each input.
    entries: std::vec::IntoIter<(String, usize, Tags)>,
    skipped: Vec<String>,
    options: InputOptions,
}

impl Zipped {
    pub fn open(path: &Path, options: &InputOptions) -> Result<Zipped, Error> {
        let file = File::open(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let length = file.metadata().map_err(|source| Error::Read { path: path.to_owned(), source })?.len();
        let refuse = |reason: String| Error::Archive { path: path.to_owned(), reason };
        let archive = ZipArchive::new(BufReader::new(file)).map_err(|e| refuse(e.to_string()))?;
        if archive.has_duplicate_names() {
            return Err(refuse("it has two files of one name; pack each file once".to_owned()));
        }
        let (mut found, mut packed) = (Vec::new(), 0u64);
        for at in 0..archive.len() {
            let entry = archive.by_index_data(at).map_err(|e| refuse(e.to_string()))?;
            let name = layout::clean(&String::from_utf8_lossy(entry.name_raw()));
            if entry.is_dir() {
                continue;
            }
            if entry.is_symlink() {
                return Err(refuse(format!("{name} is a link; pack the files themselves")));
            }
            packed = packed.saturating_add(entry.compressed_size());
            found.push((name, at));
        }
        // Otherwise a few bytes could unpack to any number of files.
        if packed > length {
            return Err(refuse("its files overlap".to_owned()));
        }
        found.sort();
        let names: Vec<String> = found.iter().map(|entry| entry.0.clone()).collect();
        let (wanted, skipped) = layout::choose(path, &names, options)?;
        let chosen: Vec<&str> = wanted.iter().map(|&at| names[at].as_str()).collect();
        let tags = layout::tags(path, &chosen, true)?;
        let entries = wanted.iter().zip(tags).map(|(&at, tags)| (names[at].clone(), found[at].1, tags));
        Ok(Zipped { archive, entries: entries.collect::<Vec<_>>().into_iter(), skipped, options: options.clone() })
    }

    fn read(&mut self, name: &str, at: usize) -> Result<super::Data, Error> {
        let entry = self.archive.by_index(at);
        let entry = entry.map_err(|e| Error::Input { name: name.to_owned(), reason: e.to_string() })?;
        // The archive compares the checksum at the end. A false size in the directory cannot exceed the limit.
        to_data(name, read_limited(name, entry, self.options.largest)?, self.options.modality)
    }
}

impl Source for Zipped {
    fn len(&self) -> Option<usize> {
        Some(self.entries.len())
    }

    fn skipped(&self) -> &[String] {
        &self.skipped
    }

    fn next(&mut self) -> Option<Result<Input, Error>> {
        let (name, at, tags) = self.entries.next()?;
        let read = self.read(&name, at);
        Some(read.map(|data| Input { name, data, tags }))
    }
}
