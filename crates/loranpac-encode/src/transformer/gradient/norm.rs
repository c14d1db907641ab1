//! The gradient of layer normalisation with respect to its input:
//!
//! ```text
//! z = (x - mean) / σ,  y = z ∘ gain + bias,  g = dy ∘ gain:    dx = (g - mean(g) - z mean(g ∘ z)) / σ
//! ```

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::transformer::norm::{BLOCK, Norm};
use crate::transformer::strips::{Strip, Strips, WIDTH};

impl Norm {
    /// Replaces dy by dx, given the input x.
    pub fn backward(&self, x: &Strips, dy: &mut Strips) {
        let strips = dy.strips();
        assert_eq!((x.rows(), x.strips()), (dy.rows(), strips), "shape of a gradient");
        dy.cut_evenly(BLOCK).par_chunks_mut(strips).enumerate().for_each(|(i, tokens)| {
            let given: Vec<&[Strip]> = (0..strips).map(|s| &x.strip(s)[i * BLOCK..][..tokens[s].len()]).collect();
            Arch::new().dispatch(Tokens { norm: self, x: &given, dy: tokens });
        });
    }

    /// Replaces the gradient of one token's normalised features by that of its input.
    pub fn backward_row(&self, x: &[f32], dy: &mut [f32]) {
        let (x, mut strips) = (Strip::pad(x), Strip::pad(dy));
        let given: Vec<&[Strip]> = x.chunks(1).collect();
        let mut pieces: Vec<&mut [Strip]> = strips.chunks_mut(1).collect();
        Arch::new().dispatch(Tokens { norm: self, x: &given, dy: &mut pieces });
        for (dy, strip) in dy.chunks_mut(WIDTH).zip(&strips) {
            dy.copy_from_slice(&strip.0[..dy.len()]);
        }
    }
}

/// Some tokens: the slice of each strip of x, and of dy, which becomes dx.
struct Tokens<'a, 'b> {
    norm: &'a Norm,
    x: &'a [&'b [Strip]],
    dy: &'a mut [&'b mut [Strip]],
}

impl WithSimd for Tokens<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Tokens { norm, x, dy } = self;
        let n = x[0].len();
        let share = 1.0 / norm.features as f32;
        let (means, scales) = norm.statistics(simd, x.iter().copied(), n);
        // Sums of g and of g ∘ (x - mean).
        let mut sums = [[simd.splat_f32s(0.0); 2]; BLOCK];
        for ((x, dy), gain) in x.iter().zip(dy.iter()).zip(&norm.gain) {
            for (((sums, x), dy), mean) in sums.iter_mut().zip(x.iter()).zip(dy.iter()).zip(&means) {
                let mean = simd.splat_f32s(*mean);
                let gradients = dy.vectors::<S>().iter().zip(gain.vectors::<S>());
                for (x, (dy, gain)) in x.vectors::<S>().iter().zip(gradients) {
                    // The gain of padding is zero.
                    let g = simd.mul_f32s(*dy, *gain);
                    sums[0] = simd.add_f32s(sums[0], g);
                    sums[1] = simd.mul_add_e_f32s(g, simd.sub_f32s(*x, mean), sums[1]);
                }
            }
        }
        let mut parts = [[0.0; 2]; BLOCK];
        for ((parts, sums), scale) in parts.iter_mut().zip(&sums[..n]).zip(&scales) {
            *parts = [simd.reduce_sum_f32s(sums[0]) * share, simd.reduce_sum_f32s(sums[1]) * share * scale * scale];
        }
        for (((x, dy), gain), used) in x.iter().zip(dy.iter_mut()).zip(&norm.gain).zip(&norm.used) {
            for ((((x, dy), mean), scale), parts) in x.iter().zip(dy.iter_mut()).zip(&means).zip(&scales).zip(&parts) {
                let [mean, scale, first, second] =
                    [*mean, *scale, parts[0], parts[1]].map(|number| simd.splat_f32s(number));
                let constants = gain.vectors::<S>().iter().zip(used.vectors::<S>());
                let tokens = dy.vectors_mut::<S>().iter_mut().zip(x.vectors::<S>());
                for ((dy, x), (gain, used)) in tokens.zip(constants) {
                    let g = simd.sub_f32s(simd.mul_f32s(*dy, *gain), first);
                    let centred = simd.sub_f32s(*x, mean);
                    let g = simd.sub_f32s(g, simd.mul_f32s(centred, second));
                    *dy = simd.mul_f32s(simd.mul_f32s(g, scale), *used);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transformer::norm::tests::naive;
    use crate::transformer::testing::{close, matrix, random, rows};

    #[test]
    fn the_gradient_of_a_normalisation_is_that_of_finite_differences() {
        for (t, d) in [(1, 3), (7, 32), (70, 50)] {
            let x: Vec<f32> = random(t * d, 1).iter().map(|x| 3.0 * x + 2.0).collect();
            let (gain, bias, dy) = (random(d, 2), random(d, 3), random(t * d, 4));
            let norm = Norm::new(&gain, &bias, 1e-6);
            let wide: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
            // A change of one feature changes its own token alone.
            let loss = |x: &[f64], token: usize| -> f64 {
                let y = naive(&x[token * d..][..d], &gain, &bias, 1e-6);
                y.iter().zip(&dy[token * d..]).map(|(y, dy)| y * f64::from(*dy)).sum()
            };
            let expected: Vec<f64> = (0..t * d)
                .map(|i| {
                    let at = |step: f64| {
                        let mut x = wide.clone();
                        x[i] += step;
                        loss(&x, i / d)
                    };
                    (at(1e-5) - at(-1e-5)) / 2e-5
                })
                .collect();
            let mut dx = matrix(&dy, d);
            norm.backward(&matrix(&x, d), &mut dx);
            close(&rows(&dx, d), &expected, 1e-5);
            let mut row = dy[..d].to_vec();
            norm.backward_row(&x[..d], &mut row);
            assert_eq!(row, rows(&dx, d)[..d]);
        }
    }
}
