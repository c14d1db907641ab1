//! Scores of a batch of samples.

/// Scores of a batch: one row per sample, one column per class index.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    values: Vec<f32>,
    classes: usize,
}

impl Scores {
    /// Creates scores from a flat row-major array.
    pub fn new(values: Vec<f32>, classes: usize) -> Self {
        assert!(classes > 0 && values.len().is_multiple_of(classes));
        Scores { values, classes }
    }

    /// Returns the scores of one sample.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.classes..(row + 1) * self.classes]
    }

    /// Returns all rows.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.classes)
    }

    /// Returns the index of the highest score in each row; the first on ties.
    pub fn argmax(&self) -> Vec<usize> {
        self.rows()
            .map(|row| row.iter().enumerate().fold(0, |best, (i, score)| if *score > row[best] { i } else { best }))
            .collect()
    }

    /// Returns the k best (index, score) of each row, best first.
    pub fn top_k(&self, k: usize) -> Vec<Vec<(usize, f32)>> {
        let best = |row: &[f32]| {
            let mut pairs: Vec<_> = row.iter().copied().enumerate().collect();
            pairs.sort_by(|a, b| b.1.total_cmp(&a.1));
            pairs.truncate(k);
            pairs
        };
        self.rows().map(best).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_scores_wins_and_top_k_is_ordered() {
        let scores = Scores::new(vec![1.0, 3.0, 3.0, -1.0, -2.0, -0.5], 3);
        assert_eq!(scores.argmax(), [1, 2]);
        assert_eq!(scores.top_k(2), [vec![(1, 3.0), (2, 3.0)], vec![(2, -0.5), (0, -1.0)]]);
        assert_eq!(scores.top_k(9)[0].len(), 3);
    }
}
