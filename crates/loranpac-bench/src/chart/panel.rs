//! What a chart shows: lines of points, or an accuracy matrix.

use serde::Deserialize;

use super::style::Style;

/// Which axes of a chart are logarithmic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Log {
    #[default]
    None,
    X,
    Y,
    Both,
}

impl Log {
    pub(super) fn x(self) -> bool {
        matches!(self, Log::X | Log::Both)
    }

    pub(super) fn y(self) -> bool {
        matches!(self, Log::Y | Log::Both)
    }
}

/// One point of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Place on the horizontal axis; NaN for a value that belongs to no place, see [`level`].
    pub x: f64,
    /// Mean over the seeds.
    pub y: f64,
    /// Standard deviation over two seeds or more.
    pub spread: Option<f64>,
}

impl Point {
    /// A point without a spread.
    pub fn new(x: f64, y: f64) -> Point {
        Point { x, y, spread: None }
    }

    /// Mean minus and plus the spread.
    pub(super) fn range(&self) -> (f64, f64) {
        let spread = self.spread.unwrap_or(0.0);
        (self.y - spread, self.y + spread)
    }
}

/// One line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What the label beside it says.
    pub name: String,
    /// Colour, dashes and markers.
    pub style: Style,
    /// In ascending x.
    pub points: Vec<Point>,
}

/// One panel of a figure.
#[derive(Debug, Clone)]
pub enum Panel {
    /// Lines.
    Chart {
        /// What it shows.
        title: String,
        /// Label of the horizontal axis.
        x: String,
        /// Label of the vertical axis.
        y: String,
        /// Which axes are logarithmic.
        log: Log,
        /// The lines.
        lines: Vec<Line>,
    },
    /// An accuracy matrix.
    Matrix {
        /// What it shows.
        title: String,
        /// Row i, column t: accuracy on task i after task t, mean over seeds.
        values: Vec<Vec<Option<f64>>>,
    },
}

impl Panel {
    /// What it shows.
    pub fn title(&self) -> &str {
        match self {
            Panel::Chart { title, .. } | Panel::Matrix { title, .. } => title,
        }
    }
}

/// Lines whose only point belongs to no place on the axis (x is NaN) become level lines from end to end.
pub fn level(lines: &mut [Line]) {
    let ends = lines.iter().flat_map(|line| line.points.iter().map(|p| p.x)).filter(|x| !x.is_nan());
    let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
    for line in lines {
        if let [point] = line.points[..]
            && point.x.is_nan()
        {
            line.points = [low, high].map(|x| Point { x, ..point }).to_vec();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_without_a_place_is_a_level_line() {
        let line = |points: &[(f64, f64)]| Line {
            name: String::new(),
            style: Style::nth(0),
            points: points.iter().map(|(x, y)| Point::new(*x, *y)).collect(),
        };
        let mut lines = [line(&[(1.0, 5.0), (9.0, 6.0)]), line(&[(f64::NAN, 7.0)])];
        level(&mut lines);
        assert_eq!(lines[1], line(&[(1.0, 7.0), (9.0, 7.0)]));
    }
}
