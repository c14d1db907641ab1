//! Where things are in a chart of lines, and its axes.

use std::fmt::Write;

use super::scale::Scale;
use super::text::escape;

/// From the left to the right end.
const WIDTH: f64 = 450.0;
/// Room between the axes and the first and last values.
pub(super) const INSET: f64 = 8.0;

/// Where things are, in pixels.
pub(super) struct Plot {
    pub left: f64,
    pub top: f64,
    pub height: f64,
    pub x: Scale,
    pub y: Scale,
}

impl Plot {
    /// The right end.
    pub fn right(&self) -> f64 {
        self.left + WIDTH
    }

    /// The lower end.
    pub fn floor(&self) -> f64 {
        self.top + self.height
    }

    /// The horizontal place of a value.
    pub fn across(&self, x: f64) -> Option<f64> {
        Some(self.left + INSET + (WIDTH - 2.0 * INSET) * self.x.place(x)?)
    }

    /// The vertical place of a value.
    pub fn down(&self, y: f64) -> Option<f64> {
        Some(self.top + self.height * (1.0 - self.y.place(y)?))
    }

    /// The place of a value, or of the end of the axis beyond which it lies.
    pub fn within(&self, y: f64) -> f64 {
        self.down(y).unwrap_or(self.floor()).clamp(self.top, self.floor())
    }
}

/// Grid, ticks, and what the axes are.
pub(super) fn axes(body: &mut String, plot: &Plot, x_label: &str, y_label: &str, broken: bool) {
    let (left, right, floor) = (plot.left, plot.right(), plot.floor());
    for (at, text) in plot.y.ticks.iter().filter_map(|(tick, text)| Some((plot.down(*tick)?, text))) {
        let _ = writeln!(
            body,
            "<line class=\"grid\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            left - 8.0,
            at + 4.5
        );
    }
    for (at, text) in plot.x.ticks.iter().filter_map(|(tick, text)| Some((plot.across(*tick)?, text))) {
        let _ = writeln!(
            body,
            "<line class=\"axis\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{floor:.1}\" y2=\"{:.1}\"/>\
             <text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            floor + 5.0,
            floor + 20.0
        );
    }
    // A zigzag says that the vertical axis leaves out values below it.
    let (top, foot) = (plot.top, if broken { floor - 16.0 } else { floor });
    let zigzag = if broken { "l-5 3l10 4l-10 4l5 5" } else { "" };
    let _ = writeln!(
        body,
        "<path class=\"axis\" d=\"M{left:.1} {top:.1}V{foot:.1}{zigzag}M{left:.1} {floor:.1}H{right:.1}\"/>\n\
         <text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
         <text class=\"label\" transform=\"translate(18 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        left + WIDTH / 2.0,
        floor + 43.0,
        escape(x_label),
        plot.top + plot.height / 2.0,
        escape(y_label)
    );
}
