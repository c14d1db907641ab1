//! The data set inside the program: 1,797 handwritten digits (8 x 8 pixels, ten classes), from the `smartcore` crate.

use loranpac::Label;

use crate::dataset::{Dataset, Part};

/// The digits; every fourth sample is for testing. The thirds of the set, which different people wrote, are domains.
pub fn digits() -> Dataset {
    let source = smartcore::dataset::digits::load_dataset();
    let dim = source.num_features;
    let mut halves = [(Part::default(), Vec::new()), (Part::default(), Vec::new())];
    for (row, (x, y)) in source.data.chunks_exact(dim).zip(&source.target).enumerate() {
        let (part, labels) = &mut halves[usize::from(row % 4 == 3)];
        part.x.extend_from_slice(x);
        labels.push(Label::Integer(*y as i64));
        part.domain.get_or_insert_default().push(Label::Integer((3 * row / source.num_samples) as i64));
    }
    let [train, test] = halves;
    Dataset::new("digits".to_owned(), dim, train, test)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_are_all_there() {
        let digits = digits();
        assert_eq!((digits.dim, digits.classes.len()), (64, 10));
        assert_eq!(digits.train.len() + digits.test.len(), 1797);
        assert_eq!(digits.classes, (0..10).map(Label::Integer).collect::<Vec<_>>());
        assert!((0..10).all(|class| digits.test.y.iter().filter(|&&y| y == class).count() > 30));
    }
}
