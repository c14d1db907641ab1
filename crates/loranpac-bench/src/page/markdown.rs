//! The report as Markdown.

use std::fmt::Write;

use super::contents::Contents;
use crate::recipe::Recipe;
use crate::view::{Cell, Filled};
use loranpac_data::text::escape_markdown;

pub(super) fn write(report: &Contents<'_>) -> String {
    let Recipe { title, paper, about, .. } = report.recipe;
    let mut text = format!("# {}\n\n", escape_markdown(title));
    // A recipe's description may have several lines, which are one paragraph.
    let about = escape_markdown(&about.replace('\n', " "));
    if let Some(paper) = paper {
        let _ = writeln!(text, "The paper's {}. {about}\n", escape_markdown(paper));
    }
    if paper.is_none() && !about.is_empty() {
        let _ = writeln!(text, "{about}\n");
    }
    if !report.notes.is_empty() {
        text.push_str("## Notes\n\n");
        text.extend(report.notes.iter().map(|note| format!("- {}\n", escape_markdown(note))));
    }
    report.tables.iter().for_each(|filled| table(&mut text, filled));
    for (n, (title, panels)) in report.figures.iter().enumerate() {
        let title = escape_markdown(title);
        let _ = writeln!(text, "\n## {title}\n");
        for (m, panel) in panels.iter().enumerate() {
            let name = escape_markdown(panel.title());
            let _ = writeln!(text, "![{title}: {name}](figure-{}-{}.svg)", n + 1, m + 1);
        }
    }
    let columns = report.runs.columns();
    let _ = writeln!(text, "\n## All runs\n\n| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len()));
    for record in report.runs.records {
        let cells = report.runs.row(record).iter().map(|cell| escape_markdown(cell)).collect::<Vec<_>>();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text.push('\n');
    for (name, meaning) in report.runs.meanings() {
        let _ = writeln!(text, "- *{name}*: {meaning}");
    }
    text + &report.origin.markdown()
}

fn table(text: &mut String, table: &Filled) {
    let _ = writeln!(text, "\n## {}\n", escape_markdown(&table.title));
    let heads = table.row_names.iter().chain(&table.columns).map(|head| escape_markdown(head));
    let _ = writeln!(text, "| {} |", heads.collect::<Vec<_>>().join(" | "));
    let _ = writeln!(text, "|{}", "---|".repeat(table.row_names.len() + table.columns.len()));
    for (labels, cells) in &table.rows {
        let cell = |cell: &Option<Cell>| cell.as_ref().map_or(String::new(), |c| c.beside_the_paper(table.value));
        let cells = labels.iter().cloned().chain(cells.iter().map(cell)).map(|cell| escape_markdown(&cell));
        let _ = writeln!(text, "| {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    if let Some(meaning) = table.value.meaning() {
        let _ = writeln!(text, "\n{meaning}");
    }
}
