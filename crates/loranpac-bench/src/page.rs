//! The report of a sweep: one HTML file that needs nothing else, Markdown, CSV tables, and each figure as its own SVG.

use std::fmt::Write;
use std::path::Path;

use loranpac::memory::human_bytes;
use serde_json::json;

use crate::cache::write_atomically;
use crate::chart::{self, Heights, escape};
use crate::error::Error;
use crate::metrics::with_spread;
use crate::recipe::Recipe;
use crate::record::Record;
use crate::spec::When;
use crate::value::Many;
use crate::view::{Axis, Cell, Figure, Filled, Log, Metric, Panel, join};
use loranpac_data::text::{self, escape_markdown};

const CSS: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A sweep's results, ready to be written.
pub struct Report<'a> {
    recipe: &'a Recipe,
    records: &'a [Record],
    notes: &'a [String],
    command: &'a str,
    tables: Vec<Filled>,
    figures: Vec<(String, Vec<Panel>)>,
    /// What tells the runs apart, besides data, division into tasks and seed.
    varying: Vec<Axis>,
}

impl<'a> Report<'a> {
    /// Fills in the recipe's tables and figures, and adds what any report should show.
    pub fn new(recipe: &'a Recipe, records: &'a [Record], notes: &'a [String], command: &'a str) -> Self {
        let varying = varying(records);
        let tables = recipe.tables.iter().map(|table| table.fill(records)).collect();
        let figures = recipe.figures.iter().chain(&further(recipe, records, &varying)).map(draw(records)).collect();
        Report { recipe, records, notes, command, tables, figures, varying }
    }

    /// The recipe's tables, filled in.
    pub fn tables(&self) -> &[Filled] {
        &self.tables
    }

    /// Writes `report.html`, `report.md`, `table-N.csv`, `figure-N-M.svg`, one for every panel, and `figure-N.svg` with all
    /// panels of a figure side by side into a folder.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        std::fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
        forget_old(folder)?;
        let put = |name: String, text: String| write_atomically(&folder.join(name), text.as_bytes());
        for (n, table) in self.tables.iter().enumerate() {
            put(format!("table-{}.csv", n + 1), csv(table))?;
        }
        put("runs.csv".to_owned(), self.runs_csv())?;
        for (n, (title, panels)) in self.figures.iter().enumerate() {
            if panels.len() > 1 {
                let all = chart::grid(title, panels, Heights::Own);
                put(format!("figure-{}.svg", n + 1), chart::standalone(&all))?;
            }
            for (m, panel) in panels.iter().enumerate() {
                put(format!("figure-{}-{}.svg", n + 1, m + 1), chart::standalone(&svg(panel)))?;
            }
        }
        put("report.md".to_owned(), self.markdown())?;
        put("report.html".to_owned(), self.html())
    }

    /// What a run is called among the others.
    fn name(&self, record: &Record) -> String {
        join(&self.varying, record)
    }

    fn markdown(&self) -> String {
        let Recipe { title, paper, about, .. } = self.recipe;
        let mut text = format!("# {}\n\n", escape_markdown(title));
        // A recipe's description may have several lines, which are one paragraph.
        let about = escape_markdown(&about.replace('\n', " "));
        if let Some(paper) = paper {
            let _ = writeln!(text, "The paper's {}. {about}\n", escape_markdown(paper));
        }
        if paper.is_none() && !about.is_empty() {
            let _ = writeln!(text, "{about}\n");
        }
        let _ = writeln!(text, "    {}\n", text::escape(self.command));
        for note in self.notes {
            let _ = writeln!(text, "- {}", escape_markdown(note));
        }
        for table in &self.tables {
            let _ = writeln!(text, "\n## {}\n", escape_markdown(&table.title));
            let heads = table.row_names.iter().chain(&table.columns).map(|head| escape_markdown(head));
            let _ = writeln!(text, "| {} |", heads.collect::<Vec<_>>().join(" | "));
            let _ = writeln!(text, "|{}", "---|".repeat(table.row_names.len() + table.columns.len()));
            for (labels, cells) in &table.rows {
                let cell =
                    |cell: &Option<Cell>| cell.as_ref().map_or(String::new(), |c| c.beside_the_paper(table.value));
                let cells = labels.iter().cloned().chain(cells.iter().map(cell)).map(|cell| escape_markdown(&cell));
                let _ = writeln!(text, "| {} |", cells.collect::<Vec<_>>().join(" | "));
            }
        }
        for (n, (title, panels)) in self.figures.iter().enumerate() {
            let title = escape_markdown(title);
            let _ = writeln!(text, "\n## {title}\n");
            for (m, panel) in panels.iter().enumerate() {
                let name = escape_markdown(panel_title(panel));
                let _ = writeln!(text, "![{title}: {name}](figure-{}-{}.svg)", n + 1, m + 1);
            }
        }
        let _ =
            writeln!(text, "\n## All runs\n\n| {} |\n|{}", RUN_COLUMNS.join(" | "), "---|".repeat(RUN_COLUMNS.len()));
        for record in self.records {
            let cells = self.run_row(record).iter().map(|cell| escape_markdown(cell)).collect::<Vec<_>>();
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        text
    }

    /// One row of the table of all runs, as text.
    fn run_row(&self, record: &Record) -> Vec<String> {
        let run = &record.run;
        let spec = &run.config.spec;
        let sum = |f: fn(&crate::run::TaskRecord) -> Option<f64>| {
            with_spread(Some(run.tasks.iter().filter_map(f).sum::<f64>()), None, 2)
        };
        vec![
            record.data.title().to_owned(),
            self.name(record),
            Axis::Inc.place(record).text,
            if spec.order.is_some() { "given".to_owned() } else { spec.seed.to_string() },
            with_spread(run.final_accuracy, None, 2),
            with_spread(run.total_accuracy, None, 2),
            with_spread(run.forgetting, None, 2),
            sum(|task| Some(task.learn_seconds)),
            sum(|task| task.weights_seconds),
            sum(|task| task.eval_seconds),
            human_bytes(run.state_bytes),
        ]
    }

    fn runs_csv(&self) -> String {
        let mut text = RUN_COLUMNS.join(",") + ",command\n";
        for record in self.records {
            let mut row = self.run_row(record);
            *row.last_mut().unwrap_or(&mut String::new()) = record.run.state_bytes.to_string();
            row.push(record.run.config.spec.command(&record.data.path));
            let _ = writeln!(text, "{}", row.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(","));
        }
        text
    }

    fn html(&self) -> String {
        let Recipe { title, paper, about, .. } = self.recipe;
        let mut body = format!("<header><h1>{}</h1>\n", escape(title));
        if let Some(paper) = paper {
            let _ = writeln!(body, "<p class=\"paper\">The paper's {}.</p>", escape(paper));
        }
        let _ = writeln!(body, "<p>{}</p>\n<pre>{}</pre></header>", escape(about), escape(self.command));
        if !self.notes.is_empty() {
            let notes: Vec<String> = self.notes.iter().map(|note| format!("<li>{}</li>", escape(note))).collect();
            let _ = writeln!(body, "<section id=\"notes\"><h2>To know</h2><ul>{}</ul></section>", notes.join("\n"));
        }
        self.tables.iter().for_each(|table| body.push_str(&html_table(table)));
        for (title, panels) in &self.figures {
            let _ = writeln!(body, "<section class=\"figure\"><h2>{}</h2><div class=\"panels\">", escape(title));
            panels.iter().for_each(|panel| body.push_str(&svg(panel)));
            body.push_str("</div></section>\n");
        }
        body.push_str(COMPARISON);
        body.push_str(&self.html_runs());
        let data: Vec<_> = self.records.iter().map(|record| self.slim(record)).collect();
        // Nothing in the data may end or begin an element.
        let data = json!({ "runs": data }).to_string().replace('<', "\\u003c");
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
             <style>{CSS}\n{}</style></head>\n<body>\n{body}\n\
             <footer>loranpac {}</footer>\n<div id=\"tip\" role=\"status\" hidden></div>\n\
             <script type=\"application/json\" id=\"data\">{data}</script>\n<script>{SCRIPT}</script>\n</body></html>\n",
            escape(title),
            chart::CSS,
            env!("CARGO_PKG_VERSION")
        )
    }

    /// What the page's script needs of a run.
    fn slim(&self, record: &Record) -> serde_json::Value {
        let run = &record.run;
        json!({
            "data": record.data.title(),
            "name": self.name(record),
            "stream": Axis::Inc.place(record).text,
            "seed": run.seed,
            "final": run.final_accuracy,
            "total": run.total_accuracy,
            "seconds": Metric::Seconds.of(run),
            "mib": Metric::Memory.of(run),
        })
    }

    fn html_runs(&self) -> String {
        let heads: Vec<String> = RUN_COLUMNS.iter().map(|head| format!("<th>{head}</th>")).collect();
        let mut rows = String::new();
        let mut details = String::new();
        for (n, record) in self.records.iter().enumerate() {
            let bytes = record.run.state_bytes;
            let cells = self.run_row(record);
            let cell = |(i, text): (usize, &String)| {
                if i == 0 {
                    format!("<td><a href=\"#run-{n}\">{}</a></td>", escape(text))
                } else if i + 1 == cells.len() {
                    format!("<td data-v=\"{bytes}\">{}</td>", escape(text))
                } else {
                    format!("<td>{}</td>", escape(text))
                }
            };
            let _ = writeln!(rows, "<tr>{}</tr>", cells.iter().enumerate().map(cell).collect::<String>());
            let config = serde_json::to_string_pretty(&record.run.config).unwrap_or_default();
            let command = record.run.config.spec.command(&record.data.path);
            let verdict = record.run.verdict.as_ref().map_or(String::new(), |verdict| {
                let warnings = verdict.warnings.iter().map(|warning| format!("<br>Warning: {}", escape(warning)));
                format!("<p>{}{}</p>", escape(&verdict.line), warnings.collect::<String>())
            });
            let _ = writeln!(
                details,
                "<details id=\"run-{n}\"><summary>{}, {}, {}</summary>{verdict}<pre>{}</pre><pre>{}</pre></details>",
                escape(record.data.title()),
                escape(&self.name(record)),
                escape(&cells[2]),
                escape(&command),
                escape(&config)
            );
        }
        format!(
            "<section id=\"runs\"><h2>All runs</h2><div class=\"scroll\"><table class=\"sortable\"><thead><tr>{}</tr>\
             </thead><tbody>\n{rows}</tbody></table></div>\n<h3>Command and configuration of each</h3>\n{details}</section>\n",
            heads.concat()
        )
    }
}

const RUN_COLUMNS: [&str; 11] =
    ["data", "run", "tasks", "seed", "final %", "total %", "forgetting", "learn s", "weights s", "eval s", "model"];

const COMPARISON: &str = "<section id=\"compare\"><h2>Two against each other</h2>\n\
    <p><select id=\"left\" aria-label=\"first\"></select> against <select id=\"right\" aria-label=\"second\"></select>, \
    by <select id=\"measure\" aria-label=\"measure\"><option value=\"final\">final accuracy</option>\
    <option value=\"total\">total accuracy</option><option value=\"seconds\">seconds</option>\
    <option value=\"mib\">model, MiB</option></select></p>\n\
    <p id=\"verdict\"></p><div class=\"scroll\"><table class=\"sortable\" id=\"pairs\"></table></div></section>\n";

/// Removes the tables and figures of a report that was here before: the new one may have fewer.
fn forget_old(folder: &Path) -> Result<(), Error> {
    let unreadable = |source| Error::Read { path: folder.to_owned(), source };
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ours = (name.starts_with("figure-") && name.ends_with(".svg"))
            || (name.starts_with("table-") && name.ends_with(".csv"));
        if ours {
            std::fs::remove_file(&path).map_err(|source| Error::Write { path, source })?;
        }
    }
    Ok(())
}

/// Axes on which the runs differ, besides data set, division into tasks and seed.
fn varying(records: &[Record]) -> Vec<Axis> {
    let settings = records.iter().flat_map(|record| record.run.config.spec.settings.keys());
    let mut settings: Vec<Axis> = settings.map(|name| Axis::Setting(name.clone())).collect();
    settings.sort();
    settings.dedup();
    let fixed = [
        Axis::Lift,
        Axis::Width,
        Axis::Truncate,
        Axis::Schedule,
        Axis::MaxRank,
        Axis::PerClass,
        Axis::LiftSeed,
        Axis::Gamma,
    ];
    let differs = |axis: &Axis| {
        // What only tells methods or data sets apart says nothing that their names do not.
        let places: Vec<((&str, &str), String)> = records
            .iter()
            .map(|record| ((record.run.method.as_str(), record.data.file.as_str()), axis.place(record).text))
            .collect();
        places.iter().any(|(run, place)| places.iter().any(|(other, p)| other == run && p != place))
    };
    std::iter::once(Axis::Method).chain(fixed.into_iter().chain(settings).filter(differs)).collect()
}

/// Figures that any report should have, unless the recipe has them.
fn further(recipe: &Recipe, records: &[Record], varying: &[Axis]) -> Vec<Figure> {
    let has = |x: &str, y: Metric| {
        let metrics = |figure: &Figure| figure.y.as_ref().is_some_and(|y_| y_.values().contains(&y));
        recipe.figures.iter().any(|figure| figure.x == x && (x == "matrix" || metrics(figure)))
    };
    let figure = |title: &str, x: &str, y: Option<Metric>, log: Log| Figure {
        title: title.to_owned(),
        x: x.to_owned(),
        y: y.map(Many::One),
        lines: varying.to_vec(),
        panels: vec![Axis::Data, Axis::Inc],
        log,
        tasks: None,
        only: Default::default(),
    };
    let evaluated = records.iter().any(|r| r.run.config.spec.eval == When::Every && r.run.tasks.len() > 1);
    let spectra = records.iter().any(|r| r.run.config.spec.spectrum != When::Never);
    let mut figures = Vec::new();
    if evaluated && !has("task", Metric::Accuracy) {
        figures.push(figure("Accuracy over tasks", "task", Some(Metric::Accuracy), Log::None));
    }
    if spectra && !has("index", Metric::Eigenvalues) {
        figures.push(figure("Eigenvalues at the end", "index", Some(Metric::Eigenvalues), Log::Y));
    }
    if evaluated && !has("matrix", Metric::Accuracy) {
        figures.push(figure("Accuracy matrices", "matrix", None, Log::None));
    }
    figures
}

fn draw(records: &[Record]) -> impl Fn(&Figure) -> (String, Vec<Panel>) + '_ {
    |figure| (figure.title.clone(), figure.draw(records))
}

fn panel_title(panel: &Panel) -> &str {
    match panel {
        Panel::Chart { title, .. } | Panel::Matrix { title, .. } => title,
    }
}

fn svg(panel: &Panel) -> String {
    match panel {
        Panel::Chart { title, x, y, log, lines } => chart::lines(title, x, y, *log, lines),
        Panel::Matrix { title, values } => chart::matrix(title, values),
    }
}

fn html_table(table: &Filled) -> String {
    let heads = table.row_names.iter().chain(&table.columns).map(|head| format!("<th>{}</th>", escape(head)));
    let mut rows = String::new();
    for (labels, cells) in &table.rows {
        let labels: String = labels.iter().map(|label| format!("<td>{}</td>", escape(label))).collect();
        let cell = |cell: &Option<Cell>| {
            let Some(cell) = cell else { return "<td></td>".to_owned() };
            let order = cell.mean.or(cell.paper).map_or(String::new(), |v| format!(" data-v=\"{v}\""));
            let ours = if cell.mean.is_some() { cell.text(table.value) } else { String::new() };
            let paper = match (cell.paper, cell.difference()) {
                (None, _) => String::new(),
                (Some(_), None) => format!("<small>paper {}</small>", cell.paper_text()),
                (Some(_), Some(d)) => format!("<small>paper {}, {d:+.2}</small>", cell.paper_text()),
            };
            format!("<td{order}>{ours}{paper}</td>")
        };
        let _ = writeln!(rows, "<tr>{labels}{}</tr>", cells.iter().map(cell).collect::<String>());
    }
    format!(
        "<section class=\"table\"><h2>{}</h2><div class=\"scroll\"><table class=\"sortable\"><thead><tr>{}</tr></thead>\
         <tbody>\n{rows}</tbody></table></div></section>\n",
        escape(&table.title),
        heads.collect::<String>()
    )
}

/// One line per cell: labels, column, ours, the paper's, the difference.
fn csv(table: &Filled) -> String {
    let names = table.row_names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",");
    let mut text = format!("{names},column,mean,spread,runs,paper,paper spread,difference\n");
    let number = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
    for (labels, cells) in &table.rows {
        for (column, cell) in table.columns.iter().zip(cells) {
            let Some(cell) = cell else { continue };
            let labels = labels.iter().chain([column]).map(|label| quoted(label)).collect::<Vec<_>>().join(",");
            let numbers = [number(cell.mean), number(cell.spread), cell.runs.to_string(), number(cell.paper)];
            let rest = [number(cell.paper_spread), number(cell.difference())];
            let _ = writeln!(text, "{labels},{},{}", numbers.join(","), rest.join(","));
        }
    }
    text
}

/// A cell of a CSV file.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}
