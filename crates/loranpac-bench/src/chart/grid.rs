//! Pictures of one panel, or of several side by side.

use super::clip::fallen;
use super::drawing::Drawing;
use super::panel::Panel;
use super::text::{stacked, wrap};
use super::{lines, matrix};

const TITLE_SIZE: f64 = 19.0;

/// One panel as an SVG for a page.
pub fn svg(panel: &Panel) -> String {
    draw(panel, &[]).whole()
}

/// A panel; `heights` are values that a vertical axis must hold besides its own.
fn draw(panel: &Panel, heights: &[f64]) -> Drawing {
    match panel {
        Panel::Chart { title, x, y, log, lines } => lines::draw(title, x, y, *log, lines, heights),
        Panel::Matrix { title, values } => matrix::draw(title, values),
    }
}

/// Whether charts side by side have one vertical scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heights {
    /// They do, so that heights can be compared.
    Shared,
    /// Each has its own.
    Own,
}

/// Charts side by side, two in a row; matrices, which are narrower, three.
pub fn grid(title: &str, panels: &[Panel], heights: Heights) -> String {
    let heights = if heights == Heights::Shared { all_heights(panels) } else { Vec::new() };
    let drawings: Vec<Drawing> = panels.iter().map(|panel| draw(panel, &heights)).collect();
    let matrices = panels.iter().all(|panel| matches!(panel, Panel::Matrix { .. }));
    let columns = if matrices { 3 } else { 2 }.min(panels.len().max(1));
    let across = drawings.iter().map(|drawing| drawing.width).fold(0.0, f64::max);
    let down = drawings.iter().map(|drawing| drawing.height).fold(0.0, f64::max);
    let width = across * columns as f64;
    let words = wrap(title, TITLE_SIZE, width - 32.0);
    let top = 20.0 + 24.0 * words.len() as f64;
    let mut body = stacked("title large", 16.0, 32.0, 24.0, &words);
    for (at, drawing) in drawings.iter().enumerate() {
        body.push_str(&drawing.part(across * (at % columns) as f64, top + down * (at / columns) as f64));
    }
    let height = top + down * drawings.len().div_ceil(columns) as f64;
    Drawing { width, height, class: "chart", label: title.to_owned(), attributes: String::new(), body }.whole()
}

/// The values of all lines but those that leave the axis of their chart.
fn all_heights(panels: &[Panel]) -> Vec<f64> {
    let of = |panel: &Panel| match panel {
        Panel::Matrix { .. } => Vec::new(),
        Panel::Chart { lines, y, .. } => {
            let fallen = if y.contains('%') { fallen(lines) } else { Vec::new() };
            let kept = lines.iter().enumerate().filter(|(i, _)| !fallen.contains(i));
            kept.flat_map(|(_, line)| line.points.iter().map(|point| point.y)).collect()
        }
    };
    panels.iter().flat_map(of).collect()
}
