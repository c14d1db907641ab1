//! `loranpac adapt`: an adapter is the same file every time, and changes the features of its encoder alone.

mod common;

use std::fs;
use std::path::Path;

use common::raw::{bitmap, images, vit};
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
        let helps = !words.contains("does not help") && !words.contains("cannot tell");
        assert_eq!(words.contains("Next: loranpac init MODEL"), helps, "{words}");
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
    refused(&["init", &world.place("d.lrp"), "--dim", "8", "--adapter", &adapter], &["--adapter needs the encoder"]);
    for (model, more) in [("m.lrp", &[][..]), ("both.lrp", &["--concat"])] {
        let model = world.place(model);
        let words = ["init", &model, "--encoder", &encoder, "--adapter", &adapter, "--width", "100"];
        stdout(&loranpac(&[&words[..], more].concat()));
        assert!(stdout(&loranpac(&["inspect", &model])).contains("adapted by "));
        stdout(&loranpac(&["learn", &model, &photos, "--no-cache"]));
        stdout(&loranpac(&["eval", &model, &photos, "--no-cache", "--encoder", &encoder]));
        let another = ["other.safetensors is not the one of the model", "digest"];
        refused(&["eval", &model, &photos, "--no-cache", "--adapter", &other], &another);
        // Elsewhere under another name, it must be given.
        fs::rename(&adapter, &moved).unwrap();
        let missing = ["the adapter", "a.safetensors of the model is not found; give its place with --adapter"];
        refused(&["eval", &model, &photos, "--no-cache"], &missing);
        // Another one in its place, or no adapter.
        for (contents, reason) in [(fs::read(&other).unwrap(), "digest"), (b"damaged".to_vec(), "a.safetensors")] {
            fs::write(&adapter, contents).unwrap();
            refused(&["eval", &model, &photos, "--no-cache"], &["a.safetensors is not the one of the model", reason]);
        }
        fs::remove_file(&adapter).unwrap();
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
        // Also while another one is in its recorded place.
        fs::copy(&other, &adapter).unwrap();
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
    check(&world.adapt("nan.safetensors", &["--rate", "1e30"]), "lower --rate");
    stdout(&run(&world.adapt("patient.safetensors", &["--patience", &usize::MAX.to_string()])));
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
    assert!(words.contains("not written") && words.contains("cannot tell whether adaptation helps"), "{words}");
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
    refused(&["run", "--data", "digits", "--method", "ease"], &["ease trains inside the encoder", "--encoder"]);
    let basic = ["run", "--data", &photos, "--encoder", "image-basic", "--cache", &cache, "--adapt", "lora"];
    refused(&basic, &["trains inside the encoder"]);
}

#[test]
fn runs_of_prompt_methods_learn_from_images_and_are_repeatable() {
    let world = World::new();
    let [encoder, photos, cache] = ["vit", "photos", "cache"].map(|name| world.place(name));
    let words = ["run", "--data", &photos, "--encoder", &encoder, "--json", "-", "--inc", "1"];
    let few = ["--set", "epochs=2", "--set", "batch=3", "--set", "length=2", "--width", "30", "--quiet"];
    let runs = |more: &[&str]| -> serde_json::Value {
        let words = [&words[..], &few, &["--method", "l2p,dualprompt,codaprompt,simplecil"], more].concat();
        serde_json::from_str(&stdout(&loranpac(&words))).unwrap()
    };
    let found = runs(&["--threads", "1", "--cache", &cache]);
    let again = runs(&["--threads", "2", "--no-cache"]);
    // The results are kept beside the features, as adapters are.
    let kept = runs(&["--threads", "2", "--cache", &cache]);
    for run in 0..3 {
        assert_eq!(kept["runs"][run]["tasks"], found["runs"][run]["tasks"], "with the times of the first command");
    }
    for (at, name) in ["l2p", "dualprompt", "codaprompt", "simplecil"].into_iter().enumerate() {
        let run = &found["runs"][at];
        assert_eq!((&run["method"], run["tasks"].as_array().unwrap().len()), (&name.into(), 2));
        assert!(run["final_accuracy"].is_number() && run["forgetting"].is_number(), "{run}");
        assert_eq!(run["accuracy_matrix"], again["runs"][at]["accuracy_matrix"], "{name}");
        assert_eq!(run["tasks"][1]["classes_seen"], 2);
    }
    assert_eq!(found["runs"][0]["config"]["method"]["epochs"], 2);
    runs(&["--per-class", "2", "--set", "augment=false", "--cache", &cache]);

    let words = [&words[..], &["--cache", &cache]].concat();
    let wrong = |more: &[&str], expected: &[&str]| refused(&[&words[..], more].concat(), expected);
    wrong(&["--method", "l2p", "--set", "epochs=x"], &["epochs"]);
    wrong(&["--method", "l2p", "--set", "top=11"], &["--set top: ", "pool"]);
    wrong(&["--method", "codaprompt", "--set", "pool=1"], &["--set pool", "2 tasks"]);
    wrong(&["--method", "dualprompt", "--set", "top=1"], &["top"]);
    refused(&["run", "--data", "digits", "--method", "l2p"], &["l2p trains inside the encoder", "--encoder"]);
}

/// Images of four classes, in `sets/colours`.
fn colours(world: &World) -> String {
    let root = world.folder.path().join("sets").join("colours");
    let classes = [("red", [0, 0, 200]), ("green", [0, 200, 0]), ("blue", [200, 0, 0]), ("grey", [90, 90, 90])];
    for (class, colour) in classes {
        for number in 0..6 {
            let split = if number < 4 { "train" } else { "test" };
            bitmap(&root.join(split).join(class).join(format!("{number}.bmp")), colour, number * 3);
        }
    }
    root.display().to_string()
}

#[test]
fn a_run_chooses_between_frozen_and_adapted_features_and_records_why() {
    let world = World::new();
    let (encoder, cache, colours) = (world.place("vit"), world.place("cache"), colours(&world));
    let run = |data: &str, more: &[&str]| -> (serde_json::Value, String) {
        let words =
            ["run", "--data", data, "--encoder", &encoder, "--cache", &cache, "--method", "simplecil", "--inc", "4"];
        let adapt = if more.is_empty() { &[][..] } else { &["--adapt-epochs", "2", "--adapt-batch", "3"] };
        let words = [&words[..], adapt, &["--json", "-"], more].concat();
        let output = loranpac(&words);
        let mut found: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        (found["runs"][0].take(), String::from_utf8(output.stderr).unwrap())
    };
    let chosen = ["--adapt", "lora", "--adapt-features", "chosen"];
    // A rate at which nothing changes: there is no reason to adapt.
    let (found, notes) = run(&colours, &[&chosen[..], &["--adapt-rate", "1e-12"]].concat());
    let choice = &found["adapt_choice"];
    assert_eq!((&choice["chosen"], &choice["samples"]), (&"frozen".into(), &16.into()), "{choice}");
    assert_eq!(choice["measured"][1]["one_shot"], choice["measured"][0]["one_shot"]);
    assert!(notes.contains("choosing, half 2 of 2") && notes.contains("frozen features are used"), "{notes}");
    let frozen = run(&colours, &[]).0;
    assert_eq!(found["accuracy_matrix"], frozen["accuracy_matrix"]);
    assert!(frozen.get("adapt_choice").is_none() && found["config"]["spec"]["adapt_features"] == "chosen");
    // Whatever is chosen at another rate, the run is the one on those features.
    let (found, _) = run(&colours, &[&chosen[..], &["--adapt-rate", "0.5"]].concat());
    let same = match found["adapt_choice"]["chosen"].as_str().unwrap() {
        "frozen" => frozen,
        kind => run(&colours, &["--adapt", "lora", "--adapt-rate", "0.5", "--adapt-features", kind]).0,
    };
    assert_eq!(
        (&found["accuracy_matrix"], &found["dataset"]["dim"]),
        (&same["accuracy_matrix"], &same["dataset"]["dim"])
    );
    // Two classes are too few to leave some out.
    let (found, notes) = run(&world.place("photos"), &chosen);
    assert_eq!(found["adapt_choice"]["samples"], 0);
    assert!(notes.contains("four classes or more"), "{notes}");
}

#[test]
fn a_recipe_on_images_adapts_the_encoder_and_resumes() {
    let world = World::new();
    let (encoder, cache, out, recipe) =
        (world.place("vit"), world.place("cache"), world.place("out"), world.place("mine.toml"));
    colours(&world);
    let text = "title = \"t\"\ndata = [\"colours\"]\n[defaults]\ninc = 2\nadapt-epochs = 2\n[[runs]]\nmethod = [\"adam\", \"ease\"]\n\
                [[runs]]\nmethod = \"simplecil\"\nadapt = [\"none\", \"ssf\"]\n\
                [[tables]]\ntitle = \"t\"\nrows = [\"method\", \"adapt\"]\ncolumns = [\"data\"]\nvalue = \"final\"\n";
    fs::write(&recipe, text).unwrap();
    let sets = world.place("sets");
    let bench_with = |more: &[&str]| {
        let words = ["bench", &recipe, "--images", &sets, "--encoder", &encoder, "--cache", &cache, "--out", &out];
        let output = loranpac(&[&words[..], more].concat());
        (stdout(&output), String::from_utf8(output.stderr).unwrap())
    };
    let bench = || bench_with(&[]);
    let (words, notes) = bench_with(&["--frozen"]);
    assert!(words.contains("1 run,") && !notes.contains("training inside"), "{words}{notes}");
    let images = ["bench", &recipe, "--images", &sets, "--encoder", &encoder, "--cache", &cache, "--out", &out];
    refused(&[&images[..], &["--method", "l2p"]].concat(), &["no such runs"]);
    refused(&[&images[..], &["--method", "l3p"]].concat(), &["l3p"]);
    fs::remove_dir_all(&out).unwrap();
    let (words, notes) = bench();
    assert!(words.contains("4 runs") && words.contains("ssf"), "{words}");
    assert!(!notes.contains("left out"), "{notes}");
    let place = |words: &str| notes.find(words).unwrap_or_else(|| panic!("{words}: {notes}"));
    // The forecast comes first, with encoding and a line for each row.
    assert!(place("training inside the encoder takes about") < place("colours: 0 of 24 samples encoded"));
    assert!(place("and encoding as it is") < place("note: adam (adapter): "));
    assert!(place("note: ease (adapter): ") < place("note: simplecil (ssf): "));
    assert!(place("note: simplecil (ssf): ") < place("--method ease"));
    // A run that is missing is made again with the adapters that were kept.
    let runs = fs::read_dir(Path::new(&out).join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let ease = runs.filter(|path| path.display().to_string().contains("_ease_")).collect::<Vec<_>>();
    assert_eq!(ease.len(), 1);
    let kept = || fs::read_dir(Path::new(&cache).join("adapters")).unwrap().count();
    assert_eq!(kept(), 3, "the first task's adapters are shared by adam and ease; SSF, and the second task's");
    fs::remove_file(&ease[0]).unwrap();
    let (again, notes) = bench();
    assert_eq!((again, kept()), (words, 3));
    assert!(notes.contains("--method ease") && !notes.contains("--method adam"), "only what is missing: {notes}");
    assert!(notes.contains("note: ease (adapter): ") && !notes.contains("adam (adapter)"), "{notes}");
    // Without the images, one note for all of them.
    let features = fs::read_dir(Path::new(&out).join("features")).unwrap().next().unwrap().unwrap().path();
    let [features, other] = [features.display().to_string(), world.place("other")];
    let output = loranpac(&["bench", &recipe, "--features", &features, "--out", &other]);
    let notes = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(
        stdout(&output).contains("1 run,") && notes.matches("left out: 3 runs on colours-").count() == 1,
        "{notes}"
    );
}

#[test]
fn a_merged_model_finds_the_encoder_and_the_adapter_of_its_parts() {
    let world = World::new();
    stdout(&run(&world.adapt("a.safetensors", &[])));
    let [encoder, photos, adapter, moved] =
        ["vit", "photos", "a.safetensors", "b.safetensors"].map(|name| world.place(name));
    for concat in [&[][..], &["--concat"]] {
        let name = |name: &str| world.place(&format!("{name}{}.lrp", concat.len()));
        let parts = [name("first"), name("second")];
        for part in &parts {
            let words = ["init", part, "--encoder", &encoder, "--adapter", &adapter, "--width", "100"];
            stdout(&loranpac(&[&words[..], concat].concat()));
        }
        // One part has no samples: what it records is all that there is.
        stdout(&loranpac(&["learn", &parts[1], &photos, "--no-cache"]));
        for (number, order) in [[&parts[0], &parts[1]], [&parts[1], &parts[0]]].into_iter().enumerate() {
            let merged = name(&format!("merged{number}-"));
            stdout(&loranpac(&["merge", order[0], order[1], "-o", &merged]));
            let words = stdout(&loranpac(&["inspect", &merged]));
            assert!(words.contains("adapted by ") && words.contains("a.safetensors"), "{words}");
            stdout(&loranpac(&["eval", &merged, &photos, "--no-cache"]));
            fs::rename(&adapter, &moved).unwrap();
            refused(&["eval", &merged, &photos, "--no-cache"], &["is not found", "a.safetensors"]);
            fs::rename(&moved, &adapter).unwrap();
        }
    }
}
