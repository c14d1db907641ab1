//! Escapes for text from files, for terminals, JSON and Markdown; and which texts are integers.

use std::borrow::Cow;
use std::fmt::Write;

/// Replaces control characters by escapes such as `\u{1b}`: C0 (including line ends and tabs), DEL, C1 and the characters
/// that change the direction of writing. The result moves no cursor, sets no title and stays on one line.
pub fn escape(text: &str) -> Cow<'_, str> {
    replace(text, is_control, |out, c| write!(out, "{}", c.escape_unicode()))
}

/// Like [`escape`], but keeps line ends.
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    replace(text, |c| is_control(c) && c != '\n', |out, c| write!(out, "{}", c.escape_unicode()))
}

/// Escapes control characters in JSON: serializers leave DEL, C1 and directions of writing as they are. These occur only
/// in strings, where `\u009b` is the same character.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let layout = |c| matches!(c, '\n' | '\r' | '\t');
    replace(json, |c| is_control(c) && !layout(c), |out, c| write!(out, "\\u{:04x}", c as u32))
}

/// Escapes text for a paragraph, a heading or a table cell of Markdown: nothing in it is markup, and it stays on one line.
pub fn escape_markdown(text: &str) -> String {
    let markup = |c| matches!(c, '|' | '*' | '_' | '`' | '[' | ']' | '<' | '>' | '#' | '\\');
    // Line ends first: the backslashes of their escapes must be escaped, too.
    replace(&escape(text), markup, |out, c| write!(out, "\\{c}")).into_owned()
}

/// The integer that a text denotes in its canonical form: `7` and `-7`, but not `007`, `+7`, ` 7` or `-0`, which are
/// different texts and must not become one class.
pub fn integer(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

/// C0, DEL, C1, and overrides and isolates of the bidirectional algorithm.
fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn replace(
    text: &str,
    affected: impl Fn(char) -> bool,
    instead: impl Fn(&mut String, char) -> std::fmt::Result,
) -> Cow<'_, str> {
    if !text.contains(&affected) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if affected(c) {
            // Writing to a string cannot fail.
            let _ = instead(&mut out, c);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        let hostile = "a\u{1b}[2J\u{7}\r\n\t\u{7f}\u{9b}\u{202e}\u{2066}b";
        assert_eq!(escape(hostile), r"a\u{1b}[2J\u{7}\u{d}\u{a}\u{9}\u{7f}\u{9b}\u{202e}\u{2066}b");
        assert_eq!(escape_lines("a\u{1b}\nb"), "a\\u{1b}\nb");
        assert!(matches!(escape("größer, 日本"), Cow::Borrowed("größer, 日本")));
    }

    #[test]
    fn escaped_json_is_the_same_value() {
        let value = serde_json::json!({ "a\u{7f}": "x\u{9b}\u{202e}\u{1b}\n" });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let escaped = escape_json(&text);
        assert!(!escaped.chars().any(|c| is_control(c) && c != '\n'), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }

    #[test]
    fn text_in_markdown_is_no_markup() {
        assert_eq!(escape_markdown("a|b_*`[x](y)<z>#\n\\"), r"a\|b\_\*\`\[x\](y)\<z\>\#\\u{a}\\");
    }

    #[test]
    fn only_what_is_written_as_a_number_is_one() {
        assert_eq!(["7", "-7", "0"].map(integer), [Some(7), Some(-7), Some(0)]);
        assert_eq!(["007", "+7", " 7", "7 ", "-0", "7.0", "", "9223372036854775808"].map(integer), [None; 8]);
    }
}
