//! A finished picture: its size, and what is in it.

use super::text::escape;

/// An SVG that is not yet placed anywhere.
pub(super) struct Drawing {
    pub width: f64,
    pub height: f64,
    /// CSS classes.
    pub class: &'static str,
    /// What it shows, for those who cannot see it.
    pub label: String,
    /// Further attributes, each with a space in front.
    pub attributes: String,
    /// Elements.
    pub body: String,
}

impl Drawing {
    /// As a picture of its own.
    pub fn whole(&self) -> String {
        self.at("")
    }

    /// As a part of another.
    pub fn part(&self, x: f64, y: f64) -> String {
        self.at(&format!(" x=\"{x:.0}\" y=\"{y:.0}\" width=\"{:.0}\" height=\"{:.0}\"", self.width, self.height))
    }

    fn at(&self, place: &str) -> String {
        let Drawing { width, height, class, label, attributes, body } = self;
        format!(
            "<svg class=\"{class}\" xmlns=\"http://www.w3.org/2000/svg\"{place} viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
             aria-label=\"{}\"{attributes}>\n<rect class=\"ground\" width=\"{width:.0}\" height=\"{height:.0}\"/>\n{body}</svg>\n",
            escape(label)
        )
    }
}
