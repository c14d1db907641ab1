//! The data set inside the program: 1,797 handwritten digits (8 x 8 pixels, ten classes).
//!
//! `digits.bin` holds the test part of the *Optical Recognition of Handwritten Digits* data set by E. Alpaydin and
//! C. Kaynak (UCI Machine Learning Repository, 1998, <https://doi.org/10.24432/C50P49>), licensed under
//! [CC BY 4.0](https://creativecommons.org/licenses/by/4.0/). The values and their order are unchanged; only the file
//! format differs: each sample is 64 bytes, one pixel from 0 to 16 each, followed by one byte, the digit.

use loranpac::Label;

use crate::dataset::{Dataset, Part};

/// Pixels per sample.
const PIXELS: usize = 64;
static DIGITS: &[u8] = include_bytes!("digits.bin");

/// The digits. Every fourth sample is a test sample. The three thirds of the set, written by different people, are
/// the domains.
pub fn digits() -> Dataset {
    let samples = DIGITS.chunks_exact(PIXELS + 1);
    let count = samples.len();
    let mut halves = [(Part::default(), Vec::new()), (Part::default(), Vec::new())];
    for (row, sample) in samples.enumerate() {
        let (part, labels) = &mut halves[usize::from(row % 4 == 3)];
        part.x.extend(sample[..PIXELS].iter().map(|&pixel| f32::from(pixel)));
        labels.push(Label::Integer(sample[PIXELS].into()));
        part.domain.get_or_insert_default().push(Label::Integer((3 * row / count) as i64));
    }
    let [train, test] = halves;
    Dataset::new("digits".to_owned(), PIXELS, train, test)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_are_complete() {
        let digits = digits();
        assert_eq!((digits.dim, digits.classes.len()), (64, 10));
        assert_eq!(digits.train.len() + digits.test.len(), 1797);
        assert_eq!(digits.classes, (0..10).map(Label::Integer).collect::<Vec<_>>());
        assert!((0..10).all(|class| digits.test.y.iter().filter(|&&y| y == class).count() > 30));
        assert!(digits.train.x.iter().chain(&digits.test.x).all(|pixel| (0.0..=16.0).contains(pixel)));
    }

    #[test]
    fn the_digits_are_those_of_version_0_1_0() {
        // Runs are found again by the digest of their data.
        assert_eq!(digits().digest(), 0x28b3_2f7a_72e1_176f);
    }
}
