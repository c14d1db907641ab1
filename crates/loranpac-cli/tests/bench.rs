//! `loranpac bench` as a person or a program meets it.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{data, json, loranpac, refused, stdout};
use tempfile::TempDir;

#[test]
fn the_list_names_every_recipe_with_its_place_in_the_paper() {
    let text = stdout(&loranpac(&["bench", "--list"]));
    for (name, _) in loranpac_bench::recipe::RECIPES {
        assert!(text.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}");
    }
    assert!(text.contains("Figure truncation-effect"));
}

#[test]
fn a_smoke_test_needs_nothing_but_the_program() {
    let out = TempDir::new().unwrap();
    let folder = out.path().to_str().unwrap();
    let text = stdout(&loranpac(&["bench", "cil-vit", "--quick", "--out", folder]));
    assert!(text.contains("Final accuracy, %") && text.contains("loranpac-soft"), "{text}");
    for file in ["report.html", "report.md", "table-1.csv", "runs.csv"] {
        assert!(out.path().join("cil-vit-quick").join(file).is_file(), "{file}");
    }
    let again = loranpac(&["bench", "cil-vit", "--quick", "--out", folder]);
    let errors = String::from_utf8(again.stderr.clone()).unwrap();
    assert!(!errors.contains("loranpac run"), "nothing is run again: {errors}");
    assert_eq!(stdout(&again), text);
    let result = json(&["bench", "cil-vit", "--quick", "--out", folder, "--json", "-"]);
    assert_eq!(result["runs"].as_array().unwrap().len(), 14);
    assert_eq!((&result["schema"], &result["runs"][0]["data"]["file"]), (&1.into(), &"digits".into()));
}

/// A folder of feature files with one data set in it.
fn features() -> TempDir {
    let folder = TempDir::new().unwrap();
    let set = data();
    let target = folder.path().join("mine-encoder");
    std::fs::create_dir(&target).unwrap();
    for file in std::fs::read_dir(set.path()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), target.join(file.file_name())).unwrap();
    }
    folder
}

#[test]
fn recipes_and_data_of_ones_own() {
    let (features, out) = (features(), TempDir::new().unwrap());
    let recipe = features.path().join("mine.toml");
    let text = "title = \"Mine\"\ndata = [\"mine\", \"other\"]\n[[runs]]\nmethod = [\"loranpac\", \"simplecil\"]\n\
                width = 200\ninc = [1, 2]\nseed = [1, 2]\n\
                [[tables]]\ntitle = \"Accuracy\"\nrows = [\"method\"]\ncolumns = [\"inc\"]\nvalue = \"final\"\n";
    std::fs::write(&recipe, text).unwrap();
    let paths = [recipe.to_str().unwrap(), features.path().to_str().unwrap(), out.path().to_str().unwrap()];
    let output = loranpac(&["bench", paths[0], "--features", paths[1], "--out", paths[2]]);
    let notes = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(notes.contains("other is skipped"), "{notes}");
    let text = stdout(&output);
    assert!(text.contains("Inc-1") && text.contains("Inc-2") && text.contains('\u{b1}'), "{text}");
    assert!(text.contains("8 runs"), "{text}");
    // What the report says about a run repeats it.
    let html = std::fs::read_to_string(out.path().join("mine/report.html")).unwrap();
    let start = html.find(&format!("loranpac run --data {}/mine-encoder --method loranpac ", paths[1])).unwrap();
    let command = html[start..].split('<').next().unwrap();
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--json", "-"]).collect();
    let repeated = &json(&words)["runs"][0];
    let kept = std::fs::read_dir(out.path().join("runs")).unwrap().map(|file| {
        serde_json::from_str::<serde_json::Value>(&std::fs::read_to_string(file.unwrap().path()).unwrap()).unwrap()
    });
    let twin = kept.map(|r| r["run"].clone()).find(|run| run["config"]["spec"] == repeated["config"]["spec"]).unwrap();
    assert_eq!(twin["accuracy_matrix"], repeated["accuracy_matrix"]);
}

#[test]
fn a_pilot_configuration_is_followed_and_strange_keys_are_named() {
    let (features, out) = (features(), TempDir::new().unwrap());
    let config = features.path().join("exp.json");
    let text = r#"{"prefix": "x", "dataset": "mine", "init_cls": 2, "increment": 2, "seed": [1993], "E": 300,
        "truncate_percent": 25, "model_name": "loranpac", "shuffle": false}"#;
    std::fs::write(&config, text).unwrap();
    let paths = [config.to_str().unwrap(), features.path().to_str().unwrap(), out.path().to_str().unwrap()];
    let output = loranpac(&["bench", paths[0], "--features", paths[1], "--out", paths[2]]);
    let notes = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(notes.contains("have no effect here: prefix"), "{notes}");
    assert!(notes.contains("--width 300 --truncate 0.25 --inc 2 --order sorted"), "{notes}");
    assert!(stdout(&output).contains("as PILOT logs it"));
}

#[test]
fn a_class_order_of_ones_own_is_in_the_command_and_broken_files_are_skipped() {
    let (features, out) = (features(), TempDir::new().unwrap());
    std::fs::write(features.path().join("mine-broken.npz"), "not a zip file").unwrap();
    let recipe = features.path().join("mine.toml");
    let text = "title = \"Mine\"\n[[runs]]\nmethod = \"simplecil\"\ninc = 2\norder = [15, 14, 13, 12, 11, 10]\n";
    std::fs::write(&recipe, text).unwrap();
    let paths = [recipe.to_str().unwrap(), features.path().to_str().unwrap(), out.path().to_str().unwrap()];
    refused(&["bench", paths[0], "--features", paths[1], "--out", paths[2]], &["names no data", "--data all"]);
    let output = loranpac(&["bench", paths[0], "--features", paths[1], "--data", "all", "--out", paths[2]]);
    let notes = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(notes.contains("--order 15,14,13,12,11,10"), "{notes}");
    assert!(notes.contains("skipped") && notes.contains("mine-broken.npz"), "{notes}");
    assert!(stdout(&output).contains("1 run,"));
    let order =
        json(&["run", "--data", &format!("{}/mine-encoder", paths[1]), "--order", "15,14,13,12,11,10", "--json", "-"]);
    assert!(order["runs"][0]["seed"].is_null());
    std::fs::remove_dir_all(features.path().join("mine-encoder")).unwrap();
    let broken = ["bench", paths[0], "--features", paths[1], "--data", "all", "--out", paths[2]];
    refused(&broken, &["nothing could be run", "mine-broken.npz"]);
}

#[test]
fn refusals_say_what_to_do() {
    let features = features();
    let folder = features.path().to_str().unwrap();
    refused(&["bench", "magic"], &["magic", "--list"]);
    refused(&["bench", "cil-vit"], &["--features"]);
    refused(&["bench", "cil-vit", "--features", folder], &["cifar100", "mine-encoder", "--data all"]);
    refused(&["bench", "cil-vit", "--features", folder, "--data", "yours"], &["yours"]);
    refused(&["bench", "cil-vit", "--quick", "--max-width", "0"], &["--max-width"]);
    refused(&["bench", "none.toml", "--quick"], &["none.toml"]);
}

/// Finished runs by file name, without what no two runs share.
fn finished(folder: &Path) -> BTreeMap<String, serde_json::Value> {
    let runs = std::fs::read_dir(folder.join("runs")).unwrap().map(|file| file.unwrap().path());
    runs.filter(|path| path.extension().is_some_and(|e| e == "json"))
        .map(|path| {
            let mut value: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let run = &mut value["run"];
            run["peak_rss_bytes"].take();
            for task in run["tasks"].as_array_mut().unwrap() {
                ["learn_seconds", "weights_seconds", "eval_seconds"].iter().for_each(|key| drop(task[key].take()));
            }
            (path.file_name().unwrap().to_string_lossy().into_owned(), value)
        })
        .collect()
}

#[cfg(unix)]
#[test]
fn a_killed_or_interrupted_sweep_goes_on_where_it_was() {
    let whole = TempDir::new().unwrap();
    let arguments = |out: &Path| {
        let out = out.to_str().unwrap().to_owned();
        ["bench", "accuracy-matrices", "--quick", "-q", "--threads", "1", "--out"]
            .map(str::to_owned)
            .into_iter()
            .chain([out])
    };
    let run = |out: &Path| Command::new(env!("CARGO_BIN_EXE_loranpac")).args(arguments(out)).output().unwrap();
    assert!(run(whole.path()).status.success());
    let expected = finished(whole.path());
    assert!(expected.len() > 8);
    for signal in ["-KILL", "-INT"] {
        for after in [0, 2, 5] {
            let out = TempDir::new().unwrap();
            let mut child = Command::new(env!("CARGO_BIN_EXE_loranpac"))
                .args(arguments(out.path()))
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let count = || std::fs::read_dir(out.path().join("runs")).map_or(0, |files| files.count());
            while count() < after && child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
            let ended = child.wait_with_output().unwrap();
            if signal == "-INT" && after > 0 && !ended.status.success() {
                let message = String::from_utf8(ended.stderr).unwrap();
                assert!(message.contains("rerun the command to resume"), "{message}");
                assert_eq!(ended.status.code(), Some(130));
            }
            assert!(run(out.path()).status.success());
            assert_eq!(finished(out.path()), expected, "{signal} after {after} runs");
        }
    }
}
