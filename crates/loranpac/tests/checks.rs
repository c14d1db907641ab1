//! The checks themselves: that the mutation run still fits the sources, and that no check is skipped unnoticed.

mod skip;

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_mistake_of_the_mutation_run_applies_to_the_sources() {
    let base = if cfg!(windows) { "python" } else { "python3" };
    if let Err(error) = Command::new(base).arg("--version").output() {
        return skip::skipped("Python", "every_mistake_of_the_mutation_run_applies_to_the_sources", &error.to_string());
    }
    let output = Command::new(base).arg(root().join("bench/mutants.py")).arg("--check").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("mistakes apply"));
}

/// Whether `.ci/skipped` accepts a list with these tools, and what it prints.
#[cfg(unix)]
fn accepts(name: &str, tools: &[&str]) -> (bool, String) {
    let list = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&list, "").unwrap();
    for tool in tools {
        skip::note(&list, tool, "some_test", "it is\n\tnot here").unwrap();
    }
    let output = Command::new(root().join(".ci/skipped")).arg(&list).output().unwrap();
    std::fs::remove_file(&list).unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

#[cfg(unix)]
#[test]
fn only_data_beside_the_repository_may_be_missing() {
    let told = |tool: &str| format!("skipped: some_test: needs {tool}: it is not here\n");
    assert_eq!(accepts("skipped-nothing", &[]), (true, "No check was skipped.\n".to_owned()));
    assert_eq!(accepts("skipped-shared", &["../shared/data"]), (true, told("../shared/data")));
    for tool in ["Chromium", "onnxruntime", "torch", "NumPy, pandas and PyArrow", "Python", "sklearn", "dask"] {
        let (accepted, printed) = accepts("skipped-tool", &["../shared/data", tool]);
        assert!(!accepted && printed == told("../shared/data") + &told(tool), "{tool}: {printed}");
    }
}
