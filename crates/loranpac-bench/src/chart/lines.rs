//! A chart of lines: axes, lines with markers and spreads, and a label at the end of each line.

use std::fmt::Write;

use super::clip::{above, fallen};
use super::drawing::Drawing;
use super::labels::{LEADING, apart};
use super::number::short;
use super::panel::{Line, Log, Point};
use super::plot::{INSET, Plot, axes};
use super::scale::Scale;
use super::text::{escape, stacked, width, wrap};

const SIZE: f64 = 13.0;
const TITLE_SIZE: f64 = 15.0;
const PLOT_HEIGHT: f64 = 280.0;
/// Where labels begin, right of the plot: behind a leader and a marker.
const GAP: f64 = 34.0;
/// Names of lines are broken at this width.
const NAME_WIDTH: f64 = 200.0;
/// Lines with more points have fewer markers than points.
const FEW: usize = 24;
/// Lines with more points have a band for their spread instead of a bar at every point.
const BARS: usize = 8;
/// More points than these cannot be seen.
const MOST: usize = 400;

/// A line with the places of its points. Points that an axis cannot show (zero on a logarithmic vertical one) are left out.
struct Drawn<'a> {
    line: &'a Line,
    points: Vec<(f64, f64, Point)>,
    label: Vec<String>,
}

/// Draws a chart whose vertical axis also has room for the heights of others.
pub(super) fn draw(title: &str, x_label: &str, y_label: &str, log: Log, lines: &[Line], others: &[f64]) -> Drawing {
    let fallen = if log.y() || !y_label.contains('%') { Vec::new() } else { fallen(lines) };
    let kept = lines.iter().enumerate().filter(|(i, _)| !fallen.contains(i)).flat_map(|(_, line)| &line.points);
    let percent = |value: f64| if y_label.contains('%') { value.clamp(0.0, 100.0) } else { value };
    let heights = kept.flat_map(|point| [point.range().0, point.y, point.range().1].map(percent));
    let y = Scale::up(heights.chain(others.iter().copied()), log.y());
    let x = Scale::across(lines.iter().flat_map(|line| line.points.iter().map(|point| point.x)), log.x());
    let ticks = y.ticks.iter().map(|(_, text)| width(text, SIZE)).fold(0.0, f64::max);
    let mut plot = Plot { left: 40.0 + ticks, top: 0.0, height: PLOT_HEIGHT, x, y };

    // An axis that is shared with others may hold them all the same.
    let outside = |line: &Line| line.points.iter().any(|point| plot.y.place(point.y).is_some_and(|place| place < 0.0));
    let fallen: Vec<usize> = fallen.into_iter().filter(|&i| outside(&lines[i])).collect();
    let label = |i: usize, line: &Line| {
        let end = line.points.iter().rev().find(|point| plot.down(point.y).is_some()).map(|point| point.y);
        let value = end.map_or(String::new(), |y| plot.y.text(y));
        let below = if fallen.contains(&i) { " (below axis)" } else { "" };
        wrap(&format!("{value} {}{below}", line.name), SIZE, NAME_WIDTH)
    };
    let labels: Vec<Vec<String>> = lines.iter().enumerate().map(|(i, line)| label(i, line)).collect();
    let room = labels.iter().flatten().map(|text| width(text, SIZE)).fold(0.0, f64::max);
    let total = (plot.right() + GAP + room + 8.0).max(plot.right() + 140.0);
    plot.height = plot.height.max(LEADING * labels.iter().map(Vec::len).sum::<usize>() as f64);
    let words = wrap(title, TITLE_SIZE, total - 32.0);
    plot.top = 22.0 + 20.0 * words.len() as f64;

    let mut body = stacked("title", 16.0, 26.0, 20.0, &words);
    axes(&mut body, &plot, x_label, y_label, !fallen.is_empty());
    let drawn: Vec<Drawn<'_>> = lines
        .iter()
        .zip(labels)
        .map(|(line, label)| {
            let at = |point: &Point| Some((plot.across(point.x)?, plot.down(point.y)?, *point));
            Drawn { line, points: thin(line.points.iter().filter_map(at).collect(), MOST), label }
        })
        .filter(|drawn| !drawn.points.is_empty())
        .collect();
    let ends: Vec<f64> = drawn.iter().map(|drawn| plot.within(drawn.points[drawn.points.len() - 1].2.y)).collect();
    let tall: Vec<f64> = drawn.iter().map(|drawn| LEADING * drawn.label.len() as f64).collect();
    let places = apart(&ends, &tall, plot.top - LEADING / 2.0, plot.floor() + LEADING / 2.0);
    // The first line, which matters most, is drawn last and lies above the others.
    for (drawn, place) in drawn.iter().zip(places).rev() {
        series(&mut body, &plot, drawn, place);
    }
    let (label, attributes) = (title.to_owned(), String::new());
    Drawing { width: total, height: plot.floor() + 56.0, class: "chart", label, attributes, body }
}

/// One line with everything that belongs to it.
fn series(body: &mut String, plot: &Plot, drawn: &Drawn<'_>, place: f64) {
    let Drawn { line, points, label } = drawn;
    let style = line.style;
    let joined = |points: &[(f64, f64)]| -> String {
        points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
    };
    let at: Vec<(f64, f64)> = points.iter().map(|(x, y, _)| (*x, *y)).collect();
    let said = |p: &Point| {
        format!("{}:{}{}", short(p.x), short(p.y), p.spread.map_or(String::new(), |s| format!("±{}", short(s))))
    };
    let values: Vec<String> = points.iter().map(|(.., point)| said(point)).collect();
    let _ = writeln!(
        body,
        "<g class=\"series {}\" data-name=\"{}\" data-at=\"{}\" data-v=\"{}\">",
        style.colour(),
        escape(&line.name),
        joined(&at),
        values.join(" ")
    );
    spreads(body, plot, points);
    for piece in above(&at, plot.floor() + 0.5) {
        let _ = writeln!(body, "<polyline class=\"{}\" points=\"{}\"/>", style.line(), joined(&piece));
    }
    let (floor, count) = (plot.floor() + 0.5, at.len());
    let marked = if count <= FEW { at.clone() } else { thin(at.clone(), FEW / 2) };
    let end = (plot.right() + GAP - 11.0, place);
    let marked = marked.into_iter().filter(|point| point.1 <= floor).chain([end]);
    let _ = writeln!(body, "<path class=\"{}\" d=\"{}\"/>", style.marker(), style.markers(marked));
    // An arrow where the line leaves the axis.
    if let Some(i) = (1..count).rfind(|&i| at[i].1 > floor && at[i - 1].1 <= floor) {
        let ((x, y), (next, below)) = (at[i - 1], at[i]);
        let x = x + (next - x) * (floor - y) / (below - y);
        let _ = writeln!(body, "<path class=\"point\" d=\"M{x:.1} {floor:.1}l-5-9h10z\"/>");
    }
    let (last, from) = (plot.within(points[count - 1].2.y), points[count - 1].0 + 6.0);
    if (last - place).abs() > 1.0 || from < plot.right() - INSET {
        let bend = plot.right() + 2.0;
        let _ = writeln!(
            body,
            "<path class=\"leader\" d=\"M{from:.1} {last:.1}H{bend:.1}L{:.1} {place:.1}\"/>",
            plot.right() + GAP - 18.0
        );
    }
    let first = place + 4.5 - LEADING / 2.0 * (label.len() - 1) as f64;
    body.push_str(&stacked("end", plot.right() + GAP, first, LEADING, label));
    body.push_str("</g>\n");
}

/// Mean plus and minus the spread: a bar at each of a few points, a band along many.
fn spreads(body: &mut String, plot: &Plot, points: &[(f64, f64, Point)]) {
    // Of a line that leaves the axis, the mean is all that is shown.
    let inside = points.iter().all(|(_, y, _)| *y <= plot.floor() + 0.5);
    let with = points.iter().filter(|(.., point)| inside && point.spread.is_some());
    let ends: Vec<(f64, f64, f64)> =
        with.map(|(x, _, point)| (*x, plot.within(point.range().0), plot.within(point.range().1))).collect();
    if ends.iter().all(|(_, low, high)| low == high) {
        return;
    }
    let mut path = String::new();
    if points.len() <= BARS {
        for (x, low, high) in ends.into_iter().filter(|(_, low, high)| low > high) {
            let _ = write!(path, "M{:.1} {low:.1}h6m-3 0V{high:.1}m-3 0h6", x - 3.0);
        }
        let _ = writeln!(body, "<path class=\"bar\" d=\"{path}\"/>");
    } else {
        let upper = ends.iter().map(|(x, _, high)| format!("{x:.1} {high:.1}"));
        let lower = ends.iter().rev().map(|(x, low, _)| format!("{x:.1} {low:.1}"));
        path = upper.chain(lower).collect::<Vec<_>>().join("L");
        let _ = writeln!(body, "<path class=\"band\" d=\"M{path}z\"/>");
    }
}

/// At most so many points, evenly chosen, with both ends.
fn thin<T: Copy>(points: Vec<T>, most: usize) -> Vec<T> {
    if points.len() <= most {
        return points;
    }
    let last = points.len() - 1;
    (0..most).map(|i| points[i * last / (most - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::style::Style;
    use super::*;

    fn line(name: &str, points: &[(f64, f64, Option<f64>)]) -> Line {
        let points = points.iter().map(|&(x, y, spread)| Point { x, y, spread }).collect();
        Line { name: name.to_owned(), style: Style::of(name), points }
    }

    #[test]
    fn a_line_that_falls_off_the_axis_is_cut_and_named() {
        let up = |name: &str, y: f64| line(name, &[(1.0, 99.0, None), (2.0, y, None)]);
        let lines = [up("loranpac", 92.0), up("ranpac", 91.0), up("slda", 90.0), up("min-norm", 0.5)];
        let svg = draw("t", "tasks", "accuracy, %", Log::None, &lines, &[]).body;
        assert!(svg.contains(">90<") && !svg.contains(">0<"), "the axis begins where the others are: {svg}");
        assert!(svg.contains(">0.5 min-norm (below axis)<"), "{svg}");
        assert!(svg.contains("l-5 3l10 4l-10 4l5 5"), "the axis is marked as broken");
    }

    #[test]
    fn spreads_are_bars_at_few_points_and_a_band_along_many() {
        let of = |count: usize, spread: Option<f64>| {
            let points: Vec<_> = (0..count).map(|i| (i as f64, 50.0, spread)).collect();
            draw("t", "x", "y", Log::None, &[line("loranpac", &points)], &[]).body
        };
        let has = |svg: &str| (svg.contains("class=\"bar\""), svg.contains("class=\"band\""));
        assert_eq!(has(&of(5, Some(1.0))), (true, false));
        assert_eq!(has(&of(100, Some(1.0))), (false, true));
        assert_eq!(has(&of(5, None)), (false, false));
    }

    #[test]
    fn a_long_title_and_long_names_are_broken_into_lines() {
        let name = "a schedule with a very long name, and what is bounded by the corollary";
        let lines = [line(name, &[(1.0, 2.0, None), (2.0, 3.0, None)])];
        let title =
            "Accuracy on a data set with a long name, an encoder with a longer one, and many more words than fit"
                .repeat(2);
        let drawing = draw(&title, "x", "y", Log::None, &lines, &[]);
        assert!(drawing.width < 800.0 && drawing.body.matches("<tspan").count() >= 4, "{}", drawing.body);
    }
}
