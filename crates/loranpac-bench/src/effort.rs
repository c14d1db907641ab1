//! How much runs train and encode inside a transformer.

use loranpac_data::Dataset;
use loranpac_encode::adapt::Pace;

use crate::adapted::RunFeatures;
use crate::error::Error;
use crate::prompted;
use crate::spec::{Spec, When};
use crate::stream;

/// Samples that are trained on and encoded, counted as often as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effort {
    /// In training steps.
    pub trained: usize,
    /// By an adapted encoder.
    pub encoded: usize,
}

impl Effort {
    /// What a run needs. `dataset` may have more samples per class than the run takes.
    pub fn of(spec: &Spec, dataset: &Dataset) -> Result<Effort, Error> {
        let features = RunFeatures::of(spec)?;
        if features == RunFeatures::Frozen {
            return Ok(Effort::default());
        }
        let mut taken = vec![true; dataset.train.len()];
        if let Some(rows) = stream::training_rows(dataset, spec)? {
            taken.fill(false);
            rows.into_iter().for_each(|row| taken[row] = true);
        }
        let tasks = stream::of(dataset, spec)?;
        let count = |task: &stream::Task| task.train.iter().filter(|row| taken[**row]).count();
        let sizes: Vec<usize> = tasks.iter().map(count).collect();
        let (all, first) = (sizes.iter().sum::<usize>(), sizes.first().copied().unwrap_or(0));
        let every = all + dataset.test.len();
        let epochs = spec.adapt_epochs;
        let (trained, encoded) = match features {
            RunFeatures::Frozen => (0, 0),
            RunFeatures::Adapted | RunFeatures::Both => (first * epochs, every),
            // Two halves, and then the whole.
            RunFeatures::Chosen => (2 * first * epochs, 2 * first + every),
            RunFeatures::Subspaces => (all * epochs, every * tasks.len()),
            // Tests after every task are those of the classes so far: half of them in the mean.
            RunFeatures::Raw => {
                let looks = if spec.eval == When::Every { tasks.len() + 1 } else { 2 };
                (all * prompted::settings(spec)?.epochs, dataset.test.len() * looks / 2)
            }
        };
        Ok(Effort { trained, encoded })
    }

    /// Seconds.
    pub fn seconds(self, pace: Pace) -> f64 {
        self.trained as f64 * pace.train + self.encoded as f64 * pace.encode
    }
}

/// What adaptation depends on, apart from the data: runs that agree on it train once.
pub fn shared(spec: &Spec) -> Spec {
    let Spec { adapt, adapt_features, adapt_rate, adapt_epochs, adapt_batch, adapt_scale, .. } = spec.clone();
    let Spec { scenario, seed, order, per_class, long_tail, .. } = spec.clone();
    let features = RunFeatures::of(spec);
    let every_task = matches!(features, Ok(RunFeatures::Subspaces | RunFeatures::Raw));
    let settings = if matches!(features, Ok(RunFeatures::Raw)) { spec.settings.clone() } else { Default::default() };
    Spec {
        adapt,
        adapt_features,
        adapt_rate,
        adapt_epochs,
        adapt_batch,
        adapt_scale,
        scenario,
        seed,
        order,
        per_class,
        long_tail,
        settings,
        ..Spec::new(if every_task { &spec.method } else { "simplecil" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{AdaptFeatures, Scenario};

    #[test]
    fn effort_counts_what_a_run_trains_on_and_encodes() {
        let digits = loranpac_data::embedded::digits();
        let (train, test) = (digits.train.len(), digits.test.len());
        let effort = |method: &str, change: &dyn Fn(&mut Spec)| {
            let scenario = Scenario::Class { base: 0, increment: 5 };
            let mut spec = Spec { scenario, adapt_epochs: 3, ..Spec::new(method) };
            change(&mut spec);
            let found = Effort::of(&spec.normalised().unwrap(), &digits).unwrap();
            (found.trained, found.encoded)
        };
        assert_eq!(effort("simplecil", &|_| {}), (0, 0));
        assert_eq!(effort("ease", &|_| {}), (3 * train, 2 * (train + test)));
        assert_eq!(effort("l2p", &|_| {}), (5 * train, test * 3 / 2));
        assert_eq!(effort("l2p", &|spec| spec.eval = When::Final), (5 * train, test));
        let (first, encoded) = effort("adam", &|_| {});
        assert!(0 < first && first < 3 * train && encoded == train + test, "{first} {encoded}");
        let few = |spec: &mut Spec| {
            spec.per_class = Some(7);
            spec.adapt = Some("ssf".to_owned());
        };
        assert_eq!(effort("simplecil", &few), (3 * 35, 70 + test));
        let chosen = |spec: &mut Spec| {
            few(spec);
            spec.adapt_features = AdaptFeatures::Chosen;
        };
        assert_eq!(effort("simplecil", &chosen), (6 * 35, 70 + 70 + test));
        let pace = Pace { train: 2.0, encode: 0.5 };
        assert_eq!(Effort { trained: 10, encoded: 4 }.seconds(pace), 22.0);
    }

    #[test]
    fn methods_on_the_same_adaptation_share_its_effort() {
        let spec = |method: &str, rate: f64| {
            let adapt = Some("adapter".to_owned());
            shared(&Spec { adapt, adapt_rate: rate, ..Spec::new(method) }.normalised().unwrap())
        };
        assert_eq!(spec("loranpac", 0.01), spec("adam", 0.01));
        assert_ne!(spec("loranpac", 0.01), spec("loranpac", 0.02));
        assert_ne!(spec("loranpac", 0.01), spec("ease", 0.01));
        assert_ne!(spec("l2p", 0.01), spec("dualprompt", 0.01));
    }
}
