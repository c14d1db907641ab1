//! Raw inputs that are unreadable, ambiguous or in odd places, and what is left behind.

mod common;
#[path = "../../loranpac/tests/skip/mod.rs"]
mod skip;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::raw::{Place, bitmap, images, json_of, lines, texts, vit};
use common::{npy, stdout};

/// What a command prints to standard error.
fn notes(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn features_without_a_cache_leave_nothing_when_the_command_is_interrupted() {
    let place = Place::new();
    let (table, tmp) = (texts(place.path(), 30_000), place.path().join("tmp"));
    fs::create_dir(&tmp).unwrap();
    // Returns whether the command was still at work when the signal came.
    let interrupted = |signal: &str| {
        let model = place.at("m.lrp");
        let _ = fs::remove_dir_all(&model);
        place.say(&["init", &model, "--encoder", "text-ngrams", "--width", "100"]);
        let mut command = place.command(&["learn", &model, &table, "--no-cache", "--threads", "1"]);
        let mut child = command.env("TMPDIR", &tmp).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Until features are in the temporary folder, with a name or without one.
        let descriptors = format!("/proc/{}/fd", child.id());
        let is_open = || {
            let entries = fs::read_dir(&descriptors).into_iter().flatten().flatten();
            entries.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|file| file.starts_with(&tmp))
        };
        while !is_open() {
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            std::thread::yield_now();
        }
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        !child.wait().unwrap().success()
    };
    for signal in ["-INT", "-KILL"] {
        // On a busy machine the command may end before it is seen.
        assert!((0..20).any(|_| interrupted(signal)), "{signal} never came in time");
        assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0, "{signal}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_cache_without_write_access_is_read() {
    // A superuser may write everywhere.
    let root = stdout(&Command::new("id").arg("-u").output().unwrap()).trim() == "0";
    let limited = ["--bounding-set=-all", "--inh-caps=-all"];
    if root && !Command::new("setpriv").args(limited).arg("true").status().is_ok_and(|status| status.success()) {
        return skip::skipped("setpriv", "a_cache_without_write_access_is_read", "the tests run as root");
    }
    let place = Place::new();
    let call = |arguments: &[&str]| {
        let plain = place.command(arguments);
        let mut command = if root { Command::new("setpriv") } else { Command::new("env") };
        command.args(if root { &limited[..] } else { &[] }).arg(plain.get_program()).args(plain.get_args());
        command.env("LORANPAC_CACHE", place.path().join("cache")).output().unwrap()
    };
    let (table, out, model) = (texts(place.path(), 30), place.at("out.npz"), place.at("m.lrp"));
    place.say(&["embed", "text-ngrams", &table, "-o", &out]);
    let cache = place.path().join("cache");
    let file = fs::read_dir(&cache).unwrap().next().unwrap().unwrap().path();
    let before = fs::read(&file).unwrap();
    let protect =
        |mode: &str| assert!(Command::new("chmod").args(["-R", mode]).arg(&cache).status().unwrap().success());
    protect("a-w");
    fs::write(&table, fs::read_to_string(&table).unwrap() + "a new text,pay,train\n").unwrap();
    let output = call(&["embed", "text-ngrams", &table, "-o", &out, "--json"]);
    let result: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&result["samples"], &result["computed"]), (&31.into(), &1.into()));
    assert!(
        notes(&output).contains("warning: the cache") && notes(&output).contains("only read"),
        "{}",
        notes(&output)
    );
    // One warning for a command that reads inputs several times, and features are computed once.
    place.say(&["init", &model, "--encoder", "text-ngrams", "--width", "100"]);
    let output = call(&["learn", &model, &table]);
    stdout(&output);
    assert_eq!(notes(&output).matches("only read").count(), 1, "{}", notes(&output));
    assert_eq!(fs::read(&file).unwrap(), before);
    // A folder that cannot be created.
    let inside = cache.join("new").display().to_string();
    let output = call(&["embed", "text-ngrams", &table, "-o", &out, "--cache", &inside]);
    stdout(&output);
    assert!(notes(&output).contains("only read") && !Path::new(&inside).exists());
    protect("u+w");
}

#[test]
fn a_model_records_the_encoder_of_the_first_features_that_name_theirs() {
    let place = Place::new();
    let (photos, model) = (images(place.path()).display().to_string(), place.at("m.lrp"));
    let plain = place.at("plain.csv");
    let row = |label: &str, value: f32| {
        let cells: Vec<String> = (0..8).map(|at| (value + at as f32).to_string()).collect();
        format!("{},{label}\n", cells.join(","))
    };
    fs::write(&plain, format!("a,b,c,d,e,f,g,h,label\n{}{}", row("x", 0.5), row("y", -1.0))).unwrap();
    let features = |seed: u32| {
        let (weights, file) = (place.at(&format!("vit{seed}")), place.at(&format!("{seed}.npz")));
        vit(Path::new(&weights), seed);
        place.say(&["embed", &weights, &photos, "-o", &file]);
        file
    };
    let (first, second) = (features(1), features(2));
    place.say(&["init", &model, "--dim", "8", "--width", "50"]);
    place.say(&["learn", &model, &plain]);
    assert!(json_of(&place, &["inspect", &model, "--json"])["encoder"].is_null());
    place.say(&["learn", &model, &first]);
    let recorded = json_of(&place, &["inspect", &model, "--json"]);
    assert_eq!((&recorded["encoder"], recorded["encoder_reference"]["digest"].is_string()), (&"vit_test".into(), true));
    for command in ["learn", "predict", "eval"] {
        place.refused(&[command, &model, &second], &["2.npz", "another encoder", "vit_test (digest"]);
    }
    // Features without a record are accepted as before.
    fs::write(&plain, format!("a,b,c,d,e,f,g,h,label\n{}", row("x", 2.0))).unwrap();
    place.say(&["learn", &model, &plain]);
}

#[test]
fn errors_about_standard_input_say_so() {
    let place = Place::new();
    let (model, table) = place.tickets();
    let check = |arguments: &[&str], input: &str, expected: &str| {
        let output = place.with_input(&[&["learn", &model, "-"], arguments].concat(), input);
        let message = notes(&output);
        assert!(!output.status.success() && message.starts_with("error: standard input"), "{message}");
        assert!(message.contains(expected) && !message.contains("standard input."), "{message}");
    };
    let csv = ["--format", "csv", "--text", "text"];
    check(&csv, "text,label\nfine,a\nnot fine\n", "line 3: has 1 cell");
    check(&csv, "text,label,split\nfine,a,test\n", "no input whose split is train");
    check(&csv, "other,label\nfine,a\n", "no text column text");
    check(&["--format", "txt"], "a text without a label\n", "no labels");
    check(&["--format", "txt", "--text", "text"], "a text\n", "leave out --text");
    check(&["--format", "csv", "--text", "body"], "one,two\n1,2\n", "no text column body; the file has one, two");
    check(&["--format", "nonsense", "--text", "text"], "", "there is no format \"nonsense\"");
    check(&["--format", "npz", "--text", "text"], "", "npz has no columns of texts");
    let all = fs::read_to_string(&table).unwrap();
    check(&csv, &all, "its samples were learned before");
    let features = "1,2,label\n1,2,x\n";
    check(&["--format", "csv"], features, "2 features, but the model was made for 2048");
}

#[test]
fn an_image_of_a_table_is_named_with_its_line() {
    let place = Place::new();
    let (photos, model) = (images(place.path()).display().to_string(), place.at("m.lrp"));
    place.say(&["init", &model, "--encoder", "image-basic", "--width", "50"]);
    place.say(&["learn", &model, &photos]);
    bitmap(&place.path().join("good.bmp"), [0, 0, 200], 1);
    fs::write(place.at("bad.bmp"), "no image").unwrap();
    let list = place.at("list.csv");
    for (name, reason) in [("missing.bmp", "cannot be read"), ("bad.bmp", "not an image")] {
        fs::write(&list, format!("path\ngood.bmp\n{name}\n")).unwrap();
        let place_of = format!("list.csv:3: {name}: ");
        place.refused(&["predict", &model, &list, "-o", &place.at("answers.csv")], &[&place_of, reason]);
        place.refused(&["embed", "image-basic", &list, "-o", &place.at("o.npz")], &[&place_of, reason]);
        let output = place.call(&["predict", &model, &list, "--skip-bad"]);
        assert!(notes(&output).contains("skipped: ") && notes(&output).contains(&place_of), "{}", notes(&output));
        assert_eq!(lines(&stdout(&output))[1][1], "good.bmp");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_a_table_is_refused_and_does_not_wait() {
    let place = Place::new();
    let (model, _) = place.tickets();
    for name in ["pipe.csv", "pipe.jsonl", "pipe.npz"] {
        let pipe = place.at(name);
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for command in ["learn", "predict", "eval"] {
            place.refused(&[command, &model, &pipe], &[name, "a pipe or a device"]);
            place.refused(&[command, &model, &pipe, "--features", "x"], &[name, "a pipe or a device"]);
        }
        let out = place.at("o.npz");
        if !name.ends_with("npz") {
            place.refused(&["embed", "text-ngrams", &pipe, "-o", &out], &[name, "a pipe or a device"]);
        }
    }
}

#[test]
fn damage_inside_a_later_file_changes_nothing() {
    let place = Place::new();
    let (model, photos) = (place.at("m.lrp"), images(place.path()));
    place.say(&["init", &model, "--encoder", "image-basic", "--width", "50"]);
    let before = place.say(&["inspect", &model, "--json"]);
    let later = place.path().join("later");
    bitmap(&later.join("red/a.bmp"), [0, 0, 180], 4);
    fs::write(later.join("red/b.bmp"), "no image").unwrap();
    let (photos, later) = (photos.display().to_string(), later.display().to_string());
    let table = place.at("later.csv");
    let cells = "0.5,".repeat(2320);
    let header: String = (0..2320).map(|at| format!("f{at},")).collect();
    fs::write(&table, format!("{header}label\n{cells}red\n{cells}\n")).unwrap();
    for cache in [&[][..], &["--no-cache"]] {
        place.refused(&[&["learn", &model, &photos, &later], cache].concat(), &["b.bmp", "not an image"]);
        place.refused(&[&["learn", &model, &photos, &table], cache].concat(), &["later.csv: line 3"]);
        assert_eq!(place.say(&["inspect", &model, "--json"]), before);
    }
    fs::remove_file(Path::new(&later).join("red/b.bmp")).unwrap();
    let learned = json_of(&place, &["learn", &model, &photos, &later, "--json"]);
    assert_eq!((&learned["tasks"], &learned["samples"]), (&2.into(), &9.into()));
}

#[test]
fn embed_and_learn_agree_on_the_labels_of_a_table() {
    let place = Place::new();
    let classes = |name: &str, file: &str| {
        let model = place.at(name);
        place.say(&["init", &model, "--encoder", "text-ngrams", "--width", "50"]);
        place.say(&["learn", &model, file]);
        json_of(&place, &["inspect", &model, "--json"])["classes"].clone()
    };
    let tables = [
        ("a.csv", "text,label\none,1\ntwo,2\nten,1\n", 2),
        ("b.csv", "text,label\none,1\na cat,cat\nten,1\n", 2),
        ("c.jsonl", "{\"text\": \"one\", \"label\": 1}\n{\"text\": \"ten\", \"label\": \"1\"}\n", 1),
        ("d.jsonl", "{\"text\": \"one\", \"label\": true}\n{\"text\": \"ten\", \"label\": false}\n", 2),
    ];
    for (name, text, count) in tables {
        let (table, features) = (place.at(name), place.at(&format!("{name}.npz")));
        fs::write(&table, text).unwrap();
        place.say(&["embed", "text-ngrams", &table, "-o", &features]);
        let raw = classes(&format!("{name}-raw.lrp"), &table);
        assert_eq!(raw, classes(&format!("{name}-features.lrp"), &features), "{name}");
        assert_eq!(raw.as_array().unwrap().len(), count, "{name}");
    }
}

#[test]
fn classes_of_folders_do_not_depend_on_how_files_are_divided_among_commands() {
    let place = Place::new();
    // The first file has the class "1", a text; the second is a folder with the class folder 1.
    let first = place.path().join("first");
    bitmap(&first.join("1/a.bmp"), [0, 0, 200], 1);
    bitmap(&first.join("cat/b.bmp"), [0, 200, 0], 2);
    let second = place.path().join("second");
    bitmap(&second.join("1/c.bmp"), [200, 0, 0], 3);
    let (first, second) = (first.display().to_string(), second.display().to_string());
    let classes = |name: &str, commands: &[&[&str]]| {
        let model = place.at(name);
        place.say(&["init", &model, "--encoder", "image-basic", "--width", "50"]);
        for files in commands {
            place.say(&[&["learn", &model], *files].concat());
        }
        json_of(&place, &["inspect", &model, "--json"])["classes"].clone()
    };
    let together = classes("together.lrp", &[&[&first, &second]]);
    assert_eq!(together.as_array().unwrap().len(), 2, "{together}");
    assert_eq!(together, classes("apart.lrp", &[&[&first], &[&first, &second, "--skip"]]));
}

#[test]
fn standard_input_is_checked_like_a_file() {
    let place = Place::new();
    let model = place.at("m.lrp");
    place.say(&["init", &model, "--dim", "2", "--width", "20"]);
    let learn = |input: &str, more: &[&str]| {
        let output = place.with_input(&[&["learn", &model, "-", "--format", "jsonl"], more].concat(), input);
        (output.status.success(), notes(&output))
    };
    let samples = || json_of(&place, &["inspect", &model, "--json"])["samples"].clone();
    let row = |x: &str, label: &str| format!("{{\"x\": [{x}, 1], \"label\": {label}}}\n");
    let (done, message) = learn("", &[]);
    assert!(!done && message.contains("standard input"), "{message}");
    let (done, message) = learn(&row("0.5", "1"), &["-"]);
    assert!(!done && message.contains("named twice") && samples() == 0, "{message}");
    let (done, message) = learn(&(row("0.5", "1") + &row("1e30", "2")), &[]);
    assert!(!done && message.contains("standard input: row 1 has a feature of size 1e30"), "{message}");
    assert_eq!(samples(), 0);
    let (done, message) = learn(&(row("0.5", "1") + &row("0.7", "\"1\"")), &[]);
    assert!(done && message.contains("standard input: the label 1 is a number"), "{message}");
}

#[test]
fn empty_lines_of_standard_input_are_refused_or_skipped() {
    let place = Place::new();
    let (model, _) = place.tickets();
    let lines = "refund my money\n  \nparcel\n";
    let predict = |more: &[&str], input: &str| {
        place.with_input(&[&["predict", &model, "-", "--format", "txt"], more].concat(), input)
    };
    let refused = predict(&[], lines);
    let message = "error: standard input:2: the text is empty; --skip-bad skips such inputs\n";
    assert!(!refused.status.success() && notes(&refused) == message, "{}", notes(&refused));
    let skipped = predict(&["--skip-bad"], lines);
    assert_eq!(stdout(&skipped).lines().count(), 3);
    assert!(notes(&skipped).contains("skipped: standard input:2: the text is empty"), "{}", notes(&skipped));
    // The list of what was skipped has an end.
    let output = predict(&["--skip-bad"], &("\n".repeat(1_234) + "parcel\n"));
    stdout(&output);
    let list: Vec<String> =
        notes(&output).lines().filter(|line| line.starts_with("skipped: ")).map(str::to_owned).collect();
    assert_eq!((list.len(), list[1_000].as_str()), (1_001, "skipped: 234 more inputs"));
}

#[cfg(unix)]
#[test]
fn an_encoder_whose_name_is_not_utf_8_is_named() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let mut command = place.command(&["init", &place.at("m.lrp"), "--encoder"]);
    let output = command.arg(std::ffi::OsStr::from_bytes(b"caf\xe9/vit")).output().unwrap();
    let message = notes(&output);
    assert!(
        output.status.code() == Some(2) && message.starts_with("error: caf\u{fffd}/vit is not valid UTF-8"),
        "{message}"
    );
}

#[test]
fn the_row_of_an_answer_is_that_of_the_input() {
    let place = Place::new();
    let (model, _) = place.tickets();
    let rows = |file: &str, more: &[&str]| {
        let answers = place.say(&[&["predict", &model, file, "--to", "jsonl"], more].concat());
        let row = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["row"].as_u64().unwrap();
        answers.lines().map(row).collect::<Vec<_>>()
    };
    let table = place.at("inbox.csv");
    fs::write(&table, "text,split\nrefund,test\n\" \",test\nparcel,train\nlogin,test\n").unwrap();
    assert_eq!(rows(&table, &["--skip-bad"]), [0, 3]);
    assert_eq!(rows(&table, &["--skip-bad", "--split", "train"]), [2]);
    let folder = place.path().join("inbox");
    fs::create_dir(&folder).unwrap();
    for (name, text) in [("a.txt", "refund"), ("b.txt", " "), ("c.txt", "parcel")] {
        fs::write(folder.join(name), text).unwrap();
    }
    assert_eq!(rows(&folder.display().to_string(), &["--skip-bad"]), [0, 2]);
    let lines = place.with_input(&["predict", &model, "-", "--format", "txt", "--skip-bad"], "refund\n\nparcel\n");
    assert_eq!(lines_of(&stdout(&lines)), ["row", "0", "2"]);
    // Features, of which some belong to the other split.
    let features = place.at("features.jsonl");
    let row = |split: &str| format!("{{\"x\": {:?}, \"split\": \"{split}\"}}\n", vec![0.5; 2048]);
    fs::write(&features, row("train") + &row("test") + &row("train") + &row("test")).unwrap();
    assert_eq!(rows(&features, &[]), [1, 3]);
}

/// The first cells of an answer.
fn lines_of(answer: &str) -> Vec<String> {
    lines(answer).into_iter().map(|cells| cells[0].clone()).collect()
}

#[test]
fn a_number_and_a_text_that_look_the_same_are_edited_by_names_of_their_own() {
    let place = Place::new();
    let (model, table) = (place.at("m.lrp"), place.at("t.jsonl"));
    place.say(&["init", &model, "--dim", "2", "--width", "20"]);
    let row = |x: &str, label: &str| format!("{{\"x\": [{x}, 1], \"label\": {label}}}\n");
    fs::write(&table, row("0.5", "1") + &row("0.7", "\"1\"") + &row("0.9", "\"cat\"")).unwrap();
    place.say(&["learn", &model, &table]);
    let labels = || {
        let classes = json_of(&place, &["inspect", &model, "--json"])["classes"].clone();
        classes.as_array().unwrap().iter().map(|class| class["label"].clone()).collect::<Vec<_>>()
    };
    for command in [&["forget", &model, "1"][..], &["rename", &model, "1", "one"], &["rename", &model, "cat", "1"]] {
        place.refused(command, &["write number:1 or text:1"]);
    }
    place.refused(&["learn", &model, &table, "--class", "1"], &["write number:1 or text:1"]);
    place.say(&["rename", &model, "text:1", "one"]);
    assert_eq!(labels(), [serde_json::json!(1), "one".into(), "cat".into()]);
    place.say(&["rename", &model, "cat", "text:1"]);
    place.say(&["forget", &model, "number:1"]);
    assert_eq!(labels(), [serde_json::json!("one"), "1".into()]);
}

#[cfg(target_os = "linux")]
#[test]
fn lines_of_standard_input_are_learned_in_little_memory() {
    let place = Place::new();
    let model = place.at("m.lrp");
    place.say(&["init", &model, "--encoder", "text-ngrams", "--width", "50"]);
    let learn = |rows: usize| {
        let input: String = (0..rows).map(|row| format!("ticket {}\n", row % 500)).collect();
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "ulimit -v 400000 && exec \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_loranpac"),
            "learn",
            &model,
            "-",
        ]);
        command.args(["--format", "txt", "--class", "a", "--defer", "--no-cache", "--threads", "1"]);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    // Their features would need 330 MB.
    stdout(&learn(40_000));
    assert_eq!(json_of(&place, &["inspect", &model, "--json"])["samples"], 40_000);
}

#[cfg(target_os = "linux")]
#[test]
fn features_of_standard_input_beyond_the_memory_are_refused() {
    let place = Place::new();
    let model = place.at("m.lrp");
    place.say(&["init", &model, "--dim", "1000", "--width", "50"]);
    let file = place.path().join("x.npy");
    npy(&file, "<f4", "(60000, 1000)", vec![0; 240_000_000]);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 400000 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_loranpac"), "learn", &model, "-"]);
    command.args(["--format", "npy", "--class", "a", "--threads", "1"]).stdin(fs::File::open(&file).unwrap());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", notes(&output));
    assert!(notes(&output).contains("standard input needs about") && notes(&output).contains("--task-size"));
}

#[test]
fn inputs_of_standard_input_that_are_skipped_are_listed() {
    let place = Place::new();
    let model = place.at("m.lrp");
    place.say(&["init", &model, "--encoder", "image-basic", "--width", "50"]);
    bitmap(&place.path().join("good.bmp"), [0, 0, 200], 1);
    let table = format!("path,label\n{},a\n{},b\n", place.at("good.bmp"), place.at("missing.bmp"));
    let arguments = ["learn", &model, "-", "--format", "csv", "--text", "path", "--skip-bad"];
    let output = place.with_input(&arguments, &table);
    stdout(&output);
    assert!(notes(&output).contains("skipped: ") && notes(&output).contains("missing.bmp"), "{}", notes(&output));
}

#[test]
fn an_unusable_feature_is_named_with_its_row_in_the_file() {
    let place = Place::new();
    let (model, table) = (place.at("m.lrp"), place.at("t.jsonl"));
    place.say(&["init", &model, "--dim", "2", "--width", "20"]);
    let rows = |count: usize, label: &str| format!("{{\"x\": [0.5, 1], \"label\": {label}}}\n").repeat(count);
    fs::write(&table, rows(700, "1") + "{\"x\": [1e30, 1], \"label\": 1}\n").unwrap();
    for task in [&[][..], &["--task-size", "300"]] {
        place.refused(&[&["learn", &model, &table], task].concat(), &["t.jsonl: row 700 has a feature of size 1e30"]);
    }
    // 1 and "1" within one file.
    fs::write(&table, rows(2, "1") + &rows(1, "\"1\"")).unwrap();
    let output = place.call(&["learn", &model, &table]);
    stdout(&output);
    assert!(notes(&output).contains("the label 1 is a number"), "{}", notes(&output));
}

#[test]
fn an_image_that_cannot_be_used_is_named_with_its_folder_or_archive() {
    let place = Place::new();
    let photos = place.path().join("photos");
    bitmap(&photos.join("red/a.bmp"), [0, 0, 200], 1);
    fs::write(photos.join("red/b.bmp"), "no image").unwrap();
    let archive = place.at("photos.tar");
    assert!(Command::new("tar").args(["cf", &archive, "-C", &place.at("photos"), "red"]).status().unwrap().success());
    let packed = place.at("packed.tar.gz");
    assert!(Command::new("tar").args(["czf", &packed, "-C", &place.at("photos"), "red"]).status().unwrap().success());
    for (source, between) in [(&place.at("photos"), "/"), (&place.at("photos/"), ""), (&archive, ": "), (&packed, ": ")]
    {
        let named = format!("error: {source}{between}red/b.bmp: not an image");
        place.refused(&["embed", "image-basic", source, "-o", &place.at("o.npz")], &[&named]);
    }
}

#[test]
fn a_folder_of_one_class_is_learned_with_its_name() {
    let place = Place::new();
    let (model, photos) = (place.at("m.lrp"), place.path().join("reds"));
    bitmap(&photos.join("a.bmp"), [0, 0, 200], 1);
    bitmap(&photos.join("b.bmp"), [0, 0, 210], 2);
    let photos = photos.display().to_string();
    place.say(&["init", &model, "--encoder", "image-basic", "--width", "50"]);
    place.refused(&["learn", &model, &photos], &["no labels", "--class NAME"]);
    place.say(&["learn", &model, &photos, "--class", "red"]);
    let classes = || json_of(&place, &["inspect", &model, "--json"])["classes"].clone();
    assert_eq!((&classes()[0]["label"], &classes()[0]["samples"]), (&"red".into(), &2.into()));
    place.refused(&["learn", &model, &photos, "--class", "red"], &["learned before"]);
    let labelled = images(place.path()).display().to_string();
    place.refused(&["learn", &model, &labelled, "--class", "red"], &["labels of their own", "--class"]);
}
