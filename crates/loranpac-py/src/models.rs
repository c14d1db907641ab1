//! Models on disk, by path.

use std::path::{Path, PathBuf};

use loranpac::auto::{self, Expected};
use loranpac::lift;
use loranpac_data::system;
use loranpac_store::folder::MANIFEST;
use loranpac_store::{Error, Manifest, Merged, Rolled, Session};
use pyo3::prelude::*;
use serde_json::json;

use crate::errors;
use crate::threads::detached;

/// Merges models on disk into a new one; returns warnings.
#[pyfunction]
pub fn merge_models(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    out: PathBuf,
    again: bool,
    prepare: bool,
    threads: usize,
) -> PyResult<Vec<String>> {
    let work = || -> Result<Vec<String>, Error> {
        if out.exists() {
            return Err(Error::Exists { path: out.clone() });
        }
        let mut models = paths.iter().map(|path| Session::open(path)).collect::<Result<Vec<_>, _>>()?;
        let manifests: Vec<Manifest> = models.iter().map(|model| model.manifest().clone()).collect();
        let needed = Manifest::merge_bytes(&manifests)?;
        system::room().ensure(needed, "merging the models", "models of a smaller width or max_rank need less")?;
        let parts = paths.iter().map(|path| path.display().to_string()).zip(models.iter_mut()).collect();
        let Merged { mut session, warnings } = loranpac_store::merge(parts, again)?;
        if prepare {
            session.prepared()?;
        }
        session.save(&out, false)?;
        Ok(warnings)
    };
    detached(py, threads, work)?.map(errors::warnings).map_err(errors::store)
}

/// Reads every byte of a model and of its earlier versions; returns the findings as JSON.
#[pyfunction]
pub fn verify(py: Python<'_>, path: PathBuf, threads: usize) -> PyResult<String> {
    let work = || -> Result<String, Error> {
        // A manifest that cannot be read is damage, which verify reports.
        if let Ok(manifest) = Manifest::read(&path.join(MANIFEST)) {
            let advice = "a model of a smaller width or max_rank needs less";
            system::room().ensure(manifest.load_bytes(), &path.display().to_string(), advice)?;
        }
        let found = Session::verify(&path)?;
        let problems = errors::warnings(found.problems().map(Error::to_string).collect());
        Ok(json!({
            "whole": found.is_whole(), "files": found.files, "bytes": found.bytes, "problems": problems,
        })
        .to_string())
    };
    detached(py, threads, work)?.map_err(errors::store)
}

/// The versions of a model, the latest first, as JSON.
#[pyfunction]
pub fn history(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    py.detach(|| versions(&path)).map_err(errors::store)
}

fn versions(path: &Path) -> Result<String, Error> {
    let session = Session::open(path)?;
    let current = session.manifest();
    let earlier = session.history().into_iter().filter(|old| old.version < current.version);
    let versions = std::iter::once(current.clone()).chain(earlier).map(|manifest| {
        json!({
            "version": manifest.version, "samples": manifest.samples, "tasks": manifest.tasks.len(),
            "classes": manifest.classes.iter().map(|class| &class.label).collect::<Vec<_>>(),
            "encoder": manifest.encoder.name, "software": manifest.software, "restored": manifest.restored,
        })
    });
    Ok(json!(versions.collect::<Vec<_>>()).to_string())
}

/// Restores an earlier version of a model. Returns its number, and whether that has changed the model.
#[pyfunction]
pub fn rollback(py: Python<'_>, path: PathBuf, version: Option<u64>) -> PyResult<(u64, bool)> {
    let work = || Session::open_to_roll_back(&path)?.rollback(version);
    Ok(match py.detach(work).map_err(errors::store)? {
        Rolled::Back(version) => (version, true),
        Rolled::Already(version) => (version, false),
    })
}

/// Sets how many earlier versions of a model are kept from the next change on.
#[pyfunction]
pub fn keep_versions(py: Python<'_>, path: PathBuf, count: usize) -> PyResult<()> {
    let work = || -> Result<(), Error> {
        let mut session = Session::open_to_write(&path)?;
        session.keep(count);
        session.commit()
    };
    py.detach(work).map_err(errors::store)
}

/// Deletes the earlier versions of a model.
#[pyfunction]
pub fn drop_history(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    py.detach(|| Session::open_to_write(&path)?.drop_history()).map_err(errors::store)
}

/// The width that is chosen for a number of samples, whatever the memory; None if it is infinite.
#[pyfunction]
pub fn auto_width(samples: Option<usize>, keep_samples: bool, lift: &str) -> PyResult<Option<usize>> {
    let entry = lift::find(lift).map_err(errors::engine)?;
    let expected = Expected { samples, may_keep: keep_samples, has_limit: entry.limit.is_some(), inside: 0 };
    Ok(auto::choose(expected, |_| true).width.finite())
}
