//! LoRanPAC: a model that can learn, merge, forget and be stored, at finite or infinite width.

use super::{Edited, ExplicitModel, KernelModel};
use crate::classifier::Classifier;
use crate::config::Config;
use crate::delta::{Delta, Receiver};
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
    /// Creates a model that has learned nothing yet, in the form of the feature space.
    pub fn new(space: FeatureSpace, config: Config) -> Result<Model, Error> {
        match space {
            FeatureSpace::Explicit(map) => Ok(Model::Explicit(ExplicitModel::new(map, config)?)),
            FeatureSpace::Kernel(kernel) => Ok(Model::Kernel(KernelModel::new(kernel, config)?)),
        }
    }

    /// Returns the settings.
    pub fn config(&self) -> &Config {
        either!(self, model => model.config())
    }

    /// Returns the feature space.
    pub fn space(&self) -> FeatureSpace {
        either!(self, model => model.space())
    }

    /// Returns the number of samples of each class.
    pub fn counts(&self) -> &[usize] {
        either!(self, model => model.counts())
    }

    /// Returns whether the classifier has been formed since the model last changed.
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

    /// Learns a task whose samples have weights from 0 on: a sample of weight 2 is learned as if it were there twice, and one of weight
    /// 0 not at all. The classifier is the weighted least-squares solution. [`Features::weighted`] gives weights to samples of other
    /// calls, such as [`Model::unlearn`].
    ///
    /// ```
    /// use loranpac::{Label, Model};
    ///
    /// let mut model = Model::builder(2).width(500).build()?;
    /// model.learn_weighted(&[1.0, 0.1, 0.1, 1.0, 1.0, 0.2], &["east", "north", "north"], &[1.0, 1.0, 0.0])?;
    /// assert_eq!(model.counts(), [1, 1]);
    /// # Ok::<(), loranpac::Error>(())
    /// ```
    pub fn learn_weighted<'x, L>(
        &mut self,
        x: impl IntoFeatures<'x>,
        labels: &[L],
        weights: &'x [f64],
    ) -> Result<(), Error>
    where
        L: Clone + Into<Label>,
    {
        let x = x.into_features(self.space().dim())?.weighted(weights)?;
        self.learn(x, labels)
    }

    /// Returns the classifier of everything learned so far. Further learning does not change it.
    pub fn classifier(&mut self) -> Result<Classifier, Error> {
        either!(self, model => model.classifier())
    }

    /// Returns the classes by index, in the order of their first appearance.
    pub fn classes(&self) -> &LabelTable {
        either!(self, model => model.classes())
    }

    /// Returns a summary of the model. Certificate and error refer to the classifier if it is up to date.
    pub fn summary(&self) -> Summary {
        either!(self, model => model.summary())
    }

    /// Returns the eigenvalues of the feature Gram matrix, in descending order.
    pub fn spectrum(&mut self) -> Result<Vec<f64>, Error> {
        Ok(either!(self, model => model.spectrum())?.unwrap_or_default())
    }

    /// Learns a task, and reports the changes.
    pub fn learn_with(&mut self, x: Features<'_>, labels: &[Label], changed: Receiver<'_>) -> Result<(), Error> {
        either!(self, model => model.learn_with(x, labels, changed))
    }

    /// Merges other models in the same feature space, as if everything had been learned here. The basis is cut once, at
    /// the end, if it exceeds its cap. Models in other spaces are refused, and then nothing changes.
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

    /// Removes samples that were learned under these labels, as if they had never been learned, to rounding.
    pub fn unlearn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<Edited, Error> {
        either!(self, model => model.unlearn(x, labels))
    }

    /// Confirms that this many of the unchecked samples were learned under their labels, by a record of the caller. At
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

    fn expect(&mut self, stream: &StreamSizes) {
        either!(self, model => model.expect(stream));
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        either!(self, model => model.peak_bytes(stream))
    }
}
