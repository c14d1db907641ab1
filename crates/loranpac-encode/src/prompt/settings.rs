//! Settings of prompt methods.

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// A prompt method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptKind {
    /// L2P (Wang et al., CVPR 2022): tokens from a pool, selected by keys.
    L2p,
    /// DualPrompt (Wang et al., ECCV 2022): prefixes for all tasks, and prefixes of each task.
    DualPrompt,
    /// CODA-Prompt (Smith et al., CVPR 2023): prefixes that are weighted sums of components.
    CodaPrompt,
}

/// How prompts are trained. [`PromptSettings::new`] has the sizes and schedules of the literature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptSettings {
    /// The method.
    pub kind: PromptKind,
    /// The rate of Adam in the first epoch. CODA-Prompt's falls along a cosine, the others' is constant.
    pub rate: f64,
    /// Epochs per task.
    pub epochs: usize,
    /// Samples per step.
    pub batch: usize,
    /// Prompts of L2P, or components of CODA-Prompt. DualPrompt has one of each task.
    pub pool: usize,
    /// Rows of a prompt: tokens (L2P), keys and as many values (DualPrompt), or both together (CODA-Prompt).
    pub length: usize,
    /// Prompts that L2P selects for an input.
    pub top: usize,
    /// Factor of the similarity of queries and selected keys, which L2P and DualPrompt subtract from the loss.
    pub pull: f64,
    /// Whether all inputs of a batch get the prompts that most of them select (L2P and DualPrompt). Scores then depend on the batch.
    pub batchwise: bool,
    /// Whether images are cropped and mirrored at random in training. Queries are those of whole images.
    pub augment: bool,
    /// Seed of everything random.
    pub seed: u64,
}

impl PromptSettings {
    /// The settings of the literature.
    pub fn new(kind: PromptKind) -> PromptSettings {
        let (rate, epochs, batch) = match kind {
            PromptKind::L2p => (0.001_875, 5, 16),
            PromptKind::DualPrompt => (0.001, 5, 24),
            PromptKind::CodaPrompt => (0.001, 20, 128),
        };
        let (pool, length) = match kind {
            PromptKind::L2p | PromptKind::DualPrompt => (10, 5),
            PromptKind::CodaPrompt => (100, 8),
        };
        let (top, pull, batchwise, augment, seed) = (5, 0.1, false, true, 0);
        PromptSettings { kind, rate, epochs, batch, pool, length, top, pull, batchwise, augment, seed }
    }

    /// The rate of an epoch: constant, or `rate cos(99 π epoch / (200 (epochs - 1)))` for CODA-Prompt.
    pub fn rate_of(&self, epoch: usize) -> f64 {
        match self.kind {
            PromptKind::CodaPrompt if self.epochs > 1 => {
                let share = 99.0 * epoch as f64 / (200.0 * (self.epochs - 1) as f64);
                self.rate * libm::cos(std::f64::consts::PI * share)
            }
            _ => self.rate,
        }
    }

    /// Refuses settings that cannot be used for a number of tasks.
    ///
    /// # Errors
    /// With the name of the setting and what to do.
    pub fn check(&self, tasks: usize) -> Result<(), Error> {
        let refuse = |name: &'static str, reason: String| Err(Error::Adapt { name, reason });
        let count = |name: &'static str, number: usize, most: usize| match (1..=most).contains(&number) {
            true => Ok(()),
            false => refuse(name, format!("{number} is not between 1 and {most}")),
        };
        if !(self.rate.is_finite() && self.rate > 0.0) {
            return refuse("rate", format!("{} is not a positive number", self.rate));
        }
        if !(self.pull.is_finite() && self.pull >= 0.0) {
            return refuse("pull", format!("{} is not a number >= 0", self.pull));
        }
        count("epochs", self.epochs, 100_000)?;
        count("batch", self.batch, 1 << 16)?;
        count("pool", self.pool, 1 << 16)?;
        count("length", self.length, 1024)?;
        count("tasks", tasks, 1 << 16)?;
        match self.kind {
            PromptKind::L2p if !(1..=self.pool).contains(&self.top) => refuse(
                "top",
                format!(
                    "{} prompts cannot be selected from a pool of {}; lower `top` or raise `pool`",
                    self.top, self.pool
                ),
            ),
            PromptKind::L2p if self.top * self.length > 1024 => {
                refuse("length", format!("{} prompts of {} are more than 1024 tokens", self.top, self.length))
            }
            PromptKind::CodaPrompt if self.length % 2 == 1 => {
                refuse("length", format!("{} is odd: half of the rows are keys, the others values", self.length))
            }
            PromptKind::CodaPrompt if self.pool < tasks => refuse(
                "pool",
                format!("{} components cannot be divided over {tasks} tasks; give at least {tasks}", self.pool),
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_coda_prompt_falls_along_its_cosine() {
        let settings = PromptSettings { epochs: 3, ..PromptSettings::new(PromptKind::CodaPrompt) };
        // cos(0), cos(0.2475 pi), cos(0.495 pi)
        for (epoch, expected) in [1.0, 0.712_638_5, 0.015_707_3].into_iter().enumerate() {
            assert!((settings.rate_of(epoch) - 0.001 * expected).abs() < 1e-9, "{}", settings.rate_of(epoch));
        }
        assert_eq!(PromptSettings::new(PromptKind::L2p).rate_of(4), 0.001_875);
    }

    #[test]
    fn settings_that_cannot_be_used_are_refused_by_name() {
        let check = |kind: PromptKind, change: &dyn Fn(&mut PromptSettings), tasks: usize, expected: &str| {
            let mut settings = PromptSettings::new(kind);
            change(&mut settings);
            let error = settings.check(tasks).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(PromptKind::L2p, &|s| s.rate = f64::NAN, 5, "`rate`");
        check(PromptKind::L2p, &|s| s.top = 11, 5, "`top`");
        check(PromptKind::L2p, &|s| s.epochs = 0, 5, "`epochs`");
        check(PromptKind::L2p, &|s| s.length = 1000, 5, "`length`");
        check(PromptKind::DualPrompt, &|s| s.pull = -1.0, 5, "`pull`");
        check(PromptKind::CodaPrompt, &|s| s.length = 7, 5, "`length`");
        check(PromptKind::CodaPrompt, &|_| {}, 101, "100 components cannot be divided over 101 tasks");
        for kind in [PromptKind::L2p, PromptKind::DualPrompt, PromptKind::CodaPrompt] {
            PromptSettings::new(kind).check(100).unwrap();
        }
    }
}
