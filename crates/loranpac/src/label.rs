//! Class labels as users write them, and the table that numbers them.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The label of a class: a number or a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Label {
    /// An integer label.
    Integer(i64),
    /// A text label.
    Text(String),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Label::Integer(number) => write!(f, "{number}"),
            Label::Text(text) => write!(f, "{text}"),
        }
    }
}

impl From<i64> for Label {
    fn from(number: i64) -> Self {
        Label::Integer(number)
    }
}

impl From<String> for Label {
    fn from(text: String) -> Self {
        Label::Text(text)
    }
}

impl From<&str> for Label {
    fn from(text: &str) -> Self {
        Label::Text(text.to_owned())
    }
}

/// Labels in the order of their first appearance. The index of a class is its place here, and changes only when an
/// earlier class is forgotten.
#[derive(Debug, Clone, Default)]
pub struct LabelTable {
    labels: Vec<Label>,
    index: HashMap<Label, usize>,
}

impl LabelTable {
    /// Creates a table of these labels, which must be distinct.
    pub fn from_labels(labels: &[Label]) -> Result<Self, Error> {
        let mut table = LabelTable::default();
        for (index, label) in labels.iter().enumerate() {
            if table.get_or_insert(label) != index {
                return Err(Error::DuplicateLabel { label: label.to_string() });
            }
        }
        Ok(table)
    }

    /// Returns the index of a label, if it is in the table.
    pub fn get(&self, label: &Label) -> Option<usize> {
        self.index.get(label).copied()
    }

    /// Returns the index of a label, which is added if it is new.
    pub fn get_or_insert(&mut self, label: &Label) -> usize {
        if let Some(index) = self.get(label) {
            return index;
        }
        let index = self.labels.len();
        self.labels.push(label.clone());
        self.index.insert(label.clone(), index);
        index
    }

    /// Removes a class; those after it move up by one.
    pub fn remove(&mut self, index: usize) {
        let labels = std::mem::take(self).labels;
        for label in labels.iter().enumerate().filter(|(i, _)| *i != index).map(|(_, label)| label) {
            self.get_or_insert(label);
        }
    }

    /// Renames a class; returns false if the label is taken.
    pub fn rename(&mut self, index: usize, label: Label) -> bool {
        if self.index.contains_key(&label) || index >= self.labels.len() {
            return false;
        }
        self.index.remove(&self.labels[index]);
        self.index.insert(label.clone(), index);
        self.labels[index] = label;
        true
    }

    /// Returns the index of a label, or an error if it is not in the table.
    pub(crate) fn find(&self, label: &Label) -> Result<usize, Error> {
        self.get(label).ok_or_else(|| Error::UnknownClass { label: label.to_string(), classes: self.len() })
    }

    /// Returns the index of a class to be removed, or an error if it is the only one: a model needs at least one.
    pub(crate) fn removable(&self, label: &Label) -> Result<usize, Error> {
        let class = self.find(label)?;
        if self.len() == 1 {
            let reason = "it is the only class, and a model needs at least one";
            return Err(Error::Setting { name: "class", value: label.to_string(), reason: reason.to_owned() });
        }
        Ok(class)
    }

    /// Renames a class to a label that must be free; returns its index.
    pub(crate) fn renamed(&mut self, from: &Label, to: Label) -> Result<usize, Error> {
        let class = self.find(from)?;
        if self.rename(class, to.clone()) {
            return Ok(class);
        }
        let reason = "another class has this label; relabel moves samples into that class";
        Err(Error::Setting { name: "label", value: to.to_string(), reason: reason.to_owned() })
    }

    /// Returns all labels by index.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// Returns the number of classes.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Returns whether there are no classes.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_follow_first_appearance_and_stay() {
        let mut table = LabelTable::default();
        let given = [Label::from(7), Label::from("seven"), Label::from(-1), Label::from(7)];
        let indices: Vec<_> = given.iter().map(|label| table.get_or_insert(label)).collect();
        assert_eq!(indices, [0, 1, 2, 0]);
        table.remove(1);
        assert_eq!(table.labels(), [Label::from(7), Label::from(-1)]);
        assert!(table.rename(1, Label::from("minus one")) && !table.rename(1, Label::from(7)));
        assert_eq!((table.get(&Label::from("minus one")), table.get(&Label::from(-1))), (Some(1), None));
        assert_eq!(table.get(&Label::from("7")), None, "the text 7 is not the number 7");
    }
}
