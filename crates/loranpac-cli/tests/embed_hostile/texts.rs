//! Tables and files of texts.

use crate::world::World;

#[test]
fn texts_that_are_no_texts_are_refused_with_their_places() {
    let world = World::new();
    world.write("latin.csv", b"text,label\nhello,a\ncaf\xe9,a\n");
    world.refused("text-ngrams", "latin.csv", &["latin.csv", "line 3", "UTF-8"]);
    world.write("latin.jsonl", b"{\"text\": \"caf\xe9\"}\n");
    world.refused("text-ngrams", "latin.jsonl", &["latin.jsonl", "line 1"]);
    world.write("notes/a/latin.txt", b"caf\xe9");
    world.write("notes/b/good.txt", b"hello");
    world.refused("text-ngrams", "notes", &["latin.txt", "not valid UTF-8"]);
    world.skips("text-ngrams", "notes", &["latin.txt"]);
    world.write("empty.csv", b"");
    world.refused("text-ngrams", "empty.csv", &["empty.csv", "no lines"]);
    world.write("list.txt", b"caf\xe9.png 1\n");
    world.refused("image-basic", "list.txt", &["list.txt", "UTF-8"]);
    world.write("path.csv", format!("path,label\n{},1\n", "long/".repeat(50_000)));
    world.refused("image-basic", "path.csv", &["path.csv:2", "longer than 4096 bytes"]);
    world.write("late.jsonl", b"{\"text\": \"a\"}\n{\"text\": \"b\", \"split\": \"test\"}\n");
    world.refused(
        "text-ngrams",
        "late.jsonl",
        &["late.jsonl", "line 2", "a split, which the first line does not have"],
    );
    world.write("number.jsonl", b"{\"text\": \"a\"}\n{\"text\": 5}\n");
    world.refused("text-ngrams", "number.jsonl", &["number.jsonl", "line 2", "expected a string"]);
}

#[test]
fn a_malformed_row_is_an_error_even_if_bad_inputs_are_skipped() {
    let world = World::new();
    world.write("cells.csv", b"text,label\na,1\nb,2,3\n");
    world.refused("text-ngrams", "cells.csv", &["cells.csv", "line 3", "3 cells"]);
    let output = world.embed("text-ngrams", "cells.csv", &["--skip-bad"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn quotes_that_are_not_closed_do_not_swallow_rows() {
    let world = World::new();
    world.write("open.csv", b"text,label\na,1\n\"b,2\nc,3\n");
    world.refused("text-ngrams", "open.csv", &["open.csv", "line 3", "never closed"]);
    world.write("open.tsv", b"text\tlabel\n\"quoted\" text\t1\n\"b\t2\nc\" d\t3\n");
    world.refused("text-ngrams", "open.tsv", &["open.tsv", "line 3", "continues on the next line", ".csv"]);
    world.write("lines.csv", b"text,label\n\"two\nlines\",1\nc,3\n");
    world.accepted("text-ngrams", "lines.csv", &[]);
}

#[test]
fn empty_texts_are_refused_with_their_places() {
    let world = World::new();
    world.write("empty.csv", "text,label\nhello,1\n\"  \",2\n");
    world.refused("text-ngrams", "empty.csv", &["empty.csv:3: the text is empty"]);
    world.skips("text-ngrams", "empty.csv", &["empty.csv:3"]);
    world.write("notes/a/empty.txt", b" \n");
    world.write("notes/b/good.txt", b"hello");
    world.refused("text-ngrams", "notes", &["a/empty.txt: the text is empty"]);
}

#[test]
fn very_long_texts_are_encoded() {
    let world = World::new();
    let long = "word ".repeat(200_000);
    world.write("long.csv", format!("text,label\n{long},2\n{},3\n", "x".repeat(1 << 20)));
    world.accepted("text-ngrams", "long.csv", &[]);
    crate::made::write_bert(&world.at("bert"));
    world.accepted("bert", "long.csv", &[]);
}
