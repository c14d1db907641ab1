//! Models on disk, by path.

use std::path::PathBuf;

use loranpac_data::system;
use loranpac_store::{Manifest, Merged, Session};
use pyo3::prelude::*;

use crate::errors;
use crate::threads::detached;

/// Merges models on the disk into a new one; gives warnings.
#[pyfunction]
pub fn merge_models(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    out: PathBuf,
    again: bool,
    prepare: bool,
    threads: usize,
) -> PyResult<Vec<String>> {
    let work = || -> Result<Vec<String>, loranpac_store::Error> {
        if out.exists() {
            return Err(loranpac_store::Error::Refused(format!("{} exists already", out.display())));
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
