//! The command line as a person or a program meets it.

mod common;

use common::{data, json, loranpac, npy, refused, stdout};
use loranpac_bench::settings::Kind;

#[test]
fn demo_shows_all_four_methods_class_by_class() {
    let text = stdout(&loranpac(&["demo"]));
    for word in ["LoRanPAC soft", "min-norm", "class means", "1348"] {
        assert!(text.contains(word), "{text}");
    }
    let last = text.lines().find(|line| line.trim_start().starts_with("1 ") && line.contains(" 1348 ")).unwrap();
    let numbers: Vec<f64> = last.split_whitespace().map(|word| word.parse().unwrap()).collect();
    assert!(numbers[3] > 95.0 && numbers[4] > 95.0 && numbers[5] < 90.0, "{last}");
}

#[test]
fn run_writes_one_object_with_a_run_per_method_and_seed() {
    let folder = data();
    let path = folder.path().to_str().unwrap();
    let base = ["run", "--data", path, "--inc", "2", "--width", "300", "--json", "-"];
    let more = ["--method", "loranpac,loranpac-soft,min-norm,simplecil", "--seed", "1993,1"];
    let result = json(&[&base[..], &more[..]].concat());
    assert_eq!(result["schema"], 1);
    let runs = result["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 8);
    assert_eq!(runs[0]["dataset"]["classes"], 6);
    assert_eq!(runs[0]["accuracy_matrix"].as_array().unwrap().len(), 3);
    assert!(runs[0]["final_accuracy"].as_f64().unwrap() > 90.0, "{}", runs[0]["final_accuracy"]);
    assert_eq!(runs[0]["config"]["lift"]["width"], 300);
    assert!(runs[3]["config"]["lift"].is_null(), "simplecil has no lift");
    assert_ne!(runs[0]["seed"], runs[7]["seed"]);
}

#[test]
fn all_methods_come_in_one_table_with_what_kind_they_are() {
    let folder = data();
    let path = folder.path().to_str().unwrap();
    let common = ["run", "--data", path, "--inc", "2", "--width", "60", "--schedule", "paper"];
    let arguments = [&common[..], &["--seed", "1993,1994", "--method", "all"]].concat();
    let output = loranpac(&arguments);
    let note = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(["layup", "ease", "l2p"].iter().all(|name| note.contains(&format!("{name} is left out"))), "{note}");
    let text = stdout(&output);
    let rows: Vec<&str> = text.lines().skip(2).take_while(|line| !line.is_empty()).collect();
    let methods = loranpac::registry::METHODS.iter().filter(|method| method.name != "layup" && !method.input.adapts());
    assert_eq!(rows.len(), methods.clone().count(), "{text}");
    for method in methods {
        let row = rows.iter().find(|row| row.split_whitespace().next() == Some(method.name)).unwrap();
        assert_eq!(row.contains("exemplar-free"), method.exemplar_free, "{row}");
        assert_eq!(row.contains("joint, keeps"), !method.continual, "{row}");
        assert!(row.contains('\u{b1}'), "mean and spread over the seeds: {row}");
    }
    let accuracy: Vec<f64> = rows.iter().map(|row| row.split_whitespace().nth(1).unwrap().parse().unwrap()).collect();
    assert!(accuracy.is_sorted_by(|a, b| a >= b), "best first: {accuracy:?}");
    assert!(text.starts_with("method") && text.lines().next().unwrap().contains("  accuracy %  "), "{text}");
    for word in ["accuracy ", "final ", "total ", "forgetting "] {
        assert!(text.lines().any(|line| line.starts_with(word) && line.len() > 40), "{word} is explained: {text}");
    }
}

#[test]
fn infinite_width_is_a_width_that_keeps_samples() {
    let folder = data();
    let path = folder.path().to_str().unwrap();
    let output = loranpac(&["run", "--data", path, "--inc", "2", "--width", "infinite", "--method", "all"]);
    let note = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(note.contains("no infinite width") && note.contains("ranpac"), "{note}");
    let text = stdout(&output);
    let row = |name: &str| text.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap().to_owned();
    assert!(row("loranpac").contains("continual, keeps samples"), "{text}");
    assert!(row("loranpac-soft").contains("continual, keeps samples"), "{text}");
    assert!(row("simplecil").contains("exemplar-free"), "{text}");
    let common = ["run", "--data", path, "--inc", "2", "--width", "infinite", "--json", "-"];
    let value =
        json(&[&common[..], &["--method", "loranpac-soft", "--set", "ridge=loo", "--set", "samples=f16"]].concat());
    let run = &value["runs"][0];
    assert_eq!((&run["exemplar_free"], &run["config"]["lift"]["width"]), (&false.into(), &serde_json::Value::Null));
    assert!(run["tasks"][0]["leave_one_out"].as_f64().unwrap() > 0.0, "{run}");
}

#[test]
fn an_automatic_width_is_the_default_and_says_why() {
    let folder = data();
    let path = folder.path().to_str().unwrap();
    let common = ["run", "--data", path, "--inc", "2", "--eval", "final", "--method", "loranpac-soft,ogd"];
    let output = loranpac(&[&common[..], &["--json", "-", "--keep-samples"]].concat());
    let note = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(note.contains("loranpac-soft: width infinite") && note.contains("ogd: width 10000"), "{note}");
    let value: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(value["runs"][0]["config"]["spec"]["width"], "infinite");
    assert_eq!(value["runs"][1]["config"]["spec"]["width"], 10_000);
    assert_eq!(value["runs"][1]["config"]["width_choice"]["samples"], 72);
    let given = json(&[&common[..], &["--json", "-", "--width", "60"]].concat());
    assert_eq!(given["runs"][0]["config"].get("width_choice"), None);
    refused(&[&common[..], &["--width", "60", "--keep-samples"]].concat(), &["--keep-samples", "--width auto"]);
    // What is chosen for a budget is not refused.
    let width = |memory: &str| {
        let value = json(&[&common[..], &["--json", "-", "--memory", memory]].concat());
        value["runs"][0]["config"]["spec"]["width"].as_u64().unwrap()
    };
    let widths = ["60M", "100M", "1G"].map(width);
    assert!(widths.is_sorted() && widths[2] == 10_000, "{widths:?}");
}

#[test]
fn layup_takes_the_layers_that_the_file_has() {
    let folder = data();
    let path = folder.path().to_str().unwrap();
    let arguments = ["run", "--data", path, "--inc", "2", "--method", "layup", "--json", "-"];
    refused(&arguments, &["layup", "x_train_layer*"]);
    for (half, rows) in [("train", 72), ("test", 24)] {
        let values = (0..rows * 3).flat_map(|i| (((i * 37) % 11) as f32).to_le_bytes()).collect();
        npy(&folder.path().join(format!("x_{half}_layer3.npy")), "<f4", &format!("({rows}, 3)"), values);
    }
    let run = &json(&arguments)["runs"][0];
    assert_eq!(run["dataset"]["dim"], 8, "five features and three of the layer");
    assert!(run["final_accuracy"].as_f64().unwrap() > 90.0);
    npy(&folder.path().join("x_test_layer3.npy"), "<f4", "(24, 2)", vec![0; 24 * 2 * 4]);
    refused(&arguments, &["x_train_layer3 (3 features)", "x_test_layer3 (2 features)"]);
    npy(&folder.path().join("x_test_layer3.npy"), "<f4", "(23, 3)", vec![0; 23 * 3 * 4]);
    refused(&arguments, &["x_test_layer3", "(24,)"]);
}

#[test]
fn the_paper_schedule_a_projection_file_and_an_order_file_are_taken() {
    let folder = data();
    let path = folder.path().to_str().unwrap();
    let p = folder.path().join("p.npy");
    npy(
        &p,
        "<f4",
        "(200, 5)",
        (0..1000u32)
            .flat_map(|i| ((i.wrapping_mul(2_654_435_761) >> 16) as f32 / 32_768.0 - 1.0).to_le_bytes())
            .collect(),
    );
    let order = folder.path().join("order.txt");
    std::fs::write(&order, "15\n10\n12\n\n11\n14\n13\n").unwrap();
    let arguments = [
        "run",
        "--data",
        path,
        "--inc",
        "3",
        "--projection",
        p.to_str().unwrap(),
        "--order",
        order.to_str().unwrap(),
        "--schedule",
        "paper",
        "--truncate",
        "0.8",
        "--json",
        "-",
    ];
    let result = json(&arguments);
    let run = &result["runs"][0];
    assert_eq!(run["config"]["lift"]["width"], 200);
    assert!(run["seed"].is_null());
    let certificate = &run["tasks"][1]["certificate"];
    assert_eq!(certificate["cuts"], 1, "the first task's; the second's own cut is the present");
    assert!(certificate["gamma"].as_f64().unwrap() > 0.0);
    std::fs::write(&order, "15\n10\n99\n").unwrap();
    refused(&arguments, &["order.txt", "entry 3", "99"]);
}

#[test]
fn json_goes_to_a_file_and_reports_to_a_folder() {
    let folder = data();
    let (path, out) = (folder.path().to_str().unwrap(), folder.path().join("out"));
    let file = folder.path().join("result.json");
    let text = stdout(&loranpac(&[
        "run",
        "--data",
        path,
        "--inc",
        "2",
        "--width",
        "100",
        "--json",
        file.to_str().unwrap(),
        "--report",
        out.to_str().unwrap(),
    ]));
    assert!(text.contains("new task %  accuracy %") && text.contains("loranpac"), "{text}");
    let value: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(value["runs"].as_array().unwrap().len(), 1);
    let markdown = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(markdown.contains("| loranpac | 1 |") && markdown.contains("--width 100"), "{markdown}");
    assert!(std::fs::read_to_string(out.join("accuracy.svg")).unwrap().contains("<polyline"));
    assert!(out.join("run.json").exists());
}

#[test]
fn quiet_prints_nothing_and_threads_do_not_change_the_stream() {
    let folder = data();
    let path = folder.path().to_str().unwrap();
    assert_eq!(stdout(&loranpac(&["run", "--data", path, "--inc", "2", "--width", "100", "--quiet"])), "");
    let accuracy = |threads: &str| {
        let run = json(&["run", "--data", path, "--inc", "2", "--width", "100", "--threads", threads, "--json", "-"]);
        run["runs"][0]["final_accuracy"].as_f64().unwrap()
    };
    assert!((accuracy("1") - accuracy("2")).abs() < 1e-9);
}

#[test]
#[cfg(target_os = "linux")]
fn a_memory_budget_covers_the_process() {
    let run = |budget: &str| {
        let arguments =
            ["run", "--data", "digits", "--width", "4000", "--inc", "5", "--json", "-", "-q", "--memory", budget];
        json(&arguments)["runs"][0].clone()
    };
    let (free, capped) = (run("1G"), run("96M"));
    let peak = |run: &serde_json::Value| run["peak_rss_bytes"].as_u64().unwrap();
    assert!(peak(&capped) <= 96 << 20, "{}", peak(&capped));
    assert!(peak(&free) > 96 << 20, "the budget has something to do");
}

#[test]
fn a_memory_budget_caps_the_basis_and_an_impossible_one_is_refused() {
    let folder = data();
    let path = folder.path().to_str().unwrap();
    let base =
        ["run", "--data", path, "--inc", "2", "--set", "chunk=8", "--lift-seed", "1", "--json", "-", "--seed", "1"];
    for more in [&[][..], &["--method", "loranpac,simplecil,slda"]] {
        let free = json(&[&base[..9], more, &["--json", "-", "--width", "400", "--memory", "1G"]].concat());
        assert_eq!(free["runs"][0]["config"]["method"]["max_rank"], 400, "plain features have no say in the cap");
    }
    refused(
        &[&base[..], &["--width", "400", "--memory", "1K"]].concat(),
        &["--memory 1 KiB", "the program and the data hold"],
    );
    refused(
        &[&base[..], &["--width", "100000", "--memory", "50M"]].concat(),
        &["--memory 50 MiB", "it leaves", "needs about", "reduce the width"],
    );
    refused(&[&base[..], &["--width", "100000000000"]].concat(), &["needs about", "available"]);
}

#[test]
fn mistakes_are_named() {
    let folder = data();
    let path = folder.path().to_str().unwrap();
    let with = |more: &[&str], words: &[&str]| refused(&[&["run", "--data", path], more].concat(), words);
    with(&["--truncate", "1.0"], &["--truncate", "[0, 1)"]);
    with(&["--truncate", "-0.5"], &["-0.5"]);
    with(&["--truncate", "0.1", "--rank", "5"], &["--rank", "cannot be used"]);
    with(&["--width", "0"], &["--width", "at least 1"]);
    with(&["--width", "wide"], &["--width", "infinite"]);
    with(&["--width", "infinite", "--method", "ranpac"], &["loranpac and loranpac-soft", "ranpac"]);
    with(&["--width", "infinite", "--lift", "fourier"], &["fourier", "relu-random"]);
    with(&["--width", "infinite", "--projection", "p.npy"], &["no projection"]);
    with(&["--width", "infinite", "--schedule", "paper"], &["--schedule paper"]);
    with(&["--set", "ridge=loo", "--method", "loranpac-soft"], &["--set ridge=loo", "--width infinite"]);
    with(&["--method", "loranpack"], &["loranpack", "loranpac-soft"]);
    with(&["--set", "rigde=1"], &["rigde", "ridge"]);
    with(&["--set", "rigde=1", "--method", "loranpac,simplecil"], &["rigde", "simplecil: none"]);
    with(
        &["--truncate", "0.5", "--method", "min-norm,simplecil"],
        &["--truncate has no effect on min-norm, simplecil"],
    );
    for (flag, value) in [
        ("--adapt-epochs", "3"),
        ("--adapt-rate", "0.1"),
        ("--adapt-batch", "9"),
        ("--adapt-scale", "2"),
        ("--adapt-features", "both"),
    ] {
        with(&[flag, value], &[&format!("{flag} has no effect on loranpac; add --adapt MODULE")]);
    }
    with(&["--adapt", "lora", "--method", "l2p"], &["--adapt has no effect on l2p"]);
    with(&["--adapt", "adapter", "--adapt-epochs", "3", "--method", "adam"], &["adam trains inside the encoder"]);
    with(&["--lift", "relu", "--projection", "p.npy"], &["no projection"]);
    with(&["--json", "no/such/folder/result.json"], &["cannot write no/such/folder/result.json"]);
    with(&["--set", "ridge"], &["KEY=VALUE"]);
    with(&["--set", "ridge=much"], &["--set ridge=much", "number"]);
    with(&["--lift", "cosine"], &["cosine", "relu-random"]);
    with(&["--inc", "0"], &["--inc"]);
    with(&["--per-class", "0"], &["--per-class", "at least 1"]);
    with(&["--seed", "1,-1"], &["--seed", "from 0 to 4294967295"]);
    with(&["--seed", "1", "--order", "sorted"], &["--seed", "cannot be used"]);
    with(&["--max-rank", "9", "--memory", "1G"], &["--max-rank", "cannot be used"]);
    with(&["--scenario", "domain"], &["domain_train"]);
    with(&["--memory", "lots"], &["lots"]);
    with(&["--threads", "0"], &["--threads 0"]);
    with(&["--method", "loranpac-soft,ranpac", "--schedule", "paper"], &["has no effect on loranpac-soft, ranpac"]);
    refused(&["run", "--data", "nowhere.npz"], &["cannot read nowhere.npz"]);
    refused(&["run"], &["--data"]);
    let p = folder.path().join("p.npy");
    npy(&p, "<f4", "(4, 3)", vec![0; 48]);
    with(&["--projection", p.to_str().unwrap()], &["4 x 3", "5 features"]);
}

#[test]
fn a_run_ends_with_what_its_model_can_promise() {
    let common = ["run", "--data", "digits", "--inc", "2", "--width", "1500", "--method", "loranpac"];
    let text = stdout(&loranpac(&common));
    let line = text.lines().find(|line| line.starts_with("loranpac: ")).unwrap();
    assert!(
        line.contains("exact; nothing was lost in earlier tasks") && line.contains("nothing lost to the memory cap"),
        "{line}"
    );

    let output = loranpac(&[&common[..], &["--schedule", "paper"]].concat());
    let warning = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(warning.starts_with("warning: loranpac: gamma") && warning.contains("late schedule"), "{warning}");
    assert!(stdout(&output).contains("4 earlier cuts have cost at most"));

    let warned = |more: &[&str], words: &str| {
        let warning = String::from_utf8(loranpac(&[&common[..], more].concat()).stderr).unwrap();
        assert!(warning.contains(words), "{more:?}: {warning}");
    };
    warned(&["--truncate", "0"], "nothing is cut");
    warned(&["--truncate", "0", "--max-rank", "300"], "the cap is far below");

    let run = &json(&[&common[..], &["--schedule", "paper", "--json", "-"]].concat())["runs"][0];
    assert_eq!(run["verdict"]["line"].as_str().map(|line| line.starts_with("training MSE between")), Some(true));
    let last = run["tasks"].as_array().unwrap().last().unwrap();
    let (certificate, m) = (&last["certificate"], last["samples_seen"].as_f64().unwrap());
    let number = |name: &str| certificate[name].as_f64().unwrap();
    assert_eq!(number("samples"), m);
    assert!((number("loss_share") * number("smallest_kept") / number("lost") - 1.0).abs() < 1e-9);
    assert!(certificate["bounds"]["training_mse"].as_f64().unwrap() > last["train_mse_upper"].as_f64().unwrap());
    assert!(certificate["bounds"]["eigenspace"].is_null(), "its condition does not hold");
}

#[test]
fn stability_varies_one_setting_at_a_time_and_resumes() {
    let folder = tempfile::TempDir::new().unwrap();
    let report = folder.path().to_str().unwrap();
    let arguments = [
        "run",
        "--stability",
        "--data",
        "digits",
        "--per-class",
        "20",
        "--inc",
        "5",
        "--width",
        "120",
        "--method",
        "loranpac,ranpac,simplecil",
        "--report",
        report,
        "--json",
        "-",
    ];
    let first = json(&arguments);
    let of = |method: usize| &first["stability"][method];
    let knobs = |method: usize| -> Vec<&str> {
        of(method)["knobs"].as_array().unwrap().iter().map(|knob| knob["knob"].as_str().unwrap()).collect()
    };
    assert_eq!(knobs(0), ["truncate", "ridge", "width", "inc"]);
    assert_eq!(knobs(1), ["ridge", "width", "inc"], "RanPAC cuts nothing");
    assert_eq!(knobs(2), ["inc"], "class means have no lift");
    for method in 0..3 {
        let own = of(method)["accuracy"].as_f64().unwrap();
        for knob in of(method)["knobs"].as_array().unwrap() {
            let points: Vec<f64> =
                knob["points"].as_array().unwrap().iter().map(|point| point[1].as_f64().unwrap()).collect();
            let all = || points.iter().copied().chain([own]);
            let spread = all().fold(f64::MIN, f64::max) - all().fold(f64::MAX, f64::min);
            assert!(points.len() > 1 && (knob["spread"].as_f64().unwrap() - spread).abs() < 1e-12, "{knob}");
        }
    }
    assert_eq!(of(2)["knobs"][0]["spread"], 0.0, "class means do not depend on the increment");
    let runs = first["runs"].as_array().unwrap().len();
    assert_eq!(runs, std::fs::read_dir(folder.path().join("runs")).unwrap().count());
    let widths: Vec<u64> = (0..runs).map(|i| first["runs"][i]["config"]["spec"]["width"].as_u64().unwrap()).collect();
    assert!(widths.contains(&30) && widths.contains(&240), "{widths:?}");
    assert_eq!(first, json(&arguments), "nothing is run again, so even the times are the same");
    for file in ["stability.svg", "stability.md", "stability.json"] {
        assert!(folder.path().join(file).exists(), "{file}");
    }
    refused(&["run", "--stability", "--data", "digits", "--eval", "final"], &["--stability", "--eval"]);
    let wrong =
        |more: &[&str], words: &[&str]| refused(&[&["run", "--stability", "--data", "digits"], more].concat(), words);
    wrong(&["--inc", "0"], &["--inc"]);
    wrong(&["--set", "ridge=-1"], &["ridge"]);
    wrong(&["--order", "1,2,x"], &["class order"]);
    wrong(&["--method", "layup"], &["x_train_layer"]);
    wrong(&["--json", "no-such-folder/out.json"], &["no-such-folder"]);
}

#[test]
fn the_usual_cap_may_be_given() {
    let run = ["run", "--data", "digits", "--method", "loranpac", "--width", "300", "--eval", "final", "--json"];
    let rank = |cap: &str| {
        json(&[&run[..], &["--max-rank", cap]].concat())["runs"][0]["tasks"].as_array().unwrap().last().unwrap()["kept_rank"].clone()
    };
    assert_eq!(rank("10000"), rank("9999"));
    assert_eq!(rank("20"), 20);
}

#[test]
fn every_method_has_a_line_of_help_and_every_setting_a_flag() {
    let help = stdout(&loranpac(&["run", "--help"]));
    for method in loranpac::registry::METHODS {
        let line = format!("  {} ", method.name);
        assert!(help.lines().any(|other| other.starts_with(&line)), "{} has no line in {help}", method.name);
    }
    for setting in loranpac_bench::settings::SETTINGS {
        let flag = match setting.kind {
            Kind::Switch => format!("--{}", setting.name),
            _ => format!("--{} <{}>", setting.name, setting.placeholder),
        };
        assert!(help.lines().any(|line| line.trim_start().starts_with(&flag)), "{flag}");
    }
}

#[test]
fn digits_are_those_inside_the_program_unless_there_are_features_of_that_name() {
    let folder = tempfile::TempDir::new().unwrap();
    let call = |arguments: &[&str]| {
        let program = std::process::Command::new(env!("CARGO_BIN_EXE_loranpac"));
        stdout(&{ program }.args(arguments).current_dir(&folder).output().unwrap())
    };
    let run = ["run", "--data", "digits", "--method", "simplecil", "--inc", "10", "--json"];
    let classes =
        |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap()["runs"][0]["dataset"]["classes"].clone();
    call(&["demo", "--files", "digits"]);
    assert_eq!(classes(&call(&run)), 10, "a folder of samples in CSV is no feature file");
    std::fs::remove_dir_all(folder.path().join("digits")).unwrap();
    let mine = data();
    std::fs::create_dir(folder.path().join("digits")).unwrap();
    for file in std::fs::read_dir(mine.path()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), folder.path().join("digits").join(file.file_name())).unwrap();
    }
    assert_eq!(classes(&call(&run)), 6, "a folder of arrays is");
    assert!(call(&run[..7]).contains("6 classes in 1 task\n"));
}

#[test]
fn json_goes_to_standard_output_or_to_a_file_in_every_command() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let written = |name: &str| {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let run = ["run", "--data", "digits", "--method", "simplecil"];
    let first = json(&[&run[..], &["--json"]].concat());
    assert_eq!(first["runs"][0]["method"], "simplecil");
    let text = stdout(&loranpac(&[&run[..], &["--json", &path("run.json")]].concat()));
    assert!(text.contains("accuracy %"), "a file leaves standard output to the tables: {text}");
    assert_eq!(written("run.json")["runs"][0]["accuracy_matrix"], first["runs"][0]["accuracy_matrix"]);
    let (model, samples) = (path("m.lrp"), path("d"));
    stdout(&loranpac(&["demo", "--files", &samples]));
    let week = format!("{samples}/week1.csv");
    stdout(&loranpac(&["init", &model, "--like", &week, "--width", "100"]));
    let text = stdout(&loranpac(&["learn", &format!("--json={}", path("learn.json")), &model, &week]));
    assert!(text.starts_with("learned "), "{text}");
    assert_eq!(written("learn.json")["tasks"], 1);
    assert_eq!(json(&["inspect", "--json", &model])["samples"], written("learn.json")["samples"]);
    assert!(stdout(&loranpac(&["inspect", &model])).contains("late schedule"));
    refused(&["inspect", &model, "--json=no/such/folder.json"], &["cannot write no/such/folder.json"]);
}
