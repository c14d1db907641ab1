//! Checks of the sizes that a Parquet file claims, before memory is allocated for them.

use parquet::basic::{Compression, Type};
use parquet::file::metadata::ColumnChunkMetaData;

use super::super::source::Shared;
use super::thrift::{Met, Stopped, walk};

/// The largest expansion of any compression: deflate's; those of snappy (22) and LZ4 (255) are smaller.
const LARGEST_EXPANSION: u64 = 1_032;
/// The largest page, and the largest page of a dictionary, unpacked. Writers make pages of about one megabyte; the decoder
/// needs ten times the bytes of a dictionary of short values.
const LARGEST_PAGE: u64 = 256 << 20;
const LARGEST_DICTIONARY: u64 = 64 << 20;
/// Supported encodings of values: plain, both dictionaries, run lengths, differences. The others are rare, and the
/// decoder of one of them (byte stream split) panics if a page is shorter than it claims.
const ENCODINGS: [i64; 5] = [0, 2, 3, 5, 8];
/// The deepest nesting of columns; a column of lists needs three levels.
const DEEPEST_SCHEMA: usize = 16;
/// Bytes that are read for the header of a page. Only long strings in its statistics need the second.
const HEADERS: [u64; 2] = [1 << 10, 1 << 20];

/// Refuses a footer whose columns cannot fit into it, or are nested too deeply.
pub(super) fn check_footer(shared: &Shared) -> Result<(), String> {
    let failed = |e: std::io::Error| e.to_string();
    let end = shared.length().checked_sub(8).ok_or("it is shorter than a footer")?;
    let tail = shared.copy(end, 8).map_err(failed)?;
    let Some((length, magic)) = tail.split_first_chunk::<4>() else {
        return Err("it is shorter than a footer".to_owned());
    };
    if magic != b"PAR1" {
        return Err("it does not end with the letters PAR1".to_owned());
    }
    let length = u64::from(u32::from_le_bytes(*length));
    let start = end.checked_sub(length).ok_or("its footer is longer than the file")?;
    let footer = shared.copy(start, length).map_err(failed)?;
    // Columns still to come in each open group.
    let mut open: Vec<i64> = Vec::new();
    let total = footer.len() as i64;
    let visited = walk(&footer, &mut |path, met| match (path, met) {
        ([2], Met::Item) => {
            while open.last() == Some(&0) {
                open.pop();
            }
            if let Some(left) = open.last_mut() {
                *left -= 1;
            }
            Ok(())
        }
        ([2, 5], Met::Number(children)) if children < 0 || children > total => Err("a group of columns is too large"),
        ([2, 5], Met::Number(_)) if open.len() >= DEEPEST_SCHEMA => Err("columns are nested too deeply"),
        ([2, 5], Met::Number(children)) => {
            open.push(children);
            Ok(())
        }
        _ => Ok(()),
    });
    visited.map(|_| ()).map_err(|stopped| format!("its footer: {}", reason(stopped)))
}

/// Refuses a column of a row group whose pages claim more than they can hold. `nested` is a column of lists, of which
/// one row may fill a whole page.
pub(super) fn check_pages(shared: &Shared, column: &ColumnChunkMetaData, nested: bool) -> Result<(), String> {
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let place = |number: i64| u64::try_from(number).map_err(|_| "its offset is negative".to_owned());
    let (mut at, length) = (place(start)?, place(column.compressed_size())?);
    let end = at.checked_add(length).filter(|&end| end <= shared.length());
    let end = end.ok_or("it extends beyond the end of the file: the file is truncated")?;
    let mut values = 0u64;
    while at < end {
        let (header, size) = page_header(shared, at, end)?;
        let packed = place(header.packed)?;
        let unpacked = place(header.unpacked)?;
        at = at.saturating_add(size).saturating_add(packed);
        if at > end {
            return Err("a page is longer than its column: the file is truncated".to_owned());
        }
        let most = match column.compression() {
            Compression::UNCOMPRESSED => packed,
            _ => packed.saturating_mul(LARGEST_EXPANSION),
        };
        if unpacked > most {
            return Err(format!("a page claims to unpack {packed} bytes into {unpacked}"));
        }
        let largest = if header.dictionary { LARGEST_DICTIONARY } else { LARGEST_PAGE };
        if unpacked > largest {
            return Err(format!(
                "a page of {} MiB is larger than the limit of {} MiB; write smaller pages",
                unpacked >> 20,
                largest >> 20
            ));
        }
        let there = place(header.values)?;
        let width = match column.column_type() {
            Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::FIXED_LEN_BYTE_ARRAY => 2,
            Type::INT96 | Type::BOOLEAN => 1,
        };
        if header.dictionary {
            if there > unpacked / width {
                return Err(format!("a dictionary claims {there} values in {unpacked} bytes"));
            }
        } else {
            if nested && there > packed.saturating_mul(LARGEST_EXPANSION) {
                return Err(format!("a page claims {there} values in {packed} bytes"));
            }
            values = values.saturating_add(there);
        }
    }
    if Ok(values) != u64::try_from(column.num_values()) {
        return Err(format!("its pages have {values} values, but the footer claims {}", column.num_values()));
    }
    Ok(())
}

/// The header of a page.
#[derive(Debug, Clone, Copy, Default)]
struct PageHeader {
    dictionary: bool,
    unpacked: i64,
    packed: i64,
    values: i64,
}

/// The header of the page at an offset, and the header's size.
fn page_header(shared: &Shared, at: u64, end: u64) -> Result<(PageHeader, u64), String> {
    let mut stopped = Stopped::Ended;
    for glance in HEADERS {
        let bytes = shared.copy(at, glance.min(end - at)).map_err(|e| e.to_string())?;
        let mut header = PageHeader::default();
        let visited = walk(&bytes, &mut |path, met| {
            let Met::Number(number) = met else { return Ok(()) };
            match path {
                [1] => header.dictionary = number == 2,
                [2] => header.unpacked = number,
                [3] => header.packed = number,
                // A page has one of these: data, a dictionary, or data in the second version.
                [5 | 7 | 8, 1] => header.values = header.values.max(number),
                [5 | 7, 2] | [8, 4] if !ENCODINGS.contains(&number) => {
                    return Err("its encoding is not supported; write plain values or a dictionary");
                }
                _ => {}
            }
            Ok(())
        });
        match visited {
            Ok(size) => return Ok((header, size as u64)),
            Err(Stopped::Ended) => {}
            Err(bad) => {
                stopped = bad;
                break;
            }
        }
    }
    Err(format!("the header of a page: {}", reason(stopped)))
}

fn reason(stopped: Stopped) -> &'static str {
    match stopped {
        Stopped::Ended => "it is truncated",
        Stopped::Bad(reason) => reason,
    }
}
