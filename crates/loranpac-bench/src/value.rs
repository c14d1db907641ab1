//! Values in a recipe: one or a list of them, text or a number.

use serde::{Deserialize, Serialize};

/// One value or a list.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "neither a value that can stand here nor a list of them; docs/recipes.md has all names")]
pub enum Many<T> {
    /// One.
    One(T),
    /// A list, to be crossed with others.
    List(Vec<T>),
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

/// A value of a method's setting, or a label: text or a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// A whole number.
    Integer(i64),
    /// Any other.
    Number(f64),
    /// Text.
    Text(String),
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Setting::Integer(number) => number.fmt(f),
            Setting::Number(number) => number.fmt(f),
            Setting::Text(text) => text.fmt(f),
        }
    }
}
