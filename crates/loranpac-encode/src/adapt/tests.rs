//! Training from end to end, on small encoders.

use std::path::Path;
use std::sync::OnceLock;

use loranpac::Label;

use super::{Adapter, HeadKind, Optimiser, SampleOptions, Samples, Settings, Trainer};
use crate::encoder::{Batch, Encoder, Image};
use crate::error::Error;
use crate::input::{Data, Input, Inputs, Tags};
use crate::open::{OpenOptions, open, open_transformer};
use crate::transformer::whole::{text_folder, vision_folder};
use crate::transformer::{ModuleKind, Transformer};

pub(crate) fn input(number: usize, label: &str, data: Data) -> Result<Input, Error> {
    let tags = Tags { label: Some(Label::Text(label.to_owned())), ..Tags::default() };
    Ok(Input { tags, ..Input::new(format!("{number}"), data) })
}

/// Texts with more red or more green.
pub(super) fn texts(n: usize) -> Inputs {
    let word = |i: usize, at: usize| if (i * 7 + at * 5 + i / 3).is_multiple_of(3) { "other" } else { "green" };
    let text = move |i: usize| {
        let class = i % 2;
        let first = if class == 0 { "red red" } else { "green greener" };
        input(i, ["red", "green"][class], Data::Text(format!("{first} {} {}", word(i, 1), word(i, 2))))
    };
    Inputs::of((0..n).map(text))
}

/// Images that are brighter on the left or on the right.
pub(super) fn images(n: usize) -> Inputs {
    let image = |i: usize| {
        let (width, height) = (8 + i % 3, 9);
        let pixel = |at: usize| ((at % width * 2 / width == i % 2) as usize * 120 + (i * 31 + at * 17) % 90) as u8;
        let pixels = (0..width * height).flat_map(|at| [pixel(at), pixel(at + 1), 40]).collect();
        input(i, ["left", "right"][i % 2], Data::Pixels(Image { width, height, pixels }))
    };
    Inputs::of((0..n).map(image))
}

fn encoder(text: bool) -> (tempfile::TempDir, Transformer) {
    let folder = if text { text_folder("mean", true) } else { vision_folder("class") };
    let transformer = open_transformer(folder.path().to_str().unwrap(), None).unwrap();
    (folder, transformer)
}

pub(super) fn settings(module: ModuleKind) -> Settings {
    let module = module.sized(4).unwrap_or(module);
    Settings { module, epochs: 4, batch: 7, rate: 0.05, patience: 0, seed: 3, ..Settings::default() }
}

/// The encoder of texts or of images; the same one in all calls, because its name is in the file.
pub(crate) fn shared(text: bool) -> Transformer {
    static SHARED: OnceLock<[Transformer; 2]> = OnceLock::new();
    SHARED.get_or_init(|| [false, true].map(|text| encoder(text).1))[usize::from(text)].clone()
}

pub(super) fn trainer(text: bool, settings: Settings, memory: usize) -> Trainer {
    let transformer = shared(text);
    let inputs = if text { texts(29) } else { images(29) };
    let samples = Samples::read(inputs, &transformer, SampleOptions::default()).unwrap();
    Trainer::new(transformer, samples, settings, memory).unwrap()
}

/// Trains to the end, and returns the bytes of the file. `stop` leaves and resumes after each epoch.
pub(super) fn train(text: bool, settings: &Settings, memory: usize, out: &Path, stop: bool) -> Vec<u8> {
    let mut running = trainer(text, settings.clone(), memory);
    while !running.is_done() {
        running.epoch(|_| {}).unwrap();
        if stop {
            running.save(out).unwrap();
            running = trainer(text, settings.clone(), memory);
            assert!(running.resume(out) > 0);
        }
    }
    running.finish().write(out).unwrap();
    Trainer::forget(out).unwrap();
    let folder = out.parent().unwrap();
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1, "nothing is left beside the adapter");
    std::fs::read(out).unwrap()
}

#[test]
fn the_file_is_the_same_for_any_threads_memory_and_interruption() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.safetensors");
    for text in [true, false] {
        for module in ModuleKind::ALL {
            let settings = settings(*module);
            let on = |threads: usize, memory: usize, stop: bool| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| train(text, &settings, memory, &out, stop))
            };
            let one = on(1, 1 << 30, false);
            assert!(on(3, 0, true) == one, "{module} {text}");
            assert!(on(2, 1 << 20, false) == one, "{module} {text}");
        }
    }
}

#[test]
fn the_loss_falls_with_each_head_and_optimiser() {
    for (head, optimiser, rate) in [
        (HeadKind::Linear, Optimiser::SGD, 0.3),
        (HeadKind::Cosine, Optimiser::SGD, 0.3),
        (HeadKind::Linear, Optimiser::ADAM, 0.02),
    ] {
        for text in [true, false] {
            let settings =
                Settings { head, optimiser, rate, epochs: 12, augment: false, ..settings(ModuleKind::ALL[0]) };
            let mut trainer = trainer(text, settings, 1 << 30);
            let mut losses = Vec::new();
            while !trainer.is_done() {
                losses.push(trainer.epoch(|_| {}).unwrap().loss);
            }
            assert!(losses[11] < losses[0] - 0.005, "{head:?} {optimiser:?} {text}: {losses:?}");
        }
    }
}

#[test]
fn an_adapter_belongs_to_its_encoder_and_changes_its_digest() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.safetensors");
    train(true, &settings(ModuleKind::ALL[0]), 1 << 30, &out, false);
    let (place, frozen) = encoder(true);
    let name = place.path().to_str().unwrap();
    let adapter = Adapter::read(&out, &frozen).unwrap();
    let adapted = adapter.apply(&frozen).unwrap();
    let options = OpenOptions { adapter: Some(out.clone()), ..OpenOptions::default() };
    let opened = open(name, &options).unwrap();
    assert_eq!(opened.digest(), adapted.digest());
    assert_ne!(opened.digest(), frozen.digest());
    let batch = Batch::Texts(&["red green", "greener"]);
    let (before, after) = (frozen.encode(batch, &[1]).unwrap(), opened.encode(batch, &[1]).unwrap());
    assert_ne!(before, after);
    let both = open(name, &OpenOptions { concat: true, ..options.clone() }).unwrap();
    assert_eq!(both.dim(), 80);
    let expected: Vec<f32> = before.chunks(40).zip(after.chunks(40)).flat_map(|(a, b)| [a, b].concat()).collect();
    assert_eq!(both.encode(batch, &[1]).unwrap(), expected);
    assert_ne!(both.digest(), opened.digest());
    let (_, images) = encoder(false);
    let error = Adapter::read(&out, &images).unwrap_err().to_string();
    assert!(error.contains("belongs to the encoder"), "{error}");
    assert!(matches!(adapter.apply(&images), Err(Error::OtherEncoder { .. })));
    assert!(matches!(open("text-ngrams", &options).map(|_| ()), Err(Error::NoAdapter { .. })));
}

#[test]
fn a_damaged_adapter_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.safetensors");
    let bytes = train(true, &settings(ModuleKind::Lora { rank: 4, scale: 1.0 }), 1 << 30, &out, false);
    let (place, frozen) = encoder(true);
    let check = |bytes: &[u8], expected: &str| {
        std::fs::write(&out, bytes).unwrap();
        let error = Adapter::read(&out, &frozen).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let replace = |from: &str, to: &str| {
        let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat()
    };
    check(&bytes[..bytes.len() - 1], "its tensors should have");
    check(&bytes[..4], "shorter than a header");
    check(&replace(r#""version":"1""#, r#""version":"2""#), "update the program");
    check(&replace("loranpac-adapter", "loranpac-adaptor"), "it is no adapter");
    check(&replace("blocks.1.lora.queries.a", "blocks.9.lora.queries.a"), "tensor blocks.1.lora.queries.a is missing");
    check(&replace(r#"\"rank\":4"#, r#"\"rank\":5"#), "has shape [4, 40] instead of [5, 40]");
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    check(&damaged, "the file is damaged");
    let n = damaged.len();
    damaged[n - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    check(&damaged, "has the number NaN");
    let model = std::fs::read(place.path().join("model.safetensors")).unwrap();
    check(&model, "it is no adapter");
}

#[test]
fn one_class_and_one_sample_are_refused() {
    let (_, transformer) = encoder(true);
    let read = |inputs: Inputs, options: SampleOptions| Samples::read(inputs, &transformer, options).map(|_| ());
    let train = |inputs: Inputs, options: SampleOptions| {
        let samples = Samples::read(inputs, &transformer, options).unwrap();
        Trainer::new(transformer.clone(), samples, settings(ModuleKind::ALL[0]), 0).map(|_| ()).unwrap_err()
    };
    let error = train(texts(1), SampleOptions::default());
    assert!(matches!(error, Error::TooFewClasses { classes: 1, samples: 1 }), "{error}");
    let one = SampleOptions { classes: Some(1), ..SampleOptions::default() };
    let error = train(texts(8), one);
    assert!(error.to_string().contains("there are 4 samples of 1 class"), "{error}");
    let unlabelled = texts(3).map(|input| input.map(|input| Input { tags: Tags::default(), ..input }));
    let unlabelled = Inputs::of(unlabelled.collect::<Vec<_>>().into_iter());
    assert!(matches!(read(unlabelled, SampleOptions::default()), Err(Error::NoLabels)));
    // Two samples of two classes: nothing is held out, and a batch of one is possible.
    let samples = Samples::read(texts(2), &transformer, SampleOptions::default()).unwrap();
    let settings = Settings { batch: 1, epochs: 2, ..settings(ModuleKind::ALL[0]) };
    let mut trainer = Trainer::new(transformer.clone(), samples, settings, 0).unwrap();
    while !trainer.is_done() {
        trainer.epoch(|_| {}).unwrap();
    }
    assert_eq!(trainer.finish().outcome.helps(), None);
}

#[test]
fn inputs_of_further_classes_are_not_decoded() {
    let (_, transformer) = encoder(false);
    let broken = |number: usize, label: &str| input(number, label, Data::Image(b"no image".to_vec()));
    let read = |last: Result<Input, Error>, classes: Option<usize>| {
        // More than are read at a time, so that the classes are known.
        let inputs: Vec<_> = images(300).chain([last]).collect();
        let options = SampleOptions { classes, ..SampleOptions::default() };
        Samples::read(Inputs::of(inputs.into_iter()), &transformer, options)
    };
    assert!(read(broken(300, "further"), None).is_err());
    assert!(read(broken(300, "left"), Some(2)).is_err());
    let samples = read(broken(300, "further"), Some(2)).unwrap();
    assert_eq!((samples.len(), samples.labels().len()), (300, 2));
}

#[test]
fn a_loss_that_is_not_finite_halves_the_rate_and_then_ends_training() {
    let mut trainer = trainer(true, Settings { rate: 1e36, ..settings(ModuleKind::Ssf) }, 0);
    let error = trainer.epoch(|_| {}).unwrap_err();
    assert!(matches!(error, Error::Diverged { epoch: 1, .. }), "{error}");
    assert_eq!((trainer.halved(), trainer.epochs().len()), (3, 0));
}

#[test]
fn training_ends_when_accuracy_no_longer_rises() {
    let settings = Settings { epochs: 50, patience: 2, rate: 1e-6, ..settings(ModuleKind::ALL[0]) };
    let mut trainer = trainer(true, settings, 0);
    while !trainer.is_done() {
        trainer.epoch(|_| {}).unwrap();
    }
    assert_eq!(trainer.epochs().len(), 3);
    let adapter = trainer.finish();
    assert_eq!((adapter.outcome.best, adapter.outcome.epochs, adapter.outcome.held_out), (1, 3, 5));
    assert_eq!(adapter.outcome.helps(), Some(false));
}

#[test]
fn the_checkpoint_of_another_task_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.safetensors");
    let mut first = trainer(true, settings(ModuleKind::ALL[0]), 0);
    first.epoch(|_| {}).unwrap();
    first.save(&out).unwrap();
    assert_eq!(trainer(true, settings(ModuleKind::ALL[0]), 0).resume(&out), 1);
    let other = Settings { seed: 4, ..settings(ModuleKind::ALL[0]) };
    assert_eq!(trainer(true, other, 0).resume(&out), 0);
    let checkpoint = super::checkpoint::place(&out).unwrap();
    let mut bytes = std::fs::read(&checkpoint).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&checkpoint, bytes).unwrap();
    assert_eq!(trainer(true, settings(ModuleKind::ALL[0]), 0).resume(&out), 0);
}
