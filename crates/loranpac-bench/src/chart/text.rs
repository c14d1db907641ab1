//! Text inside SVG and HTML.

use loranpac_data::text::escape_lines;

/// Text with everything replaced that means something to XML.
pub fn escape(text: &str) -> String {
    // Most control characters are not allowed in XML, and none is meant.
    escape_lines(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The width of a text in pixels, about: no font is known here. Average for the usual sans-serif fonts, and a little more.
pub(super) fn width(text: &str, size: f64) -> f64 {
    0.55 * size * text.chars().count() as f64
}

/// Breaks a text between words into lines of at most this many pixels. A longer word stays whole.
pub(super) fn wrap(text: &str, size: f64, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(word, size) + width(" ", size) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Lines below each other in one `<text>`.
pub(super) fn stacked(class: &str, x: f64, y: f64, leading: f64, lines: &[String]) -> String {
    if let [line] = lines {
        return format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>\n", escape(line));
    }
    let span = |(i, line): (usize, &String)| {
        format!("<tspan x=\"{x:.1}\" y=\"{:.1}\">{}</tspan>", y + leading * i as f64, escape(line))
    };
    format!("<text class=\"{class}\">{}</text>\n", lines.iter().enumerate().map(span).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_broken_between_words() {
        let text = "one two three four";
        assert_eq!(wrap(text, 10.0, 1000.0), [text]);
        assert_eq!(wrap(text, 10.0, 60.0), ["one two", "three four"]);
        assert_eq!(wrap(text, 10.0, 1.0), ["one", "two", "three", "four"]);
    }

    #[test]
    fn nothing_of_a_text_is_markup() {
        assert_eq!(escape("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
    }
}
