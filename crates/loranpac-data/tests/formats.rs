//! Feature files, good and bad: one test per way in which a file can be wrong.

mod files;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use loranpac::Label;
use loranpac_data::error::{ArrayProblem, Error};
use loranpac_data::formats::{Array, Elements, read_npy};
use loranpac_data::{Dataset, Options, Reader, TextOptions, Texts};
use tempfile::TempDir;

use files::npy;

fn write(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Reads one array from an npy file.
fn read(bytes: &[u8]) -> Result<Array, Error> {
    let folder = TempDir::new().unwrap();
    read_npy(&write(&folder, "x.npy", bytes))
}

#[track_caller]
fn check(bytes: &[u8], shape: &[usize], data: Elements) {
    assert_eq!(read(bytes).unwrap(), Array { shape: shape.to_vec(), data });
}

#[track_caller]
fn check_bad(bytes: &[u8], expected: impl Fn(&ArrayProblem) -> bool) {
    match read(bytes) {
        Err(Error::Array { array, problem, .. }) if expected(&problem) => assert_eq!(array, "x"),
        other => panic!("{other:?}"),
    }
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn every_number_type_and_byte_order_is_read() {
    let values = Elements::Float(vec![1.5, -2.0]);
    check(&npy("<f4", false, "(2,)", &floats(&[1.5, -2.0])), &[2], values.clone());
    let big: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|v| v.to_be_bytes()).collect();
    check(&npy(">f4", false, "(2,)", &big), &[2], values.clone());
    let half: Vec<u8> = [0x3e00u16, 0xc000].iter().flat_map(|v| v.to_le_bytes()).collect();
    check(&npy("<f2", false, "(2,)", &half), &[2], values.clone());
    let double: Vec<u8> = [1.5f64, -2.0].iter().flat_map(|v| v.to_be_bytes()).collect();
    check(&npy(">f8", false, "(2,)", &double), &[2], values);
    let whole = Elements::Integer(vec![3, -1]);
    check(&npy("|i1", false, "(2,)", &[3, 255]), &[2], whole.clone());
    check(&npy(">i2", false, "(2,)", &[0, 3, 255, 255]), &[2], whole.clone());
    let long: Vec<u8> = [3i64, -1].iter().flat_map(|v| v.to_le_bytes()).collect();
    check(&npy("<i8", false, "(2,)", &long), &[2], whole);
    check(&npy("|u1", false, "(2,)", &[3, 255]), &[2], Elements::Integer(vec![3, 255]));
    check(&npy("|b1", false, "(2,)", &[1, 0]), &[2], Elements::Integer(vec![1, 0]));
}

#[test]
fn strings_are_read() {
    let text: Vec<u8> = "ab\0é日\0".chars().flat_map(|c| (c as u32).to_le_bytes()).collect();
    let expected = Elements::Text(vec!["ab".to_owned(), "é日".to_owned()]);
    check(&npy("<U3", false, "(2,)", &text), &[2], expected);
    check(&npy("|S3", false, "(2,)", b"ab\0xyz"), &[2], Elements::Text(vec!["ab".to_owned(), "xyz".to_owned()]));
}

#[test]
fn strings_that_differ_stay_different() {
    // Text behind a NUL belongs to the string; NULs at the end are padding.
    let text: Vec<u8> = "a\0ba\0ca\0\0".chars().flat_map(|c| (c as u32).to_le_bytes()).collect();
    let expected = ["a\0b", "a\0c", "a"].map(str::to_owned).to_vec();
    check(&npy("<U3", false, "(3,)", &text), &[3], Elements::Text(expected.clone()));
    check(&npy("|S3", false, "(3,)", b"a\0ba\0ca\0\0"), &[3], Elements::Text(expected));
}

#[test]
fn strings_that_are_no_text_are_refused_with_the_row() {
    let row_1 = |p: &ArrayProblem| matches!(p, ArrayProblem::Label { row: 1, .. });
    check_bad(&npy("|S2", false, "(2,)", b"ab\xffx"), row_1);
    for point in [0xd800u32, 0x11_0000, u32::MAX] {
        let text: Vec<u8> = ['a' as u32, point].iter().flat_map(|c| c.to_be_bytes()).collect();
        check_bad(&npy(">U1", false, "(2,)", &text), row_1);
    }
}

#[test]
fn fortran_order_is_turned() {
    let data = floats(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    check(&npy("<f4", true, "(2, 3)", &data), &[2, 3], Elements::Float(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
}

#[test]
fn other_writers_headers_are_read() {
    let header = b"{\"shape\":(1,2),\"descr\":\"<f4\",\"fortran_order\":False}";
    let mut file = b"\x93NUMPY\x02\x00".to_vec();
    file.extend((header.len() as u32).to_le_bytes());
    file.extend(header);
    file.extend(floats(&[1.0, 2.0]));
    check(&file, &[1, 2], Elements::Float(vec![1.0, 2.0]));
}

#[test]
fn a_truncated_file_is_refused() {
    let whole = npy("<f4", false, "(2, 3)", &floats(&[0.0; 6]));
    for cut in 1..=24 {
        check_bad(&whole[..whole.len() - cut], |p| matches!(p, ArrayProblem::Truncated { needed: 24, .. }));
    }
    check_bad(&whole[..50], |p| matches!(p, ArrayProblem::NotNpy(_)));
    check_bad(&whole[..4], |p| matches!(p, ArrayProblem::NotNpy(_)));
    check_bad(b"", |p| matches!(p, ArrayProblem::NotNpy(_)));
}

#[test]
fn a_header_that_lies_about_its_shape_is_refused_without_the_memory() {
    for shape in
        ["(1000000000000, 1000)", "(18446744073709551615, 18446744073709551615)", "(4294967296, 4294967296, 2)"]
    {
        check_bad(&npy("<f4", false, shape, &floats(&[0.0; 6])), |p| matches!(p, ArrayProblem::Truncated { .. }));
    }
    // A version 2 header may claim to be four gigabytes long.
    check_bad(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}", |p| matches!(p, ArrayProblem::Header(_)));
}

#[test]
fn what_cannot_be_read_is_refused_by_name() {
    check_bad(&npy("|O", false, "(1,)", b"\x80\x03."), |p| *p == ArrayProblem::Pickle);
    for descr in ["<c8", "<f16", "<M8[ns]", "|V8", "<q", ""] {
        check_bad(
            &npy(descr, false, "(1,)", &[0; 16]),
            |p| matches!(p, ArrayProblem::Dtype { found, .. } if found == descr),
        );
    }
    let record = npy("X", false, "(1,)", &[0; 8]);
    let text = String::from_utf8_lossy(&record).replace("'X'", "[('a', '<f4')]");
    let record: Vec<u8> =
        record[..10].iter().copied().chain(text.chars().skip_while(|c| *c != '{').map(|c| c as u8)).collect();
    check_bad(&record, |p| matches!(p, ArrayProblem::Dtype { found, .. } if found == "a record"));
    check_bad(&npy("<f4", false, "(two,)", &[0; 8]), |p| matches!(p, ArrayProblem::Header(_)));
    check_bad(b"PK\x03\x04 not numpy at all", |p| matches!(p, ArrayProblem::NotNpy(_)));
    check_bad(b"\x93NUMPY\x09\x00\x02\x00{}", |p| matches!(p, ArrayProblem::NotNpy(_)));
}

/// An npz archive of the given arrays.
fn npz(folder: &TempDir, arrays: &[(&str, Vec<u8>)], deflate: bool) -> PathBuf {
    let path = folder.path().join("set.npz");
    let mut archive = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    let method = if deflate { zip::CompressionMethod::Deflated } else { zip::CompressionMethod::Stored };
    for (name, bytes) in arrays {
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap();
    path
}

/// A data set of four training and two test samples.
fn arrays() -> Vec<(&'static str, Vec<u8>)> {
    let labels = |values: &[i64]| {
        npy(
            "<i8",
            false,
            &format!("({},)", values.len()),
            &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>(),
        )
    };
    vec![
        ("x_train", npy("<f4", false, "(4, 2)", &floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]))),
        ("y_train", labels(&[30, 10, 30, 10])),
        ("x_test", npy("<f4", false, "(2, 2)", &floats(&[9.0, 8.0, 7.0, 6.0]))),
        ("y_test", labels(&[10, 30])),
    ]
}

fn check_dataset(path: &Path) {
    let mut data = Dataset::open(path).unwrap();
    assert_eq!((data.name.as_str(), data.dim), ("set", 2));
    assert_eq!(data.classes, [Label::from(10), Label::from(30)]);
    assert_eq!((data.train.y.as_slice(), data.test.y.as_slice()), (&[1, 0, 1, 0][..], &[0, 1][..]));
    assert_eq!(data.train.x[4..6], [4.0, 5.0]);
    data.limit_per_class(1);
    assert_eq!((data.train.y.as_slice(), data.train.x.as_slice()), (&[1, 0][..], &[0.0, 1.0, 2.0, 3.0][..]));
}

#[test]
fn npz_npy_folder_and_safetensors_give_the_same_data() {
    let folder = TempDir::new().unwrap();
    check_dataset(&npz(&folder, &arrays(), false));
    check_dataset(&npz(&folder, &arrays(), true));
    let sub = folder.path().join("set");
    std::fs::create_dir(&sub).unwrap();
    arrays().iter().for_each(|(name, bytes)| std::fs::write(sub.join(format!("{name}.npy")), bytes).unwrap());
    check_dataset(&sub);

    use safetensors::tensor::{Dtype, TensorView, serialize_to_file};
    let x: Vec<u8> = floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    let xt: Vec<u8> = [0x4880u16, 0x4800, 0x4700, 0x4600].iter().flat_map(|v| v.to_le_bytes()).collect();
    let y: Vec<u8> = [30u8, 10, 30, 10].to_vec();
    let yt: Vec<u8> = [10i32, 30].iter().flat_map(|v| v.to_le_bytes()).collect();
    let view = |kind, shape: &[usize], data| TensorView::new(kind, shape.to_vec(), data).unwrap();
    let tensors = [
        ("x_train", view(Dtype::F32, &[4, 2], &x[..])),
        ("y_train", view(Dtype::U8, &[4], &y)),
        ("x_test", view(Dtype::F16, &[2, 2], &xt)),
        ("y_test", view(Dtype::I32, &[2], &yt)),
    ];
    let path = folder.path().join("set.safetensors");
    serialize_to_file(tensors, None, &path).unwrap();
    check_dataset(&path);
    // ... and cut anywhere it is refused.
    let bytes = std::fs::read(&path).unwrap();
    for cut in [1, 20, bytes.len() - 5] {
        std::fs::write(&path, &bytes[..bytes.len() - cut]).unwrap();
        assert!(matches!(Dataset::open(&path), Err(Error::Container { .. })));
    }
}

/// The message for a data set with one array replaced.
fn message(name: &str, bytes: Option<Vec<u8>>) -> String {
    let folder = TempDir::new().unwrap();
    let mut all = arrays();
    all.retain(|(n, _)| *n != name);
    if let (Some(bytes), Some(known)) = (bytes, arrays().iter().find(|(n, _)| *n == name)) {
        all.push((known.0, bytes));
    }
    Dataset::open(&npz(&folder, &all, true)).unwrap_err().to_string()
}

#[test]
fn a_set_that_does_not_fit_together_is_refused_by_name() {
    let check = |name: &str, bytes: Option<Vec<u8>>, words: &[&str]| {
        let message = message(name, bytes);
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    check("y_test", None, &["no array y_test", "x_train"]);
    check("y_train", Some(npy("<i8", false, "(3,)", &[0; 24])), &["y_train", "[3]", "(4,)"]);
    check("x_test", Some(npy("<f4", false, "(2, 3)", &[0; 24])), &["x_test", "[2, 3]", "(samples, 2)"]);
    check("x_train", Some(npy("<f4", false, "(8,)", &[0; 32])), &["x_train", "[8]", "(samples, features)"]);
    check("x_train", Some(npy("<f4", false, "(0, 2)", &[])), &["x_train", "at least one sample"]);
    check("x_train", Some(npy("<U1", false, "(4, 2)", &[0; 32])), &["x_train", "string"]);
    check("y_train", Some(npy("<f4", false, "(4,)", &floats(&[0.0, 1.0, 0.5, 2.0]))), &["y_train", "row 2", "0.5"]);
    check(
        "x_train",
        Some(npy("<f4", false, "(4, 2)", &floats(&[0.0, 0.0, 0.0, f32::NAN, 0.0, 0.0, 0.0, 0.0]))),
        &["x_train", "row 1", "NaN"],
    );
    check("x_train", Some(npy("<f4", false, "(4, 2)", &[0; 20])), &["x_train", "truncated"]);
    check("x_train", Some(npy("<f4", false, "(40000000000, 2)", &[0; 20])), &["x_train", "truncated"]);
}

#[test]
fn files_that_are_not_feature_files_are_refused() {
    let folder = TempDir::new().unwrap();
    let damaged = write(&folder, "a.npz", b"this is not a zip archive");
    assert!(matches!(Dataset::open(&damaged), Err(Error::Container { .. })));
    let whole = std::fs::read(npz(&folder, &arrays(), true)).unwrap();
    let cut = write(&folder, "b.npz", &whole[..whole.len() / 2]);
    assert!(Dataset::open(&cut).is_err());
    let text = write(&folder, "c.csv", b"1,2,3");
    assert!(matches!(Dataset::open(&text), Err(Error::NoSplit { .. })));
    let array = write(&folder, "d.npy", &npy("<f4", false, "(2, 2)", &[0; 16]));
    assert!(matches!(Dataset::open(&array), Err(Error::NoSplit { .. })));
    let sheet = write(&folder, "e.xlsx", b"PK");
    let message = Dataset::open(&sheet).unwrap_err().to_string();
    assert!(message.contains("unsupported feature file") && message.contains("parquet, ") | message.contains("csv, "));
    assert!(matches!(Dataset::open(&folder.path().join("none.npz")), Err(Error::Read(_))));
}

/// The data set of [`arrays`] as a table, in another order of rows; `val` counts as training.
const TABLE: &str = "a,b,label,Split,domain\n\
    0,1,30,train,p\n9,8,10,test,q\n2,3,10,val,p\n4,5,30,Train,q\n7,6,30,test,p\n6,7,10,valid,p\n";

#[test]
fn a_table_with_a_column_split_is_a_data_set() {
    let folder = TempDir::new().unwrap();
    check_dataset(&write(&folder, "set.csv", TABLE.as_bytes()));
    check_dataset(&write(&folder, "set.tsv", TABLE.replace(',', "\t").as_bytes()));
    let object = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let [a, b, label, split, domain] = cells[..] else { panic!("{line}") };
        format!("{{\"split\":\"{split}\",\"x\":[{a},{b}],\"domain\":\"{domain}\",\"target\":{label}}}\n")
    };
    let objects: String = TABLE.lines().skip(1).map(object).collect();
    let path = write(&folder, "set.jsonl", objects.as_bytes());
    check_dataset(&path);
    let data = Dataset::open(&path).unwrap();
    let domains = ["p", "p", "q", "p"].map(Label::from).to_vec();
    assert_eq!((data.train.domain, data.test.domain.unwrap().len()), (Some(domains), 2));
    // The same digest as from arrays, apart from the domains.
    let table = TABLE.replace(",domain", "").replace(",p\n", "\n").replace(",q\n", "\n");
    let table = Dataset::open(&write(&folder, "set.csv", table.as_bytes())).unwrap();
    assert_eq!(table.digest(), Dataset::open(&npz(&folder, &arrays(), true)).unwrap().digest());
}

#[test]
fn a_table_that_is_no_data_set_is_refused_with_what_to_do() {
    let folder = TempDir::new().unwrap();
    let check = |text: &str, words: &[&str]| {
        let message = Dataset::open(&write(&folder, "set.csv", text.as_bytes())).unwrap_err().to_string();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    check("a,y\n1,2\n", &["column split", "train or test", "x_train"]);
    check("a,split\n1,train\n", &["no labels", "target"]);
    check("a,y,split\n1,2,train\n", &["no row whose split is test"]);
    check("a,y,split\n1,2,test\n", &["no row whose split is train"]);
    check("a,y,split\n1,2,train\n1,2,other\n", &["row 1", "\"other\"", "valid"]);
    check("a,y,split\n1,2,train\n1,2, \n", &["line 3", "split is empty"]);
    check("a,y,split\n1,2,train\nNaN,2,test\n", &["feature 0 of row 1"]);
}

#[test]
fn usual_names_are_found_in_any_case() {
    let folder = TempDir::new().unwrap();
    let renamed = |names: [&'static str; 4]| {
        let all: Vec<_> = names.into_iter().zip(arrays().into_iter().map(|(_, bytes)| bytes)).collect();
        npz(&folder, &all, false)
    };
    check_dataset(&renamed(["X_train", "Y_train", "X_test", "Y_test"]));
    check_dataset(&renamed(["embeddings_train", "labels_train", "embeddings_test", "labels_test"]));
    check_dataset(&renamed(["Features_Train", "class_train", "embedding_test", "target_TEST"]));
    let message = Dataset::open(&renamed(["vectors", "y_train", "x_test", "y_test"])).unwrap_err().to_string();
    assert!(message.contains("no array x_train") && message.contains("vectors"), "{message}");
}

#[test]
fn a_flipped_byte_in_an_archive_is_noticed() {
    let folder = TempDir::new().unwrap();
    let path = npz(&folder, &arrays(), false);
    let mut bytes = std::fs::read(&path).unwrap();
    let five = 5.0f32.to_le_bytes();
    let at = bytes.windows(4).position(|w| w == five).unwrap();
    bytes[at + 2] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let message = Dataset::open(&path).unwrap_err().to_string();
    assert!(message.contains("x_train") && message.contains("damaged"), "{message}");
}

#[test]
fn layers_are_put_before_the_features_in_the_order_of_their_names() {
    let folder = TempDir::new().unwrap();
    let floats = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    for half in ["train", "test"] {
        let file = |name: &str, shape: &str, values: &[f32]| {
            write(&folder, &format!("{name}.npy"), &npy("<f4", false, shape, &floats(values)));
        };
        file(&format!("x_{half}"), "(2, 1)", &[1.0, 2.0]);
        file(&format!("x_{half}_layer_b"), "(2, 2)", &[5.0, 6.0, 7.0, 8.0]);
        file(&format!("x_{half}_layer_a"), "(2, 1)", &[3.0, 4.0]);
        let labels: Vec<u8> = [10i64, 20].iter().flat_map(|v| v.to_le_bytes()).collect();
        write(&folder, &format!("y_{half}.npy"), &npy("<i8", false, "(2,)", &labels));
    }
    let mut data = Dataset::open(folder.path()).unwrap();
    let stacked = data.with_layers().unwrap();
    assert_eq!((data.dim, stacked.dim), (1, 4));
    assert_eq!(stacked.train.x, [3.0, 5.0, 6.0, 1.0, 4.0, 7.0, 8.0, 2.0]);
    assert_eq!((&stacked.train.y, &stacked.test.x), (&data.train.y, &stacked.train.x));
    data.limit_per_class(1);
    assert_eq!(data.with_layers().unwrap().train.x, stacked.train.x);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_and_does_not_wait() {
    let folder = TempDir::new().unwrap();
    for name in ["a.csv", "a.jsonl", "a.npz", "arrays/x.npy"] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let path = if name.ends_with("npy") { path.parent().unwrap() } else { &path };
        let message = Reader::open(path, &Options::default()).map(|_| ()).unwrap_err().to_string();
        assert!(message.contains("a pipe or a device instead of a regular file"), "{name}: {message}");
        assert!(Dataset::open(path).is_err(), "{name}");
        assert!(name.ends_with("npy") || Texts::open(path, &TextOptions::default()).is_err(), "{name}");
    }
}
