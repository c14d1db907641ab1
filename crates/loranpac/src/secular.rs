//! The eigenvalues of a diagonal matrix plus one of rank one: the roots of the secular equation
//!
//! ```text
//! f(mu) = 1 + rho sum over i of z_i^2 / (d_i - mu) = 0,     rho > 0
//! ```
//!
//! There is one root between neighbouring poles, and one above the last. A root is stored as its distance from the nearer
//! pole, so that its differences from all poles keep their relative accuracy.

use rayon::prelude::*;

/// A pole d_i with the weight z_i.
#[derive(Clone, Copy)]
pub(crate) struct Pole {
    pub at: f64,
    pub weight: f64,
}

/// A root, as the distance from a pole.
#[derive(Clone, Copy)]
pub(crate) struct Root {
    /// The pole.
    pub origin: usize,
    /// The root minus the pole.
    pub offset: f64,
}

/// Steps after which a root is as good as it gets; six are usual.
const MAX_STEPS: usize = 100;

/// Computes the roots, in ascending order, for poles in ascending order that all differ and have nonzero weights. Then
/// replaces the weights by those of which the computed roots are exact: eigenvectors from them are orthogonal.
pub(crate) fn roots(poles: &mut [Pole], rho: f64) -> Vec<Root> {
    let k = poles.len();
    let squares: Vec<f64> = poles.iter().map(|pole| pole.weight * pole.weight).collect();
    let total: f64 = squares.iter().sum();
    let known: &[Pole] = poles;
    let roots: Vec<Root> = (0..k)
        .into_par_iter()
        .map_init(|| vec![0.0; k], |shifted, j| root(known, &squares, rho, rho * total, j, shifted))
        .collect();
    // z_i^2 = prod over j of (mu_j - d_i) / prod over j != i of (d_j - d_i), up to rho
    let weights: Vec<f64> = (0..k)
        .into_par_iter()
        .map(|i| {
            let at = known[i].at;
            let distance = |root: &Root| (known[root.origin].at - at) + root.offset;
            let below = (0..i).map(|j| distance(&roots[j]) / (known[j].at - at));
            let above = (i + 1..k).map(|j| distance(&roots[j - 1]) / (known[j].at - at));
            let product: f64 = below.product::<f64>() * above.product::<f64>() * distance(&roots[k - 1]);
            product.abs().sqrt().copysign(known[i].weight)
        })
        .collect();
    poles.iter_mut().zip(weights).for_each(|(pole, weight)| pole.weight = weight);
    roots
}

/// The value of f / rho at a point, and the parts of its derivative from the poles up to some, and after.
struct Value {
    f: f64,
    below: f64,
    above: f64,
    /// The sum of the absolute values of the terms.
    size: f64,
}

/// Evaluates f / rho at `t` for poles that were shifted by the origin; the first `split` lie below the root.
fn evaluate(shifted: &[f64], squares: &[f64], inverse: f64, split: usize, t: f64) -> Value {
    let (lower, lower_slope) = sums(&shifted[..split], &squares[..split], t);
    let (upper, upper_slope) = sums(&shifted[split..], &squares[split..], t);
    Value {
        f: inverse + lower + upper,
        below: lower_slope,
        above: upper_slope,
        size: inverse + lower.abs() + upper.abs(),
    }
}

/// Returns the sums of `z^2 / (d - t)` and of `z^2 / (d - t)^2`, in parts that need not wait for each other.
fn sums(shifted: &[f64], squares: &[f64], t: f64) -> (f64, f64) {
    const LANES: usize = 8;
    let (mut values, mut slopes) = ([0.0f64; LANES], [0.0f64; LANES]);
    let (d, d_rest) = shifted.as_chunks::<LANES>();
    let (z, z_rest) = squares.as_chunks::<LANES>();
    for (d, z) in d.iter().zip(z) {
        for lane in 0..LANES {
            let inverse = 1.0 / (d[lane] - t);
            let term = z[lane] * inverse;
            values[lane] += term;
            slopes[lane] += term * inverse;
        }
    }
    for (lane, (d, z)) in d_rest.iter().zip(z_rest).enumerate() {
        let inverse = 1.0 / (d - t);
        values[lane] += z * inverse;
        slopes[lane] += z * inverse * inverse;
    }
    (values.iter().sum(), slopes.iter().sum())
}

/// Computes root j, between the poles j and j + 1. Each step replaces the poles on either side by one, with the right value
/// and derivative; a step that leaves the interval is replaced by its middle.
fn root(poles: &[Pole], squares: &[f64], rho: f64, reach: f64, j: usize, shifted: &mut [f64]) -> Root {
    let k = poles.len();
    let last = j + 1 == k;
    let gap = if last { reach } else { poles[j + 1].at - poles[j].at };
    let inverse = 1.0 / rho;
    let shift = |origin: usize, shifted: &mut [f64]| {
        shifted.iter_mut().zip(poles).for_each(|(shifted, pole)| *shifted = pole.at - poles[origin].at);
    };
    shift(j, shifted);
    let mut t = 0.5 * gap;
    let mut value = evaluate(shifted, squares, inverse, j + 1, t);
    let origin = if !last && value.f < 0.0 { j + 1 } else { j };
    // f increases from pole to pole.
    let (mut low, mut high) = match (origin == j, value.f < 0.0) {
        (false, _) => (-0.5 * gap, 0.0),
        (true, true) => (0.5 * gap, gap),
        (true, false) => (0.0, 0.5 * gap),
    };
    if origin != j {
        shift(origin, shifted);
        t = -0.5 * gap;
    }
    let noise = 2.0 * f64::EPSILON * (k as f64).sqrt().max(4.0);
    for _ in 0..MAX_STEPS {
        if value.f.abs() <= noise * value.size || high - low <= f64::EPSILON * t.abs() {
            break;
        }
        let left = shifted[j] - t;
        let step = if last {
            // c + s / (d_j - mu)
            let s = value.below * left * left;
            left + s / (value.f - s / left)
        } else {
            let right = shifted[j + 1] - t;
            let a = (left + right) * value.f - left * right * (value.below + value.above);
            let b = left * right * value.f;
            let c = value.f - left * value.below - right * value.above;
            let root = (a * a - 4.0 * b * c).max(0.0).sqrt();
            if a <= 0.0 { (a - root) / (2.0 * c) } else { 2.0 * b / (a + root) }
        };
        let next = t + step;
        t = if next > low && next < high { next } else { 0.5 * (low + high) };
        value = evaluate(shifted, squares, inverse, j + 1, t);
        if value.f < 0.0 {
            low = t;
        } else {
            high = t;
        }
    }
    Root { origin, offset: t }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_interlace_with_the_poles_and_solve_the_equation() {
        for (k, rho) in [(1, 2.0), (2, 1e-3), (40, 1.0), (333, 1e3)] {
            let mut poles: Vec<Pole> = (0..k)
                .map(|i| Pole { at: i as f64 + 0.3 * (i as f64).sin(), weight: ((i * 37 % 11) as f64 - 5.5) / 10.0 })
                .collect();
            let given = poles.clone();
            let roots = roots(&mut poles, rho);
            for (j, root) in roots.iter().enumerate() {
                let mu = given[root.origin].at + root.offset;
                assert!(mu >= given[j].at && (j + 1 == k || mu <= given[j + 1].at));
                let term = |pole: &Pole| pole.weight.powi(2) / ((pole.at - given[root.origin].at) - root.offset);
                let (sum, size): (f64, f64) =
                    given.iter().map(term).fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
                assert!((1.0 + rho * sum).abs() < 1e-12 * (1.0 + rho * size), "root {j} of {k}");
            }
            // The weights come back, up to the root of rho.
            let same = |(new, old): (&Pole, &Pole)| (new.weight / (rho.sqrt() * old.weight) - 1.0).abs() < 1e-9;
            assert!(poles.iter().zip(&given).all(same), "{k}");
        }
    }
}
