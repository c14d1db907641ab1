//! Truncated and altered files of every format: no panic, no endless loop, no memory beyond the limit.

mod archives;
mod samples;

use std::fs;
use std::path::Path;

use archives::{gzip, tar, zip};
use loranpac_encode::image::{Limits, decode};
use loranpac_encode::input::{InputOptions, Inputs};
use loranpac_encode::{Error, Modality};
use peak_alloc::PeakAlloc;

#[global_allocator]
static PEAK: PeakAlloc = PeakAlloc;

/// Damaged copies: all short truncations and some longer ones, and single bits that are flipped.
fn damaged(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let step = (bytes.len() / 150).max(1);
    let cuts = (0..bytes.len()).filter(move |&at| at < 60 || at % step == 0).map(|at| bytes[..at].to_vec());
    // Headers are short: each of their bits is flipped, and some of the contents.
    let places = (0..bytes.len() * 8).filter(move |&at| at < 64 * 8 || at % (step * 8 + 3) == 0);
    let flips = places.map(|at| {
        let mut copy = bytes.to_vec();
        copy[at / 8] ^= 1 << (at % 8);
        copy
    });
    cuts.chain(flips)
}

/// One test, because the allocator counts for the whole process.
#[test]
fn damaged_files_are_errors_or_other_inputs_but_never_panics() {
    images();
    archives_and_tables();
}

fn images() {
    PEAK.reset_peak_usage();
    let before = PEAK.current_usage();
    assert!(decode("huge.png", &samples::png_header(50_000, 50_000), &Limits::default()).is_err());
    let used = PEAK.peak_usage() - before;
    assert!(used < 1 << 20, "{used} bytes for a header of 2.5 billion pixels");
    let limits = Limits { pixels: 1_000_000, bytes: 16 << 20 };
    let jpegs = samples::jpegs().into_iter().map(|jpeg| (jpeg.name, jpeg.file));
    let all = samples::all(24, 18).into_iter().map(|(extension, file)| (extension.to_owned(), file));
    for (extension, whole) in all.chain(jpegs) {
        assert!(decode(&extension, &whole, &limits).is_ok(), "{extension}");
        let mut refused = 0;
        for bytes in damaged(&whole) {
            PEAK.reset_peak_usage();
            let before = PEAK.current_usage();
            match decode("x", &bytes, &limits) {
                Ok(image) => assert_eq!(image.pixels.len(), 3 * image.width * image.height),
                Err(Error::Image { .. }) => refused += 1,
                Err(other) => panic!("{extension}: {other}"),
            }
            let used = (PEAK.peak_usage() - before) as u64;
            // Tables of the decoders come on top, and the directory of a TIFF file.
            let tables = if extension == "tif" { 128 << 20 } else { 4 << 20 };
            assert!(used < limits.bytes + tables, "{extension}: {used} bytes");
        }
        assert!(refused > 50, "{extension}: {refused}");
    }
}

fn archives_and_tables() {
    let folder = tempfile::tempdir().unwrap();
    let texts = "text,label,split\n\"book a table\",dinner,train\nhello,greeting,test\n";
    let lines = "{\"text\": \"book a table\", \"label\": 3}\n{\"text\": \"hello\", \"label\": 4}\n";
    let image = samples::all(6, 5).remove(1).1;
    let files = [("data/train/cat/a.png", &image[..]), ("data/test/dog/b.png", &image[..])];
    for (name, modality, whole) in [
        ("t.csv", Modality::Text, texts.as_bytes().to_vec()),
        ("t.jsonl", Modality::Text, lines.as_bytes().to_vec()),
        ("t.tar", Modality::Image, tar(&files)),
        ("t.tar.gz", Modality::Image, gzip(&tar(&files))),
        ("t.zip", Modality::Image, zip(&files)),
    ] {
        let path = folder.path().join(name);
        let mut options = InputOptions::new(modality);
        options.largest = 1 << 20;
        fs::write(&path, &whole).unwrap();
        assert_eq!(read(&path, &options), Ok(2), "{name}");
        let mut refused = 0;
        for bytes in damaged(&whole) {
            fs::write(&path, &bytes).unwrap();
            PEAK.reset_peak_usage();
            let before = PEAK.current_usage();
            refused += usize::from(read(&path, &options).is_err());
            let used = PEAK.peak_usage() - before;
            assert!(used < 8 << 20, "{name}: {used} bytes");
        }
        assert!(refused > 20, "{name}: {refused}");
    }
}

/// Number of inputs, or the first error.
fn read(path: &Path, options: &InputOptions) -> Result<usize, String> {
    let inputs = Inputs::open(&[path.to_owned()], options).map_err(|e| e.to_string())?;
    let mut count = 0;
    for input in inputs {
        input.map_err(|e| e.to_string())?;
        count += 1;
    }
    Ok(count)
}
