//! Models and inference files from others: whatever is in them, a command ends, with a message, and touches nothing else.
#![cfg(target_os = "linux")] // Devices, pipes and limits are those of Linux.

mod edits;
mod inference;
mod ways;
mod world;

use std::path::Path;

use tempfile::TempDir;
use ways::{WRITERS, Way, ways};
use world::{Found, copy, prepare, run, snapshot};

/// Runs every command on every model that is spoiled, which takes some minutes.
const EVERYTHING: &str = "LORANPAC_HOSTILE_ALL";

/// A command, by the name that the ways have for it, and its arguments.
type Call = (&'static str, &'static [&'static str]);

/// These are run in every case; of the others one, in turn.
const ALWAYS: usize = 3;

const COMMANDS: &[Call] = &[
    ("verify", &["verify", "m.lrp"]),
    ("learn", &["learn", "m.lrp", "new.csv"]),
    ("predict", &["predict", "m.lrp", "first.csv", "--probabilities"]),
    ("eval", &["eval", "m.lrp", "first.csv"]),
    ("calibrate", &["calibrate", "m.lrp", "second.csv"]),
    ("inspect", &["inspect", "m.lrp", "--classes"]),
    ("inspect --json", &["inspect", "m.lrp", "--json"]),
    ("merge", &["merge", "other.lrp", "m.lrp", "-o", "merged.lrp"]),
    ("forget", &["forget", "m.lrp", "c2"]),
    ("rename", &["rename", "m.lrp", "c2", "lion"]),
    ("relabel", &["relabel", "m.lrp", "first.csv", "--to", "lion"]),
    ("unlearn", &["unlearn", "m.lrp", "first.csv"]),
    ("export", &["export", "m.lrp", "out.safetensors"]),
    ("rollback", &["rollback", "m.lrp"]),
    ("rollback --keep", &["rollback", "m.lrp", "--keep", "3"]),
    ("rollback --drop", &["rollback", "m.lrp", "--drop"]),
    ("init", &["init", "m.lrp", "--dim", "4"]),
    ("merge into it", &["merge", "other.lrp", "other.lrp", "--again", "-o", "m.lrp"]),
];

/// What a terminal would obey.
fn obeyed(text: &str) -> bool {
    text.chars().any(|c| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c))
}

/// Runs a command on a fresh copy that is spoiled; gives everything that is wrong about what it does.
/// Commands that are `exempt` refuse the model as it was.
fn check(base: &Path, way: &Way, (command, arguments): Call, exempt: &[&str]) -> Vec<String> {
    let place = TempDir::new().unwrap();
    let folder = place.path();
    copy(base, folder);
    (way.spoil)(&folder.join("m.lrp"));
    let before = snapshot(folder);
    let done = run(folder, arguments);
    let after = snapshot(folder);
    let mut wrong = Vec::new();
    let mut claim = |holds: bool, what: &str| {
        if !holds {
            let words = [done.stdout.as_str(), &done.stderr].concat();
            wrong.push(format!("{} / {command}: {what} ({}): {:.300}", way.name, done.status, words));
        }
    };
    let Some(code) = done.status.code() else {
        claim(false, "was killed");
        return wrong;
    };
    claim([0, 1, 3, 5].contains(&code), "has another exit code");
    let refuses = ["init", "merge into it"].contains(&command);
    if command == "verify" {
        claim(way.verify.contains(&code), &format!("should be {:?}", way.verify));
    } else {
        claim(code != 0 || way.harmless.contains(&command), "succeeds");
        claim(code == 0 || way.name != "nothing" || refuses || exempt.contains(&command), "fails");
    }
    // A message names the file, or the folder if it is in the way. What refuses every such model has its own reason.
    let names = match (refuses, exempt.contains(&command) && !done.stderr.contains(" is damaged: ")) {
        (true, _) => "m.lrp",
        (_, true) => "",
        _ => &way.names,
    };
    let words = [done.stdout.as_str(), &done.stderr].concat();
    claim(code == 0 || words.contains(names), "does not name the file");
    claim(code == 0 || command == "verify" || done.stderr.contains("error: "), "prints no error");
    // Predictions are data, and labels are written as they are.
    claim(!obeyed(&done.stderr) && (command == "predict" || !obeyed(&done.stdout)), "prints control characters");
    // What must be as it was: everything outside, and everything inside unless the model has been changed.
    let changes = code == 0 && (WRITERS.contains(&command) || command == "rollback");
    let swept = |path: &Path| {
        ["MANIFEST.new", "MANIFEST.99999999", "LOCK"].iter().any(|name| path == Path::new("m.lrp").join(name))
    };
    // It removes file after file, and stops at what is not one.
    let stopped = command == "rollback --drop" && way.name.ends_with(": a folder");
    for (path, found) in &before {
        let kept = ((changes || stopped) && path.starts_with("m.lrp")) || after.get(path) == Some(found);
        claim(kept || (swept(path) && *found != Found::Folder), &format!("changes {}", path.display()));
    }
    for path in after.keys().filter(|path| !before.contains_key(*path)) {
        let result = code == 0 && (path.starts_with("merged.lrp") || path == Path::new("out.safetensors"));
        claim(result || swept(path) || (changes && path.starts_with("m.lrp")), &format!("makes {}", path.display()));
    }
    if changes {
        let verified = run(folder, &["verify", "m.lrp"]).status.code();
        claim(
            verified.is_some_and(|code| code == 0 || way.verify.contains(&code)),
            &format!("leaves a model that is {verified:?}"),
        );
    }
    wrong
}

/// Runs the commands on every way.
fn check_all(base: &Path, exempt: &[&str]) {
    let everything = std::env::var_os(EVERYTHING).is_some();
    let mut wrong = Vec::new();
    for (index, way) in ways(&base.join("m.lrp")).iter().enumerate() {
        // There are many segments, which are all opened by the same few lines.
        let (always, others) = COMMANDS.split_at(if way.names.ends_with(".safetensors") { 0 } else { ALWAYS });
        let others = if everything || index == 0 { others } else { &others[index % others.len()..][..1] };
        for call in always.iter().chain(others) {
            wrong.extend(check(base, way, *call, exempt));
        }
    }
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_hostile_model_of_finite_width_harms_nobody() {
    check_all(prepare(&["--width", "20"]).path(), &[]);
}

#[test]
fn a_hostile_model_of_infinite_width_harms_nobody() {
    // There is no classifier to export, and samples that were evicted cannot be edited.
    let exempt = ["export", "relabel", "unlearn"];
    check_all(prepare(&["--width", "infinite", "--max-rank", "8"]).path(), &exempt);
}
