//! Nothing that a user types, and nothing that happens in between, may cost what was learned.

mod common;

use std::fs;
use std::path::Path;

use common::{json, loranpac, refused, scores, stdout};
use tempfile::TempDir;

/// A folder with samples: `first.csv` (5 classes) and `second.csv` of the fixtures of version 0.1.0.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(TempDir::new().unwrap());
        for name in ["first.csv", "second.csv", "zeros.csv"] {
            fs::copy(fixtures().join(name), place.0.path().join(name)).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// A new model for four features.
    fn model(&self, name: &str, more: &[&str]) -> String {
        let path = self.path(name);
        stdout(&loranpac(&[&["init", &path, "--dim", "4"], more].concat()));
        path
    }

    /// A copy of a model that version 0.1.0 has written.
    fn old_model(&self, name: &str) -> String {
        let path = self.path(name);
        fs::create_dir(&path).unwrap();
        for entry in fs::read_dir(fixtures().join(name)).unwrap().map(|entry| entry.unwrap()) {
            fs::copy(entry.path(), Path::new(&path).join(entry.file_name())).unwrap();
        }
        path
    }
}

fn fixtures() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../loranpac-store/tests/models")
}

fn learn(model: &str, file: &str) -> String {
    stdout(&loranpac(&["learn", model, file]))
}

fn verify(model: &str) {
    assert!(stdout(&loranpac(&["verify", model])).contains("every byte"));
}

#[track_caller]
fn close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    let apart = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart < tolerance, "{apart:e}");
}

fn inspect(model: &str) -> serde_json::Value {
    json(&["inspect", model, "--json"])
}

/// What `inspect` says in one line about the training error.
fn verdict(model: &str) -> String {
    inspect(model)["verdict"]["line"].as_str().unwrap().to_owned()
}

#[test]
fn models_of_odd_sizes_open_again() {
    let place = Place::new();
    let (first, second) = (place.path("first.csv"), place.path("second.csv"));
    for (name, options) in
        [("odd.lrp", &["--width", "31"][..]), ("identity.lrp", &["--lift", "identity"]), ("one.lrp", &["--width", "1"])]
    {
        let model = place.model(name, options);
        learn(&model, &first);
        verify(&model);
        learn(&model, &second);
        // Down to one class: an odd number of everything.
        for class in ["c0", "c1", "c2", "c3", "c4", "c5"] {
            stdout(&loranpac(&["forget", &model, class]));
            verify(&model);
        }
        assert_eq!(inspect(&model)["classes"].as_array().unwrap().len(), 1);
    }
    let nine = place
        .file("nine.csv", "a,b,c,d,e,f,g,h,i,label\n1,2,3,4,5,6,7,8,9,x\n9,8,7,6,5,4,3,2,1,y\n1,0,1,0,1,0,1,0,1,z\n");
    let model = place.path("nine.lrp");
    stdout(&loranpac(&["init", &model, "--like", &nine, "--lift", "identity"]));
    learn(&model, &nine);
    verify(&model);
}

#[test]
fn models_of_version_0_1_0_open_learn_on_and_merge() {
    let place = Place::new();
    let (first, second) = (place.path("first.csv"), place.path("second.csv"));
    for (name, options, both) in [
        ("odd.lrp", &["--width", "31"][..], false),
        ("identity.lrp", &["--lift", "identity"], false),
        ("even.lrp", &["--width", "30"], true),
        ("hard.lrp", &["--width", "30", "--filter", "hard", "--schedule", "paper"], true),
        ("infinite.lrp", &["--width", "infinite"], true),
    ] {
        let old = place.old_model(name);
        verify(&old);
        let same = place.model(&format!("same-{name}"), options);
        learn(&same, &first);
        if both {
            learn(&same, &second);
        }
        close(&scores(&old, &first), &scores(&same, &first), 5e-5);
        if !both {
            learn(&old, &second);
            learn(&same, &second);
            close(&scores(&old, &first), &scores(&same, &first), 5e-5);
        }
        verify(&old);
        let other = place.model(&format!("other-{name}"), options);
        learn(&other, &place.file("third.csv", "a,b,c,d,label\n1,2,0.5,-1,new\n0.3,-2,1,1,newer\n"));
        let all = place.path(&format!("all-{name}"));
        stdout(&loranpac(&["merge", &old, &other, "-o", &all]));
        verify(&all);
        assert_eq!(inspect(&all)["samples"], 29);
    }
    // Its bound on dropped residuals was lost; everything else is there.
    let null = place.old_model("null.lrp");
    verify(&null);
    assert_eq!(inspect(&null)["samples"], 17);
    learn(&null, &second);
    verify(&null);
}

#[test]
fn samples_without_a_residual_leave_a_model_that_opens() {
    let place = Place::new();
    let first = place.path("first.csv");
    let tiny = place.file("tiny.csv", "a,b,c,d,label\n1e-37,0,0,1e-37,c0\n1e-37,0,0,1e-37,c1\n");
    let twins = place.file("twins.csv", "a,b,c,d,label\n0,1,0,0,c0\n0,1,0,0,c1\n");
    for odd in [place.path("zeros.csv"), tiny, twins] {
        for options in [&["--width", "30"][..], &["--lift", "identity"], &["--width", "infinite"]] {
            let model = place.model("m.lrp", options);
            learn(&model, &first);
            learn(&model, &odd);
            verify(&model);
            assert_eq!(inspect(&model)["samples"], 17);
            fs::remove_dir_all(model).unwrap();
        }
    }
}

#[test]
fn merging_the_same_samples_again_leaves_a_model_that_opens() {
    let place = Place::new();
    let (first, zeros) = (place.path("first.csv"), place.path("zeros.csv"));
    for width in ["3", "8", "31"] {
        let [a, b] = ["a.lrp", "b.lrp"].map(|name| place.model(name, &["--width", width]));
        for model in [&a, &b] {
            learn(model, &first);
            learn(model, &zeros);
        }
        let both = place.path("both.lrp");
        stdout(&loranpac(&["merge", &a, &b, "-o", &both, "--again"]));
        verify(&both);
        // Repeated, it changes nothing.
        let text = stdout(&loranpac(&["merge", &a, &b, "-o", &both, "--again"]));
        assert!(text.contains("already merged"), "{text}");
        refused(&["merge", &a, &b, "-o", &both], &["both.lrp", "exists already"]);
        [a, b, both].iter().for_each(|model| fs::remove_dir_all(model).unwrap());
    }
}

#[test]
fn a_relabelling_that_is_repeated_changes_nothing() {
    let place = Place::new();
    let first = place.path("first.csv");
    let text = fs::read_to_string(&first).unwrap();
    let some: Vec<&str> = text.lines().take(6).collect();
    let some = place.file("some.csv", &(some.join("\n") + "\n"));
    for width in ["6", "100", "infinite"] {
        let model = place.model("m.lrp", &["--width", width]);
        learn(&model, &first);
        stdout(&loranpac(&["relabel", &model, &some, "--to", "zz"]));
        let (before, once) = (inspect(&model), scores(&model, &first));
        for _ in 0..2 {
            let text = stdout(&loranpac(&["relabel", &model, &some, "--to", "zz"]));
            assert!(text.contains("already applied") && text.contains("--again"), "{text}");
            assert_eq!(inspect(&model), before);
        }
        assert_eq!(scores(&model, &first), once);
        // Back and forth is no repetition.
        stdout(&loranpac(&["relabel", &model, &some, "--from", "zz", "--to", "yy"]));
        let text = stdout(&loranpac(&["relabel", &model, &some, "--from", "zz", "--to", "yy"]));
        assert!(text.contains("already applied"), "{text}");
        stdout(&loranpac(&["relabel", &model, &some, "--from", "yy", "--to", "zz"]));
        close(&scores(&model, &first), &once, 1e-4);
        fs::remove_dir_all(model).unwrap();
    }
}

#[test]
fn samples_are_taken_back_once() {
    let place = Place::new();
    let (first, second) = (place.path("first.csv"), place.path("second.csv"));
    for width in ["6", "100", "infinite"] {
        let model = place.model("m.lrp", &["--width", width]);
        learn(&model, &first);
        learn(&model, &second);
        stdout(&loranpac(&["unlearn", &model, &second]));
        let before = inspect(&model);
        let text = stdout(&loranpac(&["unlearn", &model, &second]));
        assert!(text.contains("already applied"), "{text}");
        assert_eq!(inspect(&model), before);
        assert!(verdict(&model).contains("exact"), "a file that was learned can be taken back exactly");
        // Learned again in other pieces, they may be in the model again: only the user can tell.
        stdout(&loranpac(&["learn", &model, &second, "--task-size", "5"]));
        refused(&["unlearn", &model, &second], &["applied before", "--again"]);
        stdout(&loranpac(&["unlearn", &model, &second, "--again"]));
        assert_eq!(inspect(&model)["samples"], 15);
        // Learned again, they can be taken back again.
        learn(&model, &second);
        let text = stdout(&loranpac(&["unlearn", &model, &second]));
        assert!(text.contains("unlearned"), "{text}");
        assert_eq!(inspect(&model)["samples"], 15);
        fs::remove_dir_all(model).unwrap();
    }
}

#[test]
fn what_cannot_be_checked_is_not_called_exact() {
    let place = Place::new();
    let never = place.file("never.csv", "a,b,c,d,label\n0.1,0.2,0.1,-0.1,c0\n-0.1,0.1,0.2,0.1,c1\n");
    for command in [&["unlearn"][..], &["relabel", "--to", "zz"]] {
        // The basis is full: every sample lies in it.
        let model = place.model("m.lrp", &["--width", "5"]);
        learn(&model, &place.path("first.csv"));
        assert!(verdict(&model).contains("exact"));
        let output = loranpac(&[&[command[0], &model, &never], &command[1..]].concat());
        let notes = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && notes.contains("could not check"), "{notes}");
        assert!(!verdict(&model).contains("exact"), "{}", verdict(&model));
        fs::remove_dir_all(&model).unwrap();
        // In a wide model they are known to be unknown.
        let model = place.model("m.lrp", &["--width", "100"]);
        learn(&model, &place.path("first.csv"));
        refused(&[&[command[0], &model, &never], &command[1..]].concat(), &["never learned"]);
        fs::remove_dir_all(model).unwrap();
    }
}

#[test]
fn what_one_model_has_taken_back_another_may_have_learned() {
    let place = Place::new();
    let (first, second) = (place.path("first.csv"), place.path("second.csv"));
    let [p, q] = ["p.lrp", "q.lrp"].map(|name| place.model(name, &["--width", "64"]));
    for file in [&first, &second] {
        learn(&p, file);
    }
    stdout(&loranpac(&["unlearn", &p, &second]));
    stdout(&loranpac(&["calibrate", &p, &second]));
    learn(&q, &second);
    let both = place.path("pq.lrp");
    stdout(&loranpac(&["merge", &p, &q, "-o", &both]));
    refused(&["unlearn", &both, &second], &["applied before", "--again"]);
    stdout(&loranpac(&["unlearn", &both, &second, "--again"]));
    assert_eq!(inspect(&both)["samples"], 15);
    stdout(&loranpac(&["calibrate", &both, &second]));
    assert!(inspect(&both)["calibration"]["temperature"].is_number());
}

#[test]
fn samples_that_are_taken_back_twice_are_not_vouched_for() {
    let place = Place::new();
    let (first, second) = (place.path("first.csv"), place.path("second.csv"));
    let text = fs::read_to_string(&first).unwrap();
    let some: Vec<&str> = text.lines().take(4).collect();
    let some = place.file("some.csv", &(some.join("\n") + "\n"));
    let model = place.model("m.lrp", &["--width", "30"]);
    learn(&model, &first);
    stdout(&loranpac(&["unlearn", &model, &some]));
    learn(&model, &some);
    stdout(&loranpac(&["unlearn", &model, &some]));
    learn(&model, &second);
    let output = loranpac(&["unlearn", &model, &first]);
    assert!(!output.status.success() || !verdict(&model).contains("exact"), "{}", verdict(&model));
}

#[test]
fn every_editing_command_can_be_repeated() {
    let place = Place::new();
    let first = place.path("first.csv");
    let model = place.model("m.lrp", &["--width", "40"]);
    // A new model is what a repeated init finds; one that has learned is not touched.
    stdout(&loranpac(&["init", &model, "--dim", "4", "--width", "40"]));
    refused(&["init", &model, "--dim", "4", "--width", "41"], &["m.lrp", "exists already"]);
    learn(&model, &first);
    refused(&["init", &model, "--dim", "4", "--width", "40"], &["exists already"]);
    for command in [&["forget", &model, "c4"][..], &["rename", &model, "c3", "third"], &["calibrate", &model, &first]] {
        stdout(&loranpac(command));
        let before = inspect(&model);
        stdout(&loranpac(command));
        assert_eq!(inspect(&model), before, "{command:?}");
    }
    refused(&["forget", &model, "c3"], &["no class"]);
    let version = inspect(&model)["version"].as_u64().unwrap();
    let earlier = (version - 1).to_string();
    stdout(&loranpac(&["rollback", &model, "--to", &earlier]));
    let before = inspect(&model);
    let text = stdout(&loranpac(&["rollback", &model, "--to", &earlier]));
    assert!(text.contains("already"), "{text}");
    assert_eq!(inspect(&model), before);
}

#[test]
fn going_back_goes_further_back_each_time() {
    let place = Place::new();
    let model = place.model("m.lrp", &["--width", "20", "--keep", "3"]);
    for i in 1..4 {
        learn(&model, &place.file("x.csv", &format!("a,b,c,d,label\n{i},1,2,3,c{i}\n1,{i},0,2,d\n")));
    }
    let samples = || inspect(&model)["samples"].as_u64().unwrap();
    // Three versions are kept, so three steps are possible.
    for expected in [4, 2, 0] {
        stdout(&loranpac(&["rollback", &model]));
        assert_eq!(samples(), expected);
        verify(&model);
    }
    refused(&["rollback", &model], &["no version to go back to"]);
    // What was rolled back can be restored, until something is learned.
    stdout(&loranpac(&["rollback", &model, "--to", "3"]));
    assert_eq!(samples(), 6);
    stdout(&loranpac(&["rollback", &model]));
    assert_eq!(samples(), 4);
    learn(&model, &place.file("x.csv", "a,b,c,d,label\n9,1,2,3,c9\n"));
    assert_eq!(samples(), 5);
    for expected in [4, 2, 0] {
        stdout(&loranpac(&["rollback", &model]));
        assert_eq!(samples(), expected);
    }
    verify(&model);
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_a_link() {
    let place = Place::new();
    let victim = place.file("victim", "precious");
    let link = |model: &str, name: &str| {
        let path = Path::new(model).join(name);
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink("../victim", path).unwrap();
    };
    for name in
        ["MANIFEST.new", "00000002-basis.safetensors", "00000002-classes.safetensors", "00000002-weights.safetensors"]
    {
        let model = place.model("m.lrp", &["--width", "20"]);
        learn(&model, &place.path("first.csv"));
        // With an unreadable version, nothing is cleared away beforehand.
        fs::write(Path::new(&model).join("MANIFEST.00000000"), "garbage").unwrap();
        link(&model, name);
        learn(&model, &place.path("second.csv"));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{name}");
        fs::remove_dir_all(model).unwrap();
    }
    for name in ["MANIFEST", "LOCK", "00000001-basis.safetensors"] {
        let model = place.model("m.lrp", &["--width", "20"]);
        learn(&model, &place.path("first.csv"));
        link(&model, name);
        refused(&["learn", &model, &place.path("second.csv")], &[name, "symbolic link"]);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{name}");
        fs::remove_dir_all(model).unwrap();
    }
}

#[test]
fn files_of_others_in_a_models_folder_stay() {
    let place = Place::new();
    let model = place.model("m.lrp", &["--width", "20", "--keep", "0"]);
    learn(&model, &place.path("first.csv"));
    let mine =
        ["mine.safetensors", "00000001-mine.safetensors", "99999999-basis.safetensors", "notes.txt", "MANIFEST.7"];
    mine.iter().for_each(|name| fs::write(Path::new(&model).join(name), "mine").unwrap());
    // Something that a commit of ours has left.
    fs::write(Path::new(&model).join("00000002-gone.safetensors"), "left").unwrap();
    learn(&model, &place.path("second.csv"));
    for name in mine {
        assert_eq!(fs::read_to_string(Path::new(&model).join(name)).unwrap(), "mine", "{name}");
    }
    assert!(!Path::new(&model).join("00000002-gone.safetensors").exists());
    verify(&model);
}

#[test]
fn answers_are_not_written_into_a_model() {
    let place = Place::new();
    let model = place.model("m.lrp", &["--width", "20"]);
    learn(&model, &place.path("first.csv"));
    let inside = format!("{model}/MANIFEST");
    refused(&["predict", &model, &place.path("second.csv"), "-o", &inside], &["inside a model"]);
    refused(&["export", &model, &format!("{model}/x.safetensors")], &["inside a model"]);
    verify(&model);
}

#[test]
fn verify_tells_damage_from_what_it_cannot_know() {
    let place = Place::new();
    let make = || {
        let model = place.model("m.lrp", &["--width", "20"]);
        learn(&model, &place.path("first.csv"));
        model
    };
    let check = |model: String, code: i32, kind: &str| {
        let output = loranpac(&["verify", &model, "--json"]);
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["whole"], false);
        for other in ["damage", "unreadable", "newer"] {
            assert_eq!(found[other].as_array().unwrap().is_empty(), other != kind, "{found}");
        }
        fs::remove_dir_all(model).unwrap();
    };
    let model = make();
    fs::remove_file(Path::new(&model).join("00000001-basis.safetensors")).unwrap();
    check(model, 3, "damage");
    let model = make();
    fs::write(Path::new(&model).join("MANIFEST"), "loranpac-model 99 00\n{}").unwrap();
    check(model, 5, "newer");
}

#[test]
fn earlier_versions_that_cannot_be_deleted_are_not_called_deleted() {
    for name in ["MANIFEST.00000001", "00000001-weights.safetensors"] {
        let place = Place::new();
        let model = place.model("m.lrp", &["--width", "20", "--keep", "2"]);
        learn(&model, &place.path("first.csv"));
        learn(&model, &place.path("second.csv"));
        // A folder of that name cannot be removed like a file.
        let kept = Path::new(&model).join(name);
        fs::remove_file(&kept).unwrap();
        fs::create_dir(&kept).unwrap();
        refused(&["rollback", &model, "--drop"], &[name]);
    }
}
