//! The random matrix P of the paper: `E x d`, entries N(0, 1), a pure function of its seed.
//!
//! Row i is stream i of a ChaCha8 generator, so it depends on the seed and on i alone: not on E, on the number of
//! threads, or on how the rows are grouped. Normals come in pairs from the Box-Muller transform, evaluated in f64
//! by the `libm` crate (pure Rust, the same on every machine) and rounded to f32 at the end. Pinned by test vectors.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

use super::LiftSpec;
use crate::error::Error;
use crate::memory;
use crate::words::count;

/// Entries above this could overflow the lifted features.
const LARGEST: f32 = 1e12;

/// P, kept in memory or generated row by row on demand.
#[derive(Debug, Clone)]
pub struct Projection {
    width: usize,
    dim: usize,
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    /// All rows, one after the other.
    Kept(Vec<f32>),
    /// Rows are generated from this seed on demand.
    Seed(u64),
}

impl Projection {
    /// Creates P from a seed; with `keep`, all of it is held in memory.
    pub fn from_seed(width: usize, dim: usize, seed: u64, keep: bool) -> Self {
        let mut projection = Projection { width, dim, source: Source::Seed(seed) };
        if keep {
            let mut rows = vec![0.0; width * dim];
            projection.fill(0, &mut rows);
            projection.source = Source::Kept(rows);
        }
        projection
    }

    /// Creates P from given rows: `width x dim` numbers in C order.
    pub fn from_rows(width: usize, dim: usize, rows: Vec<f32>) -> Result<Self, Error> {
        let refuse = |reason: String| Error::Projection { rows: width, columns: dim, reason };
        if rows.len() != width * dim {
            return Err(refuse(format!("it has {} numbers", rows.len())));
        }
        if let Some(at) = rows.iter().position(|v| v.is_nan() || v.abs() > LARGEST) {
            let (row, column) = (at / dim, at % dim);
            return Err(refuse(format!("entry ({row}, {column}) is {}; at most {LARGEST:e} works", rows[at])));
        }
        Ok(Projection { width, dim, source: Source::Kept(rows) })
    }

    /// Creates the projection of a lift, with this many rows.
    pub(super) fn for_lift(spec: LiftSpec, rows: usize) -> Result<Self, Error> {
        if rows == 0 {
            return Err(Error::setting("width", spec.width, "E is too small for this lift (10,000 is a good start)"));
        }
        let LiftSpec { dim, seed, .. } = spec;
        match spec.projection {
            Some(values) => Projection::from_rows(rows, dim, values),
            None if spec.keep => {
                let all = memory::product(&[rows, dim]);
                let mut values = memory::reserve(all).map_err(|_| {
                    let bytes = memory::human_bytes(memory::product(&[all, size_of::<f32>()]));
                    Error::Memory(format!("the projection of {} to width {rows} has {bytes}, which the system refuses to give: reduce the width", count(dim, "feature")))
                })?;
                values.resize(all, 0.0);
                let mut projection = Projection::from_seed(rows, dim, seed, false);
                projection.fill(0, &mut values);
                projection.source = Source::Kept(values);
                Ok(projection)
            }
            None => Ok(Projection::from_seed(rows, dim, seed, false)),
        }
    }

    /// Creates the projection of a lift whose first d features are the sample itself, with the other `E - d` rows.
    pub(super) fn beside_the_sample(spec: LiftSpec) -> Result<Self, Error> {
        let rows = spec.width.saturating_sub(spec.dim);
        if rows == 0 {
            let reason = format!("the {} features themselves are part of it, so E must be larger", spec.dim);
            return Err(Error::setting("width", spec.width, reason));
        }
        Projection::for_lift(spec, rows)
    }

    /// Returns the number of rows, E.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the number of columns, d.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Returns the bytes held in memory.
    pub fn bytes(&self) -> usize {
        match &self.source {
            Source::Kept(rows) => rows.len() * size_of::<f32>(),
            Source::Seed(_) => 0,
        }
    }

    /// Returns `count` rows from `first` on, borrowed if they are kept, otherwise generated into `scratch`.
    pub fn rows<'a>(&'a self, first: usize, count: usize, scratch: &'a mut Vec<f32>) -> &'a [f32] {
        match &self.source {
            Source::Kept(rows) => &rows[first * self.dim..(first + count) * self.dim],
            Source::Seed(_) => {
                scratch.resize(count * self.dim, 0.0);
                self.fill(first, scratch);
                scratch
            }
        }
    }

    /// Generates (or copies) consecutive rows from `first` on.
    pub fn fill(&self, first: usize, rows: &mut [f32]) {
        match &self.source {
            Source::Kept(kept) => rows.copy_from_slice(&kept[first * self.dim..][..rows.len()]),
            Source::Seed(seed) => rows
                .par_chunks_mut(self.dim)
                .enumerate()
                .for_each(|(offset, row)| fill_row(*seed, (first + offset) as u64, row)),
        }
    }
}

/// Generates row `index` of the projection of `seed`.
fn fill_row(seed: u64, index: u64, row: &mut [f32]) {
    let mut key = [0u8; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut random = ChaCha8Rng::from_seed(key);
    random.set_stream(index);
    for pair in row.chunks_mut(2) {
        // u in (0, 1], v in [0, 1), 53 bits each.
        let u = ((random.next_u64() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64);
        let v = (random.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64);
        let radius = libm::sqrt(-2.0 * libm::log(u));
        let (sin, cos) = libm::sincos(2.0 * std::f64::consts::PI * v);
        pair[0] = (radius * cos) as f32;
        if let Some(second) = pair.get_mut(1) {
            *second = (radius * sin) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by `bench/reference/projection.py`, which computes ChaCha8 and the normals on its own. They may never
    /// change: models store the seed and not the matrix.
    #[test]
    fn test_vectors() {
        let mut row = [0.0f32; 5];
        for (seed, index, expected) in VECTORS {
            fill_row(*seed, *index, &mut row);
            assert_eq!(row.map(f32::to_bits), expected.map(f32::to_bits), "seed {seed}, row {index}: {row:?}");
        }
    }

    #[allow(clippy::excessive_precision)]
    const VECTORS: &[(u64, u64, [f32; 5])] = &[
        (0, 0, [-0.404561609, -0.438616067, 1.26288986, 1.15046227, 1.34251606]),
        (0, 1, [0.28360191, -0.627006829, -1.28628838, -1.02177763, -0.225435793]),
        (1993, 99999, [0.194231942, 0.842097998, -0.0133412499, -1.30267012, 1.05925608]),
        (u64::MAX, 1 << 40, [1.12455928, -0.473783106, -1.41000211, -0.808108866, -1.34495044]),
    ];

    #[test]
    fn rows_do_not_depend_on_width_chunks_or_threads() {
        let whole = Projection::from_seed(37, 11, 5, true);
        let lazy = Projection::from_seed(1000, 11, 5, false);
        let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        for (first, count) in [(0, 37), (3, 1), (17, 20)] {
            let mut expected = vec![0.0; count * 11];
            whole.fill(first, &mut expected);
            let mut scratch = Vec::new();
            assert_eq!(lazy.rows(first, count, &mut scratch), expected);
            assert_eq!(one_thread.install(|| lazy.rows(first, count, &mut scratch).to_vec()), expected);
        }
    }

    #[test]
    fn entries_are_standard_normal() {
        let p = Projection::from_seed(500, 400, 1, true);
        let mut scratch = Vec::new();
        let values = p.rows(0, 500, &mut scratch);
        let moment = |k: i32| values.iter().map(|&v| (v as f64).powi(k)).sum::<f64>() / values.len() as f64;
        // Standard errors are about 1/447 times the root of the next even moment.
        for (k, expected, tolerance) in [(1, 0.0, 0.009), (2, 1.0, 0.013), (3, 0.0, 0.035), (4, 3.0, 0.09)] {
            assert!((moment(k) - expected).abs() < tolerance, "moment {k} is {}", moment(k));
        }
        // Neighbouring entries of a row, and neighbouring rows, are uncorrelated.
        let lag = |by: usize| values.windows(by + 1).map(|w| (w[0] * w[by]) as f64).sum::<f64>() / values.len() as f64;
        for by in [1, 2, 400] {
            assert!(lag(by).abs() < 0.009, "correlation at distance {by} is {}", lag(by));
        }
    }

    #[test]
    fn a_projection_from_elsewhere_is_checked() {
        assert!(Projection::from_rows(2, 3, vec![0.0; 6]).is_ok());
        assert!(matches!(Projection::from_rows(2, 3, vec![0.0; 5]), Err(Error::Projection { .. })));
        let message = Projection::from_rows(2, 2, vec![0.0, 0.0, 0.0, f32::NAN]).unwrap_err().to_string();
        assert!(message.contains("(1, 1)"), "{message}");
        assert!(Projection::from_rows(1, 2, vec![0.0, 1e30]).is_err());
    }
}
