//! The accuracy matrix and the numbers that are read off it.

use serde::{Deserialize, Serialize};

/// Accuracies in percent: row i is a task's test set, column t the model after task t. Empty where not evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AccuracyMatrix(Vec<Vec<Option<f64>>>);

impl AccuracyMatrix {
    /// A matrix for this many tasks, empty.
    pub fn new(tasks: usize) -> Self {
        AccuracyMatrix(vec![vec![None; tasks]; tasks])
    }

    /// Enters the accuracy on task `row` after task `column`.
    pub fn set(&mut self, row: usize, column: usize, percent: f64) {
        self.0[row][column] = Some(percent);
    }

    /// One entry.
    pub fn get(&self, row: usize, column: usize) -> Option<f64> {
        self.0[row][column]
    }

    /// Number of tasks.
    pub fn tasks(&self) -> usize {
        self.0.len()
    }

    fn column(&self, column: usize) -> Vec<f64> {
        (0..=column).filter_map(|row| self.0[row][column]).collect()
    }

    /// The paper's final accuracy: mean of the last column.
    pub fn final_accuracy(&self) -> Option<f64> {
        mean(&self.column(self.tasks().checked_sub(1)?))
    }

    /// The paper's total accuracy: mean of the upper triangle with its diagonal, `T (T + 1) / 2` entries.
    /// Only if every task was evaluated.
    pub fn total_accuracy(&self) -> Option<f64> {
        let columns: Vec<Vec<f64>> = (0..self.tasks()).map(|t| self.column(t)).collect();
        if columns.iter().any(Vec::is_empty) {
            return None;
        }
        mean(&columns.concat())
    }

    /// How much the tasks before the last have dropped from their best, on average.
    /// Only if every task was evaluated.
    pub fn forgetting(&self) -> Option<f64> {
        let last = self.tasks().checked_sub(1)?;
        let drops: Option<Vec<f64>> = (0..last)
            .filter(|&row| self.0[row][last].is_some())
            .map(|row| {
                let best = (row..last).map(|t| self.0[row][t]).collect::<Option<Vec<_>>>()?;
                Some(best.into_iter().fold(f64::MIN, f64::max) - self.0[row][last]?)
            })
            .collect();
        mean(&drops?)
    }
}

/// Mean, if there is anything to average.
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() { None } else { Some(values.iter().sum::<f64>() / values.len() as f64) }
}

/// Mean and spread as text.
pub fn with_spread(mean: Option<f64>, spread: Option<f64>, digits: usize) -> String {
    match (mean, spread) {
        (None, _) => "-".to_owned(),
        (Some(mean), None) => format!("{mean:.digits$}"),
        (Some(mean), Some(spread)) => format!("{mean:.digits$} ± {spread:.digits$}"),
    }
}

/// Sample standard deviation, of two values or more.
pub fn spread(values: &[f64]) -> Option<f64> {
    let centre = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|v| (v - centre).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix() -> AccuracyMatrix {
        let mut a = AccuracyMatrix::new(3);
        for (row, column, value) in [(0, 0, 90.0), (0, 1, 80.0), (1, 1, 70.0), (0, 2, 85.0), (1, 2, 60.0), (2, 2, 95.0)]
        {
            a.set(row, column, value);
        }
        a
    }

    #[test]
    fn final_total_and_forgetting_by_hand() {
        let a = matrix();
        assert_eq!(a.final_accuracy(), Some((85.0 + 60.0 + 95.0) / 3.0));
        assert_eq!(a.total_accuracy(), Some((90.0 + 80.0 + 70.0 + 85.0 + 60.0 + 95.0) / 6.0));
        assert_eq!(a.forgetting(), Some((5.0 + 10.0) / 2.0));
    }

    #[test]
    fn what_needs_every_evaluation_says_nothing_without() {
        let mut a = AccuracyMatrix::new(2);
        a.set(0, 1, 50.0);
        a.set(1, 1, 70.0);
        assert_eq!((a.final_accuracy(), a.total_accuracy(), a.forgetting()), (Some(60.0), None, None));
        assert_eq!(serde_json::to_string(&a).unwrap(), "[[null,50.0],[null,70.0]]");
    }
}
