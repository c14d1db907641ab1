//! The arc-cosine kernel of many cosines at once, without branches, so that it compiles to vector instructions.
//!
//! With `u = 1 - |c|`, the kernel of samples of length 1 is
//!
//! ```text
//! (sin t + (pi - t) cos t) / (2 pi) = (c + |c|) / 4 + u^(3/2) q(u),   c = cos t
//! ```
//!
//! because `sin t + (pi / 2 - t) cos t` is even in c. The function q is analytic up to u = 2, so that a polynomial of
//! degree 19 gives it to rounding for u from 0 to 1. The tests compare it with the formula.

/// Coefficients of `q / (2 pi)` in powers of `2 u - 1`: its interpolation at Chebyshev points.
const COEFFICIENTS: [f64; 20] = [
    0.15414614022132223,
    0.004483050063532523,
    0.00044535575784506565,
    6.554152700260883e-05,
    1.1777180956480551e-05,
    2.3893595368314566e-06,
    5.259905729318934e-07,
    1.2278685986722117e-07,
    2.995797387762586e-08,
    7.565532361569675e-09,
    1.964143987453351e-09,
    5.215927967634908e-10,
    1.410661403588939e-10,
    3.878902910351664e-11,
    1.0936540343767352e-11,
    3.0871450147535015e-12,
    7.756958409570353e-13,
    2.2229333580302293e-13,
    1.1357482781466992e-13,
    3.33727237881302e-14,
];

/// Replaces cosines by the kernel of samples of length 1, to an absolute error of some rounding units.
pub(super) fn shapes_of_cosines(values: &mut [f64]) {
    pulp::Arch::new().dispatch(Run(values));
}

struct Run<'a>(&'a mut [f64]);

impl pulp::NullaryFnOnce for Run<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for value in self.0 {
            let length = value.abs();
            let u = (1.0 - length).max(0.0);
            let x = 2.0 * u - 1.0;
            let mut q = 0.0;
            for coefficient in COEFFICIENTS.iter().rev() {
                q = q * x + coefficient;
            }
            *value = 0.25 * (*value + length) + u * u.sqrt() * q;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    #[test]
    fn the_polynomial_is_the_kernel_to_rounding() {
        let mut angles: Vec<f64> = (0..=10_000).map(|i| PI * f64::from(i) / 10_000.0).collect();
        angles.extend([1e-9, 1e-6, 1e-3, PI - 1e-3, PI - 1e-6]);
        let mut values: Vec<f64> = angles.iter().map(|t| t.cos()).collect();
        shapes_of_cosines(&mut values);
        for (t, value) in angles.into_iter().zip(values) {
            let expected = (t.sin() + (PI - t) * t.cos()) / (2.0 * PI);
            assert!((value - expected).abs() < 3e-16, "{t}: {value:e} {expected:e}");
        }
        // Products of directions may exceed 1 by rounding.
        let mut ends = [1.0 + 1e-15, -1.0 - 1e-15];
        shapes_of_cosines(&mut ends);
        assert!((ends[0] - 0.5).abs() < 1e-15 && ends[1].abs() < 1e-30);
    }
}
