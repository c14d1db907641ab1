//! What a chunk of samples adds to S, as a triangular factor.

use faer::{Mat, MatRef};

use crate::buffer::Buffer;

/// What S takes in at a time: `S <- [S 0; 0 0] + B B'`.
///
/// B is the triangular factor of the increment, which is a function of the increment alone: the coordinates of single
/// samples are not in it (unless there was but one).
#[derive(Debug, Clone)]
pub struct Factor {
    rows: usize,
    columns: usize,
    data: Buffer<f64>,
}

impl Factor {
    /// From its numbers, column after column; None if there are not `rows x columns`.
    pub fn from_columns(rows: usize, columns: usize, data: Buffer<f64>) -> Option<Self> {
        (rows.checked_mul(columns) == Some(data.len())).then_some(Factor { rows, columns, data })
    }

    /// The triangular factor for samples with coordinates C in the old directions and Rn in the new ones:
    /// with `[C; Rn]' = G R` and orthonormal G, `B = R'`.
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

    /// Rows of B: the rank of the basis afterwards.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// B, r x m.
    pub fn matrix(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice(&self.data, self.rows, self.columns)
    }

    /// Its numbers, column after column.
    pub fn data(&self) -> &[f64] {
        &self.data
    }
}
