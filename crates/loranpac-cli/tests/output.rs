//! What the program prints, and what it does when nobody can or wants to read it.
#![cfg(target_os = "linux")] // Full devices and pseudo-terminals are made as Linux makes them.

mod common;

use std::fs::{self, File};
use std::process::{Command, Output, Stdio};

use common::{json, loranpac, refused, stdout};
use tempfile::TempDir;

/// A label that clears the screen, rings, and begins a line of its own.
const HOSTILE: &str = "cat\u{1b}[2J\u{7}\n\u{9b}31m\u{202e}";

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

/// Samples of two classes, of 4 features, as a CSV file.
fn samples(folder: &TempDir, name: &str, labels: [&str; 2]) -> String {
    let mut text = "a,b,c,d,label\n".to_owned();
    for row in 0..24 {
        let noise = |c: i32| ((row * 7919 + c * 104_729) % 1000) as f32 / 1000.0;
        let class = row as usize % 2;
        let x: Vec<String> =
            (0..4).map(|c| (noise(c) + 3.0 * (c as usize % 2 == class) as u8 as f32).to_string()).collect();
        text += &format!("{},\"{}\"\n", x.join(","), labels[class]);
    }
    let path = path(folder, name);
    fs::write(&path, text).unwrap();
    path
}

/// A model that has learned two classes, and the file with their samples.
fn model(folder: &TempDir, labels: [&str; 2]) -> (String, String) {
    let (model, file) = (path(folder, "m.lrp"), samples(folder, "s.csv", labels));
    stdout(&loranpac(&["init", &model, "--dim", "4", "--width", "50", "--encoder", "e\u{1b}]0;x\u{7}"]));
    stdout(&loranpac(&["learn", &model, &file, "--quiet"]));
    (model, file)
}

/// Runs a command whose standard output goes to this place.
fn to(place: impl Into<Stdio>, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loranpac"));
    command.args(arguments).stdout(place).stderr(Stdio::piped()).output().unwrap()
}

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// The end of a pipe of which nobody has the other.
fn closed() -> std::io::PipeWriter {
    std::io::pipe().unwrap().1
}

/// Every command that prints, on a model and a file of samples.
fn printing<'a>(model: &'a str, file: &'a str) -> Vec<Vec<&'a str>> {
    vec![
        vec!["demo", "--width", "100"],
        vec!["run", "--data", "digits", "--per-class", "5", "--width", "50", "--inc", "5"],
        vec!["run", "--data", "digits", "--per-class", "5", "--width", "50", "--inc", "5", "--json", "-"],
        vec!["bench", "--list"],
        vec!["inspect", model],
        vec!["inspect", model, "--json"],
        vec!["eval", model, file],
        vec!["eval", model, file, "--json"],
        vec!["predict", model, file],
        vec!["predict", model, file, "--to", "jsonl"],
        vec!["verify", model],
        vec!["completions", "bash"],
        vec!["man"],
        vec!["--help"],
        vec!["--version"],
    ]
}

#[test]
fn a_closed_pipe_ends_every_command_quietly() {
    let folder = TempDir::new().unwrap();
    let (model, _) = model(&folder, ["cat", "dog"]);
    let file = samples(&folder, "new.csv", ["dog", "cat"]);
    for arguments in printing(&model, &file) {
        let output = to(closed(), &arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), message.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn a_full_disk_at_the_other_end_is_an_error_of_its_own_kind() {
    let folder = TempDir::new().unwrap();
    let (model, _) = model(&folder, ["cat", "dog"]);
    let file = samples(&folder, "new.csv", ["dog", "cat"]);
    for arguments in printing(&model, &file) {
        let output = to(full(), &arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(4), "{arguments:?}: {message}");
        assert_eq!(message, "error: cannot write the output: No space left on device\n", "{arguments:?}");
    }
}

#[test]
fn a_change_that_cannot_be_told_is_made_and_the_error_says_so() {
    let folder = TempDir::new().unwrap();
    let (model, _) = model(&folder, ["cat", "dog"]);
    let more = samples(&folder, "more.csv", ["bird", "fish"]);
    for arguments in [
        vec!["rename", &model, "cat", "lion"],
        vec!["learn", &model, &more],
        vec!["calibrate", &model, &more],
        vec!["relabel", &model, &more, "--to", "eagle"],
        vec!["forget", &model, "eagle"],
        vec!["rollback", &model],
    ] {
        let before = json(&["inspect", &model, "--json"])["version"].clone();
        let output = to(full(), &arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        let message = message.lines().last().unwrap_or_default();
        assert_eq!(message, "error: the model has been changed, but cannot write the output: No space left on device");
        assert_eq!(output.status.code(), Some(4), "{arguments:?}");
        assert_ne!(json(&["inspect", &model, "--json"])["version"], before, "{arguments:?}");
    }
}

#[test]
fn a_standard_error_that_is_full_or_closed_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let (model, file) = model(&folder, ["cat", "dog"]);
    let with = |place: Stdio, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loranpac"));
        command.args(arguments).stdout(Stdio::piped()).stderr(place).output().unwrap()
    };
    for arguments in [vec!["predict", &model, &file, "--probabilities"], vec!["inspect", "nowhere.lrp"]] {
        let usual = with(Stdio::null(), &arguments);
        for place in [Stdio::from(full()), Stdio::from(closed())] {
            let output = with(place, &arguments);
            assert_eq!((output.status.code(), &output.stdout), (usual.status.code(), &usual.stdout), "{arguments:?}");
        }
    }
}

#[test]
fn exit_codes_tell_a_full_disk_from_a_newer_format() {
    let folder = TempDir::new().unwrap();
    let (model, file) = model(&folder, ["cat", "dog"]);
    let output = loranpac(&["predict", &model, &file, "-o", "/dev/full"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(4) && message.contains("cannot write /dev/full: No space left"), "{message}");
    let small = path(&folder, "m.safetensors");
    stdout(&loranpac(&["export", &model, &small]));
    let mut bytes = fs::read(&small).unwrap();
    let version = b"\"version\":\"2\"";
    let at = bytes.windows(version.len()).position(|part| part == version).unwrap();
    bytes[at + version.len() - 2] = b'9';
    fs::write(&small, bytes).unwrap();
    let output = loranpac(&["predict", &small, &file]);
    assert_eq!(output.status.code(), Some(5), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What a terminal would obey.
fn obeyed(text: &str) -> Vec<char> {
    text.chars().filter(|c| (c.is_control() && *c != '\n') || ('\u{202a}'..='\u{202e}').contains(c)).collect()
}

#[test]
fn text_of_others_reaches_the_terminal_escaped() {
    let folder = TempDir::new().unwrap();
    let (model, file) = model(&folder, [HOSTILE, "dog"]);
    // The features of the other class, so that the tables of mistakes have the label.
    let other = samples(&folder, "ot\u{1b}[1mher.csv", ["cow", HOSTILE]);
    for arguments in [
        vec!["inspect", &model, "--classes"],
        vec!["inspect", &model, "--json"],
        vec!["eval", &model, &other],
        vec!["eval", &model, &file, "--json"],
        vec!["learn", &model, &other, "--label", "kind"],
        vec!["rename", &model, "cat", "\u{1b}[31mred"],
        vec!["eval", &model, "no\u{1b}[2Jsuch.csv"],
        vec!["forget", &model, HOSTILE],
        vec!["forget", &model, "--\u{7}ring"],
        vec!["run", "--data", "no\u{1b}[2Jsuch.npz"],
        vec!["bench", "no\u{1b}[2Jsuch.toml"],
    ] {
        let output = loranpac(&arguments);
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!((obeyed(&out), obeyed(&err)), (vec![], vec![]), "{arguments:?}");
        // What is wrong with the usage is shown by a parser that leaves such characters out.
        assert!(output.status.code() == Some(2) || (out + &err).contains("\\u"), "{arguments:?} shows what was there");
    }
}

#[test]
fn a_label_stays_in_its_line_and_json_keeps_it() {
    let folder = TempDir::new().unwrap();
    let (model, _) = model(&folder, [HOSTILE, "dog"]);
    let text = stdout(&loranpac(&["inspect", &model, "--classes"]));
    let line = text.lines().find(|line| line.starts_with("cat")).unwrap();
    assert!(line.starts_with(r"cat\u{1b}[2J\u{7}\u{a}\u{9b}31m\u{202e}") && line.ends_with("12"), "{line}");
    assert_eq!(json(&["inspect", &model, "--json"])["classes"][0]["label"], HOSTILE);
}

#[test]
fn predicted_labels_are_data_unless_a_terminal_shows_them() {
    let folder = TempDir::new().unwrap();
    let (model, file) = model(&folder, [HOSTILE, "dog"]);
    let text = stdout(&loranpac(&["predict", &model, &file]));
    assert!(text.contains(&format!("\n0,\"{HOSTILE}\",")), "{text:?}");
    for format in ["csv", "jsonl"] {
        // The program of util-linux that runs another one on a pseudo-terminal.
        let shell = format!("{} predict {model} {file} --to {format}", env!("CARGO_BIN_EXE_loranpac"));
        let Ok(output) = Command::new("script").args(["-qec", &shell, "/dev/null"]).stdin(Stdio::null()).output()
        else {
            return;
        };
        let text = String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n");
        assert!(text.lines().count() >= 24 && text.contains("cat\\u"), "{text:?}");
        assert_eq!(obeyed(&text), [], "{text:?}");
    }
}

#[test]
fn more_threads_than_help_are_refused_with_the_number_of_cores() {
    let cores = std::thread::available_parallelism().unwrap().to_string();
    refused(&["run", "--data", "digits", "--threads", "100000"], &["--threads 100000", &format!("{cores} cores")]);
    refused(&["inspect", "m.lrp", "--threads", "100000"], &["--threads 100000", "at most"]);
}

#[test]
fn predictions_that_fail_half_way_leave_the_file_as_it_was() {
    let folder = TempDir::new().unwrap();
    let (model, file) = model(&folder, ["cat", "dog"]);
    // More rows than are read at a time, and the last one is damaged.
    let text = fs::read_to_string(&file).unwrap();
    let rows = text.lines().skip(1).map(|line| format!("{line}\n")).collect::<String>();
    let broken = path(&folder, "broken.csv");
    fs::write(&broken, format!("a,b,c,d,label\n{}1,2,x,4,cat\n", rows.repeat(200))).unwrap();
    for format in ["csv", "jsonl", "npz"] {
        let out = path(&folder, &format!("answers.{format}"));
        fs::write(&out, "before").unwrap();
        let left = || fs::read_dir(folder.path()).unwrap().count();
        let files = left();
        refused(&["predict", &model, &broken, "-o", &out, "--to", format], &["line 4802", "not a number"]);
        assert_eq!((fs::read_to_string(&out).unwrap().as_str(), left()), ("before", files), "{format}");
        stdout(&loranpac(&["predict", &model, &file, "-o", &out, "--to", format]));
        assert!(fs::read(&out).unwrap() != b"before" && left() == files, "{format}");
    }
}

#[test]
fn a_link_stays_a_link_and_a_device_a_device() {
    let folder = TempDir::new().unwrap();
    let (model, file) = model(&folder, ["cat", "dog"]);
    let (real, link) = (path(&folder, "real.csv"), path(&folder, "link.csv"));
    fs::write(&real, "before").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    stdout(&loranpac(&["predict", &model, &file, "-o", &link]));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().starts_with("row,label,score\n"));
    // Standard output by its other name: a rename would replace the name.
    let text = stdout(&loranpac(&["predict", &model, &file, "-o", "/dev/stdout"]));
    assert!(text.starts_with("row,label,score\n"), "{text}");
}

#[test]
fn labels_are_named_as_they_are_written() {
    let folder = TempDir::new().unwrap();
    let (model, _) = model(&folder, ["7", "007"]);
    let value = json(&["inspect", &model, "--json"]);
    assert_eq!((&value["classes"][0]["label"], &value["classes"][1]["label"]), (&7.into(), &"007".into()));
    stdout(&loranpac(&["rename", &model, "007", "+7"]));
    refused(&["rename", &model, "07", "eight"], &["no class \"07\""]);
    assert_eq!(json(&["inspect", &model, "--json"])["classes"][1]["label"], "+7");
}

#[test]
fn markdown_of_a_report_shows_names_as_they_are() {
    let folder = TempDir::new().unwrap();
    let data = common::data();
    let odd = folder.path().join("a|b_*<i>#\nc");
    fs::rename(data.path(), &odd).unwrap();
    let report = path(&folder, "report");
    let arguments = ["run", "--data", odd.to_str().unwrap(), "--width", "20", "--inc", "3", "--report", &report, "-q"];
    stdout(&loranpac(&arguments));
    let text = fs::read_to_string(folder.path().join("report/report.md")).unwrap();
    assert!(text.starts_with("# a\\|b\\_\\*\\<i\\>\\#\\\\u{a}c, 6 classes"), "{text}");
    let svg = fs::read_to_string(folder.path().join("report/accuracy.svg")).unwrap();
    assert!(svg.contains("a|b_*&lt;i&gt;#\nc, 6 classes") && !svg.contains("<i>"), "{svg}");
    fs::rename(&odd, data.path()).unwrap();
}

#[test]
fn reports_of_a_recipe_escape_its_text_and_the_names_of_files() {
    let folder = TempDir::new().unwrap();
    let features = folder.path().join("features");
    fs::create_dir(&features).unwrap();
    let data = common::data();
    fs::rename(data.path(), features.join("<b>|x_y")).unwrap();
    let recipe = path(&folder, "own.toml");
    let text = "title = \"<script>|`t`\"\nabout = \"[a](b)\"\n[[runs]]\nmethod = \"simplecil\"\ninc = 3\n\
        [[tables]]\ntitle = \"*<i>*\"\nrows = [\"method\"]\ncolumns = [\"data\"]\nvalue = \"final\"\n";
    fs::write(&recipe, text).unwrap();
    let (features, out) = (features.to_str().unwrap(), path(&folder, "out"));
    stdout(&loranpac(&["bench", &recipe, "--features", features, "--data", "all", "--out", &out, "-q"]));
    let read = |name: &str| fs::read_to_string(folder.path().join("out/own").join(name)).unwrap();
    let (markdown, html) = (read("report.md"), read("report.html"));
    for words in [r"# \<script\>\|\`t\`", r"\[a\](b)", r"## \*\<i\>\*", r"| \<b\>\|x\_y |"] {
        assert!(markdown.contains(words), "{words}: {markdown}");
    }
    assert!(html.contains("<h1>&lt;script&gt;|`t`</h1>") && html.contains("&lt;b&gt;|x_y"), "{html}");
    assert!(!html.contains("<b>") && !html.contains("<i>") && !html.contains("<script>|"), "{html}");
    let svg = read("figure-1-1.svg");
    assert!(svg.contains("&lt;b&gt;|x_y") && !svg.contains("<b>"), "{svg}");
}

#[test]
fn json_does_not_overwrite_an_argument_of_the_command() {
    let folder = TempDir::new().unwrap();
    let (model, file) = model(&folder, ["cat", "dog"]);
    let before = fs::read(&file).unwrap();
    for command in [&["eval"][..], &["learn", "--again"]] {
        let target = format!("--json={file}");
        refused(&[command, &[&model, &file, &target]].concat(), &["--json", "another argument"]);
    }
    assert_eq!(fs::read(&file).unwrap(), before);
    // A file inside the model is refused as every other output is, before anything is learned.
    let inside = format!("{model}/MANIFEST");
    let manifest = fs::read(&inside).unwrap();
    let target = format!("--json={inside}");
    for command in [["learn", &model, &file, "--again", &target], ["predict", &model, &file, "-o", &inside]] {
        refused(&command, &[&inside, "inside a model"]);
        assert_eq!(loranpac(&command).status.code(), Some(1), "{command:?}");
    }
    assert_eq!(fs::read(&inside).unwrap(), manifest);
    let elsewhere = path(&folder, "eval.json");
    stdout(&loranpac(&["eval", &model, &file, &format!("--json={elsewhere}")]));
    assert!(fs::read_to_string(elsewhere).unwrap().contains("accuracy"));
}
