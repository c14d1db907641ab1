//! The tests of the Python package, in an environment of their own, on the extension that cargo has just built.

#[path = "../../loranpac-store/tests/exports/python.rs"]
mod python;
#[path = "../../loranpac/tests/skip/mod.rs"]
mod skip;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Needs Python 3.9 and packages from PyPI. With LORANPAC_TORCH set, PyTorch is installed as well and compared with.
#[test]
fn pytest_passes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let torch = std::env::var_os("LORANPAC_TORCH").is_some();
    let (name, file) = if torch { python::WITH_TORCH } else { ("python-tests", "requirements.txt") };
    let requirements = root.join("python/tests").join(file);
    let packages = ["-r", requirements.to_str().unwrap()];
    let check = "import sys, sklearn, pytest; assert sys.version_info >= (3, 9), sys.version";
    let python = match python::environment(name, &packages, check) {
        Ok(python) => python,
        Err(why) => return skip::skipped("Python with python/tests/requirements.txt", "pytest_passes", &why),
    };
    let package = assemble(&root);
    let tests = Command::new(python)
        .args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"])
        .arg(root.join("python/tests"))
        .current_dir(&package)
        .env("PYTHONPATH", &package)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let output = [tests.stdout, tests.stderr].concat();
    let output = String::from_utf8_lossy(&output);
    println!("{output}");
    assert!(tests.status.success(), "{output}");
}

/// A folder with the package as a wheel would install it.
fn assemble(root: &Path) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("package");
    let package = folder.join("loranpac");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&package).unwrap();
    for file in fs::read_dir(root.join("python/loranpac")).unwrap() {
        let file = file.unwrap();
        // An extension that maturin has left there, and what Python keeps, are not of this build.
        let path = file.path();
        if ["py", "pyi", "typed"].iter().any(|kind| path.extension().is_some_and(|found| found == *kind)) {
            fs::copy(&path, package.join(file.file_name())).unwrap();
        }
    }
    // target/debug/deps/python-...: the extension is there, too.
    let test = std::env::current_exe().unwrap();
    let (built, name) = match () {
        _ if cfg!(windows) => ("_engine.dll", "_engine.pyd"),
        _ if cfg!(target_os = "macos") => ("lib_engine.dylib", "_engine.abi3.so"),
        _ => ("lib_engine.so", "_engine.abi3.so"),
    };
    let built = test.with_file_name(built);
    fs::copy(&built, package.join(name)).unwrap_or_else(|e| panic!("{}: {e}", built.display()));
    folder
}
