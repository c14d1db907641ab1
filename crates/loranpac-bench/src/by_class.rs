//! Decisions counted class by class, and what is read off them when classes differ in size.
//!
//! ```text
//! recall_c = right_c / tested_c      balanced accuracy = mean of recall_c over the tested classes
//! F1_c = 2 right_c / (tested_c + answered_c)      macro F1 = mean of F1_c over the tested or answered classes
//! ```

use serde::{Deserialize, Serialize};

use crate::metrics::mean;

/// Classes of more training samples than this are many.
const MANY: usize = 100;
/// Classes of fewer training samples than this are few.
const FEW: usize = 20;

/// Counts of decisions on test samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByClass {
    /// Test samples of each class.
    tested: Vec<usize>,
    /// Those of them that were decided correctly.
    right: Vec<usize>,
    /// Samples that were decided to be of each class.
    answered: Vec<usize>,
}

/// What is read off the counts, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Balance {
    /// Mean over classes of the share of their samples that were decided correctly.
    pub balanced_accuracy: f64,
    /// Mean over classes of the harmonic mean of precision and recall.
    pub macro_f1: f64,
    /// Mean over the classes of each group of the share of their samples that were decided correctly.
    pub group_accuracy: Groups,
}

/// Groups of classes by their number of training samples, as the literature on long-tailed data divides them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Groups {
    /// More than 100.
    pub many: Option<f64>,
    /// From 20 to 100.
    pub medium: Option<f64>,
    /// Fewer than 20.
    pub few: Option<f64>,
}

impl ByClass {
    /// No decisions yet, for this many classes.
    pub fn new(classes: usize) -> Self {
        let none = || vec![0; classes];
        ByClass { tested: none(), right: none(), answered: none() }
    }

    /// Adds a decision.
    pub fn add(&mut self, truth: usize, answer: usize) {
        self.tested[truth] += 1;
        self.right[truth] += usize::from(truth == answer);
        self.answered[answer] += 1;
    }

    /// Mean over the tested classes that are chosen of the share of their samples that were decided correctly, in percent.
    fn recall(&self, chosen: impl Fn(usize) -> bool) -> Option<f64> {
        let tested = (0..self.tested.len()).filter(|&class| self.tested[class] > 0 && chosen(class));
        mean(&tested.map(|class| 100.0 * self.right[class] as f64 / self.tested[class] as f64).collect::<Vec<_>>())
    }

    /// The summary, for classes of these numbers of training samples; None without decisions.
    pub fn balance(&self, trained: &[f64]) -> Option<Balance> {
        let counted =
            (0..self.tested.len()).map(|class| (self.right[class], self.tested[class] + self.answered[class]));
        let f1: Vec<f64> =
            counted.filter(|(_, all)| *all > 0).map(|(right, all)| 200.0 * right as f64 / all as f64).collect();
        Some(Balance {
            balanced_accuracy: self.recall(|_| true)?,
            macro_f1: mean(&f1)?,
            group_accuracy: Groups {
                many: self.recall(|class| trained[class] > MANY as f64),
                medium: self.recall(|class| (FEW as f64..=MANY as f64).contains(&trained[class])),
                few: self.recall(|class| trained[class] < FEW as f64),
            },
        })
    }
}

impl Groups {
    /// The groups that have classes, with their names.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let all = [("many", self.many), ("medium", self.medium), ("few", self.few)];
        all.into_iter().filter_map(|(name, accuracy)| Some((name, accuracy?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of scikit-learn 1.9: `balanced_accuracy_score`, and `f1_score(average="macro")`.
    #[test]
    fn balanced_accuracy_and_macro_f1_by_scikit_learn() {
        let truth = [0, 0, 0, 0, 1, 1, 2, 2, 2, 4];
        let answer = [0, 0, 1, 0, 1, 0, 2, 3, 1, 4];
        let mut counts = ByClass::new(6);
        truth.iter().zip(answer).for_each(|(truth, answer)| counts.add(*truth, answer));
        let balance = counts.balance(&[200.0, 100.0, 20.0, 7.0, 1.0, 5.0]).unwrap();
        assert!((balance.balanced_accuracy - 64.583_333_333).abs() < 1e-6, "{balance:?}");
        assert!((balance.macro_f1 - 53.0).abs() < 1e-6, "{balance:?}");
        let Groups { many, medium, few } = balance.group_accuracy;
        assert_eq!((many, few), (Some(75.0), Some(100.0)));
        assert!((medium.unwrap() - (50.0 + 100.0 / 3.0) / 2.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_said_without_decisions_and_of_groups_without_classes() {
        assert_eq!(ByClass::new(3).balance(&[1.0; 3]), None);
        let mut counts = ByClass::new(2);
        counts.add(0, 1);
        let groups = counts.balance(&[3.0, 500.0]).unwrap().group_accuracy;
        assert_eq!(groups, Groups { many: None, medium: None, few: Some(0.0) });
        assert_eq!(groups.named().collect::<Vec<_>>(), [("few", 0.0)]);
    }
}
