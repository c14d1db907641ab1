//! Input samples: a C-order `(n, d)` array, which is the paper's `d x n` matrix without a copy.

use faer::MatRef;

use crate::error::Error;

/// Features above this would overflow `f32` once they are lifted and squared.
const LARGEST: f32 = 1e12;

/// A borrowed batch of samples: rows of `dim` features, one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Features<'a> {
    data: &'a [f32],
    dim: usize,
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
        Ok(Features { data, dim })
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
        let dim = self.dim;
        self.data.chunks(size.max(1).saturating_mul(dim)).map(move |data| Features { data, dim })
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

#[cfg(test)]
mod tests {
    use super::*;

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
