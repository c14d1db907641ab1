//! `loranpac adapt`: an adapter is the same file every time, and changes the features of its encoder alone.

mod common;

use std::fs;
use std::path::Path;

use common::raw::{images, vit};
use common::{loranpac, refused, stdout};
use tempfile::TempDir;

struct World {
    folder: TempDir,
}

impl World {
    fn new() -> World {
        let folder = TempDir::new().unwrap();
        vit(&folder.path().join("vit"), 1);
        images(folder.path());
        World { folder }
    }

    fn place(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Arguments of `adapt` with few epochs.
    fn adapt(&self, out: &str, more: &[&str]) -> Vec<String> {
        let [encoder, photos, out] = [self.place("vit"), self.place("photos"), self.place(out)];
        let words = ["adapt", &encoder, &photos, "-o", &out, "--epochs", "3", "--batch", "3", "--held-out", "2"];
        words.iter().chain(more).map(|word| (*word).to_owned()).collect()
    }
}

fn run(words: &[String]) -> std::process::Output {
    loranpac(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn an_adapter_is_repeatable_and_embed_uses_it() {
    let world = World::new();
    for module in ["adapter", "lora", "vpt-deep", "vpt-shallow", "ssf"] {
        let words = stdout(&run(&world.adapt("a.safetensors", &["--module", module, "--threads", "1"])));
        assert!(words.contains("a.safetensors: ") && words.contains("held-out accuracy"), "{words}");
        assert_eq!(words.contains("Next: loranpac init MODEL"), !words.contains("does not help"), "{words}");
        stdout(&run(&world.adapt("b.safetensors", &["--module", module, "--threads", "2"])));
        let [a, b] = ["a", "b"].map(|name| fs::read(world.place(&format!("{name}.safetensors"))).unwrap());
        assert!(a == b, "{module}: threads change the file");
        let embed = |out: &str, more: &[&str]| {
            let [encoder, photos, out] = [world.place("vit"), world.place("photos"), world.place(out)];
            let words = ["embed", &encoder, &photos, "-o", &out, "--no-cache", "--json"];
            let json = stdout(&loranpac(&words.into_iter().chain(more.iter().copied()).collect::<Vec<_>>()));
            serde_json::from_str::<serde_json::Value>(&json).unwrap()
        };
        let adapter = world.place("a.safetensors");
        let (frozen, adapted) = (embed("f.npz", &[]), embed("a.npz", &["--adapter", &adapter]));
        let both = embed("c.npz", &["--adapter", &adapter, "--concat"]);
        assert_ne!(frozen["digest"], adapted["digest"]);
        assert_eq!((&adapted["dim"], &both["dim"]), (&8.into(), &16.into()));
        assert_ne!(fs::read(world.place("f.npz")).unwrap(), fs::read(world.place("a.npz")).unwrap());
    }
}

#[test]
fn a_model_finds_the_adapter_that_it_was_made_with() {
    let world = World::new();
    stdout(&run(&world.adapt("a.safetensors", &[])));
    stdout(&run(&world.adapt("other.safetensors", &["--seed", "7"])));
    let [encoder, photos, adapter] = ["vit", "photos", "a.safetensors"].map(|name| world.place(name));
    let [other, moved] = ["other.safetensors", "moved.safetensors"].map(|name| world.place(name));
    for (model, more) in [("m.lrp", &[][..]), ("both.lrp", &["--concat"])] {
        let model = world.place(model);
        let words = ["init", &model, "--encoder", &encoder, "--adapter", &adapter, "--width", "100"];
        stdout(&loranpac(&[&words[..], more].concat()));
        assert!(stdout(&loranpac(&["inspect", &model])).contains("adapted by "));
        stdout(&loranpac(&["learn", &model, &photos, "--no-cache"]));
        stdout(&loranpac(&["eval", &model, &photos, "--no-cache", "--encoder", &encoder]));
        refused(&["eval", &model, &photos, "--no-cache", "--adapter", &other], &["digest"]);
        // Elsewhere under another name, it must be given.
        fs::rename(&adapter, &moved).unwrap();
        refused(&["eval", &model, &photos, "--no-cache"], &["is not found", "a.safetensors"]);
        stdout(&loranpac(&["eval", &model, &photos, "--no-cache", "--adapter", &moved]));
        fs::rename(&moved, &adapter).unwrap();
        // Beside the model it is found.
        let elsewhere = world.folder.path().join(format!("elsewhere{}", more.len()));
        fs::create_dir(&elsewhere).unwrap();
        fs::copy(&adapter, elsewhere.join("a.safetensors")).unwrap();
        let beside = elsewhere.join("m.lrp").display().to_string();
        fs::rename(&model, &beside).unwrap();
        fs::rename(&adapter, &moved).unwrap();
        stdout(&loranpac(&["eval", &beside, &photos, "--no-cache"]));
        fs::rename(&moved, &adapter).unwrap();
    }
}

#[test]
fn what_cannot_be_adapted_is_refused() {
    let world = World::new();
    let check = |words: &[String], expected: &str| {
        refused(&words.iter().map(String::as_str).collect::<Vec<_>>(), &[expected]);
    };
    check(&world.adapt("a.npz", &[]), "must end with .safetensors");
    check(&world.adapt("absent/a.safetensors", &[]), "its folder does not exist");
    check(&world.adapt("a.safetensors", &["--classes", "1"]), "samples of two classes or more");
    check(&world.adapt("a.safetensors", &["--rate", "0"]), "--rate");
    check(
        &world.adapt("a.safetensors", &["--module", "ssf", "--size", "3"]),
        "--size: it has no effect with the module ssf",
    );
    let mut words = world.adapt("a.safetensors", &[]);
    words[1] = "image-basic".to_owned();
    check(&words, "cannot be adapted");
    check(&world.adapt("vit/model.safetensors", &[]), "it is an input of the command");
    // An adapter of other weights.
    stdout(&run(&world.adapt("a.safetensors", &[])));
    vit(Path::new(&world.place("other")), 5);
    let [other, photos, adapter, out] = ["other", "photos", "a.safetensors", "f.npz"].map(|name| world.place(name));
    let words = ["embed", &other, &photos, "-o", &out, "--no-cache", "--adapter", &adapter];
    refused(&words, &["it belongs to the encoder"]);
}

#[test]
fn only_if_better_writes_nothing_if_it_is_not() {
    let world = World::new();
    // A rate at which nothing changes.
    let words = stdout(&run(&world.adapt("a.safetensors", &["--only-if-better", "--rate", "1e-12"])));
    assert!(words.contains("not written") && words.contains("does not help"), "{words}");
    assert!(!Path::new(&world.place("a.safetensors")).exists());
    let left: Vec<_> = fs::read_dir(world.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("checkpoint")), "{left:?}");
}

#[test]
fn runs_adapt_the_encoder_to_their_tasks() {
    let world = World::new();
    let [encoder, photos, cache] = ["vit", "photos", "cache"].map(|name| world.place(name));
    let runs = |more: &[&str]| -> serde_json::Value {
        let words = ["run", "--data", &photos, "--encoder", &encoder, "--cache", &cache, "--json", "-", "--inc", "2"];
        let words =
            [&words[..], &["--width", "30", "--adapt-epochs", "2", "--adapt-batch", "3", "--quiet"], more].concat();
        serde_json::from_str(&stdout(&loranpac(&words))).unwrap()
    };
    let found = runs(&["--method", "simplecil,adam,ease,loranpac-soft"]);
    let dims: Vec<_> = found["runs"].as_array().unwrap().iter().map(|run| run["dataset"]["dim"].clone()).collect();
    assert_eq!(dims, [8, 16, 8, 8], "both features for adam, a subspace per task for ease");
    let kept = || fs::read_dir(Path::new(&cache).join("adapters")).unwrap().count();
    assert_eq!(kept(), 1, "adam and ease train the same adapter for a stream of one task");
    let adapted = runs(&["--method", "simplecil", "--adapt", "adapter", "--adapt-features", "both"]);
    assert_eq!((&adapted["runs"][0]["dataset"]["dim"], kept()), (&16.into(), 1));
    assert_eq!(
        adapted["runs"][0]["accuracy_matrix"], found["runs"][1]["accuracy_matrix"],
        "adam is class means on both"
    );
    runs(&["--method", "simplecil", "--adapt", "ssf", "--per-class", "2"]);
    assert_eq!(kept(), 2);
    // Features alone cannot be adapted, and neither can other encoders.
    refused(&["run", "--data", "digits", "--method", "ease"], &["ease adapts the encoder", "--encoder"]);
    let basic = ["run", "--data", &photos, "--encoder", "image-basic", "--cache", &cache, "--adapt", "lora"];
    refused(&basic, &["adapts the encoder"]);
}
