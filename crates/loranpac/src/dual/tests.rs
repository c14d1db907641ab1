//! The solution between many samples against independent computations in double precision.

use std::f64::consts::PI;

use faer::prelude::Solve;
use faer::{Mat, MatRef, Side};

use super::*;

/// Samples around a few directions, the class of each, and numbers in [-1, 1) to change them with.
struct Data {
    dim: usize,
    x: Vec<f32>,
    classes: Vec<usize>,
    state: u64,
}

impl Data {
    fn new(n: usize, dim: usize, count: usize) -> Self {
        let mut data = Data { dim, x: Vec::new(), classes: (0..n).map(|i| i * 7 % count).collect(), state: 1 };
        let centres: Vec<f32> = (0..dim * count).map(|_| data.random()).collect();
        for i in 0..n {
            let centre = &centres[data.classes[i] * dim..][..dim];
            let row: Vec<f32> = centre.iter().map(|v| 0.3 + v + 1.5 * data.random()).collect();
            data.x.extend(row);
        }
        data
    }

    fn random(&mut self) -> f32 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    /// Appends a multiple of sample `i` with noise.
    fn repeat(&mut self, i: usize, scale: f32, noise: f32) {
        let row: Vec<f32> = self.x[i * self.dim..(i + 1) * self.dim].to_vec();
        let row: Vec<f32> = row.into_iter().map(|v| scale * (v + noise * self.random())).collect();
        self.x.extend(row);
        self.classes.push(self.classes[i]);
    }

    fn polar(&self) -> Polar {
        Polar::new(MatRef::from_column_major_slice(&self.x, self.dim, self.classes.len()))
    }

    /// The kernel between all samples and those from `first` on, literally.
    fn kernel(&self) -> Mat<f64> {
        let n = self.classes.len();
        let row = |i: usize| self.x[i * self.dim..(i + 1) * self.dim].iter().map(|v| f64::from(*v));
        let dot = |i: usize, j: usize| row(i).zip(row(j)).map(|(a, b)| a * b).sum::<f64>();
        let lengths: Vec<f64> = (0..n).map(|i| dot(i, i).sqrt()).collect();
        Mat::from_fn(n, n, |i, j| {
            let product = lengths[i] * lengths[j];
            if product == 0.0 {
                return 0.0;
            }
            let t = if i == j { 0.0 } else { (dot(i, j) / product).clamp(-1.0, 1.0).acos() };
            product * (t.sin() + (PI - t) * t.cos()) / (2.0 * PI)
        })
    }

    /// Compares the ridge and all scores of the samples with a solution in double precision. `ridge` is None for the
    /// geometric mean of the eigenvalues above rounding.
    fn check(&self, ridge: Option<f64>) {
        self.check_weighted(ridge, None);
    }

    /// The same for weighted samples: `D^1/2 K D^1/2`, with the coefficients of samples multiplied by the roots of weights.
    fn check_weighted(&self, ridge: Option<f64>, weights: Option<&[f64]>) {
        let (n, count) = (self.classes.len(), self.classes.iter().max().unwrap() + 1);
        let weight = |i: usize| weights.map_or(1.0, |weights| weights[i]);
        let roots: Vec<f64> = (0..n).map(|i| weight(i).sqrt()).collect();
        let mass: f64 = (0..n).map(weight).sum();
        let mut k = self.kernel();
        (0..n).for_each(|j| (0..n).for_each(|i| k[(i, j)] *= roots[i] * roots[j]));
        let expected = ridge.unwrap_or_else(|| {
            let values = k.self_adjoint_eigenvalues(Side::Lower).unwrap();
            let above: Vec<f64> = values.iter().copied().filter(|v| *v > 1e-14 * values[n - 1]).collect();
            (above.iter().map(|v| v.ln()).sum::<f64>() / above.len() as f64).exp()
        });
        let filter = ridge.map_or(Ridge::GeometricMean, Ridge::Fixed);
        let polar = self.polar().scaled(&roots);
        let Solution { coefficients, facts } = solve(&polar, &self.classes, count, filter, weights).unwrap().unwrap();
        assert!((facts.ridge / expected - 1.0).abs() < 2e-5, "lambda {} instead of {expected}", facts.ridge);
        let y = Mat::from_fn(count, n, |c, i| if self.classes[i] == c { roots[i] } else { 0.0 });
        let shifted = &k + Mat::<f64>::identity(n, n) * faer::Scale(expected);
        let a = shifted.partial_piv_lu().solve(y.transpose()).transpose().to_owned();
        let error = ((&coefficients - &a) * &k).norm_max();
        assert!(error < 1e-5, "scores are off by {error:e}");
        let residual = &a * &k - &y;
        assert!((facts.train_mse - residual.squared_norm_l2() / mass).abs() < 1e-6);
        let inverse = shifted.partial_piv_lu().solve(Mat::<f64>::identity(n, n));
        let right = (0..n).filter(|&i| {
            let score = |c: usize| y[(c, i)] - a[(c, i)] / inverse[(i, i)];
            (0..count).all(|c| c == self.classes[i] || score(c) < score(self.classes[i]))
        });
        // Single precision may decide a tie differently.
        let off = facts.leave_one_out.unwrap() - right.map(weight).sum::<f64>() / mass;
        assert!(
            off.abs() < 2.5 * (0..n).map(weight).fold(0.0, f64::max) / mass,
            "leave-one-out accuracy is off by {off}"
        );
    }
}

#[test]
fn the_solution_is_that_of_double_precision() {
    // Within a tile, a whole number of tiles, and one row more.
    for n in [300, 1024, 1025] {
        Data::new(n, 24, 5).check(None);
    }
    Data::new(700, 24, 5).check(Some(0.3));
    Data::new(600, 24, 1).check(None);
    Data::new(600, 24, 90).check(None);
}

#[test]
fn weighted_samples_have_the_solution_of_double_precision() {
    for (n, ridge) in [(300, None), (1025, None), (700, Some(0.3))] {
        let weights: Vec<f64> = (0..n).map(|i| [0.2, 1.0, 3.0, 10.0][i * 5 % 4]).collect();
        Data::new(n, 24, 5).check_weighted(ridge, Some(&weights));
    }
    // Copies with weights of their own.
    let mut data = Data::new(600, 24, 4);
    (0..80).for_each(|i| data.repeat(7 * i, 1.0, 0.0));
    let weights: Vec<f64> = (0..680).map(|i| 0.5 + (i % 3) as f64).collect();
    data.check_weighted(None, Some(&weights));
}

#[test]
fn copies_and_multiples_of_samples_count_as_one_direction() {
    // The opposites differ from other samples by linear functions, of which there are 24.
    let mut data = Data::new(900, 24, 4);
    (0..120).for_each(|i| data.repeat(7 * i, 1.0, 0.0));
    (0..40).for_each(|i| data.repeat(7 * i, 2.0, 0.0));
    (0..40).for_each(|i| data.repeat(20 * i, -3.0, 0.0));
    data.check(None);
}

#[test]
fn samples_that_are_almost_copies_are_resolved_in_double_precision() {
    let mut data = Data::new(800, 24, 4);
    for noise in [1e-3, 1e-4] {
        (0..30).for_each(|i| data.repeat(11 * i, 1.0, noise));
    }
    // A copy of one of these.
    (0..5).for_each(|i| data.repeat(830 + i, 1.0, 0.0));
    data.check(None);
}

/// The features of x and -x differ by a linear function of x.
#[test]
fn samples_may_depend_on_several_others() {
    let mut data = Data::new(500, 24, 4);
    // Sums of numbers with few bits are exact.
    data.x.iter_mut().for_each(|v| *v = (*v * 64.0).round() / 64.0);
    for i in 0..10 {
        let (a, b) = (2 * i, 2 * i + 1);
        let sum: Vec<f32> = (0..24).map(|j| data.x[a * 24 + j] + data.x[b * 24 + j]).collect();
        data.x.extend(sum);
        data.classes.push(i % 4);
        for of in [a, b, data.classes.len() - 1] {
            data.repeat(of, -1.0, 0.0);
        }
        // A copy of the dependent sample.
        data.repeat(data.classes.len() - 1, 2.0, 0.0);
    }
    data.check(None);
}

#[test]
fn samples_without_features_take_no_part() {
    let mut data = Data::new(600, 24, 4);
    (0..5).for_each(|i| data.repeat(100 * i, 0.0, 0.0));
    data.check(None);
    data.check(Some(0.1));
    // Nothing else.
    let mut data = Data::new(9, 24, 3);
    data.x.fill(0.0);
    let polar = data.polar();
    assert!(solve(&polar, &data.classes, 3, Ridge::GeometricMean, None).unwrap().is_none());
    let Solution { coefficients, facts } = solve(&polar, &data.classes, 3, Ridge::Fixed(0.5), None).unwrap().unwrap();
    let expected = Mat::from_fn(3, 9, |c, i| if data.classes[i] == c { 2.0 } else { 0.0 });
    assert!((coefficients - expected).norm_max() < 1e-6);
    assert!((facts.train_mse - 1.0).abs() < 1e-6);
}

#[test]
fn one_sample_is_enough() {
    Data::new(1, 24, 1).check(None);
    Data::new(1, 24, 1).check(Some(0.7));
}

#[test]
fn a_ridge_may_exceed_the_energy_of_all_samples() {
    let data = Data::new(40, 24, 2);
    for ridge in [1e3, 1e13, 1e20] {
        let facts = solve(&data.polar(), &data.classes, 2, Ridge::Fixed(ridge), None).unwrap().unwrap().facts;
        let (k, y) = (data.kernel(), Mat::from_fn(2, 40, |c, i| f64::from(u8::from(data.classes[i] == c))));
        let shifted = k + Mat::<f64>::identity(40, 40) * faer::Scale(ridge);
        let residual = shifted.partial_piv_lu().solve(y.transpose()) * faer::Scale(ridge);
        assert!((facts.train_mse - residual.squared_norm_l2() / 40.0).abs() < 1e-6, "{ridge:e}");
    }
}

#[test]
fn lengths_may_differ_by_orders_of_magnitude() {
    let mut data = Data::new(700, 24, 4);
    for (i, row) in data.x.chunks_exact_mut(24).enumerate() {
        let scale = 10f32.powi(i as i32 % 5 - 2);
        row.iter_mut().for_each(|v| *v *= scale);
    }
    data.check(None);
    for scale in [1e-12, 1e11] {
        let mut data = Data::new(600, 24, 4);
        data.x.iter_mut().for_each(|v| *v *= scale);
        data.check(None);
    }
}

#[test]
fn a_ridge_that_single_precision_cannot_resolve_is_left_to_double_precision() {
    let mut data = Data::new(600, 24, 4);
    (0..50).for_each(|i| data.repeat(7 * i, 1.0, 0.0));
    assert!(solve(&data.polar(), &data.classes, 4, Ridge::Fixed(1e-9), None).unwrap().is_none());
    // Two features: the kernel matrix has far less eigenvalues than rows.
    let flat = Data::new(1200, 2, 4);
    assert!(solve(&flat.polar(), &flat.classes, 4, Ridge::GeometricMean, None).unwrap().is_none());
}

#[test]
fn what_lies_outside_is_that_of_double_precision() {
    let data = Data::new(600, 24, 5);
    let (ridge, m) = (0.05, 40);
    let k = data.kernel();
    let kept = Data { x: data.x[m * 24..].to_vec(), classes: data.classes[m..].to_vec(), ..data };
    let n = kept.classes.len();
    let known = Mat::from_fn(n, m, |i, j| k[(m + i, j)]);
    let energies: Vec<f64> = (0..m).map(|j| k[(j, j)]).collect();
    let shares = Outside::new(&kept.polar(), ridge).unwrap().unwrap().shares(known.clone(), &energies);
    let shifted = Mat::from_fn(n, n, |i, j| k[(m + i, m + j)] + if i == j { ridge } else { 0.0 });
    let inside = shifted.partial_piv_lu().solve(&known);
    for (j, share) in shares.into_iter().enumerate() {
        let expected = 1.0 - (known.col(j).transpose() * inside.col(j)) / energies[j];
        assert!((share - expected).abs() < 1e-5, "{share} {expected}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let mut data = Data::new(1300, 24, 5);
    (0..20).for_each(|i| data.repeat(11 * i, 1.0, 1e-4));
    let solve = || solve(&data.polar(), &data.classes, 5, Ridge::GeometricMean, None).unwrap().unwrap();
    let on = |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(solve);
    let (one, three) = (on(1), on(3));
    assert_eq!(one.facts, three.facts);
    assert_eq!(one.coefficients, three.coefficients);
}

#[test]
fn estimates_decide_only_what_they_resolve() {
    // Some of the labels are wrong: many samples are decided by a hair.
    let mut data = Data::new(2300, 24, 5);
    (0..2300).step_by(4).for_each(|i| data.classes[i] = i % 3);
    let polar = data.polar();
    let shifted = Shifted::new(&polar, 0.1);
    let factor = || shifted.factor().unwrap().unwrap();
    let ones = vec![1.0; data.classes.len()];
    let x = shifted.coefficients(&factor(), &data.classes, 5, &ones, 1e-5).unwrap();
    let diagonal = factor().into_inverse_diagonal();
    let expected = (0..2300).filter(|&i| {
        let own = diagonal[i] * shifted.inverse[i].powi(2);
        let score = |c: usize| f64::from(u8::from(c == data.classes[i])) - x[(c, i)] / own;
        (0..5).all(|c| score(c) <= score(data.classes[i]))
    });
    let expected = expected.count();
    assert!((1000..2200).contains(&expected));
    let right = left_out::right(factor(), x.as_ref(), &data.classes, &shifted.inverse, &ones);
    assert_eq!(right.into_iter().filter(|right| *right).count(), expected);
}
