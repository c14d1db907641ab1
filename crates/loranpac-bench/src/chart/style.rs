//! How lines look. A method has one colour, one kind of dash and one marker, the same in every picture.
//!
//! The colours are those of Okabe and Ito, which people with any kind of colour blindness can tell apart, darkened for white
//! and lightened for dark grounds (`chart.css`). Dashes and markers tell lines apart without any colour.

use std::fmt::Write;

/// The look of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Style {
    colour: Colour,
    dash: Dash,
    marker: Marker,
}

/// The colours, in the order of their numbers in `chart.css`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Colour {
    Blue,
    Vermilion,
    Green,
    Purple,
    Ochre,
    Sky,
    Ink,
    Brown,
    Grey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Dash {
    Solid,
    Long,
    Short,
    Dots,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Marker {
    Circle,
    Square,
    Triangle,
    Inverted,
    Diamond,
    Cross,
    Plus,
    Ring,
}

use Colour::{Blue, Brown, Green, Grey, Ink, Ochre, Purple, Sky, Vermilion};
use Dash::{Dots, Long, Short, Solid};
use Marker::{Circle, Cross, Diamond, Inverted, Plus, Ring, Square, Triangle};

/// The look of every method.
const METHODS: [(&str, Colour, Dash, Marker); 28] = [
    ("loranpac-soft", Blue, Solid, Circle),
    ("loranpac", Vermilion, Solid, Square),
    ("ranpac", Green, Long, Triangle),
    ("layup", Green, Short, Plus),
    ("slda", Purple, Short, Diamond),
    ("randumb", Purple, Dots, Ring),
    ("klda", Purple, Solid, Plus),
    ("fecam", Purple, Long, Circle),
    ("simplecil", Ochre, Dots, Inverted),
    ("knn", Ochre, Short, Cross),
    ("adam", Ochre, Solid, Inverted),
    ("ease", Ochre, Long, Diamond),
    ("l2p", Grey, Dots, Triangle),
    ("dualprompt", Grey, Short, Square),
    ("codaprompt", Grey, Short, Circle),
    ("min-norm", Ink, Long, Cross),
    ("min-norm-drifting", Ink, Dots, Plus),
    ("min-norm-joint", Ink, Short, Ring),
    ("ridge-truncated", Sky, Solid, Diamond),
    ("rls", Sky, Long, Plus),
    ("air", Sky, Dots, Square),
    ("fly-cl", Sky, Short, Triangle),
    ("anacp", Sky, Dots, Diamond),
    ("ogd", Brown, Solid, Triangle),
    ("pca-ogd", Brown, Long, Inverted),
    ("or-fit", Brown, Dots, Cross),
    ("lc-x", Grey, Long, Square),
    ("lc-h", Grey, Solid, Ring),
];

const DASHES: [Dash; 4] = [Solid, Long, Short, Dots];
const MARKERS: [Marker; 8] = [Circle, Square, Triangle, Inverted, Diamond, Cross, Plus, Ring];
/// Colours of lines that are not told apart by method, all but that of min-norm.
const OTHERS: [Colour; 8] = [Green, Purple, Sky, Ochre, Blue, Vermilion, Brown, Grey];

impl Style {
    /// The look of a method.
    pub fn of(method: &str) -> Style {
        let known = METHODS.iter().find(|(name, ..)| *name == method);
        known.map_or(Style::nth(0), |&(_, colour, dash, marker)| Style { colour, dash, marker })
    }

    /// The look of the n-th of several lines of one method: its colour with other dashes and markers.
    pub fn variant(self, n: usize) -> Style {
        let next = |at: Option<usize>, count: usize| (at.unwrap_or(0) + n) % count;
        Style {
            dash: DASHES[next(DASHES.iter().position(|dash| *dash == self.dash), DASHES.len())],
            marker: MARKERS[next(MARKERS.iter().position(|marker| *marker == self.marker), MARKERS.len())],
            ..self
        }
    }

    /// The look of the n-th line where methods do not tell lines apart.
    pub fn nth(n: usize) -> Style {
        let colour = OTHERS[n % OTHERS.len()];
        Style { colour, dash: DASHES[n % DASHES.len()], marker: MARKERS[n % MARKERS.len()] }
    }

    /// CSS class that sets the colour.
    pub(super) fn colour(self) -> String {
        format!("c{}", self.colour as usize)
    }

    /// CSS classes of the line itself.
    pub(super) fn line(self) -> &'static str {
        match self.dash {
            Solid => "line",
            Long => "line long",
            Short => "line short",
            Dots => "line dots",
        }
    }

    /// Outlines of markers at some points, as one path.
    pub(super) fn markers(self, points: impl Iterator<Item = (f64, f64)>) -> String {
        let mut path = String::new();
        for (x, y) in points {
            let _ = match self.marker {
                Circle | Ring => write!(path, "M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", x - 4.0),
                Square => write!(path, "M{:.1} {:.1}h7.4v7.4h-7.4z", x - 3.7, y - 3.7),
                Triangle => write!(path, "M{x:.1} {:.1}l4.6 8h-9.2z", y - 5.0),
                Inverted => write!(path, "M{x:.1} {:.1}l4.6-8h-9.2z", y + 5.0),
                Diamond => write!(path, "M{x:.1} {:.1}l5 5l-5 5l-5-5z", y - 5.0),
                Cross => write!(path, "M{:.1} {:.1}l8 8m0-8l-8 8", x - 4.0, y - 4.0),
                Plus => write!(path, "M{x:.1} {:.1}v10m-5-5h10", y - 5.0),
            };
        }
        path
    }

    /// CSS class of the markers: filled, or outlines only.
    pub(super) fn marker(self) -> &'static str {
        match self.marker {
            Cross | Plus => "stroke",
            Ring => "ring",
            _ => "point",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_method_has_a_look_of_its_own_with_and_without_colour() {
        for method in loranpac::registry::METHODS {
            assert!(METHODS.iter().any(|(name, ..)| *name == method.name), "{} has no style", method.name);
        }
        let looks: HashSet<_> = METHODS.iter().map(|(_, _, dash, marker)| (dash, marker)).collect();
        assert_eq!(looks.len(), METHODS.len(), "two methods look the same in black and white");
        let first: HashSet<Colour> = ["loranpac-soft", "loranpac", "ranpac", "slda", "simplecil", "min-norm"]
            .map(|name| Style::of(name).colour)
            .into();
        assert_eq!(first.len(), 6, "methods that are often compared have different colours");
    }

    #[test]
    fn variants_keep_the_colour_and_differ() {
        let own = Style::of("loranpac");
        let all: HashSet<Style> = (0..8).map(|n| own.variant(n)).collect();
        assert_eq!(all.len(), 8);
        assert!(all.iter().all(|style| style.colour == own.colour) && own.variant(0) == own);
    }
}
