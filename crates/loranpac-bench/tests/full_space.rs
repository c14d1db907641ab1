//! Real features that fill their space: more samples than dimensions, and some dimensions that are never active.

use loranpac::internals::{DEFAULT_DROP, Statistics};
use loranpac::lift::{Activation, FeatureMap, Projection, Random};
use loranpac_bench::spec::Scenario;
use loranpac_bench::stream;
use loranpac_data::embedded;

#[test]
fn the_digits_fill_a_narrow_lift_without_a_direction_made_of_noise() {
    let digits = embedded::digits();
    let width = 800;
    let lift = Random::new(Projection::from_seed(width, digits.dim, 0, true), Activation::Relu);
    let mut ranks = Vec::new();
    for increment in [1, 2, 5, 10] {
        let order = stream::class_order(&digits, 1993);
        let tasks = stream::tasks(&digits, Scenario::Class { base: 0, increment }, &order).unwrap();
        let mut stats = Statistics::<f32>::new(width, DEFAULT_DROP);
        for task in &tasks {
            for rows in task.train.chunks(384) {
                let (x, _) = digits.train.gather(rows, digits.dim);
                let mut h = faer::Mat::<f32>::zeros(width, rows.len());
                lift.lift(faer::MatRef::from_column_major_slice(&x, digits.dim, rows.len()), h.as_mut());
                stats.absorb(h.as_mut(), &vec![0; rows.len()]);
            }
            let q = stats.basis().gram(); // Lower triangle.
            let off = |(i, j): (usize, usize)| (q[(i, j)] - f64::from(u8::from(i == j))).abs();
            let departure = (0..q.nrows()).flat_map(|i| (0..=i).map(move |j| (i, j))).map(off).fold(0.0, f64::max);
            assert!(departure < 1e-4, "Inc-{increment}, {} samples: |Q'Q - I| = {departure:e}", stats.samples());
        }
        ranks.push(stats.basis().rank());
    }
    assert!(ranks[0] < width && ranks.iter().all(|rank| *rank == ranks[0]), "{ranks:?}");
}
