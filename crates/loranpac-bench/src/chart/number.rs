//! Numbers as text, in one format along an axis.

/// A number in as few characters as identify it.
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

/// A number with this many digits after the point, and commas between thousands: `12,345.6`.
pub fn fixed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let unsigned = text.trim_start_matches('-');
    let (whole, rest) = unsigned.split_at(unsigned.find('.').unwrap_or(unsigned.len()));
    let mut grouped = String::from(&text[..text.len() - unsigned.len()]);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

/// A number with three digits that matter, in the format of a logarithmic axis: `0.0123`, `12,300`, `1.23×10⁻⁷`.
pub fn three_digits(value: f64) -> String {
    let exponent = value.abs().log10().floor();
    if value == 0.0 || !exponent.is_finite() {
        return fixed(value, 0);
    }
    if (-3.0..6.0).contains(&exponent) {
        return fixed(value, (2.0 - exponent).max(0.0) as usize);
    }
    format!("{:.2}×{}", value / 10f64.powf(exponent), power_of_ten(exponent as i32))
}

/// 100,000.
pub fn thousands(number: usize) -> String {
    fixed(number as f64, 0)
}

/// `10⁻³` for -3.
pub fn power_of_ten(exponent: i32) -> String {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digits = exponent.unsigned_abs().to_string();
    let digits = digits.chars().filter_map(|digit| RAISED.get(digit.to_digit(10)? as usize));
    "10".chars().chain((exponent < 0).then_some('⁻')).chain(digits.copied()).collect()
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
    fn fixed_numbers_and_powers_by_hand() {
        assert_eq!([thousands(5), thousands(10_000), thousands(1_234_567)], ["5", "10,000", "1,234,567"]);
        assert_eq!([fixed(-1234.56, 1), fixed(0.5, 2), fixed(-12.0, 0)], ["-1,234.6", "0.50", "-12"]);
        let three = [0.012_345, 12_345.0, 1.234e-7, 2.5e7, 0.0].map(three_digits);
        assert_eq!(three, ["0.0123", "12,345", "1.23×10⁻⁷", "2.50×10⁷", "0"]);
        assert_eq!([power_of_ten(-12), power_of_ten(0), power_of_ten(7)], ["10⁻¹²", "10⁰", "10⁷"]);
    }
}
