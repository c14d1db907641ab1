//! Values of settings as users write them: on the command line, in a recipe, or in Python.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A number, a word, or a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Number(f64),
    /// Text.
    Text(String),
    /// Several values that belong together, such as the labels of a class order.
    List(Vec<Value>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(number) => number.fmt(f),
            Value::Number(number) => number.fmt(f),
            Value::Text(text) => text.fmt(f),
            Value::List(values) => {
                for (at, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if at == 0 { "" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        i64::try_from(count).map_or_else(|_| Value::Text(count.to_string()), Value::Integer)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or_else(|_| Value::Text(number.to_string()), Value::Integer)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl Value {
    /// A whole number of at least `least`.
    pub fn count(&self, least: usize) -> Result<usize, String> {
        let expected = || format!("a whole number of at least {least} is expected");
        self.parse().filter(|count| *count >= least).ok_or_else(expected)
    }

    /// A finite number.
    pub fn number(&self) -> Result<f64, String> {
        self.parse().filter(|number: &f64| number.is_finite()).ok_or_else(|| "a number is expected".to_owned())
    }

    /// A value that is written as text.
    pub fn parse<T: FromStr>(&self) -> Option<T> {
        self.to_string().parse().ok()
    }

    /// One of some words, by its place among them.
    pub fn word(&self, words: &[&str]) -> Result<usize, String> {
        let text = self.to_string();
        let expected = || match words.split_last() {
            Some((last, [])) => format!("{last} is expected"),
            Some((last, others)) => format!("{} or {last} is expected", others.join(", ")),
            None => "nothing is expected".to_owned(),
        };
        words.iter().position(|word| *word == text).ok_or_else(expected)
    }
}

/// One value or a list of alternatives.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "neither a value that can stand here nor a list of them; docs/recipes.md has all names")]
pub enum Many<T> {
    /// A list, to be crossed with others.
    List(Vec<T>),
    /// One.
    One(T),
}

impl<T> Many<T> {
    /// All of them.
    pub fn values(&self) -> &[T] {
        match self {
            Many::One(value) => std::slice::from_ref(value),
            Many::List(values) => values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_from_numbers_and_from_text() {
        for value in [Value::Integer(3), Value::Number(3.0), Value::from("3")] {
            assert_eq!((value.count(1), value.number()), (Ok(3), Ok(3.0)), "{value:?}");
        }
        assert_eq!(Value::Integer(0).count(1), Err("a whole number of at least 1 is expected".to_owned()));
        assert!(Value::Number(0.5).count(0).is_err() && Value::from("nan").number().is_err());
        assert_eq!(Value::from("b").word(&["a", "b"]), Ok(1));
        assert_eq!(Value::from("d").word(&["a", "b", "c"]), Err("a, b or c is expected".to_owned()));
    }
}
