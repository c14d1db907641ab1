//! Samples as users have them, odd ones included.

use loranpac::Label;

use crate::random::Random;

/// What samples look like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Data {
    Clusters,
    Zeros,
    Duplicates,
    OneClass,
    Constant,
    OneHot,
    SomeZeros,
    /// Clusters times a power of ten.
    Scaled(i8),
}

/// Labels that are easily confused, or hard to print.
fn label(index: usize) -> Label {
    let long = "x".repeat(300);
    let texts =
        ["7", "", " 7", "cat", "Katze \u{1f408}", "\u{202e}esrever", "line\nbreak", "\u{1b}[31mred", "a|b*c_d", &long];
    match index {
        0 => Label::from(7),
        1 => Label::from(-1),
        2 => Label::from(i64::MAX),
        _ => Label::from(texts[(index - 3) % texts.len()]),
    }
}

/// Some samples with their labels; the same seed gives the same.
pub fn samples(data: Data, count: usize, dim: usize, seed: u64) -> (Vec<f32>, Vec<Label>) {
    let mut random = Random(seed);
    let first = random.below(6);
    let (mut x, mut labels) = (Vec::new(), Vec::new());
    for i in 0..count {
        let class = if data == Data::OneClass { first } else { first + random.below(4) };
        let mut centre = Random(500 + class as u64);
        let row: Vec<f32> = (0..dim).map(|_| centre.symmetric() + 0.4 * random.symmetric()).collect();
        let row = match data {
            Data::Zeros => vec![0.0; dim],
            Data::SomeZeros if random.below(3) == 0 => vec![0.0; dim],
            Data::Constant => vec![1.0 + first as f32; dim],
            Data::OneHot => (0..dim).map(|j| f32::from(u8::from(j == i % dim))).collect(),
            Data::Duplicates if i > 0 && random.below(2) == 0 => x[x.len() - dim..].to_vec(),
            Data::Scaled(power) => row.iter().map(|v| v * 10f32.powi(power.into())).collect(),
            _ => row,
        };
        x.extend(row);
        labels.push(label(class));
    }
    (x, labels)
}
