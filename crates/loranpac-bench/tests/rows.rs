//! The rows of the paper's tables: which runs make them, and beside which of ours its numbers stand.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use loranpac::{Truncation, Width};
use loranpac_bench::recipe::{self, Recipe, Scale};
use loranpac_bench::record::Record;
use loranpac_bench::source::Source;
use loranpac_bench::spec::{Scenario, Spec};
use loranpac_bench::sweep::Sweep;
use loranpac_bench::view::Metric;

fn recipe(name: &str) -> Recipe {
    recipe::built_in(name).unwrap().unwrap()
}

/// A record of a run that was never made, on data that look like the paper's.
fn record(method: &str, seed: u32, accuracy: f64, train: usize) -> Record {
    let quick = Recipe::parse("t", "title = \"t\"\n[[runs]]\nmethod = \"simplecil\"").unwrap();
    let plans = quick.plans(&[Source::embedded()], &Scale::QUICK).unwrap();
    let sweep = Sweep { plans: &plans, cache: None, threads: 1, beside_the_paper: true, forecast: true };
    let mut record = sweep.run(&mut |_| ControlFlow::Continue(())).unwrap().remove(0);
    record.data.key = "cub200".to_owned();
    record.data.backbone = "vit_base_patch16_224".to_owned();
    record.data.file = "cub200-vit_base_patch16_224".to_owned();
    record.run.method = method.to_owned();
    record.run.config.spec = Spec {
        width: Width::Finite(if method == "ranpac" { 10_000 } else { 100_000 }),
        scenario: Scenario::Class { base: 0, increment: 10 },
        seed,
        ..Spec::new(method)
    };
    record.run.dataset.train = train;
    record.run.dataset.test = 2358;
    record.run.dataset.classes = 200;
    record.run.final_accuracy = Some(accuracy);
    record
}

#[test]
fn the_papers_numbers_stand_beside_ours_where_data_and_encoder_match() {
    let recipe = recipe("cil-vit");
    let ours = [record("loranpac", 1993, 89.0, 9430), record("loranpac", 1994, 90.0, 9430)];
    let filled = recipe.tables[0].fill(&ours);
    assert_eq!(filled.columns, ["cub200-vit_base_patch16_224 Inc-10"]);
    let cell = filled.rows[0].1[0].as_ref().unwrap();
    assert_eq!((cell.mean, cell.runs, cell.paper), (Some(89.5), 2, Some(89.27)));
    assert!((cell.spread.unwrap() - 0.5f64.sqrt()).abs() < 1e-12);
    assert!((cell.difference().unwrap() - 0.23).abs() < 1e-9);
    assert_eq!(cell.text(Metric::Final), "89.50 ± 0.71");
    // Methods that only the paper has are shown, too.
    let l2p = filled.rows.iter().find(|(labels, _)| labels[0].starts_with("L2P")).unwrap();
    assert_eq!(l2p.1[0].as_ref().unwrap().paper, Some(59.2));
    assert!(filled.rows.iter().any(|(labels, _)| labels[0].starts_with("loranpac, adapted as EASE")));
    assert_eq!(filled.row_names[..2], ["method", "adapt"]);

    let lonely = |mut record: Record, change: &dyn Fn(&mut Record)| {
        change(&mut record);
        let filled = recipe.tables[0].fill(&[record]);
        assert_eq!(filled.rows[0].1[0].as_ref().unwrap().paper, None);
    };
    let plain = || record("loranpac", 1993, 89.0, 9430);
    lonely(record("loranpac", 1993, 89.0, 5994), &|_| {});
    lonely(plain(), &|r| r.data.backbone = "efflite2".to_owned());
    lonely(plain(), &|r| r.run.config.spec.width = Width::Finite(20_000));
    lonely(plain(), &|r| r.run.config.spec.per_class = Some(30));
    lonely(plain(), &|r| r.run.config.spec.truncation = Some(Truncation::Fraction(0.5)));
    lonely(plain(), &|r| r.run.config.spec.scenario = Scenario::Class { base: 0, increment: 7 });
}

#[test]
fn adapted_runs_stand_beside_the_papers_adapted_rows() {
    let table = &recipe("cil-vit").tables[0];
    let paper = |method: &str, adapt: Option<&str>, rate: f64, batch: usize| {
        let mut ours = record(method, 1993, 89.0, 9430);
        let (spec, adapt) = (ours.run.config.spec.clone(), adapt.map(str::to_owned));
        ours.run.config.spec = Spec { adapt, adapt_rate: rate, adapt_batch: batch, ..spec }.normalised().unwrap();
        let filled = table.fill(&[ours]);
        let alone: Vec<String> = filled.rows[1..].iter().map(|(labels, _)| labels[0].clone()).collect();
        (filled.rows[0].1[0].as_ref().unwrap().paper, alone)
    };
    // The settings of RanPAC, and those of EASE for this data set.
    assert_eq!(paper("loranpac", None, 0.01, 48).0, Some(89.27));
    assert_eq!(paper("ranpac", Some("adapter"), 0.01, 48).0, Some(87.57));
    assert_eq!(paper("loranpac", Some("adapter"), 0.01, 48).0, Some(89.19));
    assert_eq!(paper("loranpac", Some("adapter"), 0.005, 16).0, Some(89.19));
    assert_eq!(paper("loranpac", Some("adapter"), 0.02, 48).0, None, "settings that the paper does not have");
    assert_eq!(paper("loranpac", Some("ssf"), 0.01, 48).0, None);
    assert_eq!(paper("adam", None, 0.01, 48).0, Some(80.66));
    let (ease, alone) = paper("ease", None, 0.005, 16);
    assert_eq!(ease, Some(81.68));
    assert!(!alone.iter().any(|name| name.contains("EASE") && !name.starts_with("loranpac")), "shown once: {alone:?}");
    assert!(alone.iter().any(|name| name.starts_with("L2P")), "{alone:?}");
}

#[test]
fn prompt_runs_stand_beside_the_papers_if_their_epochs_are_the_papers() {
    let table = &recipe("cil-vit").tables[0];
    let paper = |method: &str, settings: &[(&str, &str)]| {
        let mut ours = record(method, 1993, 60.0, 9430);
        let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        ours.run.config.spec = Spec { settings, ..ours.run.config.spec.clone() }.normalised().unwrap();
        table.fill(&[ours]).rows[0].1[0].as_ref().unwrap().paper
    };
    assert_eq!(paper("l2p", &[]), Some(59.20));
    assert_eq!(paper("dualprompt", &[("batchwise", "true")]), Some(63.99));
    assert_eq!(paper("codaprompt", &[]), Some(60.18));
    assert_eq!(paper("codaprompt", &[("epochs", "50")]), None, "those of ImageNet-R");
    assert_eq!(paper("l2p", &[("pool", "20")]), None);
}

/// The main tables have a row for each method of the paper, with its settings for each data set, and for each head after adaptation.
#[test]
fn the_main_tables_have_all_rows_with_the_papers_settings() {
    for name in ["cil-vit", "cil-vit-in21k", "running-times"] {
        let recipe = recipe(name);
        for data in &recipe.data {
            let specs = recipe.specs(data, &Scale::default()).unwrap();
            let of = |method: &str, rate: Option<f64>| {
                let is_it =
                    |spec: &&Spec| spec.method == method && rate == spec.adapt.as_ref().map(|_| spec.adapt_rate);
                let found: Vec<&Spec> = specs.iter().filter(is_it).collect();
                assert!(!found.is_empty(), "{name}, {data}: {method} {rate:?}");
                found
            };
            let star = match data.as_str() {
                "cub200" => (0.005, 16, 20),
                "imagenet-r" => (0.05, 16, 20),
                "imagenet-a" => (0.05, 32, 20),
                "objectnet" => (0.03, 48, 20),
                "omnibenchmark" => (0.01, 16, 20),
                "vtab" => (0.03, 16, 45),
                _ => (0.025, 48, 20),
            };
            let heads = ["loranpac", "loranpac-soft", "ranpac", "simplecil"];
            for method in heads.into_iter().chain(["adam"]) {
                let settings = (0.01, 48, 20);
                let is_dagger = |spec: &&Spec| (spec.adapt_rate, spec.adapt_batch, spec.adapt_epochs) == settings;
                assert!(of(method, Some(0.01)).iter().any(is_dagger), "{name}, {data}: {method}");
            }
            heads.iter().for_each(|method| drop(of(method, None)));
            let with_star = if name == "running-times" { &[][..] } else { &heads[..] };
            for method in with_star.iter().chain(&["ease"]) {
                let is_star = |spec: &&Spec| (spec.adapt_rate, spec.adapt_batch, spec.adapt_epochs) == star;
                assert!(of(method, Some(star.0)).iter().any(is_star), "{name}, {data}: {method}");
            }
            for (method, epochs) in [("l2p", "10"), ("dualprompt", "10"), ("codaprompt", "50")] {
                let expected = (data == "imagenet-r").then_some(epochs);
                let usual = |spec: &&Spec| spec.settings.get("epochs").map(String::as_str) == expected;
                assert!(of(method, None).iter().all(usual), "{name}, {data}: {method}");
            }
        }
        // On a data set of the paper, each row has a number of its own.
        let rows: BTreeSet<(String, String)> = recipe
            .specs("cub200", &Scale::default())
            .unwrap()
            .into_iter()
            .map(|spec| (spec.method.clone(), format!("{:?}", spec.adapt.map(|_| spec.adapt_rate))))
            .collect();
        assert!(rows.len() >= 13, "{name}: {rows:?}");
    }
}

#[test]
fn a_block_of_runs_may_differ_for_one_data_set() {
    let text = "title = \"t\"\ndata = [\"a\", \"b\"]\n[on.b]\ninc = 2\nadapt-rate = 0.5\n\
                [[runs]]\nmethod = \"simplecil\"\ninc = 5\n\
                [[runs]]\nmethod = \"ease\"\nadapt-rate = 0.25\non.b = { adapt-rate = 0.75, adapt-batch = 3 }\n\
                [[runs]]\nmethod = \"l2p\"\non.a.set.epochs = 7\n";
    let recipe = Recipe::parse("t", text).unwrap();
    let of = |data: &str| {
        let specs = recipe.specs(data, &Scale::default()).unwrap();
        let rates = specs.iter().map(|spec| (spec.scenario, spec.adapt_rate, spec.adapt_batch)).collect::<Vec<_>>();
        let inc = |spec: &Spec| match spec.scenario {
            Scenario::Class { increment, .. } => increment,
            _ => 0,
        };
        (inc(&specs[0]), rates[1].1, rates[1].2, specs[2].settings.get("epochs").cloned())
    };
    assert_eq!(of("a"), (5, 0.25, 48, Some("7".to_owned())));
    assert_eq!(of("b"), (2, 0.75, 3, None));
    let refused = |text: &str, expected: &str| {
        let error = Recipe::parse("t", text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused(&text.replace("on.b =", "on.c ="), "[runs.on.c]: data does not name c");
    refused(&text.replace("[on.b]", "[on.b.on.a]\ninc = 3\n[on.b]"), "a table of its own");
    refused(&text.replace("on.b = {", "on.b = { on.a.inc = 3, "), "a table of its own");
    refused(&text.replace("adapt-batch = 3", "adapt-batch = 0"), "adapt-batch");
}
