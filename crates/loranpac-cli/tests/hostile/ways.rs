//! The ways in which a model is spoiled, and what each command may do then.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::edits::{EDITS, Then};

/// Commands that only read.
pub const READERS: &[&str] = &["predict", "eval", "inspect", "inspect --json", "merge", "export"];
/// Commands that change the model, but for `rollback`.
pub const WRITERS: &[&str] =
    &["learn", "calibrate", "forget", "rename", "relabel", "unlearn", "rollback --keep", "rollback --drop"];

/// A way to spoil a model.
pub struct Way {
    pub name: String,
    /// What a message must contain.
    pub names: String,
    /// How `verify` may end.
    pub verify: Vec<i32>,
    /// Commands that may succeed.
    pub harmless: Vec<&'static str>,
    pub spoil: Box<dyn Fn(&Path) + Sync>,
}

impl Way {
    pub fn new(name: String, names: &str, verify: i32, spoil: impl Fn(&Path) + Sync + 'static) -> Way {
        Way { name, names: names.to_owned(), verify: vec![verify], harmless: Vec::new(), spoil: Box::new(spoil) }
    }

    pub fn harmless(mut self, groups: &[&[&'static str]]) -> Way {
        self.harmless = groups.concat();
        self
    }
}

/// Replaces a file by something else; the second is the exit code of `verify` if the file is needed.
pub type Replacement = (&'static str, i32, fn(&Path));

const REPLACEMENTS: &[Replacement] = &[
    ("a pipe", 3, |path| {
        remove(path);
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }),
    ("a link to a victim", 3, |path| link(path, "../victim")),
    ("a link to nothing", 3, |path| link(path, "../created")),
    ("a link to a device", 3, |path| link(path, "/dev/zero")),
    ("a link to its copy", 3, |path| {
        fs::write(path.with_file_name("copy"), fs::read(path).unwrap_or_default()).unwrap();
        link(path, "copy");
    }),
    ("a folder", 3, |path| {
        remove(path);
        fs::create_dir(path).unwrap();
    }),
    ("an empty file", 3, |path| fs::write(path, "").unwrap()),
    ("half of it", 3, |path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    }),
    ("garbage", 3, |path| fs::write(path, [0x9b, 0x1b, b'[', b'2', b'J', 0xff, 0, b'\n'].repeat(100)).unwrap()),
    ("another length", 3, |path| File::options().write(true).open(path).unwrap().set_len(300 << 20).unwrap()),
    ("one other bit", 3, |path| {
        let mut bytes = fs::read(path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(path, bytes).unwrap();
    }),
    ("no permission", 1, |path| fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap()),
];

/// What can be put in the place of a file, by this user.
pub fn replacements() -> impl Iterator<Item = &'static Replacement> {
    // Nothing is unreadable to root.
    let probe = tempfile::NamedTempFile::new().unwrap();
    fs::set_permissions(probe.path(), fs::Permissions::from_mode(0o000)).unwrap();
    let root = File::open(probe.path()).is_ok();
    REPLACEMENTS.iter().filter(move |(name, ..)| !(root && *name == "no permission"))
}

fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

fn link(path: &Path, target: &str) {
    remove(path);
    symlink(target, path).unwrap();
}

/// The file of an earlier version.
const KEPT: &str = "MANIFEST.00000002";

/// Every way to spoil the model in a folder.
pub fn ways(model: &Path) -> Vec<Way> {
    let mut ways = vec![Way::new("nothing".to_owned(), "", 0, |_| ()).harmless(&[READERS, WRITERS, &["rollback"]])];
    ways.extend(manifests());
    ways.extend(replaced(model));
    let current = read(&model.join("MANIFEST"));
    // An edit applies if there is something to replace, or something to add to, and makes a difference.
    let applies = |pointer: &str, text: &str| {
        let parent = current.pointer(&pointer[..pointer.rfind('/').unwrap_or(0)]);
        let there = current.pointer(pointer);
        parent.is_some() && !(text == "[]" && there.is_none_or(|value| value == &Value::Array(Vec::new())))
    };
    for (name, pointer, text, then) in EDITS.iter().filter(|(_, pointer, text, _)| applies(pointer, text)) {
        let spoil = move |model: &Path| edit(&model.join("MANIFEST"), pointer, text);
        let (verify, harmless): (&[i32], &[&[&str]]) = match then {
            Then::Refused => (&[3], &[]),
            Then::Found => (&[3], &[READERS, WRITERS]),
            Then::Believed => (&[0], &[READERS, WRITERS]),
            Then::Either => (&[0, 3], &[READERS, WRITERS]),
        };
        // What looks like the truth may be refused for another reason.
        let names = if *then == Then::Refused { "m.lrp" } else { "" };
        let way = Way::new(format!("MANIFEST with {name}: {pointer} = {text:.40}"), names, verify[0], spoil);
        let harmless = [harmless, &[&["rollback"]]].concat();
        ways.push(Way { verify: verify.to_vec(), ..way }.harmless(&harmless));
    }
    let long = format!("\"{}\"", "long ".repeat(200_000));
    let spoil = move |model: &Path| edit(&model.join("MANIFEST"), "/classes/0/label", &long);
    let way = Way::new("MANIFEST with a label of a megabyte".to_owned(), "", 0, spoil);
    ways.push(way.harmless(&[READERS, WRITERS, &["rollback"]]));
    ways
}

/// Ways that concern manifests as a whole.
fn manifests() -> Vec<Way> {
    let first_line = |name: &str, verify: i32, change: fn(&str) -> String| {
        let spoil = move |model: &Path| {
            let path = model.join("MANIFEST");
            let text = fs::read_to_string(&path).unwrap();
            let (line, rest) = text.split_once('\n').unwrap();
            fs::write(&path, change(line) + rest).unwrap();
        };
        let way = Way::new(format!("MANIFEST with {name}"), "MANIFEST", verify, spoil);
        // Nobody goes back from what a newer program has written.
        if verify == 5 { way } else { way.harmless(&[&["rollback"]]) }
    };
    let deep = |model: &Path| write(&model.join("MANIFEST"), &"[".repeat(1 << 20));
    let sparse = |model: &Path| File::create(model.join("MANIFEST")).unwrap().set_len(300 << 20).unwrap();
    let twin = |model: &Path| {
        fs::copy(model.join("MANIFEST"), model.join(KEPT)).unwrap();
    };
    let future = |model: &Path| {
        fs::copy(model.join(KEPT), model.join("MANIFEST.99999999")).unwrap();
    };
    let last = |model: &Path| {
        fs::rename(model.join(KEPT), model.join("MANIFEST.18446744073709551615")).unwrap();
        fs::write(model.join("MANIFEST"), "").unwrap();
    };
    let missing = |model: &Path| fs::remove_file(model.join("MANIFEST")).unwrap();
    vec![
        first_line("a newer format", 5, |line| line.replace(" 4 ", " 99 ") + "\n"),
        first_line("format 0", 3, |line| line.replace(" 4 ", " 0 ") + "\n"),
        first_line("format +4", 3, |line| line.replace(" 4 ", " +4 ") + "\n"),
        first_line("a format beyond all numbers", 3, |line| line.replace(" 4 ", " 99999999999999999999 ") + "\n"),
        first_line("CRLF", 3, |line| line.to_owned() + "\r\n"),
        first_line("another checksum", 3, |line| {
            let other = if line.ends_with('0') { '1' } else { '0' };
            format!("{}{other}\n", &line[..line.len() - 1])
        }),
        first_line("a checksum in capitals", 3, |line| line.to_uppercase() + "\n"),
        first_line("no line", 3, |_| String::new()),
        first_line("control characters", 3, |line| format!("{line}\u{1b}[2J\n")),
        Way::new("MANIFEST of nested lists".to_owned(), "MANIFEST", 3, deep).harmless(&[&["rollback"]]),
        Way::new("MANIFEST of 300 MB".to_owned(), "MANIFEST", 3, sparse).harmless(&[&["rollback"]]),
        Way::new("no MANIFEST".to_owned(), "m.lrp", 1, missing).harmless(&[&["rollback"]]),
        Way::new("the current manifest as the kept one".to_owned(), KEPT, 3, twin).harmless(&[READERS, WRITERS]),
        Way::new("a kept manifest of the future".to_owned(), "", 0, future).harmless(&[
            READERS,
            WRITERS,
            &["rollback"],
        ]),
        Way::new("a kept manifest of the last version".to_owned(), "m.lrp", 3, last),
    ]
}

/// Every file in the place of which something else is put.
fn replaced(model: &Path) -> Vec<Way> {
    let needs = |name: &str| {
        let files = read(&model.join(name))["files"].clone();
        files.as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    let (current, old) = (needs("MANIFEST"), needs(KEPT));
    let mut ways = Vec::new();
    let mut add = |file: &str, (what, verify, spoil): Replacement, harmless: &[&[&'static str]]| {
        let path = file.to_owned();
        let way = Way::new(format!("{file}: {what}"), file, verify, move |model| spoil(&model.join(&path)));
        ways.push(way.harmless(harmless));
    };
    for &(what, verify, spoil) in replacements() {
        let regular = ["an empty file", "half of it", "garbage", "another length", "one other bit"].contains(&what);
        let unreadable = verify == 1;
        add("MANIFEST", (what, verify, spoil), if unreadable { &[] } else { &[&["rollback"]] });
        add(KEPT, (what, verify, spoil), &[READERS, WRITERS]);
        // Both are of no interest to readers, and what is in them to nobody.
        if !["half of it", "one other bit"].contains(&what) {
            add("LOCK", (what, 0, spoil), if regular { &[READERS, WRITERS, &["rollback"]] } else { &[READERS] });
            let blocked = ["a folder", "another length", "a link to its copy", "no permission"].contains(&what);
            if !blocked {
                add("MANIFEST.new", (what, 0, spoil), &[READERS, WRITERS, &["rollback"]]);
            }
        }
        for file in current.iter().chain(old.iter().filter(|name| !current.contains(name))) {
            let unread = what == "one other bit" && current.contains(file);
            let harmless: &[&[&str]] = match (current.contains(file), old.contains(file)) {
                (true, true) if unread => &[READERS, WRITERS],
                (true, false) if unread => &[READERS, WRITERS, &["rollback"]],
                (true, true) => &[],
                (true, false) => &[&["rollback"]],
                _ => &[READERS, WRITERS],
            };
            add(file, (what, verify, spoil), harmless);
        }
    }
    for pair in current.windows(2) {
        let (a, b) = (pair[0].clone(), pair[1].clone());
        let spoil = move |model: &Path| {
            let [a, b, c] = [&a, &b, "c"].map(|name| model.join(name));
            fs::rename(&a, &c).unwrap();
            fs::rename(&b, &a).unwrap();
            fs::rename(&c, &b).unwrap();
        };
        let harmless: &[&[&str]] = if pair.iter().any(|name| old.contains(name)) { &[] } else { &[&["rollback"]] };
        ways.push(
            Way::new(format!("{} and {} swapped", pair[0], pair[1]), ".safetensors", 3, spoil).harmless(harmless),
        );
    }
    ways.extend(current.iter().flat_map(|file| headers(file)));
    ways
}

/// Segments with lies in their header, of which the manifest has the right checksum.
fn headers(file: &str) -> Vec<Way> {
    type Change = fn(Vec<u8>) -> Vec<u8>;
    fn text(bytes: Vec<u8>, change: fn(String) -> String) -> Vec<u8> {
        let end = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header = change(String::from_utf8(bytes[8..end].to_vec()).unwrap());
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &bytes[end..]].concat()
    }
    let changes: [(&str, Change); 8] = [
        ("a header beyond the file", |mut bytes| {
            bytes[..8].fill(0xff);
            bytes
        }),
        ("a header of no bytes", |mut bytes| {
            bytes[..8].fill(0);
            bytes
        }),
        ("overlapping tensors", |bytes| {
            text(bytes, |header| header.replace("\"data_offsets\":[", "\"data_offsets\":[0"))
        }),
        ("offsets beyond the file", |bytes| text(bytes, |header| header.replace("]}", "9999999999]}"))),
        ("another dtype", |bytes| text(bytes, |header| header.replace("F64", "I64").replace("F32", "I32"))),
        ("another shape", |bytes| text(bytes, |header| header.replace("\"shape\":[", "\"shape\":[1,"))),
        ("a shape that overflows", |bytes| {
            text(bytes, |header| header.replace("\"shape\":[", "\"shape\":[18446744073709551615,4294967297,"))
        }),
        ("other names", |bytes| text(bytes, |header| header.replace("{\"", "{\"\\u001b[2J"))),
    ];
    let change = |(name, change): (&str, Change)| {
        let path = file.to_owned();
        let spoil = move |model: &Path| {
            let bytes = change(fs::read(model.join(&path)).unwrap());
            fs::write(model.join(&path), &bytes).unwrap();
            relist(model, &path, &bytes);
        };
        Way::new(format!("{file} with {name}"), file, 3, spoil).harmless(&[READERS, WRITERS, &["rollback"]])
    };
    changes.into_iter().map(change).collect()
}

/// Gives the manifest the size and the checksum of a file.
fn relist(model: &Path, file: &str, bytes: &[u8]) {
    let path = model.join("MANIFEST");
    let mut manifest = read(&path);
    manifest["files"][file] = serde_json::json!({ "bytes": bytes.len(), "sha256": hex(bytes) });
    write(&path, &serde_json::to_string_pretty(&manifest).unwrap());
}

/// The JSON of a manifest.
fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap();
    serde_json::from_str(text.split_once('\n').unwrap().1).unwrap()
}

/// Writes a manifest with the right checksum.
fn write(path: &Path, json: &str) {
    fs::write(path, format!("loranpac-model 2 {}\n{json}", hex(json.as_bytes()))).unwrap();
}

/// Puts a text in the place of a value, which need not be there.
pub fn edit(path: &Path, pointer: &str, text: &str) {
    let json = replace(read(path), pointer, text);
    write(path, &json);
}

/// JSON with a text, which need not be valid, in the place of a value.
pub fn replace(mut value: Value, pointer: &str, text: &str) -> String {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(parent).unwrap() {
        Value::Array(list) => list[key.parse::<usize>().unwrap()] = "@@".into(),
        other => other[key] = "@@".into(),
    }
    serde_json::to_string_pretty(&value).unwrap().replacen("\"@@\"", text, 1)
}

/// SHA-256 in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
