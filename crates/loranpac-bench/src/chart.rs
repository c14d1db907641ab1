//! Charts as SVG: lines on linear or logarithmic axes, and heat maps of accuracy matrices. They take their colours from
//! CSS, light or dark, and carry their values for whoever hovers over them.

use std::fmt::Write;

use crate::view::{Line, Log, Panel};
use loranpac_data::text::escape_lines;

/// Style of charts, for a page or for an SVG file of its own. The colours of lines can be told apart by colour-blind
/// people (Okabe and Ito, a little lighter in the dark).
pub const CSS: &str = include_str!("chart.css");

/// Classes of line styles; beyond them lines are dashed.
const COLOURS: usize = 7;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 390.0;
const MATRIX_WIDTH: f64 = 460.0;
const LEFT: f64 = 72.0;
const TOP: f64 = 48.0;
const PLOT_WIDTH: f64 = 490.0;
const PLOT_HEIGHT: f64 = 280.0;

/// An SVG with its own style, to be a file: without the values that a page's script would show.
pub fn standalone(svg: &str) -> String {
    let mut parts = svg.split(" data-values=\"");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    parts.filter_map(|part| part.split_once('"')).for_each(|(_, rest)| plain.push_str(rest));
    plain.replacen('>', &format!(">\n<style>{CSS}</style>"), 1)
}

/// Text inside SVG or HTML.
pub fn escape(text: &str) -> String {
    // Most control characters are not allowed in XML, and none is meant.
    escape_lines(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A number in as few characters as tell it.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if !(1e-3..1e6).contains(&size) {
        format!("{value:.2e}").replace(".00e", "e")
    } else {
        let digits = (3 - size.log10().floor() as i32).clamp(0, 5) as usize;
        let text = format!("{value:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    }
}

/// One axis: from values to places between 0 and 1.
struct Scale {
    log: bool,
    low: f64,
    high: f64,
    ticks: Vec<f64>,
    /// A logarithmic axis shows zero at its lower end, below all other values.
    zero: bool,
}

impl Scale {
    fn new(values: impl Iterator<Item = f64>, log: bool, with_zero: bool) -> Scale {
        let values: Vec<f64> = values.filter(|v| v.is_finite()).collect();
        let zero = log && with_zero && values.contains(&0.0);
        let usable = values.iter().filter(|v| !log || **v > 0.0);
        let (mut low, mut high) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
        if low > high {
            (low, high) = if log { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        if log {
            let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
            let last = last.max(first + 1);
            let step = ((last - first) as usize).div_ceil(8).max(1);
            let mut ticks: Vec<f64> = (first..=last).step_by(step).map(|e| 10f64.powi(e)).collect();
            let below = if zero { 1 } else { 0 };
            if zero {
                ticks.insert(0, 0.0);
            }
            return Scale { log, low: 10f64.powi(first - below), high: 10f64.powi(last), ticks, zero };
        }
        if high - low < 1e-12 * high.abs().max(1e-300) {
            (low, high) = (low - 0.5, high + 0.5);
        }
        let raw = (high - low) / 6.0;
        let power = 10f64.powf(raw.log10().floor());
        // Tasks and classes are counted: no half ticks.
        let whole = |step: f64| step.fract() == 0.0 || values.iter().any(|v| v.fract() != 0.0);
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0, 20.0].into_iter().map(|m| m * power);
        let step = steps.into_iter().find(|s| *s >= raw && whole(*s)).unwrap_or(10.0 * power);
        let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
        let ticks = (first..=last).map(|i| i as f64 * step).collect();
        Scale { log, low: first as f64 * step, high: last as f64 * step, ticks, zero }
    }

    fn place(&self, value: f64) -> Option<f64> {
        if self.zero && value == 0.0 {
            return Some(0.0);
        }
        let (value, low, high) =
            if self.log { (value.log10(), self.low.log10(), self.high.log10()) } else { (value, self.low, self.high) };
        value.is_finite().then(|| (value - low) / (high - low))
    }
}

/// A point: where it is drawn, and its values.
type Drawn = (f64, f64, (f64, f64));

/// A chart of lines. Points that an axis cannot show (zero on a logarithmic vertical one) are left out.
pub fn lines(title: &str, x_label: &str, y_label: &str, log: Log, lines: &[Line]) -> String {
    draw(title, x_label, y_label, log, lines, &[])
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
    let lines = panels.iter().flat_map(|panel| match panel {
        Panel::Chart { lines, .. } if heights == Heights::Shared => &lines[..],
        _ => &[],
    });
    let heights: Vec<f64> = lines.flat_map(|line| line.points.iter().map(|point| point.1)).collect();
    let top = 48.0;
    let matrices = panels.iter().all(|panel| matches!(panel, Panel::Matrix { .. }));
    let (columns, across) = if matrices { (3, MATRIX_WIDTH) } else { (2, WIDTH) };
    let columns = columns.min(panels.len().max(1));
    let (width, height) = (across * columns as f64, top + HEIGHT * panels.len().div_ceil(columns) as f64);
    let mut svg = format!(
        "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"{0}\">\n<rect class=\"ground\" width=\"{width}\" height=\"{height}\"/>\n\
         <text class=\"title\" style=\"font-size: 22px\" x=\"{LEFT}\" y=\"34\">{0}</text>\n",
        escape(title)
    );
    for (at, panel) in panels.iter().enumerate() {
        let inner = match panel {
            Panel::Chart { title, x, y, log, lines } => draw(title, x, y, *log, lines, &heights),
            Panel::Matrix { title, values } => matrix(title, values),
        };
        let (left, down) = (across * (at % columns) as f64, top + HEIGHT * (at / columns) as f64);
        let place = format!(
            "<svg x=\"{left}\" y=\"{down}\" width=\"{across}\" height=\"{HEIGHT}\" preserveAspectRatio=\"xMinYMin\" "
        );
        svg.push_str(&inner.replacen("<svg ", &place, 1));
    }
    svg + "</svg>\n"
}

/// A chart of lines whose vertical axis also has room for the heights of others.
fn draw(title: &str, x_label: &str, y_label: &str, log: Log, lines: &[Line], others: &[f64]) -> String {
    let values = |f: fn(&(f64, f64)) -> f64| lines.iter().flat_map(move |line| line.points.iter().map(f));
    let x = Scale::new(values(|p| p.0), matches!(log, Log::X | Log::Both), true);
    let heights = values(|p| p.1).chain(others.iter().copied());
    let y = Scale::new(heights, matches!(log, Log::Y | Log::Both), false);
    let at = |point: &(f64, f64)| {
        let (x, y) = (x.place(point.0)?, y.place(point.1)?);
        Some((LEFT + PLOT_WIDTH * x, TOP + PLOT_HEIGHT * (1.0 - y)))
    };
    // Room for the longest name beside its line, and for the value before it.
    let longest = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
    let width = WIDTH.max(LEFT + PLOT_WIDTH + 16.0 + 6.9 * (longest + 8) as f64);
    let mut svg = format!(
        "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {HEIGHT}\" role=\"img\" \
         aria-label=\"{0}\">\n<rect class=\"ground\" width=\"{width:.0}\" height=\"{HEIGHT}\"/>\n\
         <text class=\"title\" x=\"{LEFT}\" y=\"26\">{0}</text>\n",
        escape(title)
    );
    for (tick, place) in y.ticks.iter().filter_map(|tick| Some((tick, y.place(*tick)?))) {
        let at = TOP + PLOT_HEIGHT * (1.0 - place);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT + PLOT_WIDTH,
            LEFT - 8.0,
            at + 4.5,
            tick_text(*tick, y.log)
        );
    }
    for (tick, place) in x.ticks.iter().filter_map(|tick| Some((tick, x.place(*tick)?))) {
        let at = LEFT + PLOT_WIDTH * place;
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{}\" y2=\"{}\"/>\
             <text class=\"tick\" x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            TOP + PLOT_HEIGHT,
            TOP + PLOT_HEIGHT + 5.0,
            TOP + PLOT_HEIGHT + 20.0,
            tick_text(*tick, x.log)
        );
    }
    let _ = writeln!(
        svg,
        "<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
         <text class=\"label\" transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        LEFT + PLOT_WIDTH / 2.0,
        TOP + PLOT_HEIGHT + 44.0,
        escape(x_label),
        TOP + PLOT_HEIGHT / 2.0,
        escape(y_label)
    );
    let drawn: Vec<(usize, &Line, Vec<Drawn>)> = lines
        .iter()
        .enumerate()
        .map(|(i, line)| {
            let points = line.points.iter().filter_map(|point| at(point).map(|(px, py)| (px, py, *point)));
            (i, line, thin(points.collect()))
        })
        .filter(|(_, _, points)| !points.is_empty())
        .collect();
    let ends: Vec<f64> = drawn.iter().map(|(_, _, points)| points[points.len() - 1].1).collect();
    let places = apart(&ends, 17.0, TOP, TOP + PLOT_HEIGHT + 44.0);
    for ((index, line, points), place) in drawn.iter().zip(places) {
        let colour = index % COLOURS;
        let dash = ["", " dash1", " dash2"][index / COLOURS % 3];
        let path: Vec<String> = points.iter().map(|(x, y, _)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(svg, "<g class=\"series c{colour}\" data-name=\"{}\">", escape(&line.name));
        let values: Vec<String> = points.iter().map(|(.., (x, y))| format!("{}:{}", short(*x), short(*y))).collect();
        let (path, values) = (path.join(" "), values.join(" "));
        let _ = writeln!(svg, "<polyline class=\"line{dash}\" points=\"{path}\" data-v=\"{values}\"/>");
        if points.len() <= 60 {
            for (px, py, (x, y)) in points {
                let _ = writeln!(
                    svg,
                    "<circle class=\"point\" cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"3.5\"><title>{}: {} at {}</title></circle>",
                    escape(&line.name),
                    short(*y),
                    short(*x)
                );
            }
        }
        let last = points[points.len() - 1].2.1;
        let _ = writeln!(
            svg,
            "<text class=\"end\" x=\"{}\" y=\"{:.1}\">{} {}</text></g>",
            LEFT + PLOT_WIDTH + 10.0,
            place + 4.5,
            short(last),
            escape(&line.name)
        );
    }
    svg + "</svg>\n"
}

fn tick_text(tick: f64, log: bool) -> String {
    if log && tick != 0.0 && !(0.01..1e5).contains(&tick) { format!("1e{}", tick.log10().round()) } else { short(tick) }
}

/// At most a few hundred points, evenly chosen, with both ends: more cannot be seen.
fn thin<T: Copy>(points: Vec<T>) -> Vec<T> {
    const MOST: usize = 400;
    if points.len() <= MOST {
        return points;
    }
    let last = points.len() - 1;
    (0..MOST).map(|i| points[i * last / (MOST - 1)]).collect()
}

/// Places near the wanted ones, at least `gap` apart, between `low` and `high` as far as they fit.
fn apart(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut places = wanted.to_vec();
    let mut least = low;
    for &i in &order {
        places[i] = places[i].max(least);
        least = places[i] + gap;
    }
    let mut most = high;
    for &i in order.iter().rev() {
        places[i] = places[i].min(most);
        most = places[i] - gap;
    }
    places
}

/// Shades of a heat map: the place of an accuracy between 0 and 100 decides.
const SHADES: usize = 50;

/// A heat map of an accuracy matrix: rows are tasks, columns the moments after each task.
pub fn matrix(title: &str, values: &[Vec<Option<f64>>]) -> String {
    let tasks = values.len().max(1);
    let (side, left, top) = (300.0, 56.0, 44.0);
    let cell = side / tasks as f64;
    let row = |row: &Vec<Option<f64>>| {
        let cells: Vec<String> = row.iter().map(|v| v.map_or(String::new(), |v| format!("{v:.2}"))).collect();
        cells.join(",")
    };
    let numbers: Vec<String> = values.iter().map(row).collect();
    let mut svg = format!(
        "<svg class=\"chart matrix\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 460 400\" role=\"img\" \
         aria-label=\"{0}\" data-values=\"{1}\">\n<rect class=\"ground\" width=\"460\" height=\"400\"/>\n\
         <text class=\"title small\" x=\"10\" y=\"24\">{0}</text>\n",
        escape(title),
        numbers.join(";")
    );
    let mut paths = vec![String::new(); SHADES];
    let shade = |value: f64| ((value / 100.0 * SHADES as f64) as usize).min(SHADES - 1);
    for (row, line) in values.iter().enumerate() {
        let mut column = 0;
        // Neighbours of one shade are one rectangle: matrices of hundreds of tasks stay small.
        for same in line.chunk_by(|a, b| a.map(shade) == b.map(shade)) {
            let (x, y, wide) = (left + cell * column as f64, top + cell * row as f64, cell * same.len() as f64);
            if let Some(value) = same[0] {
                let _ = write!(paths[shade(value)], "M{x:.2} {y:.2}h{wide:.2}v{cell:.2}h-{wide:.2}z");
            }
            column += same.len();
        }
    }
    for (shade, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        let _ = writeln!(svg, "<path fill=\"{}\" d=\"{path}\"/>", colour((shade as f64 + 0.5) / SHADES as f64));
    }
    if tasks <= 12 {
        for (row, line) in values.iter().enumerate() {
            for (column, value) in line.iter().enumerate() {
                let Some(value) = value else { continue };
                let (x, y) = (left + cell * (column as f64 + 0.5), top + cell * (row as f64 + 0.5));
                let ink = if *value < 60.0 { "#fff" } else { "#111" };
                let _ = writeln!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"{:.1}\" fill=\"{ink}\" text-anchor=\"middle\" font-size=\"{:.1}\">{value:.0}</text>",
                    y + cell.min(26.0) * 0.17,
                    (cell * 0.48).clamp(7.0, 13.0)
                );
            }
        }
    }
    for (number, place) in [(1, 0.5), (tasks, tasks as f64 - 0.5)] {
        let (x, y) = (left + cell * place, top + cell * place);
        let _ = writeln!(
            svg,
            "<text class=\"tick\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{number}</text>\
             <text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{number}</text>",
            top + side + 16.0,
            left - 6.0,
            y + 4.5
        );
    }
    let _ = writeln!(
        svg,
        "<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">after task</text>\
         <text class=\"label\" transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">accuracy on task, %</text>",
        left + side / 2.0,
        top + side + 36.0,
        top + side / 2.0
    );
    for shade in 0..SHADES {
        let height = side / SHADES as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"384\" y=\"{:.2}\" width=\"14\" height=\"{:.2}\" fill=\"{}\"/>",
            top + side - height * (shade + 1) as f64,
            height + 0.3,
            colour((shade as f64 + 0.5) / SHADES as f64)
        );
    }
    for percent in [0, 25, 50, 75, 100] {
        let at = top + side * (1.0 - f64::from(percent) / 100.0);
        let _ = writeln!(svg, "<text class=\"tick\" x=\"404\" y=\"{:.1}\">{percent}</text>", at + 4.5);
    }
    svg + "</svg>\n"
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
    fn numbers_are_short() {
        let shown = [0.0, 92.4, 10_000.0, 0.25, 1234567.0, 1e-5, 99.996, 0.001].map(short);
        assert_eq!(shown, ["0", "92.4", "10000", "0.25", "1.23e6", "1e-5", "100", "0.001"]);
    }

    #[test]
    fn ticks_are_round_and_hold_all_values() {
        let scale = Scale::new([62.5, 91.3].into_iter(), false, false);
        assert!(scale.low <= 62.5 && scale.high >= 91.3, "{} {}", scale.low, scale.high);
        assert!(scale.ticks.iter().all(|t| (t / 5.0).fract().abs() < 1e-9), "{:?}", scale.ticks);
        let counted = Scale::new([1.0, 12.0].into_iter(), false, false);
        assert!(counted.ticks.iter().all(|t| t.fract() == 0.0), "{:?}", counted.ticks);
        let log = Scale::new([3e-6, 0.0, f64::NAN, 2e10].into_iter(), true, false);
        assert_eq!((log.low, log.high), (1e-6, 1e11));
        assert!(log.ticks.len() <= 9);
        assert_eq!(log.place(0.0), None);
        let zero = Scale::new([0.0, 1.0, 1000.0].into_iter(), true, true);
        assert_eq!((zero.place(0.0), zero.ticks[0], zero.low), (Some(0.0), 0.0, 0.1));
        let flat = Scale::new([5.0, 5.0].into_iter(), false, false);
        assert!((0.0..=1.0).contains(&flat.place(5.0).unwrap()));
    }

    #[test]
    fn a_file_of_its_own_carries_no_values_for_scripts() {
        let (a, b) = (vec![vec![Some(90.0)]], vec![vec![Some(10.0)]]);
        let panels = [("a", a), ("b", b)].map(|(title, values)| Panel::Matrix { title: title.to_owned(), values });
        let page = grid("both", &panels, Heights::Own);
        let file = standalone(&page);
        assert_eq!((page.matches("data-values").count(), file.matches("data-values").count()), (2, 0));
        assert_eq!(file.matches("<svg ").count(), 3);
        assert!(file.contains(">90<") && file.contains(">10<") && file.contains("<style>"));
    }

    #[test]
    fn labels_do_not_overlap() {
        let places = apart(&[100.0, 101.0, 99.0, 320.0], 17.0, 48.0, 330.0);
        let mut sorted = places.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.windows(2).all(|w| w[1] - w[0] >= 17.0 - 1e-9), "{places:?}");
        assert!(sorted[0] >= 48.0 && sorted[3] <= 330.0);
    }

    #[test]
    fn a_matrix_shows_every_cell_once() {
        let svg = matrix("m", &[vec![Some(90.0), Some(10.0)], vec![None, Some(50.0)]]);
        assert_eq!(svg.matches('z').count() - svg.matches("size").count(), 3, "{svg}");
        assert!(svg.contains(">90<") && svg.contains(">10<") && svg.contains(">50<"));
    }
}
