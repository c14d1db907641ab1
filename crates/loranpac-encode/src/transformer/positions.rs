//! Position embeddings on another grid, as PyTorch's bicubic `interpolate` computes them (`align_corners=False`).

/// Resamples a grid of `from` x `from` vectors of `d` numbers, row by row, to `to` x `to`. With `antialias`, the filter widens when the grid
/// shrinks, and its parameter is that of PIL (-0.5); without, it is -0.75.
pub(crate) fn resample(grid: &[f32], d: usize, from: usize, to: usize, antialias: bool) -> Vec<f32> {
    assert_eq!(grid.len(), from * from * d);
    let taps: Vec<Vec<(usize, f32)>> = (0..to).map(|i| taps(i, from, to, antialias)).collect();
    // First the rows' columns, then the rows.
    let mut half = vec![0.0; from * to * d];
    for (row, half) in grid.chunks_exact(from * d).zip(half.chunks_exact_mut(to * d)) {
        for (taps, out) in taps.iter().zip(half.chunks_exact_mut(d)) {
            add(out, taps, |column| &row[column * d..][..d]);
        }
    }
    let mut whole = vec![0.0; to * to * d];
    for (taps, out) in taps.iter().zip(whole.chunks_exact_mut(to * d)) {
        add(out, taps, |row| &half[row * to * d..][..to * d]);
    }
    whole
}

fn add<'a>(out: &mut [f32], taps: &[(usize, f32)], source: impl Fn(usize) -> &'a [f32]) {
    for (index, weight) in taps {
        out.iter_mut().zip(source(*index)).for_each(|(out, x)| *out += weight * x);
    }
}

/// The inputs of output `i` with their weights.
fn taps(i: usize, from: usize, to: usize, antialias: bool) -> Vec<(usize, f32)> {
    let scale = from as f64 / to as f64;
    let centre = (i as f64 + 0.5) * scale;
    if !antialias {
        let floor = (centre - 0.5).floor();
        let fraction = centre - 0.5 - floor;
        let tap = |offset: i64| {
            let index = (floor as i64 + offset).clamp(0, from as i64 - 1);
            (index as usize, cubic(offset as f64 - fraction, -0.75) as f32)
        };
        return (-1..=2).map(tap).collect();
    }
    let stretch = scale.max(1.0);
    let first = (centre - 2.0 * stretch + 0.5).max(0.0) as usize;
    let last = ((centre + 2.0 * stretch + 0.5) as usize).min(from);
    let weight = |j: usize| cubic((j as f64 + 0.5 - centre) / stretch, -0.5);
    let sum: f64 = (first..last).map(weight).sum();
    (first..last).map(|j| (j, (weight(j) / sum) as f32)).collect()
}

/// The cubic convolution kernel with parameter a.
fn cubic(x: f64, a: f64) -> f64 {
    let x = x.abs();
    if x < 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * a
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // torch.nn.functional.interpolate(torch.arange(9.).square().reshape(1, 1, 3, 3), size=(n, n), mode="bicubic",
    // align_corners=False, antialias=a): the first two rows for n = 5 and 2, without and with antialias.
    const FIVE: [f32; 10] = [-0.9047, -0.87401, -0.44, 1.07402, 2.21671, 1.26999, 2.31915, 4.44401, 7.64888, 9.81003];
    const FIVE_SMOOTH: [f32; 10] =
        [-0.72054, -0.60138, -0.13207, 1.54619, 2.60733, 1.73374, 2.72588, 4.78358, 8.05023, 9.98437];
    const TWO: [f32; 4] = [1.43076, 6.52237, 32.39737, 53.18076];
    const TWO_SMOOTH: [f32; 4] = [2.87117, 8.19785, 30.28452, 47.04453];

    #[test]
    fn resampling_is_that_of_pytorch() {
        let grid: Vec<f32> = (0..9).map(|i| (i * i) as f32).collect();
        let check = |to: usize, antialias: bool, expected: &[f32]| {
            let found = resample(&grid, 1, 3, to, antialias);
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-4, "{to} {antialias}: {found} instead of {expected}");
            }
        };
        check(5, false, &FIVE);
        check(5, true, &FIVE_SMOOTH);
        check(2, false, &TWO);
        check(2, true, &TWO_SMOOTH);
    }

    #[test]
    fn the_same_grid_stays_as_it_is() {
        let grid: Vec<f32> = (0..32).map(|i| i as f32).collect();
        for antialias in [false, true] {
            assert_eq!(resample(&grid, 2, 4, 4, antialias), grid);
        }
    }
}
