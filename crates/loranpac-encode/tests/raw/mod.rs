//! Files in folders and in archives.

use std::fs;
use std::io::Write;

use loranpac::Label;
use loranpac_encode::input::Input;
use tempfile::TempDir;

/// A folder of files with their contents.
pub fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, contents) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
    folder
}

/// The same files as archives in a folder: `a.tar`, `a.tar.gz` and `a.zip`.
pub fn archives(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut tar = tar::Builder::new(Vec::new());
    let mut zip = zip::ZipWriter::new(fs::File::create(folder.path().join("a.zip")).unwrap());
    for (name, contents) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(contents.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, *contents).unwrap();
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(contents).unwrap();
    }
    zip.finish().unwrap();
    let tar = tar.into_inner().unwrap();
    fs::write(folder.path().join("a.tar"), &tar).unwrap();
    let file = fs::File::create(folder.path().join("a.tar.gz")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::default());
    packed.write_all(&tar).unwrap();
    packed.finish().unwrap();
    folder
}

/// Tags in a line: `name: label split domain`, with `-` for what is missing.
pub fn shown(input: &Input) -> String {
    let label = |label: &Option<Label>| label.as_ref().map_or("-".to_owned(), Label::to_string);
    let split = input.tags.split.map_or("-", |split| split.name());
    format!("{}: {} {} {}", input.name, label(&input.tags.label), split, label(&input.tags.domain))
}
