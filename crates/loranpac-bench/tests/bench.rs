//! Recipes, sweeps and reports, on the digits inside the program.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use loranpac::{Truncation, Width};
use loranpac_bench::Error;
use loranpac_bench::adapted::RunFeatures;
use loranpac_bench::cache::Cache;
use loranpac_bench::page::Report;
use loranpac_bench::paper;
use loranpac_bench::recipe::{self, RECIPES, Recipe, Scale};
use loranpac_bench::record::Record;
use loranpac_bench::source::{self, Source};
use loranpac_bench::spec::Scenario;
use loranpac_bench::sweep::{Event, Sweep};
use loranpac_bench::view::Panel;
use tempfile::TempDir;

fn recipe(name: &str) -> Recipe {
    recipe::built_in(name).unwrap().unwrap()
}

/// Runs a recipe on the digits; the watcher may break it off.
fn sweep(recipe: &Recipe, folder: &Path, watch: &mut dyn FnMut() -> ControlFlow<()>) -> Result<Vec<Record>, Error> {
    let cache = Cache::open(folder.to_owned())?;
    let plans = recipe.plans(&[Source::embedded()], &Scale::QUICK)?;
    let sweep = Sweep { plans: &plans, cache: Some(&cache), threads: 1, beside_the_paper: true, forecast: true };
    sweep.run(&mut |_: Event<'_>| watch())
}

fn all_of(recipe: &Recipe, folder: &Path) -> Vec<Record> {
    sweep(recipe, folder, &mut || ControlFlow::Continue(())).unwrap()
}

/// A record without what no two runs share.
fn without_times(record: &Record) -> serde_json::Value {
    let mut value = serde_json::to_value(record).unwrap();
    let run = &mut value["run"];
    run["peak_rss_bytes"].take();
    for task in run["tasks"].as_array_mut().unwrap() {
        ["learn_seconds", "weights_seconds", "eval_seconds"].iter().for_each(|key| drop(task[key].take()));
    }
    value
}

#[test]
fn there_is_a_recipe_for_every_table_and_figure() {
    let papers: Vec<String> = RECIPES.iter().filter_map(|(name, _)| recipe(name).paper).collect();
    for label in [
        "CIL-ViT",
        "CIL-ViT-inc1",
        "CIL-ViT-in21k",
        "CIL-ViT-multiple",
        "CIL-ViT-E=10000",
        "hyperparameters",
        "running times",
        "DIL-ViT",
        "LC",
        "ablation-RFM",
        "stability",
        "truncation-effect",
        "training-time-inc5",
        "training-loss",
        "acc-inc5-E",
        "effective-rank",
        "eigenvalues-continual",
        "normalized-ev-diff",
        "eigenvalues-varying-E",
        "ICL1.5",
        "ranpac-unstable",
        "training-loss-ranpac",
        "cross-validation-instability2",
        "stability-inc",
    ] {
        let named = |paper: &String| paper.ends_with(&format!(" {label}")) || paper.contains(&format!(" {label} "));
        assert!(papers.iter().any(named), "{label}");
    }
    let known = paper::data_sets();
    for (name, _) in RECIPES {
        let recipe = recipe(name);
        let papers = recipe.data.iter().all(|data| known.contains_key(data));
        assert!(!recipe.data.is_empty() && (papers || recipe.paper.is_none()), "{name}");
        assert!(!recipe.about.is_empty() && recipe.tables.len() + recipe.figures.len() > 0, "{name}");
    }
}

#[test]
fn every_recipe_fills_its_tables_and_figures_in_seconds() {
    let out = TempDir::new().unwrap();
    for (name, _) in RECIPES {
        let recipe = recipe(name);
        let records = all_of(&recipe, &out.path().join("runs"));
        // Without a ridge, features that are zero for all digits make RanPAC's equations singular.
        let impossible = usize::from(["ranpac-unstable", "training-loss-ranpac"].contains(name));
        // The digits are features: there is no encoder to adapt.
        let specs = recipe.specs("digits", &Scale::QUICK).unwrap();
        let adapting = specs.iter().filter(|spec| RunFeatures::of(spec).unwrap() != RunFeatures::Frozen).count();
        assert_eq!(records.len() + impossible + adapting, specs.len(), "{name}");
        for table in &recipe.tables {
            let filled = table.fill(&records);
            assert!(!filled.rows.is_empty() && !filled.columns.is_empty(), "{name}: {}", table.title);
            assert!(filled.rows.iter().all(|(_, cells)| cells.iter().any(Option::is_some)), "{name}: {}", table.title);
        }
        for figure in &recipe.figures {
            let panels = figure.draw(&records);
            assert!(!panels.is_empty(), "{name}: {} shows nothing", figure.title);
            for panel in panels {
                if let Panel::Chart { lines, .. } = panel {
                    assert!(lines.iter().all(|line| !line.points.is_empty()), "{name}: {}: {lines:?}", figure.title);
                }
            }
        }
        let folder = out.path().join(name);
        Report::new(&recipe, &records, &[], "loranpac bench").write(&folder).unwrap();
        let html = std::fs::read_to_string(folder.join("report.html")).unwrap();
        assert!(html.contains(&recipe.title.replace('&', "&amp;")) && html.contains("loranpac run --data digits"));
        let outside = html.replace("http://www.w3.org/2000/svg", "");
        assert!(["http:", "https:", " src=", "url(", "@import"].iter().all(|word| !outside.contains(word)), "{name}");
        let files = std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap());
        let files: BTreeSet<String> = files.collect();
        assert!(files.contains("report.md") && files.contains("runs.csv"), "{files:?}");
        assert_eq!(files.iter().filter(|f| f.starts_with("table-")).count(), recipe.tables.len(), "{files:?}");
        assert_eq!(files.iter().any(|f| f.ends_with(".svg")), html.contains("<svg"), "{name}: {files:?}");
    }
}

#[test]
fn a_report_says_how_wide_runs_are_what_columns_mean_and_where_it_comes_from() {
    let text = "title = \"t\"\n[[runs]]\nmethod = [\"loranpac\", \"loranpac-soft\"]\nwidth = 6000\ninc = 25\n\
        [[runs]]\nmethod = [\"ranpac\", \"simplecil\"]\nwidth = 4000\ninc = 25\n\
        [[runs]]\nmethod = \"loranpac-soft\"\nwidth = \"infinite\"\ninc = 25\n\
        [[tables]]\ntitle = \"Forgetting\"\nrows = [\"method\", \"lift\"]\ncolumns = [\"inc\"]\nvalue = \"forgetting\"\n";
    let recipe = Recipe::parse("t", text).unwrap();
    let out = TempDir::new().unwrap();
    let records = all_of(&recipe, &out.path().join("runs"));
    let notes = ["a note".to_owned()];
    let report = Report::new(&recipe, &records, &notes, "loranpac bench t.toml");
    let table = &report.tables()[0];
    assert_eq!(table.row_names, ["data", "method", "lift", "width E"]);
    assert_eq!(table.columns, ["Inc-5"], "the increment that was run");
    let widths: Vec<&str> = table.rows.iter().map(|(labels, _)| labels[3].as_str()).collect();
    assert_eq!(widths, ["30", "30", "20", "-", "\u{221e} (keeps samples)"]);
    report.write(out.path()).unwrap();
    let read = |name: &str| std::fs::read_to_string(out.path().join(name)).unwrap();
    let (html, markdown) = (read("report.html"), read("report.md"));
    for text in [&html, &markdown] {
        for words in [
            "Mean drop from each task's best earlier accuracy to its last",
            "width E",
            "UTC",
            "core",
            "Notes",
            "a note",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(text.contains("loranpac bench t.toml") && text.contains(env!("CARGO_PKG_VERSION")), "{text}");
    }
    // Without scripts there is nothing to compare with, and every value of a chart stands in a table.
    assert!(html.contains("<section id=\"compare\" hidden><h2>Compare two methods</h2>"));
    assert!(html.contains("<summary>Values</summary>"));
}

/// The heart of the promise: wherever a sweep ends, the same command gives what it would have given.
#[test]
fn a_sweep_broken_off_anywhere_ends_in_the_same_result() {
    let recipe = Recipe::parse(
        "small",
        "title = \"t\"\n[[runs]]\nmethod = [\"loranpac\", \"ranpac\", \"lc-x\"]\nwidth = 4000\ninc = 25\nseed = [1, 2]",
    )
    .unwrap();
    let whole = TempDir::new().unwrap();
    let events = Cell::new(0);
    let expected = sweep(&recipe, whole.path(), &mut || {
        events.set(events.get() + 1);
        ControlFlow::Continue(())
    });
    let expected: Vec<_> = expected.unwrap().iter().map(without_times).collect();
    assert!(events.get() > 10);
    for stop in 0..events.get() {
        let folder = TempDir::new().unwrap();
        let seen = Cell::new(0);
        let first = sweep(&recipe, folder.path(), &mut || {
            seen.set(seen.get() + 1);
            if seen.get() > stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        // A break after the last task of the last run comes too late to matter.
        assert!(matches!(first, Err(Error::Interrupted)) || stop + 2 >= events.get(), "stop {stop}");
        let resumed: Vec<_> = all_of(&recipe, folder.path()).iter().map(without_times).collect();
        assert_eq!(resumed, expected, "stop {stop}");
    }
}

#[test]
fn finished_runs_are_not_run_again_and_damaged_ones_are() {
    let folder = TempDir::new().unwrap();
    let text = "title = \"t\"\n[[runs]]\nmethod = [\"loranpac\", \"simplecil\"]\nwidth = 4000\ninc = 25";
    let recipe = Recipe::parse("small", text).unwrap();
    let first = all_of(&recipe, folder.path());
    let again = all_of(&recipe, folder.path());
    let times = |records: &[Record]| -> Vec<f64> { records.iter().map(|r| r.run.tasks[0].learn_seconds).collect() };
    assert_eq!(times(&first), times(&again), "the clock did not run again");
    assert_eq!(serde_json::to_value(&first).unwrap(), serde_json::to_value(&again).unwrap(), "to the last digit");
    let files = || std::fs::read_dir(folder.path()).unwrap().map(|f| f.unwrap().path()).collect::<Vec<PathBuf>>();
    assert_eq!(files().len(), 2);
    for file in files() {
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, &text[..text.len() / 2]).unwrap();
    }
    let repaired = all_of(&recipe, folder.path());
    assert_eq!(
        repaired.iter().map(without_times).collect::<Vec<_>>(),
        first.iter().map(without_times).collect::<Vec<_>>()
    );
    // Another configuration does not find these.
    let other = Recipe::parse("small", &text.replace("4000", "6000")).unwrap();
    all_of(&other, folder.path());
    assert_eq!(files().len(), 3, "simplecil has no width, and is shared");
}

#[test]
fn choices_are_crossed_and_the_last_word_wins() {
    let text = r#"
        title = "t"
        data = ["vtab", "cub200"]
        [defaults]
        width = [1000, 2000]
        inc = 5
        set.ridge = 1
        [on.vtab]
        base = 10
        inc = [10, 20]
        [[runs]]
        method = ["loranpac", "loranpac-soft"]
        truncate = [0.1, 0.2]
        [[runs]]
        method = "ranpac"
        width = 500
        order = ["b", "a"]
    "#;
    let recipe = Recipe::parse("t", text).unwrap();
    let specs = |data| recipe.specs(data, &Scale::default()).unwrap();
    assert_eq!(specs("cub200").len(), 2 * 2 * 2 + 1);
    assert_eq!(specs("vtab").len(), 2 * (2 * 2 * 2 + 1));
    let divisions: Vec<Scenario> = specs("vtab").iter().map(|spec| spec.scenario).collect();
    assert!(divisions.contains(&Scenario::Class { base: 10, increment: 20 }), "{divisions:?}");
    assert!(divisions.contains(&Scenario::Class { base: 0, increment: 10 }), "ten and ten are equal tasks");
    let first = &specs("cub200")[0];
    assert_eq!((first.width, first.truncation), (Width::Finite(1000), Some(Truncation::Fraction(0.1))));
    assert_eq!(first.settings["ridge"], "1");
    let last = specs("cub200").pop().unwrap();
    assert_eq!((last.method.as_str(), last.width), ("ranpac", Width::Finite(500)));
    assert!(last.order.is_some());
}

#[test]
fn mistakes_in_recipes_are_named() {
    let refused = |text: &str, word: &str| {
        let message = Recipe::parse("mine", text).unwrap_err().to_string();
        assert!(message.contains("mine") && message.contains(word), "{message}");
    };
    refused("title = 3", "string");
    refused("title = \"t\"", "runs");
    refused("title = \"t\"\nruns = []", "no [[runs]]");
    refused("title = \"t\"\n[[runs]]\nmethod = \"magic\"", "magic");
    refused("title = \"t\"\n[[runs]]\nwidht = 3", "widht");
    refused("title = \"t\"\n[[runs]]\ninc = 5\nwidht = 3", "line 4");
    refused("title = \"t\"\n[[runs]]\ninc = 5\nwidth = [3, 0]", "line 4");
    refused("title = \"t\"\n[[runs]]\nrank = 5\ntruncate = 0.5", "truncate and rank exclude each other");
    refused("title = \"t\"\n[[runs]]\nwidth = \"infinite\"\nlift = \"fourier\"", "fourier has none");
    refused("title = \"t\"\n[[runs]]\nmethod = \"simplecil\"\nset.ridge = 3", "ridge");
    refused("title = \"t\"\n[on.cub200]\nbase = 3\n[[runs]]\nmethod = \"loranpac\"", "cub200");
    let figure = "title = \"t\"\n[[runs]]\nmethod = \"loranpac\"\n[[figures]]\ntitle = \"f\"\nx = ";
    refused(&format!("{figure}\"height\"\ny = \"final\""), "height");
    refused(&format!("{figure}\"width\""), "y is missing");
    refused(
        &format!("{figure}\"index\"\ny = \"accuracy\""),
        "accuracy on all classes so far, % cannot be drawn over index",
    );
    refused(&format!("{figure}\"task\"\ny = \"final\""), "cannot be drawn over task");
    refused(&format!("{figure}\"task\"\ny = \"accuracy\"\nonly = {{ width = 7 }}"), "no run is as `only` says");
    refused("title = \"t\"\n[[runs]]\nwidth = 0", "width = 0");
    refused("title = \"t\"\n[[runs]]\nseed = []", "empty list");
    refused("title = \"t\"\n[[runs]]\ntruncate = 1.5", "1.5");
    refused("title = \"t\"\n[[runs]]\nmethod = 3", "docs/recipes.md");
    refused("title = \"t\"\n[[runs]]\neval = \"never\"", "never");
    // Runs that differ in more than the seed must not be averaged.
    let table = "title = \"t\"\n[[runs]]\nwidth = [10, 20]\n[[tables]]\ntitle = \"f\"\nrows = [\"method\"]\n";
    refused(&format!("{table}columns = [\"data\"]\nvalue = \"final\""), "nothing there tells these apart");
    refused(&format!("{table}columns = [\"width\"]\nvalue = \"eigenvalues\""), "a cell holds one");
    let table = "title = \"t\"\n[[runs]]\nmethod = \"loranpac\"\n[[tables]]\ntitle = \"f\"\nrows = [\"method\"]\n";
    refused(&format!("{table}columns = [\"data\"]\nvalue = \"final\"\npaper = \"none\""), "no table none");
}

/// The hyperparameters of the recipe are those of the paper's table.
#[test]
fn table_hyperparameters() {
    let recipe = recipe("hyperparameters");
    let text = include_str!("../paper/tables/hyperparameters.csv");
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let (data, metric, value) = (cells[0], cells[7], cells[8].parse::<f64>().unwrap());
        for spec in recipe.specs(data, &Scale::default()).unwrap() {
            let ours = match metric {
                "truncate" => match spec.truncation {
                    Some(Truncation::Fraction(zeta)) => zeta,
                    other => panic!("{other:?}"),
                },
                "width" => spec.computed_width() as f64,
                "max-rank" => spec.cap() as f64,
                other => panic!("{other}"),
            };
            assert_eq!(ours, value, "{data}: {metric}");
        }
    }
    assert_eq!(recipe.data.len() * 3, text.lines().count() - 1);
}

#[test]
fn figures_take_the_runs_that_they_ask_for() {
    let text = "title = \"t\"\n[defaults]\ninc = 5\nspectrum = \"every\"\n\
                [[runs]]\nmethod = \"loranpac\"\nwidth = [4000, 8000]\nschedule = [\"late\", \"paper\"]\n\
                [[runs]]\nmethod = \"loranpac-soft\"\nwidth = 4000\n\
                [[figures]]\ntitle = \"a\"\nx = \"task\"\ny = [\"max-eigenvalue\", \"min-eigenvalue\"]\n\
                lines = [\"schedule\"]\nonly = { width = 20, method = \"loranpac\" }\n\
                [[figures]]\ntitle = \"b\"\nx = \"width\"\ny = \"final\"\nlines = [\"method\"]\nonly = { schedule = \"late\" }\n";
    // Quick widths are what `only` must name here.
    assert!(Recipe::parse("t", text).unwrap_err().to_string().contains("no run is as"));
    let recipe = Recipe::parse("t", &text.replace("width = 20,", "width = 4000,")).unwrap();
    let folder = TempDir::new().unwrap();
    let mut records = all_of(&recipe, folder.path());
    records.iter_mut().for_each(|record| {
        let spec = &mut record.run.config.spec;
        spec.width = Width::Finite(200 * spec.computed_width());
    });
    let names = |figure: usize| match &recipe.figures[figure].draw(&records)[..] {
        [Panel::Chart { lines, .. }] => lines.iter().map(|line| line.name.clone()).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let expected =
        ["late schedule, largest", "late schedule, smallest", "paper schedule, largest", "paper schedule, smallest"];
    assert_eq!(names(0), expected.map(|name| format!("{name} eigenvalue")));
    assert_eq!(names(1), ["loranpac", "loranpac-soft"]);
    // The paper schedule keeps k_t directions, and its spectrum has no more.
    let paper = records.iter().find(|r| r.run.config.spec.schedule == loranpac::Schedule::Paper).unwrap();
    let task = &paper.run.tasks[1];
    let width = paper.run.config.spec.computed_width() / 200;
    assert_eq!(task.spectrum.as_ref().unwrap().len(), (width.min(task.samples_seen) * 3).div_ceil(4));
}

#[test]
fn domains_that_are_only_tested_are_tested_from_the_start() {
    let mut data = loranpac_data::embedded::digits();
    let domains = |tested: &[i64]| tested.iter().map(|d| loranpac::Label::Integer(*d)).collect::<Vec<_>>();
    let halves = (data.train.len(), data.test.len());
    data.train.domain = Some(domains(&(0..halves.0).map(|i| [1, 2][i % 2]).collect::<Vec<_>>()));
    data.test.domain = Some(domains(&(0..halves.1).map(|i| [0, 2, 7][i % 3]).collect::<Vec<_>>()));
    let order: Vec<usize> = (0..10).collect();
    let tasks = loranpac_bench::stream::tasks(&data, Scenario::Domain, &order).unwrap();
    assert_eq!(tasks.len(), 2);
    assert_eq!(tasks.iter().map(|task| task.test.len()).sum::<usize>(), data.test.len());
    assert_eq!(tasks[1].test.len(), (0..halves.1).filter(|i| i % 3 == 1).count());
}

#[test]
fn feature_files_are_found_by_name() {
    let folder = TempDir::new().unwrap();
    let names = [
        "cub200-efflite2.npz",
        "cub200-vit_base_patch16_224.npz",
        "cub200-vit_base_patch16_224_in21k.npz",
        "imagenet-a.safetensors",
        "clinc150-minilm.npz",
        "notes.txt",
    ];
    names.iter().for_each(|name| std::fs::write(folder.path().join(name), "").unwrap());
    let files = source::feature_files(folder.path()).unwrap();
    assert_eq!(files.len(), 5, "{files:?}");
    let want = |names: &[&str], backbone| {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let (found, missing) = source::find(&files, &names, backbone);
        (found.into_iter().map(|s| format!("{}/{}", s.key, s.backbone)).collect::<Vec<_>>(), missing)
    };
    let all = ["cub200/efflite2", "cub200/vit_base_patch16_224", "cub200/vit_base_patch16_224_in21k"];
    assert_eq!(want(&["cub200"], Some("other")).0, all);
    assert_eq!(want(&["cub200"], Some("vit_base_patch16_224_in21k")).0, [all[2]]);
    assert_eq!(want(&["imagenet-a", "vtab"], None), (vec!["imagenet-a/".to_owned()], vec!["vtab".to_owned()]));
    assert_eq!(want(&["cub200-efflite2"], Some("vit_base_patch16_224")).0, ["cub200/efflite2"]);
    let keys: Vec<String> = source::all(&files).into_iter().map(|s| s.key).collect();
    assert_eq!(keys, ["clinc150", "cub200", "cub200", "cub200", "imagenet-a"]);
}
