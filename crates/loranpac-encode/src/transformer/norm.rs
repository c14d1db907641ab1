//! Layer normalisation: `(x - mean) / sqrt(variance + eps) * gain + bias` over the features of a token.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::strips::{Strip, Strips, WIDTH};

/// Tokens per task: their features stay in a level-2 cache between the passes over them.
pub(super) const BLOCK: usize = 64;

/// A layer normalisation.
#[derive(Debug, Clone)]
pub(crate) struct Norm {
    pub(super) features: usize,
    pub(super) gain: Vec<Strip>,
    pub(super) bias: Vec<Strip>,
    /// 1 for each feature, 0 for padding.
    pub(super) used: Vec<Strip>,
    eps: f32,
}

impl Norm {
    /// From gain and bias, one of each for each feature.
    pub fn new(gain: &[f32], bias: &[f32], eps: f32) -> Norm {
        Norm {
            features: gain.len(),
            gain: Strip::pad(gain),
            bias: Strip::pad(bias),
            used: Strip::pad(&vec![1.0; gain.len()]),
            eps,
        }
    }

    /// The normalisation followed by a scale and a shift of each feature.
    pub fn scaled(&self, scale: &[f32], shift: &[f32]) -> Norm {
        let (scale, shift) = (Strip::pad(scale), Strip::pad(shift));
        let mut norm = self.clone();
        let pairs = norm.gain.iter_mut().zip(&mut norm.bias);
        for ((gain, bias), (scale, shift)) in pairs.zip(scale.iter().zip(&shift)) {
            let numbers = gain.0.iter_mut().zip(&mut bias.0).zip(scale.0.iter().zip(&shift.0));
            for ((gain, bias), (scale, shift)) in numbers {
                *gain *= scale;
                *bias = *bias * scale + shift;
            }
        }
        norm
    }

    /// Normalises x into y.
    pub fn forward(&self, x: &Strips, y: &mut Strips) {
        y.reshape(x.rows(), x.strips());
        self.run(Some(x), y);
    }

    /// Normalises x in place.
    pub fn in_place(&self, x: &mut Strips) {
        self.run(None, x);
    }

    /// Normalises the features of one token.
    pub fn row(&self, row: &mut [f32]) {
        assert_eq!(row.len(), self.features);
        let mut strips = Strip::pad(row);
        let mut pieces: Vec<&mut [Strip]> = strips.chunks_mut(1).collect();
        Arch::new().dispatch(Tokens { norm: self, tokens: &mut pieces });
        for (row, strip) in row.chunks_mut(WIDTH).zip(&strips) {
            row.copy_from_slice(&strip.0[..row.len()]);
        }
    }

    /// Mean and 1 / sqrt(variance + eps) of each of n tokens, given the slice of each strip.
    #[inline(always)]
    pub(super) fn statistics<'a, S: Simd>(
        &self,
        simd: S,
        strips: impl Iterator<Item = &'a [Strip]> + Clone,
        n: usize,
    ) -> ([f32; BLOCK], [f32; BLOCK]) {
        let share = 1.0 / self.features as f32;
        let mut sums = [simd.splat_f32s(0.0); BLOCK];
        for strip in strips.clone() {
            for (sum, x) in sums.iter_mut().zip(strip.iter()) {
                for x in x.vectors::<S>() {
                    *sum = simd.add_f32s(*sum, *x);
                }
            }
        }
        let mut means = [0.0; BLOCK];
        for (mean, sum) in means.iter_mut().zip(&mut sums[..n]) {
            *mean = simd.reduce_sum_f32s(*sum) * share;
            *sum = simd.splat_f32s(0.0);
        }
        for (strip, used) in strips.zip(&self.used) {
            for ((sum, x), mean) in sums.iter_mut().zip(strip.iter()).zip(&means) {
                let mean = simd.splat_f32s(*mean);
                for (x, used) in x.vectors::<S>().iter().zip(used.vectors::<S>()) {
                    // Padding is zero, and must not count as a difference to the mean.
                    let difference = simd.mul_f32s(simd.sub_f32s(*x, mean), *used);
                    *sum = simd.mul_add_e_f32s(difference, difference, *sum);
                }
            }
        }
        let mut scales = [0.0; BLOCK];
        for (scale, sum) in scales.iter_mut().zip(&sums[..n]) {
            *scale = 1.0 / (simd.reduce_sum_f32s(*sum) * share + self.eps).sqrt();
        }
        (means, scales)
    }

    fn run(&self, source: Option<&Strips>, y: &mut Strips) {
        let strips = y.strips();
        assert_eq!(strips, self.gain.len(), "features of a normalisation");
        y.cut_evenly(BLOCK).par_chunks_mut(strips).enumerate().for_each(|(i, tokens)| {
            if let Some(x) = source {
                for (s, y) in tokens.iter_mut().enumerate() {
                    y.copy_from_slice(&x.strip(s)[i * BLOCK..][..y.len()]);
                }
            }
            Arch::new().dispatch(Tokens { norm: self, tokens });
        });
    }
}

/// Some tokens, normalised in place: the slice of each strip.
struct Tokens<'a, 'b> {
    norm: &'a Norm,
    tokens: &'a mut [&'b mut [Strip]],
}

impl WithSimd for Tokens<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Tokens { norm, tokens } = self;
        let n = tokens[0].len();
        let (means, scales) = norm.statistics(simd, tokens.iter().map(|strip| &**strip), n);
        for ((strip, gain), bias) in tokens.iter_mut().zip(&norm.gain).zip(&norm.bias) {
            for ((x, mean), scale) in strip.iter_mut().zip(&means).zip(&scales) {
                let (mean, scale) = (simd.splat_f32s(*mean), simd.splat_f32s(*scale));
                let affine = gain.vectors::<S>().iter().zip(bias.vectors::<S>());
                for (x, (gain, bias)) in x.vectors_mut::<S>().iter_mut().zip(affine) {
                    let scaled = simd.mul_f32s(simd.sub_f32s(*x, mean), scale);
                    *x = simd.mul_add_e_f32s(scaled, *gain, *bias);
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::transformer::testing::{close, matrix, random, rows};

    /// Layer normalisation in f64.
    pub(crate) fn naive(x: &[f64], gain: &[f32], bias: &[f32], eps: f64) -> Vec<f64> {
        let d = gain.len();
        let mut y = Vec::new();
        for x in x.chunks(d) {
            let mean = x.iter().sum::<f64>() / d as f64;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / d as f64;
            let scale = 1.0 / (variance + eps).sqrt();
            y.extend((0..d).map(|i| (x[i] - mean) * scale * f64::from(gain[i]) + f64::from(bias[i])));
        }
        y
    }

    #[test]
    fn normalisation_is_that_of_f64_with_and_without_padding() {
        for (t, d) in [(1, 3), (7, 32), (70, 50), (200, 96)] {
            // A mean far from zero shows cancellation.
            let x: Vec<f32> = random(t * d, 1).iter().map(|x| x + 20.0).collect();
            let (gain, bias) = (random(d, 2), random(d, 3));
            let norm = Norm::new(&gain, &bias, 1e-6);
            let wide: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
            let expected = naive(&wide, &gain, &bias, 1e-6);
            let mut y = Strips::default();
            norm.forward(&matrix(&x, d), &mut y);
            close(&rows(&y, d), &expected, 1e-5);
            let mut z = matrix(&x, d);
            norm.in_place(&mut z);
            assert_eq!(rows(&z, d), rows(&y, d));
            let mut row = x[..d].to_vec();
            norm.row(&mut row);
            assert_eq!(row, rows(&y, d)[..d]);
            // The padding stays zero: the next layer multiplies it.
            assert_eq!(rows(&y, y.strips() * WIDTH)[d..].iter().take(y.strips() * WIDTH - d).sum::<f32>(), 0.0);
        }
    }
}
