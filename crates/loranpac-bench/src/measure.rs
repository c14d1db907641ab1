//! What is measured of a run: the numbers that tables and figures show.

use serde::Deserialize;

use crate::run::{Run, TaskRecord};

/// What is shown of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Metric {
    // One number for a run.
    Final,
    Total,
    Average,
    Forgetting,
    Minutes,
    Seconds,
    Memory,
    // One number after every task.
    #[serde(alias = "samples")]
    Accuracy,
    TrainLoss,
    TrainMse,
    MaxEigenvalue,
    MinEigenvalue,
    EffectiveRank,
    Ridge,
    TrainMseUpper,
    TrainingBound,
    AccumulativeError,
    Gamma,
    LossShare,
    Condition,
    ConditionBefore,
    /// How far the singular values are from those of the run with the late schedule.
    SpectrumDifference,
    // Many numbers at one task.
    Eigenvalues,
    EffectiveRanks,
}

/// How much of a run a metric says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One number.
    Run,
    /// One number after every task; that of the last serves for the run.
    Task,
    /// Many numbers at one task.
    Spectrum,
}

impl Metric {
    /// How much of a run it says.
    pub fn kind(self) -> Kind {
        match self {
            Metric::Eigenvalues | Metric::EffectiveRanks => Kind::Spectrum,
            Metric::Accuracy
            | Metric::TrainLoss
            | Metric::TrainMse
            | Metric::MaxEigenvalue
            | Metric::MinEigenvalue
            | Metric::EffectiveRank
            | Metric::Ridge
            | Metric::TrainMseUpper
            | Metric::TrainingBound
            | Metric::AccumulativeError
            | Metric::Gamma
            | Metric::LossShare
            | Metric::Condition
            | Metric::ConditionBefore
            | Metric::SpectrumDifference => Kind::Task,
            _ => Kind::Run,
        }
    }

    /// For people, with the unit.
    pub fn label(self) -> &'static str {
        match self {
            Metric::Final => "final accuracy, %",
            Metric::Total => "total accuracy, %",
            Metric::Average => "average incremental accuracy, %",
            Metric::Forgetting => "forgetting, points",
            Metric::Minutes => "minutes",
            Metric::Seconds => "seconds",
            Metric::Memory => "model, MiB",
            Metric::Accuracy => "accuracy on all classes so far, %",
            Metric::TrainLoss => "training loss",
            Metric::TrainMse => "training MSE, from the state",
            Metric::MaxEigenvalue => "largest eigenvalue",
            Metric::MinEigenvalue => "smallest eigenvalue",
            Metric::EffectiveRank => "effective rank r_1",
            Metric::Ridge => "lambda",
            Metric::TrainMseUpper => "training MSE at most",
            Metric::TrainingBound => "bound of Corollary training-loss",
            Metric::AccumulativeError => "accumulative error a_t",
            Metric::Gamma => "gamma_t",
            Metric::LossShare => "lost before, over mu_k",
            Metric::Condition => "condition number, cut",
            Metric::ConditionBefore => "condition number, uncut",
            Metric::SpectrumDifference => "normalized difference",
            Metric::Eigenvalues => "eigenvalue",
            Metric::EffectiveRanks => "effective rank r_k",
        }
    }

    /// What it is, in a sentence, where its label does not say enough.
    pub fn meaning(self) -> Option<&'static str> {
        Some(match self {
            Metric::Accuracy => "Share of the test samples of all classes seen so far that are classified correctly.",
            Metric::Final => "Mean over the tasks of the accuracy on each task's test samples, after the last task.",
            Metric::Total => {
                "Mean over all entries of the accuracy matrix: every task, after itself and after every later task."
            }
            Metric::Average => "Mean over the tasks of the accuracy on all classes seen by then.",
            Metric::Forgetting => {
                "Mean drop from each task's best earlier accuracy to its last, in points; negative if accuracy rises. It grows with the number of classes even if \
                 nothing is unlearned."
            }
            Metric::Minutes | Metric::Seconds => {
                "Time to learn all tasks and to form the classifiers, without evaluation; with adaptation of the encoder, where there is one, and \
                 encoding with it."
            }
            Metric::Memory => "Memory that the model keeps between tasks.",
            _ => return None,
        })
    }

    /// The number of a run; of the last task for those that change over tasks.
    pub fn of(self, run: &Run) -> Option<f64> {
        let seconds = || -> f64 {
            let learn = run.tasks.iter().map(|task| task.learn_seconds + task.weights_seconds.unwrap_or(0.0));
            learn.sum::<f64>() + run.adapt_seconds.unwrap_or(0.0)
        };
        match self {
            Metric::Final => run.final_accuracy,
            Metric::Total => run.total_accuracy,
            Metric::Average => run.average_incremental_accuracy,
            Metric::Forgetting => run.forgetting,
            Metric::Minutes => Some(seconds() / 60.0),
            Metric::Seconds => Some(seconds()),
            Metric::Memory => Some(run.state_bytes as f64 / (1 << 20) as f64),
            per_task => run.tasks.last().and_then(|task| per_task.at(task)),
        }
    }

    /// The number after one task.
    pub fn at(self, task: &TaskRecord) -> Option<f64> {
        let certificate = task.certificate.as_ref();
        let spectrum = task.spectrum.as_deref().filter(|values| !values.is_empty());
        // Eigenvalues of rounding size may have either sign; a singular value decomposition would give their size.
        let smallest = |values: &[f64]| values.iter().map(|v| v.abs()).fold(f64::INFINITY, f64::min);
        match self {
            Metric::Accuracy => task.accuracy_samples,
            Metric::TrainLoss => task.train_loss,
            Metric::TrainMse => task.train_mse,
            Metric::Ridge => task.ridge,
            Metric::TrainMseUpper => task.train_mse_upper,
            Metric::TrainingBound => certificate.and_then(|c| c.bounds).map(|bounds| bounds.training_mse),
            Metric::AccumulativeError => certificate.map(|c| c.accumulative_error),
            Metric::Gamma => certificate.and_then(|c| c.gamma),
            Metric::LossShare => certificate.and_then(|c| c.loss_share),
            Metric::Condition => certificate.and_then(|c| c.condition),
            Metric::ConditionBefore => certificate.and_then(|c| c.condition_before),
            Metric::MaxEigenvalue => spectrum.map(|values| values[0]),
            Metric::MinEigenvalue => spectrum.map(smallest),
            Metric::EffectiveRank => spectrum.map(|values| values.iter().sum::<f64>() / values[0]),
            _ => None,
        }
    }

    /// Digits after the point in tables.
    pub fn digits(self) -> usize {
        match self {
            Metric::Seconds | Metric::Memory => 1,
            _ => 2,
        }
    }
}
