//! Answers as NumPy arrays: an npz file, which is a zip archive of npy files.

use std::io::{Cursor, Write};
use std::path::Path;

use anyhow::{Context, Result};
use loranpac::Label;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::file::Target;

/// An array to be written.
pub enum Column {
    Float(Vec<f64>),
    /// Rows of so many numbers.
    Matrix(usize, Vec<f32>),
    Labels(Vec<Label>),
}

/// Writes named arrays.
pub fn write(path: &Path, columns: &[(&str, Column)]) -> Result<()> {
    let place = || format!("cannot write {}", path.display());
    // The archive is put together in memory, where the arrays are already: its writer goes back and forth.
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, column) in columns {
        let options = SimpleFileOptions::default().large_file(true);
        archive.start_file(format!("{name}.npy"), options).with_context(place)?;
        archive.write_all(&npy(column)).with_context(place)?;
    }
    let bytes = archive.finish().with_context(place)?.into_inner();
    let mut file = Target::create(path)?;
    file.write_all(&bytes).with_context(place)?;
    file.finish()
}

/// One array in npy format, version 1.
fn npy(column: &Column) -> Vec<u8> {
    let (descr, shape, data): (String, String, Vec<u8>) = match column {
        Column::Float(values) => {
            ("<f8".to_owned(), format!("({},)", values.len()), values.iter().flat_map(|v| v.to_le_bytes()).collect())
        }
        Column::Matrix(columns, values) => {
            let rows = values.len() / columns;
            ("<f4".to_owned(), format!("({rows}, {columns})"), values.iter().flat_map(|v| v.to_le_bytes()).collect())
        }
        Column::Labels(labels) => {
            let numbers: Option<Vec<i64>> = labels
                .iter()
                .map(|label| if let Label::Integer(number) = label { Some(*number) } else { None })
                .collect();
            let shape = format!("({},)", labels.len());
            match numbers {
                Some(numbers) => ("<i8".to_owned(), shape, numbers.iter().flat_map(|v| v.to_le_bytes()).collect()),
                None => {
                    let texts: Vec<Vec<u32>> =
                        labels.iter().map(|label| label.to_string().chars().map(u32::from).collect()).collect();
                    let longest = texts.iter().map(Vec::len).max().unwrap_or(0).max(1);
                    let padded = texts.iter().flat_map(|text| {
                        text.iter().copied().chain(std::iter::repeat(0)).take(longest).collect::<Vec<_>>()
                    });
                    (format!("<U{longest}"), shape, padded.flat_map(u32::to_le_bytes).collect())
                }
            }
        }
    };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    header += &" ".repeat(63 - (10 + header.len()) % 64);
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}
