//! Cross-entropy:
//!
//! ```text
//! loss = -mean over samples of log softmax(logits)[class];    slopes = (softmax(logits) - one-hot) / n
//! ```

/// The mean loss of samples, and its gradient with respect to the logits: a row of `classes` numbers for each sample. Classes that are not
/// `allowed` have no part in it.
///
/// # Panics
/// If a class is out of range, or there is no sample.
pub fn cross_entropy(logits: &[f32], targets: &[usize], classes: usize, allowed: Option<&[bool]>) -> (f64, Vec<f32>) {
    assert!(!targets.is_empty() && logits.len() == targets.len() * classes, "logits of {} samples", targets.len());
    let is_allowed = |class: usize| allowed.is_none_or(|allowed| allowed[class]);
    let share = 1.0 / targets.len() as f64;
    let mut slopes = vec![0.0; logits.len()];
    let mut loss = 0.0;
    for ((logits, slopes), target) in logits.chunks(classes).zip(slopes.chunks_mut(classes)).zip(targets) {
        let chosen = || logits.iter().enumerate().filter(|(class, _)| is_allowed(*class));
        let largest = chosen().fold(f64::NEG_INFINITY, |largest, (_, x)| largest.max(f64::from(*x)));
        let sum: f64 = chosen().map(|(_, x)| libm::exp(f64::from(*x) - largest)).sum();
        loss += share * (libm::log(sum) + largest - f64::from(logits[*target]));
        for (class, x) in chosen() {
            let weight = libm::exp(f64::from(*x) - largest) / sum - f64::from(u8::from(class == *target));
            slopes[class] = (weight * share) as f32;
        }
    }
    (loss, slopes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_is_that_of_finite_differences_and_masked_classes_have_none() {
        let logits = [1.0f32, -0.5, 2.0, 0.0, 0.25, -3.0];
        let targets = [2, 0];
        for allowed in [None, Some(&[true, false, true][..])] {
            let (loss, slopes) = cross_entropy(&logits, &targets, 3, allowed);
            assert!(loss > 0.0);
            for i in 0..6 {
                let at = |change: f32| {
                    let mut logits = logits;
                    logits[i] += change;
                    cross_entropy(&logits, &targets, 3, allowed).0
                };
                let expected = (at(1e-2) - at(-1e-2)) / 2e-2;
                assert!((f64::from(slopes[i]) - expected).abs() < 1e-4, "{i}: {} {expected}", slopes[i]);
            }
            assert_eq!(allowed.is_some(), slopes[1] == 0.0 && slopes[4] == 0.0);
        }
    }

    /// `torch.nn.functional.cross_entropy(torch.tensor([[1., -0.5, 2.], [0., 0.25, -3.]]), torch.tensor([2, 0]))`.
    #[test]
    fn the_loss_is_the_definition() {
        let row = |x: [f64; 3], target: usize| x.iter().map(|x| x.exp()).sum::<f64>().ln() - x[target];
        let expected = (row([1.0, -0.5, 2.0], 2) + row([0.0, 0.25, -3.0], 0)) / 2.0;
        let (loss, _) = cross_entropy(&[1.0, -0.5, 2.0, 0.0, 0.25, -3.0], &[2, 0], 3, None);
        assert!((loss - expected).abs() < 1e-12);
        // Large logits do not overflow.
        assert!(cross_entropy(&[3e38, -3e38], &[0], 2, None).0.is_finite());
    }
}
