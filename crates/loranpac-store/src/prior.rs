//! The prior of a model: with which factors its scores become decisions.

use loranpac::{Classifier, Prior};

use crate::error::Error;
use crate::manifest::Manifest;
use crate::session::Session;

/// Classes differ so much in size that a prior matters if the largest has this many times the samples of the smallest.
const UNEQUAL: f64 = 10.0;

impl Session {
    /// Sets the prior of classifiers from now on, and of the next version. The weights do not change. A temperature that was
    /// fitted before stays, but belongs to other scores.
    pub fn set_prior(&mut self, prior: Prior) -> Result<(), Error> {
        let prior = prior.validate()?;
        if prior != self.manifest.prior {
            self.manifest.prior = prior;
            self.manifest.outdate_temperature();
        }
        Ok(())
    }

    /// Returns a classifier of the model with its prior and its temperature.
    pub(crate) fn decided(&self, classifier: Classifier) -> Result<Classifier, Error> {
        let counts = match &self.model {
            Some(model) => model.counts().iter().map(|count| *count as f64).collect(),
            None => self.manifest.class_sizes(),
        };
        Ok(classifier.with_temperature(self.manifest.temperature()).with_prior(&self.manifest.prior, &counts)?)
    }
}

impl Manifest {
    /// Returns the number of samples of each class.
    pub fn class_sizes(&self) -> Vec<f64> {
        self.classes.iter().map(|class| class.count as f64).collect()
    }

    /// Returns the numbers of samples of the smallest and the largest class, if they are so different that scores without a
    /// prior favour large classes, and there is no prior.
    pub fn unequal_classes(&self) -> Option<(f64, f64)> {
        let sizes = self.class_sizes().into_iter().filter(|size| *size > 0.0);
        let (least, most) =
            sizes.fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), n| (least.min(n), most.max(n)));
        (self.prior.is_none() && most >= UNEQUAL * least).then_some((least, most))
    }
}
