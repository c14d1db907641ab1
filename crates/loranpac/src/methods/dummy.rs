//! A method that tests add to the list: this file and one line in [`crate::registry::METHODS`] are all that a new method needs.

use std::sync::Arc;

use crate::classifier::Classifier;
use crate::error::Error;
use crate::features::Features;
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary, check_task};
use crate::lift::{FeatureSpace, Identity};
use crate::method::Method;

use super::simplecil::SIMPLECIL;

/// Always predicts the first label.
struct First {
    dim: usize,
    table: LabelTable,
}

impl Learner for First {
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        check_task(x, labels, self.dim)?;
        labels.iter().for_each(|label| {
            self.table.get_or_insert(label);
        });
        Ok(())
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        let space = FeatureSpace::from(Arc::new(Identity::new(self.dim)));
        Classifier::linear(space, self.table.labels(), |_, _| Ok(()))
    }

    fn classes(&self) -> &LabelTable {
        &self.table
    }

    fn summary(&self) -> Summary {
        Summary { classes: self.table.len(), ..Summary::default() }
    }

    fn state_bytes(&self) -> usize {
        0
    }

    fn peak_bytes(&self, _stream: &StreamSizes) -> usize {
        0
    }
}

pub(crate) const DUMMY: Method = Method {
    name: "dummy",
    summary: "always the first label",
    build: |options, _| Ok(Box::new(First { dim: options.space.dim(), table: LabelTable::default() })),
    ..SIMPLECIL
};

#[cfg(test)]
mod tests {
    use crate::lift::{self, LiftSpec};
    use crate::registry::{self, MethodOptions};
    use crate::{Features, Label};

    #[test]
    fn a_file_and_a_line_make_a_method() {
        let map = lift::build("identity", LiftSpec::new(2, 2)).unwrap();
        let mut method = registry::find("dummy").unwrap().build(&MethodOptions::new(map)).unwrap();
        let labels = [Label::from(7), Label::from(8)];
        method.learn(Features::new(&[1.0, 0.0, 0.0, 1.0], 2).unwrap(), &labels).unwrap();
        assert_eq!(method.classifier().unwrap().predict(&[0.0, 1.0]).unwrap(), [Label::from(7)]);
    }
}
