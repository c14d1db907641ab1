//! A basis that is compressed again and again gives what the same cuts of `H H'` give in f64.

mod common;

use common::*;
use faer::Mat;
use loranpac::filter::solve;
use loranpac::internals::{Scalar, Statistics};
use loranpac::{Filter, Ridge, Truncation};

const CLASSES: usize = 6;
/// Of scores in single precision, twice what was seen (without compressions, 1e-4 is kept).
const SINGLE: f64 = 4e-4;

/// `H H' = U diag(sigma)^2 U'` of everything learned, cut to `cap` directions whenever it has more than `most`; and J.
struct Literal {
    u: Mat<f64>,
    sigma: Vec<f64>,
    j: Mat<f64>,
    lost: f64,
    cuts: usize,
}

impl Literal {
    fn learn(&mut self, h: &Mat<f64>, y: &[usize], cap: usize, most: usize) {
        self.j += one_hot(y, CLASSES) * h.transpose();
        let old = self.sigma.len();
        let all = Mat::from_fn(h.nrows(), old + h.ncols(), |i, j| match j.checked_sub(old) {
            Some(j) => h[(i, j)],
            None => self.u[(i, j)] * self.sigma[j],
        });
        let (u, mut sigma) = truncated_svd(&all, usize::MAX);
        // Duplicates add no direction.
        let rank = sigma.iter().take_while(|value| **value > 1e-6 * sigma[0]).count();
        sigma.truncate(rank);
        if rank > most {
            self.lost += sigma[cap].powi(2);
            self.cuts += 1;
            sigma.truncate(cap);
        }
        self.u = u.subcols(0, sigma.len()).to_owned();
        self.sigma = sigma;
    }

    /// W, E x c.
    fn weights(&self, filter: Filter) -> Mat<f64> {
        let mu: Vec<f64> = self.sigma.iter().map(|value| value * value).collect();
        let weight: Vec<f64> = match filter {
            Filter::Hard { truncation, .. } => {
                let kept = truncation.kept(&mu, self.u.nrows(), mu.len(), usize::MAX);
                (0..mu.len()).map(|j| if j < kept { 1.0 / mu[j] } else { 0.0 }).collect()
            }
            Filter::Soft(_) => {
                let ridge = (mu.iter().map(|value| value.ln()).sum::<f64>() / mu.len() as f64).exp();
                mu.iter().map(|value| 1.0 / (value + ridge)).collect()
            }
        };
        let turned = self.u.transpose() * self.j.transpose();
        &self.u * Mat::from_fn(turned.nrows(), CLASSES, |i, j| turned[(i, j)] * weight[i])
    }
}

fn check<T: Scalar>(name: &str, tasks: &[(Mat<f64>, Vec<usize>)], cap: usize, most: usize, tolerance: f64) {
    let width = tasks[0].0.nrows();
    let mut stats = Statistics::<T>::new(width, 20.0);
    let (u, j) = (Mat::zeros(width, 0), Mat::zeros(CLASSES, width));
    let mut literal = Literal { u, sigma: Vec::new(), j, lost: 0.0, cuts: 0 };
    for (h, y) in tasks {
        absorb(&mut stats, h, y);
        literal.learn(h, y, cap, most);
        if stats.basis().rank() > most {
            stats.compress(cap).unwrap();
        }
        assert_eq!(stats.basis().rank(), literal.sigma.len(), "{name}");
    }
    assert!(literal.cuts > 2, "{name}: {} compressions", literal.cuts);
    assert_eq!((stats.losses().cuts, stats.losses().capped > 0), (literal.cuts, true));
    let off = stats.losses().lost / literal.lost - 1.0;
    assert!(off.abs() < 100.0 * tolerance, "{name}: lost is off by {off:e}");
    let fresh = stream(77, width, &[60], CLASSES).remove(0).0;
    for filter in [
        Filter::Soft(Ridge::GeometricMean),
        Filter::Hard { truncation: Truncation::Rank(cap), ridge: 0.0 },
        Filter::Hard { truncation: Truncation::Rank(cap / 2), ridge: 0.0 },
    ] {
        let solution = solve(&mut stats, filter, usize::MAX).unwrap();
        let w = stats.expand(solution.coefficients.as_ref());
        let w = Mat::from_fn(width, CLASSES, |i, j| w[(i, j)].to_f64());
        let exact = literal.weights(filter).transpose() * &fresh;
        let apart = (w.transpose() * &fresh - &exact).norm_max() / exact.norm_max();
        println!("{name}, {filter:?}: {} cuts, scores {apart:.1e}, lost {off:.1e}", literal.cuts);
        assert!(apart < tolerance, "{name}, {filter:?}: scores are off by {apart:e}");
    }
}

#[test]
fn the_classifier_is_that_of_the_same_cuts_in_double_precision() {
    let tasks = stream(21, 500, &[30; 20], CLASSES);
    check::<f64>("double", &tasks, 90, 144, 1e-9);
    check::<f32>("single", &tasks, 90, 144, SINGLE);
    let uneven = stream(22, 450, &[120, 1, 70, 3, 90, 150, 1, 1, 60, 44], CLASSES);
    check::<f32>("tasks of any size", &uneven, 100, 160, SINGLE);
}

#[test]
fn duplicates_and_widths_close_to_the_number_of_samples_are_no_trouble() {
    let mut tasks = stream(23, 400, &[60; 8], CLASSES);
    for at in [2, 5] {
        let (h, y) = tasks[at].clone();
        tasks[at + 1] = (Mat::from_fn(400, 60, |i, j| h[(i, j / 2)]), (0..60).map(|j| y[j / 2]).collect());
    }
    check::<f32>("duplicates", &tasks, 90, 144, SINGLE);
    for width in [290, 300, 310] {
        check::<f32>(&format!("E = {width}, M = 300"), &stream(24, width, &[20; 15], CLASSES), 80, 120, SINGLE);
    }
}

#[test]
fn features_of_any_scale_are_cut_alike() {
    for scale in [1e-12, 1e12] {
        let mut tasks = stream(25, 300, &[25; 12], CLASSES);
        let times = |h: &Mat<f64>| Mat::from_fn(h.nrows(), h.ncols(), |i, j| (h[(i, j)] * scale) as f32 as f64);
        tasks.iter_mut().for_each(|(h, _)| *h = times(h));
        check::<f32>(&format!("scale {scale:e}"), &tasks, 70, 110, SINGLE);
    }
}
