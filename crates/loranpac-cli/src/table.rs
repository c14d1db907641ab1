//! Plain-text tables: the first column left-aligned, numbers right-aligned.

use loranpac_bench::view::{Cell, Filled};
use loranpac_data::text::escape;

/// The maximum column width. Longer cells are printed in full, and the others are not padded to their length.
const WIDEST: usize = 200;

/// Lays out a header and rows of numbers.
pub fn render(header: &[&str], rows: &[Vec<String>]) -> String {
    layout(header, rows, 1)
}

/// Lays out a header and rows of text.
pub fn plain(header: &[&str], rows: &[Vec<String>]) -> String {
    layout(header, rows, header.len())
}

/// Lays out a table of a recipe; the paper's numbers and the difference are in brackets.
pub fn filled(table: &Filled) -> String {
    let header: Vec<&str> = table.row_names.iter().chain(&table.columns).map(String::as_str).collect();
    let row = |(labels, cells): &(Vec<String>, Vec<Option<Cell>>)| {
        let cell = |cell: &Option<Cell>| cell.as_ref().map_or(String::new(), |c| c.beside_the_paper(table.value));
        labels.iter().cloned().chain(cells.iter().map(cell)).collect::<Vec<_>>()
    };
    layout(&header, &table.rows.iter().map(row).collect::<Vec<_>>(), table.row_names.len())
}

/// Lays out a header and rows: the first `words` columns are left-aligned, the others right-aligned.
pub fn layout(header: &[&str], rows: &[Vec<String>], words: usize) -> String {
    // Control characters would break the layout.
    let clean = |cell: &str| escape(cell).into_owned();
    let rows = rows.iter().map(|row| row.iter().map(|cell| clean(cell)).collect());
    let cells: Vec<Vec<String>> =
        std::iter::once(header.iter().map(|head| clean(head)).collect()).chain(rows).collect();
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).min(WIDEST);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let mut text = String::new();
    for (index, row) in cells.iter().enumerate() {
        let line: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(
                |(column, (cell, &width))| {
                    if column < words { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                },
            )
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
        if index == 0 {
            text.push_str(&"-".repeat(widths.iter().sum::<usize>() + 2 * (widths.len() - 1)));
            text.push('\n');
        }
    }
    text
}

/// Formats a number, or a dash.
pub fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".to_owned(), |v| format!("{v:.digits$}"))
}

/// Formats seconds at a sensible precision.
pub fn seconds(value: f64) -> String {
    if value < 10.0 { format!("{value:.2} s") } else { format!("{value:.1} s") }
}
