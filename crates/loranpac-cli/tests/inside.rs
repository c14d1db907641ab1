//! Runs that train inside an encoder: whatever interrupts them, and whatever becomes of their cache, the results are the same to the last bit.

mod common;

use std::cell::RefCell;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::raw::{bitmap, vit};
use loranpac_bench::Error;
use loranpac_bench::adapted::RawData;
use loranpac_bench::maps::Maps;
use loranpac_bench::plan::{Plan, Resources};
use loranpac_bench::raw::RawPlace;
use loranpac_bench::run::Run;
use loranpac_bench::say::Notice;
use loranpac_bench::spec::{AdaptFeatures, Scenario, Spec};
use loranpac_data::Dataset;
use loranpac_encode::{Embedding, EmbeddingOptions, FeatureSet, InputOptions, Inputs, Limits, Modality, Needs};
use tempfile::TempDir;

const PROMPTS: [&str; 3] = ["l2p", "dualprompt", "codaprompt"];
/// Epochs of each training.
const EPOCHS: usize = 2;

/// Images of four classes, an encoder, and its features.
struct World {
    folder: TempDir,
    dataset: Arc<Dataset>,
}

/// Where a run is interrupted.
#[derive(Clone, Copy, PartialEq)]
enum Stop {
    Never,
    AfterTask(usize),
    /// After so many reports of progress.
    AfterWords(usize),
}

impl World {
    fn new() -> World {
        let folder = TempDir::new().unwrap();
        vit(&folder.path().join("vit"), 1);
        let classes = [("red", [0, 0, 200]), ("green", [0, 200, 0]), ("blue", [200, 0, 0]), ("grey", [90, 90, 90])];
        for (class, colour) in classes {
            for number in 0..5 {
                let split = if number < 3 { "train" } else { "test" };
                let file = folder.path().join("photos").join(split).join(class).join(format!("{number}.bmp"));
                bitmap(&file, colour, number * 3);
            }
        }
        let encoder = Arc::from(loranpac_encode::open(&at(&folder, "vit"), &Default::default()).unwrap());
        let inputs = Inputs::open(&[folder.path().join("photos")], &InputOptions::new(Modality::Image)).unwrap();
        let options = EmbeddingOptions { layers: None, skip_bad: false, limits: Limits::default() };
        let embedding = Embedding::new(inputs, encoder, None, options).unwrap();
        let features = FeatureSet::gather(embedding, Needs::Experiment, |_| {}).unwrap();
        World { dataset: Arc::new(features.dataset("photos".to_owned()).unwrap()), folder }
    }

    fn raw(&self, adapters: Option<&Path>) -> RawData {
        RawData::new(RawPlace {
            encoder: at(&self.folder, "vit"),
            preprocess: None,
            inputs: vec![self.folder.path().join("photos")],
            options: InputOptions::new(Modality::Image),
            adapters: adapters.map(Path::to_owned),
        })
    }

    /// A run, and what it said; an interruption is no run.
    fn run(&self, raw: &mut RawData, spec: &Spec, stop: Stop) -> (Option<Run>, Vec<String>) {
        self.run_and(raw, spec, stop, || {})
    }

    /// The same. `then` happens whenever something is said.
    fn run_and(&self, raw: &mut RawData, spec: &Spec, stop: Stop, then: impl Fn()) -> (Option<Run>, Vec<String>) {
        let mut maps = Maps::default();
        let resources = Resources::threads(1);
        let mut plan =
            Plan::with_raw(&mut maps, self.dataset.clone(), Some(raw), vec![spec.clone()], resources).unwrap();
        let said = RefCell::new(Vec::new());
        let mut say = |notice: Notice<'_>| {
            let mut said = said.borrow_mut();
            said.push(match notice {
                Notice::Progress(words) => words.to_owned(),
                Notice::Warning(words) => format!("warning: {words}"),
            });
            then();
            if stop == Stop::AfterWords(said.len()) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let run = plan.run_and_say(0, &mut say, &mut |progress| match stop == Stop::AfterTask(progress.done) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        let run = match run {
            Err(Error::Interrupted) => None,
            other => Some(other.unwrap()),
        };
        (run, said.into_inner())
    }
}

fn at(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// A run of two epochs per task, on four tasks of a class for prompts, and on two of two classes otherwise.
fn spec(method: &str) -> Spec {
    let is_prompted = PROMPTS.contains(&method);
    let settings = [("epochs", EPOCHS), ("batch", 2), ("length", 2)].map(|(name, x)| (name.to_owned(), x.to_string()));
    Spec {
        settings: if is_prompted { settings.into_iter().collect() } else { Default::default() },
        scenario: Scenario::Class { base: 0, increment: if is_prompted { 1 } else { 2 } },
        adapt: (!is_prompted).then(|| "adapter".to_owned()),
        adapt_epochs: EPOCHS,
        adapt_batch: 2,
        adapt_rate: 0.5,
        ..Spec::new(method)
    }
}

/// Everything about a run that is not a time or a size of the process.
fn results(run: &Run) -> serde_json::Value {
    let mut value = serde_json::to_value(run).unwrap();
    ["peak_rss_bytes", "adapt_seconds"].iter().for_each(|key| drop(value.as_object_mut().unwrap().remove(*key)));
    for task in value["tasks"].as_array_mut().unwrap() {
        ["learn_seconds", "weights_seconds", "eval_seconds"].iter().for_each(|key| drop(task[*key].take()));
    }
    value
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_prompt_run_that_was_interrupted_anywhere_gives_the_same_to_the_last_bit() {
    let world = World::new();
    for method in PROMPTS {
        let spec = spec(method);
        let whole = world.run(&mut world.raw(None), &spec, Stop::Never);
        let expected = results(&whole.0.unwrap());
        assert_eq!(whole.1.len(), 4 * EPOCHS, "a line for each epoch");
        let mut stops: Vec<(Stop, usize)> = (1..4).map(|task| (Stop::AfterTask(task), task)).collect();
        stops.extend((1..=4 * EPOCHS).map(|epoch| (Stop::AfterWords(epoch), (epoch - 1) / EPOCHS)));
        for (number, (stop, tasks)) in stops.into_iter().enumerate() {
            let folder = world.folder.path().join(format!("{method}-{number}"));
            assert!(world.run(&mut world.raw(Some(&folder)), &spec, stop).0.is_none());
            assert_eq!(files(&folder).len(), 1);
            let (run, said) = world.run(&mut world.raw(Some(&folder)), &spec, Stop::Never);
            assert_eq!(results(&run.unwrap()), expected, "{method} {number}");
            assert_eq!(said[0], format!("resuming after {tasks} of 4 tasks"));
            assert!(said.len() <= 4 * EPOCHS, "it did not begin anew: {said:?}");
            // Once more, there is nothing left to do.
            let (run, said) = world.run(&mut world.raw(Some(&folder)), &spec, Stop::Never);
            assert_eq!((results(&run.unwrap()), said.len()), (expected.clone(), 1), "{said:?}");
        }
    }
}

#[test]
fn a_damaged_or_foreign_checkpoint_of_a_prompt_run_is_reported_and_not_used() {
    let world = World::new();
    let spec = spec("l2p");
    let expected = results(&world.run(&mut world.raw(None), &spec, Stop::Never).0.unwrap());
    let left = |name: &str, spec: &Spec| {
        let folder = world.folder.path().join(name);
        assert!(world.run(&mut world.raw(Some(&folder)), spec, Stop::AfterTask(2)).0.is_none());
        let file = files(&folder).remove(0);
        (folder, fs::read(&file).unwrap(), file)
    };
    let (folder, bytes, file) = left("own", &spec);
    let mut damaged = vec![bytes[..bytes.len() / 2].to_vec(), Vec::new(), b"nothing".to_vec()];
    damaged.extend([bytes.len() - 1, bytes.len() / 2, 200].map(|at| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 4;
        bytes
    }));
    let foreign = [
        Spec { seed: 3, ..spec.clone() },
        Spec { per_class: Some(2), ..spec.clone() },
        Spec { eval: loranpac_bench::spec::When::Final, ..spec.clone() },
        Spec { settings: [("epochs".to_owned(), "3".to_owned())].into(), ..spec.clone() },
    ];
    for (number, other) in foreign.iter().enumerate() {
        let (_, bytes, other) = left(&format!("other-{number}"), other);
        assert_ne!(other.file_name(), file.file_name());
        damaged.push(bytes);
    }
    for (number, bytes) in damaged.iter().enumerate() {
        fs::write(&file, bytes).unwrap();
        let (run, said) = world.run(&mut world.raw(Some(&folder)), &spec, Stop::Never);
        assert!(said[0].starts_with("warning: ") && said[0].contains("damaged or another's"), "{number}: {said:?}");
        assert_eq!((results(&run.unwrap()), said.len()), (expected.clone(), 1 + 4 * EPOCHS), "{number}");
    }
}

/// Runs on adapted features, of which all need the adapters of the first task.
fn adapted() -> Vec<Spec> {
    let features = |adapt_features| Spec { adapt_features, ..spec("simplecil") };
    vec![features(AdaptFeatures::Adapted), features(AdaptFeatures::Both), spec("adam"), spec("ranpac"), spec("ease")]
        .into_iter()
        .map(|spec| Spec { width: loranpac::Width::Finite(20), ..spec })
        .collect()
}

#[test]
fn an_adapter_is_trained_once_in_a_process_even_without_a_cache() {
    let world = World::new();
    let mut raw = world.raw(None);
    let (mut said, mut runs) = (Vec::new(), Vec::new());
    for spec in adapted() {
        let (run, words) = world.run(&mut raw, &spec, Stop::Never);
        said.extend(words);
        runs.push(run.unwrap());
    }
    let count = |words: &str| said.iter().filter(|said| said.contains(words)).count();
    assert_eq!(count("adapting: epoch 1 of 2"), 2, "the first task's, and the second task's for ease: {said:?}");
    assert_eq!(count("encoding with the adapted encoder"), 2, "features are shared, too: {said:?}");
    // What is shared is what each would have made alone, and its seconds are those of the training.
    for (spec, run) in adapted().iter().zip(&runs) {
        let alone = world.run(&mut world.raw(None), spec, Stop::Never).0.unwrap();
        assert_eq!(results(&alone), results(run), "{}", spec.method);
        assert!(run.adapt_seconds >= runs[0].adapt_seconds, "{}", spec.method);
    }
    // Choosing trains on both halves of the classes: two trainings more, once for all runs.
    let chosen = |method: &str| Spec {
        adapt_features: AdaptFeatures::Chosen,
        scenario: Scenario::Class { base: 0, increment: 4 },
        ..spec(method)
    };
    let mut raw = world.raw(None);
    let mut count = || {
        let said = world.run(&mut raw, &chosen("simplecil"), Stop::Never).1;
        said.iter().filter(|said| said.contains("adapting: epoch 1 of 2")).count()
    };
    let first = count();
    assert!(first == 2 || first == 3, "{first}");
    assert_eq!(count(), 0);
}

#[test]
fn a_cache_that_cannot_be_written_is_a_warning_and_the_run_goes_on() {
    let world = World::new();
    let blocked = world.folder.path().join("blocked");
    fs::write(&blocked, "a file where a folder should be").unwrap();
    let mut specs = adapted();
    specs.extend(PROMPTS.map(spec));
    for spec in &specs {
        let expected = results(&world.run(&mut world.raw(None), spec, Stop::Never).0.unwrap());
        let (run, said) = world.run(&mut world.raw(Some(&blocked.join("adapters"))), spec, Stop::Never);
        let warnings: Vec<&String> = said.iter().filter(|said| said.starts_with("warning: ")).collect();
        assert!(warnings.len() == 1 && warnings[0].contains("is not kept"), "{}: {warnings:?}", spec.method);
        assert_eq!(results(&run.unwrap()), expected, "{}", spec.method);
        // It can be written at first, and no longer after the first epoch.
        let folder = world.folder.path().join("lost");
        let lose = || {
            if folder.is_dir() {
                fs::remove_dir_all(&folder).unwrap();
                fs::write(&folder, "").unwrap();
            }
        };
        let (run, said) = world.run_and(&mut world.raw(Some(&folder)), spec, Stop::Never, lose);
        assert_eq!(said.iter().filter(|said| said.starts_with("warning: ")).count(), 1, "{}: {said:?}", spec.method);
        assert_eq!(results(&run.unwrap()), expected, "{}", spec.method);
        fs::remove_file(&folder).unwrap();
    }
}

#[test]
fn a_damaged_adapter_is_reported_and_trained_again() {
    let world = World::new();
    let folder = world.folder.path().join("adapters");
    let expected = results(&world.run(&mut world.raw(Some(&folder)), &spec("adam"), Stop::Never).0.unwrap());
    let file = files(&folder).remove(0);
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    let (run, said) = world.run(&mut world.raw(Some(&folder)), &spec("adam"), Stop::Never);
    assert!(said[0].starts_with("warning: ") && said[0].contains("trained again"), "{said:?}");
    assert_eq!(results(&run.unwrap()), expected);
    assert!(fs::read(&file).unwrap() == whole);
    // Interrupted after its first epoch, training resumes; a damaged checkpoint is reported.
    fs::remove_file(&file).unwrap();
    assert!(world.run(&mut world.raw(Some(&folder)), &spec("adam"), Stop::AfterWords(1)).0.is_none());
    let checkpoint = files(&folder).remove(0);
    fs::write(&checkpoint, "nothing").unwrap();
    let (run, said) = world.run(&mut world.raw(Some(&folder)), &spec("adam"), Stop::Never);
    assert!(said[0].starts_with("warning: ") && said[0].contains("begins anew"), "{said:?}");
    assert_eq!(results(&run.unwrap()), expected);
}
