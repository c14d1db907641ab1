//! Charts as SVG: lines on linear or logarithmic axes, and heat maps of accuracy matrices.
//!
//! A chart needs neither scripts nor fonts of its own. It takes its colours from CSS, light or dark. Inside a page it carries the
//! values of its points for the page's script.

mod clip;
mod drawing;
mod grid;
mod labels;
mod lines;
mod matrix;
mod number;
mod panel;
mod plot;
mod scale;
mod style;
mod text;

pub use grid::{Heights, grid, svg};
pub use number::{fixed, short, thousands};
pub use panel::{Line, Log, Panel, Point, level};
pub use style::Style;
pub use text::escape;

/// Style of charts, for a page or for an SVG file of its own.
pub const CSS: &str = include_str!("chart.css");

/// An SVG with its own style, to be a file: without the values that a page's script would show.
pub fn standalone(svg: &str) -> String {
    let mut plain = String::with_capacity(svg.len());
    let mut rest = svg;
    while let Some((before, after)) = rest.split_once(" data-") {
        plain.push_str(before);
        // Inside an attribute there are no quotes: they are escaped.
        rest = after.splitn(3, '"').nth(2).unwrap_or_default();
    }
    plain.push_str(rest);
    plain.replacen('>', &format!(">\n<style>{CSS}</style>"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_its_own_carries_no_values_for_scripts() {
        let matrix = |title: &str, value: f64| Panel::Matrix {
            title: title.to_owned(),
            values: vec![vec![Some(value), Some(0.0)], vec![None, Some(1.0)]],
        };
        let points = vec![Point::new(1.0, 2.0), Point::new(2.0, 3.0)];
        let lines = vec![Line { name: "a \"b\"".to_owned(), style: Style::of("loranpac"), points }];
        let chart = Panel::Chart { title: "c".to_owned(), x: "x".to_owned(), y: "y".to_owned(), log: Log::None, lines };
        let page = grid("all", &[matrix("a", 90.0), matrix("b", 10.0), chart], Heights::Own);
        let file = standalone(&page);
        assert_eq!((page.matches(" data-values=").count(), page.matches(" data-at=").count()), (2, 1));
        assert!(!file.contains(" data-"), "{file}");
        assert_eq!(file.matches("<svg ").count(), 4);
        assert!(
            file.contains(">90<") && file.contains(">10<") && file.contains("<style>") && file.contains("<polyline")
        );
    }
}
