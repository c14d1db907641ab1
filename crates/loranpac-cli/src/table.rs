//! Plain text tables: the first column to the left, numbers to the right.

/// Lays out a header and rows.
pub fn render(header: &[&str], rows: &[Vec<String>]) -> String {
    let cells = std::iter::once(header.iter().map(|h| h.to_string()).collect::<Vec<_>>()).chain(rows.iter().cloned());
    let cells: Vec<Vec<String>> = cells.collect();
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let mut text = String::new();
    for (index, row) in cells.iter().enumerate() {
        let line: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(
                |(column, (cell, &width))| {
                    if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
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

/// A number or a dash.
pub fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".to_owned(), |v| format!("{v:.digits$}"))
}

/// Seconds at a sensible precision.
pub fn seconds(value: f64) -> String {
    if value < 10.0 { format!("{value:.2} s") } else { format!("{value:.1} s") }
}
