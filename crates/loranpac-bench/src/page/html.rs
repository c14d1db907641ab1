//! The report as one HTML file. Everything but sorting, comparing and tips works without scripts.

use std::fmt::Write;

use super::contents::Contents;
use super::runs::Runs;
use crate::chart::{self, Line, Panel, escape, fixed, short};
use crate::recipe::Recipe;
use crate::view::{Cell, Filled};

const CSS: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Charts with more places along their axis have no table of values.
const FEW: usize = 60;

pub(super) fn write(report: &Contents<'_>) -> String {
    let Recipe { title, paper, about, .. } = report.recipe;
    let mut body = format!("<header><h1>{}</h1>\n", escape(title));
    if let Some(paper) = paper {
        let _ = writeln!(body, "<p class=\"paper\">The paper's {}.</p>", escape(paper));
    }
    let _ = writeln!(body, "<p>{}</p></header>\n<main>", escape(about));
    if !report.notes.is_empty() {
        let notes: Vec<String> = report.notes.iter().map(|note| format!("<li>{}</li>", escape(note))).collect();
        let _ = writeln!(body, "<section id=\"notes\"><h2>Notes</h2><ul>{}</ul></section>", notes.join("\n"));
    }
    report.tables.iter().for_each(|filled| body.push_str(&table(filled)));
    for (title, panels) in &report.figures {
        let _ = writeln!(body, "<section class=\"figure\"><h2>{}</h2><div class=\"panels\">", escape(title));
        panels.iter().for_each(|panel| figure(&mut body, panel));
        body.push_str("</div></section>\n");
    }
    body.push_str(COMPARISON);
    runs(&mut body, &report.runs);
    let facts: Vec<String> =
        report.origin.facts.iter().map(|(name, fact)| format!("<dt>{name}</dt><dd>{}</dd>", escape(fact))).collect();
    let command = escape(report.origin.command);
    // Nothing in the data may end or begin an element.
    let data = report.runs.json().to_string().replace('<', "\\u003c");
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
         <style>{CSS}\n{}</style></head>\n<body>\n{body}</main>\n\
         <footer><dl>{}<dt>Command</dt><dd><code>{command}</code></dd></dl>\n\
         <p>Runs that were finished before are not run again: their times may be those of another day or machine.</p></footer>\n\
         <div id=\"tip\" role=\"status\" hidden></div>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>{SCRIPT}</script>\n</body></html>\n",
        escape(title),
        chart::CSS,
        facts.concat()
    )
}

const COMPARISON: &str = "<section id=\"compare\" hidden><h2>Compare two methods</h2>\n\
    <p><select id=\"left\" aria-label=\"first method\"></select> against <select id=\"right\" aria-label=\"second method\"></select>, \
    by <select id=\"measure\" aria-label=\"measure\"><option value=\"accuracy\">accuracy</option>\
    <option value=\"final\">final accuracy</option><option value=\"total\">total accuracy</option><option value=\"seconds\">seconds</option>\
    <option value=\"mib\">model, MiB</option></select></p>\n\
    <p id=\"verdict\" role=\"status\"></p><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Pairs of runs\">\
    <table class=\"sortable\" id=\"pairs\"></table></div></section>\n";

/// A box that scrolls by keyboard, too, where a table is wider than the page.
fn scrolling(label: &str, inside: &str) -> String {
    format!("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">{inside}</div>\n", escape(label))
}

fn head<'a>(heads: impl Iterator<Item = &'a str>, words: usize) -> String {
    let cell = |(i, text): (usize, &str)| {
        let class = if i < words { " class=\"word\"" } else { "" };
        format!("<th scope=\"col\"{class}>{}</th>", escape(text))
    };
    format!("<thead><tr>{}</tr></thead>", heads.enumerate().map(cell).collect::<String>())
}

fn table(table: &Filled) -> String {
    let mut rows = String::new();
    for (labels, cells) in &table.rows {
        let labels: String = labels.iter().map(|label| format!("<td class=\"word\">{}</td>", escape(label))).collect();
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
    let heads = table.row_names.iter().chain(&table.columns).map(String::as_str);
    let heads = head(heads, table.row_names.len());
    let inside = format!("<table class=\"sortable\">{heads}<tbody>\n{rows}</tbody></table>");
    let meaning = table.value.meaning().map_or(String::new(), |meaning| format!("<p class=\"meaning\">{meaning}</p>"));
    let (title, scrolling) = (escape(&table.title), scrolling(&table.title, &inside));
    format!("<section class=\"table\"><h2>{title}</h2>{scrolling}{meaning}</section>\n")
}

/// A panel, and its values as a table for those who cannot see it.
fn figure(body: &mut String, panel: &Panel) {
    let class = if matches!(panel, Panel::Matrix { .. }) { " class=\"matrix\"" } else { "" };
    let _ = writeln!(body, "<figure{class}>{}", scrolling(panel.title(), &chart::svg(panel)));
    if let Panel::Chart { x, lines, .. } = panel {
        let mut places: Vec<f64> = lines.iter().flat_map(|line| line.points.iter().map(|point| point.x)).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        if places.len() <= FEW {
            values(body, x, &places, lines);
        }
    }
    body.push_str("</figure>\n");
}

fn values(body: &mut String, x: &str, places: &[f64], lines: &[Line]) {
    let heads = head(std::iter::once(x).chain(lines.iter().map(|line| line.name.as_str())), 0);
    let cell = |line: &Line, place: f64| {
        let text = line.points.iter().find(|point| point.x == place).map_or(String::new(), |point| {
            let plain = (1.0..1e6).contains(&point.y.abs());
            let number = |value: f64| if plain { fixed(value, 2) } else { short(value) };
            let spread = point.spread.map_or(String::new(), |spread| format!(" ± {}", number(spread)));
            number(point.y) + &spread
        });
        format!("<td>{text}</td>")
    };
    let row = |place: &f64| {
        let cells: String = lines.iter().map(|line| cell(line, *place)).collect();
        format!("<tr><td>{}</td>{cells}</tr>\n", short(*place))
    };
    let rows: String = places.iter().map(row).collect();
    let inside = scrolling("Values", &format!("<table>{heads}<tbody>\n{rows}</tbody></table>"));
    let _ = writeln!(body, "<details class=\"values\"><summary>Values</summary>{inside}</details>");
}

fn runs(body: &mut String, runs: &Runs<'_>) {
    let columns = runs.columns();
    let (mut rows, mut details) = (String::new(), String::new());
    for (n, record) in runs.records.iter().enumerate() {
        let cells = runs.row(record);
        let bytes = record.run.state_bytes;
        let cell = |(i, text): (usize, &String)| {
            let text = escape(text);
            if i == 0 {
                format!("<td class=\"word\"><a href=\"#run-{n}\">{text}</a></td>")
            } else if i < runs.words() {
                format!("<td class=\"word\">{text}</td>")
            } else if i + 1 == cells.len() {
                format!("<td data-v=\"{bytes}\">{text}</td>")
            } else {
                format!("<td>{text}</td>")
            }
        };
        let _ = writeln!(rows, "<tr>{}</tr>", cells.iter().enumerate().map(cell).collect::<String>());
        let config = serde_json::to_string_pretty(&record.run.config).unwrap_or_default();
        let command = record.command();
        let verdict = record.run.verdict.as_ref().map_or(String::new(), |verdict| {
            let warnings = verdict.warnings.iter().map(|warning| format!("<br>Warning: {}", escape(warning)));
            format!("<p>{}{}</p>", escape(&verdict.line), warnings.collect::<String>())
        });
        let _ = writeln!(
            details,
            "<details id=\"run-{n}\"><summary>{}, {}, {}</summary>{verdict}<pre>{}</pre><pre>{}</pre></details>",
            escape(record.data.title()),
            escape(&runs.name(record)),
            escape(&crate::view::Axis::Inc.place(record).text),
            escape(&command),
            escape(&config)
        );
    }
    let heads = head(columns.iter().copied(), runs.words());
    let inside = format!("<table class=\"sortable\">{heads}<tbody>\n{rows}</tbody></table>");
    let meanings: String =
        runs.meanings().iter().map(|(name, meaning)| format!("<dt>{name}</dt><dd>{meaning}</dd>")).collect();
    let _ = writeln!(
        body,
        "<section id=\"runs\"><h2>All runs</h2>{}<dl class=\"meaning\">{meanings}</dl>\n\
         <h3>Command and configuration of each run</h3>\n{details}</section>",
        scrolling("All runs", &inside)
    );
}
