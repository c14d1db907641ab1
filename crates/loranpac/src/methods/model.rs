//! LoRanPAC: a model that learns, merges, forgets, and can be written down, at finite or infinite width.

use super::{Builder, Edited, ExplicitModel, KernelModel};
use crate::classifier::Classifier;
use crate::config::Config;
use crate::delta::Delta;
use crate::error::Error;
use crate::features::{Features, IntoFeatures};
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary};
use crate::lift::FeatureSpace;

/// LoRanPAC in either form.
pub enum Model {
    /// On computed features.
    Explicit(ExplicitModel),
    /// Of infinite width, on kept samples.
    Kernel(KernelModel),
}

/// Calls the same method of either form.
macro_rules! either {
    ($model:expr, $form:ident => $call:expr) => {
        match $model {
            Model::Explicit($form) => $call,
            Model::Kernel($form) => $call,
        }
    };
}

impl Model {
    /// A model that has learned nothing yet, in the form that the feature space asks for.
    pub fn new(space: FeatureSpace, config: Config) -> Result<Model, Error> {
        match space {
            FeatureSpace::Explicit(map) => Ok(Model::Explicit(ExplicitModel::new(map, config)?)),
            FeatureSpace::Kernel(kernel) => Ok(Model::Kernel(KernelModel::new(kernel, config)?)),
        }
    }

    /// Settings of a new model for samples of `dim` features.
    pub fn builder(dim: usize) -> Builder {
        Builder::new(dim)
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        either!(self, model => model.config())
    }

    /// The feature space.
    pub fn space(&self) -> FeatureSpace {
        either!(self, model => model.space())
    }

    /// Samples of each class.
    pub fn counts(&self) -> &[usize] {
        either!(self, model => model.counts())
    }

    /// Whether the classifier has been formed since the model last changed.
    pub fn is_prepared(&self) -> bool {
        either!(self, model => model.is_prepared())
    }

    /// Learns a task: one row of features per sample, one label each. Classes may be new or known, in any mixture. Bad input
    /// changes nothing.
    pub fn learn<'x, L>(&mut self, x: impl IntoFeatures<'x>, labels: &[L]) -> Result<(), Error>
    where
        L: Clone + Into<Label>,
    {
        let labels: Vec<Label> = labels.iter().cloned().map(Into::into).collect();
        self.learn_with(x.into_features(self.space().dim())?, &labels, &mut drop)
    }

    /// The classifier of everything learned so far. It does not change when more is learned.
    pub fn classifier(&mut self) -> Result<Classifier, Error> {
        either!(self, model => model.classifier())
    }

    /// The classes by index, in the order in which they first appeared.
    pub fn classes(&self) -> &LabelTable {
        either!(self, model => model.classes())
    }

    /// What is known about the model now. Certificate and error refer to the classifier if it is up to date.
    pub fn summary(&self) -> Summary {
        either!(self, model => model.summary())
    }

    /// Eigenvalues of the feature Gram matrix, in descending order.
    pub fn spectrum(&mut self) -> Result<Vec<f64>, Error> {
        Ok(either!(self, model => model.spectrum())?.unwrap_or_default())
    }

    /// Learns a task, and reports what changed as it goes.
    pub fn learn_with(
        &mut self,
        x: Features<'_>,
        labels: &[Label],
        changed: &mut dyn FnMut(Delta),
    ) -> Result<(), Error> {
        either!(self, model => model.learn_with(x, labels, changed))
    }

    /// Takes in everything that other models in the same feature space have learned, as if it had been learned here. The
    /// basis is cut once, at the end, if it has outgrown its cap. Models of other spaces are refused; nothing changes then.
    pub fn merge<'a>(&mut self, others: impl IntoIterator<Item = &'a mut Model>) -> Result<Delta, Error> {
        let others: Vec<&mut Model> = others.into_iter().collect();
        others.iter().try_for_each(|other| self.space().require_same(&other.space()))?;
        // Models of the same space have the same form.
        match self {
            Model::Explicit(model) => model.merge(others.into_iter().filter_map(|other| match other {
                Model::Explicit(other) => Some(other),
                Model::Kernel(_) => None,
            })),
            Model::Kernel(model) => model.merge(others.into_iter().filter_map(|other| match other {
                Model::Kernel(other) => Some(other),
                Model::Explicit(_) => None,
            })),
        }
    }

    /// Removes a class from prediction. At infinite width its samples are removed with it; otherwise their contribution to
    /// the Gram matrix stays.
    pub fn forget(&mut self, label: &Label) -> Result<Delta, Error> {
        either!(self, model => model.forget(label))
    }

    /// Gives a class another name.
    pub fn rename(&mut self, from: &Label, to: Label) -> Result<Delta, Error> {
        either!(self, model => model.rename(from, to))
    }

    /// Moves samples that were learned under `from` to other labels; the spectrum does not change.
    pub fn relabel(&mut self, x: Features<'_>, from: &[Label], to: &[Label]) -> Result<Edited, Error> {
        either!(self, model => model.relabel(x, from, to))
    }

    /// Takes samples back that were learned under these labels, as if they had never been seen, to rounding.
    pub fn unlearn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<Edited, Error> {
        either!(self, model => model.unlearn(x, labels))
    }

    /// The caller has a record that so many of the samples that could not be checked were learned under their labels. At
    /// infinite width every sample is checked.
    pub fn vouch(&mut self, samples: usize) {
        if let Model::Explicit(model) = self {
            model.vouch(samples);
        }
    }
}

impl Learner for Model {
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        self.learn_with(x, labels, &mut drop)
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        Model::classifier(self)
    }

    fn spectrum(&mut self) -> Result<Option<Vec<f64>>, Error> {
        Model::spectrum(self).map(Some)
    }

    fn classes(&self) -> &LabelTable {
        Model::classes(self)
    }

    fn summary(&self) -> Summary {
        Model::summary(self)
    }

    fn settings(&self) -> serde_json::Value {
        either!(self, model => model.settings())
    }

    fn state_bytes(&self) -> usize {
        either!(self, model => model.state_bytes())
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        either!(self, model => model.peak_bytes(stream))
    }
}
