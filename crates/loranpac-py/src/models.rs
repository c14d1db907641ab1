//! Models on disk, by path.

use std::path::PathBuf;

use loranpac_data::system;
use loranpac_store::{Manifest, Merged, Model, Part};
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
            return Err(loranpac_store::Error::Refused(format!("{} is there already", out.display())));
        }
        let models = paths.iter().map(|path| Model::open(path)).collect::<Result<Vec<_>, _>>()?;
        let manifests: Vec<Manifest> = models.iter().map(|model| model.manifest().clone()).collect();
        let needed = Manifest::merge_bytes(&manifests)?;
        system::room().ensure(needed, "merging the models", "models of a smaller width or max_rank need less")?;
        let mut parts = models.into_iter().map(Model::into_parts).collect::<Result<Vec<_>, _>>()?;
        let name = |path: &PathBuf| path.display().to_string();
        let parts = parts.iter_mut().zip(&paths);
        let parts = parts
            .map(|((learner, manifest), path)| Part { name: name(path), learner: &mut **learner, manifest })
            .collect();
        let Merged { mut learner, mut manifest, warnings } = loranpac_store::merge(parts, again)?;
        if prepare {
            learner.prepare()?;
        }
        Model::store(&out, &mut manifest, &mut *learner, false)?;
        Ok(warnings)
    };
    detached(py, threads, work)?.map(errors::warnings).map_err(errors::store)
}
