//! What every reader of samples promises, whatever the bytes: no panic, no feature that is not finite, and no more
//! memory than the bytes warrant. The fuzz targets and the tests share this file.

use std::io::Cursor;
use std::path::Path;

use loranpac_data::{Options, Reader, TextOptions, Texts, formats};
use peak_alloc::PeakAlloc;

/// Counts memory.
#[global_allocator]
pub static MEMORY: PeakAlloc = PeakAlloc;

/// Rows that are asked for at a time.
const MOST: usize = 3;
/// Memory that a reader may take whatever the file: buffers.
const ALLOWANCE: usize = 1 << 20;
/// Enough pieces to see a reader go from part to part of a file.
const PIECES: usize = 2_000;

/// Bytes of memory that a byte of a file may become, besides the rows that were asked for.
fn factor(format: &str) -> usize {
    match format {
        // What is in memory is one copy of the file, and that while it is turned into rows.
        "npy" => 16,
        // The tree of a header's names: a few bytes each.
        "safetensors" => 64,
        // Cells of one byte have a place of a word each; an empty name needs three words.
        "csv" | "tsv" | "jsonl" => 64,
        // Deflate's bound, if columns come one after the other and all must be read.
        "npz" => 1_032 * 16,
        // The same bound, for a page; and levels beside the values.
        "parquet" => 1_032 * 16,
        other => panic!("the format {other} has no bound"),
    }
}

/// Reads the bytes with several options; panics if a promise is not kept.
pub fn check(format: &str, data: &[u8]) {
    let options = |label: &str| Options { label: Some(label.to_owned()), ..Options::default() };
    let mut ways = vec![Options::default()];
    if format == "csv" {
        ways.extend([options("last"), options("0")]);
    }
    for options in ways {
        let bytes = data.to_vec();
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let dim = read(format, bytes, &options);
        if matches!(format, "csv" | "tsv" | "jsonl" | "parquet") {
            read_texts(format, data.to_vec());
        }
        let peak = MEMORY.peak_usage().saturating_sub(before);
        // Twice, because a vector that grows is in memory twice; four bytes each; and labels.
        let asked = dim.saturating_mul(MOST).saturating_mul(32);
        let limit = ALLOWANCE + data.len() * factor(format) + asked;
        assert!(peak <= limit, "{peak} bytes of memory for a file of {} bytes; at most {limit}", data.len());
    }
}

/// Reads the labels of a table as if they were its texts, until the end or an error.
fn read_texts(format: &str, bytes: Vec<u8>) {
    let format = formats::find(format).unwrap();
    let options = TextOptions { usual: &["y", "label", "text"], ..TextOptions::default() };
    let Ok(mut texts) = Texts::from_source(Path::new("fuzz"), Cursor::new(bytes), format, &options) else { return };
    for _ in 0..PIECES {
        let Ok(rows) = texts.next(MOST) else { break };
        assert!(rows.len() <= MOST);
        assert!(rows.iter().all(|row| row.split.is_some() == texts.has_splits()));
        if rows.is_empty() {
            break;
        }
    }
}

/// Reads samples until the end or an error; gives the features of each, or 0.
fn read(format: &str, bytes: Vec<u8>, options: &Options) -> usize {
    let format = formats::find(format).unwrap();
    let Ok(mut reader) = Reader::from_source(Path::new("fuzz"), Cursor::new(bytes), format, options) else { return 0 };
    let dim = reader.dim();
    assert!(dim > 0);
    let mut rows = 0;
    for _ in 0..PIECES {
        let Ok(Some(batch)) = reader.next(MOST) else { break };
        let count = batch.x.len() / dim;
        assert!(batch.x.len() == count * dim && (1..=MOST).contains(&count));
        assert!(batch.rows.len() == count && batch.rows.is_sorted() && batch.rows[0] >= rows);
        assert!(batch.x.iter().all(|value| value.is_finite()));
        assert_eq!(batch.labels.map(|labels| labels.len()), reader.has_labels().then_some(count));
        rows += count;
        assert!(reader.len().is_none_or(|promised| rows <= promised));
    }
    dim
}
