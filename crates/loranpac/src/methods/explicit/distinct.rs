//! Copies within a chunk: they are lifted and learned once, with the sum of their weights.
//!
//! The samples of a chunk that has copies or weights are put into one order. A model is then the same to the last bit whether
//! samples of a chunk are repeated or weighted, and in whatever order they come.

use std::collections::HashSet;

use crate::features::Features;
use crate::statistics::Weighted;

/// The different samples of a chunk.
pub(super) struct Distinct {
    /// Features, one sample after the other.
    data: Vec<f32>,
    dim: usize,
    /// The class of each.
    pub classes: Vec<usize>,
    weights: Vec<f64>,
    copies: Vec<usize>,
}

impl Distinct {
    /// Merges copies: samples with the same features, to the last bit, and the same class. Returns None if there are none, and all
    /// weights are 1.
    pub fn of(x: Features<'_>, classes: &[usize]) -> Option<Self> {
        // Adding zero makes -0 and 0 equal.
        let key = |i: usize| x.row(i).iter().map(|v| (v + 0.0).to_bits());
        if x.weights().is_none() {
            let mut known = HashSet::new();
            if (0..x.len()).all(|i| known.insert((classes[i], key(i).collect::<Vec<u32>>()))) {
                return None;
            }
        }
        let mut order: Vec<usize> = (0..x.len()).collect();
        // Features first: indices of classes depend on the order in which classes come.
        order.sort_by(|&i, &j| key(i).cmp(key(j)).then(classes[i].cmp(&classes[j])));
        let dim = x.dim();
        let mut distinct =
            Distinct { data: Vec::new(), dim, classes: Vec::new(), weights: Vec::new(), copies: Vec::new() };
        let mut latest = None;
        for i in order {
            let weight = x.weights().map_or(1.0, |weights| weights[i]);
            if latest.is_some_and(|j| classes[i] == classes[j] && key(i).eq(key(j))) {
                *distinct.weights.last_mut()? += weight;
                *distinct.copies.last_mut()? += 1;
                continue;
            }
            latest = Some(i);
            distinct.data.extend(x.row(i).iter().map(|v| v + 0.0));
            distinct.classes.push(classes[i]);
            distinct.weights.push(weight);
            distinct.copies.push(1);
        }
        Some(distinct)
    }

    /// Views the features.
    pub fn features(&self) -> Option<Features<'_>> {
        Features::new(&self.data, self.dim).ok()
    }

    /// Views the weights.
    pub fn weighted(&self) -> Weighted<'_> {
        Weighted { weights: &self.weights, copies: &self.copies }
    }
}
