//! Raw data in `loranpac run` and `loranpac bench`.

mod common;
#[path = "../../loranpac/tests/skip/mod.rs"]
mod skip;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::raw::{bitmap, images, texts};
use common::{json, loranpac, refused, stdout};
use tempfile::TempDir;

/// A folder, and the text of a path in it.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

/// Notes on standard error of a command that succeeds.
fn notes(arguments: &[&str]) -> String {
    let output = loranpac(arguments);
    stdout(&output);
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn raw_images_run_as_their_feature_file_does() {
    let place = Place::new();
    let (photos, file, cache) =
        (images(place.0.path()).display().to_string(), place.text("f.npz"), place.text("cache"));
    stdout(&loranpac(&["embed", "image-basic", &photos, "-o", &file, "--cache", &cache]));
    let run = |data: &[&str]| {
        let common = ["--method", "loranpac,simplecil", "--width", "50", "--inc", "1", "--threads", "1", "--json", "-"];
        json(&[&["run", "--data"], data, &common].concat())
    };
    let raw = run(&[&photos, "--encoder", "image-basic", "--cache", &cache]);
    let features = run(&[&file]);
    for (raw, features) in raw["runs"].as_array().unwrap().iter().zip(features["runs"].as_array().unwrap()) {
        assert_eq!(raw["accuracy_matrix"], features["accuracy_matrix"]);
        assert_eq!(raw["config"]["spec"], features["config"]["spec"]);
        assert_eq!((&raw["dataset"]["train"], &raw["dataset"]["test"]), (&8.into(), &4.into()));
        assert_eq!(raw["dataset"]["name"], "photos");
        assert_eq!(raw["dataset"]["encoder"], features["dataset"]["encoder"], "the file has name and digest, too");
        assert_eq!(raw["dataset"]["encoder"]["name"], "image-basic");
        assert_eq!(raw["dataset"]["encoder"]["digest"].as_str().unwrap().len(), 64);
    }
    let words =
        stdout(&loranpac(&["run", "--data", &photos, "--encoder", "image-basic", "--cache", &cache, "--inc", "1"]));
    assert!(words.contains("encoder: image-basic, digest "), "{words}");
}

#[test]
fn raw_texts_run_and_a_report_has_the_encoder_and_the_command() {
    let place = Place::new();
    let (table, report) = (texts(place.0.path(), 60), place.text("report"));
    let arguments = ["run", "--data", &table, "--encoder", "text-ngrams", "--no-cache", "--method", "simplecil"];
    stdout(&loranpac(&[&arguments[..], &["--inc", "1", "--report", &report]].concat()));
    let page = fs::read_to_string(place.path("report/report.md")).unwrap();
    assert!(page.contains("Encoder: text-ngrams, digest ") && page.contains("--encoder text-ngrams"), "{page}");
    // What a sweep reports about a run repeats it.
    let sweep = [&arguments[..], &["--inc", "1", "--stability", "--report", &report]].concat();
    let notes = notes(&sweep);
    let command = notes.lines().find(|line| line.starts_with("loranpac run")).unwrap();
    assert!(command.contains("--encoder text-ngrams"), "{command}");
    let command = command.split("  ").next().unwrap();
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--no-cache", "--json", "-"]).collect();
    assert_eq!(json(&words)["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn raw_data_without_an_encoder_are_refused_with_advice() {
    let place = Place::new();
    let (photos, table) = (images(place.0.path()).display().to_string(), texts(place.0.path(), 6));
    refused(&["run", "--data", &photos], &["photos", "images", "loranpac embed", "--encoder"]);
    refused(&["run", "--data", &table], &["tickets.csv", "texts", "loranpac embed", "--encoder"]);
    refused(&["run", "--data", &photos, "--stability"], &["images", "--encoder"]);
    fs::write(place.path("broken.npz"), "not a zip file").unwrap();
    refused(&["run", "--data", &place.text("broken.npz")], &["broken.npz", "damaged"]);
    for (flag, value) in [("--preprocess", Some("unit")), ("--skip-bad", None), ("--no-cache", None)] {
        let arguments: Vec<&str> = ["run", "--data", "digits", flag].into_iter().chain(value).collect();
        refused(&arguments, &[flag, "--encoder"]);
    }
}

#[test]
fn an_experiment_needs_splits_and_labels() {
    let place = Place::new();
    let run = |name: &str, encoder: &str, words: &[&str]| {
        refused(&["run", "--data", &place.text(name), "--encoder", encoder, "--no-cache"], words);
    };
    bitmap(&place.path("flat/red/1.bmp"), [0, 0, 200], 1);
    run("flat", "image-basic", &["flat", "no splits"]);
    bitmap(&place.path("half/train/red/1.bmp"), [0, 0, 200], 1);
    run("half", "image-basic", &["half", "no test samples"]);
    bitmap(&place.path("bare/train/1.bmp"), [0, 0, 200], 1);
    bitmap(&place.path("bare/test/1.bmp"), [0, 0, 200], 1);
    run("bare", "image-basic", &["bare", "no labels"]);
    fs::write(place.path("plain.csv"), "text,label\nx y,1\n").unwrap();
    run("plain.csv", "text-ngrams", &["plain.csv", "no splits"]);
    fs::write(place.path("mute.csv"), "text,split\nx y,train\nz,test\n").unwrap();
    run("mute.csv", "text-ngrams", &["mute.csv", "no labels", "--label"]);
    fs::write(place.path("one.csv"), "text,label,split\nx y,1,train\n").unwrap();
    run("one.csv", "text-ngrams", &["one.csv", "no test samples"]);
    let layers = ["run", "--data", &place.text("one.csv"), "--encoder", "text-ngrams", "--layers", "3", "--no-cache"];
    refused(&layers, &["layers 0 to 0, not 3"]);
    run("missing", "image-basic", &["missing"]);
}

/// Small sets in the layouts of the paper's: two classes, told apart by their colour.
fn sets(root: &Path) {
    let colour = |class: usize| if class == 0 { [0, 0, 200] } else { [0, 200, 0] };
    for number in 0..6 {
        for class in 0..2 {
            let put = |name: String| bitmap(&root.join(name), colour(class), 3 * number + class);
            let split = if number < 4 { "train" } else { "test" };
            put(format!("CUB/cub/{split}/{}/{number}.bmp", ["wren", "crow"][class]));
            put(format!("core50_128x128/s{}/o{}/{number}.bmp", [1, 2, 3, 7, 10, 11][number], class + 1));
            let (generator, object) = [("gaugan", ""), ("biggan", "cat/")][number % 2];
            let split = if number < 4 { "train" } else { "val" };
            put(format!("cddb/{generator}/{split}/{object}{}/{number}.bmp", ["0_real", "1_fake"][class]));
            put(format!("domainnet/{}/{class}/{number}.bmp", ["real", "sketch"][number % 2]));
        }
    }
    for (at, domain) in ["real", "sketch"].iter().enumerate() {
        let lines = |numbers: &[usize]| -> String {
            numbers.iter().flat_map(|n| (0..2).map(move |c| format!("{domain}/{c}/{n}.bmp {c}\n"))).collect()
        };
        fs::write(root.join(format!("domainnet/{domain}_train.txt")), lines(&[at, at + 2])).unwrap();
        fs::write(root.join(format!("domainnet/{domain}_test.txt")), lines(&[at + 4])).unwrap();
    }
}

/// Arguments of a bench on the sets.
fn bench<'a>(recipe: &'a str, place: &'a [String; 3], more: &[&'a str]) -> Vec<&'a str> {
    let [images, out, cache] = place;
    let common = ["bench", recipe, "--images", images, "--encoder", "image-basic", "--out", out, "--cache", cache];
    [&common[..], &["--quick", "--threads", "1"], more].concat()
}

fn place_of_sets(place: &Place) -> [String; 3] {
    sets(&place.path("sets"));
    ["sets", "out", "cache"].map(|name| place.text(name))
}

/// The feature files below a folder, by name.
fn feature_files(out: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for folder in fs::read_dir(Path::new(out).join("features")).into_iter().flatten() {
        for file in fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            found.push((path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn the_papers_sets_are_found_measured_encoded_once_and_run() {
    let place = Place::new();
    let paths = place_of_sets(&place);
    let first = notes(&bench("dil-vit", &paths, &[]));
    for (set, words) in [
        (
            "core50_128x128",
            "6 training samples instead of 119894, 6 test samples instead of 44972, 2 classes instead of 50",
        ),
        ("cddb", "8 training samples instead of 16068, 4 test samples instead of 5353 (the paper's CDDB-Hard)"),
        (
            "domainnet",
            "8 training samples instead of 409832, 4 test samples instead of 176743, 2 classes instead of 345",
        ),
    ] {
        assert!(first.lines().any(|line| line.contains(set) && line.contains(words)), "{words}: {first}");
    }
    assert!(first.contains("core50: 12 of 12 samples encoded, 0 from the cache"), "{first}");
    let files = feature_files(&paths[1]);
    let names: Vec<&str> = files.iter().map(|file| file.0.as_str()).collect();
    assert_eq!(names, ["cddb-hard-image-basic.npz", "core50-image-basic.npz", "domainnet-image-basic.npz"]);
    // Nothing is computed twice: neither features, nor runs.
    let second = notes(&bench("dil-vit", &paths, &[]));
    assert!(!second.contains("encoded") && !second.contains("loranpac run"), "{second}");
    assert!(second.contains("119894"), "{second}");
    let runs = json(&bench("dil-vit", &paths, &["--json", "-"]));
    let runs = runs["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3 * 4);
    for run in runs {
        assert_eq!(
            (&run["dataset"]["encoder"]["name"], &run["data"]["backbone"]),
            (&"image-basic".into(), &"image-basic".into())
        );
        let tasks = if run["data"]["key"] == "core50" { 3 } else { 2 };
        assert_eq!(run["tasks"].as_array().unwrap().len(), tasks, "{}", run["data"]);
    }
    let html = fs::read_to_string(Path::new(&paths[1]).join("dil-vit-quick/report.html")).unwrap();
    let digest = runs[0]["dataset"]["encoder"]["digest"].as_str().unwrap();
    assert!(html.contains("Encoder") && html.contains(digest));
    // The files are those of any other run.
    let folder = fs::read_dir(Path::new(&paths[1]).join("features")).unwrap().next().unwrap().unwrap().path();
    let again =
        ["bench", "dil-vit", "--quick", "--threads", "1", "--features", folder.to_str().unwrap(), "--out", &paths[1]];
    assert!(!notes(&again).contains("loranpac run"));
}

#[test]
fn a_set_that_changed_is_encoded_again_through_the_cache() {
    let place = Place::new();
    let paths = place_of_sets(&place);
    let arguments = bench("cil-vit", &paths, &["--data", "cub200"]);
    let first = notes(&arguments);
    assert!(first.contains("cub200: 12 of 12 samples encoded"), "{first}");
    let whole = feature_files(&paths[1]);
    fs::remove_dir_all(Path::new(&paths[1]).join("features")).unwrap();
    let again = notes(&arguments);
    assert!(again.contains("cub200: 0 of 12 samples encoded, 12 from the cache"), "{again}");
    assert!(feature_files(&paths[1]) == whole, "to the byte");
    bitmap(&place.path("sets/CUB/cub/train/wren/new.bmp"), [9, 9, 200], 7);
    let more = notes(&arguments);
    assert!(more.contains("cub200: 1 of 13 samples encoded, 12 from the cache"), "{more}");
    fs::write(place.path("sets/CUB/cub/train/wren/new.bmp"), "no image").unwrap();
    refused(&arguments, &["new.bmp"]);
    let skipping = [&arguments[..], &["--skip-bad"]].concat();
    assert!(notes(&skipping).contains("/cub/train/wren/new.bmp"));
    assert!(!notes(&skipping).contains("encoded"));
    refused(&arguments, &["new.bmp"]);
}

#[test]
fn sets_of_ones_own_are_named_or_all_are_taken() {
    let place = Place::new();
    let paths = place_of_sets(&place);
    let more = place.path("sets/My photos");
    fs::rename(images(&place.path("sets")), &more).unwrap();
    let recipe = place.text("mine.toml");
    fs::write(&recipe, "title = \"Mine\"\n[[runs]]\nmethod = \"simplecil\"\ninc = 1\n").unwrap();
    refused(&bench(&recipe, &paths, &[]), &["names no data"]);
    let mine = json(&bench(&recipe, &paths, &["--data", "my photos", "--json", "-"]));
    assert_eq!(mine["runs"][0]["data"]["key"], "my photos");
    let all = json(&bench(&recipe, &paths, &["--data", "all", "--json", "-"]));
    let keys: Vec<&str> =
        all["runs"].as_array().unwrap().iter().map(|run| run["data"]["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["My photos", "cddb-hard", "core50", "cub200", "domainnet"]);
    refused(&bench(&recipe, &paths, &["--data", "yours"]), &["yours", "My photos", "cub200"]);
    refused(&["bench", &recipe, "--images", &paths[0]], &["--encoder"]);
    refused(&["bench", &recipe, "--encoder", "image-basic"], &["--images"]);
    refused(&bench("cil-vit", &paths, &["--text", "a"]), &["--text"]);
}

#[test]
fn a_wrong_layout_is_refused_before_anything_is_encoded() {
    let place = Place::new();
    let paths = place_of_sets(&place);
    fs::remove_file(place.path("sets/domainnet/sketch/0/1.bmp")).unwrap();
    refused(
        &bench("dil-vit", &paths, &[]),
        &["domainnet", "sketch_train.txt", "line 1", "sketch/0/1.bmp is not there"],
    );
    fs::remove_dir_all(place.path("sets/domainnet")).unwrap();
    fs::rename(place.path("sets/core50_128x128/s1"), place.path("sets/core50_128x128/first")).unwrap();
    refused(&bench("dil-vit", &paths, &[]), &["core50_128x128", "first", "s1/OBJECT/*"]);
    fs::remove_dir_all(place.path("sets/CUB/cub/test")).unwrap();
    refused(&bench("cil-vit", &paths, &[]), &["CUB", "no test samples"]);
    assert!(feature_files(&paths[1]).is_empty());
}

/// LORANPAC_KILLS is the number of kills; the feature file must be the same to the byte after all of them.
#[test]
fn a_killed_bench_goes_on_where_it_was() {
    let kills: usize = std::env::var("LORANPAC_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(5);
    let place = Place::new();
    let root = place.path("sets");
    for number in 0..200 {
        let (split, class) = (if number % 4 == 0 { "test" } else { "train" }, number % 3);
        bitmap(
            &root.join(format!("mine/{split}/{class}/{number}.bmp")),
            [number as u8, 10 * class as u8, 99],
            number % 24,
        );
    }
    let recipe = place.text("t.toml");
    fs::write(&recipe, "title = \"t\"\ndata = [\"mine\"]\n[[runs]]\nmethod = \"simplecil\"\ninc = 1\n").unwrap();
    let whole = ["sets", "whole", "cache"].map(|name| place.text(name));
    stdout(&loranpac(&bench(&recipe, &whole, &[])));
    let expected = feature_files(&whole[1]);
    assert_eq!(expected.len(), 1);
    let (mut killed, mut random) = (0, 88_172_645_463_325_252u64);
    for round in 0.. {
        let paths = [whole[0].clone(), place.text(&format!("out{round}")), place.text(&format!("cache{round}"))];
        let mut finished = false;
        while !finished {
            let mut command = Command::new(env!("CARGO_BIN_EXE_loranpac"));
            command.args(bench(&recipe, &paths, &[])).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            std::thread::sleep(Duration::from_millis(random % 300));
            child.kill().unwrap();
            finished = child.wait().unwrap().success();
            killed += usize::from(!finished);
            let files: Vec<_> = feature_files(&paths[1]).into_iter().filter(|file| file.0.ends_with(".npz")).collect();
            let whole = |file: &(String, Vec<u8>)| file.0.starts_with('.') || *file == expected[0];
            assert!(files.iter().all(whole), "half a file, or another one");
        }
        assert!(feature_files(&paths[1]) == expected);
        if killed >= kills {
            break;
        }
    }
    println!("{killed} kills, all the same to the byte");
}

#[test]
fn pacs_runs_from_its_archive() {
    let raw = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/raw");
    if !raw.join("pacs-images.tar").exists() {
        return skip::skipped("../shared/data", "pacs_runs_from_its_archive", "there is no pacs-images.tar");
    }
    let place = Place::new();
    let paths = [raw.display().to_string(), place.text("out"), place.text("cache")];
    let [images, out, cache] = &paths;
    // Not --quick, which keeps the first samples of each class and so the first domains.
    let narrow = ["--max-width", "100", "--one-seed", "--threads", "1", "--json", "-"];
    let common = ["bench", "pacs", "--images", images, "--encoder", "image-basic", "--out", out, "--cache", cache];
    let runs = json(&[&common[..], &narrow[..]].concat());
    for run in runs["runs"].as_array().unwrap() {
        let dataset = &run["dataset"];
        assert_eq!((&dataset["train"], &dataset["test"], &dataset["classes"]), (&840.into(), &420.into(), &7.into()));
        let tasks = if run["config"]["spec"]["scenario"] == "joint" { 1 } else { 4 };
        assert_eq!(run["tasks"].as_array().unwrap().len(), tasks);
    }
}
