//! Every command of `docs/tutorial.md`, one after the other, as it stands there.

#[path = "../../loranpac-store/tests/exports/python.rs"]
mod python;
#[path = "../../loranpac/tests/skip/mod.rs"]
mod skip;

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// The blocks of a language in a Markdown text.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).filter_map(|rest| rest.split("```").next().map(str::to_owned)).collect()
}

#[test]
fn every_command_of_the_tutorial_works() {
    let tutorial = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorial.md");
    let text = std::fs::read_to_string(tutorial).unwrap();
    let folder = TempDir::new().unwrap();
    let binaries = Path::new(env!("CARGO_BIN_EXE_loranpac")).parent().unwrap().to_owned();
    let path = std::env::join_paths(
        std::iter::once(binaries).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    )
    .unwrap();
    let run = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(&folder).env("PATH", &path).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    };
    let commands: Vec<String> =
        blocks(&text, "sh").iter().flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    assert!(commands.len() > 20, "{commands:?}");
    for command in &commands {
        let said = run(Path::new("sh"), &["-c", command]);
        if command.contains("eval digits.lrp") {
            let accuracy: f64 = said.split("samples: ").nth(1).unwrap().split('%').next().unwrap().parse().unwrap();
            assert!(accuracy > 95.0, "{said}");
        }
    }
    let served = blocks(&text, "python").into_iter().find(|block| block.contains("onnxruntime")).unwrap();
    let python = match python::environment(
        "python-onnx",
        &["numpy", "onnxruntime", "onnx"],
        "import numpy, onnx, onnxruntime",
    ) {
        Ok(python) => python,
        Err(why) => return skip::skipped("onnxruntime", "every_command_of_the_tutorial_works (its Python)", &why),
    };
    let said = run(&python, &["-c", &served]);
    let answers = std::fs::read_to_string(folder.path().join("answers.csv")).unwrap();
    let ours: Vec<&str> = answers.lines().skip(1).take(5).map(|line| line.split(',').nth(1).unwrap()).collect();
    assert_eq!(said.trim(), format!("{:?}", ours).replace('"', "'"));
}
