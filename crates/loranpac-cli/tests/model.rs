//! The life of a model as a person or a program meets it.

mod common;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{data, json, loranpac, refused, scores, stdout};
use tempfile::TempDir;

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Place(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// A CSV file with samples of these classes, 12 each, different ones for every seed.
    fn csv(&self, name: &str, classes: &[i64], seed: i64) -> String {
        let mut text = "x0,x1,x2,x3,label\n".to_owned();
        for row in 0..12 * classes.len() as i64 {
            let class = classes[row as usize % classes.len()];
            let noise = |c: i64| ((row * 7919 + c * 104_729 + seed * 3571) % 1000) as f32 / 1000.0 - 0.5;
            let value = |c: i64| ((class * 37 + c * 101) % 13) as f32 / 4.0 - 1.5 + 0.5 * noise(c);
            let cells: Vec<String> = (0..4).map(|c| value(c).to_string()).collect();
            text += &format!("{},class {class}\n", cells.join(","));
        }
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn model(&self, name: &str) -> String {
        let path = self.path(name);
        stdout(&loranpac(&["init", &path, "--dim", "4", "--width", "300", "--encoder", "toy"]));
        path
    }
}

/// Labels that were predicted for a file.
fn labels(model: &str, file: &str) -> Vec<String> {
    let text = stdout(&loranpac(&["predict", model, file]));
    text.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().to_owned()).collect()
}

#[track_caller]
fn close(a: &[f64], b: &[f64], tolerance: f64) {
    let largest = b.iter().fold(0.0f64, |most, v| most.max(v.abs()));
    assert_eq!(a.len(), b.len());
    let apart = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / largest;
    assert!(apart < tolerance, "{apart:e}");
}

#[test]
fn from_nothing_to_answers_in_three_commands() {
    let place = Place::new();
    let (monday, tuesday, new) = (
        place.csv("mon.csv", &[0, 1, 2], 1),
        place.csv("tue.csv", &[3, 4], 2),
        place.csv("new.csv", &[0, 1, 2, 3, 4], 3),
    );
    let model = place.model("m.lrp");
    let learned = json(&["learn", &model, &monday, &tuesday, "--json"]);
    assert_eq!(
        (&learned["tasks"], &learned["samples"], &learned["classes_in_all"]),
        (&2.into(), &60.into(), &5.into())
    );
    let verdict = learned["verdict"].as_str().unwrap();
    assert!(verdict.contains("nothing was lost"), "{verdict}");
    let found = labels(&model, &new);
    let right = found.iter().enumerate().filter(|(i, label)| **label == format!("class {}", i % 5)).count();
    assert!(right >= 57, "{right} of 60");
    let result = json(&["eval", &model, &new, "--json"]);
    assert_eq!(result["accuracy"].as_f64().unwrap(), 100.0 * right as f64 / 60.0);
    let text = stdout(&loranpac(&["inspect", &model]));
    for words in ["60 samples of 5 classes in 2 tasks", "encoder   toy", "class 3", "training MSE", "spectrum"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let inspected = json(&["inspect", &model, "--json"]);
    assert_eq!(inspected["classes"][0], serde_json::json!({ "label": "class 0", "samples": 12 }));
    assert!(inspected["summary"]["certificate"]["lost"].as_f64() == Some(0.0));
    let samples = 60 * 4 * inspected["lift"]["dim"].as_u64().unwrap();
    assert_eq!(inspected["sample_bytes"].as_u64(), Some(samples));
    // With the classes of 60 samples, and five coefficients of each.
    assert_eq!(inspected["infinite_width_bytes"].as_u64(), Some(samples + 60 * 4 + 60 * 5 * 8));
    assert!(
        text.contains("the samples alone take") && text.contains("at infinite width the model keeps them"),
        "{text}"
    );
    assert!(stdout(&loranpac(&["verify", &model])).contains("every byte"));
}

#[test]
fn answers_come_as_people_and_programs_want_them() {
    let place = Place::new();
    let (day, new) = (place.csv("day.csv", &[0, 1, 2], 1), place.csv("new.csv", &[0, 9], 3));
    let model = place.model("m.lrp");
    stdout(&loranpac(&["learn", &model, &day]));
    let output = loranpac(&["predict", &model, &new, "--top", "2", "--probabilities", "--novelty"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("uncalibrated"));
    let text = stdout(&output);
    let header = "row,label_1,score_1,probability_1,label_2,score_2,probability_2,novelty";
    assert_eq!(text.lines().next().unwrap(), header);
    assert_eq!(text.lines().count(), 25);
    let calibrated = json(&["calibrate", &model, &place.csv("held.csv", &[0, 1, 2], 7), "--json"]);
    assert!(calibrated["temperature"].as_f64().unwrap() > 0.0);
    let output = loranpac(&["predict", &model, &new, "--probabilities", "--reject", "0.000001", "--to", "jsonl"]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("uncalibrated"));
    let first: serde_json::Value = serde_json::from_str(stdout(&output).lines().next().unwrap()).unwrap();
    assert_eq!((&first["calibrated"], &first["rejected"], &first["label"]), (&true.into(), &true.into(), &().into()));
    // NumPy arrays are what feature files are, and read as such.
    let arrays = place.path("answers.npz");
    refused(&["predict", &model, &new, "--to", "npz"], &["--out"]);
    stdout(&loranpac(&["predict", &model, &new, "--to", "npz", "--out", &arrays, "--scores", "--novelty"]));
    let mut read = loranpac_data::Reader::open(
        Path::new(&arrays),
        &loranpac_data::Options {
            features: Some("scores".to_owned()),
            label: Some("label".to_owned()),
            ..Default::default()
        },
    )
    .unwrap();
    let batch = read.next(100).unwrap().unwrap();
    let named: Vec<String> = batch.labels.unwrap().iter().map(|label| label.to_string()).collect();
    assert_eq!((read.dim(), named), (3, labels(&model, &new)));
    // Standard input, and a pipe that is closed early.
    let mut child = Command::new(env!("CARGO_BIN_EXE_loranpac"))
        .args(["predict", &model, "-", "--format", "csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(fs::read(&new).unwrap().as_slice()).unwrap();
    let piped = child.wait_with_output().unwrap();
    assert_eq!(stdout(&piped), stdout(&loranpac(&["predict", &model, &new])));
}

#[test]
fn learn_reads_the_training_split_and_predict_and_eval_the_test_split() {
    let place = Place::new();
    let (train, test) = (place.csv("a.csv", &[0, 1, 2], 1), place.csv("b.csv", &[0, 1], 2));
    let both = place.path("both.csv");
    let rows = |file: &str, split: &str| -> String {
        let text = fs::read_to_string(file).unwrap();
        text.lines().skip(1).map(|line| format!("{line},{split}\n")).collect()
    };
    fs::write(&both, format!("x0,x1,x2,x3,label,split\n{}{}", rows(&test, "test"), rows(&train, "train"))).unwrap();
    let model = place.model("m.lrp");
    assert_eq!(json(&["learn", &model, &both, "--json"])["samples"], 36);
    refused(&["learn", &model, &train], &["learned before"]);
    // Rows are those of the file, in which the test samples stand first.
    let moved = |answers: &str, by: usize| -> Vec<(usize, String)> {
        let cells = answers.lines().skip(1).map(|line| line.split_once(',').unwrap());
        cells.map(|(row, rest)| (by + row.parse::<usize>().unwrap(), rest.to_owned())).collect()
    };
    for (split, file) in [(None, &test), (Some("test"), &test), (Some("train"), &train)] {
        let mut arguments = vec!["predict", &model, &both];
        arguments.extend(split.iter().flat_map(|split| ["--split", split]));
        let output = loranpac(&arguments);
        let told = String::from_utf8_lossy(&output.stderr).contains("reading the test split; --split train reads");
        assert_eq!(told, split.is_none());
        let before = if file == &train { 24 } else { 0 };
        assert_eq!(moved(&stdout(&output), 0), moved(&stdout(&loranpac(&["predict", &model, file])), before));
        arguments[0] = "eval";
        arguments.push("--json");
        let samples = if split == Some("train") { 36 } else { 24 };
        assert_eq!(json(&arguments)["samples"], samples);
        let warning = String::from_utf8_lossy(&loranpac(&arguments).stderr).contains("the model learned these samples");
        assert_eq!(warning, split == Some("train"));
    }
    assert_eq!(labels(&model, &both).len(), 24);
    assert_eq!(
        stdout(&loranpac(&["predict", &model, &both, "--test"])),
        stdout(&loranpac(&["predict", &model, &test]))
    );
    refused(&["predict", &both, &both], &["both.csv", "not a model", ".lrp"]);
    // The same file is a data set for experiments.
    let runs = json(&["run", "--data", &both, "--width", "100", "--inc", "1", "--method", "loranpac", "--json", "-"]);
    assert_eq!(runs["runs"][0]["dataset"]["dim"], 4);
}

#[test]
fn what_has_been_learned_is_noticed_in_whatever_file_it_comes() {
    let place = Place::new();
    let (day, other) = (place.csv("day.csv", &[0, 1], 1), place.csv("other.csv", &[1, 2], 2));
    let model = place.model("m.lrp");
    stdout(&loranpac(&["learn", &model, &day]));
    let copy = place.path("copy.csv");
    fs::write(&copy, fs::read_to_string(&day).unwrap().replace('\n', "\r\n")).unwrap();
    refused(&["learn", &model, &copy], &["copy.csv", "learned before", "day.csv", "--skip", "--again"]);
    let result = json(&["learn", &model, &copy, &other, "--skip", "--json"]);
    assert_eq!((&result["tasks"], &result["skipped"], &result["samples_in_all"]), (&1.into(), &1.into(), &48.into()));
    stdout(&loranpac(&["learn", &model, &copy, "--again"]));
    assert_eq!(json(&["inspect", &model, "--json"])["samples"], 72);
    // A file that has the same samples twice is learned as it is, in tasks of any size; twice in one command it is noticed.
    let twice = place.path("twice.csv");
    let text = fs::read_to_string(place.csv("c.csv", &[7], 4)).unwrap();
    fs::write(&twice, format!("{text}{}", text.split_once('\n').unwrap().1)).unwrap();
    let (parts, whole) = (place.model("parts.lrp"), place.model("whole.lrp"));
    let result = json(&["learn", &parts, &twice, "--task-size", "12", "--json"]);
    assert_eq!((&result["tasks"], &result["samples"]), (&2.into(), &24.into()));
    let result = json(&["learn", &parts, &twice, "--task-size", "12", "--skip", "--json"]);
    assert_eq!((&result["tasks"], &result["skipped"]), (&0.into(), &2.into()));
    refused(&["learn", &whole, &twice, &twice], &["twice.csv", "also those of", "--skip", "--again"]);
    assert_eq!(json(&["learn", &whole, &twice, &twice, "--skip", "--json"])["samples_in_all"], 24);
    refused(&["learn", &model, &place.csv("b.csv", &[5], 9), "--encoder", "another"], &["another encoder", "toy"]);
}

#[test]
fn bad_samples_change_nothing() {
    let place = Place::new();
    let (good, bad) = (place.csv("good.csv", &[0, 1], 1), place.path("bad.csv"));
    let model = place.model("m.lrp");
    stdout(&loranpac(&["learn", &model, &good]));
    let before = json(&["inspect", &model, "--json"]);
    let text = fs::read_to_string(place.csv("tmp.csv", &[2, 3], 2)).unwrap();
    fs::write(&bad, text.replacen("class 3", "class 3\n1,2,NaN,4,class 3", 5)).unwrap();
    refused(&["learn", &model, &bad], &["bad.csv"]);
    fs::write(&bad, "x0,x1,label\n1,2,a\n").unwrap();
    refused(&["learn", &model, &bad], &["bad.csv", "2 features", "4"]);
    fs::write(&bad, "x0,x1,x2,x3\n1,2,3,4\n").unwrap();
    refused(&["learn", &model, &bad], &["bad.csv", "no labels"]);
    refused(&["learn", &model, &place.path("absent.npz")], &["absent.npz"]);
    refused(&["learn", &place.path("absent.lrp"), &good], &["absent.lrp", "not a model", "init"]);
    refused(&["init", &model, "--dim", "4"], &["m.lrp"]);
    refused(&["init", &place.path("name"), "--dim", "4"], &[".lrp"]);
    assert_eq!(json(&["inspect", &model, "--json"]), before);
}

#[test]
fn what_does_not_fit_into_memory_is_refused_beforehand() {
    let place = Place::new();
    // 48,000 directions of ten million coordinates.
    let (model, file) = (place.path("m.lrp"), place.csv("a.csv", &(0..4000).collect::<Vec<_>>(), 1));
    stdout(&loranpac(&["init", &model, "--dim", "4", "--width", "10000000"]));
    refused(&["learn", &model, &file], &["a.csv", "needs about", "--max-rank"]);
    assert_eq!(json(&["inspect", &model, "--json"])["samples"], 0);
}

#[test]
fn models_of_several_sites_become_one() {
    let place = Place::new();
    let files: Vec<String> = (0..4).map(|i| place.csv(&format!("{i}.csv"), &[i, i + 1, 9], i + 1)).collect();
    let whole = place.model("whole.lrp");
    let mut words = vec!["learn", &whole];
    words.extend(files.iter().map(String::as_str));
    stdout(&loranpac(&words));
    let sites: Vec<String> = (0..4)
        .map(|i| {
            let site = place.model(&format!("site{i}.lrp"));
            stdout(&loranpac(&["learn", &site, &files[i], "--defer"]));
            site
        })
        .collect();
    let all = place.path("all.lrp");
    let merged = json(&["merge", &sites[2], &sites[0], &sites[3], &sites[1], "-o", &all, "--json"]);
    assert_eq!(merged["samples"], 144);
    let new = place.csv("new.csv", &[0, 1, 2, 3, 4, 9], 8);
    assert_eq!(labels(&all, &new), labels(&whole, &new));
    let other = place.path("other.lrp");
    stdout(&loranpac(&["init", &other, "--dim", "4", "--width", "300", "--lift-seed", "5"]));
    refused(&["merge", &sites[0], &other, "-o", &place.path("x.lrp")], &["different lifts", "seed 5"]);
    refused(&["merge", &sites[0], &whole, "-o", &place.path("x.lrp")], &["0.csv", "--again"]);
    refused(&["merge", &sites[0], &sites[1], "-o", &all], &["exists already"]);
    assert!(!Path::new(&place.path("x.lrp")).exists());
}

#[test]
fn a_change_of_mind_is_a_command() {
    let place = Place::new();
    let (one, two, new) =
        (place.csv("1.csv", &[0, 1], 1), place.csv("2.csv", &[2], 2), place.csv("n.csv", &[0, 1, 2], 5));
    let (model, never) = (place.model("m.lrp"), place.model("never.lrp"));
    stdout(&loranpac(&["learn", &model, &one, &two]));
    stdout(&loranpac(&["learn", &never, &one]));
    // Taking back.
    stdout(&loranpac(&["unlearn", &model, &two]));
    close(&scores(&model, &new), &scores(&never, &new), 1e-3);
    assert_eq!(json(&["inspect", &model, "--json"])["classes"].as_array().unwrap().len(), 2);
    let text = stdout(&loranpac(&["unlearn", &model, &two]));
    assert!(text.contains("already applied"), "{text}");
    refused(&["unlearn", &model, &two, "--again"], &["class 2"]);
    stdout(&loranpac(&["learn", &model, &two]));
    // Renaming and relabelling.
    stdout(&loranpac(&["rename", &model, "class 2", "second"]));
    assert!(labels(&model, &new).contains(&"second".to_owned()));
    refused(&["rename", &model, "class 2", "third"], &["no class \"class 2\""]);
    stdout(&loranpac(&["relabel", &model, &two, "--from", "second", "--to", "class 1"]));
    assert!(!labels(&model, &new).contains(&"second".to_owned()));
    // Forgetting, and going back.
    let text = stdout(&loranpac(&["forget", &model, "class 1"]));
    assert!(text.contains("still contribute") && text.contains("unlearn"), "{text}");
    assert!(labels(&model, &new).iter().all(|label| label == "class 0"));
    refused(&["forget", &model, "class 0"], &["only class"]);
    stdout(&loranpac(&["rollback", &model]));
    assert!(labels(&model, &new).contains(&"class 1".to_owned()));
    // ... even from a model whose newest version cannot be read.
    fs::write(Path::new(&model).join("MANIFEST"), b"garbage").unwrap();
    assert_eq!(loranpac(&["inspect", &model]).status.code(), Some(3));
    stdout(&loranpac(&["rollback", &model]));
    assert!(
        labels(&model, &new).iter().all(|label| label == "class 0"),
        "the version before that one had forgotten class 1"
    );
    stdout(&loranpac(&["rollback", &model, "--drop"]));
    refused(&["rollback", &model], &["no version to go back to"]);
    assert!(stdout(&loranpac(&["verify", &model])).contains("every byte"));
}

#[test]
fn an_export_predicts_what_the_model_predicts() {
    let place = Place::new();
    let (day, new) = (place.csv("day.csv", &[0, 1, 2], 1), place.csv("new.csv", &[0, 1, 2], 3));
    let model = place.model("m.lrp");
    stdout(&loranpac(&["learn", &model, &day]));
    let (full, half, onnx) = (place.path("f.safetensors"), place.path("h.safetensors"), place.path("m.onnx"));
    stdout(&loranpac(&["export", &model, &full]));
    stdout(&loranpac(&["export", &model, &half, "--half"]));
    stdout(&loranpac(&["export", &model, &onnx]));
    assert_eq!(scores(&full, &new), scores(&model, &new));
    close(&scores(&half, &new), &scores(&model, &new), 2e-3);
    assert_eq!(labels(&half, &new), labels(&model, &new));
    assert!(fs::metadata(&half).unwrap().len() < fs::metadata(&full).unwrap().len());
    refused(&["export", &model, &place.path("m.txt")], &[".onnx"]);
    refused(&["predict", &full, &new, "--novelty"], &["basis"]);
    let single = place.csv("single.csv", &[7], 4);
    let one = fs::read_to_string(&single).unwrap().lines().take(2).collect::<Vec<_>>().join("\n");
    fs::write(&single, one + "\n").unwrap();
    stdout(&loranpac(&["learn", &model, &single]));
    let output = loranpac(&["export", &model, &onnx]);
    let warning = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(warning.contains("class 7 (1)") && warning.contains("reveals"), "{warning}");
}

#[test]
fn a_damaged_model_says_what_is_damaged_and_exits_with_3() {
    let place = Place::new();
    let model = place.model("m.lrp");
    stdout(&loranpac(&["learn", &model, &place.csv("day.csv", &[0, 1], 1)]));
    let file = Path::new(&model).join("00000001-basis.safetensors");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).unwrap();
    for command in [vec!["verify", &model], vec!["learn", &model, &place.csv("b.csv", &[2], 2)]] {
        let output = loranpac(&command);
        assert_eq!(output.status.code(), Some(3), "{command:?}");
        let said = [output.stdout, output.stderr].map(|s| String::from_utf8(s).unwrap()).concat();
        assert!(said.contains("00000001-basis.safetensors") && said.contains("damaged"), "{said}");
    }
}

#[test]
fn the_manual_and_completions_come_from_the_same_source() {
    assert!(stdout(&loranpac(&["completions", "bash"])).contains("calibrate"));
    assert!(stdout(&loranpac(&["man"])).contains("loranpac"));
    let place = Place::new();
    stdout(&loranpac(&["man", &place.path("man")]));
    assert!(Path::new(&place.path("man")).join("loranpac-learn.1").is_file());
    assert_eq!(loranpac(&["learn"]).status.code(), Some(2));
}

#[test]
fn feature_files_of_experiments_serve_too() {
    let (place, set) = (Place::new(), data());
    let (model, path) = (place.path("m.lrp"), set.path().to_str().unwrap());
    stdout(&loranpac(&["init", &model, "--like", path, "--width", "200", "--filter", "hard", "--schedule", "paper"]));
    stdout(&loranpac(&["learn", &model, path]));
    let result = json(&["eval", &model, path, "--json"]);
    assert_eq!((result["samples"].as_u64(), result["accuracy"].as_f64()), (Some(24), Some(100.0)));
}

#[test]
fn an_automatic_width_follows_the_samples_that_are_announced() {
    let place = Place::new();
    let file = place.csv("a.csv", &[0, 1, 2], 1);
    let init = |name: &str, more: &[&str]| {
        let path = place.path(name);
        let said = stdout(&loranpac(&[&["init", &path], more].concat()));
        (json(&["inspect", &path, "--json"]), said)
    };
    let (model, said) = init("a.lrp", &["--dim", "4", "--expect", "2600"]);
    assert!(said.contains("width 13000, chosen for 2600 samples: at least 3 times as many"), "{said}");
    assert_eq!((&model["lift"]["width"], &model["width_choice"]["samples"]), (&13_000.into(), &2_600.into()));
    // All samples of the file count, of a format that does not have their number too.
    let (model, said) = init("b.lrp", &["--like", &file]);
    assert!(said.contains("chosen for 36 samples") && said.contains("--expect"), "{said}");
    assert_eq!(model["lift"]["width"], 10_000);
    let (model, said) = init("c.lrp", &["--dim", "4"]);
    assert!(said.contains("unknown number of samples: enough for 3333 samples") && said.contains("--expect"), "{said}");
    assert_eq!(model["width_choice"], serde_json::json!({"width": 10_000, "samples": null, "reason": "unknown"}));
    let (model, said) = init("d.lrp", &["--dim", "4", "--expect", "500", "--keep-samples"]);
    assert!(said.contains("keeps the samples") && said.contains("they may be kept"), "{said}");
    assert_eq!(model["width_choice"]["width"], "infinite");
    let (model, _) = init("e.lrp", &["--dim", "4", "--width", "50"]);
    assert_eq!(model["width_choice"], serde_json::Value::Null);
    let (model, _) = init("f.lrp", &["--dim", "4", "--lift", "identity"]);
    assert_eq!((&model["lift"]["width"], &model["width_choice"]), (&4.into(), &serde_json::Value::Null));
    assert!(stdout(&loranpac(&["inspect", &place.path("a.lrp")])).contains("chosen for 2600 samples"));
    // Repeating the command changes nothing, and the width stays whatever is learned.
    assert!(init("a.lrp", &["--dim", "4", "--expect", "2600"]).1.contains("exists already"));
    stdout(&loranpac(&["learn", &place.path("c.lrp"), &file]));
    assert_eq!(json(&["inspect", &place.path("c.lrp"), "--json"])["lift"]["width"], 10_000);
    let path = place.path("x.lrp");
    refused(&["init", &path, "--dim", "4", "--width", "50", "--expect", "9"], &["--expect", "not automatic"]);
    refused(
        &["init", &path, "--dim", "4", "--width", "infinite", "--keep-samples"],
        &["--keep-samples", "not automatic"],
    );
    refused(&["init", &path, "--dim", "4", "--width", "wide"], &["--width", "or auto"]);
    refused(&["init", &path, "--dim", "4", "--lift", "magic"], &["--lift magic", "abs-random"]);
}

#[test]
fn a_width_close_to_the_samples_is_warned_of_by_learn_and_inspect() {
    let place = Place::new();
    let file = place.csv("a.csv", &[0, 1, 2], 1);
    for (width, close) in [("100", true), ("12", false), ("108", false)] {
        for more in [&[][..], &["--defer"]] {
            let model = place.path(&format!("{width}{}.lrp", more.len()));
            stdout(&loranpac(&["init", &model, "--dim", "4", "--width", width]));
            let learned = loranpac(&[&["learn", &model, &file], more].concat());
            let said = String::from_utf8(learned.stderr.clone()).unwrap();
            assert_eq!(said.contains("close to the number of samples (36)"), close, "{width} {more:?}: {said}");
            assert_eq!(said.contains("--width 10000 or more"), close, "{said}");
            let inspected = stdout(&loranpac(&["inspect", &model]));
            assert_eq!(inspected.contains("close to the number of samples"), close, "{inspected}");
        }
    }
}

/// Infinite width: the same commands, exact forgetting, samples that are kept and said to be.
#[test]
fn a_model_of_infinite_width_lives_like_any_other() {
    let place = Place::new();
    let (a, b) = (place.csv("a.csv", &[0, 1], 1), place.csv("b.csv", &[2, 3], 2));
    let new = place.csv("new.csv", &[0, 1, 2, 3], 3);
    let init = |name: &str, more: &[&str]| {
        let path = place.path(name);
        let said = stdout(&loranpac(&[&["init", &path, "--dim", "4", "--width", "infinite"], more].concat()));
        assert!(said.contains("keeps the samples"), "{said}");
        path
    };
    let whole = init("whole.lrp", &["--ridge", "0.1"]);
    loranpac(&["learn", &whole, &a, &b]);
    assert_eq!(labels(&whole, &new)[..4], ["class 0", "class 1", "class 2", "class 3"]);
    let said = stdout(&loranpac(&["inspect", &whole]));
    for words in ["SAMPLES ARE KEPT", "leave-one-out accuracy", "48 samples kept", "training MSE"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let described = json(&["inspect", &whole, "--json"]);
    assert!(described["summary"]["leave_one_out"].as_f64().unwrap() > 0.9, "{described}");
    assert_eq!(json(&["eval", &whole, &new, "--json"])["accuracy"].as_f64().unwrap().round(), 100.0);

    // Merging, in the other order, is learning together.
    let (first, second, merged) =
        (init("1.lrp", &["--ridge", "0.1"]), init("2.lrp", &["--ridge", "0.1"]), place.path("m.lrp"));
    loranpac(&["learn", &first, &a]);
    loranpac(&["learn", &second, &b]);
    stdout(&loranpac(&["merge", &first, &second, "--out", &merged]));
    close(&scores(&merged, &new), &scores(&whole, &new), 1e-6);
    let other = place.model("finite.lrp");
    loranpac(&["learn", &other, &a]);
    refused(&["merge", &first, &other, "--out", &place.path("x.lrp")], &["different lifts", "infinite width"]);

    // Forgetting is never having seen.
    let said = stdout(&loranpac(&["forget", &whole, "class 3"]));
    assert!(said.contains("as if it had never learned them"), "{said}");
    let never = init("never.lrp", &["--ridge", "0.1"]);
    let text = fs::read_to_string(&b).unwrap();
    let kept = place.path("c.csv");
    fs::write(&kept, text.lines().filter(|line| !line.ends_with("class 3")).collect::<Vec<_>>().join("\n")).unwrap();
    loranpac(&["learn", &never, &a, &kept]);
    close(&scores(&whole, &new), &scores(&never, &new), 1e-6);
    stdout(&loranpac(&["unlearn", &whole, &kept]));
    loranpac(&["forget", &never, "class 2"]);
    close(&scores(&whole, &new), &scores(&never, &new), 1e-6);

    refused(&["export", &whole, &place.path("x.onnx")], &["infinite width"]);
    refused(&["init", &place.path("y.lrp"), "--dim", "4", "--ridge", "loo"], &["--width infinite"]);
    refused(&["init", &place.path("y.lrp"), "--dim", "4", "--half"], &["--width infinite"]);
    assert!(!Path::new(&place.path("y.lrp")).exists());
    let small = init("half.lrp", &["--ridge", "loo", "--half", "--max-rank", "20"]);
    loranpac(&["learn", &small, &a, &b]);
    assert_eq!(labels(&small, &new)[..4], ["class 0", "class 1", "class 2", "class 3"]);
}

#[test]
fn nothing_is_learned_if_a_later_file_cannot_be_opened() {
    let place = Place::new();
    let (model, day) = (place.model("m.lrp"), place.csv("day.csv", &[0, 1], 1));
    let narrow = place.path("narrow.csv");
    fs::write(&narrow, "x0,x1,label\n1,2,a\n").unwrap();
    let plain = place.path("plain.csv");
    fs::write(&plain, "x0,x1,x2,x3\n1,2,3,4\n").unwrap();
    for (file, reason) in [(place.path("missing.csv"), "cannot read"), (narrow, "2 features"), (plain, "no labels")] {
        refused(&["learn", &model, &day, &file], &[&file, reason]);
        assert_eq!(json(&["inspect", &model, "--json"])["version"], 0);
    }
}
