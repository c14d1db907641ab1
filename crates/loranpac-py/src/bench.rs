//! Methods, settings, and runs of them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use loranpac::registry::{Input, METHODS};
use loranpac_bench::Error;
use loranpac_bench::maps::Maps;
use loranpac_bench::plan::{Plan, Resources};
use loranpac_bench::run::Run;
use loranpac_bench::settings::{self, Kind, SETTINGS};
use loranpac_bench::source::Source;
use loranpac_bench::spec::Spec;
use loranpac_bench::value::Value;
use pyo3::prelude::*;

use crate::errors;
use crate::threads::detached;

/// All methods, as JSON.
#[pyfunction]
pub fn methods() -> String {
    let entry = |method: &loranpac::registry::Method| {
        serde_json::json!({
            "name": method.name, "summary": method.summary, "lifted": method.input.lifted(),
            "raw": method.input == Input::Raw,
            "continual": method.continual, "exemplar_free": method.exemplar_free, "infinite": method.infinite, "truncates": method.truncates,
            "cuts": method.cuts,
            "settings": method.settings.iter().map(|(name, meaning)| (*name, *meaning))
                .collect::<std::collections::BTreeMap<_, _>>(),
        })
    };
    serde_json::json!(METHODS.iter().map(entry).collect::<Vec<_>>()).to_string()
}

/// All settings of runs under their Python names, as JSON.
#[pyfunction(name = "settings")]
pub fn list_settings() -> String {
    let entry = |setting: &settings::Setting| serde_json::json!({ "name": setting.keyword(), "help": setting.help, "default": setting.default() });
    serde_json::json!(SETTINGS.iter().map(entry).collect::<Vec<_>>()).to_string()
}

/// Runs methods on a feature file, for each of the class orders; returns the runs as JSON. `chosen` are settings of runs under
/// their Python names, `own` the settings of the methods, both as JSON. `progress` is called with the name of a method and the
/// share of its run that is done.
#[pyfunction]
pub fn run(
    py: Python<'_>,
    data: PathBuf,
    methods: Vec<String>,
    chosen: &str,
    own: &str,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let specs = specs(&methods, chosen, own)?;
    let mut failed = None;
    let mut watch = |method: &str, share: f64| {
        let outcome = Python::attach(|py| {
            py.check_signals()?;
            progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (method, share)).map(drop))
        });
        match outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let outcome = detached(py, threads, || run_all(&Source::named(&data), specs, &mut watch))?;
    if let Some(error) = failed {
        return Err(error);
    }
    serde_json::to_string(&outcome.map_err(errors::bench)?).map_err(errors::value)
}

fn run_all(
    source: &Source,
    specs: Vec<Spec>,
    watch: &mut (dyn FnMut(&str, f64) -> ControlFlow<()> + Send),
) -> Result<Vec<Run>, Error> {
    let mut maps = Maps::default();
    let resources = Resources::threads(rayon::current_num_threads());
    let mut plan = Plan::new(&mut maps, source.open()?, specs, resources)?;
    let names: Vec<String> = plan.specs().map(|spec| spec.method.clone()).collect();
    let one = |(number, name): (usize, &String)| plan.run(number, &mut |progress| watch(name, progress.share));
    names.iter().enumerate().map(one).collect()
}

/// Every method with every class order.
fn specs(methods: &[String], chosen: &str, own: &str) -> PyResult<Vec<Spec>> {
    let mut chosen: BTreeMap<String, Value> = serde_json::from_str(chosen).map_err(errors::value)?;
    let settings = serde_json::from_str(own).map_err(errors::value)?;
    let mut streams = vec![Spec { settings, ..Spec::default() }];
    for setting in SETTINGS {
        let values = match (setting.kind, chosen.remove(&setting.keyword())) {
            (_, None) => continue,
            (Kind::Several, Some(Value::List(values))) => values,
            (_, Some(value)) => vec![value],
        };
        streams = settings::cross(streams, setting, &values).map_err(errors::bench)?;
    }
    if let Some(name) = chosen.keys().next() {
        return Err(errors::value(format!("there is no setting {name}")));
    }
    let with =
        |stream: &Spec| methods.iter().map(|name| Spec { method: name.clone(), ..stream.clone() }).collect::<Vec<_>>();
    Ok(streams.iter().flat_map(with).collect())
}
