//! A map that tests add to the list: this file and one line in [`super::LIFTS`] are all that a new lift needs.

use std::sync::Arc;

use faer::prelude::ReborrowMut;
use faer::{MatMut, MatRef};

use super::{FeatureMap, LiftEntry, Operation, Rows};

/// Twice the sample.
struct Doubled(usize);

impl FeatureMap for Doubled {
    fn name(&self) -> &'static str {
        DUMMY.name
    }
    fn dim(&self) -> usize {
        self.0
    }
    fn width(&self) -> usize {
        self.0
    }
    fn lift(&self, x: MatRef<'_, f32>, mut h: MatMut<'_, f32>) {
        for (j, column) in x.col_iter().enumerate() {
            h.rb_mut().col_mut(j).iter_mut().zip(column.iter()).for_each(|(h, x)| *h = 2.0 * x);
        }
    }
    fn operations(&self) -> Vec<Operation> {
        vec![Operation::Scale(2.0)]
    }
    fn bytes(&self) -> usize {
        0
    }
}

pub(super) const DUMMY: LiftEntry = LiftEntry {
    name: "dummy",
    summary: "twice the sample",
    projection: Rows::None,
    limit: None,
    build: |spec| Ok(Arc::new(Doubled(spec.dim))),
};

#[cfg(test)]
mod tests {
    use crate::{Label, Model};

    #[test]
    fn a_file_and_a_line_make_a_lift() {
        let mut model = Model::builder(2).lift("dummy").build().unwrap();
        model.learn(&[1.0, 0.0, 0.0, 1.0], &["a", "b"]).unwrap();
        let classifier = model.classifier().unwrap();
        assert_eq!(classifier.space().name(), "dummy");
        assert_eq!(classifier.predict(&[0.1, 0.9]).unwrap(), [Label::from("b")]);
        assert!(classifier.weights().is_some_and(|weights| weights.width() == 2));
    }
}
