//! Splitting with one product of size E r:
//!
//! ```text
//! H  = q0 c0 + Qn R          the first column of B apart, with full care; Qn by the Gram matrix of the block
//! X  = L^-1 (B' Qn)          the one pass over B
//! Qn' Qn - X' X = L22 L22'   what of Qn is new;  C = [c0; 0] + X R,  Rn = L22' R
//! B <- [B Qn],  L <- [L 0; X' L22]
//! ```
//!
//! The first column of B is the mean direction of the first samples. Lifted features have most of their energy along it,
//! and their other components are computed more accurately without it.
//!
//! The difference `Qn' Qn - X' X` is known to the rounding of the product only. Columns of which it leaves too little
//! (duplicates and near duplicates of earlier samples) are subtracted from the basis explicitly, and the few remainders
//! pass once more, so that directions are dropped at the level of rounding as in two projections.
//!
//! Cost: `2 E r m + 4 E m^2` flops, and `r^2 m` in f64.

use faer::linalg::matmul::matmul;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut, MatRef};
use rayon::prelude::*;

use super::triangle::Triangle;
use super::{Basis, Split};
use crate::linalg::{add_product_lower, cast, cholesky_lower, dot, gram, par};
use crate::orthonormalise::{Factors, orthonormalise};
use crate::scalar::Scalar;

/// Samples whose mean becomes the first column. The mean of many would differ from a vector of their span by more than
/// the rounding of one of them.
const STARTERS: usize = 16;
/// The least length of the mean of unit vectors that share a direction worth keeping apart.
const SHARED: f64 = 0.5;
/// The energy of a unit column outside the basis from which a single product is accurate enough: L is computed from a
/// difference whose rounding is divided by it.
const SURE: f64 = 0.03;
/// The least energy of a remainder that passes again. A true direction, above the drop level, keeps nearly all of it;
/// rounding noise inside the span of the basis does not.
const TRUE_DIRECTION: f64 = 1e-2;

/// Returns whether one pass keeps the precision of this type: products of f64 promise more.
pub(super) fn suffices<T: Scalar>() -> bool {
    T::EPSILON > 1e-10
}

/// What of Qn is new: `T = P' Lt Lt' P` for the columns that are accepted.
struct New {
    /// The accepted columns, in pivot order.
    accepted: Vec<usize>,
    /// The others, in ascending order.
    rest: Vec<usize>,
    /// Lt: a row for every column of Qn, in their order.
    lower: Mat<f64>,
    /// The energy of each column that Lt leaves.
    left: Vec<f64>,
}

impl<T: Scalar> Basis<T> {
    /// Splits `h` as [`Basis::absorb`] does.
    pub(super) fn absorb_once(&mut self, mut h: MatMut<'_, T>, norms: &[f64], drop: f64) -> Split {
        let (before, m) = (self.rank(), h.ncols());
        if before == 0 {
            self.begin(h.rb(), norms);
        }
        self.lower.get_or_insert_with(|| Triangle::identity(before));
        let mut found = Mat::<f64>::zeros(self.rank(), m);
        let mut left_out = vec![0.0; m];
        // H = (columns of the work) share, up to what has been found already.
        let mut share = Mat::<f64>::identity(m, m);
        let mut lengths = norms.to_vec();
        for round in 0..2 {
            let mut work = h.rb_mut().subcols_mut(0, share.nrows());
            let first = self.subtract_first(work.rb_mut());
            if !first.is_empty() {
                let along = Mat::from_fn(1, first.len(), |_, j| first[j]) * &share;
                (0..m).for_each(|j| found[(0, j)] += along[(0, j)]);
            }
            if round == 1 {
                // What the first product missed, also of remainders that are dropped.
                let mut x = self.columns_onto(work.rb());
                matmul(found.as_mut(), Accum::Add, &x, &share, 1.0, par());
                self.solve_transposed(x.as_mut());
                self.columns.add_product(work.rb_mut(), cast(x.as_ref()).as_ref(), -1.0);
            }
            let Factors { rn, left_out: lost } = orthonormalise(work.rb_mut(), &lengths, drop, usize::MAX);
            add_lengths(&mut left_out, &lost, &share);
            share = &rn * &share;
            let p = share.nrows();
            if p == 0 {
                break;
            }
            let mut x = self.columns_onto(work.rb().subcols(0, p));
            matmul(found.as_mut(), Accum::Add, &x, &share, 1.0, par());
            let mut t = gram(work.rb().subcols(0, p));
            add_product_lower(t.as_mut(), x.transpose(), -1.0, par());
            // The weight of a column in the sample where it is largest, and with it the noise of the column itself.
            let weights: Vec<f64> = (0..p).map(|i| weight(share.as_ref(), i, norms)).collect();
            let least = |i: usize| if round == 0 { SURE.max((drop / weights[i]).powi(2)) } else { TRUE_DIRECTION };
            let New { accepted, rest, lower, left } = new_part(t, least, self.width() - self.rank());
            let grown = lower.transpose() * &share;
            found = stack(&found, &grown);
            self.append(work.rb(), &x, &lower, &accepted);
            if rest.is_empty() || self.rank() == self.width() {
                break;
            }
            if round == 1 {
                let lost: Vec<f64> =
                    (0..p).map(|i| if rest.contains(&i) { left[i].max(0.0).sqrt() } else { 0.0 }).collect();
                add_lengths(&mut left_out, &lost, &share);
                break;
            }
            // What remains of the others outside the basis.
            x = stack(&x, &lower.transpose().to_owned());
            let mut y = Mat::from_fn(x.nrows(), rest.len(), |i, j| x[(i, rest[j])]);
            self.solve_transposed(y.as_mut());
            for (place, &column) in rest.iter().enumerate().filter(|(place, column)| place != *column) {
                let (mut before, after) = work.rb_mut().split_at_col_mut(column);
                before.rb_mut().col_mut(place).copy_from(after.rb().col(0));
            }
            self.columns.add_product(work.subcols_mut(0, rest.len()), cast(y.as_ref()).as_ref(), -1.0);
            lengths = rest.iter().zip(y.col_iter()).map(|(&i, y)| y.norm_l2().max(1.0) / weights[i]).collect();
            share = Mat::from_fn(rest.len(), m, |i, j| share[(rest[i], j)]);
        }
        let new = found.subrows(before, found.nrows() - before).to_owned();
        Split { known: found.subrows(0, before).to_owned(), new, left_out }
    }

    /// Begins an empty basis with the mean direction of some of the samples, if they share one.
    fn begin(&mut self, h: MatRef<'_, T>, norms: &[f64]) {
        let present: Vec<usize> = (0..h.ncols()).filter(|&j| norms[j] > 0.0).collect();
        let starters: Vec<usize> = present.iter().copied().step_by(present.len().div_ceil(STARTERS).max(1)).collect();
        let mut sum = vec![0.0; h.nrows()];
        for &j in &starters {
            let scale = 1.0 / norms[j];
            sum.iter_mut().zip(h.col(j).iter()).for_each(|(sum, v)| *sum += v.to_f64() * scale);
        }
        let length = dot(&sum, &sum).sqrt();
        if length <= SHARED * starters.len() as f64 {
            return;
        }
        let mean = Mat::from_fn(h.nrows(), 1, |i, _| T::from_f64(sum[i] / length));
        let length = mean.col(0).iter().map(|v| v.to_f64().powi(2)).sum::<f64>().sqrt();
        self.columns.append(mean.as_ref());
        let mut lower = Triangle::default();
        lower.append(1, |_, _| length);
        self.lower = Some(lower);
    }

    /// The first column of B.
    fn first(&self) -> Option<&[T]> {
        self.columns.runs(0).next().map(|run| &run[..self.width()])
    }

    /// Computes `H <- H - q0 c0` for the first direction, and returns `c0 = q0' H`; nothing if the basis is empty.
    fn subtract_first(&self, h: MatMut<'_, T>) -> Vec<f64> {
        let Some(column) = self.first() else { return Vec::new() };
        let square = dot(column, column);
        h.par_col_iter_mut()
            .map(|h| {
                let Some(h) = h.try_as_col_major_mut() else { return 0.0 };
                let h = h.as_slice_mut();
                let c = dot(column, h) / square;
                h.iter_mut().zip(column).for_each(|(h, q)| *h = T::from_f64(h.to_f64() - c * q.to_f64()));
                c * square.sqrt()
            })
            .collect()
    }

    /// Computes `L^-1 (B' Qn)`. Factorising enlarges what rounding has left along the first direction, of which samples
    /// have most of their energy: this component is computed in f64.
    fn columns_onto(&self, qn: MatRef<'_, T>) -> Mat<f64> {
        let mut x = self.columns.project_wide(qn);
        if let Some(first) = self.first() {
            let along: Vec<f64> =
                qn.par_col_iter().map(|q| q.try_as_col_major().map_or(0.0, |q| dot(first, q.as_slice()))).collect();
            along.iter().enumerate().for_each(|(j, along)| x[(0, j)] = *along);
        }
        self.solve(0, x.as_mut());
        x
    }

    /// Appends the accepted columns of Qn to B, and rows `[X' Lt]` to L.
    fn append(&mut self, qn: MatRef<'_, T>, x: &Mat<f64>, lower: &Mat<f64>, accepted: &[usize]) {
        let rank = self.rank();
        for run in accepted.chunk_by(|a, b| a + 1 == *b) {
            self.columns.append(qn.subcols(run[0], run.len()));
        }
        let value = |i: usize, j: usize| {
            let column = accepted[i - rank];
            if j < rank { x[(j, column)] } else { lower[(column, j - rank)] }
        };
        if let Some(triangle) = &mut self.lower {
            triangle.append(accepted.len(), value);
        }
    }
}

/// Returns the largest share of a sample's length that a column of the work has.
fn weight(share: MatRef<'_, f64>, column: usize, norms: &[f64]) -> f64 {
    let shares = share.row(column).iter().zip(norms).filter(|(_, norm)| **norm > 0.0);
    shares.map(|(share, norm)| share.abs() / norm).fold(1e-30, f64::max)
}

/// Adds lengths that were left out of columns of the work to those of the samples.
fn add_lengths(left_out: &mut [f64], lost: &[f64], share: &Mat<f64>) {
    for (i, lost) in lost.iter().enumerate().filter(|(_, lost)| **lost > 0.0) {
        left_out.iter_mut().enumerate().for_each(|(j, left)| *left += lost * share[(i, j)].abs());
    }
}

fn stack(above: &Mat<f64>, below: &Mat<f64>) -> Mat<f64> {
    let mut both = Mat::zeros(above.nrows() + below.nrows(), above.ncols());
    both.as_mut().subrows_mut(0, above.nrows()).copy_from(above);
    both.as_mut().subrows_mut(above.nrows(), below.nrows()).copy_from(below);
    both
}

/// Factorises T (its lower triangle) as far as its pivots are at least `least`; at most `room` columns are accepted.
fn new_part(t: Mat<f64>, least: impl Fn(usize) -> f64, room: usize) -> New {
    let p = t.nrows();
    // In most tasks all columns are new, and need no pivots.
    let mut whole = t.clone();
    if p <= room && cholesky_lower(whole.as_mut(), par()) && (0..p).all(|i| whole[(i, i)].powi(2) >= least(i)) {
        let lower = Mat::from_fn(p, p, |i, j| if i >= j { whole[(i, j)] } else { 0.0 });
        return New { accepted: (0..p).collect(), rest: Vec::new(), lower, left: vec![0.0; p] };
    }
    let mut left: Vec<f64> = (0..p).map(|i| t[(i, i)]).collect();
    let (mut accepted, mut open) = (Vec::new(), vec![true; p]);
    let mut lower = Mat::<f64>::zeros(p, p.min(room));
    while accepted.len() < lower.ncols() {
        let known = accepted.len();
        let enough = (0..p).filter(|&i| open[i] && left[i] >= least(i));
        let Some(pivot) = enough.max_by(|a, b| left[*a].total_cmp(&left[*b])) else { break };
        let products = lower.subcols(0, known) * lower.row(pivot).subcols(0, known).transpose();
        let root = left[pivot].sqrt();
        open[pivot] = false;
        for i in (0..p).filter(|&i| open[i]) {
            let value = (t[(i.max(pivot), i.min(pivot))] - products[i]) / root;
            lower[(i, known)] = value;
            left[i] -= value * value;
        }
        lower[(pivot, known)] = root;
        accepted.push(pivot);
    }
    let rest = (0..p).filter(|&i| open[i]).collect();
    New { lower: lower.subcols(0, accepted.len()).to_owned(), accepted, rest, left }
}
