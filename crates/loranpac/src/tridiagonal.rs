//! Functions of a symmetric matrix, applied to a few rows, without storing its eigenvectors.
//!
//! ```text
//! S = Z T Z',   T = V diag(mu) V',   B f(S) = (((B Z) V) f(mu)) V' Z'
//! ```
//!
//! Z is a reduction in two stages (`band`), half of whose vectors stay in the lower triangle of S's own storage. V is
//! kept as the plane rotations of the implicit QL iteration. In the forward pass they are applied to B as they are
//! generated; in the backward pass they are regenerated from checkpoints of T, segment by segment, and undone in
//! reverse order. For r directions and c rows this costs `4/3 r^3` flops for Z, about `12 r^2 c` for V, and `r^2 / 2`
//! numbers besides B, where eigenvectors would need several r x r matrices.

use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Mat, MatMut, MatRef};
use rayon::prelude::*;

use crate::band::{self, Reduction};
use crate::chase::Tridiagonal;
use crate::linalg::transposed;
use crate::reflections::LANES;

/// Number of rotations that are kept at a time (16 bytes each).
const SEGMENT: usize = 1 << 20;
/// Entries of unit vectors below this are zero.
const NOTHING: f64 = 1e-40;
/// Maximum number of QL steps per eigenvalue; two or three are usual.
const MAX_STEPS: usize = 50;

/// The QL iteration did not converge.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoConvergence;

/// Returns the eigenvalues of the symmetric matrix in the lower triangle of `a` (destroyed), in descending order.
pub(crate) fn eigenvalues(a: MatMut<'_, f64>) -> Result<Vec<f64>, NoConvergence> {
    let mut ql = Ql::new(band::reduce(a).0);
    let mut rotations = Rotations::default();
    while ql.segment(&mut rotations)? {}
    let mut values = ql.d;
    values.sort_by(|a, b| b.total_cmp(a));
    Ok(values)
}

/// Z and T of a matrix A. The vectors of Q1 are in the matrix that was reduced.
pub(crate) struct Reduced {
    tridiagonal: Tridiagonal,
    reduction: Reduction,
}

impl Reduced {
    /// Reduces the symmetric matrix in the lower triangle of `a`, which holds the vectors of Q1 afterwards.
    pub fn new(a: MatMut<'_, f64>) -> Self {
        let (tridiagonal, reduction) = band::reduce(a);
        Reduced { tridiagonal, reduction }
    }

    /// Computes `B <- B f(A)`; `a` holds the vectors of Q1.
    ///
    /// `f` is called once: with the eigenvalues in descending order and, for each, the squared norm of B's component
    /// along its eigenvector. It returns the value of f at each eigenvalue.
    pub fn apply_function(
        &self,
        a: MatRef<'_, f64>,
        mut b: MatMut<'_, f64>,
        f: impl FnOnce(&[f64], &[f64]) -> Vec<f64>,
    ) -> Result<(), NoConvergence> {
        if a.nrows() == 0 || b.nrows() == 0 {
            f(&[], &[]);
            return Ok(());
        }
        let first = &self.reduction.first;
        first.apply(a, b.rb_mut());
        self.apply_inner(b.rb_mut(), f)?;
        first.undo(a, b);
        Ok(())
    }

    /// Returns T.
    pub fn tridiagonal(&self) -> &Tridiagonal {
        &self.tridiagonal
    }

    /// Computes `X <- (Z X)'`: maps eigenvectors of T, one per column, to those of A, one per row. `a` holds the vectors of Q1.
    pub fn eigenvectors(&self, a: MatRef<'_, f64>, x: MatRef<'_, f64>) -> Mat<f64> {
        let mut rows: Mat<f64> = transposed(x);
        // Eigenvectors of T fade away exponentially, and arithmetic with denormal numbers is slow.
        rows.par_col_iter_mut().for_each(|column| {
            column.iter_mut().filter(|value| value.abs() < NOTHING).for_each(|value| *value = 0.0);
        });
        let mut groups = pack(rows.as_ref());
        transform(&self.reduction, &mut groups, true);
        unpack(&groups, rows.as_mut());
        drop(groups);
        self.reduction.first.undo(a, rows.as_mut());
        rows
    }

    /// Computes `B <- B f(Q2 T Q2')`.
    fn apply_inner(&self, b: MatMut<'_, f64>, f: impl FnOnce(&[f64], &[f64]) -> Vec<f64>) -> Result<(), NoConvergence> {
        // B V; T is stored at the start of each segment.
        let mut groups = pack(b.rb());
        transform(&self.reduction, &mut groups, false);
        let mut checkpoints = Vec::new();
        let mut rotations = Rotations::default();
        let mut ql = Ql::new(self.tridiagonal.clone());
        loop {
            checkpoints.push(ql.clone());
            let more = ql.segment(&mut rotations)?;
            rotations.turn(&mut groups, false);
            if !more {
                break;
            }
        }

        // f(mu), in the order of f and back.
        let mut order: Vec<usize> = (0..ql.d.len()).collect();
        order.sort_by(|&i, &j| ql.d[j].total_cmp(&ql.d[i]));
        let values: Vec<f64> = order.iter().map(|&i| ql.d[i]).collect();
        let energies: Vec<f64> =
            order.iter().map(|&i| groups.iter().map(|g| g[i].iter().map(|v| v * v).sum::<f64>()).sum()).collect();
        let weights = f(&values, &energies);
        for (place, &i) in order.iter().enumerate() {
            groups.iter_mut().for_each(|group| group[i].iter_mut().for_each(|v| *v *= weights[place]));
        }

        // ... V' Q2'
        let mut last = true;
        while let Some(mut ql) = checkpoints.pop() {
            if !last {
                ql.segment(&mut rotations)?;
            }
            last = false;
            rotations.turn(&mut groups, true);
        }
        transform(&self.reduction, &mut groups, true);
        unpack(&groups, b);
        Ok(())
    }
}

/// Computes `B <- B Q2`, or `B Q2'`, for all groups, in parallel and with the widest vectors that the machine has.
fn transform(reduction: &Reduction, groups: &mut [Vec<[f64; LANES]>], back: bool) {
    /// Groups that one thread transforms together: reflections are read once for all of them.
    const TOGETHER: usize = 4;
    struct Transform<'a>(&'a Reduction, &'a mut [Vec<[f64; LANES]>], bool);
    impl pulp::WithSimd for Transform<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, simd: S) {
            if self.2 { self.0.second.undo(simd, self.1) } else { self.0.second.apply(simd, self.1) }
        }
    }
    let arch = pulp::Arch::new();
    let share = groups.len().div_ceil(rayon::current_num_threads()).clamp(1, TOGETHER);
    groups.par_chunks_mut(share).for_each(|groups| arch.dispatch(Transform(reduction, groups, back)));
}

/// Computes all eigenvalues of T, in no order, and their eigenvectors, one per column, for a small T.
pub(crate) fn by_rotations(t: &Tridiagonal) -> Result<(Vec<f64>, Mat<f64>), NoConvergence> {
    let n = t.diagonal.len();
    let mut vectors = Mat::<f64>::identity(n, n);
    let mut groups = pack(vectors.as_ref());
    let mut rotations = Rotations::default();
    let mut ql = Ql::new(t.clone());
    loop {
        let more = ql.segment(&mut rotations)?;
        rotations.turn(&mut groups, false);
        if !more {
            break;
        }
    }
    unpack(&groups, vectors.as_mut());
    Ok((ql.d, vectors))
}

/// The state of an implicit QL iteration: diagonal and subdiagonal of the remaining T.
#[derive(Clone)]
struct Ql {
    d: Vec<f64>,
    e: Vec<f64>,
    low: usize,
    steps: usize,
}

/// Plane rotations in the order of their generation: sweeps over columns `high, high - 1, ..., low`.
#[derive(Default)]
struct Rotations {
    sweeps: Vec<Sweep>,
    pairs: Vec<[f64; 2]>,
}

struct Sweep {
    low: usize,
    high: usize,
    first: usize,
}

impl Ql {
    fn new(Tridiagonal { diagonal, subdiagonal }: Tridiagonal) -> Self {
        Ql { d: diagonal, e: subdiagonal, low: 0, steps: 0 }
    }

    /// Runs until about [`SEGMENT`] rotations have been generated; returns false when all eigenvalues are found.
    fn segment(&mut self, rotations: &mut Rotations) -> Result<bool, NoConvergence> {
        rotations.sweeps.clear();
        rotations.pairs.clear();
        while rotations.pairs.len() < SEGMENT {
            if !self.step(rotations)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs one QL step with Wilkinson's shift on the first block that has not split yet; returns false if there is
    /// none.
    fn step(&mut self, rotations: &mut Rotations) -> Result<bool, NoConvergence> {
        let n = self.d.len();
        let (d, e) = (&mut self.d, &mut self.e);
        let high = loop {
            if self.low + 1 >= n {
                return Ok(false);
            }
            let low = self.low;
            let split = (low..n - 1).find(|&i| e[i].abs() <= f64::EPSILON * (d[i].abs() + d[i + 1].abs()));
            let high = split.unwrap_or(n - 1);
            if high > low {
                break high;
            }
            self.low += 1;
            self.steps = 0;
        };
        let low = self.low;
        self.steps += 1;
        if self.steps > MAX_STEPS || !d[low].is_finite() {
            return Err(NoConvergence);
        }
        // The eigenvalue of the leading 2 x 2 block that is nearer to d[low].
        let half_gap = (d[low + 1] - d[low]) / (2.0 * e[low]);
        let shift = d[low] - e[low] / (half_gap + half_gap.hypot(1.0).copysign(half_gap));
        let first = rotations.pairs.len();
        let (mut c, mut s, mut p) = (1.0, 1.0, 0.0);
        let mut g = d[high] - shift;
        let mut stopped = low;
        for i in (low..high).rev() {
            let f = s * e[i];
            let b = c * e[i];
            let r = (f * f + g * g).sqrt();
            e[i + 1] = r;
            if r == 0.0 {
                // The block splits here; the rotations so far remain valid.
                d[i + 1] -= p;
                e[high] = 0.0;
                stopped = i + 1;
                break;
            }
            s = f / r;
            c = g / r;
            g = d[i + 1] - p;
            let t = (d[i] - g) * s + 2.0 * c * b;
            p = s * t;
            d[i + 1] = g + p;
            g = c * t - b;
            rotations.pairs.push([c, s]);
        }
        if stopped == low {
            d[low] -= p;
            e[low] = g;
            e[high] = 0.0;
        }
        if stopped < high {
            rotations.sweeps.push(Sweep { low: stopped, high, first });
        }
        Ok(true)
    }
}

/// The rotation of one group of rows as a value, so that it is compiled once per instruction set.
struct Turn<'a> {
    rotations: &'a Rotations,
    group: &'a mut [[f64; LANES]],
    back: bool,
}

impl pulp::NullaryFnOnce for Turn<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        if self.back { self.rotations.undo(self.group) } else { self.rotations.apply(self.group) }
    }
}

impl Rotations {
    /// Rotates all groups, in parallel and with the widest vectors of the machine.
    fn turn(&self, groups: &mut [Vec<[f64; LANES]>], back: bool) {
        let arch = pulp::Arch::new();
        groups.par_iter_mut().for_each(|group| arch.dispatch(Turn { rotations: self, group, back }));
    }

    /// Computes `B <- B G1 G2 ...` for the rows of one group.
    #[inline(always)]
    fn apply(&self, group: &mut [[f64; LANES]]) {
        for sweep in &self.sweeps {
            let columns = &mut group[sweep.low..=sweep.high];
            let pairs = &self.pairs[sweep.first..sweep.first + columns.len() - 1];
            let mut upper = columns[columns.len() - 1];
            for (at, [c, s]) in (0..columns.len() - 1).rev().zip(pairs) {
                let lower = columns[at];
                columns[at + 1] = combine(*s, lower, *c, upper);
                upper = combine(*c, lower, -*s, upper);
            }
            columns[0] = upper;
        }
    }

    /// Computes `B <- B ... G2' G1'`: the inverse of [`Rotations::apply`].
    #[inline(always)]
    fn undo(&self, group: &mut [[f64; LANES]]) {
        for sweep in self.sweeps.iter().rev() {
            let columns = &mut group[sweep.low..=sweep.high];
            let pairs = &self.pairs[sweep.first..sweep.first + columns.len() - 1];
            let mut lower = columns[0];
            for (at, [c, s]) in (0..columns.len() - 1).zip(pairs.iter().rev()) {
                let upper = columns[at + 1];
                columns[at] = combine(*c, lower, *s, upper);
                lower = combine(*c, upper, -*s, lower);
            }
            let last = columns.len() - 1;
            columns[last] = lower;
        }
    }
}

/// Computes `a x + b y`, lane by lane.
#[inline(always)]
fn combine(a: f64, x: [f64; LANES], b: f64, y: [f64; LANES]) -> [f64; LANES] {
    std::array::from_fn(|lane| a * x[lane] + b * y[lane])
}

/// Packs the rows of B into groups of [`LANES`], each group stored column by column.
fn pack(b: MatRef<'_, f64>) -> Vec<Vec<[f64; LANES]>> {
    b.par_row_chunks(LANES)
        .map(|rows| {
            let column = |j| std::array::from_fn(|lane| if lane < rows.nrows() { rows[(lane, j)] } else { 0.0 });
            (0..rows.ncols()).map(column).collect()
        })
        .collect()
}

fn unpack(groups: &[Vec<[f64; LANES]>], b: MatMut<'_, f64>) {
    b.par_row_chunks_mut(LANES).zip(groups).for_each(|(mut rows, group)| {
        for j in 0..rows.ncols() {
            (0..rows.nrows()).for_each(|lane| rows[(lane, j)] = group[j][lane]);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::with_spectrum;

    fn check(values: &[f64], rows: usize) {
        let n = values.len();
        let a = with_spectrum(values);
        let largest = values.iter().fold(1.0f64, |m, v| m.max(v.abs()));
        let mut sorted = values.to_vec();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let b = Mat::from_fn(rows, n, |i, j| ((i * 31 + j * 7) % 17) as f64 - 8.0);
        // The expected result of a polynomial needs no eigenvectors: f(x) = 2 x - x^2 / largest.
        let expected = &b * (&a * 2.0 - &a * &a * (1.0 / largest));
        let mut reduced = a.clone();
        let reduction = Reduced::new(reduced.as_mut());
        let applied = || {
            let mut result = b.clone();
            let f = |mu: &[f64], energy: &[f64]| -> Vec<f64> {
                assert!(mu.iter().zip(&sorted).all(|(x, y)| (x - y).abs() < 1e-12 * n as f64 * largest), "{mu:?}");
                let total: f64 = energy.iter().sum();
                assert!((total - b.squared_norm_l2()).abs() < 1e-9 * (1.0 + total));
                mu.iter().map(|x| 2.0 * x - x * x / largest).collect()
            };
            reduction.apply_function(reduced.as_ref(), result.as_mut(), f).unwrap();
            result
        };
        let result = applied();
        let error = (&result - &expected).norm_max() / (1.0 + expected.norm_max());
        assert!(error < 1e-12 * n as f64, "n = {n}: {error:e}");
        assert_eq!(result, applied(), "a reduction gives the same result again");
        let alone = eigenvalues(a.clone().as_mut()).unwrap();
        assert!(alone.iter().zip(&sorted).all(|(x, y)| (x - y).abs() < 1e-12 * n as f64 * largest));
    }

    #[test]
    fn a_function_of_a_matrix_needs_no_eigenvectors() {
        check(&[3.0], 2);
        check(&[2.0, -1.0], 9);
        check(&(0..50).map(|i| i as f64).collect::<Vec<_>>(), 8);
        check(&(0..300).map(|i| 10f64.powf(11.0 - i as f64 / 20.0)).collect::<Vec<_>>(), 3);
    }

    #[test]
    fn repeated_and_zero_eigenvalues_are_no_trouble() {
        check(&[0.0; 20], 4);
        check(&[1.0; 70], 4);
        check(&(0..100).map(|i| (i / 40) as f64).collect::<Vec<_>>(), 20);
        let mut diagonal = Mat::<f64>::zeros(4, 4);
        diagonal[(2, 2)] = 5.0;
        assert_eq!(eigenvalues(diagonal.as_mut()).unwrap(), [5.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn several_segments_give_the_same_as_one() {
        // More rotations than one segment holds.
        check(&(0..1300).map(|i| 1.0 + (i as f64 * 0.7).sin()).collect::<Vec<_>>(), 2);
    }

    #[test]
    fn an_empty_matrix_and_no_rows_are_no_trouble() {
        for (n, rows) in [(0, 3), (40, 0)] {
            let mut a = Mat::<f64>::identity(n, n);
            let reduction = Reduced::new(a.as_mut());
            let applied = reduction.apply_function(a.as_ref(), Mat::zeros(rows, n).as_mut(), |_, _| Vec::new());
            assert_eq!(applied, Ok(()));
        }
    }

    #[test]
    fn nan_is_an_error_and_not_a_loop() {
        let mut a = Mat::<f64>::identity(5, 5);
        a[(3, 1)] = f64::NAN;
        assert_eq!(eigenvalues(a.as_mut()), Err(NoConvergence));
    }
}
