//! Damaged adapters and checkpoints: a typed error or the same result, never a panic and never other numbers.

use std::fs;
use std::path::Path;

use super::adapter::Adapter;
use super::checkpoint::place;
use super::job::{Event, Job};
use super::samples::{SampleOptions, Samples};
use super::settings::Settings;
use super::tests::{input, settings, shared, texts, train, trainer};
use super::trainer::Trainer;
use crate::encoder::{Batch, Encoder};
use crate::error::Error;
use crate::input::{Data, Inputs};
use crate::transformer::ModuleKind;

const SMALL: ModuleKind = ModuleKind::VptShallow { tokens: 1 };

/// Samples of the shared encoder of texts.
fn samples(inputs: Inputs) -> Samples {
    Samples::read(inputs, &shared(true), SampleOptions::default()).unwrap()
}

/// Runs a job on the usual texts. Returns the bytes of the file, and the first event.
fn run(out: &Path, settings: &Settings) -> (Vec<u8>, Event) {
    let mut events = Vec::new();
    let job = Job::new(out).unwrap();
    job.run(shared(true), samples(texts(29)), settings.clone(), false, false, |event| events.push(event)).unwrap();
    (fs::read(out).unwrap(), events.swap_remove(0))
}

#[test]
fn an_adapter_with_any_flipped_bit_is_refused_or_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.safetensors");
    let bytes = train(true, &Settings { module: SMALL, ..settings(SMALL) }, 1 << 30, &out, false);
    let whole = Adapter::read(&out, &shared(true)).unwrap();
    let mut same = 0;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&out, &damaged).unwrap();
        if let Ok(adapter) = Adapter::read(&out, &shared(true)) {
            assert_eq!(adapter, whole, "byte {at}");
            same += 1;
        }
    }
    assert!(same < bytes.len() / 50, "{same} of {} flips were not noticed", bytes.len());
    for length in 0..bytes.len() {
        fs::write(&out, &bytes[..length]).unwrap();
        assert!(Adapter::read(&out, &shared(true)).is_err(), "the first {length} bytes");
    }
}

#[test]
fn a_header_that_lies_about_sizes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.safetensors");
    let bytes = train(true, &Settings { module: SMALL, ..settings(SMALL) }, 1 << 30, &out, false);
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let (header, data) = (std::str::from_utf8(&bytes[8..8 + length]).unwrap(), &bytes[8 + length..]);
    let check = |header: &str, length: u64| {
        fs::write(&out, [&length.to_le_bytes()[..], header.as_bytes(), data].concat()).unwrap();
        assert!(Adapter::read(&out, &shared(true)).is_err(), "{header}");
    };
    for length in [0, 1, 1 << 20, u64::from(u32::MAX), 1 << 62, u64::MAX] {
        check(header, length);
    }
    let with = |from: &str, to: &str| {
        assert!(header.contains(from), "{from} is not in {header}");
        let changed = header.replacen(from, to, 1);
        check(&changed, changed.len() as u64);
    };
    with("[1,40]", "[1,18446744073709551615]");
    with("[1,40]", "[4611686018427387904,40]");
    with("[1,40]", "[40,1]");
    with("[1,40]", "[]");
    with("[0,160]", "[0,18446744073709551615]");
    with("[0,160]", "[160,0]");
    with("F32", "F64");
    with(r#"\"tokens\":1"#, r#"\"tokens\":4611686018427387904"#);
    with(r#"\"tokens\":1"#, r#"\"tokens\":0"#);
    with(r#"\"tokens\":1"#, r#"\"tokens\":-1"#);
    with("vpt-shallow", "vpt-magic");
}

#[test]
fn a_damaged_checkpoint_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.safetensors");
    let settings = Settings { epochs: 2, ..settings(SMALL) };
    let (expected, _) = run(&out, &settings);
    let checkpoint = place(&out).unwrap();
    let mut first = trainer(true, settings.clone(), 0);
    first.epoch(|_| {}).unwrap();
    first.save(&out).unwrap();
    let bytes = fs::read(&checkpoint).unwrap();
    let mut reader = trainer(true, settings.clone(), 0);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&checkpoint, &damaged).unwrap();
        if reader.resume(&out) > 0 {
            assert!(reader.epoch(|_| {}).is_ok(), "byte {at}");
            assert!(reader.finish().bytes() == expected, "byte {at}");
            reader = trainer(true, settings.clone(), 0);
        }
    }
    for damaged in [&bytes[..bytes.len() / 2], &bytes[..9], b"", b"not a checkpoint"] {
        fs::write(&checkpoint, damaged).unwrap();
        let (found, start) = run(&out, &settings);
        assert!(found == expected && matches!(start, Event::Start { resumed: 0, unusable: true, .. }), "{start:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the checkpoint is removed");
    }
}

#[test]
fn the_checkpoint_of_other_settings_samples_or_versions_is_not_continued() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.safetensors");
    let settings = Settings { epochs: 2, ..settings(SMALL) };
    let (expected, start) = run(&out, &settings);
    assert!(matches!(start, Event::Start { resumed: 0, unusable: false, .. }), "{start:?}");
    let leave = |settings: &Settings, inputs: Inputs| {
        let mut trainer = Trainer::new(shared(true), samples(inputs), settings.clone(), 0).unwrap();
        trainer.epoch(|_| {}).unwrap();
        trainer.save(&out).unwrap();
        fs::read(place(&out).unwrap()).unwrap()
    };
    let check = |resumed: usize| {
        let (found, start) = run(&out, &settings);
        let as_expected =
            matches!(start, Event::Start { resumed: n, unusable, .. } if n == resumed && unusable == (n == 0));
        assert!(found == expected && as_expected, "{start:?}");
    };
    let whole = leave(&settings, texts(29));
    check(1);
    leave(&Settings { rate: 0.04, ..settings.clone() }, texts(29));
    check(0);
    leave(&settings, texts(27));
    check(0);
    let from = br#""version":"1""#;
    let at = whole.windows(from.len()).position(|window| window == from).unwrap();
    fs::write(place(&out).unwrap(), [&whole[..at], br#""version":"2""#, &whole[at + from.len()..]].concat()).unwrap();
    check(0);
}

#[test]
fn a_rate_that_is_too_high_is_halved_and_training_goes_on() {
    let exponents = (0..152).map(|quarter| f64::from(quarter) / 4.0);
    let found = exponents.filter_map(|exponent| {
        let settings = Settings { rate: 10f64.powf(exponent), epochs: 2, held_out: 0, ..settings(ModuleKind::Ssf) };
        let mut trainer = trainer(true, settings, 0);
        trainer.epoch(|_| {}).ok()?;
        Some(trainer.halved())
    });
    let found: Vec<u32> = found.collect();
    assert!(found.iter().any(|halved| (1..=3).contains(halved)), "{found:?}");
}

#[test]
fn empty_texts_and_one_sample_per_class_can_be_trained_on() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.safetensors");
    let given = [("", "a"), ("red", "b"), ("", "b"), (" \u{0}\u{feff}", "a")];
    let inputs = given.iter().enumerate().map(|(i, (text, label))| input(i, label, Data::Text((*text).to_owned())));
    let inputs = Inputs::of(inputs.collect::<Vec<_>>().into_iter());
    let settings = Settings { epochs: 2, batch: 1, ..settings(SMALL) };
    let trained = Job::new(&out).unwrap().run(shared(true), samples(inputs), settings, false, false, |_| {}).unwrap();
    assert!(trained.written && trained.adapter.outcome.helps().is_none());
    assert!(trained.to_string().contains("not known whether adaptation helps"));
    let adapted = Adapter::read(&out, &shared(true)).unwrap().apply(&shared(true)).unwrap();
    assert!(adapted.encode(Batch::Texts(&["", "red"]), &[1]).unwrap().iter().all(|x| x.is_finite()));
}

#[test]
fn a_file_is_trained_by_one_job_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.safetensors");
    let first = Job::new(&out).unwrap();
    let second = Job::new(&out).map(|_| ()).unwrap_err();
    assert!(matches!(&second, Error::Write { .. }) && second.to_string().contains("another process"), "{second}");
    drop(first);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(matches!(Job::new(folder.path()), Err(Error::Write { .. })), "a folder");
    assert!(matches!(Job::new(&folder.path().join("absent/a.safetensors")), Err(Error::Write { .. })));
}

#[test]
fn samples_that_are_stopped_end_training_and_keep_the_last_epoch() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.safetensors");
    let settings = Settings { epochs: 3, ..settings(SMALL) };
    let (expected, _) = run(&out, &settings);
    fs::remove_file(&out).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = samples(texts(29)).until(stop.clone());
    let each = |event: Event| {
        if matches!(event, Event::Epoch { number: [2, 3], .. }) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let error = Job::new(&out).unwrap().run(shared(true), stopped, settings.clone(), false, false, each).unwrap_err();
    assert!(matches!(error, Error::Stopped), "{error}");
    assert!(!out.exists());
    let (found, start) = run(&out, &settings);
    assert!(found == expected && matches!(start, Event::Start { resumed: 2, .. }), "{start:?}");
}
