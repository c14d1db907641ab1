//! A heat map of an accuracy matrix.

use std::fmt::Write;

use super::drawing::Drawing;
use super::text::{stacked, wrap};

/// Shades of a heat map: the place of an accuracy between 0 and 100 decides.
const SHADES: usize = 50;
const WIDTH: f64 = 460.0;
const SIDE: f64 = 300.0;
const LEFT: f64 = 66.0;

/// Draws the map: rows are the tasks that are evaluated, columns the moments after each task.
pub(super) fn draw(title: &str, values: &[Vec<Option<f64>>]) -> Drawing {
    let tasks = values.len().max(1);
    let words = wrap(title, 15.0, WIDTH - 24.0);
    let top = 26.0 + 20.0 * words.len() as f64;
    let cell = SIDE / tasks as f64;
    let mut body = stacked("title", 12.0, 26.0, 20.0, &words);
    shades(&mut body, values, cell, top);
    if tasks <= 12 {
        numbers(&mut body, values, cell, top);
    }
    let step = [1, 2, 5, 10, 20, 25, 50, 100, 200, 500].into_iter().find(|step| tasks / step <= 8).unwrap_or(tasks);
    for number in (1..=tasks).filter(|number| number.is_multiple_of(step)) {
        let (x, y) = (LEFT + cell * (number as f64 - 0.5), top + cell * (number as f64 - 0.5));
        let _ = writeln!(
            body,
            "<text class=\"tick\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{number}</text>\
             <text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{number}</text>",
            top + SIDE + 17.0,
            LEFT - 7.0,
            y + 4.5
        );
    }
    let _ = writeln!(
        body,
        "<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">after learning task</text>\
         <text class=\"label\" transform=\"translate(20 {middle}) rotate(-90)\" text-anchor=\"middle\">task evaluated</text>\
         <text class=\"label\" transform=\"translate({} {middle}) rotate(-90)\" text-anchor=\"middle\">accuracy, %</text>",
        LEFT + SIDE / 2.0,
        top + SIDE + 38.0,
        WIDTH - 10.0,
        middle = top + SIDE / 2.0
    );
    key(&mut body, top);
    let row = |row: &Vec<Option<f64>>| {
        let cells: Vec<String> = row.iter().map(|v| v.map_or(String::new(), |v| format!("{v:.2}"))).collect();
        cells.join(",")
    };
    // Where the cells are, for the page's script: left, top, side.
    let values: Vec<String> = values.iter().map(row).collect();
    let attributes = format!(" data-box=\"{LEFT} {top} {SIDE}\" data-values=\"{}\"", values.join(";"));
    Drawing {
        width: WIDTH,
        height: top + SIDE + 52.0,
        class: "chart matrix",
        label: title.to_owned(),
        attributes,
        body,
    }
}

/// The cells. Neighbours of one shade are one rectangle: matrices of hundreds of tasks stay small.
fn shades(body: &mut String, values: &[Vec<Option<f64>>], cell: f64, top: f64) {
    let mut paths = vec![String::new(); SHADES];
    let shade = |value: f64| ((value / 100.0 * SHADES as f64) as usize).min(SHADES - 1);
    for (row, line) in values.iter().enumerate() {
        let mut column = 0;
        for same in line.chunk_by(|a, b| a.map(shade) == b.map(shade)) {
            let (x, y, wide) = (LEFT + cell * column as f64, top + cell * row as f64, cell * same.len() as f64);
            if let Some(value) = same[0] {
                let _ = write!(paths[shade(value)], "M{x:.2} {y:.2}h{wide:.2}v{cell:.2}h-{wide:.2}z");
            }
            column += same.len();
        }
    }
    for (shade, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        let _ = writeln!(body, "<path fill=\"{}\" d=\"{path}\"/>", colour((shade as f64 + 0.5) / SHADES as f64));
    }
}

/// The accuracies in the cells, where there is room.
fn numbers(body: &mut String, values: &[Vec<Option<f64>>], cell: f64, top: f64) {
    for (row, line) in values.iter().enumerate() {
        for (column, value) in line.iter().enumerate() {
            let Some(value) = value else { continue };
            let (x, y) = (LEFT + cell * (column as f64 + 0.5), top + cell * (row as f64 + 0.5));
            let ink = if *value < 60.0 { "#fff" } else { "#111" };
            let _ = writeln!(
                body,
                "<text x=\"{x:.1}\" y=\"{:.1}\" fill=\"{ink}\" text-anchor=\"middle\" font-size=\"{:.1}\">{value:.0}</text>",
                y + cell.min(26.0) * 0.17,
                (cell * 0.48).clamp(7.0, 13.0)
            );
        }
    }
}

/// What the shades mean.
fn key(body: &mut String, top: f64) {
    let left = LEFT + SIDE + 16.0;
    for shade in 0..SHADES {
        let height = SIDE / SHADES as f64;
        let _ = writeln!(
            body,
            "<rect x=\"{left}\" y=\"{:.2}\" width=\"14\" height=\"{:.2}\" fill=\"{}\"/>",
            top + SIDE - height * (shade + 1) as f64,
            height + 0.3,
            colour((shade as f64 + 0.5) / SHADES as f64)
        );
    }
    for percent in [0, 25, 50, 75, 100] {
        let at = top + SIDE * (1.0 - f64::from(percent) / 100.0);
        let _ = writeln!(body, "<text class=\"tick\" x=\"{}\" y=\"{:.1}\">{percent}</text>", left + 20.0, at + 4.5);
    }
}

/// A colour between 0 (dark blue) and 1 (light yellow) whose lightness grows evenly, like cividis: it reads the same
/// for colour-blind people and in print.
fn colour(place: f64) -> String {
    const STOPS: [(f64, f64, f64); 5] =
        [(0.0, 32.0, 81.0), (60.0, 77.0, 110.0), (127.0, 124.0, 117.0), (187.0, 175.0, 113.0), (253.0, 231.0, 85.0)];
    let scaled = place.clamp(0.0, 1.0) * 4.0;
    let (i, t) = ((scaled as usize).min(3), scaled - (scaled as usize).min(3) as f64);
    let mix = |a: f64, b: f64| (a + (b - a) * t).round() as u8;
    let (a, b) = (STOPS[i], STOPS[i + 1]);
    format!("#{:02x}{:02x}{:02x}", mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_shows_every_cell_once_and_says_what_its_axes_are() {
        let svg = draw("m", &[vec![Some(90.0), Some(10.0)], vec![None, Some(50.0)]]).whole();
        assert_eq!(svg.matches("z\"").count(), 3, "{svg}");
        assert!([">90<", ">10<", ">50<", ">task evaluated<", ">after learning task<"].iter().all(|t| svg.contains(t)));
    }
}
