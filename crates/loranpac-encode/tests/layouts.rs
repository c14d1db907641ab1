//! The layouts of public data sets, in folders and in archives.

mod raw;

use std::path::Path;

use loranpac_encode::{Error, InputOptions, Inputs, Layout, Modality, Needs};
use raw::{archives, folder, shown};

fn options(layout: Layout) -> InputOptions {
    InputOptions { layout, ..InputOptions::new(Modality::Image) }
}

/// The tags of all inputs, sorted.
fn read(path: &Path, layout: Layout) -> Result<Vec<String>, Error> {
    let inputs = Inputs::open(&[path.to_owned()], &options(layout))?;
    let mut lines = inputs.map(|input| input.map(|input| shown(&input))).collect::<Result<Vec<_>, _>>()?;
    lines.sort();
    Ok(lines)
}

/// Files have these tags in a folder, and in archives below a folder of their own.
fn check(layout: Layout, files: &[(&str, &str)], expected: &[&str]) {
    let bytes: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    assert_eq!(read(folder(&bytes).path(), layout).unwrap(), expected);
    let inside: Vec<String> = files.iter().map(|(name, _)| format!("own/{name}")).collect();
    let inside: Vec<(&str, &[u8])> =
        inside.iter().map(String::as_str).zip(files.iter().map(|(_, text)| text.as_bytes())).collect();
    let place = archives(&inside);
    let expected: Vec<String> = expected.iter().map(|line| format!("own/{line}")).collect();
    for archive in ["a.tar", "a.tar.gz", "a.zip"] {
        assert_eq!(read(&place.path().join(archive), layout).unwrap(), expected, "{archive}");
    }
}

/// Files are refused with a message that has these words.
fn refused(layout: Layout, files: &[(&str, &str)], words: &[&str]) {
    let bytes: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    let place = folder(&bytes);
    let message = read(place.path(), layout).unwrap_err().to_string();
    assert!(words.iter().all(|word| message.contains(word)), "{files:?}: {message}");
}

#[test]
fn sessions_of_core50_are_domains_and_three_are_tested() {
    check(
        Layout::Sessions,
        &[("s1/o1/a.png", ""), ("s3/o2/a.png", ""), ("s7/o1/a.png", ""), ("s10/o50/a.png", ""), ("s11/o50/b.png", "")],
        &[
            "s1/o1/a.png: o1 train 1",
            "s10/o50/a.png: o50 test 10",
            "s11/o50/b.png: o50 train 11",
            "s3/o2/a.png: o2 test 3",
            "s7/o1/a.png: o1 test 7",
        ],
    );
    refused(Layout::Sessions, &[("o1/a.png", "")], &["o1/a.png", "s1/OBJECT/*"]);
    refused(Layout::Sessions, &[("s12/o1/a.png", "")], &["\"s12\" is not a session"]);
    refused(Layout::Sessions, &[("train/o1/a.png", "")], &["\"train\" is not a session"]);
}

#[test]
fn generators_of_cddb_are_domains_and_val_is_tested() {
    check(
        Layout::Forgeries,
        &[
            ("gaugan/train/0_real/a.png", ""),
            ("gaugan/val/1_fake/b.png", ""),
            ("biggan/train/cat/0_real/a.png", ""),
            ("biggan/val/cat/1_fake/b.png", ""),
            // With a split of its own to test, `val` is for training.
            ("Wild/train/real/a.png", ""),
            ("Wild/val/fake/b.png", ""),
            ("Wild/test/real/c.png", ""),
            // Generators that are not among the five are left out, whatever they hold.
            ("stylegan/train/0_real/a.png", ""),
            ("notes.pkl", ""),
        ],
        &[
            "Wild/test/real/c.png: real test wild",
            "Wild/train/real/a.png: real train wild",
            "Wild/val/fake/b.png: fake train wild",
            "biggan/train/cat/0_real/a.png: real train biggan",
            "biggan/val/cat/1_fake/b.png: fake test biggan",
            "gaugan/train/0_real/a.png: real train gaugan",
            "gaugan/val/1_fake/b.png: fake test gaugan",
        ],
    );
    refused(Layout::Forgeries, &[("san/0_real/a.png", "")], &["san/0_real/a.png", "train, val or test"]);
    refused(Layout::Forgeries, &[("san/train/a.png", "")], &["0_real"]);
    refused(Layout::Forgeries, &[("san/train/a/b/0_real/a.png", "")], &["too deep"]);
    refused(Layout::Forgeries, &[("stylegan/train/0_real/a.png", "")], &["no images"]);
}

#[test]
fn lists_of_domainnet_give_labels_splits_and_domains() {
    check(
        Layout::Lists,
        &[
            ("clipart/cat/1.jpg", ""),
            ("clipart/cat/2.jpg", ""),
            ("clipart/not_listed/3.jpg", ""),
            ("clipart_test.txt", "clipart/cat/2.jpg 7\n"),
            ("clipart_train.txt", "clipart/cat/1.jpg 7\n\n"),
            ("real/the dog/1.jpg", ""),
            ("splits/real_train.txt", "real/the dog/1.jpg 8\r\n"),
            ("other.csv", "nothing"),
        ],
        &[
            "clipart/cat/1.jpg: 7 train clipart",
            "clipart/cat/2.jpg: 7 test clipart",
            "real/the dog/1.jpg: 8 train real",
        ],
    );
    refused(Layout::Lists, &[("clipart/cat/1.jpg", "")], &["no lists", "DOMAIN_train.txt"]);
    let image = ("clipart/cat/1.jpg", "");
    refused(
        Layout::Lists,
        &[image, ("clipart_train.txt", "clipart/cat/1.jpg 1\nclipart/cat/2.jpg 1\n")],
        &["clipart_train.txt", "line 2", "clipart/cat/2.jpg is not there"],
    );
    refused(Layout::Lists, &[image, ("clipart_train.txt", "clipart/cat/1.jpg\n")], &["line 1", "a label"]);
    let both = [image, ("clipart_train.txt", "clipart/cat/1.jpg 1\n"), ("clipart_test.txt", "clipart/cat/1.jpg 1\n")];
    refused(Layout::Lists, &both, &["listed elsewhere"]);
    let place = folder(&[("clipart/cat/1.jpg", b""), ("clipart_train.txt", b"caf\xe9.jpg 1\n")]);
    assert!(read(place.path(), Layout::Lists).unwrap_err().to_string().contains("UTF-8"));
}

#[test]
fn an_outline_counts_before_anything_is_read_and_changes_with_the_files() {
    let place =
        folder(&[("art/train/cat/1.png", b"one"), ("art/test/dog/2.png", b"two"), ("photo/train/cat/3.png", b"three")]);
    let outline = || {
        let inputs = Inputs::open(&[place.path().to_owned()], &options(Layout::Usual)).unwrap();
        inputs.outline().unwrap().clone()
    };
    let first = outline();
    assert_eq!((first.train, first.test, first.classes, first.domains), (2, 1, 2, 2));
    assert_eq!((first.without_split, first.without_label), (0, 0));
    assert_eq!(first, outline());
    std::fs::write(place.path().join("art/train/cat/1.png"), "longer").unwrap();
    assert_ne!(first.digest, outline().digest, "another size");
    let second = outline();
    std::fs::write(place.path().join("photo/train/cat/4.png"), "four").unwrap();
    assert_ne!(second.digest, outline().digest, "another file");
    assert!(Needs::Experiment.check(&outline()).is_ok());
}

#[test]
fn an_experiment_is_refused_before_anything_is_read() {
    let message = |names: &[&str]| {
        let files: Vec<(&str, &[u8])> = names.iter().map(|name| (*name, b"x".as_slice())).collect();
        let place = folder(&files);
        let inputs = Inputs::open(&[place.path().to_owned()], &options(Layout::Usual)).unwrap();
        Needs::Experiment.check(inputs.outline().unwrap()).unwrap_err().to_string()
    };
    assert!(message(&["cat/1.png", "dog/2.png"]).contains("no splits"));
    assert!(message(&["train/cat/1.png", "val/dog/2.png"]).contains("no test samples"));
    assert!(message(&["test/cat/1.png"]).contains("no training samples"));
    assert!(message(&["train/1.png", "test/2.png"]).contains("no labels"));
}
