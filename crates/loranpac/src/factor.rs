//! The increment of S by a chunk of samples, as a triangular factor.

use faer::{Mat, MatRef};

use crate::buffer::Buffer;

/// An increment of S: `S <- [S 0; 0 0] + F F'`.
///
/// F is the triangular factor of the increment, and a function of the increment alone: it does not contain the
/// coordinates of single samples (unless the chunk has only one sample).
#[derive(Debug, Clone)]
pub struct Factor {
    rows: usize,
    columns: usize,
    data: Buffer<f64>,
}

impl Factor {
    /// Creates a factor from its numbers, column after column; returns None if there are not `rows x columns` of them.
    pub fn from_columns(rows: usize, columns: usize, data: Buffer<f64>) -> Option<Self> {
        (rows.checked_mul(columns) == Some(data.len())).then_some(Factor { rows, columns, data })
    }

    /// Computes the triangular factor for samples with coordinates C in the old directions and Rn in the new ones: with
    /// `[C; Rn]' = G R` and orthonormal G, `F = R'`.
    pub(crate) fn new(known: MatRef<'_, f64>, new: MatRef<'_, f64>) -> Self {
        let rows = known.nrows() + new.nrows();
        let stacked = Mat::from_fn(known.ncols(), rows, |sample, i| {
            if i < known.nrows() { known[(i, sample)] } else { new[(i - known.nrows(), sample)] }
        });
        let qr = stacked.qr();
        let r = qr.thin_R();
        let columns = r.nrows();
        let entries = (0..columns).flat_map(|j| (0..rows).map(move |i| if i >= j { r[(j, i)] } else { 0.0 }));
        Factor { rows, columns, data: Buffer::from(entries.collect::<Vec<_>>()) }
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
