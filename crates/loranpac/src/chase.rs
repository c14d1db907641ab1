//! The second stage of a reduction to tridiagonal form: reflections that chase bulges down a band.

use faer::MatRef;

use crate::reflections::{BAND, Reflections};

/// The diagonal and the subdiagonal (with a zero at its end) of T.
#[derive(Clone)]
pub(crate) struct Tridiagonal {
    pub diagonal: Vec<f64>,
    pub subdiagonal: Vec<f64>,
}

/// Reduces the symmetric matrix whose lower band is that of `a`: `B = Q2 T Q2'`.
pub(crate) fn to_tridiagonal(a: MatRef<'_, f64>) -> (Tridiagonal, Reflections) {
    let mut chase = Chase::new(a);
    pulp::Arch::new().dispatch(Run(&mut chase));
    let Chase { band, n, reflections } = chase;
    let entry = |i: usize, j: usize| if i < n { band[j * STRIDE + (i - j)] } else { 0.0 };
    let tridiagonal = Tridiagonal {
        diagonal: (0..n).map(|j| entry(j, j)).collect(),
        subdiagonal: (0..n).map(|j| entry(j + 1, j)).collect(),
    };
    (tridiagonal, reflections)
}

/// Rows of the band and of its bulges that are stored for each column.
const STRIDE: usize = 2 * BAND + 1;

/// The second stage: the lower band, column by column, and the reflections made so far.
struct Chase {
    n: usize,
    band: Vec<f64>,
    reflections: Reflections,
}

/// The chase as a value, so that it is compiled once per instruction set.
struct Run<'a>(&'a mut Chase);

impl pulp::NullaryFnOnce for Run<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        (0..self.0.n.saturating_sub(2)).for_each(|column| self.0.sweep(column));
    }
}

impl Chase {
    fn new(a: MatRef<'_, f64>) -> Self {
        let n = a.nrows();
        let mut band = vec![0.0; n * STRIDE];
        for j in 0..n {
            (0..=BAND.min(n - 1 - j)).for_each(|i| band[j * STRIDE + i] = a[(j + i, j)]);
        }
        Chase { n, band, reflections: Reflections::new(n) }
    }

    /// Makes column `s` tridiagonal, and chases the resulting bulge to the end of the band.
    #[inline(always)]
    fn sweep(&mut self, s: usize) {
        let (mut start, mut column) = (s + 1, s);
        let mut v = [0.0f64; BAND];
        let mut length = BAND.min(self.n - start);
        let mut inverse = self.reflection(start, column, length, &mut v);
        loop {
            self.two_sided(start, &v[..length], inverse);
            let next = start + length;
            let rows = BAND.min(self.n - next);
            if rows == 0 {
                break;
            }
            self.reflect_right(next, rows, start, &v[..length], inverse);
            // Only the first column of the bulge must be eliminated now: the next sweep starts there.
            column = start;
            let width = length;
            (start, length) = (next, rows);
            inverse = self.reflection(start, column, length, &mut v);
            self.reflect_left(start, column + 1, width - 1, &v[..length], inverse);
        }
    }

    /// Computes the reflection that maps `A[start .., column]` to a multiple of its first axis, and applies it to that
    /// column. Returns `1 / tau` and writes v; returns 0 if the column is already reduced.
    #[inline(always)]
    fn reflection(&mut self, start: usize, column: usize, length: usize, v: &mut [f64; BAND]) -> f64 {
        let at = column * STRIDE + (start - column);
        let x = &mut self.band[at..at + length];
        let tail: f64 = x[1..].iter().map(|x| x * x).sum();
        if tail == 0.0 {
            v.fill(0.0);
            self.reflections.push(0.0, &v[..length]);
            return 0.0;
        }
        let norm = (x[0] * x[0] + tail).sqrt();
        let image = if x[0] > 0.0 { -norm } else { norm };
        let pivot = x[0] - image;
        v[0] = 1.0;
        v[1..length].iter_mut().zip(&x[1..]).for_each(|(v, x)| *v = x / pivot);
        let inverse = 2.0 / (1.0 + tail / (pivot * pivot));
        x.fill(0.0);
        x[0] = image;
        self.reflections.push(inverse, &v[..length]);
        inverse
    }

    /// Computes `D <- H D H` for the diagonal block at `start`: `D - v w' - w v'` with
    /// `w = D v / tau - (v' D v) / (2 tau^2) v`.
    #[inline(always)]
    fn two_sided(&mut self, start: usize, v: &[f64], inverse: f64) {
        if inverse == 0.0 {
            return;
        }
        let length = v.len();
        let mut w = [0.0f64; BAND];
        for j in 0..length {
            let at = (start + j) * STRIDE;
            let d = &self.band[at..at + length - j];
            w[j] += d[0] * v[j];
            let mut dot = 0.0;
            for ((w, v_below), d) in w[j + 1..length].iter_mut().zip(&v[j + 1..]).zip(&d[1..]) {
                *w += d * v[j];
                dot += d * v_below;
            }
            w[j] += dot;
        }
        let product: f64 = w[..length].iter().zip(v).map(|(w, v)| w * v).sum();
        let half = 0.5 * inverse * inverse * product;
        w[..length].iter_mut().zip(v).for_each(|(w, v)| *w = inverse * *w - half * v);
        for j in 0..length {
            let at = (start + j) * STRIDE;
            let d = &mut self.band[at..at + length - j];
            for ((d, v_below), w_below) in d.iter_mut().zip(&v[j..]).zip(&w[j..length]) {
                *d -= v_below * w[j] + w_below * v[j];
            }
        }
    }

    /// Computes `E <- E H` for `E = A[row .. row + rows, start .. start + |v|]`.
    #[inline(always)]
    fn reflect_right(&mut self, row: usize, rows: usize, start: usize, v: &[f64], inverse: f64) {
        if inverse == 0.0 {
            return;
        }
        let mut sums = [0.0f64; BAND];
        for (j, v) in v.iter().enumerate() {
            let at = (start + j) * STRIDE + (row - start - j);
            sums[..rows].iter_mut().zip(&self.band[at..at + rows]).for_each(|(sum, e)| *sum += v * e);
        }
        for (j, v) in v.iter().enumerate() {
            let at = (start + j) * STRIDE + (row - start - j);
            let factor = v * inverse;
            self.band[at..at + rows].iter_mut().zip(&sums[..rows]).for_each(|(e, sum)| *e -= factor * sum);
        }
    }

    /// Computes `E <- H E` for `E = A[row .. row + |v|, first .. first + columns]`.
    #[inline(always)]
    fn reflect_left(&mut self, row: usize, first: usize, columns: usize, v: &[f64], inverse: f64) {
        if inverse == 0.0 {
            return;
        }
        for j in first..first + columns {
            let at = j * STRIDE + (row - j);
            let e = &mut self.band[at..at + v.len()];
            let factor = inverse * dot(e, v);
            e.iter_mut().zip(v).for_each(|(e, v)| *e -= factor * v);
        }
    }
}

/// Returns the dot product in eight partial sums, which the compiler vectorises.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0f64; 8];
    let (whole_a, rest_a) = a.as_chunks::<8>();
    let (whole_b, rest_b) = b.as_chunks::<8>();
    for (a, b) in whole_a.iter().zip(whole_b) {
        (0..8).for_each(|lane| sums[lane] += a[lane] * b[lane]);
    }
    sums.iter().sum::<f64>() + rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum::<f64>()
}
