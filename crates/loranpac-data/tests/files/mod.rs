//! The same small samples in every format, by hand or by the format's own writer.
#![allow(dead_code, reason = "each test uses some of them")]

#[path = "../npy/mod.rs"]
mod array;

use std::io::{Cursor, Write};

pub use array::npy;

/// Features of five samples, three each, that every format can hold without loss.
pub const X: [f32; 15] = [0.0, 1.0, 2.5, -3.0, 0.25, 7.0, 1e-3, -4.0, 5.0, 100.0, 6.5, -0.5, 8.0, 9.0, 10.0];
/// Their labels.
pub const Y: [i64; 5] = [3, -1, 3, 7, -1];
/// Their labels, if they are texts.
pub const WORDS: [&str; 5] = ["cat", "a dog", "cat", "été", "a dog"];

pub fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

pub fn integers(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// The samples as one array.
pub fn x_npy() -> Vec<u8> {
    npy("<f4", false, "(5, 3)", &floats(&X))
}

/// The labels as one array.
pub fn y_npy() -> Vec<u8> {
    npy("<i8", false, "(5,)", &integers(&Y))
}

/// An npz archive of the given arrays.
pub fn npz(arrays: &[(&str, Vec<u8>)], deflate: bool) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let method = if deflate { zip::CompressionMethod::Deflated } else { zip::CompressionMethod::Stored };
    for (name, bytes) in arrays {
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// A safetensors file of the given tensors: name, type, shape, bytes.
pub fn tensors(tensors: &[(&str, safetensors::Dtype, &[usize], Vec<u8>)]) -> Vec<u8> {
    let views = tensors.iter().map(|(name, kind, shape, data)| {
        (*name, safetensors::tensor::TensorView::new(*kind, shape.to_vec(), data).unwrap())
    });
    safetensors::tensor::serialize(views, None).unwrap()
}

/// The samples as named tensors.
pub fn x_y_tensors() -> Vec<u8> {
    use safetensors::Dtype::{F32, I64};
    tensors(&[("x", F32, &[5, 3], floats(&X)), ("y", I64, &[5], integers(&Y))])
}

/// The samples as a table, with or without a header; the label stands last.
pub fn csv(header: bool, delimiter: char, labels: &[String]) -> Vec<u8> {
    let mut lines = Vec::new();
    if header {
        lines.push(["a", "b", "c", "label"].join(&delimiter.to_string()));
    }
    for (row, label) in X.chunks(3).zip(labels) {
        let cells: Vec<String> = row.iter().map(f32::to_string).chain([label.clone()]).collect();
        lines.push(cells.join(&delimiter.to_string()));
    }
    (lines.join("\n") + "\n").into_bytes()
}

pub fn y_texts() -> Vec<String> {
    Y.iter().map(i64::to_string).collect()
}

/// The samples as objects.
pub fn jsonl() -> Vec<u8> {
    let line = |(x, y): (&[f32], i64)| format!("{{\"id\": \"s\", \"x\": {x:?}, \"y\": {y}}}\n");
    X.chunks(3).zip(Y).map(line).collect::<String>().into_bytes()
}

/// A file of every format, with names for the corpus. Npy has no labels.
pub fn all() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let labelled = [("x", x_npy()), ("y", y_npy())];
    let words = || WORDS.iter().map(|w| w.to_string()).collect::<Vec<_>>();
    let utf32 = WORDS.iter().flat_map(|w| w.chars().chain(std::iter::repeat('\0')).take(5).collect::<Vec<_>>());
    let utf32: Vec<u8> = utf32.flat_map(|c| (c as u32).to_le_bytes()).collect();
    let columns: Vec<f32> = (0..3).flat_map(|c| (0..5).map(move |r| X[r * 3 + c])).collect();
    #[cfg_attr(not(feature = "parquet"), allow(unused_mut))]
    let mut files = vec![
        ("npy", "plain", x_npy()),
        ("npy", "columns", npy("<f4", true, "(5, 3)", &floats(&columns))),
        ("npz", "stored", npz(&labelled, false)),
        ("npz", "deflated", npz(&labelled, true)),
        ("npz", "words", npz(&[("x_train", x_npy()), ("y_train", npy("<U5", false, "(5,)", &utf32))], true)),
        ("safetensors", "plain", x_y_tensors()),
        ("csv", "header", csv(true, ',', &y_texts())),
        ("csv", "words", csv(true, ';', &words())),
        ("csv", "no-header", csv(false, '\t', &y_texts())),
        ("jsonl", "plain", jsonl()),
    ];
    #[cfg(feature = "parquet")]
    files.extend(self::parquet::all().into_iter().map(|(name, bytes)| ("parquet", name, bytes)));
    files
}

#[cfg(feature = "parquet")]
pub mod parquet {
    use std::sync::Arc;

    use parquet::basic::{Compression, Encoding, GzipLevel};
    use parquet::data_type::{
        ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType, Int64Type,
    };
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use parquet::schema::parser::parse_message_type;

    use super::{WORDS, X, Y};

    /// What the feature column is made of.
    pub enum Features<'a> {
        Single(&'a [f32]),
        Double(&'a [f64]),
        Split(&'a [f32]),
    }

    pub enum Labels<'a> {
        Integers(&'a [i64]),
        Words(&'a [&'a str]),
        None,
    }

    /// Definition and repetition.
    pub type Levels = (Vec<i16>, Vec<i16>);

    /// Levels of lists of the same length.
    fn levels(rows: usize, dim: usize) -> Levels {
        let repetition = (0..rows * dim).map(|at| i16::from(at % dim != 0)).collect();
        (vec![3; rows * dim], repetition)
    }

    /// A file with groups of rows; levels are given if the lists are not all of one length.
    pub fn write(
        groups: &[(Features<'_>, Labels<'_>, Option<Levels>)],
        dim: usize,
        properties: WriterProperties,
    ) -> Vec<u8> {
        let kind = match &groups[0].0 {
            Features::Single(_) => "float element",
            Features::Double(_) => "double element",
            Features::Split(_) => "fixed_len_byte_array(2) element (FLOAT16)",
        };
        let label = match &groups[0].1 {
            Labels::Integers(_) => "optional int64 label;",
            Labels::Words(_) => "optional binary label (UTF8);",
            Labels::None => "",
        };
        let schema = format!(
            "message m {{ optional group features (LIST) {{ repeated group list {{ optional {kind}; }} }} {label} }}"
        );
        let schema = Arc::new(parse_message_type(&schema).unwrap());
        let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
        for (features, labels, given) in groups {
            let mut group = file.next_row_group().unwrap();
            write_features(&mut group, features, dim, given);
            match labels {
                Labels::Integers(values) => {
                    let mut column = group.next_column().unwrap().unwrap();
                    column.typed::<Int64Type>().write_batch(values, Some(&vec![1; values.len()]), None).unwrap();
                    column.close().unwrap();
                }
                Labels::Words(values) => {
                    let bytes: Vec<ByteArray> = values.iter().map(|&v| v.into()).collect();
                    let mut column = group.next_column().unwrap().unwrap();
                    column.typed::<ByteArrayType>().write_batch(&bytes, Some(&vec![1; values.len()]), None).unwrap();
                    column.close().unwrap();
                }
                Labels::None => {}
            }
            group.close().unwrap();
        }
        file.into_inner().unwrap()
    }

    fn write_features(
        group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
        features: &Features<'_>,
        dim: usize,
        given: &Option<Levels>,
    ) {
        let length = match features {
            Features::Single(values) | Features::Split(values) => values.len(),
            Features::Double(values) => values.len(),
        };
        let (definition, repetition) = given.clone().unwrap_or_else(|| levels(length / dim, dim));
        let (definition, repetition) = (Some(&definition[..]), Some(&repetition[..]));
        let mut column = group.next_column().unwrap().unwrap();
        match features {
            Features::Single(values) => {
                column.typed::<FloatType>().write_batch(values, definition, repetition).unwrap();
            }
            Features::Double(values) => {
                column.typed::<DoubleType>().write_batch(values, definition, repetition).unwrap();
            }
            Features::Split(values) => {
                let half = |v: &f32| FixedLenByteArray::from(half::f16::from_f32(*v).to_le_bytes().to_vec());
                let values: Vec<FixedLenByteArray> = values.iter().map(half).collect();
                column.typed::<FixedLenByteArrayType>().write_batch(&values, definition, repetition).unwrap();
            }
        }
        column.close().unwrap();
    }

    pub fn compressed(compression: Compression) -> WriterProperties {
        WriterProperties::builder().set_compression(compression).build()
    }

    /// The samples in two row groups, in several encodings.
    pub fn all() -> Vec<(&'static str, Vec<u8>)> {
        let doubles: Vec<f64> = X.iter().map(|&v| v.into()).collect();
        let singles = |properties| {
            let groups = [
                (Features::Single(&X[..9]), Labels::Integers(&Y[..3]), None),
                (Features::Single(&X[9..]), Labels::Integers(&Y[3..]), None),
            ];
            write(&groups, 3, properties)
        };
        let words = [(Features::Double(&doubles), Labels::Words(&WORDS), None)];
        let plain = WriterProperties::builder().set_dictionary_enabled(false);
        let second = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_dictionary_enabled(false)
            .set_encoding(Encoding::PLAIN)
            .set_column_encoding("label".into(), Encoding::DELTA_BINARY_PACKED);
        vec![
            ("plain", singles(plain.build())),
            ("dictionary", singles(compressed(Compression::UNCOMPRESSED))),
            ("snappy", singles(compressed(Compression::SNAPPY))),
            ("gzip", singles(compressed(Compression::GZIP(GzipLevel::default())))),
            ("lz4", singles(compressed(Compression::LZ4_RAW))),
            ("version-2", singles(second.build())),
            ("words", write(&words, 3, compressed(Compression::SNAPPY))),
        ]
    }
}
