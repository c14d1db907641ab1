//! The samples that a capped model keeps: greedy pivots of a Cholesky factorisation of K, which is never stored.
//!
//! ```text
//! K = F' F + R,   F  k x n, upper triangular on the k chosen samples       R  the residual: zero on the chosen samples
//! ```
//!
//! A sample that is not chosen costs `M_ii R_ii`: the energy that it stands for outside the span of the chosen ones. The
//! next pivot is the sample with the largest cost. Samples with large costs are proposed in blocks, so that all work of
//! size n is products: the rows of R of the proposed samples are computed at once, and those are accepted, one after the
//! other, that cost more than all samples outside of the block. These are the pivots that would be chosen one at a time.
//! `n k^2 - 2/3 k^3` flops, if every proposed sample is accepted.

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::perm::swap_cols_idx;
use faer::{Accum, Mat, MatRef};
use rayon::prelude::*;

use crate::lift::Polar;
use crate::linalg::{par, product, transposed};

/// Samples proposed at a time.
const BLOCK: usize = 128;

/// Samples for which rows of R are computed at a time by a thread.
const COLUMNS: usize = 256;

/// The chosen samples, and the factor. Everything is in the order of `order`.
pub(super) struct Choice {
    /// The chosen samples in the order in which they were chosen, then the others.
    order: Vec<usize>,
    samples: Polar,
    /// The diagonal of M.
    mass: Vec<f64>,
    /// The diagonal of R.
    residual: Vec<f64>,
    /// F.
    factor: Mat<f64>,
    /// k.
    chosen: usize,
}

/// The samples that leave, in terms of those that stay.
pub(super) struct Projection {
    /// B: coefficients of each leaving sample (a row) on those that stay, both in ascending order.
    pub coefficients: Mat<f64>,
    /// R of the leaving samples that stand for others.
    pub old: Mat<f64>,
    /// The trace of R of the others.
    pub new: f64,
}

/// Chooses at most `most` samples; fewer if the others add no more than rounding to their span.
pub(super) fn choose(samples: Polar, mass: Vec<f64>, most: usize) -> Choice {
    let n = samples.len();
    let residual: Vec<f64> = samples.energies().collect();
    let rounding = n as f64 * f64::EPSILON * residual.iter().copied().fold(0.0, f64::max);
    let factor = Mat::zeros(most.min(n), n);
    let mut choice = Choice { order: (0..n).collect(), samples, mass, residual, factor, chosen: 0 };
    while choice.chosen < choice.factor.nrows() && choice.step(rounding) {}
    choice
}

impl Choice {
    /// Returns which samples stay: the chosen ones, or any if none has energy.
    pub fn stay(&self) -> Vec<bool> {
        let mut stay = vec![false; self.order.len()];
        self.order.iter().take(self.chosen.max(1)).for_each(|i| stay[*i] = true);
        stay
    }

    /// Returns the projections of the leaving samples, of which those before `old` stand for others.
    pub fn projection(self, old: usize) -> Projection {
        let Choice { order, samples, residual, factor, chosen: k, .. } = self;
        let mut leaving: Vec<usize> = (k.max(1)..order.len()).collect();
        leaving.sort_unstable_by_key(|place| order[*place]);
        let (first, others) = leaving.split_at(leaving.partition_point(|place| order[*place] < old));
        let mut part = Mat::zeros(k, leaving.len());
        part.par_col_iter_mut().zip(&leaving).for_each(|(mut column, place)| {
            column.copy_from(factor.col(*place).subrows(0, k));
        });
        let known = part.as_ref().subcols(0, first.len());
        let mut gram = Mat::zeros(first.len(), first.len());
        samples.select(first).kernel(0..first.len(), 0..first.len(), gram.as_mut());
        gram -= product(known.transpose(), known);
        solve_upper_triangular_in_place(factor.as_ref().submatrix(0, 0, k, k), part.as_mut(), par());
        drop(factor);
        // Columns in the order of the samples.
        let mut places: Vec<usize> = (0..k).collect();
        places.sort_unstable_by_key(|place| order[*place]);
        let chosen: Mat<f64> = transposed(part.as_ref());
        let mut coefficients = Mat::zeros(leaving.len(), k.max(1));
        coefficients.par_col_iter_mut().zip(places).for_each(|(mut column, place)| column.copy_from(chosen.col(place)));
        Projection { coefficients, old: gram, new: others.iter().map(|place| residual[*place].max(0.0)).sum() }
    }

    /// Chooses samples of a block; returns whether there were any.
    fn step(&mut self, rounding: f64) -> bool {
        let (first, n) = (self.chosen, self.order.len());
        let (size, outside) = self.propose(rounding);
        let rows = self.residual_rows(size);
        let room = self.factor.nrows() - first;
        let own = first..first + size;
        let cost = |i: usize, residual: f64| cost(self.mass[first + i], residual, rounding);
        let (accepted, columns) = accept(rows.as_ref().subcols(0, size), &self.residual[own], cost, outside, room);
        let a = accepted.len();
        // R of the accepted samples is L L', and their rows of F are L^-1 R.
        let l = Mat::from_fn(a, a, |i, j| if i >= j { columns[j][accepted[i]] } else { 0.0 });
        let mut new = Mat::zeros(a, n - first);
        new.par_col_iter_mut().zip(rows.par_col_iter()).for_each(|(new, row)| {
            new.iter_mut().zip(&accepted).for_each(|(value, i)| *value = row[*i]);
        });
        solve_lower_triangular_in_place(l.as_ref(), new.as_mut(), par());
        self.residual[first..]
            .par_iter_mut()
            .zip(new.par_col_iter())
            .for_each(|(r, column)| *r -= column.squared_norm_l2());
        self.factor.as_mut().submatrix_mut(first, first, a, n - first).copy_from(&new);
        self.chosen += a;
        let mut places: Vec<usize> = (0..size).collect();
        for (place, i) in accepted.into_iter().enumerate() {
            let from = places.iter().position(|other| *other == i).unwrap_or(place);
            places.swap(place, from);
            self.exchange(first + place, first + from);
            // What is left of them is rounding.
            self.residual[first + place] = 0.0;
            self.factor.as_mut().col_mut(first + place).subrows_mut(first + place + 1, a - place - 1).fill(0.0);
        }
        a > 0
    }

    /// Moves the samples with the largest costs to the front of those that are not chosen. Returns how many, and the
    /// largest cost of the others.
    fn propose(&mut self, rounding: f64) -> (usize, f64) {
        let first = self.chosen;
        let cost = |place: &usize| cost(self.mass[*place], self.residual[*place], rounding);
        // At equal costs, the sample that was learned first.
        let order = |a: &usize, b: &usize| cost(b).total_cmp(&cost(a)).then(self.order[*a].cmp(&self.order[*b]));
        let mut places: Vec<usize> = (first..self.order.len()).collect();
        let size = BLOCK.min(places.len());
        let mut outside = 0.0;
        if size < places.len() {
            let (_, next, _) = places.select_nth_unstable_by(size, order);
            outside = cost(next);
            places.truncate(size);
        }
        places.sort_unstable();
        places.into_iter().enumerate().for_each(|(i, place)| self.exchange(first + i, place));
        (size, outside)
    }

    /// Computes the rows of R of the first samples that are not chosen.
    fn residual_rows(&self, size: usize) -> Mat<f64> {
        let (first, n) = (self.chosen, self.order.len());
        let proposed = self.samples.select(&(first..first + size).collect::<Vec<_>>());
        let mut rows = Mat::<f64>::zeros(size, n - first);
        rows.par_col_chunks_mut(COLUMNS).enumerate().for_each(|(j, mut out)| {
            let columns = first + j * COLUMNS..first + j * COLUMNS + out.ncols();
            proposed.tile(0..size, &self.samples, columns.clone(), out.as_mut());
            for (column, length) in out.col_iter_mut().zip(&self.samples.lengths()[columns]) {
                column.iter_mut().zip(proposed.lengths()).for_each(|(value, other)| *value *= length * other);
            }
        });
        let known = self.factor.as_ref().subrows(0, first);
        let (own, all) = (known.subcols(first, size), known.subcols(first, n - first));
        matmul(&mut rows, Accum::Add, own.transpose(), all, -1.0, par());
        rows
    }

    fn exchange(&mut self, a: usize, b: usize) {
        self.order.swap(a, b);
        self.mass.swap(a, b);
        self.residual.swap(a, b);
        self.samples.swap(a, b);
        swap_cols_idx(self.factor.as_mut().subrows_mut(0, self.chosen), a, b);
    }
}

/// Returns what it costs to let a sample go: nothing, if it adds no more than rounding to the span of the chosen ones.
fn cost(mass: f64, residual: f64, rounding: f64) -> f64 {
    if residual > rounding { mass * residual } else { 0.0 }
}

/// Chooses at most `most` pivots of a block of R one after the other, the largest cost first, as long as they cost
/// something, and as much as the samples outside. Returns them with the columns of the factor.
fn accept(
    block: MatRef<'_, f64>,
    residual: &[f64],
    cost: impl Fn(usize, f64) -> f64,
    outside: f64,
    most: usize,
) -> (Vec<usize>, Vec<Vec<f64>>) {
    let mut residual = residual.to_vec();
    let (mut accepted, mut columns) = (Vec::new(), Vec::<Vec<f64>>::new());
    while accepted.len() < most.min(residual.len()) {
        let (mut pivot, mut largest) = (0, 0.0);
        for (i, residual) in residual.iter().enumerate().filter(|(i, _)| !accepted.contains(i)) {
            if cost(i, *residual) > largest {
                (pivot, largest) = (i, cost(i, *residual));
            }
        }
        if largest == 0.0 || largest < outside {
            break;
        }
        let root = residual[pivot].sqrt();
        let mut column: Vec<f64> = block.col(pivot).iter().copied().collect();
        for earlier in &columns {
            let factor = earlier[pivot];
            column.iter_mut().zip(earlier).for_each(|(value, other)| *value -= factor * other);
        }
        column.iter_mut().for_each(|value| *value /= root);
        column[pivot] = root;
        residual.iter_mut().zip(&column).for_each(|(residual, value)| *residual -= value * value);
        accepted.push(pivot);
        columns.push(column);
    }
    (accepted, columns)
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use faer::prelude::Solve;

    use super::*;

    const DIM: usize = 12;

    fn numbers(count: usize) -> Vec<f32> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    fn polar(x: &[f32]) -> Polar {
        Polar::new(MatRef::from_column_major_slice(x, DIM, x.len() / DIM))
    }

    /// The kernel, literally.
    fn kernel(x: &[f32]) -> Mat<f64> {
        let row = |i: usize| x[i * DIM..(i + 1) * DIM].iter().map(|v| f64::from(*v));
        let dot = |i: usize, j: usize| row(i).zip(row(j)).map(|(a, b)| a * b).sum::<f64>();
        Mat::from_fn(x.len() / DIM, x.len() / DIM, |i, j| {
            let lengths = (dot(i, i) * dot(j, j)).sqrt();
            if lengths == 0.0 {
                return 0.0;
            }
            let t = (dot(i, j) / lengths).clamp(-1.0, 1.0).acos();
            lengths * (t.sin() + (PI - t) * t.cos()) / (2.0 * PI)
        })
    }

    /// Chooses one sample at a time, and subtracts it from all of K.
    fn one_at_a_time(mut k: Mat<f64>, mass: &[f64], most: usize) -> Vec<usize> {
        let mut chosen: Vec<usize> = Vec::new();
        while chosen.len() < most {
            let others = (0..mass.len()).filter(|i| !chosen.contains(i));
            let pivot = others.max_by(|a, b| (mass[*a] * k[(*a, *a)]).total_cmp(&(mass[*b] * k[(*b, *b)]))).unwrap();
            let column = k.col(pivot).to_owned();
            let own = column[pivot];
            k -= (&column * column.transpose()) * faer::Scale(1.0 / own);
            chosen.push(pivot);
        }
        chosen
    }

    fn at(k: &Mat<f64>, rows: &[usize], columns: &[usize]) -> Mat<f64> {
        Mat::from_fn(rows.len(), columns.len(), |i, j| k[(rows[i], columns[j])])
    }

    /// Checks the projections against a solution in double precision.
    fn check(choice: Choice, k: &Mat<f64>, old: usize) {
        let stay = choice.stay();
        let (keep, leave): (Vec<usize>, Vec<usize>) = (0..stay.len()).partition(|i| stay[*i]);
        let Projection { coefficients, old: residual, new } = choice.projection(old);
        let between = at(k, &leave, &keep);
        let expected = at(k, &keep, &keep).full_piv_lu().solve(between.transpose()).transpose().to_owned();
        assert!((&coefficients - &expected).norm_max() < 1e-8);
        let rest = at(k, &leave, &leave) - &expected * between.transpose();
        let first = leave.iter().filter(|i| **i < old).count();
        assert!((residual - rest.as_ref().submatrix(0, 0, first, first)).norm_max() < 1e-10);
        let trace: f64 = (first..leave.len()).map(|i| rest[(i, i)]).sum();
        assert!((new - trace).abs() < 1e-10);
    }

    #[test]
    fn blocks_choose_the_samples_that_one_at_a_time_would_choose() {
        let x = numbers(420 * DIM);
        let k = kernel(&x);
        for heavy in [1.0, 30.0] {
            let mass: Vec<f64> = (0..420).map(|i| if i % 7 == 0 { heavy } else { 1.0 }).collect();
            for most in [1, 127, 128, 129, 340] {
                let choice = choose(polar(&x), mass.clone(), most);
                assert_eq!(choice.order[..most], one_at_a_time(k.clone(), &mass, most), "{heavy} {most}");
                check(choice, &k, 200);
            }
        }
    }

    #[test]
    fn samples_that_add_nothing_are_not_chosen() {
        let mut x = numbers(300 * DIM);
        x.extend_from_within(..60 * DIM);
        x.extend([0.0; 5 * DIM]);
        let choice = choose(polar(&x), vec![1.0; 365], 320);
        assert_eq!(choice.chosen, 300);
        let lost: f64 = choice.residual.iter().sum();
        assert!(lost < 1e-10, "{lost}");
        check(choice, &kernel(&x), 100);
        // One stays, although none adds anything.
        let choice = choose(polar(&[0.0; 9 * DIM]), vec![1.0; 9], 4);
        assert_eq!(choice.stay().iter().filter(|stays| **stays).count(), 1);
        let Projection { coefficients, old, new } = choice.projection(3);
        assert_eq!((coefficients, old.norm_max(), new), (Mat::zeros(8, 1), 0.0, 0.0));
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let x = numbers(700 * DIM);
        let mass: Vec<f64> = (0..700).map(|i| 1.0 + (i % 5) as f64).collect();
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let choice = choose(polar(&x), mass.clone(), 500);
                let stay = choice.stay();
                (stay, choice.projection(300))
            })
        };
        let ((one, a), (three, b)) = (on(1), on(3));
        assert_eq!(one, three);
        assert_eq!((a.coefficients, a.old, a.new), (b.coefficients, b.old, b.new));
    }
}
