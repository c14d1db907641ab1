//! Optimisers, with the semantics of PyTorch.

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// How numbers follow their gradients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimiser {
    /// `g += decay x;  v = momentum v + g;  x -= rate v`.
    Sgd {
        /// Share of the last step that is kept.
        momentum: f32,
        /// Weight decay, as part of the gradient.
        decay: f32,
    },
    /// Adam, with weight decay as part of the gradient.
    Adam {
        /// Decay of the mean of gradients.
        beta1: f32,
        /// Decay of the mean of their squares.
        beta2: f32,
        /// Added to the root of the squares.
        epsilon: f32,
        /// Weight decay.
        decay: f32,
    },
}

impl Optimiser {
    /// SGD with the momentum and the weight decay of the paper's tables.
    pub const SGD: Optimiser = Optimiser::Sgd { momentum: 0.9, decay: 5e-4 };
    /// Adam with PyTorch's usual settings.
    pub const ADAM: Optimiser = Optimiser::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, decay: 0.0 };

    /// How many numbers it remembers for each one that it changes.
    pub(crate) fn memory(self) -> usize {
        match self {
            Optimiser::Sgd { .. } => 1,
            Optimiser::Adam { .. } => 2,
        }
    }

    /// Makes a step: number `step`, counted from 1. `state` has `memory()` numbers for each of `values`, zero before the first step.
    pub(crate) fn step(self, values: &mut [f32], gradients: &[f32], state: &mut [f32], rate: f64, step: u64) {
        let (first, second) = state.split_at_mut(values.len());
        match self {
            Optimiser::Sgd { momentum, decay } => {
                for ((x, g), v) in values.iter_mut().zip(gradients).zip(first) {
                    *v = momentum * *v + (g + decay * *x);
                    *x -= rate as f32 * *v;
                }
            }
            Optimiser::Adam { beta1, beta2, epsilon, decay } => {
                let correction = |beta: f32| 1.0 - libm::pow(f64::from(beta), step as f64);
                let rate = (rate / correction(beta1)) as f32;
                let root = libm::sqrt(correction(beta2)) as f32;
                for ((x, g), (m, v)) in values.iter_mut().zip(gradients).zip(first.iter_mut().zip(second)) {
                    let g = g + decay * *x;
                    *m += (1.0 - beta1) * (g - *m);
                    *v = beta2 * *v + (1.0 - beta2) * g * g;
                    *x -= rate * *m / (v.sqrt() / root + epsilon);
                }
            }
        }
    }

    pub(super) fn check(self) -> Result<(), Error> {
        let share = |x: f32| (0.0..1.0).contains(&x);
        let positive = |x: f32| x.is_finite() && x >= 0.0;
        let usable = match self {
            Optimiser::Sgd { momentum, decay } => share(momentum) && positive(decay),
            Optimiser::Adam { beta1, beta2, epsilon, decay } => {
                share(beta1) && share(beta2) && epsilon > 0.0 && positive(decay)
            }
        };
        match usable {
            true => Ok(()),
            false => Err(Error::Adapt { name: "optimiser", reason: format!("{self:?} has a number out of range") }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers 1 and -2 after three steps with the gradients (0.5, -1), (0.1, 0.3) and (-0.2, 0) at rate 0.1.
    fn run(optimiser: Optimiser) -> Vec<f32> {
        let mut values = vec![1.0, -2.0];
        let mut state = vec![0.0; 2 * optimiser.memory()];
        for (step, gradients) in [[0.5, -1.0], [0.1, 0.3], [-0.2, 0.0]].iter().enumerate() {
            optimiser.step(&mut values, gradients, &mut state, 0.1, step as u64 + 1);
        }
        values
    }

    /// In f64, from the definitions: torch.optim.SGD(momentum=0.9, weight_decay=0.01).
    #[test]
    fn sgd_is_pytorchs() {
        let (mut x, mut v) = ([1.0f64, -2.0], [0.0; 2]);
        for g in [[0.5, -1.0], [0.1, 0.3], [-0.2, 0.0]] {
            for i in 0..2 {
                v[i] = 0.9 * v[i] + g[i] + 0.01 * x[i];
                x[i] -= 0.1 * v[i];
            }
        }
        let found = run(Optimiser::Sgd { momentum: 0.9, decay: 0.01 });
        found.iter().zip(x).for_each(|(found, x)| assert!((f64::from(*found) - x).abs() < 1e-6, "{found} {x}"));
    }

    /// In f64, from the definitions: torch.optim.Adam().
    #[test]
    fn adam_is_pytorchs() {
        let (mut x, mut m, mut v) = ([1.0f64, -2.0], [0.0; 2], [0.0; 2]);
        for (t, g) in [[0.5, -1.0], [0.1, 0.3], [-0.2, 0.0]].iter().enumerate() {
            let t = t as i32 + 1;
            for i in 0..2 {
                m[i] = 0.9 * m[i] + 0.1 * g[i];
                v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
                let (m, v) = (m[i] / (1.0 - 0.9f64.powi(t)), v[i] / (1.0 - 0.999f64.powi(t)));
                x[i] -= 0.1 * m / (v.sqrt() + 1e-8);
            }
        }
        let found = run(Optimiser::ADAM);
        found.iter().zip(x).for_each(|(found, x)| assert!((f64::from(*found) - x).abs() < 1e-5, "{found} {x}"));
    }
}
