//! Experiments of LAMDA-PILOT: its JSON configuration as a recipe.
//!
//! Keys that have a counterpart are followed; the others are returned by name, for a warning.

use std::path::Path;

use loranpac_data::ReadError;
use serde_json::Value;

use crate::choices::Choices;
use crate::error::Error;
use crate::paper;
use crate::recipe::Recipe;
use crate::value::{Many, Value as Chosen};
use crate::view::{Axis, Metric, Table};

/// PILOT's names of data sets that differ from ours.
const DATA: [(&str, &str); 8] = [
    ("cifar224", "cifar100"),
    ("cifar100_vit", "cifar100"),
    ("imagenetr", "imagenet-r"),
    ("imageneta", "imagenet-a"),
    ("cub", "cub200"),
    ("cars", "stanfordcars"),
    ("omni", "omnibenchmark"),
    ("cddb", "cddb-hard"),
];

/// Names of methods in configurations that differ from ours.
const METHODS: [(&str, &str); 4] =
    [("tsvd", "loranpac"), ("adam_adapter", "adam"), ("aper_adapter", "adam"), ("coda_prompt", "codaprompt")];

/// PILOT's names of encoders, and timm's, after which feature files are called.
const ENCODERS: [(&str, &str); 2] =
    [("vit_b16_224_in21k", "vit_base_patch16_224_in21k"), ("vit_b16_224", "vit_base_patch16_224")];

/// Ours for one of theirs, or theirs.
fn translate<'a>(names: &'a [(&str, &str)], theirs: &'a str) -> &'a str {
    names.iter().find(|(name, _)| *name == theirs).map_or(theirs, |(_, ours)| ours)
}

/// Reads a configuration: the recipe, and the keys without a counterpart.
pub fn open(path: &Path) -> Result<(Recipe, Vec<String>), Error> {
    let text = std::fs::read_to_string(path).map_err(|source| ReadError::new(path, source))?;
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    parse(&name, &text)
}

/// The same from text.
pub fn parse(name: &str, text: &str) -> Result<(Recipe, Vec<String>), Error> {
    let refuse = |message: String| Error::Recipe { name: name.to_owned(), message };
    let value: Value = serde_json::from_str(text).map_err(|e| refuse(e.to_string()))?;
    let Value::Object(keys) = value else { return Err(refuse("an object with keys is expected".to_owned())) };
    let mut choices = Choices::default();
    let mut chosen: Vec<(&str, Many<Chosen>)> = Vec::new();
    let (mut base, mut increment, mut seeds) = (None, None, None);
    let (mut data, mut backbone, mut unknown) = (None, None, Vec::new());
    let (mut shuffle, mut search) = (true, false);
    for (key, value) in &keys {
        let wrong = |expected: &str| refuse(format!("{key}: {value} is not {expected}"));
        let count = || value.as_u64().map(|n| n as usize).ok_or_else(|| wrong("a whole number"));
        let number = || value.as_f64().ok_or_else(|| wrong("a number"));
        let word = || value.as_str().ok_or_else(|| wrong("a name"));
        match key.as_str() {
            "init_cls" => base = Some(count()?),
            "increment" => increment = Some(count()?),
            "shuffle" => shuffle = value.as_bool().ok_or_else(|| wrong("true or false"))?,
            "seed" => {
                let one = |value: &Value| value.as_u64().and_then(|seed| u32::try_from(seed).ok());
                let list = match value {
                    Value::Array(seeds) => seeds.iter().map(one).collect::<Option<Vec<_>>>(),
                    seed => one(seed).map(|seed| vec![seed]),
                };
                let list = list.ok_or_else(|| wrong("a seed or a list of seeds"))?;
                seeds = Some(list.into_iter().map(|seed| Chosen::Integer(seed.into())).collect());
            }
            // RanPAC calls its width M.
            "E" | "M" => chosen.push(("width", Many::One(count()?.into()))),
            "rank" => chosen.push(("max-rank", Many::One(count()?.into()))),
            "truncate_percent" => {
                let share = number()?;
                let share = if share >= 1.0 { share / 100.0 } else { share };
                chosen.push(("truncate", Many::One(Chosen::Number(share))));
            }
            "ridge" => drop(choices.set.insert("ridge".to_owned(), Many::One(Chosen::Number(number()?)))),
            "search_ridge" => search = value.as_bool().ok_or_else(|| wrong("true or false"))?,
            "model_name" => {
                let name = translate(&METHODS, &word()?.to_lowercase()).to_owned();
                loranpac::registry::find(&name).map_err(|e| refuse(format!("{key}: {e}")))?;
                choices.method = Some(Many::One(name));
            }
            "dataset" => data = Some(translate(&DATA, word()?).to_owned()),
            "backbone_type" => {
                let name = word()?.trim_start_matches("pretrained_");
                backbone = Some(translate(&ENCODERS, name).to_owned());
            }
            _ => unknown.push(key.clone()),
        }
    }
    let need = |present: bool, key: &str| if present { Ok(()) } else { Err(refuse(format!("{key} is missing"))) };
    need(data.is_some(), "dataset")?;
    need(increment.is_some(), "increment")?;
    need(choices.method.is_some(), "model_name")?;
    // PILOT's first task takes init_cls classes; one as large as the others is no base.
    base = base.filter(|base| Some(*base) != increment);
    chosen.extend(base.map(|base| ("base", Many::One(base.into()))));
    chosen.extend(increment.map(|increment| ("inc", Many::One(increment.into()))));
    let method = choices.method.as_ref().and_then(|m| m.values().first()).map(|name| loranpac::registry::find(name));
    let knows_ridge = method.is_some_and(|method| method.is_ok_and(|method| method.knows("ridge")));
    if search || !knows_ridge {
        // Chosen anew at every task, or of no use to the method.
        if choices.set.remove("ridge").is_some() {
            unknown.push("ridge".to_owned());
        }
    }
    let by_domain = |name: &String| paper::data_sets().get(name).is_some_and(|set| set.scenario == "domain");
    if data.as_ref().is_some_and(by_domain) {
        chosen.push(("scenario", Many::One("domain".into())));
    }
    // Seeds shuffle, and nothing else.
    match seeds {
        _ if !shuffle => chosen.push(("order", Many::One("sorted".into()))),
        Some(seeds) => chosen.push(("seed", Many::List(seeds))),
        None => {}
    }
    for (name, values) in chosen {
        choices.choose(name, &values).map_err(&refuse)?;
    }
    let table = |title: &str, value| Table {
        title: title.to_owned(),
        rows: vec![Axis::Method],
        columns: vec![Axis::Data, Axis::Inc],
        value,
        paper: None,
    };
    let recipe = Recipe {
        name: name.to_owned(),
        title: format!("{name}, an experiment configured for LAMDA-PILOT"),
        paper: None,
        about: String::new(),
        data: data.into_iter().collect(),
        backbone,
        defaults: Choices::default(),
        on: Default::default(),
        runs: vec![choices],
        tables: vec![
            table("Accuracy, as PILOT logs it, %", Metric::Accuracy),
            table("Final accuracy, %", Metric::Final),
            table("Average incremental accuracy, %", Metric::Average),
        ],
        figures: Vec::new(),
    };
    recipe.specs("", &Default::default())?;
    Ok((recipe, unknown))
}

#[cfg(test)]
mod tests {
    use loranpac::Truncation;

    use super::*;
    use crate::recipe::Scale;
    use crate::spec::{Order, Scenario};

    #[test]
    fn a_configuration_becomes_the_same_experiment() {
        let text = r#"{
            "prefix": "reproduce", "dataset": "imageneta", "memory_size": 0, "shuffle": true, "init_cls": 20,
            "increment": 20, "model_name": "LoRanPAC", "backbone_type": "pretrained_vit_b16_224", "device": ["0"],
            "seed": [1993, 1994], "E": 100000, "rank": 20000, "truncate_percent": 25, "ridge": 10
        }"#;
        let (recipe, unknown) = parse("exp", text).unwrap();
        assert_eq!(unknown, ["device", "memory_size", "prefix"]);
        assert_eq!(recipe.data, ["imagenet-a"]);
        assert_eq!(recipe.backbone.as_deref(), Some("vit_base_patch16_224"));
        let specs = recipe.specs("imagenet-a", &Scale::default()).unwrap();
        assert_eq!(specs.iter().map(|s| s.seed).collect::<Vec<_>>(), [1993, 1994]);
        let spec = &specs[0];
        assert_eq!(
            (spec.method.as_str(), spec.width, spec.max_rank),
            ("loranpac", loranpac::Width::Finite(100_000), Some(20_000))
        );
        assert_eq!(spec.truncation, Some(Truncation::Fraction(0.25)));
        assert_eq!(spec.scenario, Scenario::Class { base: 0, increment: 20 });
        assert_eq!(spec.settings["ridge"], "10");
        assert_eq!(spec.order, None);
    }

    #[test]
    fn a_base_and_no_shuffling_are_followed() {
        let text = r#"{"dataset": "vtab", "init_cls": 10, "increment": 5, "model_name": "ranpac", "M": 5000,
            "shuffle": false, "seed": 7}"#;
        let (recipe, unknown) = parse("exp", text).unwrap();
        assert!(unknown.is_empty());
        let spec = &recipe.specs("vtab", &Scale::default()).unwrap()[0];
        assert_eq!(spec.scenario, Scenario::Class { base: 10, increment: 5 });
        assert_eq!((spec.width, &spec.order), (loranpac::Width::Finite(5000), &Some(Order::Sorted)));
    }

    #[test]
    fn a_searched_ridge_is_not_fixed_and_domains_are_tasks() {
        let text = r#"{"dataset": "core50", "init_cls": 50, "increment": 50, "model_name": "ranpac", "M": 5000,
            "search_ridge": true, "ridge": 1000000, "seed": 7}"#;
        let (recipe, unknown) = parse("exp", text).unwrap();
        assert_eq!(unknown, ["ridge"]);
        let spec = &recipe.specs("core50", &Scale::default()).unwrap()[0];
        assert_eq!((spec.scenario, spec.settings.len()), (Scenario::Domain, 0));
        let text = r#"{"dataset": "cub", "increment": 10, "model_name": "tsvd", "ridge": 3}"#;
        let spec = parse("exp", text).unwrap().0.specs("cub200", &Scale::default()).unwrap().remove(0);
        assert_eq!((spec.method.as_str(), spec.settings["ridge"].as_str()), ("loranpac", "3"));
        let text = r#"{"dataset": "cub", "increment": 10, "model_name": "coda_prompt"}"#;
        let spec = parse("exp", text).unwrap().0.specs("cub200", &Scale::default()).unwrap().remove(0);
        assert_eq!(spec.method, "codaprompt");
        let text = r#"{"dataset": "cub", "increment": 10, "model_name": "simplecil", "ridge": 3}"#;
        assert_eq!(parse("exp", text).unwrap().1, ["ridge"]);
    }

    #[test]
    fn what_cannot_be_followed_is_named() {
        let refused = |text: &str, word: &str| {
            let message = parse("exp", text).unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        };
        refused("[]", "an object");
        refused(r#"{"dataset": "cub", "increment": 10, "model_name": "slca"}"#, "slca");
        refused(r#"{"dataset": "cub", "increment": "ten", "model_name": "ranpac"}"#, "increment: \"ten\"");
        refused(r#"{"increment": 10, "model_name": "ranpac"}"#, "dataset is missing");
        refused(r#"{"dataset": "cub", "model_name": "ranpac"}"#, "increment is missing");
        refused("{\"dataset\": ", "EOF");
    }
}
