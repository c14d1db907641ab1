//! Tables for spreadsheets.

use std::fmt::Write;

use super::runs::Runs;
use crate::view::Filled;

/// One line per cell: labels, column, ours, the paper's, the difference.
pub(super) fn table(table: &Filled) -> String {
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

/// All runs with their commands; the size of the model is in bytes.
pub(super) fn runs(runs: &Runs<'_>) -> String {
    let mut text = runs.columns().join(",") + ",command\n";
    for record in runs.records {
        let mut row = runs.row(record);
        *row.last_mut().unwrap_or(&mut String::new()) = record.run.state_bytes.to_string();
        row.push(record.command());
        let _ = writeln!(text, "{}", row.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(","));
    }
    text
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_need_quotes_get_them() {
        assert_eq!(["a b", "1,000", "a\"b"].map(quoted), ["a b", "\"1,000\"", "\"a\"\"b\""]);
    }
}
