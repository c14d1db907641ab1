//! The one matrix product that everything is built on.
//!
//! ```text
//! C (rows x 32) = A (rows x k) B (k x 32)
//! ```
//!
//! B is contiguous: a [`Strip`] for each of its k rows. A tile of C, as many rows as registers allow, is accumulated over all of k in
//! registers, one fused multiplication and addition per element and step. The sums are therefore the same to the last bit whatever the
//! number of rows and threads: the features of an input do not depend on its batch.
//!
//! A call costs `2 * 32 * k * rows` flops, reads A once and B once per tile.

use pulp::Simd;

use super::strips::{Left, Strip, WIDTH};

/// Most rows of a tile, on any machine.
pub(crate) const ROWS: usize = super::strips::SLACK;

/// A tile of C.
pub(crate) type Tile = [Strip; ROWS];

/// Computes C in tiles for `rows` rows from `first` on, and passes each tile with its first row (counted from 0) to `finish`. The last tile
/// has fewer valid rows.
#[inline(always)]
pub(crate) fn product<S: Simd>(
    simd: S,
    a: Left<'_>,
    first: usize,
    rows: usize,
    b: &[Strip],
    mut finish: impl FnMut(usize, &mut [Strip]),
) {
    let mut tile: Tile = [Strip::ZERO; ROWS];
    let mut row = 0;
    while row < rows {
        // Accumulators, vectors of B and one of A fit the registers: 32 of 16 lanes, 16 of 8 lanes, 32 of 4 lanes.
        let computed = match S::F32_LANES {
            16 => multiply::<S, 12, 2>(simd, a, first + row, b, &mut tile),
            8 => multiply::<S, 2, 4>(simd, a, first + row, b, &mut tile),
            4 => multiply::<S, 2, 8>(simd, a, first + row, b, &mut tile),
            _ => multiply::<S, 1, WIDTH>(simd, a, first + row, b, &mut tile),
        };
        let valid = computed.min(rows - row);
        finish(row, &mut tile[..valid]);
        row += computed;
    }
}

/// One tile of R rows and V vectors. Returns R.
///
/// The sums are only ever indexed by constants once the loops are unrolled: the compiler then keeps them in registers. A slice of them, or an
/// iterator over them, would make it store each sum in each step.
#[expect(clippy::manual_memcpy, reason = "a copy of a slice would keep the sums in memory")]
#[inline(always)]
fn multiply<S: Simd, const R: usize, const V: usize>(
    simd: S,
    a: Left<'_>,
    row: usize,
    b: &[Strip],
    tile: &mut Tile,
) -> usize {
    let mut sums = [[simd.splat_f32s(0.0); V]; R];
    for (p, b) in b.chunks(WIDTH).enumerate() {
        let a: &[Strip; R] = a.data[p * a.stride + row..].first_chunk().expect("the rows of a tile");
        for (k, b) in b.iter().enumerate() {
            let b: &[S::f32s; V] = b.vectors::<S>().first_chunk().expect("the vectors of a strip");
            for i in 0..R {
                let a = simd.splat_f32s(a[i].0[k % WIDTH]);
                for j in 0..V {
                    sums[i][j] = simd.mul_add_e_f32s(a, b[j], sums[i][j]);
                }
            }
        }
    }
    for i in 0..R {
        let strip: &mut [S::f32s; V] = tile[i].vectors_mut::<S>().first_chunk_mut().expect("the vectors of a strip");
        for j in 0..V {
            strip[j] = sums[i][j];
        }
    }
    R
}

/// `C (32 x 32) += A' B`, summed over rows: a strip of A and one of B for each.
#[inline(always)]
pub(crate) fn outer<S: Simd>(simd: S, a: &[Strip], b: &[Strip], c: &mut [Strip; WIDTH]) {
    match S::F32_LANES {
        16 => {
            for row in (0..WIDTH).step_by(8) {
                add_outer::<S, 8, 2>(simd, a, row, b, c);
            }
        }
        8 => {
            for row in (0..WIDTH).step_by(2) {
                add_outer::<S, 2, 4>(simd, a, row, b, c);
            }
        }
        4 => {
            for row in (0..WIDTH).step_by(2) {
                add_outer::<S, 2, 8>(simd, a, row, b, c);
            }
        }
        _ => {
            for row in 0..WIDTH {
                add_outer::<S, 1, WIDTH>(simd, a, row, b, c);
            }
        }
    }
}

/// R rows of [`outer`].
#[inline(always)]
fn add_outer<S: Simd, const R: usize, const V: usize>(
    simd: S,
    a: &[Strip],
    row: usize,
    b: &[Strip],
    c: &mut [Strip; WIDTH],
) {
    let mut sums = [[simd.splat_f32s(0.0); V]; R];
    for (a, b) in a.iter().zip(b) {
        let a: &[f32; R] = a.0[row..].first_chunk().expect("the rows of a tile");
        let b: &[S::f32s; V] = b.vectors::<S>().first_chunk().expect("the vectors of a strip");
        for i in 0..R {
            let a = simd.splat_f32s(a[i]);
            for j in 0..V {
                sums[i][j] = simd.mul_add_e_f32s(a, b[j], sums[i][j]);
            }
        }
    }
    for i in 0..R {
        let strip: &mut [S::f32s; V] = c[row + i].vectors_mut::<S>().first_chunk_mut().expect("the vectors of a strip");
        for j in 0..V {
            strip[j] = simd.add_f32s(strip[j], sums[i][j]);
        }
    }
}
