//! A model on disk: what is written is what is read, bit for bit, and every damaged byte is found.

mod common;

use std::fs;
use std::path::PathBuf;

use common::*;
use loranpac::{Config, Features, Model};
use loranpac_store::{Edited, Error, Fingerprint, Rolled, Session, Settings};
use tempfile::TempDir;

#[test]
fn learning_in_many_sessions_equals_learning_in_one_bit_for_bit() {
    for settings in every_kind() {
        let folder = TempDir::new().unwrap();
        let (once, often) = (folder.path().join("once.lrp"), folder.path().join("often.lrp"));
        let mut model = Session::create(&once, &settings).unwrap();
        for task in tasks(12) {
            learn(&mut model, &task);
        }
        Session::create(&often, &settings).unwrap();
        for (t, task) in tasks(12).iter().enumerate() {
            let mut model = Session::open_to_write(&often).unwrap();
            learn(&mut model, task);
            if t % 5 == 0 {
                // A classifier in between changes nothing.
                model.prepared().unwrap();
                model.commit().unwrap();
            }
        }
        assert_eq!(scores(&once), scores(&often), "{settings:?}");
        let [a, b] = [&once, &often].map(|path| Session::open(path).unwrap());
        let (mut a, mut b) = (a, b);
        assert_eq!(basis(a.model().unwrap()), basis(b.model().unwrap()));
        assert_eq!(gram(&mut a), gram(&mut b));
    }
}

#[test]
fn a_model_that_was_read_knows_what_it_knew() {
    let (_folder, path, mut model) = created(&soft());
    for task in tasks(3) {
        learn(&mut model, &task);
    }
    let before = scores_of(&model.classifier().unwrap());
    let verdict = model.prepared().unwrap().summary().verdict();
    model.commit().unwrap();
    drop(model);
    let mut model = Session::open(&path).unwrap();
    assert!(model.manifest().weights.is_some());
    assert_eq!(model.prepared().unwrap().summary().verdict(), verdict);
    assert_eq!(scores_of(&model.classifier().unwrap()), before);
    assert!(matches!(model.commit(), Err(Error::ReadOnly { .. })), "it was opened to be read");
    assert_eq!(model.manifest().encoder.samples, 3 * EACH);
}

#[test]
fn every_damaged_byte_is_found() {
    let (_folder, path, mut model) = created(&small());
    for task in tasks(2) {
        learn(&mut model, &task);
    }
    model.prepared().unwrap();
    model.commit().unwrap();
    drop(model);
    assert!(Session::verify(&path).unwrap().is_whole());
    let mut checked = 0;
    for entry in fs::read_dir(&path).unwrap() {
        let file = entry.unwrap().path();
        let bytes = fs::read(&file).unwrap();
        // Every byte of small files, some of large ones, and a missing end.
        let step = (bytes.len() / 60).max(1);
        for at in (0..bytes.len()).step_by(step) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(&file, &damaged).unwrap();
            let found = Session::verify(&path).unwrap().damage;
            assert!(found.iter().any(|e| e.to_string().contains("damaged")), "{file:?}, byte {at}: {found:?}");
            checked += 1;
        }
        if !bytes.is_empty() {
            fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
            assert!(!Session::verify(&path).unwrap().is_whole(), "{file:?} truncated");
        }
        fs::write(&file, bytes).unwrap();
    }
    assert!(checked > 300, "{checked}");
    assert!(Session::verify(&path).unwrap().is_whole());
}

#[test]
fn nothing_is_learned_on_damaged_ground() {
    let (_folder, path, mut model) = created(&small());
    let tasks = tasks(2);
    learn(&mut model, &tasks[0]);
    drop(model);
    let file = path.join("00000001-basis.safetensors");
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 4;
    fs::write(&file, bytes).unwrap();
    let mut model = Session::open_to_write(&path).unwrap();
    let (x, y) = &tasks[1];
    let error = model.learn(Features::new(x, DIM).unwrap(), y).unwrap_err().to_string();
    assert!(error.contains("00000001-basis") && error.contains("damaged"), "{error}");
}

#[test]
fn one_writer_at_a_time_and_readers_see_whole_versions() {
    let (_folder, path, mut writer) = created(&small());
    let error = Session::open_to_write(&path).err().unwrap().to_string();
    assert!(error.contains("another process"), "{error}");
    let tasks = tasks(6);
    learn(&mut writer, &tasks[0]);
    let mut reader = Session::open(&path).unwrap();
    for task in &tasks[1..] {
        learn(&mut writer, task);
    }
    // What a reader has opened stays what it was while it has it in its hands.
    assert_eq!(reader.manifest().samples, EACH);
    assert_eq!(reader.model().unwrap().summary().samples, EACH);
    assert_eq!(Session::open(&path).unwrap().manifest().samples, 6 * EACH);
}

#[test]
fn earlier_versions_are_kept_and_come_back() {
    let (_folder, path, mut model) = created(&soft());
    model.keep(2);
    let mut states = Vec::new();
    for task in tasks(4) {
        learn(&mut model, &task);
        states.push(scores(&path));
    }
    assert_eq!(model.history().iter().map(|old| old.version).collect::<Vec<_>>(), [3, 2]);
    assert_eq!(model.rollback(None).unwrap(), Rolled::Back(3));
    assert_eq!(scores(&path), states[2]);
    assert_eq!(model.manifest().version, 5, "going back is a change like any other");
    learn(&mut model, &tasks(4)[3]);
    assert_eq!(scores(&path), states[3], "and learning goes on from there");
    assert_eq!(model.rollback(None).unwrap(), Rolled::Back(5), "which is version 3 once more");
    assert_eq!(model.rollback(None).unwrap(), Rolled::Back(2), "two versions are kept, so two steps are possible");
    assert_eq!(scores(&path), states[1]);
    assert!(model.rollback(Some(1)).unwrap_err().to_string().contains("kept"));
    assert!(Session::verify(&path).unwrap().is_whole());
}

#[test]
fn a_task_writes_what_is_new_and_not_the_whole_model() {
    let (_folder, path, mut model) = created(&soft());
    model.keep(0);
    let size = |version: u64| {
        let files = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap());
        let new = files.filter(|f| f.file_name().to_string_lossy().starts_with(&format!("{version:08}-")));
        new.map(|f| f.metadata().unwrap().len()).sum::<u64>()
    };
    let mut written = Vec::new();
    for (t, task) in tasks(8).iter().enumerate() {
        learn(&mut model, task);
        written.push(size(t as u64 + 1));
    }
    assert!(written[7] < 2 * written[1], "{written:?}");
}

#[test]
fn small_parts_become_one_and_superseded_files_go() {
    let (_folder, path, mut model) = created(&small());
    model.keep(0);
    let mut most = 0;
    for task in tasks(150) {
        learn(&mut model, &task);
        most = most.max(fs::read_dir(&path).unwrap().count());
    }
    assert!(model.manifest().basis.len() <= 34, "{}", model.manifest().basis.len());
    assert!(most < 300, "{most} files");
    assert!(Session::verify(&path).unwrap().is_whole());
    drop(model);
    assert_eq!(scores(&path), {
        let mut one = Session::in_memory(&small()).unwrap();
        tasks(150).iter().for_each(|(x, y)| one.learn(Features::new(x, DIM).unwrap(), y).unwrap());
        scores_of(&one.classifier().unwrap())
    });
}

#[test]
fn names_can_be_exchanged_in_one_step() {
    let (_folder, path, mut model) = created(&soft());
    learn(&mut model, &tasks(1)[0]);
    let before = scores(&path);
    let [a, b] = [0, 1].map(|class: usize| model.manifest().classes[class].label.clone());
    let other = loranpac::Label::from("other");
    for (from, to) in [(&a, &other), (&b, &a), (&other, &b)] {
        assert!(matches!(model.rename(from, to).unwrap(), Edited::Done { .. }));
    }
    model.commit().unwrap();
    drop(model);
    assert_eq!(scores(&path), before, "indices and numbers are as they were");
    let labels: Vec<_> = Session::open(&path).unwrap().manifest().classes.iter().map(|c| c.label.clone()).collect();
    assert_eq!(labels[..2], [b, a]);
}

/// Infinite width: a task writes its own samples and no more, and a model that was read is the one that was written.
#[test]
fn samples_that_are_kept_are_written_once() {
    let (_folder, path, mut model) = created(&infinite(soft().config));
    let tasks = tasks(4);
    for (t, task) in tasks.iter().enumerate() {
        learn(&mut model, task);
        assert_eq!(model.manifest().kept.len(), t + 1);
        assert_eq!(model.manifest().rank(), (t + 1) * EACH);
    }
    let before = scores_of(&model.classifier().unwrap());
    let summary = model.model().unwrap().summary();
    model.commit().unwrap();
    drop(model);
    let mut model = Session::open_to_write(&path).unwrap();
    assert_eq!(scores_of(&model.classifier().unwrap()), before);
    let again = model.model().unwrap().summary();
    assert_eq!((again.leave_one_out, again.ridge), (summary.leave_one_out, summary.ridge));
    assert!(again.leave_one_out.is_some_and(|share| share > 0.9));
    // A name is not a sample.
    let label = model.manifest().classes[0].label.clone();
    assert!(model.rename(&label, &loranpac::Label::from("other")).is_ok());
    model.commit().unwrap();
    assert_eq!(model.manifest().kept.len(), 4);
    // What is forgotten is gone from the files, too.
    model.keep(0);
    let first: Vec<f32> = tasks[0].0[..DIM].to_vec();
    assert!(contains(&path, &first));
    assert!(model.forget(&loranpac::Label::from("other")).is_ok());
    model.commit().unwrap();
    assert!(!contains(&path, &first));
    drop(model);
    assert!(Session::verify(&path).unwrap().is_whole());
    let mut model = Session::open(&path).unwrap();
    assert_eq!(scores_of(&model.classifier().unwrap()).len() / model.manifest().classes.len(), 5 * EACH);
}

/// Many small tasks do not leave as many files, and a version can be gone back to.
#[test]
fn small_parts_of_samples_become_one() {
    let (_folder, path, mut model) = created(&infinite(soft().config));
    let (x, y) = &tasks(1)[0];
    let mut most = 0;
    for i in 0..40 {
        let x: Vec<f32> = x[..3 * DIM].iter().map(|v| v + 0.01 * i as f32).collect();
        learn(&mut model, &(x, y[..3].to_vec()));
        most = most.max(model.manifest().kept.len());
    }
    assert!(most == 32 && model.manifest().kept.len() < 12, "{most}");
    let before = scores_of(&model.classifier().unwrap());
    model.commit().unwrap();
    learn(&mut model, &tasks(2)[1]);
    assert_ne!(scores_of(&model.classifier().unwrap()), before);
    let _ = model.rollback(None).unwrap();
    assert_eq!(scores_of(&model.classifier().unwrap()), before);
    drop(model);
    assert!(Session::verify(&path).unwrap().is_whole());
    assert_eq!(scores_of(&Session::open(&path).unwrap().classifier().unwrap()), before);
}

fn contains(path: &std::path::Path, numbers: &[f32]) -> bool {
    let wanted: Vec<u8> = numbers.iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut files = fs::read_dir(path).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
    files.any(|bytes| bytes.windows(wanted.len()).any(|window| window == wanted))
}

/// A model of some tasks with its classifier, and its manifest.
fn learned(settings: &Settings, count: usize) -> (TempDir, PathBuf, serde_json::Value) {
    let (folder, path, mut model) = created(settings);
    tasks(count).iter().for_each(|task| learn(&mut model, task));
    model.prepared().unwrap();
    model.commit().unwrap();
    let bytes = fs::read(path.join("MANIFEST")).unwrap();
    let json = &bytes[bytes.iter().position(|b| *b == b'\n').unwrap() + 1..];
    let manifest = serde_json::from_slice(json).unwrap();
    (folder, path, manifest)
}

#[test]
fn a_manifest_of_infinite_width_that_lies_is_refused() {
    let config = loranpac::Config { max_rank: 40, chunk: 20, ..soft().config };
    let (_folder, path, value) = learned(&infinite(config), 4);
    let refused = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut value = value.clone();
        change(&mut value);
        fs::write(path.join("MANIFEST"), signed(&serde_json::to_vec(&value).unwrap())).unwrap();
        Session::open(&path).and_then(|mut model| model.model_unchecked().map(drop)).is_err()
    };
    assert!(!refused(&|_| ()));
    assert!(refused(&|m| m["kept"][0]["samples"] = 7.into()));
    assert!(refused(&|m| m["kept"] = serde_json::json!([])));
    assert!(refused(&|m| m["gone"]["shape"] = serde_json::json!([u64::MAX, u64::MAX])));
    assert!(refused(&|m| m["gone"]["shape"] = serde_json::json!([u64::MAX, 0])));
    assert!(refused(&|m| m["gone"]["orphans"] = u64::MAX.into()));
    assert!(refused(&|m| m["gone"]["error"] = (-1.0).into()));
    assert!(refused(&|m| m["samples"] = 1000.into()));
    assert!(refused(&|m| m["gone"] = serde_json::Value::Null));
    assert!(refused(&|m| m["classes"][0]["count"] = 1.into()));
    assert!(refused(&|m| m["lift"]["name"] = "relu-random".into()));
    assert!(refused(&|m| drop(m["classes"].as_array_mut().unwrap().pop())));
    assert!(refused(&|m| m["config"]["half"] = true.into()));
}

/// Whether some numbers stand anywhere in the files of a model.
fn stands_in(path: &std::path::Path, numbers: &[f32]) -> bool {
    contains(path, &numbers[..16])
}

#[test]
fn what_is_forgotten_or_taken_back_is_not_in_the_files_any_more() {
    let (_folder, path, mut model) = created(&soft());
    model.keep(0);
    let tasks = tasks(3);
    tasks.iter().for_each(|task| learn(&mut model, task));
    let sum = |model: &mut Session, class: usize| match model.model().unwrap() {
        Model::Explicit(model) => model.statistics().label_sum(class).unwrap().to_vec(),
        Model::Kernel(_) => Vec::new(),
    };
    let forgotten = sum(&mut model, 0);
    assert!(stands_in(&path, &forgotten));
    let label = model.manifest().classes[0].label.clone();
    assert!(model.forget(&label).is_ok());
    model.commit().unwrap();
    assert!(!stands_in(&path, &forgotten));
    // The old sums of a class would tell, beside the new ones, what was taken back.
    let (x, y) = &tasks[2];
    let class = model.manifest().classes.iter().position(|class| class.label == y[0]).unwrap();
    let before = sum(&mut model, class);
    assert!(stands_in(&path, &before));
    assert!(model.unlearn(Features::new(&x[..4 * DIM], DIM).unwrap(), &y[..4], false).is_ok());
    model.commit().unwrap();
    assert!(!stands_in(&path, &before));
    drop(model);
    assert!(Session::verify(&path).unwrap().is_whole());
    assert_eq!(Session::open(&path).unwrap().model().unwrap().summary().samples, 3 * EACH - 4);
}

/// A manifest with other contents, and the digest that belongs to them.
fn signed(json: &[u8]) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let digest: String = Sha256::digest(json).iter().map(|byte| format!("{byte:02x}")).collect();
    [format!("loranpac-model 2 {digest}\n").as_bytes(), json].concat()
}

#[test]
fn a_manifest_that_lies_is_refused_or_harmless() {
    let (_folder, path, value) = learned(&small(), 2);
    let refused = |change: &dyn Fn(&mut serde_json::Value), words: &str| {
        let mut value = value.clone();
        change(&mut value);
        fs::write(path.join("MANIFEST"), signed(&serde_json::to_vec(&value).unwrap())).unwrap();
        let error = match Session::open(&path).and_then(|mut model| model.model_unchecked().map(drop)) {
            Err(error) => error.to_string(),
            Ok(()) => panic!("{words}: it was taken"),
        };
        assert!(error.contains(words), "{words}: {error}");
    };
    refused(&|m| m["files"]["../../etc/passwd"] = m["files"]["00000001-basis.safetensors"].clone(), "not a name");
    refused(
        &|m| m["files"]["/elsewhere/x.safetensors"] = m["files"]["00000001-basis.safetensors"].clone(),
        "not a name",
    );
    refused(&|m| drop(m["files"].as_object_mut().unwrap().remove("00000001-basis.safetensors")), "not listed");
    refused(&|m| m["basis"][0]["columns"] = 10_000_000.into(), "more directions");
    refused(&|m| m["basis"][0]["columns"] = 3.into(), "27 directions");
    refused(&|m| m["lift"]["width"] = 59.into(), "lift");
    refused(&|m| m["lift"]["width"] = (1u64 << 60).into(), "too large");
    refused(&|m| m["classes"][1]["label"] = m["classes"][0]["label"].clone(), "same label");
    refused(&|m| m["classes"][1]["sums"] = m["classes"][0]["sums"].clone(), "share");
    refused(&|m| m["classes"][0]["sums"]["row"] = 99.into(), "not of the size");
    refused(&|m| m["samples"] = 1.into(), "more labels");
    refused(&|m| m["gram"][0]["grow"]["rows"] = (u64::MAX).into(), "shrinks");
    refused(&|m| m["gram"] = serde_json::json!([]), "its Gram matrix 0");
    refused(&|m| m["surprise"] = 1.into(), "unknown field");
    refused(&|m| m["lift_digest"] = "00".into(), "lift");
    for temperature in [0.0, -1.0] {
        let calibration = serde_json::json!({ "temperature": temperature, "samples": 1, "classes": 1, "version": 1 });
        refused(&|m| m["calibration"] = calibration.clone(), "temperature");
    }
    refused(&|m| m["losses"]["dropped"] = serde_json::Value::Null, "null");
    refused(&|m| m["losses"]["lost"] = (-1.0).into(), "losses");
    refused(&|m| m["mass"] = (-1.0).into(), "weights");
    refused(&|m| m["mass"] = 3.0.into(), "some of its weights are missing");
    refused(&|m| m["classes"][0]["mass"] = 3.0.into(), "some of its weights are missing");
    fs::write(path.join("MANIFEST"), b"loranpac-model 6 00\n{}").unwrap();
    assert!(matches!(Session::open(&path), Err(Error::Version { .. })));
    // And whatever else the bytes may be: nothing panics.
    let mut random = Random(3);
    let json = serde_json::to_vec_pretty(&value).unwrap();
    for _ in 0..2000 {
        let mut changed = json.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(changed.len());
            match random.below(3) {
                0 => changed[at] = b"0123456789-eE.\"{}[],:\xff"[random.below(22)],
                1 => drop(changed.drain(at..(at + random.below(6)).min(changed.len()))),
                _ => changed.insert(at, b"09-e\"[{"[random.below(7)]),
            }
        }
        fs::write(path.join("MANIFEST"), signed(&changed)).unwrap();
        if let Ok(mut model) = Session::open(&path) {
            let _ = model.model_unchecked().map(drop);
            let _ = model.classifier();
        }
    }
}

#[test]
#[ignore = "writes the corpus of the fuzz targets anew"]
fn write_the_corpus() {
    let fuzz = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let folder = TempDir::new().unwrap();
    let [path, capped] = ["m.lrp", "n.lrp"].map(|name| folder.path().join(name));
    let mut model = Session::create(&path, &tiny()).unwrap();
    let put = |target: &str, name: &str, bytes: &[u8]| {
        fs::create_dir_all(fuzz.join(target)).unwrap();
        fs::write(fuzz.join(target).join(name), bytes).unwrap();
    };
    // The target adds the first line.
    let put_manifest = |path: &std::path::Path, name: &str| {
        let bytes = fs::read(path.join("MANIFEST")).unwrap();
        put("manifest", name, &bytes[bytes.iter().position(|b| *b == b'\n').unwrap() + 1..]);
    };
    for (t, task) in tasks(2).iter().enumerate() {
        put_manifest(&path, &format!("task-{t}"));
        learn(&mut model, task);
    }
    let class = model.manifest().classes[0].label.clone();
    let edited = model.rename(&class, &"new".into()).unwrap();
    assert!(matches!(edited, Edited::Done { .. }));
    let (x, y) = &tasks(1)[0];
    model.calibrate(0.1, &Fingerprint::of(Features::new(x, DIM).unwrap(), y));
    model.prepared().unwrap();
    model.commit().unwrap();
    put_manifest(&path, "edited");
    assert_eq!(model.rollback(None).unwrap(), Rolled::Back(2));
    put_manifest(&path, "restored");
    let config = Config { max_rank: 4, chunk: 4, ..tiny().config };
    let mut infinite = Session::create(&capped, &infinite(config)).unwrap();
    learn(&mut infinite, &tasks(1)[0]);
    put_manifest(&capped, "infinite");
    let inference = loranpac_store::Inference {
        lift: tiny().lift,
        encoder: Default::default(),
        classifier: model.classifier().unwrap().with_temperature(Some(0.1)),
    };
    for (name, precision) in [("single", loranpac_store::Precision::F32), ("half", loranpac_store::Precision::F16)] {
        let file = folder.path().join("x.safetensors");
        inference.save(&file, precision).unwrap();
        put("inference", name, &fs::read(&file).unwrap());
        let file = folder.path().join("x.onnx");
        let options = loranpac_store::onnx::OnnxOptions { precision, ..Default::default() };
        loranpac_store::onnx::export(&inference, &file, &options).unwrap();
        put("onnx", name, &fs::read(&file).unwrap());
    }
}

#[test]
fn a_session_with_a_folder_is_committed_or_copied_but_not_saved() {
    let folder = TempDir::new().unwrap();
    let [path, copy] = ["m.lrp", "copy.lrp"].map(|name| folder.path().join(name));
    let mut model = Session::create(&path, &small()).unwrap();
    learn(&mut model, &tasks(1)[0]);
    assert!(matches!(model.save(&copy, false), Err(Error::HasFolder { .. })));
    model.save_copy(&copy).unwrap();
    learn(&mut model, &tasks(2)[1]);
    assert!(Session::verify(&path).unwrap().is_whole() && Session::verify(&copy).unwrap().is_whole());
    assert_eq!(Session::open(&copy).unwrap().manifest().tasks.len(), 1);
    assert_eq!(Session::open(&path).unwrap().manifest().tasks.len(), 2);
}

#[test]
fn an_empty_model_in_memory_is_saved_to_the_folder_that_it_was_read_from() {
    let (_folder, path, model) = created(&small());
    drop(model);
    let mut model = Session::open(&path).unwrap().into_memory().unwrap();
    let mut other = Session::in_memory(&tiny()).unwrap();
    assert!(matches!(other.save(&path, false), Err(Error::OtherModel { .. })), "its settings differ");
    let (x, y) = &tasks(1)[0];
    model.learn(Features::new(x, DIM).unwrap(), y).unwrap();
    model.save(&path, false).unwrap();
    assert_eq!(scores(&path), scores_of(&model.classifier().unwrap()));
    assert_eq!(Session::open(&path).unwrap().manifest().version, 1);
    assert!(Session::verify(&path).unwrap().is_whole());
}

#[test]
fn a_session_for_a_rollback_reads_an_intact_model() {
    let (_folder, path, mut model) = created(&small());
    learn(&mut model, &tasks(1)[0]);
    model.prepared().unwrap();
    model.commit().unwrap();
    let expected = basis(model.model().unwrap());
    drop(model);
    let mut model = Session::open_to_roll_back(&path).unwrap();
    assert_eq!(scores_of(&model.predictor().unwrap()), scores(&path));
    assert_eq!(basis(model.model().unwrap()), expected);
}
