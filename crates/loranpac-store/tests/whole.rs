//! Models on disk of more samples than features, which have no basis: S in fixed point, its increments, and no J beside N.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::*;
use loranpac::{Config, Features, Label, Model};
use loranpac_store::{Session, Settings};
use safetensors::tensor::TensorView;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A manifest of a format with these contents.
fn signed(format: u32, value: &Value) -> Vec<u8> {
    let json = serde_json::to_vec_pretty(value).unwrap();
    [format!("loranpac-model {format} {}\n", digest(&json)).as_bytes(), &json].concat()
}

fn manifest(path: &Path) -> Value {
    let text = fs::read_to_string(path.join("MANIFEST")).unwrap();
    serde_json::from_str(text.split_once('\n').unwrap().1).unwrap()
}

/// A model of some tasks, and its manifest.
fn learned(settings: &Settings, count: usize) -> (TempDir, PathBuf, Value) {
    let (folder, path, mut model) = created(settings);
    tasks(count).iter().for_each(|task| learn(&mut model, task));
    let value = manifest(&path);
    (folder, path, value)
}

/// Tasks of a few samples each, after one that leaves a model of 200 features without a basis.
fn small_tasks(count: usize) -> Vec<Task> {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for (more, labels) in tasks(20) {
        x.extend(more);
        y.extend(labels);
    }
    let most = y.len() - 4 * count;
    let cut = |from: usize, to: usize| (x[from * DIM..to * DIM].to_vec(), y[from..to].to_vec());
    std::iter::once(cut(0, most)).chain((0..count).map(|t| cut(most + 4 * t, most + 4 * t + 4))).collect()
}

/// The bytes of the files that a version wrote, by kind.
fn written(path: &Path, version: u64, kind: &str) -> u64 {
    let name = format!("{version:08}-{kind}.safetensors");
    fs::metadata(path.join(name)).map_or(0, |file| file.len())
}

#[test]
fn a_model_without_a_basis_holds_half_of_s_in_four_bytes_per_number_and_nothing_twice() {
    let settings = settings(200, Config { chunk: 6, ..soft().config });
    let (_folder, path, mut model) = created(&settings);
    model.keep(0);
    let tasks = small_tasks(30);
    let mut in_memory = Session::in_memory(&settings).unwrap();
    let (mut largest, mut rewritten) = (0, 0);
    for (t, task) in tasks.iter().enumerate() {
        if t % 3 == 0 {
            drop(model);
            model = Session::open_to_write(&path).unwrap();
        }
        learn(&mut model, task);
        in_memory.learn(Features::new(&task.0, DIM).unwrap(), &task.1).unwrap();
        let version = model.manifest().version;
        rewritten += usize::from(written(&path, version, "gram") > 0);
        assert!(written(&path, version, "gram") > 0 || written(&path, version, "factors") < 4 * 200 * 4 + 400);
        assert!(model.manifest().classes.iter().all(|class| class.places.as_ref().is_some_and(|p| p.sums.is_none())));
        largest = largest.max(model.manifest().files.values().map(|file| file.bytes).sum());
    }
    assert!(model.manifest().whole && model.manifest().basis.is_empty());
    // Half of a square of four bytes; an eighth of it in increments; N, twice at most; and headers.
    let (half, classes) = (200 * 199 / 2 * 4, 41 * 200 * 8);
    assert!(largest <= half + half / 8 + 2 * classes + 20_000, "{largest} bytes");
    assert!((2..=10).contains(&rewritten), "S was written {rewritten} times in 31 commits");
    // In memory, and on disk with and without reading it again: the same to the last bit.
    let scores = scores_of(&in_memory.classifier().unwrap());
    assert_eq!(scores_of(&model.classifier().unwrap()), scores);
    drop(model);
    assert!(Session::verify(&path).unwrap().is_whole());
    let mut read = Session::open(&path).unwrap();
    assert_eq!(scores_of(&read.classifier().unwrap()), scores);
    assert_eq!(gram(&mut read), gram(&mut in_memory));
    // Saved from memory at any time, it goes on in the same way.
    let copy = path.with_file_name("copy.lrp");
    let mut saved = Session::in_memory(&settings).unwrap();
    for (t, (x, y)) in tasks.iter().enumerate() {
        saved.learn(Features::new(x, DIM).unwrap(), y).unwrap();
        if [0, 1, 7, 20].contains(&t) {
            saved.save(&copy, false).unwrap();
            saved = Session::open(&copy).unwrap().into_memory().unwrap();
        }
    }
    assert_eq!(scores_of(&saved.classifier().unwrap()), scores);
}

#[test]
fn a_manifest_without_a_basis_that_lies_is_refused() {
    let (_folder, path, value) = learned(&whole(), 3);
    let refused = |change: &dyn Fn(&mut Value), reason: &str| {
        let mut value = value.clone();
        change(&mut value);
        fs::write(path.join("MANIFEST"), signed(4, &value)).unwrap();
        let error = Session::open(&path).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(reason), "{reason}: {error:?}");
    };
    assert!(value["gram"][0]["grid"]["rank"] == 40, "{}", value["gram"]);
    refused(&|m| m["whole"] = false.into(), "two classes share");
    refused(&|m| m["gram"][0]["grid"]["rank"] = 41.into(), "its Gram matrix 41");
    refused(&|m| m["gram"][0]["grid"]["rank"] = u64::MAX.into(), "its Gram matrix");
    refused(&|m| m["classes"][0]["cross"]["row"] = 99.into(), "not of the size");
    let (_folder, path, mut value) = learned(&soft(), 2);
    let (file, rank) = (value["gram"][0]["grow"]["file"].clone(), 2 * EACH);
    value["gram"] = json!([{ "grid": { "file": file, "rank": rank } }]);
    fs::write(path.join("MANIFEST"), signed(4, &value)).unwrap();
    assert!(Session::open(&path).err().unwrap().to_string().contains("in fixed point"));
}

/// Changes a model without a basis, whose S is in double precision, to format 3, which has J beside N.
fn to_format_3(path: &Path) {
    let mut model = Session::open(path).unwrap();
    let Model::Explicit(explicit) = model.model().unwrap() else { panic!("it has a finite width") };
    let n = explicit.statistics().cross().clone();
    let sums: Vec<u8> =
        n.row_iter().flat_map(|n| n.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect::<Vec<_>>()).collect();
    let shape = [n.nrows(), n.ncols()];
    let tensor = TensorView::new(safetensors::Dtype::F32, shape.to_vec(), &sums).unwrap();
    let bytes = safetensors::serialize([("sums", tensor)], None).unwrap();
    let file = "00000001-old.safetensors";
    fs::write(path.join(file), &bytes).unwrap();
    let mut value = manifest(path);
    assert!(value["gram"][0]["whole"]["rank"] == n.ncols() && value["whole"] == true, "{}", value["gram"]);
    value["files"][file] = json!({ "bytes": bytes.len(), "sha256": digest(&bytes) });
    for row in 0..n.nrows() {
        value["classes"][row]["sums"] = json!({ "file": file, "row": row, "shape": shape });
    }
    fs::write(path.join("MANIFEST"), signed(3, &value)).unwrap();
}

#[test]
fn a_model_of_format_3_without_a_basis_learns_on() {
    let (_folder, path, mut model) = created(&settings(200, soft().config));
    let tasks = tasks(12);
    tasks[..9].iter().for_each(|task| learn(&mut model, task));
    drop(model);
    to_format_3(&path);
    assert!(Session::verify(&path).unwrap().is_whole());
    let mut model = Session::open_to_write(&path).unwrap();
    tasks[9..].iter().for_each(|task| learn(&mut model, task));
    let value = serde_json::to_value(model.manifest()).unwrap();
    assert!(value["gram"][0].get("grid").is_some() && value["classes"][0].get("sums").is_none());
    assert_eq!(scores_of(&model.classifier().unwrap()), {
        let mut one = Session::in_memory(&settings(200, soft().config)).unwrap();
        tasks.iter().for_each(|(x, y)| one.learn(Features::new(x, DIM).unwrap(), y).unwrap());
        scores_of(&one.classifier().unwrap())
    });
    drop(model);
    assert!(Session::verify(&path).unwrap().is_whole());
}

#[test]
fn rows_of_classes_that_were_superseded_do_not_pile_up() {
    let (_folder, path, mut model) = created(&whole());
    model.keep(0);
    // Every task has other classes than the one before, and all come again.
    let (x, y) = &tasks(1)[0];
    for t in 0..40i64 {
        let labels = (0..y.len() as i64).map(|i| Label::from((t * 5 + i % 12) % 30)).collect();
        learn(&mut model, &(x.clone(), labels));
        let places = model.manifest().classes.iter().filter_map(|class| class.places.as_ref());
        let rows: BTreeMap<_, _> = places.map(|places| (places.cross.file.clone(), places.cross.shape[0])).collect();
        let classes = model.manifest().classes.len();
        assert!(rows.values().sum::<usize>() <= 2 * classes, "{rows:?} of {classes}");
    }
    drop(model);
    assert!(Session::verify(&path).unwrap().is_whole());
}
