//! One axis: from values to places between 0 and 1, with ticks.

use super::number::{fixed, power_of_ten, short, three_digits};

/// An axis.
pub(super) struct Scale {
    log: bool,
    low: f64,
    high: f64,
    /// A logarithmic axis shows zero at its lower end, below all other values.
    zero: bool,
    /// Values and what is written beside them, all in one format.
    pub ticks: Vec<(f64, String)>,
    /// Digits after the point that say a little more than the ticks do.
    pub digits: usize,
}

impl Scale {
    /// A horizontal axis, which begins and ends with the values.
    pub fn across(values: impl Iterator<Item = f64>, log: bool) -> Scale {
        let values: Vec<f64> = values.filter(|v| v.is_finite()).collect();
        let (low, high) = ends(&values, log);
        let mut scale = if log { Scale::decades(low, high) } else { Scale::even(low, high, &values) };
        (scale.low, scale.high) = (low, high);
        let mut ticks = std::mem::take(&mut scale.ticks);
        ticks.retain(|(tick, _)| scale.place(*tick).is_some_and(|place| (-1e-9..=1.0 + 1e-9).contains(&place)));
        scale.ticks = scale.few(&values).unwrap_or(ticks);
        if log && values.contains(&0.0) {
            scale.zero = true;
            scale.low /= 10.0;
            scale.ticks.insert(0, (0.0, "0".to_owned()));
        }
        scale
    }

    /// The values themselves as ticks, if they are few and far enough apart.
    fn few(&self, values: &[f64]) -> Option<Vec<(f64, String)>> {
        let mut values: Vec<f64> = values.iter().copied().filter(|value| !self.log || *value > 0.0).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let places: Vec<f64> = values.iter().filter_map(|value| self.place(*value)).collect();
        let digits = (0..4).find(|&d| values.iter().all(|v| (v * 10f64.powi(d)).fract().abs() < 1e-9))? as usize;
        let plain = values.iter().all(|value| value.abs() < 1e7);
        let apart = values.len() <= 7 && places.windows(2).all(|pair| pair[1] - pair[0] > 0.08);
        (plain && apart).then(|| values.iter().map(|value| (*value, fixed(*value, digits))).collect())
    }

    /// A vertical axis, which begins and ends at ticks.
    pub fn up(values: impl Iterator<Item = f64>, log: bool) -> Scale {
        let values: Vec<f64> = values.filter(|v| v.is_finite()).collect();
        let (low, high) = ends(&values, log);
        if log { Scale::decades(low, high) } else { Scale::even(low, high, &values) }
    }

    fn even(low: f64, high: f64, values: &[f64]) -> Scale {
        let raw = (high - low) / 6.0;
        let power = 10f64.powf(raw.log10().floor());
        // Tasks and classes are counted: no half ticks.
        let whole = |step: f64| step.fract() == 0.0 || values.iter().any(|v| v.fract() != 0.0);
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0, 20.0].map(|m| m * power);
        let step = steps.into_iter().find(|s| *s >= raw && whole(*s)).unwrap_or(10.0 * power);
        let digits = (0..9).find(|&d| (step * 10f64.powi(d)).fract().abs() < 1e-6).unwrap_or(9) as usize;
        let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
        let ticks = (first..=last).map(|i| i as f64 * step).map(|tick| (tick, fixed(tick, digits))).collect();
        let finer = (1.0 - step.log10().floor()).clamp(if step > 20.0 { 0.0 } else { 1.0 }, 9.0) as usize;
        Scale { log: false, low: first as f64 * step, high: last as f64 * step, zero: false, ticks, digits: finer }
    }

    fn decades(low: f64, high: f64) -> Scale {
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let wide = high / low > 100.0;
        let step = if wide { ((last - first) as usize).div_ceil(8).max(1) } else { 1 };
        let parts: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let all = (first..=last + step as i32).step_by(step);
        let all: Vec<f64> = all.flat_map(|e| parts.iter().map(move |part| part * 10f64.powi(e))).collect();
        let begin = all.iter().rposition(|tick| *tick <= low * (1.0 + 1e-9)).unwrap_or(0);
        let end = all.iter().position(|tick| *tick >= high * (1.0 - 1e-9)).unwrap_or(all.len() - 1);
        let shown = &all[begin..=end.max(begin)];
        let plain = shown.iter().all(|tick| (1e-3..1e6).contains(tick));
        let text = |tick: &f64| match plain {
            true => fixed(*tick, (-tick.log10().floor()).max(0.0) as usize),
            false if wide => power_of_ten(tick.log10().round() as i32),
            false => short(*tick),
        };
        let ticks = shown.iter().map(|tick| (*tick, text(tick))).collect();
        Scale { log: true, low: shown[0], high: shown[shown.len() - 1], zero: false, ticks, digits: 0 }
    }

    /// The place of a value: 0 at the lower end, 1 at the upper. None for what the axis cannot show.
    pub fn place(&self, value: f64) -> Option<f64> {
        if self.zero && value == 0.0 {
            return Some(0.0);
        }
        let (value, low, high) =
            if self.log { (value.log10(), self.low.log10(), self.high.log10()) } else { (value, self.low, self.high) };
        value.is_finite().then(|| (value - low) / (high - low))
    }

    /// A value as a label beside the chart says it.
    pub fn text(&self, value: f64) -> String {
        if self.log { three_digits(value) } else { fixed(value, self.digits) }
    }
}

/// The lowest and the highest value that can be shown, never equal.
fn ends(values: &[f64], log: bool) -> (f64, f64) {
    let usable = values.iter().filter(|v| !log || **v > 0.0);
    let (low, high) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
    match (low > high, log) {
        (true, true) => (1.0, 10.0),
        (true, false) => (0.0, 1.0),
        (_, true) if high / low < 1.0 + 1e-9 => (low / 2.0, high * 2.0),
        (_, false) if high - low < 1e-12 * high.abs().max(1e-300) => (low - 0.5, high + 0.5),
        _ => (low, high),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_hold_all_values_and_have_one_format() {
        let scale = Scale::up([62.5, 91.3].into_iter(), false);
        assert_eq!(texts(&scale), ["60", "65", "70", "75", "80", "85", "90", "95"]);
        assert_eq!((scale.place(60.0), scale.place(95.0)), (Some(0.0), Some(1.0)));
        assert_eq!(texts(&Scale::up([0.0, 1.0, 0.3].into_iter(), false)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        let log = Scale::up([3e-6, 0.0, f64::NAN, 2e10].into_iter(), true);
        assert!(log.ticks.len() <= 10 && log.place(3e-6).unwrap() >= 0.0 && log.place(2e10).unwrap() <= 1.0);
        assert!(texts(&log).iter().all(|text| text.starts_with("10")), "{:?}", texts(&log));
        assert_eq!(log.place(0.0), None);
        let flat = Scale::up([5.0, 5.0].into_iter(), false);
        assert!((0.0..=1.0).contains(&flat.place(5.0).unwrap()));
    }

    #[test]
    fn a_horizontal_axis_ends_with_the_values() {
        let counted = Scale::across((1..=12).map(f64::from), false);
        assert_eq!((counted.place(1.0), counted.place(12.0)), (Some(0.0), Some(1.0)));
        assert!(counted.ticks.iter().all(|(t, _)| t.fract() == 0.0 && (1.0..=12.0).contains(t)), "{:?}", counted.ticks);
        let widths = Scale::across([1e3, 1.1e3, 5e4].into_iter(), true);
        assert_eq!(texts(&widths), ["1,000", "2,000", "5,000", "10,000", "20,000", "50,000"]);
        let quarters = Scale::across([2500.0, 5000.0, 1e4, 2e4].into_iter(), true);
        assert_eq!(texts(&quarters), ["2,500", "5,000", "10,000", "20,000"]);
        let zero = Scale::across([0.0, 1.0, 1000.0].into_iter(), true);
        assert_eq!((zero.place(0.0), zero.ticks[0].0), (Some(0.0), 0.0));
        assert!(zero.place(1.0).unwrap() > 0.1);
    }
}
