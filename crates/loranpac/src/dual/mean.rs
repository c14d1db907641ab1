//! The geometric mean of the nonzero eigenvalues of K, by a factor in single precision.
//!
//! Single precision resolves the component that a sample adds to the span of the others down to about 1e-6 of its
//! energy, times one plus the squared length of its coefficients on the others. Samples that add less are taken out of the
//! factor, and their part of the determinant is computed in double precision. With R the others, S the ones taken out and
//! `X = K_SR K_RR^-1`:
//!
//! ```text
//! det K = det K_RR det W,   W = K_SS - X K_RS = K_SS - X K_RS - (K_SR - X K_RR) X' + O(error of X, squared)
//! ```
//!
//! Samples of which W has rounding only are counted as `filter/geometric_mean` counts them, by `det(I + C C')`; copies of
//! another sample make that one longer.

use std::collections::HashMap;
use std::f64::consts::SQRT_2;

use faer::Mat;
use faer::linalg::triangular_solve::solve_upper_triangular_in_place;
use rayon::prelude::*;

use super::packed::{Packed, TILE, tiles};
use super::system::System;
use crate::error::Error;
use crate::lift::Polar;
use crate::linalg::{cholesky_lower, cholesky_of_independent, par, product};

/// Copies of another sample are taken out of the factor if they add no more than this share of their energy.
const RESOLVED: f64 = 2e-5;

/// Samples that add more than this share are resolved, whatever their coefficients are.
const CERTAIN: f64 = 1e-3;

/// How often samples are taken out of the factor.
const ROUNDS: usize = 3;

/// The most samples besides copies that may be taken out, or examined.
pub(super) const MOST: usize = 512;

/// Returns the geometric mean of the nonzero eigenvalues of K; None if single precision does not determine it.
pub(super) fn geometric_mean(samples: &Polar) -> Result<Option<f64>, Error> {
    let n = samples.len();
    let rounding = n as f64 * f64::EPSILON;
    // Correlations: samples of length 0 become rows of I.
    let scale: Vec<f64> = samples.lengths().iter().map(|length| if *length > 0.0 { SQRT_2 } else { 0.0 }).collect();
    let shift = scale.iter().map(|scale| if *scale > 0.0 { 0.0 } else { 1.0 }).collect();
    let mut system = System { samples, scale, shift };
    let Some((factor, out)) = resolved(&mut system)? else { return Ok(None) };
    let mut energies: Vec<f64> = samples.energies().collect();
    let taken = merge_copies(samples, &out, rounding, &mut energies);
    let stay = |i: &usize| system.scale[*i] > 0.0;
    let mut count = (0..n).filter(stay).count();
    let mut sum = factor.log_det() + (0..n).filter(stay).map(|i| energies[i].ln()).sum::<f64>();
    if !taken.is_empty() {
        if taken.len() > MOST {
            return Ok(None);
        }
        let (across, own) = between(&system, &taken);
        let Some((mut x, residual)) = system.solve(&factor, &across, rounding.sqrt() / 8.0) else { return Ok(None) };
        drop(factor);
        let mut w = own - product(x.as_ref(), across.transpose()) - product(residual.as_ref(), x.transpose());
        let independent = cholesky_of_independent(w.as_mut(), rounding, par());
        let (new, rest): (Vec<usize>, Vec<usize>) = (0..taken.len()).partition(|s| independent[*s]);
        count += new.len();
        sum += new.iter().map(|&s| 2.0 * w[(s, s)].ln() + energies[taken[s]].ln()).sum::<f64>();
        if !rest.is_empty() {
            sum += dependent(&system, &mut x, &w, &taken, &new, &rest, &energies)?;
        }
    }
    Ok((count > 0 && sum.is_finite()).then(|| (sum / count as f64).exp()))
}

/// Factorises the correlations of samples that single precision resolves. Returns the factor and the samples that are
/// taken out of it, and of the system, in ascending order; None if they are too many.
fn resolved(system: &mut System<'_>) -> Result<Option<(Packed, Vec<usize>)>, Error> {
    let mut out = Vec::new();
    for _ in 0..ROUNDS {
        let mut factor = system.packed()?;
        let dependent = factor.factorise_independent(RESOLVED);
        let Some(doubtful) = doubtful(&factor) else { break };
        for &i in dependent.iter().chain(&doubtful) {
            (system.scale[i], system.shift[i]) = (0.0, 1.0);
            out.push(i);
        }
        if doubtful.is_empty() {
            out.sort_unstable();
            return Ok(Some((factor, out)));
        }
    }
    Ok(None)
}

/// Returns the samples whose pivots may be rounding: errors of single precision grow with the squared length of the
/// coefficients on other samples. None if too many are to be examined.
fn doubtful(factor: &Packed) -> Option<Vec<usize>> {
    let small: Vec<(usize, f64)> = factor.pivots().enumerate().filter(|(_, pivot)| *pivot < CERTAIN).collect();
    if small.len() > MOST {
        return None;
    }
    let mut rows = Mat::<f32>::zeros(small.len(), factor.len());
    small.iter().enumerate().for_each(|(row, (i, _))| rows[(row, *i)] = 1.0);
    factor.solve(&mut rows);
    let doubts = small.into_iter().enumerate().filter(|(row, (i, pivot))| {
        let own = f64::from(rows[(*row, *i)]).powi(2);
        let all: f64 = rows.row(*row).iter().map(|v| f64::from(*v).powi(2)).sum();
        *pivot * own <= 0.5 * RESOLVED * all
    });
    Some(doubts.map(|(_, (i, _))| i).collect())
}

/// Adds the energy of copies to the sample that they are copies of, up to a factor; returns those in `out` that are no
/// copies of an earlier sample.
fn merge_copies(samples: &Polar, out: &[usize], rounding: f64, energies: &mut [f64]) -> Vec<usize> {
    const CLOSE: f64 = 1.0 - 1e-6;
    let closest = |&i: &usize| {
        let one = samples.select(&[i]);
        let mut cosines = Mat::<f64>::zeros(1, TILE.min(i));
        for range in tiles(i) {
            let mut cosines = cosines.as_mut().subcols_mut(0, range.len());
            one.cosines(0..1, samples, range.clone(), cosines.as_mut());
            let found = range.clone().find(|&j| {
                cosines[(0, j - range.start)] > CLOSE && energies[j] > 0.0 && samples.distance(i, j) <= rounding
            });
            if found.is_some() {
                return found;
            }
        }
        None
    };
    let firsts: Vec<Option<usize>> = out.par_iter().map(closest).collect();
    let (mut others, mut originals) = (Vec::new(), HashMap::new());
    for (&i, first) in out.iter().zip(firsts) {
        match first {
            Some(first) => {
                let original = *originals.get(&first).unwrap_or(&first);
                originals.insert(i, original);
                energies[original] += energies[i];
            }
            None => others.push(i),
        }
    }
    others
}

/// Returns the correlations of the samples taken out with those that stay (with zeros for the others), and with each
/// other.
fn between(system: &System<'_>, taken: &[usize]) -> (Mat<f64>, Mat<f64>) {
    let (samples, some) = (system.samples, system.samples.select(taken));
    let mut across = Mat::<f64>::zeros(taken.len(), samples.len());
    across.par_col_chunks_mut(TILE).enumerate().for_each(|(j, mut out)| {
        let columns = j * TILE..j * TILE + out.ncols();
        some.tile(0..taken.len(), samples, columns.clone(), out.as_mut());
        for (column, j) in out.col_iter_mut().zip(columns) {
            let scale = SQRT_2 * system.scale[j];
            column.iter_mut().for_each(|value| *value *= scale);
        }
    });
    let mut own = Mat::zeros(taken.len(), taken.len());
    some.tile(0..taken.len(), &some, 0..taken.len(), own.as_mut());
    own.col_iter_mut().flat_map(|column| column.iter_mut()).for_each(|value| *value *= 2.0);
    (0..taken.len()).for_each(|s| own[(s, s)] = 1.0);
    (across, own)
}

/// Returns `log det(I + C C')`, with C the coordinates of the samples `rest` in terms of those that stay and those in
/// `new`: all three as places in `taken`.
fn dependent(
    system: &System<'_>,
    x: &mut Mat<f64>,
    w: &Mat<f64>,
    taken: &[usize],
    new: &[usize],
    rest: &[usize],
    energies: &[f64],
) -> Result<f64, Error> {
    // Columns of the factor that belong to `rest` are those of I.
    let l = Mat::from_fn(new.len(), new.len(), |i, j| if i >= j { w[(new[i], new[j])] } else { 0.0 });
    // A row of L is the projection on the rows before it, which ends at the row itself.
    let place = |i: usize, j: usize| if new[j] < rest[i] { w[(rest[i], new[j])] } else { 0.0 };
    let mut c = Mat::from_fn(rest.len(), new.len(), place);
    solve_upper_triangular_in_place(l.transpose(), c.as_mut().transpose_mut(), par());
    let part = |rows: &[usize]| Mat::from_fn(rows.len(), x.ncols(), |i, j| x[(rows[i], j)]);
    let known = part(rest) - product(c.as_ref(), part(new).as_ref());
    let ratio = |i: usize, j: usize| (energies[taken[rest[i]]] / energies[j]).sqrt();
    let known =
        Mat::from_fn(
            rest.len(),
            x.ncols(),
            |i, j| {
                if system.scale[j] > 0.0 { known[(i, j)] * ratio(i, j) } else { 0.0 }
            },
        );
    let c = Mat::from_fn(rest.len(), new.len(), |i, j| c[(i, j)] * ratio(i, taken[new[j]]));
    let mut square = product(known.as_ref(), known.transpose()) + product(c.as_ref(), c.transpose());
    (0..rest.len()).for_each(|i| square[(i, i)] += 1.0);
    if !cholesky_lower(square.as_mut(), par()) {
        return Err(Error::NotPositiveDefinite { rank: rest.len(), ridge: 0.0 });
    }
    Ok((0..rest.len()).map(|i| 2.0 * square[(i, i)].ln()).sum())
}
