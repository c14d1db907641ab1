//! Settings of training.

use serde::{Deserialize, Serialize};

use super::head::HeadKind;
use super::optimise::Optimiser;
use crate::error::Error;
use crate::transformer::ModuleKind;

/// How modules are trained. The defaults are those of first-session adaptation in the literature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// What is trained inside the encoder.
    pub module: ModuleKind,
    /// The classifier that is trained with it.
    pub head: HeadKind,
    /// The scale of a cosine classifier before training. At 1, the softmax of cosines is nearly flat, and gradients of modules are small.
    #[serde(default = "plain_scale")]
    pub scale: f64,
    /// How numbers follow their gradients.
    pub optimiser: Optimiser,
    /// The rate of the first epoch. It falls along a cosine to zero.
    pub rate: f64,
    /// Most epochs.
    pub epochs: usize,
    /// Samples per step.
    pub batch: usize,
    /// Seed of everything random.
    pub seed: u64,
    /// One in this many samples of each class that has as many is held out; 0: none.
    pub held_out: usize,
    /// Training ends after this many epochs without a better accuracy of held-out samples; 0: never.
    pub patience: usize,
    /// Whether images are cropped and mirrored at random.
    pub augment: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            module: ModuleKind::ALL[0],
            head: HeadKind::Cosine,
            scale: plain_scale(),
            optimiser: Optimiser::SGD,
            rate: 0.01,
            epochs: 20,
            batch: 48,
            seed: 0,
            held_out: 5,
            patience: 5,
            augment: true,
        }
    }
}

/// The scale of adapters whose file does not record it.
fn plain_scale() -> f64 {
    1.0
}

impl Settings {
    /// The rate of an epoch, as PyTorch's `CosineAnnealingLR` has it: `rate (1 + cos(π epoch / epochs)) / 2`.
    pub fn rate_of(&self, epoch: usize) -> f64 {
        let share = epoch as f64 / self.epochs.max(1) as f64;
        0.5 * self.rate * (1.0 + libm::cos(std::f64::consts::PI * share))
    }

    /// The module of this name; with a size, unless it has none.
    ///
    /// # Errors
    /// If there is no such module, or it has no size.
    pub fn module_of(name: &str, size: Option<usize>) -> Result<ModuleKind, Error> {
        let refuse = |name: &'static str, reason: String| Error::Adapt { name, reason };
        let module = ModuleKind::from_name(name).ok_or_else(|| {
            let known: Vec<&str> = ModuleKind::ALL.iter().map(|kind| kind.name()).collect();
            refuse("module", format!("one of {} is expected, not {name}", known.join(", ")))
        })?;
        let Some(size) = size else { return Ok(module) };
        module.sized(size).ok_or_else(|| refuse("size", format!("it has no effect with the module {name}")))
    }

    /// Refuses settings that cannot be used with an encoder of d features.
    ///
    /// # Errors
    /// If a setting is out of its range, or the module does not fit.
    pub fn check(&self, d: usize) -> Result<(), Error> {
        let refuse = |name: &'static str, reason: String| Err(Error::Adapt { name, reason });
        if !self.module.fits(d) {
            let most = d.max(1024);
            let reason =
                format!("{} does not fit an encoder of {d} features; give a size from 1 to {most}", self.module);
            return refuse("size", reason);
        }
        if !(self.rate.is_finite() && self.rate > 0.0) {
            return refuse("rate", format!("{} is not a positive number", self.rate));
        }
        if !(self.scale > 0.0 && self.scale <= 1000.0) {
            return refuse("scale", format!("{} is not above 0 and at most 1000", self.scale));
        }
        if self.epochs == 0 || self.epochs > 100_000 {
            return refuse("epochs", format!("{} is not between 1 and 100000", self.epochs));
        }
        if self.batch == 0 || self.batch > 1 << 16 {
            return refuse("batch", format!("{} is not between 1 and 65536", self.batch));
        }
        if self.held_out == 1 {
            return refuse("held-out", "1 leaves no sample to train on; give 2 or more, or 0 for none".to_owned());
        }
        self.optimiser.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)` from 0.01.
    #[test]
    fn the_rate_falls_along_pytorchs_cosine() {
        let settings = Settings { epochs: 4, ..Settings::default() };
        let expected = [0.01, 0.008535533905932738, 0.005, 0.0014644660940672624];
        for (epoch, expected) in expected.into_iter().enumerate() {
            assert!((settings.rate_of(epoch) - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn settings_that_cannot_be_used_are_refused_by_name() {
        let check = |change: &dyn Fn(&mut Settings), expected: &str| {
            let mut settings = Settings::default();
            change(&mut settings);
            let error = settings.check(48).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(&|s| s.rate = f64::NAN, "`rate`");
        check(&|s| s.rate = 0.0, "`rate`");
        check(&|s| s.scale = 0.0, "`scale`");
        check(&|s| s.scale = f64::NAN, "`scale`");
        check(&|s| s.epochs = 0, "`epochs`");
        check(&|s| s.batch = 0, "`batch`");
        check(&|s| s.held_out = 1, "`held-out`");
        check(&|s| s.module = ModuleKind::VptDeep { tokens: 0 }, "`size`");
        check(&|s| s.module = ModuleKind::Lora { rank: 5000, scale: 1.0 }, "`size`");
        check(&|s| s.optimiser = Optimiser::Sgd { momentum: 1.0, decay: 0.0 }, "`optimiser`");
        Settings::default().check(48).unwrap();
    }
}
