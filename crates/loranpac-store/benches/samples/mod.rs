//! Samples for benches.

use loranpac::Label;

/// Clustered samples of unit length, about.
pub fn samples(count: usize, dim: usize, classes: usize, seed: u64) -> (Vec<f32>, Vec<Label>) {
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    let labels: Vec<usize> = (0..count).map(|i| (i * 7 + seed as usize) % classes).collect();
    let centre = |class: usize, j: usize| (((class * 7919 + j * 104_729) % 1009) as f32 / 504.5 - 1.0) * 0.05;
    let x =
        labels.iter().flat_map(|&class| (0..dim).map(move |j| (class, j))).map(|(c, j)| centre(c, j) + 0.1 * next());
    let x = x.collect();
    (x, labels.into_iter().map(|class| Label::from(class as i64)).collect())
}
