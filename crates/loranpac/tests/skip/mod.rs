//! What a test does that needs something which is not on this machine. Included by the tests of every crate.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// Tells that a test is skipped. If the environment variable LORANPAC_SKIPPED names a file (an absolute path: tests run
/// in the folders of their crates), adds a line to it, from which `.ci/run` lists what was not checked.
pub fn skipped(tool: &str, test: &str, why: &str) {
    // Not by a macro: the test harness hides what those print in a test that passes.
    io::stderr().write_all(format!("skipped: {test}: needs {tool}: {why}\n").as_bytes()).unwrap();
    if let Some(list) = std::env::var_os("LORANPAC_SKIPPED") {
        note(Path::new(&list), tool, test, why).unwrap();
    }
}

/// Adds `TOOL<TAB>TEST<TAB>why` to a list.
pub fn note(list: &Path, tool: &str, test: &str, why: &str) -> io::Result<()> {
    let why: Vec<&str> = why.split_whitespace().collect();
    // One call, so that lines of processes that run at the same time do not mix.
    let line = format!("{tool}\t{test}\t{}\n", why.join(" "));
    OpenOptions::new().create(true).append(true).open(list)?.write_all(line.as_bytes())
}
