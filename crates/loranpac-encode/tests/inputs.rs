//! Where inputs are found, their tags and their order, and what is refused.

mod raw;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use loranpac::Label;
use loranpac_encode::input::{Data, Input, InputOptions, Inputs};
use loranpac_encode::{Error, Modality};
use raw::shown;
use tempfile::TempDir;

fn images() -> InputOptions {
    InputOptions::new(Modality::Image)
}

fn texts() -> InputOptions {
    InputOptions::new(Modality::Text)
}

/// Files whose contents are their names.
fn files<'a>(names: &[&'a str]) -> Vec<(&'a str, &'a [u8])> {
    names.iter().map(|name| (*name, name.as_bytes())).collect()
}

fn folder(names: &[&str]) -> TempDir {
    raw::folder(&files(names))
}

fn archives(names: &[&str]) -> TempDir {
    raw::archives(&files(names))
}

fn read(path: &Path, options: &InputOptions) -> Result<Vec<Input>, Error> {
    Inputs::open(&[path.to_owned()], options)?.collect()
}

/// Files in a folder, and the same files in archives inside a folder of their own, have these tags.
fn check(names: &[&str], expected: &[&str]) {
    let place = folder(names);
    let found: Vec<String> = read(place.path(), &images()).unwrap().iter().map(shown).collect();
    assert_eq!(found, expected);
    let inside: Vec<String> = names.iter().map(|name| format!("own/{name}")).collect();
    let inside: Vec<&str> = inside.iter().map(String::as_str).collect();
    let place = archives(&inside);
    for archive in ["a.tar", "a.tar.gz", "a.zip"] {
        let inputs = read(&place.path().join(archive), &images()).unwrap();
        assert!(inputs.iter().all(|input| input.data == Data::Image(input.name.clone().into_bytes())), "{archive}");
        let mut found: Vec<String> = inputs.iter().map(shown).collect();
        // A compressed archive keeps its own order.
        if archive == "a.tar.gz" {
            found.sort();
        }
        let expected: Vec<String> = expected.iter().map(|line| format!("own/{line}")).collect();
        assert_eq!(found, expected, "{archive}");
    }
}

#[test]
fn an_archive_of_one_split_keeps_it_and_classes_may_have_any_name() {
    let place = archives(&["test/cat/a.png", "test/dog/b.png"]);
    let found: Vec<String> = read(&place.path().join("a.tar"), &images()).unwrap().iter().map(shown).collect();
    assert_eq!(found, ["test/cat/a.png: cat test -", "test/dog/b.png: dog test -"]);
    check(&["license/readme.png", "notice/1.png"], &["license/readme.png: license - -", "notice/1.png: notice - -"]);
    let place = folder(&["cat/a.png", "cat/README.md", "LICENSE"]);
    assert_eq!(read(place.path(), &images()).unwrap().len(), 1, "other files of these names are ignored");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_an_error_and_does_not_wait() {
    let place = folder(&["cat/a.png"]);
    let pipe = place.path().join("cat/b.png");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let found: Vec<_> = Inputs::open(&[place.path().to_owned()], &images()).unwrap().collect();
    assert!(found[1].as_ref().unwrap_err().to_string().contains("b.png"));
}

#[test]
fn folders_give_classes_splits_and_domains() {
    check(&["b.png", "a.jpg"], &["a.jpg: - - -", "b.png: - - -"]);
    check(&["dog/1.png", "cat/2.JPG"], &["cat/2.JPG: cat - -", "dog/1.png: dog - -"]);
    check(&["7/1.png", "007/1.png"], &["007/1.png: 007 - -", "7/1.png: 7 - -"]);
    check(&["train/a.png", "test/a.png"], &["test/a.png: - test -", "train/a.png: - train -"]);
    check(
        &["train/cat/a.png", "Val/cat/b.png", "test/train/c.png"],
        &["Val/cat/b.png: cat train -", "test/train/c.png: train test -", "train/cat/a.png: cat train -"],
    );
    check(&["art/cat/a.png", "photo/cat/b.png"], &["art/cat/a.png: cat - art", "photo/cat/b.png: cat - photo"]);
    check(
        &["art/train/cat/a.png", "photo/test/dog/b.png"],
        &["art/train/cat/a.png: cat train art", "photo/test/dog/b.png: dog test photo"],
    );
    check(
        &["train/art/cat/a.png", "test/photo/dog/b.png"],
        &["test/photo/dog/b.png: dog test photo", "train/art/cat/a.png: cat train art"],
    );
}

#[test]
fn names_of_folders_are_integer_labels_if_all_of_them_are_integers() {
    let check = |names: &[&str], expected: &[Label]| {
        let found = read(folder(names).path(), &images()).unwrap();
        let labels: Vec<Label> = found.into_iter().map(|input| input.tags.label.unwrap()).collect();
        assert_eq!(labels, expected);
    };
    check(&["7/a.png", "12/b.png"], &[Label::Integer(12), Label::Integer(7)]);
    check(&["7/a.png", "007/b.png"], &[Label::from("007"), Label::from("7")]);
}

#[test]
fn layouts_without_a_meaning_are_refused_by_name() {
    let check = |names: &[&str], expected: &str| {
        let place = folder(names);
        let message = read(place.path(), &images()).unwrap_err().to_string();
        assert!(message.contains(expected) && message.contains("CLASS/*"), "{names:?}: {message}");
    };
    check(&["a.png", "cat/b.png"], "cat/b.png: it lies 1 folders deep, but a.png lies 0 deep");
    check(&["train/cat/a.png", "extra/cat/b.png"], "\"extra\" is neither train, val nor test");
    check(&["a/b/c/d/e.png"], "its 4 folders have no meaning");
    check(&["a/b/c/e.png"], "its 3 folders have no meaning");
}

#[test]
fn files_of_systems_are_ignored_and_other_files_refused() {
    let ignored = [".DS_Store", "cat/.hidden.png", "cat/Thumbs.db", "README.md", "cat/LICENSE", "__MACOSX/cat/._a.png"];
    let names = [&ignored[..], &["cat/a.png"]].concat();
    let place = folder(&names);
    assert_eq!(read(place.path(), &images()).unwrap().len(), 1);
    let archive = archives(&names);
    for name in ["a.tar", "a.tar.gz", "a.zip"] {
        assert_eq!(read(&archive.path().join(name), &images()).unwrap().len(), 1, "{name}");
    }
    let place = folder(&["cat/a.png", "cat/labels.json"]);
    let message = read(place.path(), &images()).unwrap_err().to_string();
    assert!(
        message.ends_with("cat/labels.json is not an image; remove it, or skip such files with `skip-bad`"),
        "{message}"
    );
    let skipping = InputOptions { skip_bad: true, ..images() };
    let inputs = Inputs::open(&[place.path().to_owned()], &skipping).unwrap();
    assert_eq!(inputs.skipped().collect::<Vec<_>>(), ["cat/labels.json"]);
    assert_eq!((inputs.count_hint(), inputs.count()), (Some(1), 1));
    let empty = folder(&["README"]);
    assert!(matches!(read(empty.path(), &images()), Err(Error::NoInputs { .. })));
}

#[test]
fn entries_of_archives_never_leave_the_archive() {
    let place = tempfile::tempdir().unwrap();
    let file = fs::File::create(place.path().join("a.zip")).unwrap();
    let mut zip = zip::ZipWriter::new(file);
    zip.start_file("../../escape/a.png", zip::write::SimpleFileOptions::default()).unwrap();
    zip.write_all(b"x").unwrap();
    zip.finish().unwrap();
    let message = read(&place.path().join("a.zip"), &images()).unwrap_err().to_string();
    assert!(message.contains("../../escape/a.png") && message.contains("leads out of the archive"), "{message}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing was written");
}

#[test]
fn a_zip_bomb_stops_at_the_limit() {
    let place = tempfile::tempdir().unwrap();
    let file = fs::File::create(place.path().join("a.zip")).unwrap();
    let mut zip = zip::ZipWriter::new(file);
    zip.start_file("a.png", zip::write::SimpleFileOptions::default()).unwrap();
    zip.write_all(&vec![0; 3 << 20]).unwrap();
    zip.finish().unwrap();
    let options = InputOptions { largest: 1 << 20, ..images() };
    let message = read(&place.path().join("a.zip"), &options).unwrap_err().to_string();
    assert!(message.ends_with("a.zip: a.png: it is larger than the limit of 1 MiB"), "{message}");
}

#[test]
fn after_a_file_that_cannot_be_read_the_next_one_is() {
    let place = folder(&["a.png", "b.png", "c.png"]);
    let inputs = Inputs::open(&[place.path().to_owned()], &images()).unwrap();
    fs::remove_file(place.path().join("b.png")).unwrap();
    let found: Vec<Result<Input, Error>> = inputs.collect();
    assert_eq!(found.len(), 3);
    assert!(found[1].as_ref().is_err_and(Error::concerns_one_input) && found[2].is_ok());
}

#[cfg(unix)]
#[test]
fn links_are_followed_but_not_round_in_circles() {
    use std::os::unix::fs::symlink;
    let target = folder(&["x.png"]);
    let place = folder(&["cat/a.png"]);
    symlink(target.path().join("x.png"), place.path().join("cat/b.png")).unwrap();
    symlink(target.path(), place.path().join("dog")).unwrap();
    let found: Vec<String> = read(place.path(), &images()).unwrap().iter().map(shown).collect();
    assert_eq!(found, ["cat/a.png: cat - -", "cat/b.png: cat - -", "dog/x.png: dog - -"]);
    symlink(place.path(), place.path().join("cat/round")).unwrap();
    let message = read(place.path(), &images()).unwrap_err().to_string();
    assert!(message.contains("it is a link to a folder that contains it"), "{message}");
}

#[test]
fn tables_give_texts_with_their_tags() {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| -> PathBuf {
        fs::write(place.path().join(name), text).unwrap();
        place.path().join(name)
    };
    let csv = "text,label,split,domain,other\n\"a, b\",7,train,x,1\n.,greeting,validation,y,2\nlast,007,test,z,3\n";
    let found = read(&write("t.csv", csv), &texts()).unwrap();
    let lines: Vec<String> = found.iter().map(shown).collect();
    assert_eq!(lines, ["row 0: 7 train x", "row 1: greeting train y", "row 2: 007 test z"]);
    assert_eq!(found[0].data, Data::Text("a, b".to_owned()));
    assert_eq!(found[1].data, Data::Text(".".to_owned()));
    assert_eq!([&found[0], &found[2]].map(|input| input.tags.label.clone().unwrap()), ["7".into(), "007".into()]);
    let jsonl = "\u{feff}{\"message\": \"hi\", \"y\": true}\n\n{\"message\": \"\\u00e9\", \"y\": \"b\", \"z\": []}\n";
    let found = read(&write("t.jsonl", jsonl), &texts()).unwrap();
    assert_eq!(found.iter().map(shown).collect::<Vec<_>>(), ["row 0: true - -", "row 1: b - -"]);
    let other = InputOptions { column: Some("b".to_owned()), label: Some("a".to_owned()), ..texts() };
    let found = read(&write("t.tsv", "a\tb\nx\ty\n"), &other).unwrap();
    assert_eq!((&found[0].data, shown(&found[0])), (&Data::Text("y".to_owned()), "row 0: x - -".to_owned()));
    let long = "x".repeat(1 << 20);
    let found = read(&write("long.csv", &format!("text\n{long}\n")), &texts()).unwrap();
    assert_eq!(found[0].data, Data::Text(long), "a text of 1 MiB is a text");
}

#[test]
fn bad_tables_are_refused_with_their_place() {
    let place = tempfile::tempdir().unwrap();
    let check = |name: &str, bytes: &[u8], expected: &str| {
        let path = place.path().join(name);
        fs::write(&path, bytes).unwrap();
        let message = read(&path, &texts()).unwrap_err().to_string();
        assert!(message.contains(name) && message.contains(expected), "{message}");
    };
    check("a.csv", b"text,label\nok,1\n\xff\xfe,2\n", "line 3: is not valid UTF-8");
    check("b.jsonl", b"{\"text\": \"ok\"}\n{\"text\": \"\xff\"}\n", "line 2: ");
    check("c.csv", b"title,label\nx,1\n", "no text column text or sentence");
    check("d.csv", b"text,label\nx,\n", "line 2: column label: the label is empty");
    check("e.csv", b"text,label\nx\n", "line 2: has 1 cell, but the first line has 2");
    check("f.csv", b"text,split\nx,later\n", "row 0: split is \"later\"");
    check("g.jsonl", b"{\"text\": 3}\n", "line 1: invalid type: integer `3`, expected a string");
    check("h.csv", b"text,query\nx,y\n", "could each be the text column; keep one, or choose it with `text`");
    check("h2.csv", b"text,text\nx,y\n", "column text: several columns have this name");
}

#[test]
fn tables_and_lists_of_paths_are_relative_to_their_own_folder() {
    let place = folder(&["img/a.png", "img/b c.png"]);
    fs::write(place.path().join("t.csv"), "path,label\nimg/b c.png,cat\nimg/a.png,dog\nmissing.png,cat\n").unwrap();
    let found: Vec<_> = Inputs::open(&[place.path().join("t.csv")], &images()).unwrap().collect();
    assert_eq!(shown(found[0].as_ref().unwrap()), "img/b c.png: cat - -");
    assert_eq!(found[1].as_ref().unwrap().data, Data::Image(b"img/a.png".to_vec()));
    let missing = found[2].as_ref().unwrap_err();
    assert!(missing.concerns_one_input() && missing.to_string().contains("missing.png"), "{missing}");
    fs::write(place.path().join("list.txt"), "img/b c.png 3\n\nimg/a.png\n").unwrap();
    let found: Vec<String> = read(&place.path().join("list.txt"), &images()).unwrap().iter().map(shown).collect();
    assert_eq!(found, ["img/b c.png: 3 - -", "img/a.png: - - -"]);
}

#[test]
fn several_sources_follow_one_another() {
    let place = folder(&["one/cat/a.png", "b.png", "c.svg"]);
    let paths = [place.path().join("b.png"), place.path().join("one")];
    let inputs = Inputs::open(&paths, &images()).unwrap();
    assert_eq!(inputs.count_hint(), Some(2));
    let names: Vec<String> = inputs.map(|input| input.unwrap().name).collect();
    assert_eq!(names, [paths[0].display().to_string(), "cat/a.png".to_owned()]);
    assert!(matches!(read(&place.path().join("c.svg"), &images()), Err(Error::UnknownSource { .. })));
    assert!(matches!(read(&place.path().join("nothing"), &images()), Err(Error::Read { .. })));
}

#[test]
fn folders_of_text_files_are_texts() {
    let place = folder(&["spam/1.txt", "ham/2.txt"]);
    let found = read(place.path(), &texts()).unwrap();
    assert_eq!(found.iter().map(shown).collect::<Vec<_>>(), ["ham/2.txt: ham - -", "spam/1.txt: spam - -"]);
    assert_eq!(found[0].data, Data::Text("ham/2.txt".to_owned()));
    fs::write(place.path().join("ham/2.txt"), b"\xff").unwrap();
    assert!(read(place.path(), &texts()).unwrap_err().to_string().contains("ham/2.txt: it is not valid UTF-8"));
}

#[test]
fn links_in_archives_and_truncated_archives_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    tar.append_link(&mut header, "a.png", "/etc/passwd").unwrap();
    let path = place.path().join("a.tar");
    fs::write(&path, tar.into_inner().unwrap()).unwrap();
    let message = read(&path, &images()).unwrap_err().to_string();
    assert!(message.contains("a.png is a link"), "{message}");
    let whole = archives(&["own/a.png", "own/b.png"]);
    for (name, expected) in [("a.tar", "truncated"), ("a.tar.gz", "cannot be read"), ("a.zip", "cannot be read")] {
        let bytes = fs::read(whole.path().join(name)).unwrap();
        fs::write(place.path().join(name), &bytes[..bytes.len() / 2 - 30]).unwrap();
        let message = read(&place.path().join(name), &images()).unwrap_err().to_string();
        assert!(message.contains(expected), "{name}: {message}");
    }
}

#[test]
fn long_names_in_tar_archives_are_read() {
    let long = format!("own/{}/a.png", "c".repeat(180));
    let place = archives(&[&long, "own/b/c.png"]);
    let found = read(&place.path().join("a.tar"), &images()).unwrap();
    assert_eq!(found[1].name, long);
    assert_eq!(found[1].tags.label, Some(Label::from("c".repeat(180))));
}

#[test]
fn labels_of_a_table_are_texts_if_one_of_them_is_in_any_split() {
    let place = tempfile::tempdir().unwrap();
    let labels = |name: &str, text: &str, options: InputOptions| -> Vec<Label> {
        fs::write(place.path().join(name), text).unwrap();
        let found = read(&place.path().join(name), &options).unwrap();
        found.into_iter().map(|input| input.tags.label.unwrap()).collect()
    };
    let training = InputOptions { split: Some(loranpac_data::Split::Train), ..texts() };
    let table = "text,label,split\na,1,train\nb,2,train\nc,cat,test\n";
    assert_eq!(labels("a.csv", table, training.clone()), [Label::from("1"), Label::from("2")]);
    assert_eq!(labels("b.csv", &table.replace("cat", "3"), training), [1, 2].map(Label::Integer));
    let both = "{\"text\": \"a\", \"y\": 1}\n{\"text\": \"b\", \"y\": \"1\"}\n";
    assert_eq!(labels("c.jsonl", both, texts()), [Label::from("1"), Label::from("1")]);
}

#[test]
fn an_image_that_cannot_be_read_is_named_with_the_line_of_its_table() {
    use loranpac_encode::{Embedding, EmbeddingOptions, ImageBasic};
    let place = folder(&["a.png"]);
    let table = "path,\"a\nnote\"\na.png,1\nmissing.png,2\n";
    fs::write(place.path().join("t.csv"), table).unwrap();
    fs::write(place.path().join("t.jsonl"), "{\"path\": \"a.png\"}\n\n{\"path\": \"missing.png\"}\n").unwrap();
    fs::write(place.path().join("list.txt"), "a.png 1\n\nmissing.png 2\n").unwrap();
    for (name, good, missing) in [("t.csv", 3, 4), ("t.jsonl", 1, 3), ("list.txt", 1, 3)] {
        let inputs = || Inputs::open(&[place.path().join(name)], &images()).unwrap();
        let error = inputs().nth(1).unwrap().unwrap_err();
        let expected = format!("{name}:{missing}: missing.png: it cannot be read");
        assert!(error.to_string().contains(&expected) && error.concerns_one_input(), "{error}");
        let mut embedding =
            Embedding::new(inputs(), std::sync::Arc::new(ImageBasic), None, EmbeddingOptions::default()).unwrap();
        let batch = vec![inputs().next().unwrap().unwrap()];
        assert_eq!(batch[0].name, "a.png");
        let error = embedding.encode(batch).unwrap_err().to_string();
        assert!(error.contains(&format!("{name}:{good}: a.png: not an image")), "{error}");
    }
}

#[test]
fn a_table_in_memory_has_its_name_in_messages() {
    let format = loranpac_data::formats::find("csv").unwrap();
    let open = |text: &str| Inputs::table("standard input", text.as_bytes().into(), format, &texts());
    let found: Vec<String> = open("text,y\na,1\nb,2\n").unwrap().map(|input| shown(&input.unwrap())).collect();
    assert_eq!(found, ["row 0: 1 - -", "row 1: 2 - -"]);
    let error = open("text,y\na,1\nb\n").unwrap().last().unwrap().unwrap_err().to_string();
    assert!(error.starts_with("standard input: line 3: "), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_utf8_stay_different() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let place = folder(&["caf\u{e9}/a.png"]);
    for name in [&b"caf\xe9/b\xff.png"[..], b"caf\xe9/b\xfe.png"] {
        let path = place.path().join(OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    let expected =
        [r"caf\xe9/b\xfe.png: caf\xe9 - -", r"caf\xe9/b\xff.png: caf\xe9 - -", "caf\u{e9}/a.png: caf\u{e9} - -"];
    let found: Vec<String> = read(place.path(), &images()).unwrap().iter().map(shown).collect();
    assert_eq!(found, expected);
    let single = place.path().join(OsStr::from_bytes(b"caf\xe9/b\xff.png"));
    assert!(read(&single, &images()).unwrap()[0].name.ends_with(r"caf\xe9/b\xff.png"));
    // In an archive of the same files.
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_dir_all("own", place.path()).unwrap();
    let archive = folder(&[]);
    fs::write(archive.path().join("a.tar"), tar.into_inner().unwrap()).unwrap();
    let found: Vec<String> = read(&archive.path().join("a.tar"), &images()).unwrap().iter().map(shown).collect();
    assert_eq!(found, expected.map(|line| format!("own/{line}")));
}

#[test]
fn the_lines_of_a_text_are_inputs_and_empty_ones_are_refused() {
    let shown = |input: Result<Input, Error>| match input {
        Ok(Input { name, data: Data::Text(text), row, .. }) => {
            assert_eq!(name, format!("row {row}"));
            format!("{row} {text}")
        }
        Err(error) => error.to_string(),
        Ok(other) => panic!("{other:?}"),
    };
    for text in ["", "a", "a\n", "\n", "a\r\n\nb c", "a\n\n", "\r\n\n\u{e9}\r"] {
        let line = |(row, line): (usize, &str)| match line.trim().is_empty() {
            true => format!("t:{}: the text is empty", row + 1),
            false => format!("{row} {line}"),
        };
        let expected: Vec<String> = text.lines().enumerate().map(line).collect();
        assert_eq!(Inputs::lines("t", text.into()).map(shown).collect::<Vec<_>>(), expected, "{text:?}");
    }
}
