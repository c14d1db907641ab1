//! Edits of a model on computed features: forget, rename, relabel and unlearn.

use super::ExplicitModel;
use crate::config::Config;
use crate::delta::Delta;
use crate::error::Error;
use crate::features::Features;
use crate::label::Label;
use crate::learner::check_weighted_task;
use crate::lift::FeatureSpace;
use crate::methods::Edited;
use crate::methods::lifted::indices;

impl ExplicitModel {
    /// Returns the settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the feature space.
    pub fn space(&self) -> FeatureSpace {
        FeatureSpace::Explicit(self.lifted.lift.clone())
    }

    /// Returns the number of samples of each class.
    pub fn counts(&self) -> &[usize] {
        self.stats.counts()
    }

    /// Returns whether the classifier has been formed since the model last changed.
    pub fn is_prepared(&self) -> bool {
        self.classifier.is_some()
    }

    /// Removes a class from prediction. The contribution of its samples to the Gram matrix stays.
    pub fn forget(&mut self, label: &Label) -> Result<Delta, Error> {
        let class = self.table.removable(label)?;
        self.classifier = None;
        let delta = self.stats.forget(class);
        self.table.remove(class);
        Ok(delta)
    }

    /// Gives a class another name.
    pub fn rename(&mut self, from: &Label, to: Label) -> Result<Delta, Error> {
        let class = self.table.renamed(from, to)?;
        self.classifier = self.classifier.take().map(|classifier| classifier.with_labels(&self.table));
        Ok(Delta::of_classes([class], self.table.len()))
    }

    /// Moves samples that were learned under `from` to other labels; the spectrum does not change.
    pub fn relabel(&mut self, x: Features<'_>, from: &[Label], to: &[Label]) -> Result<Edited, Error> {
        check_weighted_task(x, from, self.lifted.lift.dim())?;
        check_weighted_task(x, to, self.lifted.lift.dim())?;
        if let Some(present) = x.present() {
            return self.relabel(present.features(), &present.of(from), &present.of(to));
        }
        let old = from.iter().map(|label| self.table.find(label)).collect::<Result<Vec<_>, _>>()?;
        let mut table = self.table.clone();
        let new = indices(&mut table, to);
        // A classifier that shares S would force a copy of it.
        self.classifier = None;
        let outcome = self.stats.relabel_weighted(self.lifted.lift(x), &old, &new, x.weights());
        self.lifted.wipe(0);
        let (unchecked, mut delta) = outcome?;
        self.table = table;
        self.remove_empty_classes(&mut delta);
        Ok(Edited { unchecked, delta })
    }

    /// Removes samples that were learned under these labels, as if they had never been learned, to rounding.
    pub fn unlearn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<Edited, Error> {
        check_weighted_task(x, labels, self.lifted.lift.dim())?;
        if let Some(present) = x.present() {
            return self.unlearn(present.features(), &present.of(labels));
        }
        let classes = labels.iter().map(|label| self.table.find(label)).collect::<Result<Vec<_>, _>>()?;
        if x.len() >= self.stats.counts().iter().sum() {
            return Err(Error::NothingLeft { samples: x.len() });
        }
        // A classifier that shares S would force a copy of it.
        self.classifier = None;
        let outcome = self.stats.unlearn_weighted(self.lifted.lift(x), &classes, x.weights());
        self.lifted.wipe(0);
        let (unchecked, mut delta) = outcome?;
        self.remove_empty_classes(&mut delta);
        Ok(Edited { unchecked, delta })
    }

    /// Confirms that this many of the unchecked samples were learned under their labels, by a record of the caller.
    pub fn vouch(&mut self, samples: usize) {
        self.stats.vouch(samples);
    }

    fn remove_empty_classes(&mut self, delta: &mut Delta) {
        while let Some(class) = self.stats.counts().iter().position(|count| *count == 0) {
            delta.append(self.stats.forget(class));
            self.table.remove(class);
        }
    }
}
