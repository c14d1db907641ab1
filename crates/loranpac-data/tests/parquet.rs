//! Parquet files, good and bad.
#![cfg(feature = "parquet")]

mod files;

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use files::parquet::{Features, Labels, all, compressed, write};
use files::{WORDS, X, Y};
use loranpac::Label;
use loranpac_data::error::Error;
use loranpac_data::{Batch, Dataset, Options, Reader, Split, TextOptions, Texts, formats};
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

fn read(bytes: &[u8], options: &Options) -> Result<Vec<Batch>, Error> {
    let source = Cursor::new(bytes.to_vec());
    let mut reader = Reader::from_source(Path::new("the-file"), source, formats::find("parquet").unwrap(), options)?;
    let mut batches = Vec::new();
    while let Some(batch) = reader.next(4)? {
        batches.push(batch);
    }
    Ok(batches)
}

#[track_caller]
fn check_bad(bytes: &[u8], options: &Options, expected: &[&str]) {
    let message = read(bytes, options).expect_err("this should have been refused").to_string();
    let missing: Vec<_> = expected.iter().filter(|word| !message.contains(**word)).collect();
    assert!(missing.is_empty() && message.contains("the-file"), "{missing:?} not in: {message}");
}

#[test]
fn a_piece_can_come_from_two_row_groups() {
    for (name, bytes) in all() {
        let batches = read(&bytes, &Options::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(batches.iter().map(|b| b.x.len()).collect::<Vec<_>>(), [12, 3], "{name}");
        assert_eq!(batches.into_iter().flat_map(|b| b.x).collect::<Vec<_>>(), X, "{name}");
    }
}

#[test]
fn half_precision_and_no_labels_are_read() {
    let bytes = write(&[(Features::Split(&[1.5, -2.0]), Labels::None, None)], 1, WriterProperties::default());
    let batches = read(&bytes, &Options::default()).unwrap();
    assert_eq!(batches, [Batch { x: vec![1.5, -2.0], labels: None, weights: None, names: None, rows: vec![0, 1] }]);
}

#[test]
fn labels_can_be_named() {
    let bytes = write(&[(Features::Single(&X), Labels::Integers(&Y), None)], 3, WriterProperties::default());
    let options =
        Options { label: Some("label".to_owned()), features: Some("features".to_owned()), ..Options::default() };
    assert_eq!(read(&bytes, &options).unwrap()[1].labels, Some(vec![Label::Integer(-1)]));
    check_bad(
        &bytes,
        &Options { label: Some("z".to_owned()), ..Options::default() },
        &["label column z", "features, label"],
    );
    check_bad(&bytes, &Options { features: Some("z".to_owned()), ..Options::default() }, &["features column z"]);
    check_bad(&bytes, &Options { features: Some("label".to_owned()), ..Options::default() }, &["label", "not a list"]);
    check_bad(
        &bytes,
        &Options { label: Some("features".to_owned()), ..Options::default() },
        &["features", "has lists"],
    );
}

#[test]
fn a_column_of_texts_is_read() {
    let open = |bytes: &[u8]| {
        let options = TextOptions { text: Some("label".to_owned()), ..TextOptions::default() };
        Texts::from_source(
            Path::new("the-file"),
            Cursor::new(bytes.to_vec()),
            formats::find("parquet").unwrap(),
            &options,
        )
    };
    let words = [
        (Features::Single(&X[..9]), Labels::Words(&WORDS[..3]), None),
        (Features::Single(&X[9..]), Labels::Words(&WORDS[3..]), None),
    ];
    let mut texts = open(&write(&words, 3, compressed(Compression::SNAPPY))).unwrap();
    assert!(!texts.has_labels(), "the texts are not their own labels");
    let mut found = Vec::new();
    loop {
        let rows = texts.next(2).unwrap();
        if rows.is_empty() {
            break;
        }
        found.extend(rows.into_iter().map(|row| row.text));
    }
    assert_eq!(found, WORDS);
    let numbers = [(Features::Single(&X[..]), Labels::Integers(&Y[..]), None)];
    let message = open(&write(&numbers, 3, compressed(Compression::SNAPPY))).map(|_| ()).unwrap_err().to_string();
    assert_eq!(message, "the-file: column label: it has INT64; one text per row is needed");
}

#[test]
fn rows_of_different_lengths_are_refused() {
    let plain = Options::default();
    let file = |values: usize, definition: &[i16], repetition: &[i16]| {
        let levels = Some((definition.to_vec(), repetition.to_vec()));
        write(&[(Features::Single(&X[..values]), Labels::None, levels)], 1, WriterProperties::default())
    };
    check_bad(&file(5, &[3; 5], &[0, 1, 1, 0, 1]), &plain, &["column features", "5 values", "2 rows"]);
    check_bad(&file(6, &[3; 6], &[0, 1, 0, 1, 1, 0]), &plain, &["row 1", "not 2 features"]);
    check_bad(&file(6, &[3; 6], &[0, 1, 1, 1, 0, 0]), &plain, &["row 0", "not 2 features"]);
    // A feature, a list that is empty, a list that is not there.
    for missing in 0..3 {
        check_bad(&file(3, &[3, 3, 3, missing], &[0, 1, 0, 1]), &plain, &["row 1", "null"]);
    }
    check_bad(&file(0, &[1, 1], &[0, 0]), &plain, &["row 0", "null"]);
}

#[test]
fn values_that_are_not_finite_are_refused() {
    let file =
        write(&[(Features::Double(&[1.0, 2.0, 1e300, 0.0]), Labels::None, None)], 2, WriterProperties::default());
    check_bad(&file, &Options::default(), &["feature 0 of row 1", "inf"]);
}

#[test]
fn what_is_no_parquet_file_is_refused() {
    let plain = Options::default();
    check_bad(b"", &plain, &["shorter"]);
    check_bad(b"this is not a table", &plain, &["PAR1"]);
    check_bad(b"\xff\xff\xff\xffPAR1", &plain, &["longer than the file"]);
    check_bad(b"PAR1\0\0\0\0PAR1", &plain, &["footer"]);
    let (_, whole) = &all()[0];
    for cut in 1..whole.len() {
        assert!(read(&whole[..whole.len() - cut], &plain).is_err(), "{cut}");
        assert!(read(&whole[cut..], &plain).is_err() || cut < 4, "{cut}");
    }
}

#[test]
fn a_footer_that_claims_too_much_is_refused_without_the_memory() {
    // 2: a list of one structure { 4: "m", 5: children }, in the compact protocol.
    let footer = |elements: &[u8]| [elements, &(elements.len() as u32).to_le_bytes(), b"PAR1"].concat();
    let many = [&[0x15, 2, 0x19, 0x1c, 0x48, 1, b'm', 0x15][..], &[0xfe, 0xff, 0xff, 0xff, 0x0f], &[0, 0]].concat();
    check_bad(&footer(&many), &Options::default(), &["footer", "too large"]);
    let mut deep = vec![0x15, 2, 0x19, 0xfc, 0xe8, 7];
    (0..1000).for_each(|_| deep.extend([0x35, 0, 0x18, 1, b'm', 0x15, 2, 0]));
    deep.push(0);
    check_bad(&footer(&deep), &Options::default(), &["footer", "too deeply"]);
    check_bad(&footer(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0x7f]), &Options::default(), &["footer", "truncated"]);
}

#[test]
fn an_encoding_whose_decoder_panics_is_refused() {
    let properties = WriterProperties::builder().set_dictionary_enabled(false);
    let properties = properties.set_encoding(Encoding::BYTE_STREAM_SPLIT).build();
    let file = write(&[(Features::Single(&X), Labels::None, None)], 3, properties);
    check_bad(&file, &Options::default(), &["column features", "encoding", "plain values or a dictionary"]);
}

#[test]
fn a_compression_that_would_need_c_is_refused_with_what_to_do() {
    // The writer has no zstd either: the number of the codec is changed in the footer.
    let plain = write(&[(Features::Single(&X), Labels::None, None)], 3, compressed(Compression::SNAPPY));
    let mut changed = 0;
    for at in 4..plain.len() - 8 {
        if plain[at..at + 2] == [0x15, 2] {
            let mut bytes = plain.clone();
            bytes[at + 1] = 12;
            if let Err(e) = read(&bytes, &Options::default())
                && e.to_string().contains("zstd, which is not supported; write it with snappy, gzip, lz4 or none")
            {
                changed += 1;
            }
        }
    }
    assert_eq!(changed, 1);
}

#[test]
fn a_column_split_makes_a_table_a_data_set() {
    use parquet::data_type::{ByteArray, ByteArrayType, FloatType, Int64Type};
    let schema = "message m { repeated float Embedding; required binary target (UTF8); required binary split (UTF8); \
                  optional int64 domain; }";
    let schema = Arc::new(parquet::schema::parser::parse_message_type(schema).unwrap());
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let texts = |values: [&str; 3]| values.map(ByteArray::from);
    let mut column = group.next_column().unwrap().unwrap();
    let levels = (Some(&[1; 6][..]), Some(&[0, 1, 0, 1, 0, 1][..]));
    column.typed::<FloatType>().write_batch(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], levels.0, levels.1).unwrap();
    column.close().unwrap();
    for values in [texts(["b", "a", "b"]), texts(["train", "test", "valid"])] {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
    }
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[7, 8, 9], Some(&[1; 3]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    let bytes = file.into_inner().unwrap();
    let options = Options { split: Split::Test, ..Options::default() };
    let test =
        Batch { x: vec![3.0, 4.0], labels: Some(vec![Label::from("a")]), weights: None, names: None, rows: vec![1] };
    assert_eq!(read(&bytes, &options).unwrap(), [test]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.parquet");
    std::fs::write(&path, &bytes).unwrap();
    let data = Dataset::open(&path).unwrap();
    assert_eq!((data.train.x, data.train.y), (vec![1.0, 2.0, 5.0, 6.0], vec![1, 1]));
    assert_eq!(data.train.domain, Some(vec![Label::Integer(7), Label::Integer(9)]));
}

#[test]
fn booleans_are_the_texts_of_csv() {
    use parquet::data_type::{BoolType, FloatType};
    let schema = "message m { repeated float x; required boolean y; }";
    let schema = Arc::new(parquet::schema::parser::parse_message_type(schema).unwrap());
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<FloatType>().write_batch(&[1.0, 2.0], Some(&[1; 2]), Some(&[0; 2])).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<BoolType>().write_batch(&[true, false], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    let batches = read(&file.into_inner().unwrap(), &Options::default()).unwrap();
    assert_eq!(batches[0].labels, Some(vec![Label::from("true"), Label::from("false")]));
}
