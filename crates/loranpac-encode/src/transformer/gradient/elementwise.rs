//! What is done to each number of matrices of one shape.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::transformer::math::Activation;
use crate::transformer::strips::{Strip, Strips};

/// Rows per task.
const BLOCK: usize = 256;

/// What becomes of y, given x.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Each {
    /// `y = x`.
    Copy,
    /// `y += x`.
    Add,
    /// `y = f(x)`.
    Activate(Activation),
    /// `y *= f'(x)`.
    Slope(Activation),
    /// `y = factor * y` where x is positive, else 0: ReLU and dropout, whose output is x.
    Positive(f32),
}

impl Each {
    /// Applies it to all rows. A copy or an activation gives y its shape.
    pub fn apply(self, x: &Strips, y: &mut Strips) {
        match self {
            Each::Copy | Each::Activate(_) => y.reshape(x.rows(), x.strips()),
            _ => assert_eq!((y.rows(), y.strips()), (x.rows(), x.strips()), "shapes of an operation"),
        }
        let strips = y.strips();
        y.cut_evenly(BLOCK).into_par_iter().enumerate().for_each(|(i, y)| {
            let x = &x.strip(i % strips)[i / strips * BLOCK..][..y.len()];
            Arch::new().dispatch(Piece { each: self, x, y });
        });
    }
}

struct Piece<'a> {
    each: Each,
    x: &'a [Strip],
    y: &'a mut [Strip],
}

impl WithSimd for Piece<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Piece { each, x, y } = self;
        let zero = simd.splat_f32s(0.0);
        // A closure per number might not be inlined, and would then call a function for each instruction.
        for (x, y) in x.iter().zip(y) {
            for (x, y) in x.vectors::<S>().iter().zip(y.vectors_mut::<S>()) {
                *y = match each {
                    Each::Copy => *x,
                    Each::Add => simd.add_f32s(*y, *x),
                    Each::Activate(activation) => activation.apply(simd, *x),
                    Each::Slope(activation) => simd.mul_f32s(*y, activation.derivative(simd, *x)),
                    Each::Positive(factor) => {
                        let scaled = simd.mul_f32s(*y, simd.splat_f32s(factor));
                        simd.select_f32s(simd.greater_than_f32s(*x, zero), scaled, zero)
                    }
                };
            }
        }
    }
}
