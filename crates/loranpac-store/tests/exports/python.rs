//! A virtual environment with numpy, onnx and onnxruntime, made once in cargo's folder for tests.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Its Python, or why there is none.
pub fn python() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let place = folder.join("python-onnx");
    if !place.exists() {
        // Made under a name of its own and renamed when it is whole: what is at the place can be trusted, and processes
        // that run at the same time do not meet.
        let beside = folder.join(format!("python-onnx-{}", std::process::id()));
        let made = make(&beside);
        let renamed = made.and_then(|()| std::fs::rename(&beside, &place).map_err(|e| e.to_string()));
        let _ = std::fs::remove_dir_all(&beside);
        if !place.exists() {
            renamed?;
        }
    }
    Ok(executable(&place))
}

fn make(place: &Path) -> Result<(), String> {
    let base = if cfg!(windows) { "python" } else { "python3" };
    run(Command::new(base).args(["-m", "venv"]).arg(place))?;
    let quick = ["--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "20"];
    let packages = ["numpy", "onnxruntime", "onnx"];
    run(Command::new(executable(place)).args(["-m", "pip", "install"]).args(quick).args(packages))?;
    // A package may install and still not run here.
    run(Command::new(executable(place)).args(["-c", "import numpy, onnx, onnxruntime"]))
}

fn executable(place: &Path) -> PathBuf {
    place.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}
