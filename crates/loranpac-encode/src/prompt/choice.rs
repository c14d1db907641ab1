//! Which prompts inputs get, by their keys, and the part of the loss that draws keys to queries.

use std::ops::Range;

use super::cosine::{add_gradient, cosine};

/// Keys that are drawn to the queries of the inputs that selected them.
#[derive(Debug, Clone)]
pub(super) struct Matching {
    pub keys: Range<usize>,
    pub dim: usize,
    pub pull: f64,
    pub batchwise: bool,
}

impl Matching {
    /// For each query the `top` keys with the largest cosine; with `batchwise`, those that most queries select.
    pub fn select(&self, queries: &[f32], keys: &[f32], top: usize) -> Vec<Vec<usize>> {
        select(queries, keys, self.dim, top, self.batchwise)
    }

    /// Adds the gradients of the keys. Returns the similarity's part of the loss.
    pub fn gradients(&self, (values, queries): (&[f32], &[f32]), chosen: &[Vec<usize>], out: &mut [f32]) -> f64 {
        let (keys, out) = (&values[self.keys.clone()], &mut out[self.keys.clone()]);
        let slope = -self.pull / chosen.len() as f64;
        let mut loss = 0.0;
        for (query, chosen) in queries.chunks(self.dim).zip(chosen) {
            for key in chosen {
                let range = key * self.dim..(key + 1) * self.dim;
                loss += slope * cosine(query, &keys[range.clone()]);
                add_gradient(query, &keys[range.clone()], slope, &mut out[range]);
            }
        }
        loss
    }
}

/// For each query the `top` keys with the largest cosine, in descending order; the first of equal ones. With `batchwise`, those that most queries
/// select, for all of them.
fn select(queries: &[f32], keys: &[f32], dim: usize, top: usize, batchwise: bool) -> Vec<Vec<usize>> {
    let best = |query: &[f32]| -> Vec<usize> {
        let cosines: Vec<f64> = keys.chunks(dim).map(|key| cosine(query, key)).collect();
        largest(&cosines, top)
    };
    let chosen: Vec<Vec<usize>> = queries.chunks(dim).map(best).collect();
    if !batchwise {
        return chosen;
    }
    let mut counts = vec![0.0; keys.len() / dim];
    chosen.iter().flatten().for_each(|key| counts[*key] += 1.0);
    vec![largest(&counts, top); chosen.len()]
}

/// The places of the largest numbers.
fn largest(numbers: &[f64], count: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..numbers.len()).collect();
    places.sort_by(|a, b| numbers[*b].total_cmp(&numbers[*a]).then(a.cmp(b)));
    places.truncate(count);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_nearest_in_direction_are_selected() {
        let keys = [1.0, 0.0, 0.0, 9.0, 1.0, 1.0];
        let queries = [5.0, 1.0, 0.1, 3.0, 2.0, 0.0];
        assert_eq!(select(&queries, &keys, 2, 2, false), [[0, 2], [1, 2], [0, 2]]);
        // 2 is selected by all, 0 by two of three.
        assert_eq!(select(&queries, &keys, 2, 2, true), [[2, 0], [2, 0], [2, 0]]);
    }
}
