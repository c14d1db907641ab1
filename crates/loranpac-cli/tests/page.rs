//! The report in a real browser: Chromium, where it is installed. Elsewhere this test is skipped.

mod common;
#[path = "../../loranpac/tests/skip/mod.rs"]
mod skip;

use std::path::Path;
use std::process::Command;

use common::{loranpac, stdout};
use tempfile::TempDir;

/// What a visitor does; its findings are left in the page's title as JSON.
const VISIT: &str = r##"
const found = {errors: window.errors};
const column = (table, i) => [...table.tBodies[0].rows].map(row => row.cells[i].textContent);
const click = (table, i) => table.tHead.rows[0].cells[i].click();
const runs_table = document.querySelector("#runs table");
const heads = [...runs_table.tHead.rows[0].cells];
const final = heads.findIndex(head => head.textContent === "final %");
found.before = column(runs_table, final);
heads[final].querySelector("button").click(); // What the keyboard does, too.
found.ascending = column(runs_table, final);
found.arrow = heads[final].getAttribute("aria-sort");
click(runs_table, final);
found.descending = column(runs_table, final);
found.focusable = heads.every(head => head.querySelector("button").tabIndex === 0);
found.overflow = document.documentElement.scrollWidth - innerWidth;
click(runs_table, 1);
found.words = column(runs_table, 1);

const move = (svg, x, y) => {
  const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
  svg.dispatchEvent(new MouseEvent("mousemove", {bubbles: true,
    clientX: box.left + x * box.width / view.width, clientY: box.top + y * box.height / view.height}));
  const tip = document.getElementById("tip");
  return tip.hidden ? null : tip.textContent;
};
const map = document.querySelector("svg.matrix");
const values = map.dataset.values.split(";").map(row => row.split(","));
const [box_left, box_top, box_side] = map.dataset.box.split(" ").map(Number);
const side = box_side / values.length;
const middle = (row, column) => [box_left + (column + .5) * side, box_top + (row + .5) * side];
found.cells = [[0, 0], [0, 3], [2, 5]].map(([row, column]) =>
  [row, column, values[row][column], move(map, ...middle(row, column))]);
found.below_the_diagonal = move(map, ...middle(4, 0));
const line = document.querySelector("svg.chart:not(.matrix)");
if (line) {
  const first = [...line.querySelectorAll("g.series")].find(series => series.dataset.name === "loranpac");
  const [x, y] = first.dataset.at.split(" ")[0].split(",").map(Number);
  found.point = move(line, x, y);
}
document.getElementById("left").value = "ranpac";
document.getElementById("right").value = "loranpac";
document.getElementById("left").dispatchEvent(new Event("change"));
found.verdict = document.getElementById("verdict").textContent;
found.pairs = column(document.getElementById("pairs"), 5);
location.hash = "#run-1";
setTimeout(() => {
  found.opened = document.querySelector("#run-1").open;
  document.title = "FOUND" + JSON.stringify(found) + "END";
}, 200);
"##;

/// Catches errors from the very beginning.
const WATCH: &str = "<script>window.errors = []; addEventListener('error', e => errors.push(String(e.message))); \
    console.error = console.warn = (...words) => errors.push(words.join(' '));</script>";

fn chromium() -> Option<&'static str> {
    ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success()))
}

/// Opens a page and returns its document when it has come to rest, and what the browser wrote to its log.
fn visit(browser: &str, page: &Path, profile: &Path) -> (String, String) {
    let output = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"])
        .args(["--virtual-time-budget=5000", "--window-size=1200,900", "--enable-logging=stderr"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn the_report_works_in_a_browser() {
    let Some(browser) = chromium() else {
        return skip::skipped("Chromium", "the_report_works_in_a_browser", "it is not installed");
    };
    let out = TempDir::new().unwrap();
    // A recipe with matrices, lines and several methods.
    let recipe = out.path().join("visit.toml");
    let text = "title = \"Visit <me>\"\n[[runs]]\nmethod = [\"loranpac\", \"ranpac\", \"simplecil\"]\nwidth = 40000\ninc = 1\n";
    std::fs::write(&recipe, text).unwrap();
    let folder = out.path().to_str().unwrap();
    stdout(&loranpac(&["bench", recipe.to_str().unwrap(), "--quick", "--out", folder]));
    let report = out.path().join("visit-quick/report.html");
    let html = std::fs::read_to_string(&report).unwrap();
    let html = html.replacen("<head>", &format!("<head>{WATCH}"), 1);
    let html = html.replacen("</body>", &format!("<script>{VISIT}</script></body>"), 1);
    let page = out.path().join("visit-quick/test.html");
    std::fs::write(&page, html).unwrap();
    let (document, log) = visit(browser, &page, &out.path().join("profile"));
    assert!(!log.contains("CONSOLE"), "{log}");
    let found = document.split("FOUND").nth(1).and_then(|rest| rest.split("END").next());
    let found =
        found.unwrap_or_else(|| panic!("the visit did not end: {log}\n{}", &document[..document.len().min(2000)]));
    let found = found.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">");
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();

    assert_eq!(found["errors"], serde_json::json!([]));
    let numbers = |key: &str| -> Vec<f64> {
        found[key].as_array().unwrap().iter().map(|v| v.as_str().unwrap().parse().unwrap()).collect()
    };
    assert_eq!(numbers("before").len(), 3);
    assert!(numbers("ascending").is_sorted(), "{found}");
    assert!(numbers("descending").is_sorted_by(|a, b| a >= b), "{found}");
    assert_eq!((&found["arrow"], &found["focusable"]), (&"ascending".into(), &true.into()));
    assert!(found["overflow"].as_f64().unwrap() <= 0.0, "the page is wider than its window: {found}");
    assert_eq!(found["words"], serde_json::json!(["loranpac", "ranpac", "simplecil"]));
    for cell in found["cells"].as_array().unwrap() {
        let (row, column, value) = (cell[0].as_u64().unwrap(), cell[1].as_u64().unwrap(), cell[2].as_str().unwrap());
        assert!(!value.is_empty());
        assert_eq!(cell[3], format!("task {} after task {}: {value}%", row + 1, column + 1));
    }
    assert!(found["below_the_diagonal"].is_null(), "{found}");
    assert!(found["point"].as_str().unwrap().starts_with("loranpac: 100 at 1"), "{found}");
    assert!(found["verdict"].as_str().unwrap().starts_with("ranpac minus loranpac: -"), "{found}");
    assert_eq!(found["pairs"].as_array().unwrap().len(), 1);
    assert_eq!(found["opened"], true);

    // The heat map's numbers are those of the run.
    let run = std::fs::read_dir(out.path().join("runs")).unwrap().map(|file| file.unwrap().path());
    let run = run.into_iter().find(|path| path.to_string_lossy().contains("_loranpac_")).unwrap();
    let run: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(run).unwrap()).unwrap();
    let shown: f64 = found["cells"][1][2].as_str().unwrap().parse().unwrap();
    let kept = run["run"]["accuracy_matrix"][0][3].as_f64().unwrap();
    assert!((shown - kept).abs() < 0.006, "{shown} {kept}");
}
