//! Exponential, error function and the activations, written so that compilers vectorise loops over them.

use super::strips::Strip;

/// The activation of an MLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    /// `x Φ(x)`, Φ the distribution function of the normal distribution.
    Gelu,
    /// `x / (1 + exp(-1.702 x))`.
    QuickGelu,
    /// `x (1 + tanh(sqrt(2 / π) (x + 0.044715 x³))) / 2`.
    TanhGelu,
}

impl Activation {
    /// Applies it to each feature.
    #[inline(always)]
    pub fn apply(self, strip: &mut Strip) {
        match self {
            Activation::Gelu => strip.0.iter_mut().for_each(|x| *x = gelu(*x)),
            Activation::QuickGelu => strip.0.iter_mut().for_each(|x| *x = sigmoid_linear(*x, 1.702 * *x)),
            Activation::TanhGelu => strip.0.iter_mut().for_each(|x| {
                // (1 + tanh u) / 2 = 1 / (1 + exp(-2 u)).
                let twice = 1.595_769_1 * (*x + 0.044_715 * *x * *x * *x);
                *x = sigmoid_linear(*x, twice)
            }),
        }
    }
}

/// `exp(x)` with a relative error below 1e-7; 0 below -87, and x is cut at 88.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // x = n ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let cut = x.clamp(-87.0, 88.0);
    let shifted = cut * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    // ln 2 in two parts, the first with few bits, so that n times it is exact.
    let r = (cut - n * 0.693_359_4) + n * 2.121_944_4e-4;
    // exp(r) = 1 + r + r² p(r): p is the polynomial of degree 4 with the least largest error.
    let p = 0.5 + r * (0.166_665_18 + r * (4.166_620_6e-2 + r * (8.368_946_6e-3 + r * 1.395_058_5e-3)));
    let mantissa = 1.0 + (r + r * r * p);
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    if x < -87.0 { 0.0 } else { mantissa * power }
}

/// The error function, with an absolute error below 5e-7.
#[inline(always)]
pub(crate) fn erf(x: f32) -> f32 {
    // x P(x²) / Q(x²), the rational function of degrees 5 and 5 with the least largest error on [-3.85, 3.85]; 1 beyond.
    let x = x.clamp(-3.85, 3.85);
    let t = x * x;
    let p = 1.128_379_1
        + t * (1.889_318_4e-1
            + t * (5.261_279_6e-2 + t * (3.717_585_7e-3 + t * (2.865_199_9e-4 + t * 2.098_294_8e-6))));
    let q = 1.0
        + t * (5.007_691_4e-1
            + t * (1.135_532_1e-1 + t * (1.487_199_5e-2 + t * (1.155_859_6e-3 + t * 3.867_326_8e-5))));
    (x * p / q).clamp(-1.0, 1.0)
}

#[inline(always)]
fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// `x / (1 + exp(-y))`.
#[inline(always)]
fn sigmoid_linear(x: f32, y: f32) -> f32 {
    x / (1.0 + exp(-y))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range() -> impl Iterator<Item = f32> {
        (-200_000..=200_000).map(|i| i as f32 * 5e-4)
    }

    #[test]
    fn the_exponential_is_accurate_to_rounding() {
        for x in range().filter(|x| (-87.0..=88.0).contains(x)) {
            let expected = f64::from(x).exp();
            let error = (f64::from(exp(x)) - expected).abs() / expected;
            assert!(error < 2e-7, "exp({x}): {error:e}");
        }
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-1000.0), 0.0);
        assert_eq!(exp(0.0), 1.0);
    }

    #[test]
    fn the_error_function_is_accurate_to_rounding() {
        for x in range().filter(|x| x.abs() < 10.0) {
            let error = (f64::from(erf(x)) - libm::erf(f64::from(x))).abs();
            assert!(error < 5e-7, "erf({x}): {error:e}");
        }
        assert_eq!(erf(0.0), 0.0);
        assert_eq!(erf(100.0), 1.0);
    }

    #[test]
    fn activations_match_their_definitions() {
        let sigmoid = |y: f64| 1.0 / (1.0 + (-y).exp());
        let check = |activation: Activation, reference: &dyn Fn(f64) -> f64| {
            for x in range() {
                let mut strip = Strip::ZERO;
                strip.0[5] = x;
                activation.apply(&mut strip);
                let error = (f64::from(strip.0[5]) - reference(f64::from(x))).abs();
                assert!(error < 5e-7 * f64::from(x.abs().max(1.0)), "{activation:?}({x}): {error:e}");
                assert_eq!(strip.0[6], 0.0);
            }
        };
        check(Activation::Gelu, &|x| 0.5 * x * (1.0 + libm::erf(x / 2f64.sqrt())));
        check(Activation::QuickGelu, &|x| x * sigmoid(1.702 * x));
        let inner = |x: f64| (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
        check(Activation::TanhGelu, &|x| 0.5 * x * (1.0 + inner(x).tanh()));
    }
}
