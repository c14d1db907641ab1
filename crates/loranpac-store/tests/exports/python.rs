//! Virtual environments with packages from PyPI, made once in cargo's folder for tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Tests of one process make an environment one after the other; the second finds that of the first.
static MAKING: Mutex<()> = Mutex::new(());

/// The environment with PyTorch, which several tests share: its name, and its file in python/tests.
#[allow(dead_code, reason = "not every test compares with PyTorch")]
pub const WITH_TORCH: (&str, &str) = ("python-tests-torch", "requirements-torch.txt");

/// The Python of an environment with these packages (arguments of `pip install`), or why there is none. `check` is a
/// program that must run in it.
pub fn environment(name: &str, packages: &[&str], check: &str) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let place = folder.join(name);
    let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if !place.exists() {
        // Made under a name of its own and renamed when it is whole: what is at the place can be trusted, and processes
        // that run at the same time do not meet.
        let beside = folder.join(format!("{name}-{}", std::process::id()));
        let made = make(&beside, packages, check);
        let renamed = made.and_then(|()| std::fs::rename(&beside, &place).map_err(|e| e.to_string()));
        let _ = std::fs::remove_dir_all(&beside);
        if !place.exists() {
            renamed?;
        }
    }
    Ok(executable(&place))
}

fn make(place: &Path, packages: &[&str], check: &str) -> Result<(), String> {
    let base = if cfg!(windows) { "python" } else { "python3" };
    run(Command::new(base).args(["-m", "venv"]).arg(place))?;
    let quick = ["--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "20"];
    run(Command::new(executable(place)).args(["-m", "pip", "install"]).args(quick).args(packages))?;
    // A package may install and still not run here.
    run(Command::new(executable(place)).args(["-c", check]))
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
