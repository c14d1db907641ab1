//! Input samples: a C-order `(n, d)` array, which is the paper's `d x n` matrix without a copy.

use faer::MatRef;

use crate::error::Error;

/// Features above this would overflow `f32` once they are lifted and squared.
const LARGEST: f32 = 1e12;

/// Weights above this would overflow `f32` together with such features.
const HEAVIEST: f64 = 1e12;

/// A borrowed batch of samples: rows of `dim` features, one after the other, and their weights, if they have any.
#[derive(Debug, Clone, Copy)]
pub struct Features<'a> {
    data: &'a [f32],
    dim: usize,
    weights: Option<&'a [f64]>,
}

/// Samples in any accepted form: [`Features`], or a flat row-major array whose width the model defines.
pub trait IntoFeatures<'a> {
    /// Views them as samples of `dim` features.
    fn into_features(self, dim: usize) -> Result<Features<'a>, Error>;
}

impl<'a> IntoFeatures<'a> for Features<'a> {
    fn into_features(self, _dim: usize) -> Result<Features<'a>, Error> {
        Ok(self)
    }
}

impl<'a> IntoFeatures<'a> for &'a [f32] {
    fn into_features(self, dim: usize) -> Result<Features<'a>, Error> {
        Features::new(self, dim)
    }
}

impl<'a> IntoFeatures<'a> for &'a Vec<f32> {
    fn into_features(self, dim: usize) -> Result<Features<'a>, Error> {
        Features::new(self, dim)
    }
}

impl<'a, const N: usize> IntoFeatures<'a> for &'a [f32; N] {
    fn into_features(self, dim: usize) -> Result<Features<'a>, Error> {
        Features::new(self, dim)
    }
}

impl<'a> Features<'a> {
    /// Views a flat row-major array as samples of `dim` features.
    pub fn new(data: &'a [f32], dim: usize) -> Result<Self, Error> {
        if dim == 0 || !data.len().is_multiple_of(dim) {
            return Err(Error::Ragged { length: data.len(), dim });
        }
        Ok(Features { data, dim, weights: None })
    }

    /// Gives every sample a weight: learning a sample of weight 2 is learning it twice, and one of weight 0 is not learned.
    /// Prediction ignores weights.
    pub fn weighted(self, weights: &'a [f64]) -> Result<Self, Error> {
        if weights.len() != self.len() {
            return Err(Error::WeightCount { samples: self.len(), weights: weights.len() });
        }
        match weights.iter().position(|weight| !(0.0..=HEAVIEST).contains(weight)) {
            Some(row) => Err(Error::Weight { row, value: weights[row], limit: HEAVIEST }),
            None => Ok(Features { weights: Some(weights), ..self }),
        }
    }

    /// Returns the weights, unless all of them are 1.
    pub fn weights(&self) -> Option<&'a [f64]> {
        self.weights.filter(|weights| weights.iter().any(|weight| *weight != 1.0))
    }

    /// Returns whether every sample has the weight 0.
    pub(crate) fn is_weightless(&self) -> bool {
        self.weights.is_some_and(|weights| weights.iter().all(|weight| *weight == 0.0))
    }

    /// Returns the samples that have a weight, if some have the weight 0.
    pub fn present(&self) -> Option<Present> {
        let weights = self.weights.filter(|weights| weights.contains(&0.0))?;
        let rows: Vec<usize> = (0..self.len()).filter(|row| weights[*row] > 0.0).collect();
        let data = rows.iter().flat_map(|row| self.row(*row)).copied().collect();
        let weights = rows.iter().map(|row| weights[*row]).collect();
        Some(Present { data, dim: self.dim, weights, rows })
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.data.len() / self.dim
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Returns the number of features per sample, d.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Returns one sample.
    pub fn row(&self, row: usize) -> &'a [f32] {
        &self.data[row * self.dim..(row + 1) * self.dim]
    }

    /// Divides the samples into batches of at most `size`.
    pub fn chunks(&self, size: usize) -> impl Iterator<Item = Features<'a>> + use<'a> {
        let (dim, weights, size) = (self.dim, self.weights, size.max(1));
        self.data.chunks(size.saturating_mul(dim)).enumerate().map(move |(i, data)| {
            let weights = weights.map(|weights| &weights[i * size..][..data.len() / dim]);
            Features { data, dim, weights }
        })
    }

    /// Returns the paper's X: `d x n`, one column per sample.
    pub fn as_matrix(&self) -> MatRef<'a, f32> {
        MatRef::from_column_major_slice(self.data, self.dim, self.len())
    }

    /// Checks width and values, so that nothing after this can fail because of the input.
    pub fn validate(&self, dim: usize) -> Result<(), Error> {
        if self.dim != dim {
            return Err(Error::Dimension { expected: dim, found: self.dim });
        }
        for row in 0..self.len() {
            // One pass that the compiler vectorises (a NaN compares false); the offending value is located only if
            // there is one.
            if self.row(row).iter().fold(true, |fine, v| fine & (v.abs() <= LARGEST)) {
                continue;
            }
            let largest = self.row(row).iter().fold(0.0f32, |most, v| most.max(v.abs()));
            let bad = self.row(row).iter().copied().enumerate().find(|(_, v)| !v.is_finite());
            return Err(match bad {
                Some((column, value)) => Error::NotFinite { row, column, value },
                None => Error::TooLarge { row, value: largest, limit: LARGEST },
            });
        }
        Ok(())
    }
}

/// The samples of a batch whose weight is not 0.
pub struct Present {
    data: Vec<f32>,
    dim: usize,
    weights: Vec<f64>,
    rows: Vec<usize>,
}

impl Present {
    /// Views the samples.
    pub fn features(&self) -> Features<'_> {
        Features { data: &self.data, dim: self.dim, weights: Some(&self.weights) }
    }

    /// Returns what belongs to them of something that every sample of the batch has.
    pub fn of<T: Clone>(&self, all: &[T]) -> Vec<T> {
        self.rows.iter().map(|row| all[*row].clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_follow_their_samples() {
        let data = [1.0, 2.0, 3.0, 4.0, 5.0];
        let x = Features::new(&data, 1).unwrap();
        assert!(x.weights().is_none() && x.weighted(&[1.0; 5]).unwrap().weights().is_none());
        let x = x.weighted(&[2.0, 1.0, 0.0, 1.0, 0.5]).unwrap();
        let parts: Vec<_> = x.chunks(2).map(|part| (part.row(0)[0], part.weights().map(<[f64]>::to_vec))).collect();
        assert_eq!(parts, [(1.0, Some(vec![2.0, 1.0])), (3.0, Some(vec![0.0, 1.0])), (5.0, Some(vec![0.5]))]);
        let present = x.present().unwrap();
        assert_eq!((present.features().len(), present.of(&["a", "b", "c", "d", "e"])), (4, vec!["a", "b", "d", "e"]));
        assert_eq!(present.features().weights(), Some(&[2.0, 1.0, 1.0, 0.5][..]));
        assert!(present.features().present().is_none());
    }

    #[test]
    fn bad_weights_are_named_by_row() {
        let x = Features::new(&[1.0, 2.0, 3.0], 1).unwrap();
        for bad in [-1.0, f64::NAN, f64::INFINITY, 2e12] {
            let error = x.weighted(&[1.0, bad, 1.0]).unwrap_err();
            assert!(matches!(error, Error::Weight { row: 1, .. }), "{error}");
        }
        assert_eq!(x.weighted(&[1.0; 2]).unwrap_err(), Error::WeightCount { samples: 3, weights: 2 });
    }

    fn check(data: &[f32], expected: Option<Error>) {
        assert_eq!(Features::new(data, 2).and_then(|x| x.validate(2)).err(), expected);
    }

    #[test]
    fn bad_values_are_named_by_row_and_column() {
        check(&[0.0, 1.0, -2.0, 3.0], None);
        check(&[0.0, 1.0, f32::INFINITY, 3.0], Some(Error::NotFinite { row: 1, column: 0, value: f32::INFINITY }));
        check(&[0.0, 1e30], Some(Error::TooLarge { row: 0, value: 1e30, limit: LARGEST }));
        check(&[0.0, 1.0, 2.0], Some(Error::Ragged { length: 3, dim: 2 }));
        let nan = Features::new(&[1.0, 2.0, 3.0, f32::NAN], 2).unwrap().validate(2);
        assert!(matches!(nan, Err(Error::NotFinite { row: 1, column: 1, .. })), "{nan:?}");
        let nan_first = Features::new(&[f32::NAN, 2.0], 2).unwrap().validate(2);
        assert!(matches!(nan_first, Err(Error::NotFinite { row: 0, column: 0, .. })), "{nan_first:?}");
    }

    #[test]
    fn another_width_is_refused() {
        let x = Features::new(&[1.0, 2.0, 3.0], 3).unwrap();
        assert_eq!(x.validate(2), Err(Error::Dimension { expected: 2, found: 3 }));
    }
}
