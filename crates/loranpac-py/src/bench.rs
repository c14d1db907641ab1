//! Methods, and runs of them.

use std::ops::ControlFlow;
use std::path::PathBuf;

use loranpac::registry::{Input, METHODS};
use loranpac_bench::plan::Maps;
use loranpac_bench::run::Experiment;
use loranpac_bench::spec::Spec;
use loranpac_bench::sweep::Source;
use loranpac_bench::{Error, stream};
use loranpac_data::Dataset;
use pyo3::prelude::*;

use crate::errors;
use crate::threads::detached;

/// All methods, as JSON.
#[pyfunction]
pub fn methods() -> String {
    let entry = |method: &loranpac::registry::Method| {
        serde_json::json!({
            "name": method.name, "summary": method.summary, "lifted": method.input.lifted(),
            "continual": method.continual, "exemplar_free": method.exemplar_free, "infinite": method.infinite, "truncates": method.truncates,
            "cuts": method.cuts,
            "settings": method.settings.iter().map(|(name, meaning)| (*name, *meaning))
                .collect::<std::collections::BTreeMap<_, _>>(),
        })
    };
    serde_json::json!(METHODS.iter().map(entry).collect::<Vec<_>>()).to_string()
}

/// Runs one method on a feature file; `changes` are the fields of the spec that are not as usual, as JSON. Gives the run
/// as JSON. `progress` is called with the share of the work that is done.
#[pyfunction]
pub fn run(
    py: Python<'_>,
    data: PathBuf,
    method: &str,
    changes: &str,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let spec = spec(method, changes)?;
    let mut failed = None;
    let mut watch = |share: f64| {
        let outcome = Python::attach(|py| {
            py.check_signals()?;
            progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (share,)).map(drop))
        });
        match outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let outcome = detached(py, threads, || experiment(&data, spec, threads, &mut watch))?;
    match failed {
        Some(error) => Err(error),
        None => outcome.map_err(errors::eval),
    }
}

fn spec(method: &str, changes: &str) -> PyResult<Spec> {
    let mut value = serde_json::json!(Spec::new(method));
    let changes: serde_json::Map<String, serde_json::Value> = serde_json::from_str(changes).map_err(errors::value)?;
    changes.into_iter().for_each(|(name, change)| value[name] = change);
    let spec: Spec = serde_json::from_value(value).map_err(errors::value)?;
    spec.normalised().map_err(errors::eval)
}

fn experiment(
    data: &std::path::Path,
    spec: Spec,
    threads: usize,
    watch: &mut (dyn FnMut(f64) -> ControlFlow<()> + Send),
) -> Result<String, Error> {
    let source =
        if data.as_os_str() == "digits" && !data.exists() { Source::embedded() } else { Source::file_at(data) };
    let mut dataset: Dataset = source.open()?;
    if let Some(count) = spec.per_class {
        dataset.limit_per_class(count);
    }
    let method = spec.method()?;
    if method.input == Input::Layers {
        let none = || Error::Experiment(format!("{} needs arrays x_train_layer* and x_test_layer*", method.name));
        dataset = dataset.with_layers().ok_or_else(none)?;
    }
    let order = stream::order_of(&dataset, &spec)?;
    let tasks = stream::tasks(&dataset, spec.scenario, &order)?;
    let sizes = stream::sizes(&dataset, tasks.iter());
    let mut maps = Maps::new(true, None);
    let mut plan = [(spec, dataset.dim)];
    maps.check(&mut plan, &sizes, None)?;
    let [(spec, dim)] = plan;
    let map = maps.get(&spec, dim)?;
    let lift = maps.facts(&spec, &map)?;
    let threads = if threads == 0 { rayon::current_num_threads() } else { threads };
    let experiment = Experiment { spec: &spec, method, options: spec.options(map), lift, tasks: &tasks, threads };
    let run = experiment.run(&dataset, &mut |progress| watch(progress.share))?;
    serde_json::to_string(&run).map_err(|e| Error::Experiment(e.to_string()))
}
