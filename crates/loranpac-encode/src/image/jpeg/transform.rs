//! The inverse cosine transform of 8 x 8 blocks.
//!
//! The accurate integer transform of libjpeg (Loeffler, Ligtenberg and Moschytz, 1989) with 13 fractional bits. Its
//! one-dimensional step rounds only at the end, so it is a matrix of integers, whose even and odd halves are below.
//! Results equal those of libjpeg to the last bit.

/// Fractional bits of the constants, and those that are kept between the passes.
const BITS: u32 = 13;
const KEPT: u32 = 2;

/// Outputs 0 to 3 from the inputs 1, 3, 5 and 7; outputs 7 to 4 have the opposite sign.
const ODD: [[i32; 4]; 4] = [
    [11_363, 9_633, 6_437, 2_260],
    [9_633, -2_259, -11_362, -6_436],
    [6_437, -11_362, 2_261, 9_633],
    [2_260, -6_436, 9_633, -11_363],
];
/// Outputs 0 and 1 from the inputs 2 and 6; outputs 3 and 2 have the opposite sign.
const EVEN: [[i32; 2]; 2] = [[10_703, 4_433], [4_433, -10_704]];

/// Pixels from the coefficients of a block, written to rows of `stride` bytes.
pub(super) fn inverse(coefficients: &[i32; 64], out: &mut [u8], stride: usize) {
    let mut middle = [0; 64];
    for column in 0..8 {
        let input = std::array::from_fn(|row| coefficients[row * 8 + column]);
        let output = step(input, BITS - KEPT);
        for (row, value) in output.into_iter().enumerate() {
            middle[row * 8 + column] = value;
        }
    }
    for (row, values) in middle.as_chunks::<8>().0.iter().enumerate() {
        // The last three bits are those of the transform's factor 1/8.
        let output = step(*values, BITS + KEPT + 3);
        for (out, value) in out[row * stride..][..8].iter_mut().zip(output) {
            *out = value.saturating_add(128).clamp(0, 255) as u8;
        }
    }
}

/// One dimension, rounded to `shift` bits less. Damaged data may exceed 32 bits.
fn step(input: [i32; 8], shift: u32) -> [i32; 8] {
    let dot = |row: &[i32], places: &[usize]| {
        row.iter().zip(places).fold(0i32, |sum, (&c, &at)| sum.wrapping_add(c.wrapping_mul(input[at])))
    };
    let outer = input[0].wrapping_add(input[4]) << BITS;
    let inner = input[0].wrapping_sub(input[4]) << BITS;
    let (a, b) = (dot(&EVEN[0], &[2, 6]), dot(&EVEN[1], &[2, 6]));
    let even = [outer.wrapping_add(a), inner.wrapping_add(b), inner.wrapping_sub(b), outer.wrapping_sub(a)];
    let half = 1 << (shift - 1);
    let mut output = [0; 8];
    for (at, even) in even.into_iter().enumerate() {
        let odd = dot(&ODD[at], &[1, 3, 5, 7]);
        output[at] = even.wrapping_add(odd).wrapping_add(half) >> shift;
        output[7 - at] = even.wrapping_sub(odd).wrapping_add(half) >> shift;
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn the_transform_is_the_inverse_cosine_transform() {
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as i32
        };
        for _ in 0..200 {
            let coefficients: [i32; 64] = std::array::from_fn(|at| (random() % 401 - 200) / (1 + at as i32 / 4));
            let mut found = [0; 64];
            inverse(&coefficients, &mut found, 8);
            let basis = |k: usize, x: usize| {
                let scale = if k == 0 { 0.5f64.sqrt() } else { 1.0 };
                scale / 2.0 * ((2 * x + 1) as f64 * k as f64 * PI / 16.0).cos()
            };
            for (at, &found) in found.iter().enumerate() {
                let (y, x) = (at / 8, at % 8);
                let term = |k: usize| f64::from(coefficients[k]) * basis(k / 8, y) * basis(k % 8, x);
                let exact = ((0..64).map(term).sum::<f64>() + 128.0).clamp(0.0, 255.0);
                assert!((f64::from(found) - exact).abs() < 0.6, "{found} {exact}");
            }
        }
    }

    /// The matrices from the rotations of the paper's flow graph.
    #[test]
    fn the_matrices_are_those_of_the_flow_graph() {
        let fix = |x: f64| (x * f64::from(1 << BITS)).round() as i32;
        let [all, a, b, c, d] =
            [1.175_875_602, -0.899_976_223, -2.562_915_447, -1.961_570_560, -0.390_180_644].map(fix);
        // The factors of the inputs 1, 3, 5 and 7 alone.
        let own = [1.501_321_110, 3.072_711_026, 2.053_119_869, 0.298_631_336].map(fix);
        let expected = [
            [own[0] + a + d + all, all, d + all, a + all],
            [all, own[1] + b + c + all, b + all, c + all],
            [d + all, b + all, own[2] + b + d + all, all],
            [a + all, c + all, all, own[3] + a + c + all],
        ];
        assert_eq!(ODD, expected);
        let even = fix(0.541_196_100);
        assert_eq!(EVEN, [[even + fix(0.765_366_865), even], [even, even - fix(1.847_759_065)]]);
    }
}
