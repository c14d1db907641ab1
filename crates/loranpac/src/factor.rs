//! The increment of S by a chunk of samples, as a triangular factor.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef};

use crate::buffer::Buffer;
use crate::linalg::par;

/// An increment of S: `S <- [S 0; 0 0] + F F'`.
///
/// F is the triangular factor of the increment, and a function of the increment alone: it does not contain the
/// coordinates of single samples (unless the chunk has only one sample).
#[derive(Debug, Clone)]
pub struct Factor {
    rows: usize,
    columns: usize,
    data: Buffer<f64>,
    /// Whether its numbers are those of f32.
    single: bool,
}

impl Factor {
    /// Creates a factor from its numbers, column after column; returns None if there are not `rows x columns` of them.
    pub fn from_columns(rows: usize, columns: usize, data: Buffer<f64>) -> Option<Self> {
        (rows.checked_mul(columns) == Some(data.len())).then_some(Factor { rows, columns, data, single: false })
    }

    /// The same for numbers in single precision.
    pub fn from_single(rows: usize, columns: usize, data: &[f32]) -> Option<Self> {
        let data: Vec<f64> = data.iter().map(|v| f64::from(*v)).collect();
        Some(Factor { single: true, ..Factor::from_columns(rows, columns, data.into())? })
    }

    /// Rounds its numbers to single precision.
    pub(crate) fn rounded(self) -> Self {
        let data: Vec<f64> = self.data.iter().map(|v| f64::from(*v as f32)).collect();
        Factor { data: data.into(), single: true, ..self }
    }

    /// Returns whether its numbers are those of single precision.
    pub fn is_single(&self) -> bool {
        self.single
    }

    /// Returns its numbers in single precision, column after column, if that is exact.
    pub fn single(&self) -> Option<Vec<f32>> {
        self.single.then(|| self.data.iter().map(|v| *v as f32).collect())
    }

    /// Computes the triangular factor for samples with coordinates C in the old directions and Rn in the new ones: with
    /// `[C; Rn]' = G R` and orthonormal G, `F = R'`.
    pub(crate) fn new(known: MatRef<'_, f64>, new: MatRef<'_, f64>) -> Self {
        let (rows, samples) = (known.nrows() + new.nrows(), known.ncols());
        let mut stacked = Mat::zeros(rows, samples);
        stacked.as_mut().subrows_mut(0, known.nrows()).copy_from(known);
        stacked.as_mut().subrows_mut(known.nrows(), new.nrows()).copy_from(new);
        // The first rows decide on G; the others are a product.
        let columns = rows.min(samples);
        let qr = stacked.as_ref().subrows(0, columns).transpose().qr();
        let (g, r) = (qr.compute_thin_Q(), qr.thin_R());
        let mut data = vec![0.0; rows * columns];
        let mut f = MatMut::from_column_major_slice_mut(&mut data, rows, columns);
        (0..columns).for_each(|j| (j..columns).for_each(|i| f[(i, j)] = r[(j, i)]));
        matmul(
            f.subrows_mut(columns, rows - columns),
            Accum::Replace,
            stacked.as_ref().subrows(columns, rows - columns),
            &g,
            1.0,
            par(),
        );
        Factor { rows, columns, data: data.into(), single: false }
    }

    /// Returns the number of rows of F: the rank of the basis afterwards.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns F, r x m.
    pub fn matrix(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice(&self.data, self.rows, self.columns)
    }

    /// Returns its numbers, column after column.
    pub fn data(&self) -> &[f64] {
        &self.data
    }
}
