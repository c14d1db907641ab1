//! Exponential, error function and the activations, on vectors.

use pulp::Simd;

/// The activation of an MLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    /// `x Φ(x)`, Φ the distribution function of the normal distribution.
    Gelu,
    /// `x / (1 + exp(-1.702 x))`.
    QuickGelu,
    /// `x (1 + tanh(sqrt(2 / π) (x + 0.044715 x³))) / 2`.
    TanhGelu,
    /// `max(x, 0)`.
    Relu,
}

impl Activation {
    /// Applies it to a vector.
    #[inline(always)]
    pub fn apply<S: Simd>(self, simd: S, x: S::f32s) -> S::f32s {
        match self {
            Activation::Gelu => {
                let half = simd.mul_f32s(simd.splat_f32s(0.5), x);
                let erf = erf(simd, simd.mul_f32s(simd.splat_f32s(std::f32::consts::FRAC_1_SQRT_2), x));
                simd.mul_add_e_f32s(half, erf, half)
            }
            Activation::QuickGelu => gate(simd, x, simd.mul_f32s(simd.splat_f32s(1.702), x)),
            Activation::TanhGelu => {
                // (1 + tanh u) / 2 = 1 / (1 + exp(-2 u)).
                let square = simd.mul_f32s(x, x);
                let inner =
                    simd.mul_add_e_f32s(simd.splat_f32s(1.595_769 * 0.044_715), square, simd.splat_f32s(1.595_769));
                gate(simd, x, simd.mul_f32s(x, inner))
            }
            // NaN stays NaN: the second argument is returned if either is.
            Activation::Relu => simd.max_f32s(simd.splat_f32s(0.0), x),
        }
    }
}

impl Activation {
    /// Its derivative at a vector.
    #[inline(always)]
    pub fn derivative<S: Simd>(self, simd: S, x: S::f32s) -> S::f32s {
        match self {
            Activation::Gelu => {
                // Φ(x) + x φ(x).
                let half = simd.splat_f32s(0.5);
                let erf = erf(simd, simd.mul_f32s(simd.splat_f32s(std::f32::consts::FRAC_1_SQRT_2), x));
                let distribution = simd.mul_add_e_f32s(half, erf, half);
                let density = exp(simd, simd.mul_f32s(simd.mul_f32s(x, x), simd.splat_f32s(-0.5)));
                simd.mul_add_e_f32s(simd.mul_f32s(x, simd.splat_f32s(0.398_942_3)), density, distribution)
            }
            Activation::QuickGelu => {
                let slope = simd.splat_f32s(1.702);
                gated_derivative(simd, x, simd.mul_f32s(slope, x), slope)
            }
            Activation::TanhGelu => {
                let (square, first) = (simd.mul_f32s(x, x), simd.splat_f32s(1.595_769));
                let inner = simd.mul_add_e_f32s(simd.splat_f32s(1.595_769 * 0.044_715), square, first);
                let slope = simd.mul_add_e_f32s(simd.splat_f32s(3.0 * 1.595_769 * 0.044_715), square, first);
                gated_derivative(simd, x, simd.mul_f32s(x, inner), slope)
            }
            Activation::Relu => {
                let positive = simd.greater_than_f32s(x, simd.splat_f32s(0.0));
                simd.select_f32s(positive, simd.splat_f32s(1.0), simd.splat_f32s(0.0))
            }
        }
    }
}

/// `d/dx x σ(y) = σ(y) + x y' σ(y) (1 - σ(y))`, given y and its slope.
#[inline(always)]
fn gated_derivative<S: Simd>(simd: S, x: S::f32s, y: S::f32s, slope: S::f32s) -> S::f32s {
    let gate = gate(simd, simd.splat_f32s(1.0), y);
    let rest = simd.sub_f32s(gate, simd.mul_f32s(gate, gate));
    simd.mul_add_e_f32s(simd.mul_f32s(x, slope), rest, gate)
}

/// `exp(x)` with a relative error below 2e-7, for x cut to [-87, 88].
#[inline(always)]
pub(crate) fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    // NaN stays NaN: the second argument is returned if either is.
    let x = simd.min_f32s(simd.splat_f32s(88.0), simd.max_f32s(simd.splat_f32s(-87.0), x));
    // x = n ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits.
    let round = simd.splat_f32s(12_582_912.0);
    let shifted = simd.mul_add_e_f32s(x, simd.splat_f32s(std::f32::consts::LOG2_E), round);
    let n = simd.sub_f32s(shifted, round);
    // ln 2 in two parts, the first with few bits, so that n times it is exact.
    let r = simd.mul_add_e_f32s(n, simd.splat_f32s(-0.693_359_4), x);
    let r = simd.mul_add_e_f32s(n, simd.splat_f32s(2.121_944_4e-4), r);
    // exp(r) = 1 + r + r² p(r): p is the polynomial of degree 4 with the least largest error.
    let p = horner(simd, r, &[1.395_058_5e-3, 8.368_947e-3, 4.166_620_6e-2, 0.166_665_18, 0.5]);
    let mantissa = simd.add_f32s(simd.splat_f32s(1.0), simd.mul_add_e_f32s(simd.mul_f32s(r, r), p, r));
    let exponent = simd.add_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(127));
    let power = simd.transmute_f32s_u32s(simd.wrapping_dyn_shl_u32s(exponent, simd.splat_u32s(23)));
    simd.mul_f32s(mantissa, power)
}

/// The error function, with an absolute error below 5e-7.
#[inline(always)]
pub(crate) fn erf<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    // x P(x²) / Q(x²), the rational function of degrees 5 and 5 with the least largest error on [-3.85, 3.85]; 1 beyond.
    let x = cut(simd, x, 3.85);
    let t = simd.mul_f32s(x, x);
    let p =
        [2.098_294_8e-6, 2.865_2e-4, 3.717_585_7e-3, 5.261_279_6e-2, 1.889_318_4e-1, std::f32::consts::FRAC_2_SQRT_PI];
    let q = [3.867_326_8e-5, 1.155_859_6e-3, 1.487_199_5e-2, 1.135_532_1e-1, 5.007_691_4e-1, 1.0];
    cut(simd, simd.div_f32s(simd.mul_f32s(x, horner(simd, t, &p)), horner(simd, t, &q)), 1.0)
}

/// x, between the negative and the positive of a number.
#[inline(always)]
fn cut<S: Simd>(simd: S, x: S::f32s, most: f32) -> S::f32s {
    simd.min_f32s(simd.splat_f32s(most), simd.max_f32s(simd.splat_f32s(-most), x))
}

/// A polynomial, coefficients from the highest power on.
#[inline(always)]
fn horner<S: Simd, const N: usize>(simd: S, x: S::f32s, coefficients: &[f32; N]) -> S::f32s {
    let mut sum = simd.splat_f32s(coefficients[0]);
    for c in &coefficients[1..] {
        sum = simd.mul_add_e_f32s(sum, x, simd.splat_f32s(*c));
    }
    sum
}

/// `x / (1 + exp(-y))`.
#[inline(always)]
fn gate<S: Simd>(simd: S, x: S::f32s, y: S::f32s) -> S::f32s {
    simd.div_f32s(x, simd.add_f32s(simd.splat_f32s(1.0), exp(simd, simd.neg_f32s(y))))
}

#[cfg(test)]
mod tests {
    use pulp::{Arch, Scalar, WithSimd};

    use super::*;
    use crate::transformer::strips::Strip;

    fn range() -> impl Iterator<Item = f32> {
        (-200_000..=200_000).map(|i| i as f32 * 5e-4)
    }

    /// An activation (if true, its derivative), or else exp (if true) or erf, at a number.
    struct Call(Option<Activation>, bool, f32);

    impl WithSimd for Call {
        type Output = f32;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> f32 {
            let x = simd.splat_f32s(self.2);
            let y = match self.0 {
                Some(activation) if self.1 => activation.derivative(simd, x),
                Some(activation) => activation.apply(simd, x),
                None if self.1 => exp(simd, x),
                None => erf(simd, x),
            };
            let mut out = Strip::ZERO;
            out.vectors_mut::<S>().fill(y);
            assert!(out.0.iter().all(|x| x.to_bits() == out.0[0].to_bits()), "lanes differ");
            out.0[0]
        }
    }

    /// On this machine's vectors; without vectors, on a few numbers.
    fn check(activation: Option<Activation>, is_exp: bool, from: f32, to: f32, test: impl Fn(f32, f64)) {
        for (i, x) in range().filter(|x| (from..=to).contains(x)).enumerate() {
            test(x, f64::from(Arch::new().dispatch(Call(activation, is_exp, x))));
            if i % 100 == 0 {
                test(x, f64::from(Call(activation, is_exp, x).with_simd(Scalar)));
            }
        }
    }

    #[test]
    fn the_exponential_is_accurate_to_rounding() {
        check(None, true, -87.0, 88.0, |x, found| {
            let error = (found / f64::from(x).exp() - 1.0).abs();
            assert!(error < 2e-7, "exp({x}): {error:e}");
        });
        let exp = |x: f32| Arch::new().dispatch(Call(None, true, x));
        assert!(exp(f32::NEG_INFINITY) < 2e-38);
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn the_error_function_is_accurate_to_rounding() {
        check(None, false, -10.0, 10.0, |x, found| {
            let error = (found - libm::erf(f64::from(x))).abs();
            assert!(error < 5e-7, "erf({x}): {error:e}");
        });
    }

    #[test]
    fn activations_match_their_definitions() {
        let sigmoid = |y: f64| 1.0 / (1.0 + (-y).exp());
        let compare = |activation: Activation, reference: &dyn Fn(f64) -> f64| {
            check(Some(activation), false, -50.0, 50.0, |x, found| {
                let error = (found - reference(f64::from(x))).abs();
                assert!(error < 5e-7 * f64::from(x.abs().max(1.0)), "{activation:?}({x}): {error:e}");
            });
        };
        compare(Activation::Gelu, &|x| 0.5 * x * (1.0 + libm::erf(x / 2f64.sqrt())));
        compare(Activation::QuickGelu, &|x| x * sigmoid(1.702 * x));
        let inner = |x: f64| (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
        compare(Activation::TanhGelu, &|x| 0.5 * x * (1.0 + inner(x).tanh()));
    }
    #[test]
    fn derivatives_are_those_of_finite_differences() {
        let sigmoid = |y: f64| 1.0 / (1.0 + (-y).exp());
        let compare = |activation: Activation, reference: &dyn Fn(f64) -> f64| {
            check(Some(activation), true, -20.0, 20.0, |x, found| {
                let (x, step) = (f64::from(x), 1e-5);
                let expected = (reference(x + step) - reference(x - step)) / (2.0 * step);
                assert!((found - expected).abs() < 2e-6, "{activation:?}'({x}): {found} instead of {expected}");
            });
        };
        compare(Activation::Gelu, &|x| 0.5 * x * (1.0 + libm::erf(x / 2f64.sqrt())));
        compare(Activation::QuickGelu, &|x| x * sigmoid(1.702 * x));
        let inner = |x: f64| (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
        compare(Activation::TanhGelu, &|x| 0.5 * x * (1.0 + inner(x).tanh()));
    }
}
