//! Samples, some at a time: every format gives the same, in pieces of any size, and says what is wrong.

mod files;

use std::io::{Cursor, Read};
use std::path::Path;

use files::{WORDS, X, Y, all, csv, floats, npy, npz, tensors, x_npy, x_y_tensors, y_npy, y_texts};
use loranpac::Label;
use loranpac_data::error::Error;
use loranpac_data::{Batch, Options, Reader, Split, formats};
use tempfile::TempDir;

fn open(bytes: &[u8], format: &str, options: &Options) -> Result<Reader, Error> {
    Reader::from_source(Path::new("the-file"), Cursor::new(bytes.to_vec()), formats::find(format).unwrap(), options)
}

/// All samples, read in pieces of `most`.
fn drain(reader: &mut Reader, most: usize) -> Result<Batch, Error> {
    let mut all = Batch {
        x: Vec::new(),
        labels: reader.has_labels().then(Vec::new),
        weights: None,
        names: None,
        rows: Vec::new(),
    };
    while let Some(batch) = reader.next(most)? {
        assert_eq!(batch.rows.len() * reader.dim(), batch.x.len());
        all.rows.extend(batch.rows);
        assert!(batch.x.len() <= most * reader.dim() && !batch.x.is_empty());
        all.x.extend(batch.x);
        if let Some(labels) = &mut all.labels {
            labels.extend(batch.labels.unwrap());
        }
    }
    assert!(reader.next(most)?.is_none(), "the end stays the end");
    Ok(all)
}

fn read(bytes: &[u8], format: &str, options: &Options) -> Result<Batch, Error> {
    drain(&mut open(bytes, format, options)?, 1000)
}

fn numbers() -> Option<Vec<Label>> {
    Some(Y.iter().map(|&y| Label::Integer(y)).collect())
}

fn words() -> Option<Vec<Label>> {
    Some(WORDS.iter().map(|&word| Label::from(word)).collect())
}

fn label(name: &str) -> Options {
    Options { label: Some(name.to_owned()), ..Options::default() }
}

#[test]
fn every_format_gives_the_same_samples_in_pieces_of_any_size() {
    for (format, name, bytes) in all() {
        let options = if name == "no-header" { label("last") } else { Options::default() };
        let expected = match (format, name) {
            ("npy", _) => None,
            (_, "words") => words(),
            _ => numbers(),
        };
        for most in [1, 2, 3, 4, 5, 6, 1000, usize::MAX / 8] {
            let mut reader = open(&bytes, format, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(reader.dim(), 3);
            assert!(reader.len().is_none_or(|rows| rows == 5));
            let batch = drain(&mut reader, most).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(
                batch,
                Batch { x: X.to_vec(), labels: expected.clone(), weights: None, names: None, rows: (0..5).collect() },
                "{format:?} {name} {most}"
            );
        }
    }
}

#[test]
fn files_are_opened_by_their_names_and_standard_input_by_the_format() {
    let folder = TempDir::new().unwrap();
    for (format, name, bytes) in all() {
        let format = formats::find(format).unwrap();
        let path = folder.path().join(format!("{name}.{}", format.name().to_uppercase()));
        std::fs::write(&path, &bytes).unwrap();
        let options = if name == "no-header" { label("last") } else { Options::default() };
        assert_eq!(drain(&mut Reader::open(&path, &options).unwrap(), 2).unwrap().x, X);
        let path = folder.path().join("data");
        std::fs::write(&path, &bytes).unwrap();
        let options = Options { format: Some(format.name().to_owned()), ..options };
        assert_eq!(drain(&mut Reader::open(&path, &options).unwrap(), 2).unwrap().x, X);
        let streamed = Reader::from_stream(Path::new("pipe"), Cursor::new(bytes), format, &options);
        match format.is_streamed() {
            true => assert_eq!(drain(&mut streamed.unwrap(), 2).unwrap().x, X),
            false => assert!(streamed.err().unwrap().to_string().contains("cannot be read from a pipe")),
        }
    }
}

#[test]
fn a_folder_of_arrays_is_read_by_halves() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, bytes: Vec<u8>| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("x_train.npy", x_npy());
    write("y_train.npy", y_npy());
    write("x_test.npy", npy("<f8", false, "(1, 2)", &[0; 16]));
    let train = drain(&mut Reader::open(folder.path(), &Options::default()).unwrap(), 2).unwrap();
    assert_eq!((train.x, train.labels), (X.to_vec(), numbers()));
    let options = Options { split: Split::Test, ..Options::default() };
    let test = drain(&mut Reader::open(folder.path(), &options).unwrap(), 2).unwrap();
    assert_eq!((test.x, test.labels), (vec![0.0; 2], None));
    // Plain names come before those of halves.
    write("x.npy", npy("|u1", false, "(1, 1)", &[7]));
    let plain = drain(&mut Reader::open(folder.path(), &options).unwrap(), 2).unwrap();
    assert_eq!((plain.x, plain.labels), (vec![7.0], None));
    // ... and names that are asked for before both.
    let options = Options { features: Some("x_train".to_owned()), ..options };
    assert_eq!(drain(&mut Reader::open(folder.path(), &options).unwrap(), 2).unwrap().labels, numbers());
}

#[test]
fn the_split_that_is_read_is_known_where_a_file_has_two() {
    let test = Options { split: Split::Test, ..Options::default() };
    let x_test = || npy("|u1", false, "(1, 1)", &[7]);
    let both = npz(&[("x_train", x_npy()), ("x_test", x_test())], true);
    for (options, split, dim) in [(&Options::default(), Split::Train, 3), (&test, Split::Test, 1)] {
        let reader = open(&both, "npz", options).unwrap();
        assert_eq!((reader.split(), reader.dim()), (Some(split), dim));
    }
    let fallback = Options { fallback: true, ..test.clone() };
    let one = npz(&[("x_train", x_npy()), ("y_train", y_npy())], true);
    assert!(open(&one, "npz", &test).is_err());
    let mut reader = open(&one, "npz", &fallback).unwrap();
    assert_eq!(reader.split(), None);
    assert_eq!(drain(&mut reader, 2).unwrap().labels, numbers());
    assert_eq!(open(&both, "npz", &fallback).unwrap().split(), Some(Split::Test));
}

#[test]
fn a_column_split_divides_a_table() {
    let text = "a,split,y\n1,train,5\n2,test,6\n3,test,7\n4,valid,8\n";
    let lines = "{\"x\":[1],\"split\":\"train\",\"y\":5}\n{\"x\":[2],\"split\":\"TEST\",\"y\":6}\n\
                 {\"x\":[3],\"split\":\"test\",\"y\":7}\n{\"x\":[4],\"split\":\"val\",\"y\":8}\n";
    for (text, format) in [(text, "csv"), (lines, "jsonl")] {
        for (split, x, labels) in [(Split::Train, [1.0, 4.0], [5, 8]), (Split::Test, [2.0, 3.0], [6, 7])] {
            for most in [1, 2, 9] {
                let options = Options { split, ..Options::default() };
                let mut reader = open(text.as_bytes(), format, &options).unwrap();
                assert_eq!((reader.dim(), reader.split(), reader.len()), (1, Some(split), None));
                let batch = drain(&mut reader, most).unwrap();
                assert_eq!((batch.x, batch.labels.unwrap()), (x.to_vec(), labels.map(Label::Integer).to_vec()));
            }
        }
    }
    let test = Options { split: Split::Test, ..Options::default() };
    check_bad(b"a,split\n1,train\n", "csv", &test, &["no row whose split is test"]);
    check_bad(b"a,split\n1,holdout\n", "csv", &test, &["row 0", "\"holdout\"", "train, val, valid or test"]);
}

#[test]
fn every_number_type_becomes_a_feature() {
    let check = |descr: &str, data: &[u8], expected: &[f32]| {
        assert_eq!(read(&npy(descr, false, "(2, 1)", data), "npy", &Options::default()).unwrap().x, expected);
    };
    check("<f2", &[0, 0x3e, 0, 0xc0], &[1.5, -2.0]);
    check(">f8", &[1.5f64.to_be_bytes(), (-2.0f64).to_be_bytes()].concat(), &[1.5, -2.0]);
    check("|i1", &[3, 255], &[3.0, -1.0]);
    check("<u8", &[(1u64 << 39).to_le_bytes(); 2].concat(), &[549_755_813_888.0; 2]);
    let half = [("x", safetensors::Dtype::BF16, &[2, 1][..], vec![0xc0, 0x3f, 0, 0xc0])];
    assert_eq!(read(&tensors(&half), "safetensors", &Options::default()).unwrap().x, [1.5, -2.0]);
}

#[test]
fn the_first_line_of_a_table_is_a_header_if_it_is_not_numbers() {
    let read = |text: &str, options: &Options| read(text.as_bytes(), "csv", options).unwrap();
    let plain = Options::default();
    // No header: all columns are features, unless the label's place is told.
    assert_eq!(read("1,2\n3,4\n", &plain).x, [1.0, 2.0, 3.0, 4.0]);
    for (place, labels) in [("last", [2, 4]), ("1", [2, 4]), ("first", [1, 3]), ("0", [1, 3])] {
        let batch = read("1,2\n3,4\n", &label(place));
        assert_eq!(batch.labels.unwrap(), labels.map(Label::Integer));
    }
    assert_eq!(read("1,cat\n3,dog\n", &label("last")).labels.unwrap(), ["cat", "dog"].map(Label::from));
    // A header: by name, by one of the usual names in any case, or by place.
    for (text, options) in [
        ("kind,a\ncat,1\n", label("kind")),
        ("a,Class\n1,cat\n", plain.clone()),
        ("a,z\n1,cat\n", label("last")),
        ("0,label\n1,cat\n", label("last")),
        ("0,last\n1,cat\n", label("last")),
        ("0,1,2,z\n1,1,1,cat\n", label("last")),
        ("\u{feff}a , y\r\n\r\n 1 ,cat\r\n", plain.clone()),
        ("\"a\";\"y\"\n1;\"cat\"\n", plain.clone()),
    ] {
        let batch = read(text, &options);
        assert_eq!((batch.x[0], batch.labels.unwrap()), (1.0, vec![Label::from("cat")]), "{text}");
    }
    // Columns that pandas has counted.
    assert_eq!(read("0,1,2\n5,6,7\n", &plain).x, [5.0, 6.0, 7.0]);
    // A header and no samples.
    let mut reader = open(b"a,b,y\n", "csv", &plain).unwrap();
    assert_eq!((reader.dim(), reader.has_labels()), (2, true));
    assert!(reader.next(5).unwrap().is_none());
}

#[test]
fn json_labels_are_numbers_or_texts_and_booleans_are_the_texts_of_csv() {
    let text = "{\"embedding\":[1],\"label\":\"7\"}\n\n{\"label\":7.0,\"embedding\":[2]}\n{\"embedding\":[3e0],\"label\":true}";
    let batch = read(text.as_bytes(), "jsonl", &Options::default()).unwrap();
    assert_eq!(batch.labels.unwrap(), [Label::from("7"), Label::from(7), Label::from("true")]);
    assert_eq!(batch.x, [1.0, 2.0, 3.0]);
}

#[test]
fn an_empty_array_has_no_samples() {
    let mut reader = open(&npy("<f4", false, "(0, 3)", &[]), "npy", &Options::default()).unwrap();
    assert_eq!((reader.dim(), reader.len()), (3, Some(0)));
    assert!(reader.next(1).unwrap().is_none());
}

#[track_caller]
fn check_bad(bytes: &[u8], format: &str, options: &Options, expected: &[&str]) {
    let message = read(bytes, format, options).expect_err("this should have been refused").to_string();
    let missing: Vec<_> = expected.iter().filter(|word| !message.contains(**word)).collect();
    assert!(missing.is_empty() && message.contains("the-file"), "{missing:?} not in: {message}");
}

#[test]
fn what_is_wrong_with_arrays_is_told() {
    let plain = Options::default();
    let bad = |bytes: Vec<u8>, expected: &[&str]| check_bad(&bytes, "npy", &plain, expected);
    bad(npy("<f4", false, "(5,)", &[0; 20]), &["(samples, features)", "[5]"]);
    bad(npy("<f4", false, "(5, 0)", &[]), &["at least one feature"]);
    bad(npy("<U1", false, "(1, 1)", &[0; 4]), &["string"]);
    bad(npy("<f4", false, "(2, 2)", &floats(&[0.0, 0.0, 0.0, f32::NAN])), &["row 1", "NaN"]);
    bad(npy("<f8", false, "(1, 1)", &1e300f64.to_le_bytes()), &["row 0", "inf"]);
    bad(npy("<f4", false, "(2, 2)", &[0; 12]), &["truncated", "16 bytes"]);
    bad(npy("<f4", true, "(2, 2)", &[0; 12]), &["truncated"]);
    bad(npy("<f4", false, "(1, 1)", &[0; 12]), &["more bytes than its shape"]);
    bad(npy("<f4", false, "(18446744073709551615, 18446744073709551615)", &[0; 12]), &["truncated"]);
    bad(npy("<f4", true, "(18446744073709551615, 4)", &[0; 12]), &["truncated"]);
    bad(npy("|O", false, "(1, 1)", &[0; 12]), &["pickled"]);

    let bad = |arrays: &[(&str, Vec<u8>)], options: &Options, expected: &[&str]| {
        check_bad(&npz(arrays, true), "npz", options, expected);
    };
    bad(&[("vectors", x_npy())], &plain, &["no array x or x_train", "vectors", "`features`"]);
    bad(&[("embedding", x_npy()), ("Features", x_npy())], &plain, &["embedding and Features", "`features`"]);
    bad(&[("x_train", x_npy())], &Options { split: Split::Test, ..plain.clone() }, &["x_test", "x_train", "`split`"]);
    bad(&[("x", x_npy())], &label("z"), &["no array z"]);
    bad(&[("x", x_npy()), ("y", npy("|u1", false, "(4,)", &[0; 4]))], &plain, &["array y", "[4]", "(5,)"]);
    bad(&[("x", x_npy()), ("y", npy("|u1", false, "(5, 1)", &[0; 5]))], &plain, &["array y", "[5, 1]"]);
    let half = npy("<f4", false, "(5,)", &floats(&[0.0, 1.0, 2.0, 3.5, 4.0]));
    for most in [1, 3, 9] {
        let bytes = npz(&[("x", x_npy()), ("y", half.clone())], false);
        let mut reader = open(&bytes, "npz", &plain).unwrap();
        let message = drain(&mut reader, most).unwrap_err().to_string();
        assert!(message.contains("row 3") && message.contains("3.5"), "{message}");
        assert!(reader.next(1).unwrap().is_none(), "after an error there are no samples");
    }
    check_bad(b"this is not a zip archive", "npz", &plain, &["damaged"]);
    let whole = npz(&[("x", x_npy())], false);
    let at = whole.windows(4).position(|w| w == 2.5f32.to_le_bytes()).unwrap();
    let mut flipped = whole;
    flipped[at + 2] ^= 1;
    check_bad(&flipped, "npz", &plain, &["array x", "checksum"]);
}

#[test]
fn what_is_wrong_with_tensors_is_told() {
    let bad = |bytes: &[u8], expected: &[&str]| check_bad(bytes, "safetensors", &Options::default(), expected);
    let whole = x_y_tensors();
    bad(&whole[..5], &["shorter"]);
    bad(&whole[..20], &["header should have"]);
    bad(&whole[..whole.len() - 1], &["should have 100 bytes", "99"]);
    bad(&[0xff; 16], &["header should have"]);
    bad(b"\x02\0\0\0\0\0\0\0{]", &["header"]);
    let lie = String::from_utf8_lossy(&whole).into_owned();
    let lie = lie.replace("[5,3]", "[5,9]").into_bytes();
    // The replacement kept the header's length; the data is binary, and is put back.
    let start = whole.len() - 100;
    bad(&[&lie[..start], &whole[start..]].concat(), &["header", "shape"]);
    bad(&tensors(&[("z", safetensors::Dtype::F32, &[1, 1], vec![0; 4])]), &["no array x", "z"]);
    bad(&tensors(&[("x", safetensors::Dtype::F8_E4M3, &[1, 1], vec![0; 1])]), &["F8_E4M3"]);
    let labels = ("y", safetensors::Dtype::U64, &[1][..], vec![255; 8]);
    bad(&tensors(&[("x", safetensors::Dtype::F32, &[1, 1], vec![0; 4]), labels]), &["row 0", "64 bits"]);
}

#[test]
fn what_is_wrong_with_a_table_is_told() {
    let plain = Options::default();
    let bad = |text: &str, options: &Options, expected: &[&str]| {
        check_bad(text.as_bytes(), "csv", options, expected);
    };
    bad("", &plain, &["no lines"]);
    bad("\n\n", &plain, &["no lines"]);
    bad("y\n1\n", &plain, &["no feature columns"]);
    bad("a,b\n1,2\n3\n", &plain, &["line 3", "1 cell,", "2"]);
    bad("a,b\n1,2\n3,4,5\n", &plain, &["line 3", "3 cells"]);
    bad("a,b\n1,x\n", &plain, &["line 2", "column b", "\"x\"", "label"]);
    bad("a,y\nx,1\n", &plain, &["line 2", "column a", "\"x\" is not a number"]);
    bad("1,2\n3,four\n", &plain, &["line 2", "column 1", "four"]);
    bad("a;y\n1,5;1\n", &plain, &["1,5", "a point"]);
    bad("a,b\n1,\n", &plain, &["line 2", "column b", "\"\""]);
    bad("a,y\n1,2\n1, \n", &plain, &["line 3", "column y", "label is empty"]);
    bad("a,b\n1,nan\n", &plain, &["feature 1 of row 0", "NaN"]);
    bad("a,b\n1,2\n1,1e99\n", &plain, &["feature 1 of row 1", "inf"]);
    bad(",a\n0,1\n", &plain, &["column 1", "index=False"]);
    bad("a,b\n1,2\n", &label("kind"), &["label column kind", "a, b"]);
    bad("1,2\n3,4\n", &label("kind"), &["label column kind", "0, 1"]);
    bad("1,2\n3,4\n", &label("2"), &["label column 2", "0, 1"]);
    bad("a,label,y\n1,2,3\n", &plain, &["label and y", "keep one"]);
    check_bad(b"a,y\n1,\xff\n", "csv", &plain, &["line 2", "UTF-8"]);
    check_bad(b"\xff,y\n1,2\n", "csv", &plain, &["line 1", "UTF-8"]);
    let long = format!("a,y\n{},1\n", "z".repeat(100_000));
    assert!(read(long.as_bytes(), "csv", &plain).unwrap_err().to_string().len() < 200, "messages stay short");
}

#[test]
fn what_is_wrong_with_objects_is_told() {
    let plain = Options::default();
    let bad = |text: &str, options: &Options, expected: &[&str]| {
        check_bad(text.as_bytes(), "jsonl", options, expected);
    };
    bad("", &plain, &["no samples"]);
    bad("[1,2]\n", &plain, &["line 1", "map"]);
    bad("{\"z\":[1]}\n", &plain, &["features key x or embeddings", "z", "`features`"]);
    bad("{\"x\":[1]}\n", &label("kind"), &["label key kind", "x"]);
    bad("{\"x\":[1],\"embedding\":[1]}\n", &plain, &["embedding and x", "keep one"]);
    bad("{\"x\":[]}\n", &plain, &["line 1", "no features"]);
    bad("{\"x\":3}\n", &plain, &["line 1", "sequence"]);
    bad("{\"x\":[1,null]}\n", &plain, &["line 1", "null", "character"]);
    bad("{\"x\":[1]}\n\n{\"x\":[1,2]}\n", &plain, &["line 3", "2 features", "1"]);
    bad("{\"x\":[1]}\n{\"x\":[1]", &plain, &["line 2", "EOF"]);
    bad("{\"x\":[1]} {}\n", &plain, &["line 1", "trailing"]);
    bad("{\"x\":[1]}\n{\"z\":[1]}\n", &plain, &["line 2", "missing key x"]);
    bad("{\"x\":[1]}\n{\"x\":[1],\"Label\":1}\n", &plain, &["line 2", "Label gives a label", "in every line"]);
    bad("{\"x\":[1],\"y\":1}\n{\"x\":[1]}\n", &plain, &["line 2", "missing key y"]);
    bad("{\"x\":[1],\"y\":1.5}\n", &plain, &["line 1", "1.5", "whole number"]);
    bad("{\"x\":[1],\"y\":null}\n", &plain, &["line 1", "null", "a label"]);
    bad("{\"x\":[1],\"y\":18446744073709551615}\n", &plain, &["line 1", "64 bits"]);
    bad("{\"x\":[1],\"x\":[2]}\n", &plain, &["line 1", "duplicate key x"]);
    bad("{\"x\":[NaN]}\n", &plain, &["line 1"]);
    bad("{\"x\":[1]}\n{\"x\":[1e39]}\n", &plain, &["line 2", "out of range"]);
}

#[test]
fn a_format_that_is_not_known_is_told_with_those_that_are() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.xlsx");
    std::fs::write(&path, csv(true, ',', &y_texts())).unwrap();
    let message = Reader::open(&path, &Options::default()).err().unwrap().to_string();
    assert!(
        message.contains("unsupported feature file")
            && message.contains("\"xlsx\"")
            && message.contains("csv")
            && message.contains("npz"),
        "{message}"
    );
    let options = Options { format: Some("hdf5".to_owned()), ..Options::default() };
    assert!(Reader::open(&path, &options).err().unwrap().to_string().contains("\"hdf5\""));
    let missing = Reader::open(&folder.path().join("none.csv"), &Options::default());
    assert!(matches!(missing.err().unwrap(), Error::Read(_)));
}

/// As a file with `x_train` alone does.
#[test]
fn a_table_without_test_rows_falls_back_to_its_training_rows() {
    let folder = TempDir::new().unwrap();
    let rows = |test: &str| {
        let csv = format!("a,b,split,y\n1,2,train,c\n3,4,val,d\n5,6,{test},c\n");
        let object = |x: &str, split: &str| format!("{{\"x\":[{x}],\"split\":\"{split}\",\"y\":\"c\"}}\n");
        [("t.csv", csv), ("t.jsonl", object("1,2", "train") + &object("3,4", "val") + &object("5,6", test))]
    };
    let read = |name: &str, text: &str, fallback: bool| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let options = Options { split: Split::Test, fallback, ..Options::default() };
        let mut reader = Reader::open(&path, &options)?;
        let split = reader.split();
        drain(&mut reader, 2).map(|batch| (batch.x, split))
    };
    for (name, text) in rows("train") {
        assert_eq!(read(name, &text, true).unwrap(), (vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], None), "{name}");
        let message = read(name, &text, false).unwrap_err().to_string();
        assert!(message.contains("no row whose split is test") && message.contains("`split`"), "{message}");
    }
    for (name, text) in rows("test") {
        assert_eq!(read(name, &text, true).unwrap(), (vec![5.0, 6.0], Some(Split::Test)), "{name}");
    }
}

#[test]
fn table_labels_are_what_the_file_says() {
    let text = "a,y\n1,7\n1,007\n1,+7\n1, 7\n1,-0\n1,-7\n1,cat\n1, cat\n1,cat \n1,\"a\nb\"\n";
    let text_label = |text: &str| Label::Text(text.to_owned());
    let expected = [
        Label::Integer(7),
        text_label("007"),
        text_label("+7"),
        text_label(" 7"),
        text_label("-0"),
        Label::Integer(-7),
        text_label("cat"),
        text_label(" cat"),
        text_label("cat "),
        text_label("a\nb"),
    ];
    let batch = read(text.as_bytes(), "csv", &Options::default()).unwrap();
    assert_eq!(batch.labels.unwrap(), expected);
}

#[test]
fn string_arrays_that_are_no_text_are_refused_with_the_row_of_the_whole_file() {
    let y = npy("|S1", false, "(5,)", b"abcd\xff");
    let bytes = npz(&[("x", x_npy()), ("y", y)], true);
    let mut reader = open(&bytes, "npz", &Options::default()).unwrap();
    let error = drain(&mut reader, 2).unwrap_err().to_string();
    assert!(error.contains("array y: row 4") && error.contains("UTF-8"), "{error}");
}

/// Counts the bytes that are taken from it.
struct Counted<R>(R, std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let got = self.0.read(buffer)?;
        self.1.fetch_add(got, std::sync::atomic::Ordering::Relaxed);
        Ok(got)
    }
}

#[test]
fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
    const LIMIT: usize = 64 << 20;
    let check = |start: &str, repeated: u8, format: &str, line: &str| {
        let endless = Cursor::new(start.as_bytes().to_vec()).chain(std::io::repeat(repeated));
        let taken = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let source = Counted(endless, taken.clone());
        let reader =
            Reader::from_stream(Path::new("endless"), source, formats::find(format).unwrap(), &Options::default());
        let error = reader.and_then(|mut reader| drain(&mut reader, 1)).unwrap_err().to_string();
        assert!(error.contains(line) && error.contains("longer than 64 MiB"), "{error}");
        let taken = taken.load(std::sync::atomic::Ordering::Relaxed);
        assert!(taken < LIMIT + (1 << 20), "{taken}");
    };
    check("{\"x\":[1],\"y\":2}\n{\"x\":[", b' ', "jsonl", "line 2");
    check("a,y\n1,2\n\"", b'x', "csv", "line 3");
    check("a,y\n1,2\n3,4\n", b',', "csv", "line 4");
    check("", b'1', "jsonl", "line 1");
}
