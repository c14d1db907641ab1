//! Zip archives, read in the order of their names. Nothing is extracted to disk.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use zip::ZipArchive;

use super::{Input, InputOptions, Present, Source, Tags, layout, read_limited, to_data};
use crate::error::Error;

pub(super) struct Zipped {
    archive: ZipArchive<BufReader<File>>,
    /// Name, place in the archive and tags of each input.
    entries: std::vec::IntoIter<(String, usize, Tags)>,
    skipped: Vec<String>,
    present: Present,
    options: InputOptions,
}

impl Zipped {
    pub fn open(path: &Path, options: &InputOptions) -> Result<Zipped, Error> {
        let file = File::open(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let refuse = |reason: String| Error::Archive { path: path.to_owned(), reason };
        let archive = ZipArchive::new(BufReader::new(file)).map_err(|e| refuse(e.to_string()))?;
        let mut found = Vec::new();
        for at in 0..archive.len() {
            let entry = archive.by_index_data(at).map_err(|e| refuse(e.to_string()))?;
            let name = layout::clean(&String::from_utf8_lossy(entry.name_raw()));
            if entry.is_dir() {
                continue;
            }
            if entry.is_symlink() {
                return Err(refuse(format!("{name} is a link; pack the files themselves")));
            }
            found.push((name, at));
        }
        found.sort();
        let names: Vec<String> = found.iter().map(|entry| entry.0.clone()).collect();
        let layout::Arranged { inputs, skipped, present } = layout::arrange(path, &names, true, options)?;
        let entries = inputs.into_iter().map(|(at, tags)| (names[at].clone(), found[at].1, tags));
        let entries = entries.collect::<Vec<_>>().into_iter();
        Ok(Zipped { archive, entries, skipped, present, options: options.clone() })
    }

    fn read(&mut self, name: &str, at: usize) -> Result<super::Data, Error> {
        let entry = self.archive.by_index(at);
        let entry = entry.map_err(|e| Error::Input { name: name.to_owned(), reason: e.to_string() })?;
        // The archive compares the checksum at the end. A false size in the directory cannot exceed the limit.
        to_data(name, read_limited(name, entry, self.options.largest)?, self.options.modality)
    }
}

impl Source for Zipped {
    fn present(&self) -> Present {
        self.present
    }

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
